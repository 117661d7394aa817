package gen

import (
	"fmt"
	"strconv"
	"strings"

	"linearize.example/checker/conform/eval"
	"linearize.example/checker/conform/tla"
	"linearize.example/cmd/tla2go/internal/types"
)

// local is what a bound name stands for in Go.
type local struct {
	name string
	up   *local
	expr string
	ptr  bool // expr is a pointer to the value
	lazy bool // expr is a function that computes it
	typ  *types.Type
	tag  *types.Tag

	def *tla.Def // of a LET
	in  *ctx     // where def was defined
}

// ctx is where an expression stands.
type ctx struct {
	inst  *types.Instance
	names *local
	// primes holds the variables' next values, as far as they are known.
	primes map[string]*local
}

func (c *ctx) lookup(name string) *local {
	for l := c.names; l != nil; l = l.up {
		if l.name == name {
			return l
		}
	}
	return nil
}

func (c *ctx) bind(l *local) *ctx {
	d := *c
	l.up = c.names
	d.names = l
	return &d
}

func (c *ctx) typeOf(e tla.Expr) *types.Type {
	t := c.inst.Types[e]
	if t == nil {
		fail(e.Where(), "this expression has no type here")
	}
	return t.Find()
}

// closure wraps statements that return a value.
func (g *generator) closure(t *types.Type, f func()) string {
	return "func() " + g.goType(t) + " {\n" + g.scope(f) + "}()"
}

// as writes an expression as a value of type want.
func (g *generator) as(c *ctx, e tla.Expr, want *types.Type) string {
	return g.convert(g.expr(c, e), c.typeOf(e), want)
}

// convert puts atoms and values into an Opt, and takes them out.
func (g *generator) convert(code string, from, to *types.Type) string {
	from, to = from.Find(), to.Find()
	switch {
	case from == to || from.Kind == to.Kind:
		return code
	case to.Kind == types.Opt && from.Kind == types.Atom:
		return "engine.Named[" + g.goType(to.Elem) + "](" + code + ")"
	case to.Kind == types.Opt:
		return "engine.Val(" + g.convert(code, from, to.Elem) + ")"
	case from.Kind == types.Opt && to.Kind == types.Atom:
		return code + ".Name()"
	case from.Kind == types.Opt:
		return "engine.Inner(" + code + ")"
	}
	return code
}

// place writes an expression that Go can select from, and says whether its address can be taken.
func (g *generator) place(c *ctx, e tla.Expr) (string, bool) {
	switch e := e.(type) {
	case *tla.Ident:
		if l := c.lookup(e.Name); l != nil {
			if l.lazy {
				return l.expr + "()", false
			}
			return l.expr, !strings.ContainsAny(l.expr, "(+-")
		}
		if _, ok := g.p.Vars[e.Name]; ok {
			return "c.s." + lower(e.Name), true
		}
		if code, ok := g.hoist(e.Name); ok {
			return code, true
		}
	case *tla.AtSign:
		if l := c.lookup("@"); l != nil {
			return l.expr, true
		}
	case *tla.Op:
		if e.Name == "'" {
			return g.prime(c, e)
		}
	case *tla.Field:
		base, ok := g.place(c, e.Rec)
		if c.typeOf(e.Rec).Kind == types.Opt {
			base, ok = g.inner(base, ok)
		}
		return base + "." + exported(e.Name), ok
	case *tla.Index:
		base, ok := g.place(c, e.Fn)
		t := c.typeOf(e.Fn)
		if t.Kind == types.Opt {
			base, ok = g.inner(base, ok)
			t = t.Elem.Find()
		}
		return g.indexed(c, base, ok, t, e.Args[0])
	}
	return g.expr(c, e), false
}

func (g *generator) inner(base string, ok bool) (string, bool) {
	if ok {
		return base + ".Get()", true
	}
	return "engine.Inner(" + base + ")", false
}

