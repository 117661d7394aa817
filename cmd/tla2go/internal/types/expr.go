package types

import (
	"linearize.example/checker/conform/eval"
	"linearize.example/checker/conform/tla"
)

// infer types an expression; want is the type of the place it is put into, or nil.
func (in *inferrer) infer(x *Instance, sc *scope, e tla.Expr, want *Type) *Type {
	t := in.expr(x, sc, e, want)
	x.Types[e] = t
	return t
}

// set types an expression that must be a set.
func (in *inferrer) set(x *Instance, sc *scope, e tla.Expr) *Type {
	t := in.infer(x, sc, e, nil).Find()
	if t.Kind == Var {
		unify(e.Where(), t, setOf(mk(Var)))
		t = t.Find()
	}
	if t.Kind != Set {
		fail(e.Where(), "%s is used as a set", article(t))
	}
	return t
}

// to types an expression that is put where a value of type t is expected.
func (in *inferrer) to(x *Instance, sc *scope, e tla.Expr, t *Type) {
	flow(e.Where(), in.infer(x, sc, e, t), t)
}

// same types two expressions that are compared.
func (in *inferrer) same(pos tla.Pos, a, b *Type) {
	a, b = a.Find(), b.Find()
	if b.Kind == Opt && a.Kind != Opt {
		a, b = b, a
	}
	flow(pos, b, a)
}

func (in *inferrer) bounds(x *Instance, sc *scope, bs []tla.Bound) *scope {
	inner := sc
	for _, b := range bs {
		t := in.set(x, sc, b.Set).Elem.Find()
		if b.Tuple {
			if t.Kind != Tup || len(t.Tup) != len(b.Names) {
				fail(b.Pos, "a pattern of %d names does not match a %s", len(b.Names), t)
			}
			for i, n := range b.Names {
				inner = inner.bind(&Binding{Name: n, Type: t.Tup[i], Tag: &Tag{unknown: true}})
			}
			continue
		}
		for _, n := range b.Names {
			inner = inner.bind(&Binding{Name: n, Type: t, Tag: tagOfSet(sc, b.Set)})
		}
	}
	return inner
}

func tagOfSet(sc *scope, e tla.Expr) *Tag {
	return NamedTag(SetName(e, func(n string) bool { return sc.lookup(n) != nil }))
}

func tagOf(sc *scope, e tla.Expr) *Tag {
	if id, ok := e.(*tla.Ident); ok {
		if b := sc.lookup(id.Name); b != nil && b.Tag != nil {
			return b.Tag
		}
	}
	return &Tag{unknown: true}
}

