package eval

import (
	"linearize.example/checker/conform/tla"
)

// maxSet bounds the sets that are enumerated; TLC's own bound is the same.
const maxSet = 1_000_000

// eval evaluates any expression below temporal formulas.
func (ev *Evaluator) eval(e tla.Expr, c *ctx) Value {
	switch e := e.(type) {
	case *tla.Num:
		return Int(e.Value)
	case *tla.Str:
		return Str(e.Value)
	case *tla.Bool:
		return Bool(e.Value)
	case *tla.Ident:
		return ev.ident(e, c)
	case *tla.Call:
		return ev.call(e, c)
	case *tla.Op:
		return ev.op(e, c)
	case *tla.And:
		for _, x := range e.List {
			if !ev.truth(x, c) {
				return Bool(false)
			}
		}
		return Bool(true)
	case *tla.Or:
		for _, x := range e.List {
			if ev.truth(x, c) {
				return Bool(true)
			}
		}
		return Bool(false)
	case *tla.Index:
		x := ev.argument(e.Args, c)
		if id, ok := e.Fn.(*tla.Ident); ok {
			if v := ev.applyRecursive(id, x, c); v != nil {
				return v
			}
		}
		f := ev.eval(e.Fn, c)
		ev.at = e.Pos
		if v, ok := Apply(f, x); ok {
			return v
		}
		if _, ok := Domain(f); !ok {
			fail(e, "%s is applied, which is no function: %s", kindOf(f), f)
		}
		fail(e, "%s is not in the domain of %s", x, f)
	case *tla.Field:
		r := ev.eval(e.Rec, c)
		if v := Field(r, e.Name); v != nil {
			return v
		}
		fail(e, "%s has no field %s", r, e.Name)
	case *tla.Quant:
		found := !ev.each(e.Bounds, c, func(c *ctx) bool { return ev.truth(e.Body, c) != e.Exists })
		return Bool(found == e.Exists)
	case *tla.Choose:
		var chosen Value
		s := ev.set(e.Bound.Set, c)
		for _, v := range s.Elems {
			var d *ctx
			if e.Bound.Tuple {
				d = bindTuple(e.Bound, v, c)
			} else {
				d = c.bind(e.Bound.Names[0], v)
			}
			if ev.truth(e.Body, d) {
				chosen = v
				break
			}
		}
		if chosen == nil {
			fail(e, "CHOOSE: no element of %s satisfies the predicate", s)
		}
		return chosen
	case *tla.SetLit:
		elems := make([]Value, len(e.Elems))
		for i, x := range e.Elems {
			elems[i] = ev.eval(x, c)
		}
		ev.at = e.Pos
		return NewSet(elems)
	case *tla.Filter:
		var elems []Value
		for _, v := range ev.set(e.Bound.Set, c).Elems {
			var d *ctx
			if e.Bound.Tuple {
				d = bindTuple(e.Bound, v, c)
			} else {
				d = c.bind(e.Bound.Names[0], v)
			}
			if ev.truth(e.Pred, d) {
				elems = append(elems, v)
			}
		}
		return &Set{elems}
	case *tla.MapSet:
		var elems []Value
		ev.each(e.Bounds, c, func(c *ctx) bool {
			elems = append(elems, ev.eval(e.Body, c))
			return true
		})
		ev.at = e.Pos
		return NewSet(elems)
	case *tla.FnLit:
		return ev.function(e.Bounds, e.Body, c)
	case *tla.FnSet:
		return ev.functionSet(e, c)
	case *tla.RecLit:
		fields := map[string]Value{}
		for _, f := range e.Fields {
			fields[f.Name] = ev.eval(f.Expr, c)
		}
		return Record(fields)
	case *tla.RecSet:
		sets := make([][]Value, len(e.Fields))
		for i, f := range e.Fields {
			sets[i] = ev.set(f.Expr, c).Elems
		}
		var elems []Value
		product(sets, func(pick []Value) {
			fields := map[string]Value{}
			for i, f := range e.Fields {
				fields[f.Name] = pick[i]
			}
			elems = append(elems, Record(fields))
		})
		return NewSet(elems)
	case *tla.Except:
		v := ev.eval(e.Fn, c)
		for _, u := range e.Updates {
			v = ev.except(e, u, u.Path, v, c)
		}
		return v
	case *tla.AtSign:
		if c.at == nil {
			fail(e, "@ outside of an EXCEPT")
		}
		return c.at
	case *tla.Tuple:
		t := make(Tuple, len(e.Elems))
		for i, x := range e.Elems {
			t[i] = ev.eval(x, c)
		}
		return t
	case *tla.Cross:
		sets := make([][]Value, len(e.Sets))
		for i, s := range e.Sets {
			sets[i] = ev.set(s, c).Elems
		}
		var elems []Value
		product(sets, func(pick []Value) { elems = append(elems, Tuple(pick)) })
		return NewSet(elems)
	case *tla.If:
		if ev.truth(e.Cond, c) {
			return ev.eval(e.Then, c)
		}
		return ev.eval(e.Else, c)
	case *tla.Case:
		return ev.eval(ev.arm(e, c), c)
	case *tla.Let:
		return ev.eval(e.Body, ev.withDefs(e, c))
	case *tla.Boxed:
		same := Equal(ev.eval(e.V, c), ev.eval(e.V, c.primed()))
		if e.Angle {
			return Bool(!same && ev.truth(e.Action, c))
		}
		return Bool(same || ev.truth(e.Action, c))
	}
	fail(e, "this cannot be evaluated in a state or a step")
	return nil
}

