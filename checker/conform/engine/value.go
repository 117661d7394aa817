// Package engine runs the checkers that cmd/tla2go generates: it computes from the constants how a state is packed into
// machine words, stores states, and explores. Generated code supplies the actions and the properties; it works on Go
// values of fixed size, so that successors are made without allocation.
package engine

// Atom is a string or a model value, by number.
type Atom uint8

// SeqCap is the capacity of a sequence, FunCap that of a function; more is reported when the constants are known.
const (
	SeqCap = 8
	FunCap = 16
)

// Seq is a sequence. Elements beyond N are zero, so that equal sequences are equal Go values.
type Seq[T comparable] struct {
	N int
	E [SeqCap]T
}

// At returns the element at index i, counted from 1.
func (s *Seq[T]) At(i int) *T {
	if i < 1 || i > s.N {
		panic(Failure{"an index is not in the domain of a sequence"})
	}
	return &s.E[i-1]
}

// Append returns s with x at its end.
func (s Seq[T]) Append(x T) Seq[T] {
	if s.N == SeqCap {
		panic(Failure{"a sequence is longer than the generated code can hold"})
	}
	s.E[s.N] = x
	s.N++
	return s
}

// Head returns the first element.
func (s Seq[T]) Head() T { return *s.At(1) }

// Tail returns all but the first element.
func (s Seq[T]) Tail() Seq[T] {
	if s.N == 0 {
		panic(Failure{"Tail of an empty sequence"})
	}
	return s.Sub(2, s.N)
}

// Sub returns the elements from index m to n.
func (s Seq[T]) Sub(m, n int) Seq[T] {
	var out Seq[T]
	if m > n {
		return out
	}
	if m < 1 || n > s.N {
		panic(Failure{"SubSeq reaches beyond the sequence"})
	}
	out.N = copy(out.E[:], s.E[m-1:n])
	return out
}

// Concat returns s followed by t.
func (s Seq[T]) Concat(t Seq[T]) Seq[T] {
	for i := range t.N {
		s = s.Append(t.E[i])
	}
	return s
}

// Opt is an atom, or with Is a value.
type Opt[T comparable] struct {
	Atom Atom
	Is   bool
	V    T
}

// Val makes an Opt of a value.
func Val[T comparable](v T) Opt[T] { return Opt[T]{Is: true, V: v} }

// Named makes an Opt of an atom.
func Named[T comparable](a Atom) Opt[T] { return Opt[T]{Atom: a} }

// Get returns the value; it panics on an atom.
func (o *Opt[T]) Get() *T {
	if !o.Is {
		panic(Failure{"a model value or string is used as a structured value"})
	}
	return &o.V
}

// Name returns the atom; it panics on a value.
func (o Opt[T]) Name() Atom {
	if o.Is {
		panic(Failure{"a structured value is used as a model value or string"})
	}
	return o.Atom
}

// Universe numbers the values of which there are sets.
type Universe[T comparable] struct {
	Elems []T
	index map[T]int
}

// NewUniverse numbers values in the given order.
func NewUniverse[T comparable](elems []T) Universe[T] {
	u := Universe[T]{elems, make(map[T]int, len(elems))}
	for i, e := range elems {
		u.index[e] = i
	}
	return u
}

// Index returns the number of v, or -1.
func (u *Universe[T]) Index(v T) int {
	if i, ok := u.index[v]; ok {
		return i
	}
	return -1
}

// Failure is the panic of generated code where TLC would report an error.
type Failure struct{ Msg string }

func (f Failure) Error() string { return f.Msg }

// Fail panics with a Failure.
func Fail(msg string) { panic(Failure{msg}) }

// FloorDiv is TLA+'s division, which rounds down.
func FloorDiv(a, b int) int {
	if b == 0 {
		panic(Failure{"division by zero"})
	}
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// Mod is TLA+'s remainder; its divisor is positive.
func Mod(a, b int) int {
	if b <= 0 {
		panic(Failure{"the divisor of % must be positive"})
	}
	return a - b*FloorDiv(a, b)
}

// Pow is a to the power of b.
func Pow(a, b int) int {
	if b < 0 {
		panic(Failure{"the exponent must not be negative"})
	}
	n := 1
	for range b {
		n = Int32(n * a)
	}
	return n
}

// Key returns i, an index into a function with the given domain, or panics when i is not in it.
func Key(i int, domain Set) int {
	if !domain.Has(i) {
		panic(Failure{"a function is applied outside of its domain"})
	}
	return i
}

// Max bounds of the integers of TLC.
const (
	minInt = -1 << 31
	maxInt = 1<<31 - 1
)

// Int32 returns n, or panics where TLC's integers overflow.
func Int32(n int) int {
	if n < minInt || n > maxInt {
		panic(Failure{"an integer overflows TLC's 32 bits"})
	}
	return n
}

// Inner returns the value in an Opt; it panics on an atom.
func Inner[T comparable](o Opt[T]) T { return *o.Get() }

// Elem returns the element at index i of a sequence, counted from 1.
func Elem[T comparable](s Seq[T], i int) T { return *s.At(i) }

// B is 1 for true and 0 for false.
func B(b bool) int {
	if b {
		return 1
	}
	return 0
}