func (in *inferrer) expr(x *Instance, sc *scope, e tla.Expr, want *Type) *Type {
	if want != nil {
		want = want.Find()
	}
	wanted := func(k Kind) *Type {
		if want != nil && want.Kind == Opt && want.Elem.Find().Kind == k {
			return want.Elem.Find()
		}
		if want != nil && want.Kind == k {
			return want
		}
		return nil
	}
	switch e := e.(type) {
	case *tla.Num:
		return mk(Int)
	case *tla.Bool:
		return mk(Bool)
	case *tla.Str:
		t := in.atom()
		t.lit(e.Value)
		return t
	case *tla.Ident:
		return in.ident(x, sc, e)
	case *tla.Call:
		return in.call(x, sc, e, want)
	case *tla.Op:
		return in.op(x, sc, e, want)
	case *tla.And:
		for _, y := range e.List {
			in.to(x, sc, y, mk(Bool))
		}
		return mk(Bool)
	case *tla.Or:
		for _, y := range e.List {
			in.to(x, sc, y, mk(Bool))
		}
		return mk(Bool)
	case *tla.Index:
		return in.index(x, sc, in.infer(x, sc, e.Fn, nil), e.Args, e.Pos)
	case *tla.Field:
		return in.field(in.infer(x, sc, e.Rec, nil), e.Name, e.Pos)
	case *tla.Quant:
		in.to(x, in.bounds(x, sc, e.Bounds), e.Body, mk(Bool))
		return mk(Bool)
	case *tla.Choose:
		inner := in.bounds(x, sc, []tla.Bound{e.Bound})
		in.to(x, inner, e.Body, mk(Bool))
		return x.Types[e.Bound.Set].Find().Elem
	case *tla.SetLit:
		t := wanted(Set)
		if t == nil {
			t = setOf(mk(Var))
		}
		elem := t.Elem
		for _, y := range e.Elems {
			elem = join(y.Where(), elem, in.infer(x, sc, y, elem))
		}
		if elem.Find() != t.Elem.Find() {
			t = setOf(elem)
		}
		return t
	case *tla.Filter:
		inner := in.bounds(x, sc, []tla.Bound{e.Bound})
		in.to(x, inner, e.Pred, mk(Bool))
		return x.Types[e.Bound.Set]
	case *tla.MapSet:
		inner := in.bounds(x, sc, e.Bounds)
		var elem *Type
		if t := wanted(Set); t != nil {
			elem = t.Elem
		}
		return setOf(in.infer(x, inner, e.Body, elem))
	case *tla.FnLit:
		return in.function(x, sc, e, wanted)
	case *tla.FnSet:
		return in.functionSet(x, sc, e)
	case *tla.RecLit:
		t := wanted(Rec)
		if t != nil && sameFields(t, e.Fields) {
			for _, f := range e.Fields {
				in.to(x, sc, f.Expr, t.Fields[f.Name])
			}
			return t
		}
		t = &Type{Kind: Rec, Fields: map[string]*Type{}}
		for _, f := range e.Fields {
			t.Fields[f.Name] = in.infer(x, sc, f.Expr, nil)
		}
		return t
	case *tla.RecSet:
		t := &Type{Kind: Rec, Fields: map[string]*Type{}}
		for _, f := range e.Fields {
			t.Fields[f.Name] = in.set(x, sc, f.Expr).Elem
		}
		return setOf(t)
	case *tla.Except:
		t := in.infer(x, sc, e.Fn, want)
		for _, u := range e.Updates {
			leaf := t
			for _, s := range u.Path {
				if s.Field != "" {
					leaf = in.field(leaf, s.Field, u.Pos)
				} else {
					leaf = in.index(x, sc, leaf, s.Args, u.Pos)
				}
			}
			in.to(x, sc.bind(&Binding{Name: "@", Type: leaf}), u.Value, leaf)
		}
		return t
	case *tla.AtSign:
		if b := sc.lookup("@"); b != nil {
			return b.Type
		}
		fail(e.Pos, "@ outside of an EXCEPT")
	case *tla.Tuple:
		if t := wanted(Seq); t != nil {
			for _, y := range e.Elems {
				in.to(x, sc, y, t.Elem)
			}
			return t
		}
		if t := wanted(Tup); t != nil && len(t.Tup) == len(e.Elems) {
			for i, y := range e.Elems {
				in.to(x, sc, y, t.Tup[i])
			}
			return t
		}
		t := tupOf()
		for _, y := range e.Elems {
			t.Tup = append(t.Tup, in.infer(x, sc, y, nil))
		}
		return t
	case *tla.Cross:
		t := tupOf()
		for _, s := range e.Sets {
			t.Tup = append(t.Tup, in.set(x, sc, s).Elem)
		}
		return setOf(t)
	case *tla.If:
		in.to(x, sc, e.Cond, mk(Bool))
		a := in.infer(x, sc, e.Then, want)
		return join(e.Pos, a, in.infer(x, sc, e.Else, want))
	case *tla.Case:
		t := mk(Var)
		for _, a := range e.Arms {
			in.to(x, sc, a.Guard, mk(Bool))
			t = join(e.Pos, t, in.infer(x, sc, a.Body, want))
		}
		if e.Other != nil {
			t = join(e.Pos, t, in.infer(x, sc, e.Other, want))
		}
		return t
	case *tla.Let:
		inner := sc
		for _, d := range e.Defs {
			if d.Bounds != nil {
				fail(d.Pos, "a function definition in a LET is not supported in generated code")
			}
			b := &Binding{Name: d.Name, Def: d}
			if len(d.Params) == 0 {
				b.Type = in.infer(x, inner, d.Body, nil)
				b.Tag = tagOf(inner, d.Body)
			} else {
				// Instances are made at the uses; they see the names bound so far.
				in.scopes[d] = inner
			}
			inner = inner.bind(b)
		}
		return in.infer(x, inner, e.Body, want)
	}
	fail(e.Where(), "this is not supported in generated code")
	return nil
}

