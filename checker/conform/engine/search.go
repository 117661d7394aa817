package engine

import (
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	"linearize.example/checker/conform/eval"
)

// Checker is the generated code at work on one state at a time; it is used by one goroutine.
type Checker interface {
	// Load makes a packed state the current one.
	Load(state []uint64)
	// Next writes the successors of the current state to Output.
	Next()
	// Holds evaluates predicate number i in the current state.
	Holds(i int) bool
	// Output returns where Next writes.
	Output() *Out
}

// Out collects successors.
type Out struct {
	// Cur is the current state, packed.
	Cur []uint64
	// Next holds the successors one after the other, Actions the number of each one's action.
	Next    []uint64
	Actions []uint16
	// WithArgs asks for Args: per successor the arguments of its action, as the generated Go values.
	WithArgs bool
	Args     [][]any
}

// Begin starts a successor as a copy of the current state.
func (o *Out) Begin() []uint64 {
	n := len(o.Next)
	o.Next = append(o.Next, o.Cur...)
	return o.Next[n:]
}

// Commit ends a successor.
func (o *Out) Commit(action uint16) { o.Actions = append(o.Actions, action) }

// Label records the arguments of the successor that is committed next.
func (o *Out) Label(args ...any) { o.Args = append(o.Args, args) }

// Reset forgets all successors.
func (o *Out) Reset() {
	o.Next, o.Actions, o.Args = o.Next[:0], o.Actions[:0], o.Args[:0]
}

// Options select what Explore does.
type Options struct {
	Workers     int
	Invariants  []string
	Constraints []string
	// Deadlock reports states without successors as violations.
	Deadlock bool
	// Keep continues after a violation, so that the counts are those of the whole graph.
	Keep bool
	// Limit is the greatest number of states, 0 for no limit.
	Limit int
}

// Result is what an exploration found.
type Result struct {
	// Distinct counts states, Generated initial states and steps, as TLC does.
	Distinct, Generated int
	// Diameter is the number of states on the longest of the shortest paths.
	Diameter int
	// Violated is the invariant found violated on a shortest path, "deadlock", or empty.
	Violated string
	Trace    []Step
	// Broken lists the invariants found violated anywhere, in the order of the options; with Keep these are all.
	Broken []string
	// Actions counts steps by action.
	Actions map[string]int
	// Bytes is the size of the store of states at the end; the states themselves are kept as fingerprints of 64 bits.
	Bytes int
	// Collision is the probability that two different states were taken for one, by TLC's formula; 0 when a state has
	// at most 64 bits.
	Collision float64
}

// Step is one step of a trace; the first has no action.
type Step struct {
	Action string
	Args   []eval.Value
	State  []uint64
}

// Label prints the action with its arguments.
func (s Step) Label() string {
	if len(s.Args) == 0 {
		return s.Action
	}
	var parts []string
	for _, a := range s.Args {
		parts = append(parts, a.String())
	}
	return s.Action + "(" + strings.Join(parts, ", ") + ")"
}

const chunkStates = 512

// chunk is a part of the frontier, states one after the other.
type chunk []uint64

type explorer struct {
	m       *Model
	opts    Options
	invs    []int
	cons    []int
	seen    *table
	limit   int64
	stop    atomic.Bool
	stored  atomic.Int64
	mu      sync.Mutex
	err     error
	violate bool
	broken  map[int]bool
}

// Explore visits all reachable states breadth first, level by level. newChecker makes the generated code for one worker.
func Explore(m *Model, newChecker func(*Model) Checker, opts Options) (*Result, error) {
	x := &explorer{m: m, opts: opts, limit: math.MaxInt64, broken: map[int]bool{}}
	if opts.Limit > 0 {
		x.limit = int64(opts.Limit)
	}
	var err error
	if x.invs, err = numbers(opts.Invariants, m.Predicates, "invariant"); err != nil {
		return nil, err
	}
	if x.cons, err = numbers(opts.Constraints, m.Predicates, "constraint"); err != nil {
		return nil, err
	}
	initial, err := m.Initial()
	if err != nil {
		return nil, err
	}
	workers := make([]*worker, max(opts.Workers, 1))
	for i := range workers {
		workers[i] = &worker{x: x, c: newChecker(m), actions: make([]int, len(m.Actions))}
		if len(x.cons) > 0 {
			workers[i].probe = newChecker(m)
		}
	}
	x.seen = newTable()
	for _, s := range initial {
		workers[0].insert(s)
		workers[0].generated++
	}
	level := collect(workers)
	r := &Result{Actions: map[string]int{}}
	for len(level) > 0 && !x.stop.Load() {
		r.Diameter++
		var next atomic.Int64
		var wg sync.WaitGroup
		for _, w := range workers {
			wg.Go(func() {
				for !x.stop.Load() {
					i := int(next.Add(1)) - 1
					if i >= len(level) {
						return
					}
					w.expand(level[i])
					level[i] = nil
				}
			})
		}
		wg.Wait()
		level = collect(workers)
	}
	if x.err != nil {
		return nil, x.err
	}
	r.Distinct, r.Bytes = int(x.stored.Load()), x.seen.bytes()
	for _, w := range workers {
		r.Generated += w.generated
		for i, n := range w.actions {
			if n > 0 {
				r.Actions[m.Actions[i].Name] += n
			}
		}
	}
	for _, i := range x.invs {
		if x.broken[i] {
			r.Broken = append(r.Broken, m.Predicates[i])
		}
	}
	if m.Words > 1 {
		r.Collision = float64(r.Distinct) * float64(max(r.Generated-r.Distinct, r.Distinct)) / math.Pow(2, 64)
	}
	if x.violate {
		err = x.trace(newChecker, initial, r)
	}
	return r, err
}

