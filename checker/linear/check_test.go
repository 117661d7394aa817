package linear

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"linearize.example/internal/histories"
	"linearize.example/traces"
)

// Check agrees with the enumeration of all orders, however finely it cuts.
func TestCheckAgreesWithEnumeration(t *testing.T) {
	const cases = 5000
	count := map[[2]Verdict]int{}
	for seed := range uint64(cases) {
		rng := rand.New(rand.NewPCG(seed, 1))
		rules := 1 + rng.IntN(4)
		ops, initial, lenient := randomOps(rng, 1+rng.IntN(7), rules, 2)
		opts := Options{Lenient: lenient, stretch: 1 + rng.IntN(8), piece: 1 + rng.IntN(4)}
		got := Check(context.Background(), ops, initial, opts)
		known := initials(rules, assume(ops, rules, initial))
		want := [2]Verdict{NotLinearizable, NotLinearizable}
		if _, err := newTimeline(ops); err != nil {
			want = [2]Verdict{}
		} else {
			if bruteForce(withoutReads(ops), known, lenient) {
				want[0] = Linearizable
			}
			if bruteForce(ops, known, lenient) {
				want[1] = Linearizable
			}
		}
		if got.Mutations != want[0] || got.All != want[1] {
			t.Fatalf("seed %d: got %s, %s (%s); want %s, %s\n%s", seed, got.Mutations, got.All, got.Detail, want[0], want[1],
				show(ops, initial, lenient))
		}
		if failed := want[0] == NotLinearizable || want[1] == NotLinearizable; failed != (got.Failed != nil) {
			t.Fatalf("seed %d: the failed stretch is %+v", seed, got.Failed)
		}
		count[want]++
	}
	for _, v := range [][2]Verdict{{Linearizable, Linearizable}, {Linearizable, NotLinearizable}, {NotLinearizable, NotLinearizable}} {
		if count[v] < cases/50 {
			t.Errorf("only %d of %d cases are %s without reads and %s with them", count[v], cases, v[0], v[1])
		}
	}
}

// On histories of the sizes that are cut, Check agrees with Porcupine in one piece.
func TestCheckAgreesWithOnePiece(t *testing.T) {
	count := map[Verdict]int{}
	for seed := range uint64(80) {
		o := histories.Options{
			Rules: 6, Reads: float64(seed%3) * 0.2, Concurrency: 0.5 + float64(seed%4), Pending: int(seed % 4), Throttled: 0.05,
			ViolationAt: int(seed%2) * (20 + int(seed)),
		}
		if seed%5 == 0 {
			o.Tick = 20 * time.Millisecond
		}
		ops := histories.Random(seed, 300, 5, o)
		initial := Initial{Others: []Presence{Absent, Maybe}[seed%7%2]}
		model, history, err := OnePiece(ops, initial, Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := NotLinearizable
		if porcupine.CheckOperations(model, history) {
			want = Linearizable
		}
		got := Check(context.Background(), ops, initial, Options{stretch: 10, piece: 12})
		if got.All != want {
			t.Errorf("seed %d: got %s, Porcupine in one piece says %s (%s)", seed, got.All, want, got.Detail)
		}
		count[want]++
	}
	if count[Linearizable] < 20 || count[NotLinearizable] < 20 {
		t.Errorf("the verdicts are %v", count)
	}
}

func TestBounds(t *testing.T) {
	busy := histories.Random(7, 10_000, 10, histories.Options{Concurrency: 10, ViolationAt: 5000, Rules: 64})
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		name   string
		ctx    context.Context
		opts   Options
		detail string
	}{
		{"time", context.Background(), Options{Timeout: time.Millisecond}, "the time ran out"},
		{"context", cancelled, Options{}, "the time ran out"},
		{"memory", context.Background(), Options{MaxBytes: 1 << 20}, "the memory for a stretch of"},
		{"stretch", context.Background(), Options{MaxStretch: 50}, "a stretch of "},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			r := Check(c.ctx, busy, closedWorld, c.opts)
			if r.Mutations != Unknown || r.All != Unknown || !strings.HasPrefix(r.Detail, c.detail) {
				t.Errorf("got %s, %s: %q; want unknown: %q", r.Mutations, r.All, r.Detail, c.detail)
			}
			// A run ends synchronously; the runtime may need a moment to notice.
			for wait := 0; wait < 500 && runtime.NumGoroutine() > before; wait++ {
				time.Sleep(10 * time.Millisecond)
			}
			if after := runtime.NumGoroutine(); after > before {
				t.Errorf("%d goroutines before, %d after", before, after)
			}
		})
	}
	if r := ReadLag(cancelled, busy, closedWorld, Options{}); r.Mutations != Unknown || r.Detail == "" {
		t.Errorf("ReadLag without time says %s: %s", r.Mutations, r.Detail)
	}
	if r := ReadLag(context.Background(), busy, closedWorld, Options{MaxStates: 100}); r.Mutations != Unknown || r.Detail != "more than 100 configurations" {
		t.Errorf("ReadLag without memory says %s: %s", r.Mutations, r.Detail)
	}
}

func TestContradictoryInput(t *testing.T) {
	op := func(id string, call, ret traces.Instant, after int) traces.Operation {
		return traces.Operation{ID: id, Op: traces.RevokeSecurityGroupIngress, Permissions: []traces.Permission{rule(1)},
			Outcome: traces.Succeeded, Call: call, Return: ret, After: after}
	}
	for _, c := range []struct {
		name   string
		ops    []traces.Operation
		detail string
	}{
		{"circle", []traces.Operation{op("a", 1, 2, 1), op("b", 1, 2, 0)}, "a and b are each said to come after the other"},
		{"itself", []traces.Operation{op("a", 1, 2, 0)}, "a and a are each said to come after the other"},
		{"range", []traces.Operation{op("a", 1, 2, 7)}, "a comes after operation 7 of 1"},
		{"backwards", []traces.Operation{op("a", 2000000001, 1000000000, -1)},
			"a returned at 1970-01-01T00:00:01Z, before it can have been sent at 1970-01-01T00:00:02.000000001Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Check(context.Background(), c.ops, Initial{}, Options{})
			if r.Mutations != Unknown || r.All != Unknown || r.Detail != c.detail {
				t.Errorf("got %s, %s: %q; want unknown: %q", r.Mutations, r.All, r.Detail, c.detail)
			}
			if l := ReadLag(context.Background(), c.ops, Initial{}, Options{}); l.Mutations != Unknown || l.Detail != c.detail {
				t.Errorf("ReadLag: got %s: %q", l.Mutations, l.Detail)
			}
			if _, _, err := OnePiece(c.ops, Initial{}, Options{}); err == nil || err.Error() != c.detail {
				t.Errorf("OnePiece: got %v", err)
			}
		})
	}
}
