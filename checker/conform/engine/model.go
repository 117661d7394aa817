package engine

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"linearize.example/checker/conform/eval"
	"linearize.example/checker/conform/tla"
	"linearize.example/model/tlccfg"
)

// Program is what the generator knows of a specification before the constants have values.
type Program struct {
	// Source is a module with the definitions that are evaluated at the start: constant ones, the initial predicate and
	// the type invariant.
	Source, File string
	// Invariant names the type invariant, Init the initial predicate.
	Invariant, Init string
	// Vars are the variables, Consts the constants and the constant definitions that the code uses.
	Vars, Consts []Field
	// Types holds all compound types, by the generator's names.
	Types map[string]*Type
	// Literals are the strings of the specification; each is the atom of its index.
	Literals []string
	Actions  []Action
	// Predicates are the state predicates that the code can evaluate, in the order of their numbers: what can be an
	// invariant or a constraint.
	Predicates []string
}

// Action is a named action with its parameters' types.
type Action struct {
	Name   string
	Params []*Type
}

// Model is a program whose constants have values.
type Model struct {
	*Program
	// Atoms are the strings and model values, by number.
	Atoms []eval.Value
	// IntLo is the number that bit 0 of a set of integers stands for.
	IntLo int
	// Slots describe the variables' places in a packed state of Words words.
	Slots []*Slot
	Words int

	ev     *eval.Evaluator
	values map[string]eval.Value
	intHi  int
	ints   bool
	others []int // integers outside of sets
	types  map[*Type]bool
}

// NewModel gives the constants of a program their values and lays states out. Errors say which constant or definition
// does not fit.
func NewModel(p *Program, constants map[string]tlccfg.Value) (m *Model, err error) {
	defer func() {
		if f, ok := recover().(Failure); ok {
			m, err = nil, f
		}
	}()
	mod, err := tla.Parse(p.File, p.Source)
	if err != nil {
		return nil, err
	}
	ev, err := eval.New(mod, constants)
	if err != nil {
		return nil, err
	}
	m = &Model{Program: p, ev: ev, values: map[string]eval.Value{}, types: map[*Type]bool{}}
	for _, l := range p.Literals {
		m.Atoms = append(m.Atoms, eval.Str(l))
	}
	var more []eval.Value
	for _, c := range mod.Constants {
		more = atomsIn(ev.Constant(c.Name), more)
	}
	slices.SortFunc(more, eval.Compare)
	for _, a := range slices.Compact(more) {
		if !slices.Contains(m.Atoms, a) {
			m.Atoms = append(m.Atoms, a)
		}
	}
	if len(m.Atoms) > SetBits {
		return nil, fmt.Errorf("%s: more than %d different strings and model values", p.File, SetBits)
	}
	for _, c := range p.Consts {
		v, err := ev.Eval(&tla.Ident{At: tla.At{Pos: tla.Pos{File: p.File, Line: 1, Col: 1}}, Name: c.Name}, nil)
		if err != nil {
			return nil, err
		}
		m.values[c.Name] = v
		if err := m.collect(c.Type, v); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", p.File, c.Name, err)
		}
	}
	if err := m.domains(mod); err != nil {
		return nil, err
	}
	for _, f := range p.Types {
		if f.Kind != Fun || f.Keys != nil || f.Dom == "" {
			continue
		}
		v, err := ev.Eval(&tla.Ident{Name: f.Dom}, nil)
		if err != nil {
			return nil, err
		}
		if err := m.keys(f, v); err != nil {
			return nil, err
		}
	}
	return m, m.finish()
}

func atomsIn(v eval.Value, list []eval.Value) []eval.Value {
	switch v := v.(type) {
	case eval.Str, eval.Model:
		return append(list, v)
	case *eval.Set:
		for _, e := range v.Elems {
			list = atomsIn(e, list)
		}
	}
	return list
}

