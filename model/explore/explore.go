// Package explore visits every reachable state of a finite transition system, breadth first and on
// all cores. It stores states exactly, so that no two states are ever taken for one, and it gives the
// same result, the same order of states and the same counterexamples whatever the number of workers.
package explore

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// MaxBits is the widest state that the explorer can store.
const MaxBits = 64 * len(State{})

// State is one state, packed by the model into its lowest Bits bits; the other bits are zero. Equal
// states are equal values.
type State [4]uint64

// Model is a finite transition system.
type Model interface {
	// Bits is the number of bits of a packed state, at most MaxBits.
	Bits() int
	// Actions names the actions; an action's index is its identity.
	Actions() []string
	// Invariants names the properties that every state is judged by, at most 64.
	Invariants() []string
	// Initial emits the initial states in a fixed order, duplicates included.
	Initial(emit func(State))
	// Expander returns the functions that one worker uses; two expanders are used concurrently.
	Expander() Expander
}

// Expander computes successors and judges states. One goroutine uses it at a time.
type Expander interface {
	// Successors emits every transition that leaves s in a fixed order, duplicates included.
	Successors(s State, emit func(action int, next State))
	// Violated returns the set of violated invariants: bit i stands for Invariants()[i].
	Violated(s State) uint64
}

// Options bounds an exploration. The zero value explores everything on all cores.
type Options struct {
	Workers   int           // goroutines that expand states; 0 means one a core
	MaxStates int           // stop at this number of distinct states; 0 means no bound
	MaxDepth  int           // do not expand states at this depth (initial states are at 1); 0 means no bound
	MaxTime   time.Duration // stop after this time; 0 means no bound
	// StopAtViolation ends the search at the first violation, in breadth-first order. Otherwise the
	// whole graph is explored and the first violation of each invariant is kept.
	StopAtViolation bool
	// Progress, if set, is called between rounds of expansion, from the caller's goroutine.
	Progress func(Progress)
}

// Progress is what has been explored so far.
type Progress struct {
	States    int           // distinct states found
	Queued    int           // of these, not yet expanded
	Generated uint64        // transitions computed, initial states included
	Depth     int           // depth that is being expanded
	Elapsed   time.Duration // since the start
}

// Reason says why an exploration ended. The zero value is not a reason to trust anything.
type Reason int

// The reasons for which an exploration ends.
const (
	NotRun      Reason = iota // the exploration did not take place
	Complete                  // every reachable state was expanded
	AtViolation               // a violation was found and StopAtViolation was set
	AtMaxStates               // the bound on states was reached
	AtMaxDepth                // the bound on depth was reached: deeper states exist
	AtMaxTime                 // the bound on time was reached
	Interrupted               // the context was cancelled
)

var reasonText = map[Reason]string{
	NotRun:      "not run",
	Complete:    "complete",
	AtViolation: "stopped at the first violation",
	AtMaxStates: "stopped at the bound on states",
	AtMaxDepth:  "stopped at the bound on depth",
	AtMaxTime:   "stopped at the bound on time",
	Interrupted: "interrupted",
}

// String returns the reason in words.
func (r Reason) String() string { return reasonText[r] }

// Violation is the first state, in breadth-first order, that violates an invariant.
type Violation struct {
	Invariant int // index into Invariants()
	Depth     int // number of states of the shortest path to it, the initial state included
	index     int
}

// Result is what an exploration covered and found.
type Result struct {
	Reason        Reason
	States        int      // distinct states
	Generated     uint64   // transitions computed, initial states included (TLC's "states generated")
	Depth         int      // number of levels (TLC's "depth of the complete state graph search")
	Expanded      int      // states whose successors are all known
	ByAction      []uint64 // transitions computed, by action
	Violations    []Violation
	BytesPerState float64 // memory of the state store and its index, per distinct state

	search *search
}

// Step is one step of a path: an action and the state that it leads to.
type Step struct {
	Action int // index into Actions(); -1 for the initial state
	State  State
}

// chunkSize is the number of states that a worker expands at a time, and the grain at which the
// parents of states are remembered.
const chunkSize = 512

// roundChunks bounds the states expanded between two merges, and so the memory of a round.
const roundChunks = 128

type candidate struct {
	state    State
	violated uint64
}

type chunk struct {
	from, to  int // states to expand
	found     []candidate
	generated uint64
	byAction  []uint64
}

// mark remembers that the states from index firstChild on were first reached from states of index
// from on. Because states are stored in the order in which they are found, marks are sorted by both.
type mark struct{ from, firstChild uint32 }

type search struct {
	model    Model
	opts     Options
	store    *store
	marks    []mark
	depth    int // level that is being expanded; 0 while the initial states are found
	levelEnd int // number of states up to that level
	result   *Result
	seen     uint64 // invariants with a known violation
}

// Run explores m until it is done or a bound is reached. An error means that the model cannot be
// explored at all; bounds and a cancelled context are reported in the result.
func Run(ctx context.Context, m Model, opts Options) (*Result, error) {
	if m.Bits() < 1 || m.Bits() > MaxBits {
		return nil, fmt.Errorf("explore: a state of %d bits; 1 to %d can be stored", m.Bits(), MaxBits)
	}
	if len(m.Invariants()) > 64 {
		return nil, fmt.Errorf("explore: %d invariants; at most 64 can be judged", len(m.Invariants()))
	}
	if opts.Workers <= 0 {
		opts.Workers = runtime.GOMAXPROCS(0)
	}
	s := &search{model: m, opts: opts, store: newStore(m.Bits())}
	s.result = &Result{search: s, ByAction: make([]uint64, len(m.Actions()))}
	s.result.Reason = s.run(ctx)
	s.result.States = s.store.len()
	s.result.Depth = s.depth
	if s.store.len() > s.levelEnd {
		s.result.Depth++
	}
	if n := s.store.len(); n > 0 {
		s.result.BytesPerState = float64(s.store.bytes()+8*cap(s.marks)) / float64(n)
	}
	return s.result, nil
}

