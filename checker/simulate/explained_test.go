package simulate

import (
	"testing"
	"time"

	"linearize.example/checker/conform/explain"
	"linearize.example/traces"
)

// TestWeakRecordingsExplained: what a design did is what the specification says of it, also where a recording shows less of it. The search
// may end without an answer, but it does not say that the design did not do it.
func TestWeakRecordingsExplained(t *testing.T) {
	some := 0
	for _, name := range []string{"v3.4.0", "v2.7.2", "confirm-authorize"} {
		for _, c := range []struct {
			what         string
			change       func(p *Plan)
			environments []string
		}{
			{"reads that are never old", nil, []string{"fresh-reads"}},
			{"a crash and a restart", func(p *Plan) { p.Crashes, p.Restarts = 1, 1 }, []string{"crash"}},
			{"removal by somebody else", func(p *Plan) { p.ExternalRevokes = 1 }, []string{"external-revokes"}},
		} {
			plan := Plan{Churn: Boundary, Seed: 1, Duration: MinDuration, Bindings: 3}
			if c.change != nil {
				c.change(&plan)
			}
			o := observe(t, Options{Design: design(t, name), Script: script(t, plan), Workers: 1}, false)
			r := recordings{t, t.TempDir()}
			trail := r.cloudTrail(o, false)
			history := r.history(o, "history.ndjson", func(*traces.Operation) bool { return true })
			blind := r.history(o, "blind.ndjson", func(op *traces.Operation) bool { return !isDescribe(op) })
			for _, rec := range []struct {
				what  string
				skew  time.Duration
				paths []string
			}{
				{"without describes", 0, []string{blind}},
				{"CloudTrail", 0, []string{trail}},
				{"CloudTrail, a second off", time.Second, []string{trail}},
				{"history and CloudTrail", time.Second, []string{history, trail}},
				{"log and CloudTrail", time.Second, append(r.logs(o), trail)},
			} {
				switch v, failed := explains(t, r.read(rec.skew, rec.paths...).History, design(t, name), c.environments...); v {
				case explain.DoesNot:
					t.Errorf("%s, %s, %s: does not explain in %s", name, c.what, rec.what, failed)
				case explain.Explains:
					some++
				}
			}
		}
	}
	if some < 30 {
		t.Errorf("of 45 recordings only %d are explained", some)
	}
}
