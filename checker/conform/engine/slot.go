package engine

import (
	"fmt"
	"math/bits"

	"linearize.example/checker/conform/eval"
)

// Kind is the shape of a type.
type Kind int

// The kinds of types.
const (
	Bool Kind = iota
	Int
	Name // an Atom
	SetOf
	Fun
	Rec
	Tup
	SeqOf
	Option
)

// Type describes a type of the generated code. What depends on the constants is filled in by NewModel.
type Type struct {
	Kind   Kind
	Elem   *Type
	Key    *Type
	Fields []Field // of Rec, by name; of Tup in order, without names
	Dom    string  // the name of a Fun's domain, where no variable gives it

	// Universe marks a type whose sets are stored as bits; Elems are its values in order.
	Universe bool
	Elems    []eval.Value
	index    map[string]int

	// Keys is a Fun's domain, First the number of the first, and Domain their numbers less First.
	Keys   []eval.Value
	First  int
	Domain Set
}

// Field is a field of a record or of a tuple.
type Field struct {
	Name string
	Type *Type
}

// Slot is where and how a value lies in a packed state.
type Slot struct {
	Path string
	Type *Type
	// Off is the first bit, counted from that of the enclosing slot; Width the number of bits.
	Off, Width int
	// Lo is subtracted before a number is stored; of a set it is the first bit that can be set.
	Lo int
	// Max is the largest number as it is stored, or the greatest length of a sequence.
	Max    uint64
	Mask   Set
	Stride int // from element to element
	Elem   *Slot
	Fields []*Slot
	Tag    *Slot // the atom of an Option, the length of a sequence

	hi    int
	some  bool
	elems []eval.Value // of the set, while the universe is being collected
}

// Get reads width bits at off.
func Get(w []uint64, off, width int) uint64 {
	i, sh := off>>6, off&63
	x := w[i] >> sh
	if sh+width > 64 {
		x |= w[i+1] << (64 - sh)
	}
	return x & (1<<width - 1)
}

// Put writes width bits at off.
func Put(w []uint64, off, width int, x uint64) {
	i, sh := off>>6, off&63
	m := uint64(1)<<width - 1
	w[i] = w[i]&^(m<<sh) | x<<sh
	if sh+width > 64 {
		w[i+1] = w[i+1]&^(m>>(64-sh)) | x>>(64-sh)
	}
}

// Clear writes zeros.
func Clear(w []uint64, off, width int) {
	for ; width > 0; off, width = off+64, width-64 {
		Put(w, off, min(width, 64), 0)
	}
}

func (s *Slot) outside(v any) {
	panic(Failure{fmt.Sprintf("%s takes a value outside of the type invariant: %v", s.Path, v)})
}

// GetInt reads a number.
func (s *Slot) GetInt(w []uint64, off int) int { return s.Lo + int(Get(w, off, s.Width)) }

// PutInt writes a number; it panics when the type invariant does not allow it.
func (s *Slot) PutInt(w []uint64, off, v int) {
	x := uint64(v - s.Lo)
	if x > s.Max {
		s.outside(v)
	}
	Put(w, off, s.Width, x)
}

// GetAtom reads an atom.
func (s *Slot) GetAtom(w []uint64, off int) Atom { return Atom(s.Lo + int(Get(w, off, s.Width))) }

// PutAtom writes an atom.
func (s *Slot) PutAtom(w []uint64, off int, v Atom) { s.PutInt(w, off, int(v)) }

// GetBool reads a Boolean.
func (s *Slot) GetBool(w []uint64, off int) bool { return w[off>>6]>>(off&63)&1 != 0 }

// PutBool writes a Boolean.
func (s *Slot) PutBool(w []uint64, off int, v bool) {
	x := uint64(0)
	if v {
		x = 1
	}
	i, sh := off>>6, off&63
	w[i] = w[i]&^(1<<sh) | x<<sh
}

// GetSet reads a set.
func (s *Slot) GetSet(w []uint64, off int) Set {
	lo := Get(w, off, min(s.Width, 64))
	var hi uint64
	if s.Width > 64 {
		hi = Get(w, off+64, s.Width-64)
	}
	if s.Lo == 0 {
		return Set{lo, hi}
	}
	return Set{lo, hi}.up(s.Lo)
}

