package linear

import "slices"

// bits is a set of small integers. Sets that belong together have the same length. A set that a state holds is
// never changed.
type bits []uint64

func newBits(n int) bits { return make(bits, (n+63)/64) }

func (b bits) has(i int32) bool { return b[i>>6]&(1<<(i&63)) != 0 }
func (b bits) set(i int32)      { b[i>>6] |= 1 << (i & 63) }
func (b bits) clear(i int32)    { b[i>>6] &^= 1 << (i & 63) }

func (b bits) equal(o bits) bool {
	return len(b) == 0 || &b[0] == &o[0] || slices.Equal(b, o)
}

// contains reports whether o is a subset of b.
func (b bits) contains(o bits) bool {
	for i, w := range o {
		if w&^b[i] != 0 {
			return false
		}
	}
	return true
}

func (b bits) with(i int32) bits {
	c := slices.Clone(b)
	c.set(i)
	return c
}

// full is the set of all integers below n, rounded up to whole words.
func full(n int) bits {
	b := newBits(n)
	for i := range b {
		b[i] = ^uint64(0)
	}
	return b
}