// indexed writes base[arg] for a function, sequence, tuple or record.
func (g *generator) indexed(c *ctx, base string, ok bool, t *types.Type, arg tla.Expr) (string, bool) {
	switch t.Kind {
	case types.Fun:
		return base + "[" + g.key(c, t, arg) + "]", ok
	case types.Seq:
		i := g.expr(c, arg)
		if ok {
			return "(*" + base + ".At(" + i + "))", true
		}
		return "engine.Elem(" + base + ", " + i + ")", false
	case types.Tup:
		return base + ".F" + strconv.Itoa(arg.(*tla.Num).Value), ok
	}
	return base + "." + exported(arg.(*tla.Str).Value), ok
}

func (g *generator) prime(c *ctx, e *tla.Op) (string, bool) {
	id, ok := e.Args[0].(*tla.Ident)
	if !ok || g.p.Vars[id.Name] == nil || c.lookup(id.Name) != nil {
		fail(e.Pos, "only variables can be primed in generated code")
	}
	l := c.primes[id.Name]
	if l == nil && !g.primed[id.Name] {
		panic(needNext{id.Name})
	}
	if l == nil {
		fail(e.Pos, "%s' is used before it has a value", id.Name)
	}
	return l.expr, true
}

// key writes the index that stands for a function's argument.
func (g *generator) key(c *ctx, t *types.Type, arg tla.Expr) string {
	code := g.as(c, arg, t.Key)
	index := g.keyOf(t, code)
	if text := g.tagText(c, arg); text != "" && text == t.DomText {
		return index
	}
	return "engine.Key(" + index + ", c.f.domain" + g.part(t) + ")"
}

// keyOf writes the index of a key given as Go code.
func (g *generator) keyOf(t *types.Type, code string) string {
	k := t.Key.Find()
	first := "c.f.first" + g.part(t)
	switch k.Kind {
	case types.Int:
		return code + "-" + first
	case types.Atom:
		return "int(" + code + ")-" + first
	}
	return g.bit(k, code) + "-" + first
}

func (g *generator) tagText(c *ctx, e tla.Expr) string {
	if id, ok := e.(*tla.Ident); ok {
		if l := c.lookup(id.Name); l != nil && l.tag != nil {
			return l.tag.Text()
		}
	}
	return ""
}

// bit writes the number of an element.
func (g *generator) bit(t *types.Type, code string) string {
	t = t.Find()
	switch t.Kind {
	case types.Int, types.Var:
		return code + "-c.intLo"
	case types.Atom:
		return "int(" + code + ")"
	case types.Bool:
		return "engine.B(" + code + ")"
	}
	return "c.u." + lower(g.part(t)) + ".Index(" + code + ")"
}

// element is the inverse of bit.
func (g *generator) element(t *types.Type, code string) string {
	t = t.Find()
	switch t.Kind {
	case types.Int, types.Var:
		return code + "+c.intLo"
	case types.Atom:
		return "engine.Atom(" + code + ")"
	case types.Bool:
		return "(" + code + " == 1)"
	}
	return "c.u." + lower(g.part(t)) + ".Elems[" + code + "]"
}

