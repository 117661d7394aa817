package eval

import (
	"fmt"
	"slices"

	"linearize.example/checker/conform/tla"
	"linearize.example/model/tlccfg"
)

// State gives each variable, in the order of the module's declarations, its value; nil while not yet assigned.
type State []Value

// Evaluator evaluates the expressions of one module under one assignment of its constants.
type Evaluator struct {
	Module *tla.Module
	Levels map[string]Level

	defs   map[string]*tla.Def
	vars   map[string]int
	consts map[string]Value
	memo   map[string]Value // of constant definitions without parameters
	depth  int              // of operators being applied
	at     tla.Pos          // of the operator applied last
}

// failure carries an error through the evaluation.
type failure struct{ err error }

func fail(e tla.Expr, format string, args ...any) {
	panic(failure{tla.Errorf(e.Where(), format, args...)})
}

// catch turns a failure into an error; deferred by every exported entry.
func (ev *Evaluator) catch(err *error) {
	r := recover()
	ev.depth = 0
	switch r := r.(type) {
	case nil:
	case failure:
		*err = r.err
	case mismatch:
		*err = tla.Errorf(ev.at, "cannot compare %s with %s: %s and %s", kindOf(r.a), kindOf(r.b), r.a, r.b)
	default:
		panic(r)
	}
}

// New prepares a module with the constants of a configuration. It fails when a constant is missing or unknown, when a
// name is not defined, or when an assumption does not hold.
func New(m *tla.Module, constants map[string]tlccfg.Value) (*Evaluator, error) {
	ev := &Evaluator{
		Module: m, Levels: Levels(m), defs: map[string]*tla.Def{}, vars: map[string]int{},
		consts: map[string]Value{}, memo: map[string]Value{},
	}
	for i, v := range m.Variables {
		ev.vars[v.Name] = i
	}
	for _, d := range m.Defs {
		ev.defs[d.Name] = d
	}
	for _, c := range m.Constants {
		v, ok := constants[c.Name]
		if !ok {
			return nil, tla.Errorf(c.Pos, "the configuration gives constant %s no value", c.Name)
		}
		ev.consts[c.Name] = FromConfig(v)
	}
	for name := range constants {
		if _, ok := ev.consts[name]; !ok {
			return nil, fmt.Errorf("%s: the configuration gives a value to %s, which is no constant", m.File, name)
		}
	}
	if err := resolve(m); err != nil {
		return nil, err
	}
	for _, a := range m.Assumes {
		if v, err := ev.Eval(a, nil); err != nil {
			return nil, err
		} else if v != Value(Bool(true)) {
			return nil, tla.Errorf(a.Where(), "the assumption does not hold")
		}
	}
	return ev, nil
}

// FromConfig converts a value of a configuration.
func FromConfig(v tlccfg.Value) Value {
	switch v := v.(type) {
	case int:
		return Int(v)
	case bool:
		return Bool(v)
	case string:
		return Str(v)
	case tlccfg.ModelValue:
		return Model(v)
	case []tlccfg.Value:
		elems := make([]Value, len(v))
		for i, e := range v {
			elems[i] = FromConfig(e)
		}
		return NewSet(elems)
	}
	return nil
}

// Constant returns the value of a constant, or nil.
func (ev *Evaluator) Constant(name string) Value { return ev.consts[name] }

// Eval evaluates an expression in a state; s may be nil for a constant expression.
func (ev *Evaluator) Eval(e tla.Expr, s State) (v Value, err error) {
	defer ev.catch(&err)
	return ev.eval(e, &ctx{ev: ev, cur: s}), nil
}

// EvalWith is Eval with names bound to values.
func (ev *Evaluator) EvalWith(e tla.Expr, names map[string]Value) (v Value, err error) {
	defer ev.catch(&err)
	c := &ctx{ev: ev}
	for n, v := range names {
		c = c.bind(n, v)
	}
	return ev.eval(e, c), nil
}

