package model

import "math/bits"

// Rules is a set of ingress rules: Permissions in the live reconciler, Bits in the explored System.
type Rules[R any] interface {
	Minus(R) R
	Union(R) R
	Empty() bool
}

// overlap reports whether two sets have a rule in common.
func overlap[R Rules[R]](a, b R) bool { return !common(a, b).Empty() }

// common returns the rules that are in both sets.
func common[R Rules[R]](a, b R) R { return a.Minus(a.Minus(b)) }

// Bits is a set of numbered rules: bit i stands for rule i of a World.
type Bits uint32

// Minus returns the rules of b that are not in o.
func (b Bits) Minus(o Bits) Bits { return b &^ o }

// Union returns the rules that are in b or in o.
func (b Bits) Union(o Bits) Bits { return b | o }

// Empty reports whether there is no rule.
func (b Bits) Empty() bool { return b == 0 }

// Len returns the number of rules.
func (b Bits) Len() int { return bits.OnesCount32(uint32(b)) }
