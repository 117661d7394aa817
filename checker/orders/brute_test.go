package orders

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"linearize.example/traces"
)

// bits is the number of facts in a random problem's states.
const bits = 3

// table is a random problem: what each operation makes of each state, or -1 where it cannot take effect.
type table struct {
	Problem
	next [][1 << bits]int
}

func randomProblem(rng *rand.Rand) *table {
	t := &table{}
	alike := int32(0)
	for range rng.IntN(9) {
		o := Operation{Call: traces.Instant(rng.IntN(14))}
		o.Return = o.Call + traces.Instant(rng.IntN(6))
		var next [1 << bits]int
		kind := rng.IntN(4)
		for s := range next {
			switch {
			case rng.IntN(3) == 0 && kind > 0:
				next[s] = -1
			case kind == 1:
				next[s] = s
			case kind == 2:
				next[s] = s ^ 1<<rng.IntN(bits)
			default:
				next[s] = rng.IntN(1 << bits)
			}
		}
		if o.Optional = rng.IntN(3) == 0; o.Optional && rng.IntN(2) == 0 {
			o.Return = traces.Forever
		}
		t.Operations, t.next = append(t.Operations, o), append(t.next, next)
		if o.Optional && rng.IntN(2) == 0 {
			alike++
			t.Operations[len(t.Operations)-1].Alike = alike
			o.Call, o.Alike = traces.Instant(rng.IntN(int(min(o.Return, 13)+1))), alike
			t.Operations, t.next = append(t.Operations, o), append(t.next, next)
		}
	}
	order := rng.Perm(len(t.Operations))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(t.Operations[a].Call, t.Operations[b].Call) })
	sorted := &table{}
	for _, i := range order {
		sorted.Operations, sorted.next = append(sorted.Operations, t.Operations[i]), append(sorted.next, t.next[i])
	}
	for i := range sorted.Operations {
		for rng.IntN(4) == 0 && sorted.Operations[i].Alike == 0 && i > 0 {
			sorted.Operations[i].After = append(sorted.Operations[i].After, int32(rng.IntN(i)))
		}
	}
	sorted.Words = 1 + rng.IntN(2)
	for _, s := range rng.Perm(1 << bits)[:1+rng.IntN(3)] {
		sorted.Initial = append(sorted.Initial, sorted.state(s))
	}
	sorted.Step = func(op int, from, to State) bool {
		n := sorted.next[op][sorted.number(from)]
		if n >= 0 {
			copy(to, sorted.state(n))
		}
		return n >= 0
	}
	return sorted
}

// state spreads the bits over the words, the last one to the end of the last word.
func (t *table) state(n int) State {
	s := make(State, t.Words)
	for i := range int32(bits) {
		if n&(1<<i) != 0 {
			s.Set(t.place(i))
		}
	}
	return s
}

func (t *table) place(i int32) int32 {
	if i == bits-1 {
		return int32(64*t.Words - 1)
	}
	return i
}

func (t *table) number(s State) int {
	n := 0
	for i := range int32(bits) {
		if s.Has(t.place(i)) {
			n |= 1 << i
		}
	}
	return n
}

// change is an operation, or a class of operations that are alike, and the states before and after it.
type change struct{ Op, Alike, From, To int }

// span bounds the instants at which an operation can take effect.
type span struct{ Earliest, Latest traces.Instant }

// answer is all that is said of a problem.
type answer struct {
	Stuck     bool
	Explained int
	Ends      map[int]bool
	Marked    map[[2]int]bool // end and marks
	Changes   map[change]bool
	Spans     map[int]span
}

func newAnswer() *answer {
	return &answer{Ends: map[int]bool{}, Marked: map[[2]int]bool{}, Changes: map[change]bool{}, Spans: map[int]span{}}
}

func (a *answer) add(t *table, op, from, to int, s span) {
	c := change{op, int(t.Operations[op].Alike), from, to}
	if c.Alike > 0 {
		c.Op = -1
	}
	a.Changes[c] = true
	if known, ok := a.Spans[op]; ok {
		s = span{min(s.Earliest, known.Earliest), max(s.Latest, known.Latest)}
	}
	if c.Alike == 0 {
		a.Spans[op] = s
	}
}

// mark is what tells states apart for Reach.
func mark(state int) int { return 1 << (state & 3) }

