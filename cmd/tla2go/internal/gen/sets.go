package gen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"linearize.example/checker/conform/tla"
	"linearize.example/cmd/tla2go/internal/types"
)

// unfold looks through a name without parameters to its definition, unless its value is computed at the start; the
// context returned is that of the expression returned.
func (g *generator) unfold(c *ctx, e tla.Expr) (*ctx, tla.Expr) {
	for {
		id, ok := e.(*tla.Ident)
		if !ok || c.lookup(id.Name) != nil {
			return c, e
		}
		d := g.p.Module.Def(id.Name)
		inst := c.inst.Calls[e]
		if d == nil || inst == nil || d.Bounds != nil || !structural(d.Body) {
			return c, e
		}
		c, e = &ctx{inst: inst, primes: c.primes}, d.Body
	}
}

// structural says whether a set is written so that membership and enumeration need no set value.
func structural(e tla.Expr) bool {
	switch e := e.(type) {
	case *tla.FnSet, *tla.RecSet, *tla.Cross, *tla.Ident:
		return true
	case *tla.Op:
		switch e.Name {
		case "SUBSET", "..":
			return true
		case `\cup`:
			return structural(e.Args[0]) || structural(e.Args[1])
		case "UNION":
			_, ok := e.Args[0].(*tla.MapSet)
			return ok
		}
	case *tla.Call:
		return e.Name == "Seq"
	}
	return false
}

// add writes the addition of an element to a set variable.
func (g *generator) add(t *types.Type, out, elem string) {
	if t.Elem.Bits() {
		g.emit("%s = %s.Or(engine.Bit(%s))", out, out, g.bit(t.Elem, elem))
	} else {
		g.emit("%s = %s.Add(%s)", out, out, elem)
	}
}

// loops writes nested loops over bounds.
func (g *generator) loops(c *ctx, bounds []tla.Bound, body func(*ctx)) {
	type one struct {
		b     tla.Bound
		names []string
	}
	var flat []one
	for _, b := range bounds {
		if b.Tuple {
			flat = append(flat, one{b, b.Names})
			continue
		}
		for _, n := range b.Names {
			flat = append(flat, one{tla.Bound{Names: []string{n}, Set: b.Set, Pos: b.Pos}, []string{n}})
		}
	}
	outer := c
	var nest func(c *ctx, i int)
	nest = func(c *ctx, i int) {
		if i == len(flat) {
			body(c)
			return
		}
		// The sets are evaluated outside of the names that these bounds bind.
		g.iterateIn(outer, c, flat[i].b.Set, flat[i].b, func(c *ctx, _ string) { nest(c, i+1) })
	}
	nest(c, 0)
}

// iterate writes a loop over a set, with the bound's names bound in the body.
func (g *generator) iterate(c *ctx, set tla.Expr, b tla.Bound, body func(c *ctx, elem string)) {
	g.iterateIn(c, c, set, b, body)
}

func (g *generator) iterateIn(sc, c *ctx, set tla.Expr, b tla.Bound, body func(c *ctx, elem string)) {
	t := sc.typeOf(set).Elem.Find()
	name := g.fresh(strings.Join(b.Names, ""))
	g.each(sc, set, name, func() string {
		inner := c
		if b.Tuple {
			for i, n := range b.Names {
				inner = inner.bind(&local{name: n, expr: name + ".F" + strconv.Itoa(i+1), typ: t.Tup[i]})
			}
		} else {
			inner = inner.bind(&local{name: b.Names[0], expr: name, typ: t, tag: g.tagOfSet(sc, set)})
		}
		return g.capture(func() { body(inner, name) })
	})
}

func (g *generator) tagOfSet(c *ctx, e tla.Expr) *types.Tag {
	return types.NamedTag(types.SetName(e, func(n string) bool { return c.lookup(n) != nil }))
}

