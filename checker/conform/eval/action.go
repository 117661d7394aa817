package eval

import (
	"fmt"
	"strings"

	"linearize.example/checker/conform/tla"
)

// Step is one way to take the next-state action: the named action that it goes through, with its arguments, and the
// state that it leads to.
type Step struct {
	Action string
	Args   []Value
	Next   State
}

// Label prints the action as it is written, such as "Send(p1, 2)".
func (s Step) Label() string {
	if len(s.Args) == 0 {
		return s.Action
	}
	return s.Action + "(" + join(s.Args) + ")"
}

// conjuncts are what is still to be satisfied.
type conjuncts struct {
	expr tla.Expr
	ctx  *ctx
	rest *conjuncts
}

// search enumerates the ways to satisfy an action, or an initial predicate, as TLC's Tool.getNextStates does: a
// disjunction and an existential quantifier branch, and once every variable has its value the rest is only tested. So
// the number of steps is TLC's number of generated states, with states found twice counted twice.
type search struct {
	ev     *Evaluator
	cur    State // nil while initial states are enumerated
	target State // the state being built
	label  Step
	yield  func(Step) bool
	done   bool
}

// InitialStates calls yield with every initial state that the predicate of that name allows, until it returns false.
func (ev *Evaluator) InitialStates(name string, yield func(State) bool) (err error) {
	defer ev.catch(&err)
	d := ev.defs[name]
	if d == nil || len(d.Params) > 0 {
		return fmt.Errorf("%s: no definition %s without parameters", ev.Module.File, name)
	}
	s := &search{ev: ev, target: make(State, len(ev.vars)), yield: func(st Step) bool { return yield(st.Next) }}
	s.step(d.Body, &ctx{ev: ev, cur: s.target}, nil)
	return nil
}

// NextStates calls yield with every step from a state by the action of that name, until it returns false.
func (ev *Evaluator) NextStates(name string, cur State, yield func(Step) bool) (err error) {
	defer ev.catch(&err)
	d := ev.defs[name]
	if d == nil || len(d.Params) > 0 {
		return fmt.Errorf("%s: no definition %s without parameters", ev.Module.File, name)
	}
	s := &search{ev: ev, cur: cur, target: make(State, len(ev.vars)), yield: yield}
	if !ev.Structural(d.Body) {
		s.label.Action = name
	}
	s.step(d.Body, &ctx{ev: ev, cur: cur, next: s.target}, nil)
	return nil
}

// Structural says whether an action only chooses between named actions, so that it is no action with a name of its
// own.
func (ev *Evaluator) Structural(e tla.Expr) bool {
	switch e := e.(type) {
	case *tla.Or:
		for _, x := range e.List {
			if !ev.Structural(x) {
				return false
			}
		}
		return true
	case *tla.Quant:
		return e.Exists && ev.Structural(e.Body)
	case *tla.Ident:
		return ev.defs[e.Name] != nil && ev.Levels[e.Name] == ActionLevel
	case *tla.Call:
		return ev.defs[e.Name] != nil && ev.Levels[e.Name] == ActionLevel
	}
	return false
}

func (s *search) assigned() bool {
	for _, v := range s.target {
		if v == nil {
			return false
		}
	}
	return true
}

// proceed continues with the conjuncts that are left.
func (s *search) proceed(rest *conjuncts) {
	if s.done {
		return
	}
	if rest != nil && !s.assigned() {
		s.step(rest.expr, rest.ctx, rest.rest)
		return
	}
	for ; rest != nil; rest = rest.rest {
		if !s.ev.truth(rest.expr, rest.ctx) {
			return
		}
	}
	for i, v := range s.target {
		if v == nil {
			d := s.ev.Module.Variables[i]
			what := "the initial predicate"
			if s.cur != nil {
				what = "action " + s.label.Label()
			}
			panic(failure{tla.Errorf(d.Pos, "%s gives variable %s no value", what, d.Name)})
		}
	}
	st := s.label
	st.Next = append(State{}, s.target...)
	s.done = !s.yield(st)
}

func (s *search) step(e tla.Expr, c *ctx, rest *conjuncts) {
	if s.done {
		return
	}
	switch e := e.(type) {
	case *tla.And:
		for i := len(e.List) - 1; i > 0; i-- {
			rest = &conjuncts{e.List[i], c, rest}
		}
		s.step(e.List[0], c, rest)
		return
	case *tla.Or:
		for _, x := range e.List {
			s.step(x, c, rest)
		}
		return
	case *tla.Quant:
		if e.Exists {
			s.ev.each(e.Bounds, c, func(d *ctx) bool {
				s.step(e.Body, d, rest)
				return !s.done
			})
			return
		}
		s.all(e, c, rest)
		return
	case *tla.If:
		if s.ev.truth(e.Cond, c) {
			s.step(e.Then, c, rest)
		} else {
			s.step(e.Else, c, rest)
		}
		return
	case *tla.Case:
		s.step(s.ev.arm(e, c), c, rest)
		return
	case *tla.Let:
		s.step(e.Body, s.ev.withDefs(e, c), rest)
		return
	case *tla.Boxed:
		if !e.Angle {
			s.step(e.Action, c, rest)
			s.unchanged(e.V, c, rest)
			return
		}
	case *tla.Ident, *tla.Call:
		if s.operator(e, c, rest) {
			return
		}
	case *tla.Op:
		if s.op(e, c, rest) {
			return
		}
	}
	if s.ev.truth(e, c) {
		s.proceed(rest)
	}
}