func (s *search) run(ctx context.Context) Reason {
	start := time.Now()
	expanders := make([]Expander, s.opts.Workers)
	for i := range expanders {
		expanders[i] = s.model.Expander()
	}
	stop := false
	s.model.Initial(func(state State) {
		s.result.Generated++
		stop = s.insert(candidate{state, expanders[0].Violated(state)}) || stop
	})
	if stop {
		return AtViolation
	}
	chunks := make([]chunk, roundChunks)
	for i := range chunks {
		chunks[i].byAction = make([]uint64, len(s.model.Actions()))
	}
	for next := 0; next < s.store.len(); {
		if s.opts.MaxDepth > 0 && s.depth+1 >= s.opts.MaxDepth {
			return AtMaxDepth
		}
		s.depth++
		end := s.store.len()
		s.levelEnd = end
		for next < end {
			switch {
			case ctx.Err() != nil:
				return Interrupted
			case s.opts.MaxTime > 0 && time.Since(start) >= s.opts.MaxTime:
				return AtMaxTime
			}
			round := plan(chunks, next, end)
			expand(expanders, round, s.store)
			if reason := s.merge(round); reason != Complete {
				return reason
			}
			next = round[len(round)-1].to
			if s.opts.Progress != nil {
				s.opts.Progress(Progress{
					States: s.store.len(), Queued: s.store.len() - next,
					Generated: s.result.Generated, Depth: s.depth, Elapsed: time.Since(start),
				})
			}
		}
	}
	return Complete
}

// plan cuts the states from next to end, or as many as fit into a round, into chunks.
func plan(chunks []chunk, next, end int) []chunk {
	n := 0
	for ; n < len(chunks) && next < end; n++ {
		chunks[n].from = next
		chunks[n].to = min(next+chunkSize, end)
		next = chunks[n].to
	}
	return chunks[:n]
}

// expand computes the successors of every chunk that are not yet in the store. The store is only read.
func expand(expanders []Expander, round []chunk, st *store) {
	var claimed atomic.Int64
	work := func(e Expander) {
		for {
			i := int(claimed.Add(1)) - 1
			if i >= len(round) {
				return
			}
			expandChunk(e, &round[i], st)
		}
	}
	var wg sync.WaitGroup
	for _, e := range expanders[1:min(len(expanders), len(round))] {
		wg.Go(func() { work(e) })
	}
	work(expanders[0])
	wg.Wait()
}

func expandChunk(e Expander, c *chunk, st *store) {
	c.found = c.found[:0]
	c.generated = 0
	clear(c.byAction)
	emit := func(action int, next State) {
		c.generated++
		c.byAction[action]++
		if st.find(next) < 0 {
			c.found = append(c.found, candidate{state: next})
		}
	}
	for i := c.from; i < c.to; i++ {
		e.Successors(st.at(i), emit)
	}
	for i := range c.found {
		c.found[i].violated = e.Violated(c.found[i].state)
	}
}

// merge adds what the chunks found to the store, in order. This makes the order of states, and with
// it every counterexample, independent of the number of workers.
func (s *search) merge(round []chunk) Reason {
	for i := range round {
		c := &round[i]
		s.marks = append(s.marks, mark{uint32(c.from), uint32(s.store.len())})
		s.result.Generated += c.generated
		for a, n := range c.byAction {
			s.result.ByAction[a] += n
		}
		for _, found := range c.found {
			if s.opts.MaxStates > 0 && s.store.len() >= s.opts.MaxStates && s.store.find(found.state) < 0 {
				return AtMaxStates
			}
			if s.insert(found) {
				return AtViolation
			}
		}
		s.result.Expanded = c.to
	}
	return Complete
}

// insert stores the state if it is new. It reports whether the search ends here.
func (s *search) insert(c candidate) bool {
	index, isNew := s.store.add(c.state)
	if !isNew || c.violated&^s.seen == 0 {
		return false
	}
	for i := range s.model.Invariants() {
		if c.violated&^s.seen&(1<<i) != 0 {
			s.result.Violations = append(s.result.Violations, Violation{Invariant: i, Depth: s.depth + 1, index: index})
		}
	}
	s.seen |= c.violated
	return s.opts.StopAtViolation
}

// Violation returns the first violation of an invariant, and whether there is one.
func (r *Result) Violation(invariant int) (Violation, bool) {
	for _, v := range r.Violations {
		if v.Invariant == invariant {
			return v, true
		}
	}
	return Violation{}, false
}

// Trace returns the shortest path from an initial state to the violation. Of all shortest paths it is
// the one whose states were found first.
func (r *Result) Trace(v Violation) []Step { return r.search.trace(v.index) }

// Find returns the shortest path to the first state, in breadth-first order, that satisfies want, or
// nil when no explored state does.
func (r *Result) Find(want func(State) bool) []Step {
	st := r.search.store
	for i := range st.len() {
		if want(st.at(i)) {
			return r.search.trace(i)
		}
	}
	return nil
}

// Each calls visit with every explored state in breadth-first order until it returns false.
func (r *Result) Each(visit func(State) bool) {
	st := r.search.store
	for i := range st.len() {
		if !visit(st.at(i)) {
			return
		}
	}
}

// Index returns the position of a state in breadth-first order, or -1 when it was not reached.
func (r *Result) Index(s State) int { return r.search.store.find(s) }