// expr writes an expression as a value of its own type.
func (g *generator) expr(c *ctx, e tla.Expr) string {
	switch e := e.(type) {
	case *tla.Num:
		return strconv.Itoa(e.Value)
	case *tla.Bool:
		return strconv.FormatBool(e.Value)
	case *tla.Str:
		return g.consts[e.Value]
	case *tla.Ident:
		return g.ident(c, e)
	case *tla.Call:
		return g.call(c, e)
	case *tla.Op:
		return g.op(c, e)
	case *tla.And:
		return g.chain(c, e.List, " && ")
	case *tla.Or:
		return g.chain(c, e.List, " || ")
	case *tla.Index, *tla.Field:
		code, _ := g.place(c, e)
		return code
	case *tla.AtSign:
		return c.lookup("@").expr
	case *tla.RecLit:
		t := c.typeOf(e)
		var parts []string
		for _, f := range e.Fields {
			parts = append(parts, exported(f.Name)+": "+g.as(c, f.Expr, t.Fields[f.Name]))
		}
		return g.goType(t) + "{" + strings.Join(parts, ", ") + "}"
	case *tla.Tuple:
		t := c.typeOf(e)
		var parts []string
		for i, x := range e.Elems {
			if t.Kind == types.Seq {
				parts = append(parts, g.as(c, x, t.Elem))
			} else {
				parts = append(parts, "F"+strconv.Itoa(i+1)+": "+g.as(c, x, t.Tup[i]))
			}
		}
		if t.Kind == types.Seq {
			elem := g.goType(t.Elem)
			// Parentheses keep gofmt from making a condition with it ambiguous.
			return fmt.Sprintf("(engine.Seq[%s]{N: %d, E: [engine.SeqCap]%s{%s}})", elem, len(parts), elem,
				strings.Join(parts, ", "))
		}
		return g.goType(t) + "{" + strings.Join(parts, ", ") + "}"
	case *tla.SetLit, *tla.Cross, *tla.RecSet:
		return g.set(c, e)
	case *tla.FnSet:
		fail(e.Pos, "a set of functions is supported after \\in only in generated code")
	case *tla.Quant, *tla.Choose, *tla.Filter, *tla.MapSet, *tla.FnLit, *tla.Except, *tla.If, *tla.Case, *tla.Let:
		t := c.typeOf(e)
		return g.closure(t, func() { g.ret(c, e, t) })
	}
	fail(e.Where(), "this is not supported in generated code")
	return ""
}

func (g *generator) chain(c *ctx, list []tla.Expr, op string) string {
	var parts []string
	for _, x := range list {
		parts = append(parts, g.expr(c, x))
	}
	return "(" + strings.Join(parts, op) + ")"
}

func (g *generator) ident(c *ctx, e *tla.Ident) string {
	if l := c.lookup(e.Name); l != nil {
		switch {
		case l.lazy:
			return l.expr + "()"
		case l.ptr:
			return "(*" + l.expr + ")"
		case l.expr == "":
			fail(e.Pos, "operator %s needs arguments", e.Name)
		}
		return l.expr
	}
	if _, ok := g.p.Vars[e.Name]; ok {
		return "c.s." + lower(e.Name)
	}
	if code, ok := g.hoist(e.Name); ok {
		return code
	}
	if inst := c.inst.Calls[e]; inst != nil {
		return g.function(e.Pos, inst) + "()"
	}
	if e.Name == "BOOLEAN" {
		return "engine.Set{Lo: 3}"
	}
	fail(e.Pos, "%s cannot be used here in generated code", e.Name)
	return ""
}

// function returns the method that computes an operator, to be written later.
func (g *generator) function(pos tla.Pos, x *types.Instance) string {
	if g.p.Levels[x.Def.Name] > eval.StateLevel {
		fail(pos, "action %s is used as a value", x.Def.Name)
	}
	name, ok := g.names[x]
	if !ok {
		name = g.global(lower(x.Def.Name))
		g.names[x] = name
		g.queue = append(g.queue, x)
	}
	return "c." + name
}

func (g *generator) call(c *ctx, e *tla.Call) string {
	inst := c.inst.Calls[e]
	if inst == nil {
		return g.standard(c, e)
	}
	var args []string
	for i, a := range e.Args {
		args = append(args, g.as(c, a, inst.Params[i].Type))
	}
	var f string
	if inst.Outer != nil {
		f = g.names[inst]
		if f == "" {
			fail(e.Pos, "operator %s is not in scope in the generated code", e.Name)
		}
	} else {
		f = g.function(e.Pos, inst)
	}
	return f + "(" + strings.Join(args, ", ") + ")"
}