// all satisfies the body for every choice of the bound names.
func (s *search) all(e *tla.Quant, c *ctx, rest *conjuncts) {
	var ctxs []*ctx
	s.ev.each(e.Bounds, c, func(d *ctx) bool { ctxs = append(ctxs, d); return true })
	if len(ctxs) == 0 {
		s.proceed(rest)
		return
	}
	for i := len(ctxs) - 1; i > 0; i-- {
		rest = &conjuncts{e.Body, ctxs[i], rest}
	}
	s.step(e.Body, ctxs[0], rest)
}

// operator continues in the body of a defined operator or of a postponed argument.
func (s *search) operator(e tla.Expr, c *ctx, rest *conjuncts) bool {
	var name string
	var args []tla.Expr
	switch e := e.(type) {
	case *tla.Ident:
		name = e.Name
	case *tla.Call:
		name, args = e.Name, e.Args
	}
	if b := c.lookup(name); b != nil && b.expr != nil {
		if b.val == nil {
			s.step(b.expr, b.env.inState(c), rest)
			return true
		}
		return false
	}
	d, env := s.ev.operator(name, c)
	if d == nil || d.Bounds != nil || len(d.Params) != len(args) {
		return false
	}
	inner := s.ev.withArgs(e, d, env, c, args)
	if s.label.Action == "" && s.cur != nil && s.ev.Levels[name] == ActionLevel && s.ev.defs[name] == d &&
		!s.ev.Structural(d.Body) {
		s.label.Action = name
		for _, a := range args {
			s.label.Args = append(s.label.Args, s.ev.eval(a, c))
		}
		defer func() { s.label.Action, s.label.Args = "", nil }()
	}
	s.step(d.Body, inner, rest)
	return true
}

// variable returns the index of the variable that "x' = e", or in an initial predicate "x = e", may give a value; -1
// when e is no such variable.
func (s *search) variable(e tla.Expr, c *ctx) int {
	if s.cur != nil {
		op, ok := e.(*tla.Op)
		if !ok || op.Name != "'" {
			return -1
		}
		e = op.Args[0]
	}
	id, ok := e.(*tla.Ident)
	if !ok {
		return -1
	}
	if b := c.lookup(id.Name); b != nil {
		if b.expr != nil && b.val == nil {
			if inner, ok := b.expr.(*tla.Ident); ok {
				if i, ok := s.ev.vars[inner.Name]; ok && b.env.lookup(inner.Name) == nil {
					return i
				}
			}
		}
		return -1
	}
	if i, ok := s.ev.vars[id.Name]; ok {
		return i
	}
	return -1
}

func (s *search) op(e *tla.Op, c *ctx, rest *conjuncts) bool {
	switch e.Name {
	case "=":
		i := s.variable(e.Args[0], c)
		if i < 0 || s.target[i] != nil {
			return false
		}
		s.assign(i, s.ev.eval(e.Args[1], c), rest)
	case `\in`:
		i := s.variable(e.Args[0], c)
		if i < 0 || s.target[i] != nil {
			return false
		}
		for _, v := range s.ev.set(e.Args[1], c).Elems {
			s.assign(i, v, rest)
		}
	case "=>":
		if s.ev.truth(e.Args[0], c) {
			s.step(e.Args[1], c, rest)
		} else {
			s.proceed(rest)
		}
	case "UNCHANGED":
		s.unchanged(e.Args[0], c, rest)
	default:
		return false
	}
	return true
}

func (s *search) assign(i int, v Value, rest *conjuncts) {
	s.target[i] = v
	s.proceed(rest)
	s.target[i] = nil
}

// unchanged gives the variables of an expression their old values.
func (s *search) unchanged(e tla.Expr, c *ctx, rest *conjuncts) {
	switch x := e.(type) {
	case *tla.Ident:
		if c.lookup(x.Name) != nil {
			break
		}
		if i, ok := s.ev.vars[x.Name]; ok {
			if s.target[i] == nil {
				s.assign(i, s.cur[i], rest)
				return
			}
			s.ev.at = x.Pos
			if Equal(s.target[i], s.cur[i]) {
				s.proceed(rest)
			}
			return
		}
		if d := s.ev.defs[x.Name]; d != nil && len(d.Params) == 0 && d.Bounds == nil {
			s.unchanged(d.Body, &ctx{ev: s.ev, cur: c.cur, next: c.next}, rest)
			return
		}
	case *tla.Tuple:
		if len(x.Elems) == 0 {
			s.proceed(rest)
			return
		}
		for i := len(x.Elems) - 1; i > 0; i-- {
			rest = &conjuncts{&tla.Op{At: tla.At{Pos: x.Elems[i].Where()}, Name: "UNCHANGED", Args: x.Elems[i : i+1]}, c, rest}
		}
		s.unchanged(x.Elems[0], c, rest)
		return
	}
	if s.ev.truth(&tla.Op{At: tla.At{Pos: e.Where()}, Name: "UNCHANGED", Args: []tla.Expr{e}}, c) {
		s.proceed(rest)
	}
}

// Key returns a string that is equal for equal states only.
func (s State) Key() string {
	var b strings.Builder
	for _, v := range s {
		b.WriteString(v.String())
		b.WriteByte('\n')
	}
	return b.String()
}