func sameFields(t *Type, fs []tla.FieldExpr) bool {
	if len(t.Fields) != len(fs) {
		return false
	}
	for _, f := range fs {
		if t.Fields[f.Name] == nil {
			return false
		}
	}
	return true
}

func (in *inferrer) ident(x *Instance, sc *scope, e *tla.Ident) *Type {
	if b := sc.lookup(e.Name); b != nil {
		return b.Type
	}
	if t := in.p.Vars[e.Name]; t != nil {
		return t
	}
	if t := in.p.Consts[e.Name]; t != nil {
		return t
	}
	if d := in.p.Module.Def(e.Name); d != nil {
		if d.Bounds != nil {
			return in.functionDef(x, d)
		}
		inst := in.instance(e.Pos, d, nil, nil, nil)
		x.Calls[e] = inst
		return inst.Result
	}
	switch e.Name {
	case "BOOLEAN":
		return setOf(mk(Bool))
	case "Nat", "Int":
		return setOf(mk(Int))
	case "STRING":
		return setOf(in.atom())
	}
	fail(e.Pos, "%s is not defined", e.Name)
	return nil
}

// functionDef types f[x \in S] == e, which must be constant: it is computed once.
func (in *inferrer) functionDef(x *Instance, d *tla.Def) *Type {
	if in.p.Levels[d.Name] != eval.Constant {
		fail(d.Pos, "function %s depends on the state; only constant function definitions are supported in generated "+
			"code, define an operator instead", d.Name)
	}
	if t, ok := in.functions[d]; ok {
		return t
	}
	if len(d.Bounds) != 1 || d.Bounds[0].Tuple || len(d.Bounds[0].Names) != 1 {
		fail(d.Pos, "function %s: only one argument is supported in generated code", d.Name)
	}
	key := in.set(x, nil, d.Bounds[0].Set).Elem
	t := &Type{Kind: Fun, Key: key, Elem: mk(Var), Dom: d.Bounds[0].Set, DomText: domText(d.Bounds[0].Set)}
	in.functions[d] = t
	in.p.Functions[d.Name] = t
	sc := (*scope)(nil).bind(&Binding{Name: d.Bounds[0].Names[0], Type: key, Tag: &Tag{unknown: true}})
	sc = sc.bind(&Binding{Name: d.Name, Type: t})
	in.to(x, sc, d.Body, t.Elem)
	return t
}

func domText(e tla.Expr) string {
	if id, ok := e.(*tla.Ident); ok {
		return id.Name
	}
	return ""
}

// fromOne says whether a set is written 1..n.
func fromOne(e tla.Expr) bool {
	op, ok := e.(*tla.Op)
	if !ok || op.Name != ".." {
		return false
	}
	n, ok := op.Args[0].(*tla.Num)
	return ok && n.Value == 1
}

// closed says whether an expression is constant and free of bound names.
func (in *inferrer) closed(sc *scope, e tla.Expr) bool {
	return Closed(in.p, e, func(name string) bool { return sc.lookup(name) != nil })
}