// arm returns the body of a CASE's first arm whose guard holds.
func (ev *Evaluator) arm(e *tla.Case, c *ctx) tla.Expr {
	for _, a := range e.Arms {
		if ev.truth(a.Guard, c) {
			return a.Body
		}
	}
	if e.Other == nil {
		fail(e, "CASE: no guard holds, and there is no OTHER")
	}
	return e.Other
}

// primed moves to the next state.
func (c *ctx) primed() *ctx {
	d := *c
	d.cur, d.next = c.next, nil
	return &d
}

func (ev *Evaluator) ident(e *tla.Ident, c *ctx) Value {
	if b := c.lookup(e.Name); b != nil {
		switch {
		case b.val != nil:
			return b.val
		case b.expr != nil:
			v := ev.eval(b.expr, b.env.inState(c))
			if b.memo && same(b.env, c) {
				b.val = v
			}
			return v
		case b.def != nil && b.def.Bounds != nil:
			return ev.recursive(b.def, b.env.inState(c))
		case b.def != nil && len(b.def.Params) == 0:
			return ev.eval(b.def.Body, b.env.inState(c))
		}
		fail(e, "operator %s needs arguments", e.Name)
	}
	if i, ok := ev.vars[e.Name]; ok {
		if c.cur == nil {
			fail(e, "variable %s is used where no state is given", e.Name)
		}
		if c.cur[i] == nil {
			fail(e, "variable %s is used before it has a value", e.Name)
		}
		return c.cur[i]
	}
	if v, ok := ev.consts[e.Name]; ok {
		return v
	}
	if v, ok := ev.memo[e.Name]; ok {
		return v
	}
	if d, ok := ev.defs[e.Name]; ok {
		env := &ctx{ev: ev, cur: c.cur, next: c.next}
		var v Value
		switch {
		case d.Bounds != nil:
			v = ev.recursive(d, env)
		case len(d.Params) > 0:
			fail(e, "operator %s needs %d arguments", e.Name, len(d.Params))
		default:
			v = ev.eval(d.Body, env)
		}
		if ev.Levels[e.Name] == Constant {
			ev.memo[e.Name] = v
		}
		return v
	}
	switch e.Name {
	case "Nat", "Int", "STRING":
		return Infinite(e.Name)
	case "BOOLEAN":
		return &Set{[]Value{Bool(false), Bool(true)}}
	}
	fail(e, "%s is not defined", e.Name)
	return nil
}