func numbers(names, known []string, what string) ([]int, error) {
	var out []int
next:
	for _, n := range names {
		for i, k := range known {
			if n == k {
				out = append(out, i)
				continue next
			}
		}
		return nil, fmt.Errorf("the generated code has no %s %s; it has %s", what, n, strings.Join(known, ", "))
	}
	return out, nil
}

func collect(workers []*worker) []chunk {
	var level []chunk
	for _, w := range workers {
		if len(w.out) > 0 {
			w.full = append(w.full, w.out)
		}
		level = append(level, w.full...)
		w.full, w.out = nil, nil
	}
	return level
}

// worker expands states on one goroutine.
type worker struct {
	x         *explorer
	c         Checker
	probe     Checker // evaluates constraints on successors
	full      []chunk
	out       chunk
	generated int
	actions   []int
}

func (x *explorer) fail(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err == nil {
		x.err = err
	}
	x.stop.Store(true)
}

// violation records a violation of an invariant; i is -1 for a deadlock.
func (x *explorer) violation(i int) {
	x.mu.Lock()
	x.violate = true
	x.broken[i] = true
	x.mu.Unlock()
	if !x.opts.Keep {
		x.stop.Store(true)
	}
}

// expand visits all states of a chunk.
func (w *worker) expand(c chunk) {
	x, o := w.x, w.c.Output()
	words := x.m.Words
	defer func() {
		switch r := recover().(type) {
		case nil:
		case Failure:
			x.fail(fmt.Errorf("%s: %w\nin the state\n%s", x.m.File, r, x.m.Show(o.Cur)))
		case interface{ RuntimeError() }: // an index beyond a function's or sequence's Go array
			x.fail(fmt.Errorf("%s: a function is applied outside of its domain (%v)\nin the state\n%s", x.m.File, r,
				x.m.Show(o.Cur)))
		default:
			panic(r)
		}
	}()
	for ; len(c) > 0; c = c[words:] {
		w.c.Load(c[:words:words])
		for _, i := range x.invs {
			if !w.c.Holds(i) {
				x.violation(i)
			}
		}
		o.Reset()
		w.c.Next()
		w.generated += len(o.Actions)
		for i, a := range o.Actions {
			w.actions[a]++
			w.insert(o.Next[i*words : (i+1)*words])
		}
		if len(o.Actions) == 0 && x.opts.Deadlock {
			x.violation(-1)
		}
	}
}

// insert stores a state unless it is known or outside of a constraint.
func (w *worker) insert(s []uint64) {
	x := w.x
	if w.probe != nil && !w.within(s) {
		return
	}
	if !x.seen.add(fingerprint(s)) {
		return
	}
	if x.stored.Add(1) > x.limit {
		x.fail(fmt.Errorf("%s: more than %d states", x.m.File, x.limit))
	}
	if w.out == nil {
		w.out = make(chunk, 0, chunkStates*x.m.Words)
	}
	w.out = append(w.out, s...)
	if len(w.out) == cap(w.out) {
		w.full, w.out = append(w.full, w.out), nil
	}
}

// within evaluates the constraints; of a state outside TLC checks the invariants and nothing else.
func (w *worker) within(s []uint64) bool {
	w.probe.Load(s)
	for _, i := range w.x.cons {
		if !w.probe.Holds(i) {
			for _, i := range w.x.invs {
				if !w.probe.Holds(i) {
					w.x.violation(i)
				}
			}
			return false
		}
	}
	return true
}