// finish numbers everything and computes the layout.
func (m *Model) finish() error {
	if !m.ints {
		m.IntLo, m.intHi = 0, 0
	}
	if m.intHi-m.IntLo >= SetBits {
		return fmt.Errorf("%s: sets of integers from %d to %d; generated code holds sets over at most %d integers",
			m.File, m.IntLo, m.intHi, SetBits)
	}
	m.widen()
	for t := range m.types {
		if t.Universe {
			slices.SortFunc(t.Elems, eval.Compare)
			t.Elems = slices.CompactFunc(t.Elems, eval.Equal)
			if len(t.Elems) > SetBits {
				return fmt.Errorf("%s: sets over %d different values such as %s; generated code holds sets over at most %d",
					m.File, len(t.Elems), t.Elems[0], SetBits)
			}
			t.index = make(map[string]int, len(t.Elems))
			for i, v := range t.Elems {
				t.index[v.String()] = i
			}
		}
	}
	for t := range m.types {
		if t.Kind != Fun || len(t.Keys) == 0 {
			continue
		}
		for i, k := range t.Keys {
			n, ok := m.number(t.Key, k)
			if !ok {
				return fmt.Errorf("%s: %s cannot be an argument of a function", m.File, k)
			}
			if i == 0 || n < t.First {
				t.First = n
			}
		}
		for _, k := range t.Keys {
			n, _ := m.number(t.Key, k)
			if n-t.First >= FunCap {
				return fmt.Errorf("%s: a function over %s; generated code holds functions over at most %d values",
					m.File, eval.NewSet(slices.Clone(t.Keys)), FunCap)
			}
			t.Domain = t.Domain.Or(Bit(n - t.First))
		}
	}
	bits := 0
	for i, s := range m.Slots {
		if s == nil {
			return fmt.Errorf("%s: %s does not bound variable %s", m.File, m.Invariant, m.Vars[i].Name)
		}
		m.layout(s, m.Vars[i].Name)
		s.Off = bits
		bits += s.Width
	}
	m.Words = bits/64 + 1
	return nil
}

// widen lets sets hold integers besides those that are known to be in some: sets that are only computed with may hold any
// that a variable can have, and some more.
func (m *Model) widen() {
	lo, hi := m.IntLo, m.intHi
	for _, n := range m.others {
		lo, hi = min(lo, n), max(hi, n)
	}
	if hi-lo < SetBits {
		m.IntLo, m.intHi = lo, hi
	}
	m.IntLo -= (SetBits - (m.intHi - m.IntLo)) / 4
}

// number is the bit that stands for v in sets of values of type t, and whether there is one.
func (m *Model) number(t *Type, v eval.Value) (int, bool) {
	switch t.Kind {
	case Int:
		n, ok := v.(eval.Int)
		return int(n) - m.IntLo, ok
	case Bool:
		b, ok := v.(eval.Bool)
		if b {
			return 1, ok
		}
		return 0, ok
	case Name:
		i := slices.Index(m.Atoms, v)
		return i, i >= 0
	}
	i, ok := t.index[v.String()]
	return i, ok
}

// value is the inverse of number.
func (m *Model) value(t *Type, i int) eval.Value {
	switch t.Kind {
	case Int:
		return eval.Int(i + m.IntLo)
	case Bool:
		return eval.Bool(i == 1)
	case Name:
		return m.Atoms[i]
	}
	return t.Elems[i]
}

func (m *Model) element(t *Type, v eval.Value) {
	m.types[t] = true
	if t.Universe {
		t.Elems = append(t.Elems, v)
	}
	if n, ok := v.(eval.Int); ok {
		if !m.ints {
			m.IntLo, m.intHi, m.ints = int(n), int(n), true
		}
		m.IntLo, m.intHi = min(m.IntLo, int(n)), max(m.intHi, int(n))
	}
}

// keys sets a function type's domain, or checks that it has this one.
func (m *Model) keys(t *Type, v eval.Value) error {
	set, ok := v.(*eval.Set)
	if !ok {
		return fmt.Errorf("the domain %s of a function cannot be enumerated", v)
	}
	m.types[t] = true
	if t.Keys == nil {
		t.Keys = slices.Clone(set.Elems)
		for _, k := range set.Elems {
			m.element(t.Key, k)
		}
		return nil
	}
	if !eval.Equal(set, eval.NewSet(slices.Clone(t.Keys))) {
		return fmt.Errorf("functions of one type have the domains %s and %s", set, eval.NewSet(slices.Clone(t.Keys)))
	}
	return nil
}

