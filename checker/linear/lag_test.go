package linear

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"linearize.example/internal/histories"
	"linearize.example/traces"
)

func capture(t testing.TB, name string) []traces.Operation {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "testdata", "captures", name, "history.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := traces.History{Inputs: make([]traces.Input, 1)}
	if err := traces.ReadHistory(f, &h, 0); err != nil {
		t.Fatal(err)
	}
	if h.Inputs[0].Rejected > 0 {
		t.Fatal(h.Inputs[0].Rejections)
	}
	return h.Operations
}

func TestCaptures(t *testing.T) {
	for _, c := range []struct {
		name  string
		all   Verdict
		stale []Lag
		max   time.Duration
		reads int
	}{
		{"real-run-incident", NotLinearizable, []Lag{
			{Index: 10, ID: "seq 11", Lag: 193492, Explained: true},
			{Index: 12, ID: "seq 13", Lag: 23785056, Explained: true},
		}, 23785056, 6},
		{"real-run-control", Linearizable, nil, 0, 5},
		{"real-run-restart", Linearizable, nil, 0, 4},
	} {
		for _, others := range []Presence{Maybe, Absent} {
			ops := capture(t, c.name)
			r := Check(context.Background(), ops, Initial{Others: others}, Options{})
			if r.Mutations != Linearizable || r.All != c.all {
				t.Errorf("%s: %s, with reads %s; want linearizable and %s", c.name, r.Mutations, r.All, c.all)
			}
			report := ReadLag(context.Background(), ops, Initial{Others: others}, Options{})
			stale := slices.DeleteFunc(slices.Clone(report.Reads), func(l Lag) bool { return l.Lag == 0 })
			if diff := cmp.Diff(c.stale, stale, cmp.Comparer(func(a, b []Lag) bool { return slices.Equal(a, b) })); diff != "" {
				t.Errorf("%s: stale reads (-want +got):\n%s", c.name, diff)
			}
			if report.Max != c.max || report.Joint != c.max || report.Together != Linearizable || len(report.Reads) != c.reads || report.Unexplained != 0 {
				t.Errorf("%s: %+v", c.name, report)
			}
		}
	}
}

// What the lags must be, by enumeration of all orders for every lag that can matter.
func enumerateLags(ops []traces.Operation, t *timeline, initials []set, lenient bool) (orderable bool, lags []Lag, joint time.Duration, together Verdict) {
	ops = slices.Clone(ops)
	var mutations, reads []traces.Operation
	kept := make([]bool, len(ops))
	moved := make([]int, len(ops))
	for i := range ops {
		ops[i].Call, ops[i].Return = t.call[i], t.ret[i]
		op := ops[i]
		if op.Op == traces.DescribeSecurityGroups {
			op.After = i // its index
			reads = append(reads, op)
			continue
		}
		kept[i], moved[i] = true, len(mutations)
		mutations = append(mutations, op)
	}
	before := t.nearest(ops, kept)
	for i := range ops {
		if kept[i] {
			m := &mutations[moved[i]]
			if m.After = before[i]; m.After >= 0 {
				m.After = moved[m.After]
			}
		}
	}
	if !bruteForce(mutations, initials, lenient) {
		return false, nil, 0, Unknown
	}
	least := func(reads []traces.Operation) (time.Duration, bool) {
		candidates := []time.Duration{0}
		for _, r := range reads {
			for _, m := range ops {
				candidates = append(candidates, r.Call.Sub(m.Call), r.Call.Sub(m.Return))
			}
		}
		candidates = append(candidates, slices.Max(candidates)+1)
		slices.Sort(candidates)
		for _, lag := range candidates {
			if lag < 0 {
				continue
			}
			all := slices.Clone(mutations)
			for _, r := range reads {
				r.Call, r.After = r.Call.Add(-lag), -1
				all = append(all, r)
			}
			if bruteForce(all, initials, lenient) {
				return lag, true
			}
		}
		return 0, false
	}
	var explained []traces.Operation
	for _, r := range reads {
		lag, ok := least([]traces.Operation{r})
		if ok {
			explained = append(explained, r)
		}
		lags = append(lags, Lag{Index: r.After, ID: r.ID, Lag: lag, Explained: ok})
	}
	joint, ok := least(explained)
	if !ok {
		return true, lags, 0, NotLinearizable
	}
	return true, lags, joint, Linearizable
}

func TestReadLagAgreesWithEnumeration(t *testing.T) {
	count := map[string]int{}
	for seed := range uint64(6000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		rules := 1 + rng.IntN(3)
		ops, initial, lenient := randomOps(rng, 4+rng.IntN(4), rules, 10)
		got := ReadLag(context.Background(), ops, initial, Options{Lenient: lenient})
		tl, err := newTimeline(ops)
		if err != nil {
			if got.Mutations != Unknown {
				t.Fatalf("seed %d: got %s, want unknown", seed, got.Mutations)
			}
			continue
		}
		orderable, lags, joint, together := enumerateLags(ops, tl, initials(rules, assume(ops, rules, initial)), lenient)
		if !orderable {
			if got.Mutations != NotLinearizable {
				t.Fatalf("seed %d: got %s, want not-linearizable\n%s", seed, got.Mutations, show(ops, initial, lenient))
			}
			count["not orderable"]++
			continue
		}
		if got.Mutations != Linearizable || !slices.Equal(got.Reads, lags) || got.Joint != joint || got.Together != together {
			t.Fatalf("seed %d: got %+v\nwant %+v, together %d %s\n%s", seed, got, lags, joint, together, show(ops, initial, lenient))
		}
		switch {
		case together == NotLinearizable:
			count["contradict"]++
		case joint > got.Max:
			count["joint longer"]++
		case joint > 0:
			count["stale"]++
		case got.Unexplained > 0:
			count["unexplained"]++
		}
	}
	t.Log(count)
	for _, k := range []string{"not orderable", "contradict", "joint longer", "stale", "unexplained"} {
		if count[k] == 0 {
			t.Errorf("no case is %s", k)
		}
	}
}

// Reads are never found to be older than they are, and never younger than the first order explains.
func TestReadLagOfSimulation(t *testing.T) {
	for seed := range uint64(20) {
		const lag = 40 * time.Millisecond
		ops := histories.Random(seed, 2000, 4, histories.Options{Rules: 6, Reads: 0.4, MaxLag: lag, Concurrency: 2})
		r := ReadLag(context.Background(), ops, Initial{Others: Absent}, Options{})
		if r.Mutations != Linearizable || r.Unexplained > 0 || r.Max > lag || r.Stale == 0 || r.Together == NotLinearizable || r.Joint > lag {
			t.Errorf("seed %d: stale %d, unexplained %d, max %s, joint %s %s: %s", seed, r.Stale, r.Unexplained, r.Max, r.Joint, r.Together, r.Detail)
		}
	}
}