// each writes a loop that gives name every element of a set in turn; body returns the code inside.
func (g *generator) each(c *ctx, e tla.Expr, name string, body func() string) {
	c, e = g.unfold(c, e)
	t := c.typeOf(e)
	elem := t.Elem.Find()
	use := func(code string) string {
		if !mentions(code, name) {
			return "_ = " + name + "\n" + code
		}
		return code
	}
	switch x := e.(type) {
	case *tla.Op:
		switch x.Name {
		case "..":
			lo, hi := g.expr(c, x.Args[0]), g.expr(c, x.Args[1])
			g.emit("for %s, end := %s, %s; %s <= end; %s++ {\n%s}", name, lo, hi, name, name, body())
			return
		case "DOMAIN":
			if c.typeOf(x.Args[0]).Kind == types.Seq {
				base, _ := g.place(c, x.Args[0])
				g.emit("for %s, end := 1, %s.N; %s <= end; %s++ {\n%s}", name, base, name, name, body())
				return
			}
		case "SUBSET":
			g.emit("for _, %s := range %s.Subsets() {\n%s}", name, g.set(c, x.Args[0]), use(body()))
			return
		}
	case *tla.Filter:
		g.each(c, x.Bound.Set, name, func() string {
			inner := c
			et := c.typeOf(x.Bound.Set).Elem.Find()
			if x.Bound.Tuple {
				for i, n := range x.Bound.Names {
					inner = inner.bind(&local{name: n, expr: name + ".F" + strconv.Itoa(i+1), typ: et.Tup[i]})
				}
			} else {
				inner = inner.bind(&local{name: x.Bound.Names[0], expr: name, typ: et, tag: g.tagOfSet(c, x.Bound.Set)})
			}
			return "if " + bare(g.expr(inner, x.Pred)) + " {\n" + body() + "}\n"
		})
		return
	case *tla.Cross:
		g.nested(c, x.Sets, func(parts []string) string {
			var fs []string
			for i, p := range parts {
				fs = append(fs, "F"+strconv.Itoa(i+1)+": "+p)
			}
			return name + " := " + g.goType(elem) + "{" + strings.Join(fs, ", ") + "}\n" + use(body())
		})
		return
	case *tla.RecSet:
		var sets []tla.Expr
		for _, f := range x.Fields {
			sets = append(sets, f.Expr)
		}
		g.nested(c, sets, func(parts []string) string {
			var fs []string
			for i, p := range parts {
				fs = append(fs, exported(x.Fields[i].Name)+": "+p)
			}
			return name + " := " + g.goType(elem) + "{" + strings.Join(fs, ", ") + "}\n" + use(body())
		})
		return
	}
	code := header(g.set(c, e))
	if !elem.Bits() {
		inner := body()
		if mentions(inner, name) {
			g.emit("for _, %s := range %s {\n%s}", name, code, inner)
		} else {
			g.emit("for range %s {\n%s}", code, inner)
		}
		return
	}
	m := g.fresh("rest")
	inner := body()
	pop := name + " := " + g.element(elem, m+".Pop()")
	g.emit("for %s := %s; %s.Some(); {\n%s\n%s}", m, code, m, pop, use(inner))
}

// nested writes loops over several sets.
func (g *generator) nested(c *ctx, sets []tla.Expr, body func(parts []string) string) {
	var names []string
	var nest func(i int) string
	nest = func(i int) string {
		if i == len(sets) {
			return body(names)
		}
		n := g.fresh("part")
		names = append(names, n)
		return g.capture(func() { g.each(c, sets[i], n, func() string { return nest(i + 1) }) })
	}
	g.buf.WriteString(nest(0))
}