// same says whether both contexts see the same states, so that a value computed in one is right in the other.
func same(a, b *ctx) bool {
	if len(a.cur) != len(b.cur) {
		return false
	}
	return len(a.cur) == 0 || &a.cur[0] == &b.cur[0]
}

// recursive evaluates f[x \in S] == e, in which e may use f.
func (ev *Evaluator) recursive(d *tla.Def, c *ctx) Value {
	return ev.function(d.Bounds, d.Body, c.bindOp(d))
}

// applyRecursive computes f[x] of a function definition f without computing all of f, which may need f[x] itself; nil
// when id is no such function.
func (ev *Evaluator) applyRecursive(id *tla.Ident, x Value, c *ctx) Value {
	d, env := ev.operator(id.Name, c)
	if d == nil || d.Bounds == nil {
		return nil
	}
	if _, ok := ev.memo[id.Name]; ok && ev.defs[id.Name] == d {
		return nil
	}
	c = env.inState(c)
	if c.lookup(id.Name) == nil {
		c = c.bindOp(d)
	}
	ev.enter(id)
	defer ev.leave()
	var names []string
	var sets []tla.Expr
	for _, b := range d.Bounds {
		if b.Tuple {
			return ev.eval(d.Body, bindTuple(b, x, c))
		}
		for _, n := range b.Names {
			names, sets = append(names, n), append(sets, b.Set)
		}
	}
	args := Tuple{x}
	if t, ok := x.(Tuple); ok && len(names) > 1 {
		args = t
	}
	if len(args) != len(names) {
		fail(id, "%s is applied to %d arguments, not %d", id.Name, len(args), len(names))
	}
	inner := c
	for i, n := range names {
		if !ev.member(args[i], sets[i], c) {
			fail(id, "%s is not in the domain of %s", x, id.Name)
		}
		inner = inner.bind(n, args[i])
	}
	return ev.eval(d.Body, inner)
}

// maxDepth bounds recursion, which TLC leaves to the Java stack.
const maxDepth = 20_000

func (ev *Evaluator) enter(e tla.Expr) {
	if ev.depth++; ev.depth > maxDepth {
		fail(e, "recursion more than %d deep", maxDepth)
	}
}

func (ev *Evaluator) leave() { ev.depth-- }

func (c *ctx) bindOp(d *tla.Def) *ctx {
	n := *c
	n.names = &binding{name: d.Name, up: c.names, def: d, env: &n}
	return &n
}

// function evaluates [bounds |-> body].
func (ev *Evaluator) function(bounds []tla.Bound, body tla.Expr, c *ctx) Value {
	var keys, vals []Value
	one := len(bounds) == 1 && (len(bounds[0].Names) == 1 || bounds[0].Tuple)
	ev.each(bounds, c, func(d *ctx) bool {
		var key Tuple
		for _, b := range bounds {
			for _, n := range b.Names {
				key = append(key, d.lookup(n).val)
			}
		}
		if one && !bounds[0].Tuple {
			keys = append(keys, key[0])
		} else {
			keys = append(keys, key)
		}
		vals = append(vals, ev.eval(body, d))
		return true
	})
	return NewFun(keys, vals)
}

func (ev *Evaluator) functionSet(e *tla.FnSet, c *ctx) Value {
	dom, rng := ev.set(e.Dom, c).Elems, ev.set(e.Rng, c).Elems
	sets := make([][]Value, len(dom))
	total := 1
	for i := range sets {
		sets[i] = rng
		if total *= len(rng); total > maxSet {
			fail(e, "a set of more than %d functions", maxSet)
		}
	}
	var elems []Value
	product(sets, func(pick []Value) { elems = append(elems, NewFun(dom, pick)) })
	return NewSet(elems)
}