// fingerprint hashes a state to 64 bits; for one word it is a bijection.
func fingerprint(s []uint64) uint64 {
	h := s[0]
	if len(s) == 1 {
		h ^= h >> 32
		h *= 0xd6e8feb86659fd93
		h ^= h >> 32
		h *= 0xd6e8feb86659fd93
		h ^= h >> 32
		return h
	}
	h ^= 0x9e3779b97f4a7c15
	for _, w := range s[1:] {
		hi, lo := bits.Mul64(h^0xa0761d6478bd642f, w^0xe7037ed1a0b428db)
		h = hi ^ lo ^ bits.RotateLeft64(h, 23) ^ w
	}
	hi, lo := bits.Mul64(h^0x8ebc6af09c88c6e3, 0x589965cc75374cc3)
	return hi ^ lo ^ h
}

// node is a state of the search for a trace.
type node struct {
	state  []uint64
	parent int
}

// trace searches again with one worker, keeping parents, up to the first violation.
func (x *explorer) trace(newChecker func(*Model) Checker, initial [][]uint64, r *Result) error {
	c := newChecker(x.m)
	w := &worker{x: &explorer{m: x.m, invs: x.invs, cons: x.cons, broken: map[int]bool{}}, c: c}
	if len(x.cons) > 0 {
		w.probe = newChecker(x.m)
	}
	seen := newTable()
	var nodes []node
	visit := func(s []uint64, parent int) (bad string) {
		if w.probe != nil && !w.within(s) {
			if w.x.violate {
				nodes = append(nodes, node{append([]uint64{}, s...), parent})
				c.Load(s)
				return x.first(c)
			}
			return ""
		}
		if !seen.add(fingerprint(s)) {
			return ""
		}
		nodes = append(nodes, node{append([]uint64{}, s...), parent})
		return ""
	}
	for _, s := range initial {
		if r.Violated = visit(s, -1); r.Violated != "" {
			return x.path(c, nodes, len(nodes)-1, r)
		}
	}
	o := c.Output()
	for i := 0; i < len(nodes); i++ {
		c.Load(nodes[i].state)
		if r.Violated = x.first(c); r.Violated != "" {
			return x.path(c, nodes, i, r)
		}
		o.Reset()
		c.Next()
		if len(o.Actions) == 0 && x.opts.Deadlock {
			r.Violated = "deadlock"
			return x.path(c, nodes, i, r)
		}
		next := append([]uint64{}, o.Next...)
		for n := 0; n < len(next); n += x.m.Words {
			if r.Violated = visit(next[n:n+x.m.Words], i); r.Violated != "" {
				return x.path(c, nodes, len(nodes)-1, r)
			}
		}
	}
	return fmt.Errorf("%s: the violation was not found again; this is an error of the engine", x.m.File)
}

// first returns the first invariant that the current state violates.
func (x *explorer) first(c Checker) string {
	for _, i := range x.invs {
		if !c.Holds(i) {
			return x.m.Predicates[i]
		}
	}
	return ""
}

// path follows the parents and names the steps.
func (x *explorer) path(c Checker, nodes []node, at int, r *Result) error {
	var states [][]uint64
	for ; at >= 0; at = nodes[at].parent {
		states = append([][]uint64{nodes[at].state}, states...)
	}
	r.Trace = []Step{{State: states[0]}}
	for i := 1; i < len(states); i++ {
		found := false
		for st, s := range Steps(x.m, c, states[i-1]) {
			if equalWords(s, states[i]) {
				r.Trace = append(r.Trace, st)
				found = true
				break
			}
		}
		if !found {
			return fmt.Errorf("%s: a step of the trace was not found again; this is an error of the engine", x.m.File)
		}
	}
	return nil
}

// Steps yields the steps from a state, with the actions' arguments, and the states they lead to.
func Steps(m *Model, c Checker, state []uint64) func(func(Step, []uint64) bool) {
	return func(yield func(Step, []uint64) bool) {
		o := c.Output()
		o.Reset()
		o.WithArgs = true
		c.Load(state)
		c.Next()
		o.WithArgs = false
		next := append([]uint64{}, o.Next...)
		actions, args := append([]uint16{}, o.Actions...), append([][]any{}, o.Args...)
		for i, a := range actions {
			s := next[i*m.Words : (i+1)*m.Words : (i+1)*m.Words]
			st := Step{Action: m.Actions[a].Name, State: s}
			for j, t := range m.Actions[a].Params {
				st.Args = append(st.Args, m.encode(t, reflect.ValueOf(args[i][j])))
			}
			if !yield(st, s) {
				return
			}
		}
	}
}

func equalWords(a, b []uint64) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
