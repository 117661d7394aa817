// Package eval gives TLA+ its meaning the direct way: values, the evaluation of expressions, the enumeration of initial
// and next states as TLC does it, and an explorer that stores whole states. It is slow and plain; the generated checker
// uses it for what happens once, at the start, and the tests use it to tell what the generated code must do.
package eval

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Value is a TLA+ value: Int, Bool, Str, Model, *Set, Tuple, *Fun or Infinite. Values are never changed after they
// were made, and equal values have equal structure: the elements of a set are sorted, and a function whose domain is
// 1..n is a Tuple.
type Value interface {
	// String prints the value as TLC does.
	String() string
}

type (
	// Int is an integer.
	Int int
	// Bool is TRUE or FALSE.
	Bool bool
	// Str is a string.
	Str string
	// Model is a model value: equal to itself only, and comparable with everything.
	Model string
	// Tuple is a tuple or sequence, a function with domain 1..n.
	Tuple []Value
	// Infinite is a set that has members but no enumeration: Nat, Int or STRING.
	Infinite string
	// Set is a finite set with sorted elements.
	Set struct{ Elems []Value }
	// Fun is a function that is no tuple; a record is a function over strings. Keys are sorted.
	Fun struct{ Keys, Vals []Value }
)

func (v Int) String() string  { return strconv.Itoa(int(v)) }
func (v Bool) String() string { return strings.ToUpper(strconv.FormatBool(bool(v))) }

func (v Str) String() string      { return strconv.Quote(string(v)) }
func (v Model) String() string    { return string(v) }
func (v Infinite) String() string { return string(v) }
func (v Tuple) String() string    { return "<<" + join(v) + ">>" }
func (v *Set) String() string     { return "{" + join(v.Elems) + "}" }

func (v *Fun) String() string {
	parts := make([]string, len(v.Keys))
	record := true
	for i, k := range v.Keys {
		s, ok := k.(Str)
		record = record && ok
		parts[i] = string(s) + " |-> " + v.Vals[i].String()
	}
	if record {
		return "[" + strings.Join(parts, ", ") + "]"
	}
	for i, k := range v.Keys {
		parts[i] = k.String() + " :> " + v.Vals[i].String()
	}
	return "(" + strings.Join(parts, " @@ ") + ")"
}

func join(vs []Value) string {
	parts := make([]string, len(vs))
	for i, v := range vs {
		parts[i] = v.String()
	}
	return strings.Join(parts, ", ")
}

// rank orders values of different kinds where that is allowed.
func rank(v Value) int {
	switch v.(type) {
	case Model:
		return 0
	case Bool:
		return 1
	case Int:
		return 2
	case Str:
		return 3
	case *Set:
		return 4
	case Tuple:
		return 5
	case *Fun:
		return 6
	}
	return 7
}

// mismatch is the panic of a comparison that TLC refuses too, such as of a number with a string.
type mismatch struct{ a, b Value }

// Compare orders values: sets by size and then by elements, tuples and functions likewise. It panics with a mismatch,
// which Evaluator reports as an error, when the values have kinds that TLC cannot compare.
func Compare(a, b Value) int {
	ra, rb := rank(a), rank(b)
	if ra != rb {
		if ra == 0 || rb == 0 || ra >= 5 && rb >= 5 && ra < 7 && rb < 7 {
			return cmp.Compare(ra, rb)
		}
		panic(mismatch{a, b})
	}
	switch a := a.(type) {
	case Model:
		return cmp.Compare(a, b.(Model))
	case Bool:
		return b2i(bool(a)) - b2i(bool(b.(Bool)))
	case Int:
		return cmp.Compare(a, b.(Int))
	case Str:
		return cmp.Compare(a, b.(Str))
	case *Set:
		return compareAll(a.Elems, b.(*Set).Elems)
	case Tuple:
		return compareAll(a, b.(Tuple))
	case *Fun:
		b := b.(*Fun)
		if c := compareAll(a.Keys, b.Keys); c != 0 {
			return c
		}
		return compareAll(a.Vals, b.Vals)
	}
	panic(mismatch{a, b})
}

