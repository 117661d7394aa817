package gen

import (
	"strings"

	"linearize.example/checker/conform/eval"
	"linearize.example/checker/conform/tla"
	"linearize.example/cmd/tla2go/internal/types"
)

// assignment is a variable's next value, written at the end of a path.
type assignment struct {
	keep bool     // unchanged
	code string   // a Go variable that holds the value, or
	expr tla.Expr // the expression, in
	ctx  *ctx
}

// path is one way through an action: what is decided so far.
type path struct {
	// action is the named action and args the Go code of its arguments.
	action *types.Instance
	args   []string
	given  map[string]*assignment
	order  []string
	primes map[string]*local
	// leave is the statement that gives up, where the rest of the block belongs to this path; else tests nest.
	leave string
	// ways is set while the ways to satisfy a formula are counted instead of steps taken.
	ways bool
	end  func(p path)
}

func (p path) nested() path {
	p.leave = ""
	return p
}

// give records a variable's next value.
func (p path) give(name string, a *assignment, l *local) path {
	given := map[string]*assignment{name: a}
	for k, v := range p.given {
		given[k] = v
	}
	primes := map[string]*local{}
	for k, v := range p.primes {
		primes[k] = v
	}
	if l != nil {
		primes[name] = l
	}
	p.given, p.primes = given, primes
	p.order = append(append([]string{}, p.order...), name)
	return p
}

// conjuncts are what is still to be satisfied.
type conjuncts struct {
	c    *ctx
	expr tla.Expr
	rest *conjuncts
}

func (g *generator) complete(p path) bool { return len(p.given) == len(g.p.Module.Variables) }

func (c *ctx) on(p path) *ctx {
	d := *c
	d.primes = p.primes
	return &d
}

// guard continues where a condition holds.
func (g *generator) guard(p path, cond string, then func(path)) {
	if p.leave != "" {
		g.emit("if %s {\n%s\n}", bare(not(cond)), p.leave)
		then(p)
		return
	}
	g.emit("if %s {", bare(cond))
	then(p)
	g.emit("}")
}

// proceed continues with what is left, as eval.search does: once every variable has its value, the rest is tested.
func (g *generator) proceed(p path, rest *conjuncts) {
	if rest == nil {
		p.end(p)
		return
	}
	if !p.ways && g.complete(p) {
		g.test(p, rest.c, rest.expr, rest.rest)
		return
	}
	g.step(p, rest.c, rest.expr, rest.rest)
}

func (g *generator) test(p path, c *ctx, e tla.Expr, rest *conjuncts) {
	c = c.on(p)
	g.guard(p, g.condition(c, e), func(p path) { g.proceed(p, rest) })
}

// condition is expr for a formula that may equate next values or leave variables unchanged.
func (g *generator) condition(c *ctx, e tla.Expr) string {
	switch e := e.(type) {
	case *tla.Op:
		if e.Name == "UNCHANGED" {
			var parts []string
			for _, v := range g.unchanged(c, e.Args[0]) {
				l := g.next(c.primes, v, e.Pos)
				parts = append(parts, l.expr+" == c.s."+lower(v))
			}
			return "(" + strings.Join(parts, " && ") + ")"
		}
	case *tla.And:
		var parts []string
		for _, x := range e.List {
			parts = append(parts, g.condition(c, x))
		}
		return "(" + strings.Join(parts, " && ") + ")"
	case *tla.Ident, *tla.Call:
		if d, _ := g.actionDef(c, e); d != nil {
			fail(e.Where(), "an action is tested after every variable has its value; this is not supported")
		}
	}
	return g.expr(c, e)
}

// actionDef returns the definition of an operator of action level that e applies.
func (g *generator) actionDef(c *ctx, e tla.Expr) (*tla.Def, []tla.Expr) {
	var name string
	var args []tla.Expr
	switch e := e.(type) {
	case *tla.Ident:
		name = e.Name
	case *tla.Call:
		name, args = e.Name, e.Args
	}
	if name == "" || c.lookup(name) != nil || g.p.Levels[name] != eval.ActionLevel {
		return nil, nil
	}
	return g.p.Module.Def(name), args
}

