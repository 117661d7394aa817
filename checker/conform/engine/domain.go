package engine

import (
	"maps"

	"linearize.example/checker/conform/eval"
	"linearize.example/checker/conform/tla"
)

// names are the bound names around an expression of the type invariant.
type names map[string]eval.Value

// domains reads the type invariant's bounds of the variables.
func (m *Model) domains(mod *tla.Module) error {
	m.Slots = make([]*Slot, len(m.Vars))
	var conjuncts func(e tla.Expr) error
	conjuncts = func(e tla.Expr) error {
		switch e := e.(type) {
		case *tla.And:
			for _, x := range e.List {
				if err := conjuncts(x); err != nil {
					return err
				}
			}
		case *tla.Ident:
			if d := mod.Def(e.Name); d != nil && len(d.Params) == 0 && d.Bounds == nil {
				return conjuncts(d.Body)
			}
		case *tla.Op:
			id, ok := e.Args[0].(*tla.Ident)
			if !ok || e.Name != `\in` {
				break
			}
			for i, v := range m.Vars {
				if v.Name == id.Name && m.Slots[i] == nil {
					s, err := m.domain(v.Type, e.Args[1], nil)
					if err != nil {
						return err
					}
					m.Slots[i] = s
				}
			}
		}
		return nil
	}
	return conjuncts(mod.Def(m.Invariant).Body)
}

// domain computes what a place of type t can hold when its values come from the set e.
func (m *Model) domain(t *Type, e tla.Expr, in names) (*Slot, error) {
	m.types[t] = true
	if t.Kind == Option {
		switch x := e.(type) {
		case *tla.FnSet, *tla.RecSet, *tla.Cross:
			s, err := m.domain(t.Elem, e, in)
			return &Slot{Type: t, Elem: s}, err
		case *tla.Op:
			if x.Name == "SUBSET" {
				s, err := m.domain(t.Elem, e, in)
				return &Slot{Type: t, Elem: s}, err
			}
		}
	}
	switch x := e.(type) {
	case *tla.Ident:
		if d := m.ev.Module.Def(x.Name); d != nil && in[x.Name] == nil && len(d.Params) == 0 && d.Bounds == nil {
			return m.domain(t, d.Body, nil)
		}
	case *tla.FnSet:
		return m.functions(t, x, in)
	case *tla.RecSet:
		s := emptySlot(t)
		for i, f := range t.Fields {
			for _, g := range x.Fields {
				if f.Name != g.Name {
					continue
				}
				var err error
				if s.Fields[i], err = m.domain(f.Type, g.Expr, in); err != nil {
					return nil, err
				}
			}
		}
		return s, nil
	case *tla.Cross:
		s := emptySlot(t)
		for i, f := range t.Fields {
			var err error
			if s.Fields[i], err = m.domain(f.Type, x.Sets[i], in); err != nil {
				return nil, err
			}
		}
		return s, nil
	case *tla.Filter:
		return m.domain(t, x.Bound.Set, in)
	case *tla.Op:
		switch {
		case x.Name == "SUBSET" && t.Kind == SetOf:
			v, err := m.ev.EvalWith(x.Args[0], in)
			if err != nil {
				return nil, err
			}
			set, ok := v.(*eval.Set)
			if !ok {
				return nil, tla.Errorf(x.Pos, "%s cannot be enumerated", v)
			}
			for _, v := range set.Elems {
				m.element(t.Elem, v)
				if err := m.collect(t.Elem, v); err != nil {
					return nil, tla.Errorf(x.Pos, "%s", err)
				}
			}
			return &Slot{Type: t, elems: set.Elems}, nil
		case x.Name == `\cup`:
			a, err := m.domain(t, x.Args[0], in)
			if err != nil {
				return nil, err
			}
			b, err := m.domain(t, x.Args[1], in)
			return merge(a, b), err
		case x.Name == "UNION":
			if ms, ok := x.Args[0].(*tla.MapSet); ok {
				return m.union(t, ms, ms.Bounds, in)
			}
		}
	}
	v, err := m.ev.EvalWith(e, in)
	if err != nil {
		return nil, err
	}
	set, ok := v.(*eval.Set)
	if !ok {
		return nil, tla.Errorf(e.Where(), "the type invariant needs a finite set here, not %s", v)
	}
	var s *Slot
	for _, v := range set.Elems {
		one, err := m.single(t, v)
		if err != nil {
			return nil, tla.Errorf(e.Where(), "%s", err)
		}
		s = merge(s, one)
	}
	if s == nil {
		s = emptySlot(t)
	}
	return s, nil
}

func (m *Model) functions(t *Type, e *tla.FnSet, in names) (*Slot, error) {
	keys, err := m.ev.EvalWith(e.Dom, in)
	if err != nil {
		return nil, err
	}
	elem, err := m.domain(t.Elem, e.Rng, in)
	if err != nil {
		return nil, err
	}
	if t.Kind == SeqOf {
		n := len(keys.(*eval.Set).Elems)
		if n > SeqCap {
			return nil, tla.Errorf(e.Pos, "sequences of length %d; generated code holds at most %d elements", n, SeqCap)
		}
		return &Slot{Type: t, Elem: elem, Max: uint64(n)}, nil
	}
	if err := m.keys(t, keys); err != nil {
		return nil, tla.Errorf(e.Pos, "%s", err)
	}
	return &Slot{Type: t, Elem: elem}, nil
}

// union merges the sets {body : bounds}.
func (m *Model) union(t *Type, e *tla.MapSet, bounds []tla.Bound, in names) (*Slot, error) {
	if len(bounds) == 0 {
		return m.domain(t, e.Body, in)
	}
	b := bounds[0]
	if len(b.Names) != 1 || b.Tuple {
		return nil, tla.Errorf(b.Pos, "the type invariant's unions bind one name at a time")
	}
	v, err := m.ev.EvalWith(b.Set, in)
	if err != nil {
		return nil, err
	}
	var s *Slot
	for _, x := range v.(*eval.Set).Elems {
		inner := names{}
		maps.Copy(inner, in)
		inner[b.Names[0]] = x
		one, err := m.union(t, e, bounds[1:], inner)
		if err != nil {
			return nil, err
		}
		s = merge(s, one)
	}
	return s, nil
}

// single is the slot that holds one value only.
func (m *Model) single(t *Type, v eval.Value) (*Slot, error) {
	if err := m.collect(t, v); err != nil {
		return nil, err
	}
	s := emptySlot(t)
	switch t.Kind {
	case Int:
		n := int(v.(eval.Int))
		s.Lo, s.hi, s.some = n, n, true
		m.others = append(m.others, n)
	case Name:
		i, _ := m.number(t, v)
		s.Lo, s.hi, s.some = i, i, true
	case SetOf:
		s.elems = v.(*eval.Set).Elems
	case Option:
		if i, ok := m.number(t.Key, v); ok {
			s.Tag = &Slot{Type: t.Key, Lo: i, hi: i, some: true}
			return s, nil
		}
		var err error
		s.Elem, err = m.single(t.Elem, v)
		return s, err
	case Fun, SeqOf:
		keys, _ := eval.Domain(v)
		s.Max = uint64(len(keys))
		for _, k := range keys {
			x, _ := eval.Apply(v, k)
			one, err := m.single(t.Elem, x)
			if err != nil {
				return nil, err
			}
			s.Elem = merge(s.Elem, one)
		}
	case Rec, Tup:
		for i, f := range t.Fields {
			var err error
			if s.Fields[i], err = m.single(f.Type, part(t, v, i)); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}