func compareAll(a, b []Value) int {
	if c := cmp.Compare(len(a), len(b)); c != 0 {
		return c
	}
	for i := range a {
		if c := Compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Equal says whether two values are equal; like Compare it panics where TLC refuses.
func Equal(a, b Value) bool { return Compare(a, b) == 0 }

// NewSet returns the set of the given elements; it takes the slice over.
func NewSet(elems []Value) *Set {
	slices.SortFunc(elems, Compare)
	return &Set{slices.CompactFunc(elems, Equal)}
}

// Has says whether v is an element.
func (v *Set) Has(x Value) bool {
	_, ok := slices.BinarySearchFunc(v.Elems, x, Compare)
	return ok
}

// NewFun returns the function with these pairs, as a Tuple where its domain is 1..n. Keys must be distinct.
func NewFun(keys, vals []Value) Value {
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return Compare(keys[i], keys[j]) })
	f := &Fun{make([]Value, len(keys)), make([]Value, len(keys))}
	tuple := true
	for i, j := range order {
		f.Keys[i], f.Vals[i] = keys[j], vals[j]
		tuple = tuple && keys[j] == Value(Int(i+1))
	}
	if tuple {
		return Tuple(f.Vals)
	}
	return f
}

// Domain returns the domain of a function, tuple or record, and whether v is one.
func Domain(v Value) ([]Value, bool) {
	switch v := v.(type) {
	case *Fun:
		return v.Keys, true
	case Tuple:
		keys := make([]Value, len(v))
		for i := range keys {
			keys[i] = Int(i + 1)
		}
		return keys, true
	}
	return nil, false
}

// Apply returns v[x], and whether v is a function with x in its domain.
func Apply(v, x Value) (Value, bool) {
	switch v := v.(type) {
	case Tuple:
		if i, ok := x.(Int); ok && i >= 1 && int(i) <= len(v) {
			return v[i-1], true
		}
	case *Fun:
		if i, ok := slices.BinarySearchFunc(v.Keys, x, Compare); ok {
			return v.Vals[i], true
		}
	}
	return nil, false
}

// Field returns the field of a record, or nil.
func Field(v Value, name string) Value {
	r, _ := Apply(v, Str(name))
	return r
}

// Record makes a record from name, value pairs in any order.
func Record(fields map[string]Value) Value {
	var keys, vals []Value
	for k, v := range fields {
		keys, vals = append(keys, Str(k)), append(vals, v)
	}
	return NewFun(keys, vals)
}

// subsets calls f with every subset, smaller numbers of the lower elements first.
func subsets(elems []Value, f func(Value)) {
	for mask := uint64(0); mask < 1<<len(elems); mask++ {
		var s []Value
		for i, e := range elems {
			if mask>>i&1 != 0 {
				s = append(s, e)
			}
		}
		f(&Set{s})
	}
}

// functions calls f with every choice of one element of each set.
func product(sets [][]Value, f func([]Value)) {
	for _, s := range sets {
		if len(s) == 0 {
			return
		}
	}
	at := make([]int, len(sets))
	for {
		pick := make([]Value, len(sets))
		for i, s := range sets {
			pick[i] = s[at[i]]
		}
		f(pick)
		i := len(sets) - 1
		for ; i >= 0; i-- {
			if at[i]++; at[i] < len(sets[i]) {
				break
			}
			at[i] = 0
		}
		if i < 0 {
			return
		}
	}
}

// kindOf names a value's kind for messages.
func kindOf(v Value) string {
	switch v.(type) {
	case Int:
		return "a number"
	case Bool:
		return "a Boolean"
	case Str:
		return "a string"
	case Model:
		return "a model value"
	case *Set, Infinite:
		return "a set"
	case Tuple:
		return "a tuple"
	case *Fun:
		return "a function"
	}
	return fmt.Sprintf("%T", v)
}
