// Package types gives every expression of a module a static type, so that values of TLA+ become Go values of fixed size.
// Types flow from the type invariant and from the values of the constants; an operator gets an instance for each
// combination of types it is used with.
package types

import (
	"slices"
	"sort"
	"strings"

	"linearize.example/checker/conform/tla"
)

// Kind is the shape of a type.
type Kind int

// The kinds. A Tup becomes a Seq when it is used as one. An Opt is an atom or a value of another type.
const (
	Var Kind = iota
	Bool
	Int
	Atom // a string or a model value
	Set
	Fun
	Rec
	Tup
	Seq
	Opt
)

// Type is a type, or a placeholder for one; use Find before looking at the fields.
type Type struct {
	Kind   Kind
	Elem   *Type // of Set, Seq and Opt, and the result of Fun
	Key    *Type // of Fun; of Opt the atom
	Fields map[string]*Type
	Tup    []*Type
	Lits   map[string]bool // of Atom: strings that occur

	isString, isModel bool // of Atom: some values are strings, model values

	// Dom is the constant expression of a Fun's domain; DomText its name where it has one.
	Dom     tla.Expr
	DomText string
	fromOne bool // a Fun over 1..n, which may turn out to be a Seq

	// Universe is set for types whose sets are stored as bits, one for each of finitely many elements.
	Universe bool

	// Name is the name of the Go type.
	Name string

	link *Type
}

// Find follows what a placeholder was replaced by.
func (t *Type) Find() *Type {
	for t.link != nil {
		t = t.link
	}
	return t
}

