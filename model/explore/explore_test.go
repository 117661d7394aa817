package explore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// graph is a finite transition system given by its edges. Vertices are spread over the words of a
// state, so that equal low words do not make equal states.
type graph struct {
	bits    int
	initial []int
	edges   [][]edge
	bad     map[int]uint64
}

type edge struct{ action, to int }

func (g *graph) pack(v int) State {
	var s State
	for w := range s {
		if 64*w < g.bits {
			s[w] = (uint64(v) * 0x9e3779b97f4a7c15) >> (8 * w)
		}
	}
	last := g.bits % 64
	if last != 0 {
		s[g.bits/64] &= 1<<last - 1
	}
	s[0] = s[0]&^0xffff | uint64(v)
	return s
}

func (g *graph) Bits() int               { return g.bits }
func (g *graph) Actions() []string       { return []string{"a", "b", "c"} }
func (g *graph) Invariants() []string    { return []string{"p", "q"} }
func (g *graph) Expander() Expander      { return g }
func (g *graph) vertex(s State) int      { return int(s[0] & 0xffff) }
func (g *graph) Violated(s State) uint64 { return g.bad[g.vertex(s)] }

func (g *graph) Initial(emit func(State)) {
	for _, v := range g.initial {
		emit(g.pack(v))
	}
}

func (g *graph) Successors(s State, emit func(int, State)) {
	for _, e := range g.edges[g.vertex(s)] {
		emit(e.action, g.pack(e.to))
	}
}

func randomGraph(r *rand.Rand, bits int) *graph {
	n := 1 + r.IntN(3000)
	g := &graph{bits: bits, edges: make([][]edge, n), bad: map[int]uint64{}}
	for range 1 + r.IntN(3) {
		g.initial = append(g.initial, r.IntN(n))
	}
	for v := range n {
		for range r.IntN(5) {
			// mostly short hops, so that there are many levels
			g.edges[v] = append(g.edges[v], edge{r.IntN(3), (v + r.IntN(40)) % n})
		}
		if r.IntN(200) == 0 {
			g.bad[v] = 1 + uint64(r.IntN(3))
		}
	}
	return g
}

// summary is what the oracle and the explorer must agree on.
type summary struct {
	States, Depth int
	Generated     uint64
	ByAction      []uint64
	Violations    map[int]int // invariant -> depth of its first violation
}

// oracle is a textbook breadth-first search over a map.
func oracle(g *graph) summary {
	depth := map[int]int{}
	out := summary{ByAction: make([]uint64, 3), Violations: map[int]int{}}
	var queue []int
	visit := func(v, d int) {
		out.Generated++
		if _, seen := depth[v]; seen {
			return
		}
		depth[v] = d
		queue = append(queue, v)
		for i := range 2 {
			if _, known := out.Violations[i]; g.bad[v]&(1<<i) != 0 && !known {
				out.Violations[i] = d
			}
		}
	}
	for _, v := range g.initial {
		visit(v, 1)
	}
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		out.Depth = depth[v]
		for _, e := range g.edges[v] {
			out.ByAction[e.action]++
			visit(e.to, depth[v]+1)
		}
	}
	out.States = len(depth)
	return out
}

func summarize(r *Result) summary {
	out := summary{States: r.States, Depth: r.Depth, Generated: r.Generated, ByAction: r.ByAction, Violations: map[int]int{}}
	for _, v := range r.Violations {
		out.Violations[v.Invariant] = v.Depth
	}
	return out
}

func TestRunAgreesWithAMap(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		g := randomGraph(r, []int{16, 17, 63, 64, 65, 128, 130, 255}[seed%8])
		want := oracle(g)
		var traces []string
		for _, workers := range []int{1, 2, 5} {
			got, err := Run(context.Background(), g, Options{Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, summarize(got)); diff != "" || got.Reason != Complete || got.Expanded != got.States {
				t.Fatalf("seed %d, %d workers, %v: (-want +got)\n%s", seed, workers, got.Reason, diff)
			}
			text := ""
			for _, v := range got.Violations {
				steps := got.Trace(v)
				checkPath(t, g, steps, v)
				text += fmt.Sprintln(steps)
			}
			traces = append(traces, text)
		}
		if traces[0] != traces[1] || traces[0] != traces[2] {
			t.Fatalf("seed %d: the counterexample depends on the number of workers:\n%s\n%s\n%s", seed, traces[0], traces[1], traces[2])
		}
	}
}