// Closed says whether an expression depends on constants only; bound tells which names are bound around it.
func Closed(p *Program, e tla.Expr, bound func(string) bool) bool {
	inner := map[string]int{}
	ok := true
	var visit func(e tla.Expr)
	use := func(name string) {
		if inner[name] > 0 {
			return
		}
		if name == "@" || bound(name) || p.Levels[name] != eval.Constant {
			ok = false
		}
	}
	with := func(names []string, f func()) {
		for _, n := range names {
			inner[n]++
		}
		f()
		for _, n := range names {
			inner[n]--
		}
	}
	bounds := func(bs []tla.Bound, body tla.Expr) {
		var names []string
		for _, b := range bs {
			visit(b.Set)
			names = append(names, b.Names...)
		}
		with(names, func() { visit(body) })
	}
	visit = func(e tla.Expr) {
		eval.Walk(e, func(y tla.Expr) bool {
			switch y := y.(type) {
			case *tla.Ident:
				use(y.Name)
			case *tla.Call:
				use(y.Name)
			case *tla.AtSign:
				use("@")
			case *tla.Op:
				ok = ok && y.Name != "'" && y.Name != "UNCHANGED" && y.Name != "ENABLED"
			case *tla.Except:
				visit(y.Fn)
				for _, u := range y.Updates {
					for _, s := range u.Path {
						for _, a := range s.Args {
							visit(a)
						}
					}
					// @ stands for a part of what is changed.
					with([]string{"@"}, func() { visit(u.Value) })
				}
				return false
			case *tla.Quant:
				bounds(y.Bounds, y.Body)
				return false
			case *tla.Choose:
				bounds([]tla.Bound{y.Bound}, y.Body)
				return false
			case *tla.Filter:
				bounds([]tla.Bound{y.Bound}, y.Pred)
				return false
			case *tla.MapSet:
				bounds(y.Bounds, y.Body)
				return false
			case *tla.FnLit:
				bounds(y.Bounds, y.Body)
				return false
			case *tla.Let:
				var names []string
				for _, d := range y.Defs {
					names = append(names, d.Name)
				}
				with(names, func() {
					for _, d := range y.Defs {
						var prms []string
						for _, p := range d.Params {
							prms = append(prms, p.Name)
						}
						with(prms, func() { bounds(d.Bounds, d.Body) })
					}
					visit(y.Body)
				})
				return false
			case *tla.Lambda:
				var prms []string
				for _, p := range y.Params {
					prms = append(prms, p.Name)
				}
				with(prms, func() { visit(y.Body) })
				return false
			}
			return ok
		})
	}
	visit(e)
	return ok
}

func (in *inferrer) function(x *Instance, sc *scope, e *tla.FnLit, wanted func(Kind) *Type) *Type {
	inner := in.bounds(x, sc, e.Bounds)
	b := e.Bounds[0]
	if len(e.Bounds) > 1 || len(b.Names) > 1 && !b.Tuple {
		fail(e.Pos, "a function of several arguments is not supported in generated code; use a tuple")
	}
	if seq := wanted(Seq); seq != nil && fromOne(b.Set) {
		in.to(x, inner, e.Body, seq.Elem)
		return seq
	}
	if f := wanted(Fun); f != nil {
		unify(e.Pos, x.Types[b.Set].Find().Elem, f.Key)
		in.domain(sc, b.Set)
		in.to(x, inner, e.Body, f.Elem)
		return f
	}
	elem := in.infer(x, inner, e.Body, nil)
	if fromOne(b.Set) && !in.closed(sc, b.Set) {
		return seqOf(elem)
	}
	in.domain(sc, b.Set)
	return &Type{Kind: Fun, Key: x.Types[b.Set].Find().Elem, Elem: elem, Dom: b.Set, DomText: domText(b.Set),
		fromOne: fromOne(b.Set)}
}

// domain insists that a function's domain is constant.
func (in *inferrer) domain(sc *scope, e tla.Expr) {
	if !in.closed(sc, e) {
		fail(e.Where(), "the domain of this function depends on more than constants")
	}
}

func (in *inferrer) functionSet(x *Instance, sc *scope, e *tla.FnSet) *Type {
	key := in.set(x, sc, e.Dom).Elem
	elem := in.set(x, sc, e.Rng).Elem
	if fromOne(e.Dom) && !in.closed(sc, e.Dom) {
		return setOf(seqOf(elem))
	}
	in.domain(sc, e.Dom)
	return setOf(&Type{Kind: Fun, Key: key, Elem: elem, Dom: e.Dom, DomText: domText(e.Dom), fromOne: fromOne(e.Dom)})
}