// Holds evaluates the definition of that name as a state predicate.
func (ev *Evaluator) Holds(name string, s State) (ok bool, err error) {
	defer ev.catch(&err)
	d := ev.defs[name]
	if d == nil || len(d.Params) > 0 {
		return false, fmt.Errorf("%s: no definition %s without parameters", ev.Module.File, name)
	}
	return ev.truth(d.Body, &ctx{ev: ev, cur: s}), nil
}

// binding is what a name stands for: a value, an expression yet to be evaluated, or an operator.
type binding struct {
	name string
	up   *binding
	val  Value
	expr tla.Expr // with env, when val is nil
	env  *ctx
	def  *tla.Def // an operator defined in env
	memo bool     // val may be kept once computed
}

// ctx is where an expression is evaluated.
type ctx struct {
	ev        *Evaluator
	names     *binding
	cur, next State
	at        Value // what @ stands for
}

func (c *ctx) bind(name string, v Value) *ctx {
	d := *c
	d.names = &binding{name: name, up: c.names, val: v}
	return &d
}

func (c *ctx) lookup(name string) *binding {
	for b := c.names; b != nil; b = b.up {
		if b.name == name {
			return b
		}
	}
	return nil
}

// inState returns c's names in the states of d: what a postponed expression sees.
func (c *ctx) inState(d *ctx) *ctx {
	e := *c
	e.cur, e.next = d.cur, d.next
	return &e
}

// withArgs binds an operator's parameters to its arguments, which are evaluated when needed.
func (ev *Evaluator) withArgs(at tla.Expr, d *tla.Def, env, c *ctx, args []tla.Expr) *ctx {
	if len(args) != len(d.Params) {
		fail(at, "%s takes %d arguments, not %d", d.Name, len(d.Params), len(args))
	}
	n := *env
	n.cur, n.next, n.at = c.cur, c.next, nil
	for i, p := range d.Params {
		b := &binding{name: p.Name, up: n.names}
		switch a := args[i].(type) {
		case *tla.Lambda:
			b.def, b.env = &tla.Def{Name: "LAMBDA", Params: a.Params, Body: a.Body, Pos: a.Pos}, c
		case *tla.Ident:
			if p.Arity > 0 {
				if o := c.lookup(a.Name); o != nil {
					b.def, b.env = o.def, o.env
				} else if b.def = ev.defs[a.Name]; b.def != nil {
					b.env = &ctx{ev: ev}
				}
				if b.def == nil || len(b.def.Params) != p.Arity {
					fail(a, "%s is no operator with %d arguments", a.Name, p.Arity)
				}
				break
			}
			b.expr, b.env, b.memo = a, c, ev.level(a, c) < ActionLevel
		default:
			b.expr, b.env, b.memo = a, c, ev.level(a, c) < ActionLevel
		}
		n.names = b
	}
	return &n
}

// withDefs binds the definitions of a LET.
func (ev *Evaluator) withDefs(l *tla.Let, c *ctx) *ctx {
	n := *c
	n.at = nil
	for _, d := range l.Defs {
		b := &binding{name: d.Name, up: n.names}
		n.names = b
		env := n
		if len(d.Params) == 0 && d.Bounds == nil {
			b.expr, b.env, b.memo = d.Body, &env, ev.level(d.Body, &env) < ActionLevel
		} else {
			b.def, b.env = d, &env
		}
	}
	n.at = c.at
	return &n
}

func (ev *Evaluator) level(e tla.Expr, c *ctx) Level {
	return levelOf(e, func(name string) Level {
		if b := c.lookup(name); b != nil {
			switch {
			case b.val != nil:
				return Constant
			case b.expr != nil:
				return ev.level(b.expr, b.env.without(name))
			case b.def != nil:
				return ev.level(b.def.Body, b.env.without(name))
			}
			return Constant
		}
		return ev.Levels[name]
	})
}

// without hides a name, so that the level of a recursive definition ends.
func (c *ctx) without(name string) *ctx {
	if c.lookup(name) == nil {
		return c
	}
	return c.bind(name, Bool(false))
}

