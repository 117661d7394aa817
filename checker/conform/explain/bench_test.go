package explain

import (
	"fmt"
	"testing"
	"time"

	"linearize.example/traces"
)

// paced is a walk as CloudTrail shows it: some calls every two seconds, whole seconds alone, widened by a second for clocks
// that differ. So up to twice as many overlap.
func (k *walker) paced(calls int) *Subject {
	s := k.subject()
	for i := range s.ops {
		op := &s.ops[i]
		second := traces.Instant(2*i/calls) * traces.Instant(time.Second)
		op.stamp, op.call, op.ret = second, second.Add(-time.Second), second.Add(2*time.Second-1)
	}
	return s
}

// BenchmarkExplain explains behaviours of eight bindings; the time for 3,000 operations is to be at most 3.3 times that for 1,000.
// Those with a call changed near their end are to be rejected, which needs all explanations of what comes before.
func BenchmarkExplain(b *testing.B) {
	for _, c := range []struct {
		name, design   string
		looks, targets bool
		paced          int
		rejected       bool
	}{
		{name: "describes", design: "v3.4.0", looks: true},
		{name: "calls", design: "v3.4.0"},
		{name: "calls+targets", design: "v3.4.0", targets: true},
		{name: "cloudtrail", design: "v3.4.0", paced: 6},
		{name: "cloudtrail+targets", design: "v3.4.0", targets: true, paced: 6},
		{name: "v2.7.2", design: "v2.7.2"},
		{name: "confirm-authorize", design: "confirm-authorize"},
		{name: "no-cache,describes", design: "no-cache", looks: true},
		{name: "rejected,describes", design: "v3.4.0", looks: true, rejected: true},
		{name: "rejected,calls", design: "v3.4.0", rejected: true},
		{name: "rejected,cloudtrail", design: "v3.4.0", paced: 1, rejected: true},
		{name: "rejected,cloudtrail+targets", design: "v3.4.0", targets: true, paced: 1, rejected: true},
	} {
		for _, n := range []int{1000, 3000} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				k := newWalker(b, walk{design: c.design, env: "old-reads", tgbs: 8, looks: c.looks, targets: c.targets, seed: 2})
				for len(k.ops) < n {
					k.step()
				}
				want := Explains
				if c.rejected {
					k.spoilAt(n * 9 / 10)
					want = DoesNot
				}
				s := k.subject()
				if c.paced > 0 {
					s = k.paced(c.paced)
				}
				var r *Result
				for b.Loop() {
					r = explained(b, s, c.design, "old-reads", Options{})
				}
				if r.Verdict != want {
					b.Errorf("%s at %d: %s %v %s", r.Verdict, r.Done, r.Stuck, r.Why, r.Bound)
				}
				b.ReportMetric(float64(r.States), "states")
			})
		}
	}
}

// spoilAt has the group hold what it cannot hold: the first grant from an operation on is said to have found its rule there.
func (k *walker) spoilAt(from int) {
	for i := from; i < len(k.ops); i++ {
		if op := &k.ops[i]; op.kind == authorize && op.outcome == traces.Succeeded {
			op.outcome, op.err = traces.Failed, duplicate
			return
		}
	}
}