// set writes a set as a value.
func (g *generator) set(c *ctx, e tla.Expr) string {
	t := c.typeOf(e)
	if t.Kind == types.Opt {
		return "engine.Inner(" + g.expr(c, e) + ")"
	}
	bits := t.Elem.Bits()
	switch x := e.(type) {
	case *tla.Ident:
		if c.lookup(x.Name) != nil {
			return g.ident(c, x)
		}
		if _, ok := g.p.Vars[x.Name]; ok {
			return g.ident(c, x)
		}
		if x.Name == "BOOLEAN" {
			return "engine.Set{Lo: 3}"
		}
		if code, ok := g.hoist(x.Name); ok {
			return code
		}
		if !bits {
			return g.memo(c, x)
		}
		return g.ident(c, x)
	case *tla.SetLit:
		if len(x.Elems) == 0 && bits {
			return "engine.Set{}"
		}
		if bits {
			var parts []string
			for _, y := range x.Elems {
				parts = append(parts, "engine.Bit("+g.bit(t.Elem, g.as(c, y, t.Elem))+")")
			}
			code := parts[0]
			for _, p := range parts[1:] {
				code += ".Or(" + p + ")"
			}
			return code
		}
		code := g.goType(t) + "(nil)"
		for _, y := range x.Elems {
			code += ".Add(" + g.as(c, y, t.Elem) + ")"
		}
		return code
	case *tla.Op:
		switch x.Name {
		case `\cup`, `\cap`, `\`:
			method := map[string]string{`\cup`: "Or", `\cap`: "And", `\`: "AndNot"}[x.Name]
			return g.sub(c, x.Args[0], t) + "." + method + "(" + g.sub(c, x.Args[1], t) + ")"
		case "..":
			return "engine.Range(" + g.expr(c, x.Args[0]) + "-c.intLo, " + g.expr(c, x.Args[1]) + "-c.intLo)"
		case "DOMAIN":
			f := c.typeOf(x.Args[0])
			switch f.Kind {
			case types.Fun:
				return "c.f.keys" + g.part(f)
			case types.Seq:
				base, _ := g.place(c, x.Args[0])
				return "engine.Range(1-c.intLo, " + base + ".N-c.intLo)"
			}
			return fmt.Sprintf("engine.Range(1-c.intLo, %d-c.intLo)", len(f.Tup))
		case "UNION":
			return g.closure(t, func() {
				out, s := g.fresh("union"), g.fresh("set")
				g.emit("var %s %s", out, g.goType(t))
				g.each(c, x.Args[0], s, func() string { return out + " = " + out + ".Or(" + s + ")\n" })
				g.emit("return %s", out)
			})
		case "SUBSET":
			if bits {
				break
			}
			return g.set(c, x.Args[0]) + ".Subsets()"
		}
	}
	switch e.(type) {
	case *tla.Cross, *tla.RecSet:
		return g.closure(t, func() {
			out, x := g.fresh("set"), g.fresh("elem")
			g.emit("var %s %s", out, g.goType(t))
			g.each(c, e, x, func() string { return g.capture(func() { g.add(t, out, x) }) })
			g.emit("return %s", out)
		})
	case *tla.FnSet:
		fail(e.Where(), "a set of functions is supported after \\in only in generated code")
	case *tla.Op:
		if c.typeOf(e).Elem.Universe {
			fail(e.Where(), "a set of sets cannot be stored here")
		}
	}
	return g.expr(c, e)
}

// sub writes an operand of a set operation, whose elements may be atoms where the result's are an Opt.
func (g *generator) sub(c *ctx, e tla.Expr, t *types.Type) string {
	s := c.typeOf(e)
	if s.Kind == types.Set && s.Elem.Find().Kind != t.Elem.Find().Kind && t.Elem.Find().Kind == types.Opt {
		return g.closure(t, func() {
			out, x := g.fresh("set"), g.fresh("elem")
			g.emit("var %s %s", out, g.goType(t))
			g.each(c, e, x, func() string {
				return g.capture(func() { g.add(t, out, g.convert(x, s.Elem, t.Elem)) })
			})
			g.emit("return %s", out)
		})
	}
	return g.set(c, e)
}

// memo writes the use of a definition whose set is kept while the state is current.
func (g *generator) memo(c *ctx, e *tla.Ident) string {
	inst := c.inst.Calls[e]
	if inst == nil {
		fail(e.Pos, "%s cannot be used as a set here in generated code", e.Name)
	}
	f := g.function(e.Pos, inst)
	name := strings.TrimPrefix(f, "c.")
	for _, m := range g.memos {
		if m.name == name {
			return f + "()"
		}
	}
	g.memos = append(g.memos, memo{name, g.goType(inst.Result)})
	return f + "()"
}

// memberOf writes v \in s.
func (g *generator) memberOf(c *ctx, v, s tla.Expr) string {
	t := c.typeOf(v)
	if place, ok := g.place(c, v); ok {
		if isPtr(c, v) {
			place = "(*" + place + ")"
		}
		return g.member(place, t, c, s)
	}
	code := g.expr(c, v)
	if simple(code) {
		return g.member(code, t, c, s)
	}
	x := g.fresh("x")
	return "func() bool {\n" + x + " := " + code + "\nreturn " + g.member(x, t, c, s) + "\n}()"
}

// simple says whether Go code is a name or a number, which may be written twice.
func simple(code string) bool {
	return !strings.ContainsAny(code, " ({")
}

// member writes x \in e for Go code x that may be repeated.
func (g *generator) member(x string, t *types.Type, c *ctx, e tla.Expr) string {
	t = t.Find()
	c, e = g.unfold(c, e)
	elem := c.typeOf(e).Elem.Find()
	if op, ok := e.(*tla.Op); ok {
		switch op.Name {
		case `\cup`:
			return "(" + g.member(x, t, c, op.Args[0]) + " || " + g.member(x, t, c, op.Args[1]) + ")"
		case `\cap`:
			return "(" + g.member(x, t, c, op.Args[0]) + " && " + g.member(x, t, c, op.Args[1]) + ")"
		case `\`:
			return "(" + g.member(x, t, c, op.Args[0]) + " && " + not(g.member(x, t, c, op.Args[1])) + ")"
		}
	}
	if t.Kind == types.Opt && elem.Kind != types.Opt {
		if elem.Kind == types.Atom {
			return "(!" + x + ".Is && " + g.member(x+".Atom", t.Key, c, e) + ")"
		}
		return "(" + x + ".Is && " + g.member(x+".V", t.Elem, c, e) + ")"
	}
	if elem.Kind == types.Opt && t.Kind != types.Opt {
		x, t = g.convert(x, t, elem), elem
	}
	switch s := e.(type) {
	case *tla.Ident:
		if c.lookup(s.Name) == nil {
			switch s.Name {
			case "BOOLEAN", "Int", "STRING":
				return "true"
			case "Nat":
				return "(" + x + " >= 0)"
			}
		}
	case *tla.Op:
		switch s.Name {
		case "..":
			return "(" + g.expr(c, s.Args[0]) + " <= " + x + " && " + x + " <= " + g.expr(c, s.Args[1]) + ")"
		case "SUBSET":
			inner := t.Elem.Find()
			if inner.Bits() {
				return x + ".In(" + g.set(c, s.Args[0]) + ")"
			}
			y := g.fresh("y")
			return g.every("", "for _, "+y+" := range "+x+" {\n", y, g.member(y, inner, c, s.Args[0]))
		case "UNION":
			if m, ok := s.Args[0].(*tla.MapSet); ok {
				return "func() bool {\n" + g.capture(func() {
					g.loops(c, m.Bounds, func(c *ctx) { g.emit("if %s {\nreturn true\n}", bare(g.member(x, t, c, m.Body))) })
				}) + "return false\n}()"
			}
		}
	case *tla.FnSet:
		return g.memberFunctions(x, t, c, s)
	case *tla.RecSet:
		var parts []string
		for _, f := range s.Fields {
			parts = append(parts, g.member(x+"."+exported(f.Name), t.Fields[f.Name], c, f.Expr))
		}
		return all(parts)
	case *tla.Cross:
		var parts []string
		for i, y := range s.Sets {
			parts = append(parts, g.member(x+".F"+strconv.Itoa(i+1), t.Tup[i], c, y))
		}
		return all(parts)
	case *tla.SetLit:
		var parts []string
		for _, y := range s.Elems {
			parts = append(parts, x+" == "+g.as(c, y, t))
		}
		if len(parts) == 0 {
			return "false"
		}
		return "(" + strings.Join(parts, " || ") + ")"
	case *tla.Filter:
		inner := c
		if s.Bound.Tuple {
			for i, n := range s.Bound.Names {
				inner = inner.bind(&local{name: n, expr: x + ".F" + strconv.Itoa(i+1), typ: t.Tup[i]})
			}
		} else {
			inner = inner.bind(&local{name: s.Bound.Names[0], expr: x, typ: t, tag: g.tagOfSet(c, s.Bound.Set)})
		}
		return "(" + g.member(x, t, c, s.Bound.Set) + " && " + g.expr(inner, s.Pred) + ")"
	case *tla.Call:
		if s.Name == "Seq" && c.inst.Calls[s] == nil {
			y := g.fresh("y")
			return g.every("", "for _, "+y+" := range "+x+".E[:"+x+".N] {\n", y, g.member(y, t.Elem, c, s.Args[0]))
		}
	}
	if elem.Bits() {
		return g.set(c, e) + ".Has(" + g.bit(elem, x) + ")"
	}
	return g.set(c, e) + ".Has(" + x + ")"
}

func (g *generator) memberFunctions(x string, t *types.Type, c *ctx, s *tla.FnSet) string {
	y := g.fresh("y")
	if t.Kind == types.Seq {
		length := "if " + x + ".N != max(0, " + g.expr(c, s.Dom.(*tla.Op).Args[1]) + ") {\nreturn false\n}\n"
		each := "for _, " + y + " := range " + x + ".E[:" + x + ".N] {\n"
		return g.every(length, each, y, g.member(y, t.Elem, c, s.Rng))
	}
	m := g.fresh("rest")
	each := "for " + m + " := c.f.domain" + g.part(t) + "; " + m + ".Some(); {\n" + y + " := &" + x + "[" + m + ".Pop()]\n"
	if t.Elem.Scalar() {
		each = strings.Replace(each, ":= &", ":= ", 1)
	}
	place := y
	if k := t.Elem.Find().Kind; !t.Elem.Scalar() && k != types.Rec && k != types.Tup {
		place = "(*" + y + ")"
	}
	return g.every("", each, y, g.member(place, t.Elem, c, s.Rng))
}

// every writes a function that tests all elements of a loop.
func (g *generator) every(before, loop, name, test string) string {
	if !mentions(test, name) { // such as x \in BOOLEAN
		if before == "" {
			return test
		}
		return "func() bool {\n" + before + "return " + test + "\n}()"
	}
	return "func() bool {\n" + before + loop + "if " + bare(not(test)) + " {\nreturn false\n}\n}\nreturn true\n}()"
}

// all joins conditions, leaving out those that are always true.
func all(parts []string) string {
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "true" })
	if len(parts) == 0 {
		return "true"
	}
	return "(" + strings.Join(parts, " && ") + ")"
}