// PutSet writes a set.
func (s *Slot) PutSet(w []uint64, off int, v Set) {
	if v.AndNot(s.Mask).Some() {
		s.outside(v)
	}
	if s.Lo != 0 {
		v = v.down(s.Lo)
	}
	Put(w, off, min(s.Width, 64), v.Lo)
	if s.Width > 64 {
		Put(w, off+64, s.Width-64, v.Hi)
	}
}

func (s Set) up(n int) Set {
	if n >= 64 {
		return Set{0, s.Lo << (n - 64)}
	}
	return Set{s.Lo << n, s.Hi<<n | s.Lo>>(64-n)}
}

func (s Set) down(n int) Set {
	if n >= 64 {
		return Set{s.Hi >> (n - 64), 0}
	}
	return Set{s.Lo>>n | s.Hi<<(64-n), s.Hi >> n}
}

// merge widens a slot to what either allows.
func merge(a, b *Slot) *Slot {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	switch {
	case !a.some:
		a.Lo, a.hi, a.some = b.Lo, b.hi, b.some
	case b.some:
		a.Lo, a.hi = min(a.Lo, b.Lo), max(a.hi, b.hi)
	}
	a.Max = max(a.Max, b.Max)
	a.elems = append(a.elems, b.elems...)
	a.Elem = merge(a.Elem, b.Elem)
	a.Tag = merge(a.Tag, b.Tag)
	for i := range a.Fields {
		a.Fields[i] = merge(a.Fields[i], b.Fields[i])
	}
	return a
}

// layout computes widths and offsets, from the inside out.
func (m *Model) layout(s *Slot, path string) {
	s.Path = path
	switch s.Type.Kind {
	case Bool:
		s.Width, s.Max = 1, 1
	case Int, Name:
		s.Max = uint64(s.hi - s.Lo)
		s.Width = bits.Len64(s.Max)
	case SetOf:
		for _, v := range s.elems {
			i, _ := m.number(s.Type.Elem, v)
			s.Mask = s.Mask.Or(Bit(i))
		}
		s.elems = nil
		if s.Mask.Some() {
			s.Lo = s.Mask.min()
			s.Width = s.Mask.max() - s.Lo + 1
		}
	case Fun:
		m.inside(s, path+"[...]")
		s.Stride = s.Elem.Width
		s.Width = s.Stride * (s.Type.Domain.max() + 1)
	case SeqOf:
		m.inside(s, path+"[...]")
		s.Tag = &Slot{Type: &Type{Kind: Int}, Path: "the length of " + path, Max: s.Max, Width: bits.Len64(s.Max)}
		s.Stride = s.Elem.Width
		s.Width = s.Tag.Width + s.Stride*int(s.Max)
	case Option:
		m.inside(s, path)
		if s.Tag == nil {
			s.Tag = &Slot{Type: s.Type.Key}
		}
		m.layout(s.Tag, path)
		s.Tag.Off = 1
		s.Elem.Off = 1 + s.Tag.Width
		s.Width = 1 + s.Tag.Width + s.Elem.Width
	case Rec, Tup:
		s.Width = 0
		for i, f := range s.Type.Fields {
			name := path + "." + f.Name
			if f.Name == "" {
				name = fmt.Sprintf("%s[%d]", path, i+1)
			}
			if s.Fields[i] == nil {
				s.Fields[i] = emptySlot(f.Type)
			}
			m.layout(s.Fields[i], name)
			s.Fields[i].Off = s.Width
			s.Width += s.Fields[i].Width
		}
	}
}

func (m *Model) inside(s *Slot, path string) {
	if s.Elem == nil {
		s.Elem = emptySlot(s.Type.Elem)
	}
	m.layout(s.Elem, path)
}

// emptySlot is the slot of a value that never occurs, such as an element of sequences that are always empty.
func emptySlot(t *Type) *Slot {
	s := &Slot{Type: t}
	if t.Kind == Rec || t.Kind == Tup {
		s.Fields = make([]*Slot, len(t.Fields))
	}
	return s
}