// brute tries every order of the operations and every choice of the optional ones.
func brute(t *table) *answer {
	a := newAnswer()
	a.Stuck = true
	mandatory := 0
	for _, o := range t.Operations {
		if !o.Optional {
			mandatory++
		}
	}
	type taken struct {
		op, from, to int
		earliest     traces.Instant
	}
	var path []taken
	done := make([]bool, len(t.Operations))
	var try func(state, count, marks int, now traces.Instant)
	try = func(state, count, marks int, now traces.Instant) {
		marks |= mark(state)
		for i, o := range t.Operations {
			if !done[i] && !o.Optional && o.Return < now {
				return
			}
		}
		a.Explained = max(a.Explained, count)
		if count == mandatory {
			a.Stuck = false
			a.Ends[state] = true
			a.Marked[[2]int{state, marks}] = true
			latest := traces.Forever
			for i := len(path) - 1; i >= 0; i-- {
				p := path[i]
				latest = min(latest, t.Operations[p.op].Return)
				a.add(t, p.op, p.from, p.to, span{p.earliest, latest})
			}
		}
		for i, o := range t.Operations {
			to := t.next[i][state]
			at := max(now, o.Call)
			if done[i] || to < 0 || at > o.Return || o.Optional && to == state ||
				slices.ContainsFunc(o.After, func(b int32) bool { return !t.Operations[b].Optional && !done[b] }) {
				continue
			}
			done[i] = true
			path = append(path, taken{i, state, to, at})
			next := count
			if !o.Optional {
				next++
			}
			try(to, next, marks, at)
			path = path[:len(path)-1]
			done[i] = false
		}
	}
	for _, s := range t.Initial {
		try(t.number(s), 0, 0, traces.Beginning)
	}
	return a
}

// explored is the answer that the blocks of the graph give. It checks what Block promises of itself.
func explored(tb testing.TB, t *table) *answer {
	a := newAnswer()
	var cut State
	err := Explore(context.Background(), &t.Problem, Budget{}, func(b *Block) error {
		if cut != nil && (b.Entries != 1 || !slices.Equal(b.State(0), cut)) {
			tb.Errorf("a block begins with %d entries at %v; the one before it ended at %v", b.Entries, b.State(0), cut)
		}
		survivors := make([]bool, len(b.Nodes))
		for _, n := range b.Exits {
			survivors[n] = true
		}
		for n := len(b.Nodes) - 1; n >= 0; n-- {
			for _, e := range b.EdgesOf(int32(n)) {
				if int(e.From) != n || int(e.To) <= n {
					tb.Errorf("an edge of node %d leads from %d to %d", n, e.From, e.To)
				}
				survivors[n] = survivors[n] || survivors[e.To]
			}
			if b.Nodes[n].Survives != survivors[n] {
				tb.Errorf("node %d of %d survives: %v", n, len(b.Nodes), b.Nodes[n].Survives)
			}
			if b.Nodes[n].First > b.Nodes[n].Last {
				tb.Errorf("node %d lasts from %d to %d", n, b.Nodes[n].First, b.Nodes[n].Last)
			}
		}
		for _, e := range b.Edges {
			if !b.Nodes[e.From].Survives || !b.Nodes[e.To].Survives {
				continue
			}
			earliest, latest := b.Span(e, &t.Operations[e.Op])
			a.add(t, int(e.Op), t.number(b.State(e.From)), t.number(b.State(e.To)), span{earliest, latest})
		}
		cut = slices.Clone(b.State(b.Exits[0]))
		if b.Last {
			for _, n := range b.Exits {
				a.Ends[t.number(b.State(n))] = true
			}
		} else if len(b.Exits) != 1 {
			tb.Errorf("a cut has %d exits", len(b.Exits))
		}
		return nil
	})
	var stuck *Stuck
	switch {
	case errors.As(err, &stuck):
		a = newAnswer()
		a.Stuck, a.Explained = true, stuck.Explained
		if stuck.Op < 0 || len(stuck.States) == 0 {
			tb.Errorf("the search is stuck at operation %d in states %v", stuck.Op, stuck.States)
		}
	case err != nil:
		tb.Error(err)
	}
	if t.Touches == nil {
		addEnds(tb, t, a)
	}
	return a
}

// addEnds adds what Reach says, which must be stuck where the search is.
func addEnds(tb testing.TB, t *table, a *answer) {
	ends, err := Reach(context.Background(), &t.Problem, Budget{}, func(s State) uint8 { return uint8(mark(t.number(s))) })
	var stuck *Stuck
	if errors.As(err, &stuck) != a.Stuck || a.Stuck && stuck.Explained != a.Explained || err != nil && stuck == nil {
		tb.Errorf("the search is stuck: %v; Reach: %v", a.Stuck, err)
	}
	for _, e := range ends {
		a.Marked[[2]int{t.number(e.State), int(e.Marks)}] = true
	}
}

