package explain

import (
	"fmt"
	"testing"
)

// BenchmarkExplain explains behaviours of eight bindings; the time for 3,000 operations is to be at most 3.3 times that for 1,000.
func BenchmarkExplain(b *testing.B) {
	for _, n := range []int{1000, 3000} {
		for _, looks := range []bool{false, true} {
			b.Run(fmt.Sprintf("operations=%d/describes=%v", n, looks), func(b *testing.B) {
				k := newWalker(b, walk{design: "v3.4.0", env: "old-reads", tgbs: 8, looks: looks, seed: 2})
				for len(k.ops) < n {
					k.step()
				}
				s := k.subject()
				for b.Loop() {
					r := explained(b, s, "v3.4.0", "old-reads", Options{States: 1 << 30})
					if r.Verdict != Explains {
						b.Fatalf("%s at %d: %s %v", r.Verdict, r.Done, r.Stuck, r.Why)
					}
					b.ReportMetric(float64(r.States), "states")
				}
			})
		}
	}
}
