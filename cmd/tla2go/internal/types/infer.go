package types

import (
	"slices"

	"linearize.example/checker/conform/eval"
	"linearize.example/checker/conform/tla"
)

// Program is a module with types.
type Program struct {
	Module *tla.Module
	Spec   *eval.Spec
	Levels map[string]eval.Level
	Vars   map[string]*Type
	Consts map[string]*Type
	// Predicates are the state predicates without parameters: what a configuration can name as an invariant or constraint.
	Predicates []string
	// TypeInvariant is the definition that bounds the variables.
	TypeInvariant *tla.Def
	// Instances holds the operators in use, in the order in which they were met.
	Instances []*Instance
	// Functions holds the types of function definitions, by name.
	Functions map[string]*Type
	// Atoms lists the atom types' placeholders, to be grouped by Find.
	Atoms []*Type
}

// Instance is an operator at certain types.
type Instance struct {
	Def    *tla.Def
	Params []*Binding
	Result *Type
	Types  map[tla.Expr]*Type
	Calls  map[tla.Expr]*Instance
	// Lets holds the instances of operators that a LET inside defines.
	Lets map[*tla.Def][]*Instance
	// Outer is the instance in whose body a LET defined the operator, nil at the top.
	Outer *Instance
	scope *scope
}

// Binding is a bound name: a parameter, a quantified name or a LET.
type Binding struct {
	Name string
	Type *Type
	Tag  *Tag
	Def  *tla.Def // of a LET
}

// Tag tells which named set a bound name ranges over, which makes its use as a function's argument safe.
type Tag struct {
	text    string
	unknown bool
	from    []*Tag
}

// Text returns the name of the set that all values come from, or "".
func (t *Tag) Text() string {
	text, ok := t.resolve(map[*Tag]bool{})
	if !ok {
		return ""
	}
	return text
}

func (t *Tag) resolve(seen map[*Tag]bool) (string, bool) {
	if t == nil || t.unknown {
		return "", false
	}
	if seen[t] {
		return t.text, true
	}
	seen[t] = true
	text := t.text
	for _, f := range t.from {
		x, ok := f.resolve(seen)
		if !ok || text != "" && x != "" && x != text {
			return "", false
		}
		if x != "" {
			text = x
		}
	}
	return text, true
}

type scope struct {
	up *scope
	b  *Binding
}

func (s *scope) lookup(name string) *Binding {
	for ; s != nil; s = s.up {
		if s.b.Name == name {
			return s.b
		}
	}
	return nil
}

func (s *scope) bind(b *Binding) *scope { return &scope{s, b} }

type inferrer struct {
	p *Program
	// scopes holds where each operator of a LET was defined.
	scopes map[*tla.Def]*scope
	// functions holds the types of function definitions.
	functions map[*tla.Def]*Type
}

// Infer gives types to what a configuration selects of a module, and with all to every other state predicate; invariant
// names the type invariant. Errors are *tla.Error values.
func Infer(m *tla.Module, spec *eval.Spec, ev *eval.Evaluator, invariant string, all bool) (p *Program, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *tla.Error:
			p, err = nil, r
		default:
			panic(r)
		}
	}()
	p = &Program{Module: m, Spec: spec, Levels: eval.Levels(m), Vars: map[string]*Type{}, Consts: map[string]*Type{},
		Functions: map[string]*Type{}}
	in := &inferrer{p, map[*tla.Def]*scope{}, map[*tla.Def]*Type{}}
	for _, c := range m.Constants {
		p.Consts[c.Name] = in.ofValue(c.Pos, ev.Constant(c.Name))
	}
	p.TypeInvariant = m.Def(invariant)
	if p.TypeInvariant == nil {
		fail(tla.Pos{File: m.File, Line: 1, Col: 1}, "no definition %s; it must bound every variable by \"x \\in S\"", invariant)
	}
	for _, v := range m.Variables {
		p.Vars[v.Name] = mk(Var)
	}
	in.typeInvariant()
	in.instance(m.Def(spec.Next).Pos, m.Def(spec.Next), nil, nil, nil)
	for _, d := range m.Defs {
		if len(d.Params) > 0 || d.Bounds != nil || p.Levels[d.Name] != eval.StateLevel && d.Name != invariant {
			continue
		}
		selected := slices.Contains(spec.Invariants, d.Name) || slices.Contains(spec.Constraints, d.Name)
		if d.Name == spec.Init && !selected || !selected && !all {
			continue
		}
		x := in.instance(d.Pos, d, nil, nil, nil)
		if x.Result.Find().Kind == Bool {
			p.Predicates = append(p.Predicates, d.Name)
		}
	}
	return p, nil
}

// Conjuncts returns the conjuncts of a definition's body, through names without parameters.
func Conjuncts(m *tla.Module, e tla.Expr) []tla.Expr {
	switch e := e.(type) {
	case *tla.And:
		var all []tla.Expr
		for _, x := range e.List {
			all = append(all, Conjuncts(m, x)...)
		}
		return all
	case *tla.Ident:
		if d := m.Def(e.Name); d != nil && len(d.Params) == 0 && d.Bounds == nil {
			return Conjuncts(m, d.Body)
		}
	}
	return []tla.Expr{e}
}

