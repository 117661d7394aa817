package gen

import (
	"fmt"
	"strconv"
	"strings"

	"linearize.example/checker/conform/tla"
	"linearize.example/cmd/tla2go/internal/types"
)

// node is a place in the packed state: a variable or a part of one.
type node struct {
	name   string
	typ    *types.Type
	elem   *node
	fields []*node
}

func (g *generator) node(name string, t *types.Type) *node {
	t = t.Find()
	n := &node{name: name, typ: t}
	g.nodes = append(g.nodes, n)
	switch t.Kind {
	case types.Fun, types.Seq, types.Opt:
		n.elem = g.node(name+"At", t.Elem)
	case types.Rec:
		for _, f := range t.Sorted() {
			n.fields = append(n.fields, g.node(name+camel(f), t.Fields[f]))
		}
	case types.Tup:
		for i, f := range t.Tup {
			n.fields = append(n.fields, g.node(name+strconv.Itoa(i+1), f))
		}
	}
	return n
}

// fieldNode is the node of a record's field.
func (n *node) fieldNode(name string) *node {
	for i, f := range n.typ.Sorted() {
		if f == name {
			return n.fields[i]
		}
	}
	return nil
}

var scalarMethod = map[types.Kind]string{types.Bool: "Bool", types.Int: "Int", types.Atom: "Atom", types.Set: "Set",
	types.Var: "Int"}

// put writes the storing of a value, given as Go code, at an offset.
func (g *generator) put(n *node, off, code string, addressable bool) {
	if m, ok := scalarMethod[n.typ.Kind]; ok {
		g.emit("c.at.%s.Put%s(n, %s, %s)", n.name, m, off, code)
		return
	}
	if !addressable {
		v := g.fresh("v")
		g.emit("%s := %s", v, code)
		code = v
	}
	ref := "&" + code
	if strings.HasPrefix(code, "(*") {
		ref = code[2 : len(code)-1]
	}
	g.emit("c.put%s(n, %s, %s)", camel(n.name), off, ref)
}

// putExpr writes the storing of an expression's value; cur is Go code of the present value. Only what an EXCEPT changes
// is written.
func (g *generator) putExpr(n *node, off, cur string, c *ctx, e tla.Expr) {
	switch e := e.(type) {
	case *tla.Ident:
		if code, ok := g.place(c, e); ok && code == cur {
			return
		}
	case *tla.AtSign:
		if c.lookup("@").expr == cur {
			return
		}
	case *tla.If:
		then := g.capture(func() { g.putExpr(n, off, cur, c, e.Then) })
		els := g.capture(func() { g.putExpr(n, off, cur, c, e.Else) })
		cond := g.expr(c, e.Cond)
		switch {
		case then == "" && els == "":
		case then == "":
			g.emit("if %s {\n%s}", bare(not(cond)), els)
		case els == "":
			g.emit("if %s {\n%s}", bare(cond), then)
		default:
			g.emit("if %s {\n%s} else {\n%s}", bare(cond), then, els)
		}
		return
	case *tla.Let:
		g.emit("{")
		g.let(c, e.Defs, func(c *ctx) { g.putExpr(n, off, cur, c, e.Body) })
		g.emit("}")
		return
	case *tla.Case:
		for i, a := range e.Arms {
			if i > 0 {
				g.buf.WriteString("} else ")
			}
			g.emit("if %s {", bare(g.expr(c, a.Guard)))
			g.putExpr(n, off, cur, c, a.Body)
		}
		g.emit("} else {")
		if e.Other != nil {
			g.putExpr(n, off, cur, c, e.Other)
		} else {
			g.emit("panic(engine.Failure{Msg: %q})", where(e.Pos)+": CASE: no guard holds, and there is no OTHER")
		}
		g.emit("}")
		return
	case *tla.Except:
		if base, ok := g.place(c, e.Fn); ok && base == cur && separate(e.Updates) && n.typ.Kind != types.Opt {
			for _, u := range e.Updates {
				g.putPath(n, off, cur, c, u.Path, u.Value)
			}
			return
		}
	case *tla.RecLit:
		if n.typ.Kind == types.Rec {
			for _, f := range e.Fields {
				fn := n.fieldNode(f.Name)
				g.putExpr(fn, off+"+c.at."+fn.name+".Off", cur+"."+exported(f.Name), c, f.Expr)
			}
			return
		}
	}
	if code, ok := g.place(c, e); ok && c.typeOf(e).Kind == n.typ.Kind {
		if isPtr(c, e) {
			code = "(*" + code + ")"
		}
		g.put(n, off, code, true)
		return
	}
	g.put(n, off, g.as(c, e, n.typ), false)
}