// member decides v \in e without enumerating sets of sets, of functions or of sequences.
func (ev *Evaluator) member(v Value, e tla.Expr, c *ctx) bool {
	switch s := e.(type) {
	case *tla.Op:
		switch s.Name {
		case "SUBSET":
			set, ok := v.(*Set)
			if !ok {
				if _, model := v.(Model); model {
					return false
				}
				fail(e, "%s is no set: %s", kindOf(v), v)
			}
			for _, x := range set.Elems {
				if !ev.member(x, s.Args[0], c) {
					return false
				}
			}
			return true
		case `\cup`:
			return ev.member(v, s.Args[0], c) || ev.member(v, s.Args[1], c)
		case `\cap`:
			return ev.member(v, s.Args[0], c) && ev.member(v, s.Args[1], c)
		case `\`:
			return ev.member(v, s.Args[0], c) && !ev.member(v, s.Args[1], c)
		case "..":
			lo, hi := ev.number(s.Args[0], c), ev.number(s.Args[1], c)
			n, ok := v.(Int)
			if _, model := v.(Model); !ok && !model {
				fail(e, "cannot compare %s with a number: %s", kindOf(v), v)
			}
			return ok && lo <= int(n) && int(n) <= hi
		case "UNION":
			if m, ok := s.Args[0].(*tla.MapSet); ok {
				return !ev.each(m.Bounds, c, func(c *ctx) bool { return !ev.member(v, m.Body, c) })
			}
		}
	case *tla.FnSet:
		keys, ok := Domain(v)
		if !ok || compareAll(keys, ev.set(s.Dom, c).Elems) != 0 {
			return false
		}
		for _, k := range keys {
			if x, _ := Apply(v, k); !ev.member(x, s.Rng, c) {
				return false
			}
		}
		return true
	case *tla.RecSet:
		if f, ok := v.(*Fun); !ok || len(f.Keys) != len(s.Fields) {
			return false
		}
		for _, f := range s.Fields {
			if x := Field(v, f.Name); x == nil || !ev.member(x, f.Expr, c) {
				return false
			}
		}
		return true
	case *tla.Cross:
		t, ok := v.(Tuple)
		if !ok || len(t) != len(s.Sets) {
			return false
		}
		for i := range t {
			if !ev.member(t[i], s.Sets[i], c) {
				return false
			}
		}
		return true
	case *tla.Filter:
		if !ev.member(v, s.Bound.Set, c) {
			return false
		}
		if s.Bound.Tuple {
			return ev.truth(s.Pred, bindTuple(s.Bound, v, c))
		}
		return ev.truth(s.Pred, c.bind(s.Bound.Names[0], v))
	case *tla.Call:
		if s.Name == "Seq" && c.lookup("Seq") == nil && ev.defs["Seq"] == nil {
			t, ok := v.(Tuple)
			if !ok {
				return false
			}
			for _, x := range t {
				if !ev.member(x, s.Args[0], c) {
					return false
				}
			}
			return true
		}
	case *tla.Ident:
		// Look through names, since their definitions may be of the kinds above.
		if b := c.lookup(s.Name); b != nil && b.expr != nil && b.val == nil {
			return ev.member(v, b.expr, b.env.inState(c))
		}
		_, computed := ev.memo[s.Name]
		if d := ev.defs[s.Name]; c.lookup(s.Name) == nil && d != nil && !computed && d.Bounds == nil && len(d.Params) == 0 {
			return ev.member(v, d.Body, &ctx{ev: ev, cur: c.cur, next: c.next})
		}
	case *tla.Let:
		return ev.member(v, s.Body, ev.withDefs(s, c))
	}
	switch s := ev.eval(e, c).(type) {
	case *Set:
		ev.at = e.Where()
		return s.Has(v)
	case Infinite:
		switch v := v.(type) {
		case Int:
			return s == "Int" || s == "Nat" && v >= 0
		case Str:
			return s == "STRING"
		}
		return false
	default:
		fail(e, "expected a set, found %s: %s", kindOf(s), s)
	}
	return false
}