func (g *generator) standard(c *ctx, e *tla.Call) string {
	arg := func(i int) string { return g.expr(c, e.Args[i]) }
	seq := func(i int) string {
		t := c.typeOf(e.Args[i])
		if t.Kind == types.Opt {
			return "engine.Inner(" + arg(i) + ")"
		}
		return arg(i)
	}
	switch e.Name {
	case "Cardinality":
		return g.set(c, e.Args[0]) + ".Len()"
	case "IsFiniteSet":
		return "true"
	case "Len":
		base, _ := g.place(c, e.Args[0])
		return base + ".N"
	case "Append":
		return seq(0) + ".Append(" + g.as(c, e.Args[1], c.typeOf(e).Elem) + ")"
	case "Head":
		return seq(0) + ".Head()"
	case "Tail":
		return seq(0) + ".Tail()"
	case "SubSeq":
		return seq(0) + ".Sub(" + arg(1) + ", " + arg(2) + ")"
	case "SelectSeq":
		t := c.typeOf(e)
		return g.closure(t, func() {
			l := e.Args[1].(*tla.Lambda)
			s, x := g.fresh("seq"), g.fresh(l.Params[0].Name)
			out := g.fresh("out")
			g.emit("%s := %s\nvar %s %s", s, seq(0), out, g.goType(t))
			g.emit("for _, %s := range %s.E[:%s.N] {", x, s, s)
			inner := c.bind(&local{name: l.Params[0].Name, expr: x, typ: t.Elem})
			g.emit("if %s {\n%s = %s.Append(%s)\n}\n}\nreturn %s", g.expr(inner, l.Body), out, out, x, out)
		})
	}
	fail(e.Pos, "%s is not supported in generated code", e.Name)
	return ""
}

