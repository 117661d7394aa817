package eval

import (
	"fmt"

	"linearize.example/checker/conform/tla"
	"linearize.example/model/tlccfg"
)

// Spec is what a configuration selects of a module: the initial predicate, the next-state action and the rest.
type Spec struct {
	Init, Next  string
	Invariants  []string
	Constraints []string
	Deadlock    bool
	// Unchecked names what the configuration or the specification's formula holds and no tool here checks: temporal
	// properties and fairness.
	Unchecked []string
}

// Select finds INIT and NEXT, or takes SPECIFICATION apart: Init /\ [][Next]_vars and conditions of fairness.
func Select(m *tla.Module, c *tlccfg.Config) (*Spec, error) {
	s := &Spec{Init: c.Init, Next: c.Next, Invariants: c.Invariants, Constraints: c.Constraints, Deadlock: c.CheckDeadlock}
	for _, p := range c.Properties {
		s.Unchecked = append(s.Unchecked, "property "+p)
	}
	if c.Specification != "" {
		d := m.Def(c.Specification)
		if d == nil {
			return nil, fmt.Errorf("%s: no definition of the specification %s", m.File, c.Specification)
		}
		if err := s.formula(m, d.Body); err != nil {
			return nil, err
		}
	}
	for _, name := range append([]string{s.Init, s.Next}, append(s.Invariants, s.Constraints...)...) {
		if name == "" {
			return nil, fmt.Errorf("%s: the configuration gives neither SPECIFICATION nor both INIT and NEXT", m.File)
		}
		if d := m.Def(name); d == nil || len(d.Params) > 0 {
			return nil, fmt.Errorf("%s: no definition %s without parameters", m.File, name)
		}
	}
	return s, nil
}

func (s *Spec) formula(m *tla.Module, e tla.Expr) error {
	switch e := e.(type) {
	case *tla.And:
		for _, x := range e.List {
			if err := s.formula(m, x); err != nil {
				return err
			}
		}
		return nil
	case *tla.Fair:
		s.Unchecked = append(s.Unchecked, "fairness at "+e.Pos.String())
		return nil
	case *tla.Quant:
		s.Unchecked = append(s.Unchecked, "fairness at "+e.Pos.String())
		return nil
	case *tla.Op:
		if e.Name == "[]" {
			if b, ok := e.Args[0].(*tla.Boxed); ok && !b.Angle {
				if id, ok := b.Action.(*tla.Ident); ok && s.Next == "" {
					s.Next = id.Name
					return nil
				}
			}
		}
	case *tla.Ident:
		d := m.Def(e.Name)
		if d == nil {
			break
		}
		if LevelOfDef(m, e.Name) == Temporal {
			return s.formula(m, d.Body)
		}
		if s.Init == "" {
			s.Init = e.Name
			return nil
		}
	}
	return tla.Errorf(e.Where(), "a specification must be Init /\\ [][Next]_vars, with named Init and Next, and fairness")
}

// LevelOfDef returns the level of a definition.
func LevelOfDef(m *tla.Module, name string) Level { return Levels(m)[name] }

// Result is what an exploration found.
type Result struct {
	// Distinct counts states, Generated initial states and steps, repetitions included, as TLC does.
	Distinct, Generated int
	// Diameter is the number of states on the longest of the shortest paths to a state.
	Diameter int
	// Violated is the first invariant found violated, "deadlock", or empty.
	Violated string
	// Trace leads from an initial state to the violation.
	Trace []Step
	// Actions counts the steps by the name of their action.
	Actions map[string]int
}

type stored struct {
	step   Step
	parent int
	depth  int
}

// Explore visits the reachable states breadth first and stops at the first violation, unless keep is set; then it
// records the first and continues. It fails when more than limit states are found.
func (ev *Evaluator) Explore(s *Spec, keep bool, limit int) (*Result, error) {
	r := &Result{Actions: map[string]int{}}
	seen := map[string]bool{}
	var states []stored
	violated := func(name string, at int, extra ...Step) {
		if r.Violated != "" {
			return
		}
		r.Violated = name
		for i := at; i >= 0; i = states[i].parent {
			r.Trace = append([]Step{states[i].step}, r.Trace...)
		}
		r.Trace = append(r.Trace, extra...)
	}
	var failed error
	visit := func(st Step, parent, depth int) bool {
		r.Generated++
		key := st.Next.Key()
		for _, c := range s.Constraints {
			ok, err := ev.Holds(c, st.Next)
			if err != nil {
				failed = err
				return false
			}
			if !ok {
				// TLC checks the invariants of such a state but neither counts nor expands it.
				return ev.invariants(s, st, &failed, func(name string) { violated(name, parent, st) }) || keep
			}
		}
		if seen[key] {
			return true
		}
		if len(states) == limit {
			failed = fmt.Errorf("more than %d states", limit)
			return false
		}
		seen[key] = true
		states = append(states, stored{st, parent, depth})
		r.Diameter = max(r.Diameter, depth)
		at := len(states) - 1
		return ev.invariants(s, st, &failed, func(name string) { violated(name, at) }) || keep
	}
	err := ev.InitialStates(s.Init, func(st State) bool { return visit(Step{Next: st}, -1, 1) })
	for i := 0; i < len(states) && err == nil && failed == nil && (keep || r.Violated == ""); i++ {
		steps := 0
		from := states[i]
		err = ev.NextStates(s.Next, from.step.Next, func(st Step) bool {
			steps++
			r.Actions[st.Action]++
			return visit(st, i, from.depth+1)
		})
		if steps == 0 && s.Deadlock {
			violated("deadlock", i)
		}
	}
	r.Distinct = len(states)
	if err == nil {
		err = failed
	}
	return r, err
}

// invariants reports the first violated invariant of a state; it returns false after a violation or a failure.
func (ev *Evaluator) invariants(s *Spec, st Step, failed *error, violated func(string)) bool {
	for _, name := range s.Invariants {
		ok, err := ev.Holds(name, st.Next)
		if err != nil {
			*failed = err
			return false
		}
		if !ok {
			violated(name)
			return false
		}
	}
	return true
}