// collect notes the elements of sets and the domains of functions in a value; it fails when the value is not of the
// type that it had for the generator.
func (m *Model) collect(t *Type, v eval.Value) error {
	bad := fmt.Errorf("%s is not of the type for which the code was generated", v)
	switch t.Kind {
	case Bool:
		if _, ok := v.(eval.Bool); !ok {
			return bad
		}
	case Int:
		if _, ok := v.(eval.Int); !ok {
			return bad
		}
	case Name:
		if _, ok := m.number(t, v); !ok {
			return bad
		}
	case SetOf:
		set, ok := v.(*eval.Set)
		if !ok {
			return bad
		}
		for _, e := range set.Elems {
			m.element(t.Elem, e)
			if err := m.collect(t.Elem, e); err != nil {
				return err
			}
		}
	case Fun:
		keys, ok := eval.Domain(v)
		if !ok {
			return bad
		}
		if err := m.keys(t, eval.NewSet(slices.Clone(keys))); err != nil {
			return err
		}
		for _, k := range keys {
			x, _ := eval.Apply(v, k)
			if err := m.collect(t.Elem, x); err != nil {
				return err
			}
		}
	case SeqOf:
		s, ok := v.(eval.Tuple)
		if !ok || len(s) > SeqCap {
			return bad
		}
		for _, x := range s {
			if err := m.collect(t.Elem, x); err != nil {
				return err
			}
		}
	case Option:
		if _, ok := m.number(t.Key, v); ok {
			return nil
		}
		return m.collect(t.Elem, v)
	case Rec, Tup:
		if keys, ok := eval.Domain(v); !ok || len(keys) != len(t.Fields) {
			return bad
		}
		for i, f := range t.Fields {
			x := part(t, v, i)
			if x == nil {
				return bad
			}
			if err := m.collect(f.Type, x); err != nil {
				return err
			}
		}
	}
	return nil
}

// part is component i of a record or tuple.
func part(t *Type, v eval.Value, i int) eval.Value {
	if t.Kind == Tup {
		x, _ := eval.Apply(v, eval.Int(i+1))
		return x
	}
	return eval.Field(v, t.Fields[i].Name)
}

// Decode stores the value of a constant, or of a constant definition, into a Go variable of the generated type.
func (m *Model) Decode(name string, into any) {
	for _, c := range m.Consts {
		if c.Name == name {
			m.decode(c.Type, m.values[name], reflect.ValueOf(into).Elem())
		}
	}
}

// Domain returns the domain of the function type of that name: the numbers of its keys, these counted from the first,
// and what is to be subtracted from a key, which for an integer is its value and else its number.
func (m *Model) Domain(name string) (keys, domain Set, first int) {
	t := m.Types[name]
	for _, k := range t.Keys {
		n, _ := m.number(t.Key, k)
		keys = keys.Or(Bit(n))
	}
	first = t.First
	if t.Key.Kind == Int {
		first += m.IntLo
	}
	return keys, t.Domain, first
}

// Numbered stores the elements of a type's universe into a Go slice.
func (m *Model) Numbered(name string, into any) {
	t := m.Types[name]
	dst := reflect.ValueOf(into).Elem()
	dst.Set(reflect.MakeSlice(dst.Type(), len(t.Elems), len(t.Elems)))
	for i, v := range t.Elems {
		m.decode(t, v, dst.Index(i))
	}
}