func (g *generator) op(c *ctx, e *tla.Op) string {
	arg := func(i int) string { return g.expr(c, e.Args[i]) }
	switch e.Name {
	case "'":
		code, _ := g.prime(c, e)
		return code
	case "~":
		return not(g.expr(c, e.Args[0]))
	case "=>":
		return "(" + not(g.expr(c, e.Args[0])) + " || " + g.expr(c, e.Args[1]) + ")"
	case "<=>":
		return "(" + g.expr(c, e.Args[0]) + " == " + g.expr(c, e.Args[1]) + ")"
	case "=":
		return g.equal(c, e.Args[0], e.Args[1])
	case "#":
		return not(g.equal(c, e.Args[0], e.Args[1]))
	case `\in`, `\notin`:
		code := g.memberOf(c, e.Args[0], e.Args[1])
		if e.Name == `\notin` {
			return not(code)
		}
		return code
	case `\subseteq`, `\supseteq`, `\subset`:
		a, b := e.Args[0], e.Args[1]
		if e.Name == `\supseteq` {
			a, b = b, a
		}
		if e.Name == `\subset` {
			return "(" + g.set(c, a) + ".In(" + g.set(c, b) + ") && " + not(g.equal(c, a, b)) + ")"
		}
		return g.set(c, a) + ".In(" + g.set(c, b) + ")"
	case "SUBSET", "UNION", "DOMAIN", `\cup`, `\cap`, `\`, "..":
		return g.set(c, e)
	case "<", ">", "<=", ">=":
		return "(" + arg(0) + " " + e.Name + " " + arg(1) + ")"
	case "+":
		return "(" + arg(0) + " + " + arg(1) + ")"
	case "*":
		return "engine.Int32(" + arg(0) + " * " + arg(1) + ")"
	case "-":
		if len(e.Args) == 1 {
			return "(-" + arg(0) + ")"
		}
		return "(" + arg(0) + " - " + arg(1) + ")"
	case `\div`:
		return "engine.FloorDiv(" + arg(0) + ", " + arg(1) + ")"
	case "%":
		return "engine.Mod(" + arg(0) + ", " + arg(1) + ")"
	case "^":
		return "engine.Pow(" + arg(0) + ", " + arg(1) + ")"
	case `\o`:
		t := c.typeOf(e)
		return g.as(c, e.Args[0], t) + ".Concat(" + g.as(c, e.Args[1], t) + ")"
	}
	fail(e.Pos, "operator %s is not supported here in generated code", e.Name)
	return ""
}

// equal writes a comparison.
func (g *generator) equal(c *ctx, a, b tla.Expr) string {
	ta, tb := c.typeOf(a), c.typeOf(b)
	if ta.Kind == types.Set && !ta.Elem.Bits() {
		return g.set(c, a) + ".Same(" + g.set(c, b) + ")"
	}
	t := ta
	if tb.Kind == types.Opt {
		t = tb
	}
	// An empty sequence is told by its length.
	for _, x := range [][2]tla.Expr{{a, b}, {b, a}} {
		if tup, ok := x[1].(*tla.Tuple); ok && len(tup.Elems) == 0 && c.typeOf(x[0]).Kind == types.Seq {
			base, _ := g.place(c, x[0])
			return "(" + base + ".N == 0)"
		}
		if s, ok := x[1].(*tla.SetLit); ok && len(s.Elems) == 0 && c.typeOf(x[0]).Kind == types.Set {
			return "(" + g.set(c, x[0]) + ".Len() == 0)"
		}
	}
	return "(" + g.as(c, a, t) + " == " + g.as(c, b, t) + ")"
}

// ret writes statements that return the value of e as type want.
func (g *generator) ret(c *ctx, e tla.Expr, want *types.Type) {
	switch e := e.(type) {
	case *tla.If:
		g.emit("if %s {", bare(g.expr(c, e.Cond)))
		g.ret(c, e.Then, want)
		g.emit("}")
		g.ret(c, e.Else, want)
	case *tla.Case:
		for _, a := range e.Arms {
			g.emit("if %s {", bare(g.expr(c, a.Guard)))
			g.ret(c, a.Body, want)
			g.emit("}")
		}
		if e.Other != nil {
			g.ret(c, e.Other, want)
		} else {
			g.emit("panic(engine.Failure{Msg: %q})", where(e.Pos)+": CASE: no guard holds, and there is no OTHER")
		}
	case *tla.Let:
		g.let(c, e.Defs, func(c *ctx) { g.ret(c, e.Body, want) })
	case *tla.Quant:
		g.loops(c, e.Bounds, func(c *ctx) {
			if e.Exists {
				g.emit("if %s {\nreturn true\n}", bare(g.expr(c, e.Body)))
			} else {
				g.emit("if %s {\nreturn false\n}", bare(not(g.expr(c, e.Body))))
			}
		})
		g.emit("return %v", !e.Exists)
	case *tla.Choose:
		g.iterate(c, e.Bound.Set, e.Bound, func(c *ctx, elem string) {
			g.emit("if %s {\nreturn %s\n}", bare(g.expr(c, e.Body)), g.convert(elem, c.typeOf(e.Bound.Set).Elem, want))
		})
		g.emit("panic(engine.Failure{Msg: %q})", where(e.Pos)+": CHOOSE: no element satisfies the predicate")
	case *tla.Filter:
		t := c.typeOf(e)
		out := g.fresh("set")
		g.emit("var %s %s", out, g.goType(t))
		g.iterate(c, e.Bound.Set, e.Bound, func(c *ctx, elem string) {
			g.emit("if %s {", bare(g.expr(c, e.Pred)))
			g.add(t, out, elem)
			g.emit("}")
		})
		g.emit("return %s", out)
	case *tla.MapSet:
		t := c.typeOf(e)
		out := g.fresh("set")
		g.emit("var %s %s", out, g.goType(t))
		g.loops(c, e.Bounds, func(c *ctx) { g.add(t, out, g.as(c, e.Body, t.Elem)) })
		g.emit("return %s", out)
	case *tla.FnLit:
		g.functionLit(c, e)
	case *tla.Except:
		t := c.typeOf(e)
		out := g.fresh("new")
		g.emit("%s := %s", out, g.as(c, e.Fn, t))
		for _, u := range e.Updates {
			place := out
			cur := t
			for _, s := range u.Path {
				if cur.Kind == types.Opt {
					place, cur = place+".Get()", cur.Elem.Find()
				}
				if s.Field != "" {
					place, cur = place+"."+exported(s.Field), cur.Fields[s.Field].Find()
					continue
				}
				place, _ = g.indexed(c, place, true, cur, s.Args[0])
				cur = step(cur, s.Args[0])
			}
			inner := c.bind(&local{name: "@", expr: place, typ: cur})
			g.emit("%s = %s", place, g.as(inner, u.Value, cur))
		}
		g.emit("return %s", g.convert(out, t, want))
	default:
		g.emit("return %s", bare(g.as(c, e, want)))
	}
}

// step is the type of a function's, sequence's, tuple's or record's component.
func step(t *types.Type, arg tla.Expr) *types.Type {
	switch t.Kind {
	case types.Tup:
		return t.Tup[arg.(*tla.Num).Value-1].Find()
	case types.Rec:
		return t.Fields[arg.(*tla.Str).Value].Find()
	}
	return t.Elem.Find()
}

// functionLit writes [x \in S |-> e].
func (g *generator) functionLit(c *ctx, e *tla.FnLit) {
	t := c.typeOf(e)
	out := g.fresh("fn")
	g.emit("var %s %s", out, g.goType(t))
	b := e.Bounds[0]
	if t.Kind == types.Seq {
		g.iterate(c, b.Set, b, func(c *ctx, _ string) { g.emit("%s = %s.Append(%s)", out, out, g.as(c, e.Body, t.Elem)) })
		g.emit("return %s", out)
		return
	}
	same := b.Set != nil && domText(b.Set) != "" && domText(b.Set) == t.DomText || b.Set == t.Dom
	keys := g.fresh("keys")
	if !same {
		g.emit("var %s engine.Set", keys)
	}
	g.iterate(c, b.Set, b, func(c *ctx, elem string) {
		i := g.fresh("i")
		g.emit("%s := %s", i, g.keyOf(t, elem))
		if !same {
			g.emit("%s = %s.Or(engine.Bit(%s))", keys, keys, i)
		}
		g.emit("%s[%s] = %s", out, i, g.as(c, e.Body, t.Elem))
	})
	if !same {
		g.emit("if %s != c.f.domain%s {\npanic(engine.Failure{Msg: %q})\n}", keys, g.part(t),
			where(e.Pos)+": this function's domain differs from that of the other functions of its type")
	}
	g.emit("return %s", out)
}

func domText(e tla.Expr) string {
	if id, ok := e.(*tla.Ident); ok {
		return id.Name
	}
	return ""
}

// let writes a LET's definitions as local variables and functions and continues with what follows.
func (g *generator) let(c *ctx, defs []*tla.Def, body func(*ctx)) {
	if len(defs) == 0 {
		body(c)
		return
	}
	d := defs[0]
	if len(d.Params) > 0 {
		inner := c.bind(&local{name: d.Name, def: d, in: c})
		for _, x := range c.inst.Lets[d] {
			g.localFunction(inner, x)
		}
		g.let(inner, defs[1:], body)
		return
	}
	t := c.typeOf(d.Body)
	l := &local{name: d.Name, typ: t, def: d, in: c}
	if g.levelIn(c, d.Body) > eval.StateLevel {
		// An action: it is expanded where it is used.
		g.let(c.bind(l), defs[1:], body)
		return
	}
	name := g.fresh(d.Name)
	l.expr = name
	l.tag = tagOf(c, d.Body)
	var decl string
	if code, ok := g.place(c, d.Body); ok && !t.Scalar() && t.Kind != types.Set {
		if strings.HasPrefix(code, "(*") {
			code = code[2 : len(code)-1]
			decl = name + " := " + code
		} else {
			decl = name + " := &" + code
		}
		if _, isName := d.Body.(*tla.Ident); isName && isPtr(c, d.Body) {
			decl = name + " := " + code
		}
		l.ptr = true
	} else if g.mayFail(c, d.Body) {
		l.lazy = true
		decl = name + " := func() " + g.goType(t) + " {\n" + g.capture(func() { g.ret(c, d.Body, t) }) + "}"
	} else {
		decl = name + " := " + g.expr(c, d.Body)
	}
	rest := g.capture(func() { g.let(c.bind(l), defs[1:], body) })
	if mentions(rest, name) {
		g.emit("%s", decl)
	}
	g.buf.WriteString(rest)
}

func isPtr(c *ctx, e tla.Expr) bool {
	id, ok := e.(*tla.Ident)
	if !ok {
		return false
	}
	l := c.lookup(id.Name)
	return l != nil && l.ptr
}

func tagOf(c *ctx, e tla.Expr) *types.Tag {
	if id, ok := e.(*tla.Ident); ok {
		if l := c.lookup(id.Name); l != nil {
			return l.tag
		}
	}
	return nil
}

// localFunction writes an operator of a LET as a Go function value.
func (g *generator) localFunction(c *ctx, x *types.Instance) {
	name := g.fresh(x.Def.Name)
	g.names[x] = name
	params, inner := g.params(c, x)
	sig := "func(" + params + ") " + g.goType(x.Result)
	body := g.capture(func() { g.ret(inner, x.Def.Body, x.Result) })
	if x.Def.Recursive {
		g.emit("var %s %s", name, sig)
		g.emit("%s = %s {\n%s}", name, sig, body)
	} else {
		g.emit("%s := %s {\n%s}", name, sig, body)
	}
	g.emit("_ = %s", name)
}

// params writes an operator's parameters and binds them.
func (g *generator) params(c *ctx, x *types.Instance) (string, *ctx) {
	inner := &ctx{inst: x, names: c.names, primes: c.primes}
	var parts []string
	for _, b := range x.Params {
		n := g.fresh(b.Name)
		parts = append(parts, n+" "+g.goType(b.Type))
		inner = inner.bind(&local{name: b.Name, expr: n, typ: b.Type, tag: b.Tag})
	}
	return strings.Join(parts, ", "), inner
}

// levelIn is the level of an expression, seen through local definitions.
func (g *generator) levelIn(c *ctx, e tla.Expr) eval.Level {
	return eval.LevelOf(e, func(name string) eval.Level {
		if l := c.lookup(name); l != nil {
			if l.def != nil && l.in != nil {
				return g.levelIn(l.in, l.def.Body)
			}
			return eval.Constant
		}
		return g.p.Levels[name]
	})
}

// mayFail says whether evaluating an expression might fail, so that it must not be done unless its value is needed.
func (g *generator) mayFail(c *ctx, e tla.Expr) bool {
	fails := false
	eval.Walk(e, func(x tla.Expr) bool {
		switch x := x.(type) {
		case *tla.Choose, *tla.Index:
			if i, ok := x.(*tla.Index); ok && len(i.Args) == 1 {
				if t := c.inst.Types[i.Fn]; t != nil && t.Find().Kind == types.Fun {
					if text := g.tagText(c, i.Args[0]); text != "" && text == t.Find().DomText {
						return true
					}
				}
			}
			fails = true
		case *tla.Case:
			fails = fails || x.Other == nil
		case *tla.Call:
			d := g.p.Module.Def(x.Name)
			switch {
			case x.Name == "Head" || x.Name == "Tail" || x.Name == "SubSeq":
				fails = true
			case d != nil:
				fails = fails || g.defFails(d, c.inst.Calls[x])
			case c.lookup(x.Name) != nil:
				fails = true
			}
		case *tla.Ident:
			if l := c.lookup(x.Name); l != nil {
				fails = fails || l.lazy
			} else if d := g.p.Module.Def(x.Name); d != nil && g.p.Levels[x.Name] > eval.Constant {
				fails = fails || g.defFails(d, c.inst.Calls[x])
			}
		case *tla.Op:
			fails = fails || x.Name == `\div` || x.Name == "%" || x.Name == "^"
		case *tla.Field:
			if t := c.inst.Types[x.Rec]; t != nil && t.Find().Kind == types.Opt {
				fails = true
			}
		}
		return !fails
	})
	return fails
}

func (g *generator) defFails(d *tla.Def, x *types.Instance) bool {
	if x == nil || d.Recursive {
		return true
	}
	c := &ctx{inst: x}
	for _, b := range x.Params {
		c = c.bind(&local{name: b.Name, expr: b.Name, typ: b.Type, tag: b.Tag})
	}
	return g.mayFail(c, d.Body)
}