// TestBrute compares random problems with the enumeration of all their orders.
func TestBrute(t *testing.T) {
	count := 4_000
	if testing.Short() {
		count = 1_000
	}
	explained := 0
	for seed := range count {
		p := randomProblem(rand.New(rand.NewPCG(uint64(seed), 1)))
		want, got := brute(p), explored(t, p)
		if !want.Stuck {
			explained++
			want.Explained = 0 // told of a stuck search only
		}
		if slices.ContainsFunc(p.Operations, func(o Operation) bool { return o.Optional && o.Return != traces.Forever }) {
			// An optional operation that is needed later and has a bound does not bound what comes before it.
			for op, s := range want.Spans {
				if g := got.Spans[op]; g.Earliest == s.Earliest && g.Latest >= s.Latest {
					want.Spans[op] = g
				}
			}
		}
		if diff := gocmp.Diff(want, got); diff != "" || t.Failed() {
			for i, o := range p.Operations {
				t.Logf("operation %d: %+v %v", i, o, p.next[i])
			}
			for _, s := range p.Initial {
				t.Logf("begins with %d", p.number(s))
			}
			t.Fatalf("seed %d (-brute force +search):\n%s", seed, diff)
		}
	}
	if explained < count/10 || explained > count*9/10 {
		t.Errorf("%d of %d problems can be explained: too few or too many to tell", explained, count)
	}
}

// apart makes a random problem whose operations touch one or two facts each, and says which.
func apart(rng *rand.Rand) *table {
	t := randomProblem(rng)
	touched, changed := make([]State, len(t.Operations)), make([]State, len(t.Operations))
	for op := range t.Operations {
		t.Operations[op].Optional, t.Operations[op].Alike = false, 0
		t.Operations[op].Return = min(t.Operations[op].Return, 20)
		facts := rng.Perm(bits)[:1+rng.IntN(2)]
		seen, mask := map[int]int{}, 0
		reads := rng.IntN(3) == 0
		touched[op], changed[op] = make(State, t.Words), make(State, t.Words)
		for _, f := range facts {
			mask |= 1 << f
			touched[op].Set(t.place(int32(f)))
		}
		if !reads {
			changed[op] = touched[op]
		}
		for s := range t.next[op] {
			local, known := seen[s&mask]
			if !known {
				local = rng.IntN(1<<bits) & mask
				if reads {
					local = s & mask
				}
				if rng.IntN(3) == 0 {
					local = -1
				}
				seen[s&mask] = local
			}
			if t.next[op][s] = -1; local >= 0 {
				t.next[op][s] = s&^mask | local
			}
		}
	}
	t.Touches = func(op int) (all, changes State) { return touched[op], changed[op] }
	return t
}

// TestIndependent checks that operations without common facts need not be tried in both orders to find out how the history
// can end, and where it gets stuck.
func TestIndependent(t *testing.T) {
	reduced := 0
	for seed := range 4_000 {
		p := apart(rand.New(rand.NewPCG(uint64(seed), 2)))
		want, got := brute(p), explored(t, p)
		if len(got.Changes) < len(want.Changes) {
			reduced++
		}
		if got.Explained <= want.Explained {
			got.Explained, want.Explained = 0, 0 // of a stuck search; the longest ones need not be followed to their end
		}
		want.Changes, want.Spans, got.Changes, got.Spans = nil, nil, nil, nil
		want.Marked = got.Marked // the reduced graph does not have all orders
		if diff := gocmp.Diff(want, got); diff != "" || t.Failed() {
			for i, o := range p.Operations {
				t.Logf("operation %d: %+v %v", i, o, p.next[i])
			}
			t.Fatalf("seed %d (-brute force +search):\n%s", seed, diff)
		}
	}
	if reduced < 200 {
		t.Errorf("only %d graphs were smaller for it", reduced)
	}
}

// TestBounds checks that a search that is too large, or no longer wanted, says so.
func TestBounds(t *testing.T) {
	p := &Problem{Words: 1, Initial: []State{{0}}, Step: func(op int, from, to State) bool {
		to[0] = from[0] | 1<<op
		return true
	}}
	for range 20 {
		p.Operations = append(p.Operations, Operation{Call: 0, Return: 1})
	}
	ignore := func(*Block) error { return nil }
	if err := Explore(context.Background(), p, Budget{Nodes: 1000}, ignore); !errors.Is(err, ErrBudget) {
		t.Errorf("20 concurrent operations in 1000 nodes: %v, want ErrBudget", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Explore(ctx, p, Budget{}, ignore); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled search: %v, want %v", err, context.Canceled)
	}
	p.Operations = p.Operations[:2]
	broken := fmt.Errorf("enough")
	if err := Explore(context.Background(), p, Budget{}, func(*Block) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a visit that fails: %v, want %v", err, broken)
	}
}