// branches says whether TLC satisfies a formula of the state in several ways.
func (g *generator) branches(c *ctx, e tla.Expr) bool {
	switch e := e.(type) {
	case *tla.Or:
		return true
	case *tla.Quant:
		return e.Exists || g.branches(c, e.Body)
	case *tla.And:
		for _, x := range e.List {
			if g.branches(c, x) {
				return true
			}
		}
	case *tla.If:
		return g.branches(c, e.Then) || g.branches(c, e.Else)
	case *tla.Case:
		for _, a := range e.Arms {
			if g.branches(c, a.Body) {
				return true
			}
		}
		return e.Other != nil && g.branches(c, e.Other)
	case *tla.Let:
		return g.branches(c, e.Body)
	case *tla.Op:
		return e.Name == "=>" && g.branches(c, e.Args[1])
	case *tla.Ident:
		if l := c.lookup(e.Name); l != nil {
			return l.def != nil && len(l.def.Params) == 0 && g.branches(l.in, l.def.Body)
		}
		d := g.p.Module.Def(e.Name)
		return d != nil && d.Bounds == nil && g.branches(c, d.Body)
	case *tla.Call:
		if l := c.lookup(e.Name); l != nil {
			return l.def != nil && g.branches(l.in, l.def.Body)
		}
		d := g.p.Module.Def(e.Name)
		return d != nil && !d.Recursive && g.branches(c, d.Body)
	}
	return false
}

// step writes the ways to satisfy e and then the rest.
func (g *generator) step(p path, c *ctx, e tla.Expr, rest *conjuncts) {
	c = c.on(p)
	if !p.ways && g.levelIn(c, e) <= eval.StateLevel {
		if !g.branches(c, e) {
			g.guard(p, g.expr(c, e), func(p path) { g.proceed(p, rest) })
			return
		}
		if _, let := e.(*tla.Let); !let {
			g.count(p, c, e, rest)
			return
		}
	}
	switch e := e.(type) {
	case *tla.And:
		for i := len(e.List) - 1; i > 0; i-- {
			rest = &conjuncts{c, e.List[i], rest}
		}
		g.step(p, c, e.List[0], rest)
	case *tla.Or:
		for _, x := range e.List {
			code := g.scope(func() { g.step(p.nested(), c, x, rest) })
			if single(code) {
				g.buf.WriteString(code)
			} else {
				g.emit("{\n%s}", code)
			}
		}
	case *tla.Quant:
		g.quantified(p, c, e, rest)
	case *tla.If:
		if p.ways || g.levelIn(c, e) > eval.StateLevel {
			g.emit("if %s {", bare(g.expr(c, e.Cond)))
			g.step(p.nested(), c, e.Then, rest)
			g.emit("} else {")
			g.step(p.nested(), c, e.Else, rest)
			g.emit("}")
		}
	case *tla.Case:
		for i, a := range e.Arms {
			if i > 0 {
				g.buf.WriteString("} else ")
			}
			g.emit("if %s {", bare(g.expr(c, a.Guard)))
			g.step(p.nested(), c, a.Body, rest)
		}
		g.emit("} else {")
		if e.Other != nil {
			g.step(p.nested(), c, e.Other, rest)
		} else {
			g.emit("panic(engine.Failure{Msg: %q})", where(e.Pos)+": CASE: no guard holds, and there is no OTHER")
		}
		g.emit("}")
	case *tla.Let:
		g.let(c, e.Defs, func(c *ctx) { g.step(p, c, e.Body, rest) })
	case *tla.Ident, *tla.Call:
		g.operator(p, c, e, rest)
	case *tla.Op:
		g.opStep(p, c, e, rest)
	default:
		g.test(p, c, e, rest)
	}
}

// count continues as often as there are ways to satisfy a formula of the state; TLC generates a state for each.
func (g *generator) count(p path, c *ctx, e tla.Expr, rest *conjuncts) {
	ways := g.fresh("ways")
	q := path{ways: true, primes: p.primes, end: func(path) { g.emit("%s++", ways) }}
	g.emit("%s := 0", ways)
	g.step(q, c, e, nil)
	g.emit("for ; %s > 0; %s-- {", ways, ways)
	p.leave = "continue"
	g.proceed(p, rest)
	g.emit("}")
}

func (g *generator) quantified(p path, c *ctx, e *tla.Quant, rest *conjuncts) {
	if e.Exists {
		g.loops(c, e.Bounds, func(c *ctx) {
			p := p
			p.leave = "continue"
			g.step(p, c, e.Body, rest)
		})
		return
	}
	if g.levelIn(c, e) > eval.StateLevel {
		fail(e.Pos, "an action for all values is not supported in generated code")
	}
	if !g.branches(c, e.Body) {
		g.guard(p, g.expr(c, e), func(p path) { g.proceed(p, rest) })
		return
	}
	all, one := g.fresh("all"), g.fresh("one")
	g.emit("%s := 1", all)
	g.loops(c, e.Bounds, func(c *ctx) {
		g.emit("%s := 0", one)
		g.step(path{ways: true, primes: p.primes, end: func(path) { g.emit("%s++", one) }}, c, e.Body, nil)
		g.emit("%s *= %s", all, one)
	})
	g.emit("for ; %s > 0; %s-- {", all, all)
	p.leave = "continue"
	g.proceed(p, rest)
	g.emit("}")
}