// checkPath fails unless steps is a path of the graph, of the violation's length, to a violation.
func checkPath(t *testing.T, g *graph, steps []Step, v Violation) {
	t.Helper()
	if len(steps) != v.Depth {
		t.Fatalf("a trace of %d states for a violation at depth %d", len(steps), v.Depth)
	}
	for i, s := range steps[1:] {
		from, found := g.vertex(steps[i].State), false
		for _, e := range g.edges[from] {
			found = found || e == edge{s.Action, g.vertex(s.State)}
		}
		if !found {
			t.Fatalf("step %d is no transition", i+1)
		}
	}
	if g.Violated(steps[len(steps)-1].State)&(1<<v.Invariant) == 0 {
		t.Fatal("the last state violates nothing")
	}
}

// line is the graph 0 → 1 → … → n-1.
func line(n int) *graph {
	g := &graph{bits: 20, initial: []int{0}, edges: make([][]edge, n), bad: map[int]uint64{}}
	for v := range n - 1 {
		g.edges[v] = []edge{{0, v + 1}}
	}
	return g
}

func TestBounds(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	bad := line(100)
	bad.bad[50], bad.bad[60] = 1, 3
	for _, c := range []struct {
		name          string
		ctx           context.Context
		g             *graph
		opts          Options
		reason        Reason
		states, depth int
	}{
		{"none", context.Background(), line(100), Options{}, Complete, 100, 100},
		{"states", context.Background(), line(100), Options{MaxStates: 10}, AtMaxStates, 10, 10},
		{"as many states as there are", context.Background(), line(100), Options{MaxStates: 100}, Complete, 100, 100},
		{"depth", context.Background(), line(100), Options{MaxDepth: 7}, AtMaxDepth, 7, 7},
		{"time", context.Background(), line(100), Options{MaxTime: 1}, AtMaxTime, 1, 1},
		{"interrupt", cancelled, line(100), Options{}, Interrupted, 1, 1},
		{"violation", context.Background(), bad, Options{StopAtViolation: true}, AtViolation, 51, 51},
		{"initial violation", context.Background(), &graph{bits: 16, initial: []int{0}, edges: make([][]edge, 1), bad: map[int]uint64{0: 1}},
			Options{StopAtViolation: true}, AtViolation, 1, 1},
	} {
		got, err := Run(c.ctx, c.g, c.opts)
		if err != nil {
			t.Fatal(err)
		}
		if got.Reason != c.reason || got.States != c.states || got.Depth != c.depth {
			t.Errorf("%s: %v, %d states, depth %d; want %v, %d, %d", c.name, got.Reason, got.States, got.Depth, c.reason, c.states, c.depth)
		}
	}
	if _, err := Run(context.Background(), &graph{bits: 257}, Options{}); err == nil {
		t.Error("a state of 257 bits was accepted")
	}
}

func TestFindAndIndex(t *testing.T) {
	g := line(100)
	r, err := Run(context.Background(), g, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if steps := r.Find(func(s State) bool { return g.vertex(s) == 30 }); len(steps) != 31 || g.vertex(steps[30].State) != 30 {
		t.Errorf("the path to 30 has %d states", len(steps))
	}
	if r.Find(func(State) bool { return false }) != nil {
		t.Error("found a state that is not there")
	}
	if got := r.Index(g.pack(40)); got != 40 {
		t.Errorf("index of 40: %d", got)
	}
	if got := r.Index(g.pack(1000)); got != -1 {
		t.Errorf("index of an unreachable state: %d", got)
	}
}

// grid is a system large enough to measure: pairs of counters below side.
type grid struct{ side uint64 }

func (g grid) Bits() int                { return 64 }
func (g grid) Actions() []string        { return []string{"x", "y"} }
func (g grid) Invariants() []string     { return nil }
func (g grid) Expander() Expander       { return g }
func (g grid) Violated(State) uint64    { return 0 }
func (g grid) Initial(emit func(State)) { emit(State{}) }
func (g grid) Successors(s State, emit func(int, State)) {
	x, y := s[0]>>32, s[0]&(1<<32-1)
	emit(0, State{(x+1)%g.side<<32 | y})
	emit(1, State{x<<32 | (y+1)%g.side})
}

func TestMemoryPerState(t *testing.T) {
	r, err := Run(context.Background(), grid{500}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.States != 250000 || r.Generated != 500001 {
		t.Fatalf("%d states, %d generated", r.States, r.Generated)
	}
	if r.BytesPerState > 17 {
		t.Errorf("%.1f bytes a state of 8 bytes", r.BytesPerState)
	}
}

func BenchmarkRun(b *testing.B) {
	states, bytes := 0, 0.0
	for b.Loop() {
		r, err := Run(context.Background(), grid{1000}, Options{})
		if err != nil {
			b.Fatal(err)
		}
		states += r.States
		bytes = r.BytesPerState
	}
	b.ReportMetric(float64(states)/b.Elapsed().Seconds(), "states/s")
	b.ReportMetric(bytes, "B/state")
}
