package eval

import (
	"linearize.example/checker/conform/tla"
)

// Level says what an expression depends on.
type Level int

// The levels of "Specifying Systems", section 17.2.
const (
	Constant Level = iota
	StateLevel
	ActionLevel
	Temporal
)

// names maps what an identifier may mean while levels are computed.
type levels struct {
	mod   *tla.Module
	known map[string]Level // of module definitions and variables
	busy  map[string]bool
}

// Levels returns the level of each definition, constant and variable of a module. A definition's parameters count as
// constant: an application's level is at least that of its arguments.
func Levels(m *tla.Module) map[string]Level {
	l := &levels{m, map[string]Level{}, map[string]bool{}}
	for _, v := range m.Variables {
		l.known[v.Name] = StateLevel
	}
	for _, c := range m.Constants {
		l.known[c.Name] = Constant
	}
	for _, d := range m.Defs {
		l.def(d)
	}
	return l.known
}

func (l *levels) def(d *tla.Def) Level {
	if v, ok := l.known[d.Name]; ok {
		return v
	}
	if l.busy[d.Name] {
		return Constant
	}
	l.busy[d.Name] = true
	v := l.of(d.Body)
	for _, b := range d.Bounds {
		v = max(v, l.of(b.Set))
	}
	delete(l.busy, d.Name)
	l.known[d.Name] = v
	return v
}

func (l *levels) of(e tla.Expr) Level {
	return levelOf(e, func(name string) Level {
		if v, ok := l.known[name]; ok {
			return v
		}
		if d := l.mod.Def(name); d != nil {
			return l.def(d)
		}
		return Constant
	})
}

// LevelOf returns the level of an expression, given that of the names in it; locally bound names must map to what they
// stand for.
func LevelOf(e tla.Expr, name func(string) Level) Level { return levelOf(e, name) }

func levelOf(e tla.Expr, name func(string) Level) Level {
	v := Constant
	Walk(e, func(x tla.Expr) bool {
		switch x := x.(type) {
		case *tla.Ident:
			v = max(v, name(x.Name))
		case *tla.Call:
			v = max(v, name(x.Name))
		case *tla.Op:
			switch x.Name {
			case "'", "UNCHANGED":
				v = max(v, ActionLevel)
			case "[]", "<>", "~>":
				v = max(v, Temporal)
			case "ENABLED":
				v = max(v, StateLevel)
				return false
			}
		case *tla.Boxed:
			v = max(v, ActionLevel)
		case *tla.Fair:
			v = max(v, Temporal)
		}
		return true
	})
	return v
}

// Walk calls f for e and, where f returns true, for its parts, in the order of the source. Bodies of LET definitions
// are parts.
func Walk(e tla.Expr, f func(tla.Expr) bool) {
	if e == nil || !f(e) {
		return
	}
	all := func(es ...tla.Expr) {
		for _, e := range es {
			Walk(e, f)
		}
	}
	bounds := func(bs ...tla.Bound) {
		for _, b := range bs {
			Walk(b.Set, f)
		}
	}
	switch e := e.(type) {
	case *tla.Op:
		all(e.Args...)
	case *tla.Call:
		all(e.Args...)
	case *tla.And:
		all(e.List...)
	case *tla.Or:
		all(e.List...)
	case *tla.Index:
		all(e.Fn)
		all(e.Args...)
	case *tla.Field:
		all(e.Rec)
	case *tla.Quant:
		bounds(e.Bounds...)
		all(e.Body)
	case *tla.Choose:
		bounds(e.Bound)
		all(e.Body)
	case *tla.SetLit:
		all(e.Elems...)
	case *tla.Filter:
		bounds(e.Bound)
		all(e.Pred)
	case *tla.MapSet:
		bounds(e.Bounds...)
		all(e.Body)
	case *tla.FnLit:
		bounds(e.Bounds...)
		all(e.Body)
	case *tla.FnSet:
		all(e.Dom, e.Rng)
	case *tla.RecLit:
		for _, x := range e.Fields {
			all(x.Expr)
		}
	case *tla.RecSet:
		for _, x := range e.Fields {
			all(x.Expr)
		}
	case *tla.Except:
		all(e.Fn)
		for _, u := range e.Updates {
			for _, s := range u.Path {
				all(s.Args...)
			}
			all(u.Value)
		}
	case *tla.Tuple:
		all(e.Elems...)
	case *tla.Cross:
		all(e.Sets...)
	case *tla.If:
		all(e.Cond, e.Then, e.Else)
	case *tla.Case:
		for _, a := range e.Arms {
			all(a.Guard, a.Body)
		}
		if e.Other != nil {
			all(e.Other)
		}
	case *tla.Let:
		for _, d := range e.Defs {
			bounds(d.Bounds...)
			all(d.Body)
		}
		all(e.Body)
	case *tla.Lambda:
		all(e.Body)
	case *tla.Boxed:
		all(e.Action, e.V)
	case *tla.Fair:
		all(e.V, e.Action)
	}
}
