package eval

import (
	"math"

	"linearize.example/checker/conform/tla"
)

// op applies a built-in operator.
func (ev *Evaluator) op(e *tla.Op, c *ctx) Value {
	switch e.Name {
	case "'":
		return ev.prime(e, c)
	case "UNCHANGED":
		a, b := ev.eval(e.Args[0], c), ev.eval(e.Args[0], c.primed())
		ev.at = e.Pos
		return Bool(Equal(a, b))
	case "~":
		return Bool(!ev.truth(e.Args[0], c))
	case "=>":
		return Bool(!ev.truth(e.Args[0], c) || ev.truth(e.Args[1], c))
	case "<=>":
		return Bool(ev.truth(e.Args[0], c) == ev.truth(e.Args[1], c))
	case "=", "#":
		a, b := ev.eval(e.Args[0], c), ev.eval(e.Args[1], c)
		ev.at = e.Pos
		return Bool(Equal(a, b) == (e.Name == "="))
	case `\in`:
		return Bool(ev.member(ev.eval(e.Args[0], c), e.Args[1], c))
	case `\notin`:
		return Bool(!ev.member(ev.eval(e.Args[0], c), e.Args[1], c))
	case "SUBSET":
		s := ev.set(e.Args[0], c).Elems
		if len(s) > 20 {
			fail(e, "the subsets of a set of %d elements cannot be enumerated", len(s))
		}
		var elems []Value
		subsets(s, func(v Value) { elems = append(elems, v) })
		return NewSet(elems)
	case "UNION":
		var elems []Value
		for _, v := range ev.set(e.Args[0], c).Elems {
			s, ok := v.(*Set)
			if !ok {
				fail(e, "UNION of a set that contains %s: %s", kindOf(v), v)
			}
			elems = append(elems, s.Elems...)
		}
		ev.at = e.Pos
		return NewSet(elems)
	case "DOMAIN":
		v := ev.eval(e.Args[0], c)
		keys, ok := Domain(v)
		if !ok {
			fail(e, "DOMAIN of %s: %s", kindOf(v), v)
		}
		return &Set{keys}
	case "-":
		if len(e.Args) == 1 {
			return Int(-ev.number(e.Args[0], c))
		}
	case `\subseteq`:
		for _, v := range ev.set(e.Args[0], c).Elems {
			if !ev.member(v, e.Args[1], c) {
				return Bool(false)
			}
		}
		return Bool(true)
	case `\cup`, `\cap`, `\`, `\supseteq`, `\subset`:
		return ev.sets(e, ev.set(e.Args[0], c), ev.set(e.Args[1], c))
	case `\o`:
		a, b := ev.sequence(e.Args[0], c), ev.sequence(e.Args[1], c)
		return append(append(Tuple{}, a...), b...)
	case ":>":
		return NewFun([]Value{ev.eval(e.Args[0], c)}, []Value{ev.eval(e.Args[1], c)})
	case "@@":
		return ev.override(e, ev.eval(e.Args[0], c), ev.eval(e.Args[1], c))
	case "ENABLED", "[]", "<>", "~>":
		fail(e, "%s cannot be evaluated", e.Name)
	}
	return ev.arithmetic(e, ev.number(e.Args[0], c), ev.number(e.Args[1], c))
}

func (ev *Evaluator) prime(e *tla.Op, c *ctx) Value {
	if id, ok := e.Args[0].(*tla.Ident); ok && c.lookup(id.Name) == nil {
		if i, ok := ev.vars[id.Name]; ok {
			if c.next == nil {
				fail(e, "%s' is used where no next state is given", id.Name)
			}
			if c.next[i] == nil {
				fail(e, "%s' is used before it has a value", id.Name)
			}
			return c.next[i]
		}
	}
	if c.next == nil {
		fail(e, "a primed expression is used where no next state is given")
	}
	return ev.eval(e.Args[0], c.primed())
}

func (ev *Evaluator) sets(e *tla.Op, a, b *Set) Value {
	ev.at = e.Pos
	switch e.Name {
	case `\cup`:
		return NewSet(append(append([]Value{}, a.Elems...), b.Elems...))
	case `\supseteq`:
		a, b = b, a
		fallthrough
	case `\subset`:
		for _, v := range a.Elems {
			if !b.Has(v) {
				return Bool(false)
			}
		}
		return Bool(e.Name == `\supseteq` || len(a.Elems) < len(b.Elems))
	}
	var elems []Value
	for _, v := range a.Elems {
		if b.Has(v) == (e.Name == `\cap`) {
			elems = append(elems, v)
		}
	}
	return &Set{elems}
}

// override is f @@ g: f where it is defined, else g.
func (ev *Evaluator) override(e *tla.Op, f, g Value) Value {
	fk, ok1 := Domain(f)
	gk, ok2 := Domain(g)
	if !ok1 || !ok2 {
		fail(e, "@@ needs two functions")
	}
	ev.at = e.Pos
	keys, vals := append([]Value{}, fk...), []Value{}
	for _, k := range fk {
		v, _ := Apply(f, k)
		vals = append(vals, v)
	}
	for _, k := range gk {
		if _, ok := Apply(f, k); !ok {
			v, _ := Apply(g, k)
			keys, vals = append(keys, k), append(vals, v)
		}
	}
	return NewFun(keys, vals)
}

func (ev *Evaluator) arithmetic(e *tla.Op, a, b int) Value {
	var n int
	switch e.Name {
	case "<":
		return Bool(a < b)
	case ">":
		return Bool(a > b)
	case "<=":
		return Bool(a <= b)
	case ">=":
		return Bool(a >= b)
	case "..":
		if b-a >= maxSet {
			fail(e, "%d..%d has more than %d elements", a, b, maxSet)
		}
		var elems []Value
		for i := a; i <= b; i++ {
			elems = append(elems, Int(i))
		}
		return &Set{elems}
	case "+":
		n = a + b
	case "-":
		n = a - b
	case "*":
		n = a * b
	case `\div`:
		if b == 0 {
			fail(e, "division by zero")
		}
		n = floorDiv(a, b)
	case "%":
		if b <= 0 {
			fail(e, "the divisor of %% must be positive, it is %d", b)
		}
		n = a - b*floorDiv(a, b)
	case "^":
		if b < 0 {
			fail(e, "the exponent must not be negative, it is %d", b)
		}
		n = 1
		for range b {
			if n *= a; n > math.MaxInt32 || n < math.MinInt32 {
				break
			}
		}
	default:
		fail(e, "operator %s is not supported", e.Name)
	}
	if n > math.MaxInt32 || n < math.MinInt32 {
		fail(e, "%d %s %d overflows TLC's 32 bits", a, e.Name, b)
	}
	return Int(n)
}

// floorDiv rounds down, as TLA+ defines division.
func floorDiv(a, b int) int {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func (ev *Evaluator) sequence(e tla.Expr, c *ctx) Tuple {
	v := ev.eval(e, c)
	t, ok := v.(Tuple)
	if !ok {
		fail(e, "expected a sequence, found %s: %s", kindOf(v), v)
	}
	return t
}

// call applies a defined operator or one of a standard module.
func (ev *Evaluator) call(e *tla.Call, c *ctx) Value {
	if d, env := ev.operator(e.Name, c); d != nil {
		ev.enter(e)
		defer ev.leave()
		return ev.eval(d.Body, ev.withArgs(e, d, env, c, e.Args))
	}
	if n, ok := tla.Standard[e.Name]; !ok || n != len(e.Args) {
		fail(e, "%s is not defined with %d arguments", e.Name, len(e.Args))
	}
	switch e.Name {
	case "Cardinality":
		return Int(len(ev.set(e.Args[0], c).Elems))
	case "IsFiniteSet":
		_, ok := ev.eval(e.Args[0], c).(*Set)
		return Bool(ok)
	case "Len":
		return Int(len(ev.sequence(e.Args[0], c)))
	case "Append":
		return append(append(Tuple{}, ev.sequence(e.Args[0], c)...), ev.eval(e.Args[1], c))
	case "Head", "Tail":
		s := ev.sequence(e.Args[0], c)
		if len(s) == 0 {
			fail(e, "%s of an empty sequence", e.Name)
		}
		if e.Name == "Head" {
			return s[0]
		}
		return s[1:]
	case "SubSeq":
		s, m, n := ev.sequence(e.Args[0], c), ev.number(e.Args[1], c), ev.number(e.Args[2], c)
		if m > n {
			return Tuple{}
		}
		if m < 1 || n > len(s) {
			fail(e, "SubSeq from %d to %d of a sequence of length %d", m, n, len(s))
		}
		return s[m-1 : n]
	case "SelectSeq":
		out := Tuple{}
		op := e.Args[1]
		for _, v := range ev.sequence(e.Args[0], c) {
			if bool(ev.apply(op, c, v).(Bool)) {
				out = append(out, v)
			}
		}
		return out
	case "Assert":
		if !ev.truth(e.Args[0], c) {
			fail(e, "Assert: %s", ev.eval(e.Args[1], c))
		}
		return Bool(true)
	case "Print":
		return ev.eval(e.Args[1], c)
	case "PrintT":
		return Bool(true)
	}
	fail(e, "%s cannot be evaluated", e.Name)
	return nil
}

// operator finds a defined operator and the context in which its body stands.
func (ev *Evaluator) operator(name string, c *ctx) (*tla.Def, *ctx) {
	if b := c.lookup(name); b != nil {
		return b.def, b.env
	}
	if d := ev.defs[name]; d != nil {
		return d, &ctx{ev: ev}
	}
	return nil, nil
}

// apply applies an operator argument, a LAMBDA or a name, to a value.
func (ev *Evaluator) apply(op tla.Expr, c *ctx, v Value) Value {
	switch op := op.(type) {
	case *tla.Lambda:
		if len(op.Params) == 1 {
			return ev.eval(op.Body, c.bind(op.Params[0].Name, v))
		}
	case *tla.Ident:
		if d, env := ev.operator(op.Name, c); d != nil && len(d.Params) == 1 {
			return ev.eval(d.Body, env.inState(c).bind(d.Params[0].Name, v))
		}
	}
	fail(op, "expected an operator with one argument")
	return nil
}