// putPath stores a value at a path below a node.
func (g *generator) putPath(n *node, off, cur string, c *ctx, path []tla.PathStep, value tla.Expr) {
	if len(path) == 0 {
		inner := c.bind(&local{name: "@", expr: cur, typ: n.typ})
		g.putExpr(n, off, cur, inner, value)
		return
	}
	s := path[0]
	if s.Field != "" || n.typ.Kind == types.Rec {
		name := s.Field
		if name == "" {
			name = s.Args[0].(*tla.Str).Value
		}
		fn := n.fieldNode(name)
		g.putPath(fn, off+"+c.at."+fn.name+".Off", cur+"."+exported(name), c, path[1:], value)
		return
	}
	switch n.typ.Kind {
	case types.Fun:
		i := g.key(c, n.typ, s.Args[0])
		if strings.Contains(i, "(") {
			v := g.fresh("i")
			g.emit("%s := %s", v, i)
			i = v
		}
		g.putPath(n.elem, fmt.Sprintf("%s+(%s)*c.at.%s.Stride", off, i, n.name), cur+"["+i+"]", c, path[1:], value)
	case types.Seq:
		i := g.fresh("i")
		g.emit("%s := %s", i, g.expr(c, s.Args[0]))
		g.putPath(n.elem, fmt.Sprintf("%s+c.at.%sLen.Width+(%s-1)*c.at.%s.Stride", off, n.name, i, n.name),
			"(*"+cur+".At("+i+"))", c, path[1:], value)
	case types.Tup:
		k := s.Args[0].(*tla.Num).Value
		fn := n.fields[k-1]
		g.putPath(fn, off+"+c.at."+fn.name+".Off", cur+".F"+strconv.Itoa(k), c, path[1:], value)
	default:
		fail(s.Args[0].Where(), "EXCEPT below a value that may be a model value is not supported in generated code")
	}
}

// separate says whether the updates of an EXCEPT cannot touch the same place, so that they may be stored one by one.
func separate(us []tla.Update) bool {
	for i := range us {
		for j := range i {
			if !disjoint(us[i].Path, us[j].Path) {
				return false
			}
		}
	}
	return true
}

func disjoint(a, b []tla.PathStep) bool {
	for i := range min(len(a), len(b)) {
		if a[i].Field != b[i].Field {
			return true
		}
	}
	return false
}

// storage writes the functions that load and store the parts of a state.
func (g *generator) storage() {
	for _, n := range g.nodes {
		if _, ok := scalarMethod[n.typ.Kind]; ok {
			continue
		}
		t := g.goType(n.typ)
		g.emit("func (c *Checker) get%s(w []uint64, off int, v *%s) {", camel(n.name), t)
		g.access(n, false)
		g.emit("}\n")
		g.emit("func (c *Checker) put%s(n []uint64, off int, v *%s) {", camel(n.name), t)
		g.access(n, true)
		g.emit("}\n")
	}
}

// access writes the body of a get or put function.
func (g *generator) access(n *node, put bool) {
	at := "c.at." + n.name
	one := func(m *node, off, v string) {
		if method, ok := scalarMethod[m.typ.Kind]; ok {
			if put {
				g.emit("c.at.%s.Put%s(n, %s, %s)", m.name, method, off, v)
			} else {
				g.emit("%s = c.at.%s.Get%s(w, %s)", v, m.name, method, off)
			}
			return
		}
		verb, words := "get", "w"
		if put {
			verb, words = "put", "n"
		}
		g.emit("c.%s%s(%s, %s, &%s)", verb, camel(m.name), words, off, v)
	}
	switch n.typ.Kind {
	case types.Rec:
		for i, f := range n.typ.Sorted() {
			one(n.fields[i], "off+c.at."+n.fields[i].name+".Off", "v."+exported(f))
		}
	case types.Tup:
		for i := range n.typ.Tup {
			one(n.fields[i], "off+c.at."+n.fields[i].name+".Off", "v.F"+strconv.Itoa(i+1))
		}
	case types.Fun:
		g.emit("for rest := c.f.domain%s; rest.Some(); {\ni := rest.Pop()", g.part(n.typ))
		one(n.elem, "off+i*"+at+".Stride", "v[i]")
		g.emit("}")
	case types.Seq:
		if put {
			g.emit("%sLen.PutInt(n, off, v.N)", at)
		} else {
			g.emit("v.N = %sLen.GetInt(w, off)", at)
		}
		g.emit("off += %sLen.Width\nfor i := range v.N {", at)
		one(n.elem, "off", "v.E[i]")
		g.emit("off += %s.Stride\n}", at)
		if put {
			g.emit("engine.Clear(n, off, (int(%s.Max)-v.N)*%s.Stride)", at, at)
		} else {
			g.emit("for i := v.N; i < engine.SeqCap; i++ {\nv.E[i] = %s\n}", g.zero(n.typ.Elem))
		}
	case types.Opt:
		if put {
			g.emit("engine.Clear(n, off, %s.Width)", at)
			g.emit("if !v.Is {\n%sTag.PutAtom(n, off+%sTag.Off, v.Atom)\nreturn\n}", at, at)
			g.emit("engine.Put(n, off, 1, 1)")
		} else {
			g.emit("*v = %s{}", g.goType(n.typ))
			g.emit("if engine.Get(w, off, 1) == 0 {\nv.Atom = %sTag.GetAtom(w, off+%sTag.Off)\nreturn\n}\nv.Is = true", at, at)
		}
		one(n.elem, "off+c.at."+n.elem.name+".Off", "v.V")
	}
}

func (g *generator) zero(t *types.Type) string {
	switch t = t.Find(); t.Kind {
	case types.Bool:
		return "false"
	case types.Int, types.Var, types.Atom:
		return "0"
	}
	return g.goType(t) + "{}"
}