// operator continues in the body of a defined operator: a named action becomes a method of its own.
func (g *generator) operator(p path, c *ctx, e tla.Expr, rest *conjuncts) {
	var name string
	var args []tla.Expr
	switch e := e.(type) {
	case *tla.Ident:
		name = e.Name
	case *tla.Call:
		name, args = e.Name, e.Args
	}
	if l := c.lookup(name); l != nil {
		if l.def == nil || len(l.def.Params) > 0 && c.inst.Calls[e] == nil {
			g.guard(p, g.expr(c, e), func(p path) { g.proceed(p, rest) })
			return
		}
		if len(l.def.Params) > 0 {
			if g.levelIn(l.in, l.def.Body) > eval.StateLevel {
				fail(e.Where(), "an action defined in a LET with parameters is not supported in generated code")
			}
			g.inline(p, c, l.in, c.inst.Calls[e], args, rest)
			return
		}
		g.step(p, l.in, l.def.Body, rest)
		return
	}
	x := c.inst.Calls[e]
	if x == nil {
		g.guard(p, g.expr(c, e), func(p path) { g.proceed(p, rest) })
		return
	}
	action := !p.ways && g.p.Levels[name] == eval.ActionLevel && p.action == nil && !g.structuralAction(x.Def.Body)
	if action && rest == nil {
		var code []string
		for i, a := range args {
			code = append(code, g.as(c, a, x.Params[i].Type))
		}
		g.emit("c.%s(%s)", g.actionName(x), strings.Join(code, ", "))
		return
	}
	if action {
		p.action = x
		g.numberAction(x)
		for i, a := range args {
			p.args = append(p.args, g.as(c, a, x.Params[i].Type))
		}
	}
	g.inline(p, c, &ctx{}, x, args, rest)
}

// inline writes an operator's body in place, its parameters as local variables.
func (g *generator) inline(p path, c, env *ctx, x *types.Instance, args []tla.Expr, rest *conjuncts) {
	inner := &ctx{inst: x, names: env.names, primes: p.primes}
	var decls []string
	var names []string
	for i, a := range args {
		b := x.Params[i]
		code := g.as(c, a, b.Type)
		if !simple(code) {
			n := g.fresh(b.Name)
			decls, names = append(decls, n+" := "+code), append(names, n)
			code = n
		}
		inner = inner.bind(&local{name: b.Name, expr: code, typ: b.Type, tag: b.Tag})
	}
	body := g.capture(func() { g.step(p, inner, x.Def.Body, rest) })
	for i, d := range decls {
		if mentions(body, names[i]) {
			g.emit("%s", d)
		}
	}
	g.buf.WriteString(body)
}

func (g *generator) structuralAction(e tla.Expr) bool {
	switch e := e.(type) {
	case *tla.Or:
		for _, x := range e.List {
			if !g.structuralAction(x) {
				return false
			}
		}
		return true
	case *tla.Quant:
		return e.Exists && g.structuralAction(e.Body)
	case *tla.Ident:
		return g.p.Module.Def(e.Name) != nil && g.p.Levels[e.Name] == eval.ActionLevel
	case *tla.Call:
		return g.p.Module.Def(e.Name) != nil && g.p.Levels[e.Name] == eval.ActionLevel
	}
	return false
}

// actionName returns the method of a named action, to be written later.
func (g *generator) actionName(x *types.Instance) string {
	g.numberAction(x)
	name, ok := g.names[x]
	if !ok {
		name = g.global(lower(x.Def.Name))
		g.names[x] = name
		g.queue = append(g.queue, x)
	}
	return name
}

// numberAction gives a named action its number.
func (g *generator) numberAction(x *types.Instance) {
	if _, ok := g.actNo[x]; !ok {
		g.actNo[x] = len(g.actions)
		g.actions = append(g.actions, x)
	}
}

// next returns what holds a variable's next value.
func (g *generator) next(primes map[string]*local, v string, pos tla.Pos) *local {
	l := primes[v]
	if l == nil && !g.primed[v] {
		panic(needNext{v})
	}
	if l == nil {
		fail(pos, "%s' is used before it has a value", v)
	}
	return l
}

// nextVar returns the variable in x' of "x' = e" and "x' \in e".
func (g *generator) nextVar(c *ctx, e tla.Expr) string {
	op, ok := e.(*tla.Op)
	if !ok || op.Name != "'" {
		return ""
	}
	id, ok := op.Args[0].(*tla.Ident)
	if !ok || g.p.Vars[id.Name] == nil || c.lookup(id.Name) != nil {
		return ""
	}
	return id.Name
}