func (in *inferrer) index(x *Instance, sc *scope, t *Type, args []tla.Expr, pos tla.Pos) *Type {
	t = t.Find()
	if t.Kind == Opt {
		t = t.Elem.Find()
	}
	if len(args) > 1 {
		fail(pos, "a function of several arguments is not supported in generated code; use a tuple")
	}
	switch t.Kind {
	case Fun:
		in.to(x, sc, args[0], t.Key)
		return t.Elem
	case Seq:
		in.to(x, sc, args[0], mk(Int))
		return t.Elem
	case Tup:
		if n, ok := args[0].(*tla.Num); ok {
			if n.Value < 1 || n.Value > len(t.Tup) {
				fail(pos, "%d is not in the domain of a tuple of %d", n.Value, len(t.Tup))
			}
			in.to(x, sc, args[0], mk(Int))
			return t.Tup[n.Value-1]
		}
		seq := seqOf(mk(Var))
		toSeq(pos, t, seq)
		in.to(x, sc, args[0], mk(Int))
		return seq.Elem
	case Rec:
		if s, ok := args[0].(*tla.Str); ok {
			return in.field(t, s.Value, pos)
		}
		fail(pos, "a record's field must be a literal here")
	}
	fail(pos, "%s is applied, which is no function", article(t))
	return nil
}

func (in *inferrer) field(t *Type, name string, pos tla.Pos) *Type {
	t = t.Find()
	if t.Kind == Opt {
		t = t.Elem.Find()
	}
	if t.Kind != Rec || t.Fields[name] == nil {
		fail(pos, "%s has no field %s", article(t), name)
	}
	return t.Fields[name]
}

func (in *inferrer) call(x *Instance, sc *scope, e *tla.Call, want *Type) *Type {
	d, outer := in.p.Module.Def(e.Name), (*Instance)(nil)
	if b := sc.lookup(e.Name); b != nil {
		if b.Def == nil {
			fail(e.Pos, "%s is no operator", e.Name)
		}
		d, outer = b.Def, x
		for outer.Outer != nil && outer.Lets[d] == nil {
			outer = outer.Outer
		}
	}
	if d == nil {
		return in.standard(x, sc, e, want)
	}
	var args []*Type
	var tags []*Tag
	for i, a := range e.Args {
		if _, ok := a.(*tla.Lambda); ok || d.Params[i].Arity > 0 {
			fail(a.Where(), "an operator as an argument is not supported in generated code")
		}
		args = append(args, in.infer(x, sc, a, nil))
		tags = append(tags, tagOf(sc, a))
	}
	var inst *Instance
	if outer != nil {
		saved := outer.scope
		outer.scope = in.scopes[d]
		inst = in.instance(e.Pos, d, args, tags, outer)
		outer.scope = saved
	} else {
		inst = in.instance(e.Pos, d, args, tags, nil)
	}
	x.Calls[e] = inst
	return inst.Result
}