// Pack writes a value into a packed state, at the given distance from the slot's own offset.
func (m *Model) Pack(s *Slot, w []uint64, base int, v eval.Value) {
	off := base + s.Off
	bad := func() { s.outside(v) }
	switch s.Type.Kind {
	case Bool:
		b, ok := v.(eval.Bool)
		if !ok {
			bad()
		}
		s.PutBool(w, off, bool(b))
	case Int:
		n, ok := v.(eval.Int)
		if !ok {
			bad()
		}
		s.PutInt(w, off, int(n))
	case Name:
		i, ok := m.number(s.Type, v)
		if !ok {
			bad()
		}
		s.PutInt(w, off, i)
	case SetOf:
		set, ok := v.(*eval.Set)
		if !ok {
			bad()
		}
		var b Set
		for _, x := range set.Elems {
			i, ok := m.number(s.Type.Elem, x)
			if !ok {
				bad()
			}
			b = b.Or(Bit(i))
		}
		s.PutSet(w, off, b)
	case Fun:
		for i, k := range s.Type.Keys {
			x, ok := eval.Apply(v, k)
			if !ok {
				bad()
			}
			n, _ := m.number(s.Type.Key, s.Type.Keys[i])
			m.Pack(s.Elem, w, off+(n-s.Type.First)*s.Stride, x)
		}
	case SeqOf:
		t, ok := v.(eval.Tuple)
		if !ok {
			bad()
		}
		s.Tag.PutInt(w, off, len(t))
		for i, x := range t {
			m.Pack(s.Elem, w, off+s.Tag.Width+i*s.Stride, x)
		}
	case Option:
		if i, ok := m.number(s.Type.Key, v); ok {
			s.Tag.PutInt(w, off+s.Tag.Off, i)
			return
		}
		Put(w, off, 1, 1)
		m.Pack(s.Elem, w, off, v)
	case Rec, Tup:
		for i, f := range s.Fields {
			var x eval.Value
			if s.Type.Kind == Tup {
				x, _ = eval.Apply(v, eval.Int(i+1))
			} else {
				x = eval.Field(v, s.Type.Fields[i].Name)
			}
			if x == nil {
				bad()
			}
			m.Pack(f, w, off, x)
		}
	}
}

// Unpack reads a value.
func (m *Model) Unpack(s *Slot, w []uint64, base int) eval.Value {
	off := base + s.Off
	switch s.Type.Kind {
	case Bool:
		return eval.Bool(s.GetBool(w, off))
	case Int:
		return eval.Int(s.GetInt(w, off))
	case Name:
		return m.Atoms[s.GetAtom(w, off)]
	case SetOf:
		var elems []eval.Value
		for set := s.GetSet(w, off); set.Some(); {
			elems = append(elems, m.value(s.Type.Elem, set.Pop()))
		}
		return eval.NewSet(elems)
	case Fun:
		vals := make([]eval.Value, len(s.Type.Keys))
		for i, k := range s.Type.Keys {
			n, _ := m.number(s.Type.Key, k)
			vals[i] = m.Unpack(s.Elem, w, off+(n-s.Type.First)*s.Stride)
		}
		return eval.NewFun(s.Type.Keys, vals)
	case SeqOf:
		t := make(eval.Tuple, s.Tag.GetInt(w, off))
		for i := range t {
			t[i] = m.Unpack(s.Elem, w, off+s.Tag.Width+i*s.Stride)
		}
		return t
	case Option:
		if Get(w, off, 1) == 0 {
			return m.Atoms[s.Tag.GetAtom(w, off+s.Tag.Off)]
		}
		return m.Unpack(s.Elem, w, off)
	}
	fields := map[string]eval.Value{}
	t := make(eval.Tuple, len(s.Fields))
	for i, f := range s.Fields {
		t[i] = m.Unpack(f, w, off)
		fields[s.Type.Fields[i].Name] = t[i]
	}
	if s.Type.Kind == Tup {
		return t
	}
	return eval.Record(fields)
}