func (g *generator) opStep(p path, c *ctx, e *tla.Op, rest *conjuncts) {
	switch e.Name {
	case "=", `\in`:
		v := g.nextVar(c, e.Args[0])
		if v == "" || p.ways {
			break
		}
		if p.given[v] != nil {
			g.next(p.primes, v, e.Pos)
			break
		}
		if e.Name == "=" {
			g.assign(p, c, v, e.Args[1], rest)
			return
		}
		t := g.p.Vars[v]
		name := g.fresh(v)
		g.each(c, e.Args[1], name, func() string {
			return g.capture(func() {
				p := p
				p.leave = "continue"
				code := name
				if et := c.typeOf(e.Args[1]).Elem; et.Find().Kind != t.Find().Kind {
					code = g.fresh(v)
					g.emit("%s := %s", code, g.convert(name, et, t))
				}
				l := &local{name: v, expr: code, typ: t}
				g.proceed(p.give(v, &assignment{code: code}, l), rest)
			})
		})
		return
	case "=>":
		g.emit("if %s {", bare(g.expr(c, e.Args[0])))
		g.step(p.nested(), c, e.Args[1], rest)
		g.emit("} else {")
		g.proceed(p.nested(), rest)
		g.emit("}")
		return
	case "UNCHANGED":
		var tests []string
		for _, v := range g.unchanged(c, e.Args[0]) {
			if p.given[v] == nil {
				l := &local{name: v, expr: "c.s." + lower(v), typ: g.p.Vars[v]}
				p = p.give(v, &assignment{keep: true}, l)
				continue
			}
			if l := g.next(p.primes, v, e.Pos); l.expr != "c.s."+lower(v) {
				tests = append(tests, l.expr+" == c.s."+lower(v))
			}
		}
		if len(tests) > 0 {
			g.guard(p, strings.Join(tests, " && "), func(p path) { g.proceed(p, rest) })
			return
		}
		g.proceed(p, rest)
		return
	}
	g.guard(p, g.condition(c, e), func(p path) { g.proceed(p, rest) })
}

// unchanged lists the variables in the argument of UNCHANGED.
func (g *generator) unchanged(c *ctx, e tla.Expr) []string {
	switch e := e.(type) {
	case *tla.Ident:
		if g.p.Vars[e.Name] != nil {
			return []string{e.Name}
		}
		if d := g.p.Module.Def(e.Name); d != nil && len(d.Params) == 0 {
			return g.unchanged(c, d.Body)
		}
	case *tla.Tuple:
		var all []string
		for _, x := range e.Elems {
			all = append(all, g.unchanged(c, x)...)
		}
		return all
	}
	fail(e.Where(), "UNCHANGED of anything but variables is not supported in generated code")
	return nil
}

// assign records x' = e. Where x' is read later its value is computed now, else where the successor is written.
func (g *generator) assign(p path, c *ctx, v string, e tla.Expr, rest *conjuncts) {
	if id, ok := e.(*tla.Ident); ok && id.Name == v && c.lookup(v) == nil {
		l := &local{name: v, expr: "c.s." + lower(v), typ: g.p.Vars[v]}
		g.proceed(p.give(v, &assignment{keep: true}, l), rest)
		return
	}
	if !g.primed[v] {
		g.proceed(p.give(v, &assignment{expr: e, ctx: c}, nil), rest)
		return
	}
	name := g.fresh(v + "Next")
	g.emit("%s := %s", name, g.as(c, e, g.p.Vars[v]))
	l := &local{name: v, expr: name, typ: g.p.Vars[v]}
	g.proceed(p.give(v, &assignment{code: name}, l), rest)
}

// leaf writes the successor.
func (g *generator) leaf(p path) {
	for _, v := range g.p.Module.Variables {
		if p.given[v.Name] == nil {
			what := "the next-state action"
			if p.action != nil {
				what = "action " + p.action.Def.Name
			}
			fail(v.Pos, "%s gives variable %s no next value", what, v.Name)
		}
	}
	if len(p.args) > 0 {
		g.emit("if c.out.WithArgs {\nc.out.Label(%s)\n}", strings.Join(p.args, ", "))
	} else {
		g.emit("if c.out.WithArgs {\nc.out.Label()\n}")
	}
	g.emit("n := c.out.Begin()")
	wrote := false
	for _, v := range p.order {
		a := p.given[v]
		switch {
		case a.keep:
			continue
		case a.code != "":
			g.put(g.vars[v], "c.at."+g.vars[v].name+".Off", a.code, true)
		default:
			g.putExpr(g.vars[v], "c.at."+g.vars[v].name+".Off", "c.s."+lower(v), a.ctx, a.expr)
		}
		wrote = true
	}
	if !wrote {
		g.emit("_ = n")
	}
	g.emit("c.out.Commit(%d)", g.actNo[p.action])
}
