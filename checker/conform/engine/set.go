package engine

import "math/bits"

// SetBits is how many different elements a set can have.
const SetBits = 128

// Set is a set of small numbers, each standing for an element.
type Set struct{ Lo, Hi uint64 }

// Bit returns the set of one number; it panics when i is no number that a set can hold.
func Bit(i int) Set {
	if uint(i) < 64 {
		return Set{Lo: 1 << i}
	}
	if uint(i) < SetBits {
		return Set{Hi: 1 << (i - 64)}
	}
	panic(Failure{"an element is outside of the set's universe, which the type invariant gives"})
}

// Range returns the set of the numbers from lo to hi.
func Range(lo, hi int) Set {
	var s Set
	for i := lo; i <= hi; i++ {
		s = s.Or(Bit(i))
	}
	return s
}

// Or is the union.
func (s Set) Or(t Set) Set { return Set{s.Lo | t.Lo, s.Hi | t.Hi} }

// And is the intersection.
func (s Set) And(t Set) Set { return Set{s.Lo & t.Lo, s.Hi & t.Hi} }

// AndNot is the difference.
func (s Set) AndNot(t Set) Set { return Set{s.Lo &^ t.Lo, s.Hi &^ t.Hi} }

// Has says whether i is an element.
func (s Set) Has(i int) bool {
	if uint(i) < 64 {
		return s.Lo>>i&1 != 0
	}
	return uint(i) < SetBits && s.Hi>>(i-64)&1 != 0
}

// In says whether s is a subset of t.
func (s Set) In(t Set) bool { return s.Lo&^t.Lo|s.Hi&^t.Hi == 0 }

// Len is the number of elements.
func (s Set) Len() int { return bits.OnesCount64(s.Lo) + bits.OnesCount64(s.Hi) }

// Some says whether s has an element.
func (s Set) Some() bool { return s.Lo|s.Hi != 0 }

// Pop removes and returns the smallest element; s must not be empty.
func (s *Set) Pop() int {
	if s.Lo != 0 {
		i := bits.TrailingZeros64(s.Lo)
		s.Lo &= s.Lo - 1
		return i
	}
	i := bits.TrailingZeros64(s.Hi)
	s.Hi &= s.Hi - 1
	return i + 64
}

// min and max return the ends; s must not be empty.
func (s Set) min() int { return (&s).Pop() }

func (s Set) max() int {
	if s.Hi != 0 {
		return 127 - bits.LeadingZeros64(s.Hi)
	}
	return 63 - bits.LeadingZeros64(s.Lo)
}

// Subsets returns all subsets.
func (s Set) Subsets() List[Set] {
	n := s.Len()
	if n > 16 {
		panic(Failure{"the subsets of a set of more than 16 elements are not enumerated"})
	}
	var elems []int
	for m := s; m.Some(); {
		elems = append(elems, m.Pop())
	}
	list := make(List[Set], 0, 1<<n)
	for mask := range 1 << n {
		var t Set
		for i, e := range elems {
			if mask>>i&1 != 0 {
				t = t.Or(Bit(e))
			}
		}
		list = append(list, t)
	}
	return list
}

// List is a set of elements that have no numbers, without repetition and in no particular order.
type List[T comparable] []T

// Add returns the set with x; the list may be reused.
func (l List[T]) Add(x T) List[T] {
	if l.Has(x) {
		return l
	}
	return append(l, x)
}

// Has says whether x is an element.
func (l List[T]) Has(x T) bool {
	for _, y := range l {
		if x == y {
			return true
		}
	}
	return false
}

// In says whether l is a subset of m.
func (l List[T]) In(m List[T]) bool {
	for _, x := range l {
		if !m.Has(x) {
			return false
		}
	}
	return true
}

// Same says whether two sets are equal.
func (l List[T]) Same(m List[T]) bool { return len(l) == len(m) && l.In(m) }

// Or is the union.
func (l List[T]) Or(m List[T]) List[T] {
	out := append(make(List[T], 0, len(l)+len(m)), l...)
	for _, x := range m {
		out = out.Add(x)
	}
	return out
}

// And is the intersection.
func (l List[T]) And(m List[T]) List[T] {
	var out List[T]
	for _, x := range l {
		if m.Has(x) {
			out = append(out, x)
		}
	}
	return out
}

// AndNot is the difference.
func (l List[T]) AndNot(m List[T]) List[T] {
	var out List[T]
	for _, x := range l {
		if !m.Has(x) {
			out = append(out, x)
		}
	}
	return out
}

// Len is the number of elements.
func (l List[T]) Len() int { return len(l) }