// standard types an operator of a standard module.
func (in *inferrer) standard(x *Instance, sc *scope, e *tla.Call, want *Type) *Type {
	sequence := func(a tla.Expr) *Type {
		t := in.infer(x, sc, a, want).Find()
		if t.Kind == Opt {
			t = t.Elem.Find()
		}
		if t.Kind != Seq {
			unify(a.Where(), t, seqOf(mk(Var)))
		}
		return t.Find()
	}
	switch e.Name {
	case "Cardinality":
		in.set(x, sc, e.Args[0])
		return mk(Int)
	case "IsFiniteSet":
		in.set(x, sc, e.Args[0])
		return mk(Bool)
	case "Len":
		want = nil
		sequence(e.Args[0])
		return mk(Int)
	case "Append":
		t := sequence(e.Args[0])
		in.to(x, sc, e.Args[1], t.Elem)
		return t
	case "Head":
		want = nil
		return sequence(e.Args[0]).Elem
	case "Tail":
		return sequence(e.Args[0])
	case "SubSeq":
		t := sequence(e.Args[0])
		in.to(x, sc, e.Args[1], mk(Int))
		in.to(x, sc, e.Args[2], mk(Int))
		return t
	case "Seq":
		return setOf(seqOf(in.set(x, sc, e.Args[0]).Elem))
	case "SelectSeq":
		t := sequence(e.Args[0])
		l, ok := e.Args[1].(*tla.Lambda)
		if !ok || len(l.Params) != 1 {
			fail(e.Pos, "SelectSeq needs a LAMBDA with one parameter in generated code")
		}
		in.to(x, sc.bind(&Binding{Name: l.Params[0].Name, Type: t.Elem, Tag: &Tag{unknown: true}}), l.Body, mk(Bool))
		return t
	}
	fail(e.Pos, "%s is not supported in generated code", e.Name)
	return nil
}

func (in *inferrer) op(x *Instance, sc *scope, e *tla.Op, want *Type) *Type {
	arg := func(i int) *Type { return in.infer(x, sc, e.Args[i], nil) }
	switch e.Name {
	case "'":
		return in.infer(x, sc, e.Args[0], want)
	case "UNCHANGED":
		arg(0)
		return mk(Bool)
	case "~", "=>", "<=>":
		for _, a := range e.Args {
			in.to(x, sc, a, mk(Bool))
		}
		return mk(Bool)
	case "=", "#":
		a := arg(0)
		in.same(e.Pos, a, in.infer(x, sc, e.Args[1], a))
		return mk(Bool)
	case `\in`, `\notin`:
		s := in.set(x, sc, e.Args[1])
		in.same(e.Pos, in.infer(x, sc, e.Args[0], s.Elem), s.Elem)
		return mk(Bool)
	case "SUBSET":
		return setOf(in.set(x, sc, e.Args[0]))
	case "UNION":
		t := in.set(x, sc, e.Args[0])
		unify(e.Pos, t.Elem, setOf(mk(Var)))
		return t.Elem.Find()
	case "DOMAIN":
		switch t := arg(0).Find(); t.Kind {
		case Fun:
			return setOf(t.Key)
		case Seq, Tup:
			return setOf(mk(Int))
		default:
			fail(e.Pos, "DOMAIN of a %s is not supported in generated code", t)
		}
	case `\cup`:
		a := in.infer(x, sc, e.Args[0], want).Find()
		b := in.infer(x, sc, e.Args[1], a).Find()
		unify(e.Pos, setOf(mk(Var)), a)
		unify(e.Pos, setOf(mk(Var)), b)
		a, b = a.Find(), b.Find()
		elem := join(e.Pos, a.Elem, b.Elem)
		if elem == a.Elem.Find() {
			return a
		}
		return setOf(elem)
	case `\cap`, `\`, `\subseteq`, `\supseteq`, `\subset`:
		a, b := in.set(x, sc, e.Args[0]), in.set(x, sc, e.Args[1])
		in.same(e.Pos, a.Elem, b.Elem)
		if e.Name == `\cap` || e.Name == `\` {
			return a
		}
		return mk(Bool)
	case "+", "*", "%", `\div`, "^", "-", "<", ">", "<=", ">=", "..":
		for _, a := range e.Args {
			in.to(x, sc, a, mk(Int))
		}
		switch e.Name {
		case "<", ">", "<=", ">=":
			return mk(Bool)
		case "..":
			return setOf(mk(Int))
		}
		return mk(Int)
	case `\o`:
		t := in.infer(x, sc, e.Args[0], want)
		unify(e.Pos, t, seqOf(mk(Var)))
		t = t.Find()
		in.to(x, sc, e.Args[1], t)
		return t
	}
	fail(e.Pos, "operator %s is not supported in generated code", e.Name)
	return nil
}