func (ev *Evaluator) truth(e tla.Expr, c *ctx) bool {
	v := ev.eval(e, c)
	b, ok := v.(Bool)
	if !ok {
		fail(e, "expected TRUE or FALSE, found %s: %s", kindOf(v), v)
	}
	return bool(b)
}

func (ev *Evaluator) number(e tla.Expr, c *ctx) int {
	v := ev.eval(e, c)
	n, ok := v.(Int)
	if !ok {
		fail(e, "expected a number, found %s: %s", kindOf(v), v)
	}
	return int(n)
}

func (ev *Evaluator) set(e tla.Expr, c *ctx) *Set {
	v := ev.eval(e, c)
	s, ok := v.(*Set)
	if !ok {
		if _, inf := v.(Infinite); inf {
			fail(e, "%s cannot be enumerated", v)
		}
		fail(e, "expected a set, found %s: %s", kindOf(v), v)
	}
	return s
}

// each calls f with a context for every choice of values of the bounds, until f returns false.
func (ev *Evaluator) each(bounds []tla.Bound, c *ctx, f func(*ctx) bool) bool {
	// Every bound's set is evaluated outside the bound names.
	sets := make([]*Set, len(bounds))
	for i, b := range bounds {
		sets[i] = ev.set(b.Set, c)
	}
	return ev.choose(bounds, sets, c, f)
}

func (ev *Evaluator) choose(bounds []tla.Bound, sets []*Set, c *ctx, f func(*ctx) bool) bool {
	if len(bounds) == 0 {
		return f(c)
	}
	b := bounds[0]
	if b.Tuple {
		for _, v := range sets[0].Elems {
			if !ev.choose(bounds[1:], sets[1:], bindTuple(b, v, c), f) {
				return false
			}
		}
		return true
	}
	return ev.names(b.Names, sets[0], c, func(c *ctx) bool { return ev.choose(bounds[1:], sets[1:], c, f) })
}

func (ev *Evaluator) names(names []string, s *Set, c *ctx, f func(*ctx) bool) bool {
	if len(names) == 0 {
		return f(c)
	}
	for _, v := range s.Elems {
		if !ev.names(names[1:], s, c.bind(names[0], v), f) {
			return false
		}
	}
	return true
}

func bindTuple(b tla.Bound, v Value, c *ctx) *ctx {
	t, ok := v.(Tuple)
	if !ok || len(t) != len(b.Names) {
		fail(&tla.Tuple{At: tla.At{Pos: b.Pos}}, "%s does not match a pattern of %d names", v, len(b.Names))
	}
	for i, n := range b.Names {
		c = c.bind(n, t[i])
	}
	return c
}

// except applies one update of an EXCEPT to v.
func (ev *Evaluator) except(e *tla.Except, u tla.Update, path []tla.PathStep, v Value, c *ctx) Value {
	if len(path) == 0 {
		d := *c
		d.at = v
		return ev.eval(u.Value, &d)
	}
	var key Value = Str(path[0].Field)
	if path[0].Field == "" {
		key = ev.argument(path[0].Args, c)
	}
	keys, ok := Domain(v)
	if !ok {
		fail(e, "EXCEPT changes %s, which is no function: %s", kindOf(v), v)
	}
	i, ok := slices.BinarySearchFunc(keys, key, Compare)
	if !ok {
		fail(e, "EXCEPT: %s is not in the domain of %s", key, v)
	}
	old, _ := Apply(v, key)
	val := ev.except(e, u, path[1:], old, c)
	if t, ok := v.(Tuple); ok {
		t = slices.Clone(t)
		t[i] = val
		return t
	}
	f := v.(*Fun)
	vals := slices.Clone(f.Vals)
	vals[i] = val
	return &Fun{f.Keys, vals}
}

// argument evaluates what stands between the brackets of f[a] or f[a, b]; several make a tuple.
func (ev *Evaluator) argument(args []tla.Expr, c *ctx) Value {
	if len(args) == 1 {
		return ev.eval(args[0], c)
	}
	t := make(Tuple, len(args))
	for i, a := range args {
		t[i] = ev.eval(a, c)
	}
	return t
}