func (m *Model) decode(t *Type, v eval.Value, dst reflect.Value) {
	switch t.Kind {
	case Bool:
		dst.SetBool(bool(v.(eval.Bool)))
	case Int:
		dst.SetInt(int64(v.(eval.Int)))
	case Name:
		i, _ := m.number(t, v)
		dst.SetUint(uint64(i))
	case SetOf:
		elems := v.(*eval.Set).Elems
		if dst.Type() != reflect.TypeFor[Set]() {
			dst.Set(reflect.MakeSlice(dst.Type(), len(elems), len(elems)))
			for i, e := range elems {
				m.decode(t.Elem, e, dst.Index(i))
			}
			return
		}
		var s Set
		for _, e := range elems {
			i, _ := m.number(t.Elem, e)
			s = s.Or(Bit(i))
		}
		dst.Set(reflect.ValueOf(s))
	case Fun:
		for _, k := range t.Keys {
			i, _ := m.number(t.Key, k)
			x, _ := eval.Apply(v, k)
			m.decode(t.Elem, x, dst.Index(i-t.First))
		}
	case SeqOf:
		s := v.(eval.Tuple)
		dst.Field(0).SetInt(int64(len(s)))
		for i, x := range s {
			m.decode(t.Elem, x, dst.Field(1).Index(i))
		}
	case Option:
		if i, ok := m.number(t.Key, v); ok {
			dst.Field(0).SetUint(uint64(i))
			return
		}
		dst.Field(1).SetBool(true)
		m.decode(t.Elem, v, dst.Field(2))
	case Rec, Tup:
		for i, f := range t.Fields {
			m.decode(f.Type, part(t, v, i), dst.Field(i))
		}
	}
}

// encode is the inverse of decode.
func (m *Model) encode(t *Type, src reflect.Value) eval.Value {
	switch t.Kind {
	case Bool:
		return eval.Bool(src.Bool())
	case Int:
		return eval.Int(src.Int())
	case Name:
		return m.Atoms[src.Uint()]
	case SetOf:
		var elems []eval.Value
		if s, ok := src.Interface().(Set); ok {
			for s.Some() {
				elems = append(elems, m.value(t.Elem, s.Pop()))
			}
		} else {
			for i := range src.Len() {
				elems = append(elems, m.encode(t.Elem, src.Index(i)))
			}
		}
		return eval.NewSet(elems)
	case Fun:
		vals := make([]eval.Value, len(t.Keys))
		for i, k := range t.Keys {
			n, _ := m.number(t.Key, k)
			vals[i] = m.encode(t.Elem, src.Index(n-t.First))
		}
		return eval.NewFun(t.Keys, vals)
	case SeqOf:
		s := make(eval.Tuple, src.Field(0).Int())
		for i := range s {
			s[i] = m.encode(t.Elem, src.Field(1).Index(i))
		}
		return s
	case Option:
		if !src.Field(1).Bool() {
			return m.Atoms[src.Field(0).Uint()]
		}
		return m.encode(t.Elem, src.Field(2))
	}
	fields := map[string]eval.Value{}
	tup := make(eval.Tuple, len(t.Fields))
	for i, f := range t.Fields {
		tup[i] = m.encode(f.Type, src.Field(i))
		fields[f.Name] = tup[i]
	}
	if t.Kind == Tup {
		return tup
	}
	return eval.Record(fields)
}

// Slot returns the slot of a variable.
func (m *Model) Slot(name string) *Slot {
	for i, v := range m.Vars {
		if v.Name == name {
			return m.Slots[i]
		}
	}
	return nil
}

// Value returns a variable's value in a packed state.
func (m *Model) Value(state []uint64, name string) eval.Value {
	return m.Unpack(m.Slot(name), state, 0)
}

// Show prints a packed state as TLC does, one variable a line.
func (m *Model) Show(state []uint64) string {
	var b strings.Builder
	for i, v := range m.Vars {
		fmt.Fprintf(&b, "/\\ %s = %s\n", v.Name, m.Unpack(m.Slots[i], state, 0))
	}
	return b.String()
}

// Initial returns the packed initial states.
func (m *Model) Initial() (states [][]uint64, err error) {
	defer func() {
		if f, ok := recover().(Failure); ok {
			states, err = nil, f
		}
	}()
	failed := m.ev.InitialStates(m.Init, func(s eval.State) bool {
		w := make([]uint64, m.Words)
		for i, slot := range m.Slots {
			m.Pack(slot, w, 0, s[i])
		}
		states = append(states, w)
		return true
	})
	return states, failed
}