// Bounding returns the variable and the set of a conjunct "x \in S" with a variable x.
func Bounding(m *tla.Module, e tla.Expr) (string, tla.Expr) {
	op, ok := e.(*tla.Op)
	if !ok || op.Name != `\in` {
		return "", nil
	}
	id, ok := op.Args[0].(*tla.Ident)
	if !ok {
		return "", nil
	}
	for _, v := range m.Variables {
		if v.Name == id.Name {
			return v.Name, op.Args[1]
		}
	}
	return "", nil
}

// typeInvariant types the variables, before anything that uses them.
func (in *inferrer) typeInvariant() {
	m := in.p.Module
	inst := &Instance{Def: in.p.TypeInvariant, Types: map[tla.Expr]*Type{}, Calls: map[tla.Expr]*Instance{},
		Lets: map[*tla.Def][]*Instance{}}
	for _, c := range Conjuncts(m, in.p.TypeInvariant.Body) {
		name, set := Bounding(m, c)
		if name == "" {
			continue
		}
		t := in.set(inst, nil, set)
		unify(set.Where(), t.Elem, in.p.Vars[name])
	}
	for _, v := range m.Variables {
		if in.p.Vars[v.Name].Find().Kind == Var {
			fail(v.Pos, "%s does not bound variable %s by \"%s \\in S\"", in.p.TypeInvariant.Name, v.Name, v.Name)
		}
		markUniverse(in.p.Vars[v.Name])
	}
}

// markUniverse makes every set inside a variable's type a set of bits.
func markUniverse(t *Type) {
	t = t.Find()
	switch t.Kind {
	case Set:
		if e := t.Elem.Find(); !e.Scalar() {
			e.Universe = true
		}
	case Seq, Opt:
		markUniverse(t.Elem)
	case Fun:
		if k := t.Key.Find(); !k.Scalar() {
			k.Universe = true
		}
		markUniverse(t.Elem)
	case Rec:
		for _, f := range t.Fields {
			markUniverse(f)
		}
	case Tup:
		for _, f := range t.Tup {
			markUniverse(f)
		}
	}
}

// ofValue returns the type of a constant's value.
func (in *inferrer) ofValue(pos tla.Pos, v eval.Value) *Type {
	switch v := v.(type) {
	case eval.Int:
		return mk(Int)
	case eval.Bool:
		return mk(Bool)
	case eval.Str:
		t := in.atom()
		t.isString = true
		return t
	case eval.Model:
		t := in.atom()
		t.isModel = true
		return t
	case *eval.Set:
		e := mk(Var)
		for _, x := range v.Elems {
			e = join(pos, e, in.ofValue(pos, x))
		}
		return setOf(e)
	}
	fail(pos, "a constant with the value %s has no type here", v)
	return nil
}

func (in *inferrer) atom() *Type {
	t := mk(Atom)
	in.p.Atoms = append(in.p.Atoms, t)
	return t
}

// instance returns the operator at the types of its arguments.
func (in *inferrer) instance(pos tla.Pos, d *tla.Def, args []*Type, tags []*Tag, outer *Instance) *Instance {
	list := in.p.Instances
	if outer != nil {
		list = outer.Lets[d]
	}
	for _, x := range list {
		if x.Def != d {
			continue
		}
		ok := true
		for i, a := range args {
			ok = ok && compatible(a, x.Params[i].Type)
		}
		if ok {
			for i, a := range args {
				flow(pos, a, x.Params[i].Type)
				x.Params[i].Tag.from = append(x.Params[i].Tag.from, tags[i])
			}
			return x
		}
	}
	x := &Instance{Def: d, Result: mk(Var), Types: map[tla.Expr]*Type{}, Calls: map[tla.Expr]*Instance{},
		Lets: map[*tla.Def][]*Instance{}, Outer: outer}
	if outer != nil {
		x.scope = outer.scope
		outer.Lets[d] = append(outer.Lets[d], x)
	} else {
		in.p.Instances = append(in.p.Instances, x)
	}
	return in.body(pos, x, args, tags)
}

func (in *inferrer) body(pos tla.Pos, x *Instance, args []*Type, tags []*Tag) *Instance {
	sc := x.scope
	for i, prm := range x.Def.Params {
		if prm.Arity > 0 {
			fail(pos, "operator %s takes an operator as an argument; generated code does not support that", x.Def.Name)
		}
		b := &Binding{Name: prm.Name, Type: mk(Var), Tag: &Tag{from: []*Tag{tags[i]}}}
		flow(pos, args[i], b.Type)
		x.Params = append(x.Params, b)
		sc = sc.bind(b)
	}
	x.scope = sc
	t := in.infer(x, sc, x.Def.Body, nil)
	unify(x.Def.Pos, x.Result, t)
	return x
}

// NamedTag is the tag of what ranges over the set of that name; without a name nothing is known.
func NamedTag(name string) *Tag { return &Tag{text: name, unknown: name == ""} }

// SetName names the constant set that the elements of a set come from, or returns "".
func SetName(e tla.Expr, bound func(string) bool) string {
	switch e := e.(type) {
	case *tla.Ident:
		if !bound(e.Name) {
			return e.Name
		}
	case *tla.Filter:
		return SetName(e.Bound.Set, bound)
	case *tla.Op:
		if e.Name == `\` {
			return SetName(e.Args[0], bound)
		}
	}
	return ""
}