// Sorted returns the names of the fields in order.
func (t *Type) Sorted() []string {
	var names []string
	for n := range t.Fields {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

func (t *Type) String() string {
	t = t.Find()
	switch t.Kind {
	case Bool:
		return "Boolean"
	case Int:
		return "integer"
	case Atom:
		return "string or model value"
	case Set:
		return "set of " + t.Elem.String()
	case Fun:
		return "function from " + t.Key.String() + " to " + t.Elem.String()
	case Seq:
		return "sequence of " + t.Elem.String()
	case Opt:
		return "model value or " + t.Elem.String()
	case Rec:
		return "record of " + strings.Join(t.Sorted(), ", ")
	case Tup:
		var parts []string
		for _, e := range t.Tup {
			parts = append(parts, e.String())
		}
		return "tuple <<" + strings.Join(parts, ", ") + ">>"
	}
	return "unknown type"
}

// Scalar says whether values of the type are one number.
func (t *Type) Scalar() bool {
	k := t.Find().Kind
	return k == Bool || k == Int || k == Atom
}

// Bits says whether a set of elements of this type is stored as bits.
func (t *Type) Bits() bool {
	t = t.Find()
	return t.Scalar() || t.Universe
}

func mk(k Kind) *Type        { return &Type{Kind: k} }
func setOf(e *Type) *Type    { return &Type{Kind: Set, Elem: e} }
func seqOf(e *Type) *Type    { return &Type{Kind: Seq, Elem: e} }
func tupOf(e ...*Type) *Type { return &Type{Kind: Tup, Tup: e} }

func fail(pos tla.Pos, format string, args ...any) {
	panic(tla.Errorf(pos, format, args...))
}

// compatible says whether unify or flow would succeed, leaving out what depends on placeholders.
func compatible(a, b *Type) bool {
	a, b = a.Find(), b.Find()
	switch {
	case a == b || a.Kind == Var || b.Kind == Var:
		return true
	case a.Kind == Opt && b.Kind == Opt:
		return compatible(a.Elem, b.Elem)
	case a.Kind == Opt:
		return b.Kind == Atom || compatible(a.Elem, b)
	case b.Kind == Opt:
		return a.Kind == Atom || compatible(a, b.Elem)
	case a.Kind == Tup && b.Kind == Tup && len(a.Tup) == len(b.Tup):
		for i := range a.Tup {
			if !compatible(a.Tup[i], b.Tup[i]) {
				return false
			}
		}
		return true
	case a.Kind == Tup && b.Kind == Seq:
		return !slices.ContainsFunc(a.Tup, func(t *Type) bool { return !compatible(t, b.Elem) })
	case a.Kind == Seq && b.Kind == Tup:
		return compatible(b, a)
	case a.Kind == Fun && a.fromOne && b.Kind == Seq:
		return compatible(a.Elem, b.Elem)
	case b.Kind == Fun && b.fromOne && a.Kind == Seq:
		return compatible(a.Elem, b.Elem)
	case a.Kind != b.Kind:
		return false
	case a.Kind == Set || a.Kind == Seq:
		return compatible(a.Elem, b.Elem)
	case a.Kind == Fun:
		return compatible(a.Key, b.Key) && compatible(a.Elem, b.Elem)
	case a.Kind == Rec:
		if len(a.Fields) != len(b.Fields) {
			return false
		}
		for n, t := range a.Fields {
			if b.Fields[n] == nil || !compatible(t, b.Fields[n]) {
				return false
			}
		}
	}
	return true
}

// unify makes two types one.
func unify(pos tla.Pos, a, b *Type) {
	a, b = a.Find(), b.Find()
	if a == b {
		return
	}
	if !compatible(a, b) {
		fail(pos, "%s is used as %s", article(a), article(b))
	}
	switch {
	case a.Kind == Var:
		a.link = b
	case b.Kind == Var:
		b.link = a
	case a.Kind == Tup && b.Kind == Seq || a.Kind == Fun && b.Kind == Seq:
		toSeq(pos, a, b)
	case a.Kind == Seq && (b.Kind == Tup || b.Kind == Fun):
		toSeq(pos, b, a)
	case a.Kind != b.Kind:
		fail(pos, "%s is used as %s", article(a), article(b))
	default:
		b.link = a
		a.Universe = a.Universe || b.Universe
		if a.Name == "" {
			a.Name = b.Name
		}
		switch a.Kind {
		case Atom:
			for l := range b.Lits {
				a.lit(l)
			}
			a.isString, a.isModel = a.isString || b.isString, a.isModel || b.isModel
		case Set, Seq:
			unify(pos, a.Elem, b.Elem)
		case Opt:
			unify(pos, a.Key, b.Key)
			unify(pos, a.Elem, b.Elem)
		case Fun:
			if a.Dom == nil {
				a.Dom, a.DomText = b.Dom, b.DomText
			}
			a.fromOne = a.fromOne && b.fromOne
			unify(pos, a.Key, b.Key)
			unify(pos, a.Elem, b.Elem)
		case Rec:
			for _, n := range a.Sorted() {
				unify(pos, a.Fields[n], b.Fields[n])
			}
		case Tup:
			for i := range a.Tup {
				unify(pos, a.Tup[i], b.Tup[i])
			}
		}
	}
}

func toSeq(pos tla.Pos, a, seq *Type) {
	elems := append([]*Type{}, a.Tup...)
	if a.Kind == Fun {
		elems = []*Type{a.Elem}
	}
	a.link = seq
	for _, e := range elems {
		unify(pos, e, seq.Elem)
	}
}

func (t *Type) lit(s string) {
	if t.Lits == nil {
		t.Lits = map[string]bool{}
	}
	t.Lits[s], t.isString = true, true
}

// flow says that a value of one type is put where another is expected.
func flow(pos tla.Pos, from, to *Type) {
	from, to = from.Find(), to.Find()
	switch {
	case from.Kind == Var || to.Kind == Var || from.Kind == Opt && to.Kind == Opt:
		unify(pos, from, to)
	case to.Kind == Opt:
		if from.Kind == Atom {
			noString(pos, from, to.Elem)
			unify(pos, from, to.Key)
			return
		}
		flow(pos, from, to.Elem)
	case from.Kind == Opt:
		if to.Kind == Atom {
			noString(pos, to, from.Elem)
			unify(pos, from.Key, to)
			return
		}
		flow(pos, from.Elem, to)
	default:
		unify(pos, from, to)
	}
}

// noString insists that an atom beside values of another type is a model value, for TLC can compare nothing else with them.
func noString(pos tla.Pos, atom, other *Type) {
	if a := atom.Find(); a.isString && !a.isModel {
		fail(pos, "TLC cannot compare a string with %s; use a model value", article(other.Find()))
	}
}

// join returns the type of an expression that is either of two.
func join(pos tla.Pos, a, b *Type) *Type {
	a, b = a.Find(), b.Find()
	if a.Kind == Var || b.Kind == Var {
		unify(pos, a, b)
		return a.Find()
	}
	if b.Kind == Opt && a.Kind != Opt {
		a, b = b, a
	}
	switch {
	case a.Kind == Opt:
		flow(pos, b, a)
	case a.Kind == Atom && b.Kind != Atom:
		noString(pos, a, b)
		return &Type{Kind: Opt, Key: a, Elem: b}
	case b.Kind == Atom && a.Kind != Atom:
		noString(pos, b, a)
		return &Type{Kind: Opt, Key: b, Elem: a}
	default:
		if a.Kind == Tup && b.Kind == Tup && len(a.Tup) != len(b.Tup) {
			seq := seqOf(mk(Var))
			toSeq(pos, a, seq)
			toSeq(pos, b, seq)
			return seq
		}
		unify(pos, a, b)
	}
	return a.Find()
}

// article puts "a" or "an" before a type.
func article(t *Type) string {
	s := t.String()
	if strings.ContainsRune("aeiou", rune(s[0])) {
		return "an " + s
	}
	return "a " + s
}
