package simulate

import (
	"context"
	"testing"
	"time"

	"linearize.example/checker/conform/explain"
	"linearize.example/model"
	"linearize.example/traces"
	"linearize.example/traces/awsapi"
)

// mostStates bounds a search: no run of a few minutes needs as many.
const mostStates = 100_000

// explains reports whether the specification has a behaviour of the design whose calls and observations are those of the history,
// in the first of the environments that allows it.
func explains(t *testing.T, h *traces.History, d model.Design, environments ...string) (verdict explain.Verdict, failed string) {
	h = traces.Merge(h, 0)
	h.Operations = traces.ResolveRuleIDs(h.Operations, nil)
	subjects := explain.Subjects(h, explain.Selection{Groups: []string{PodGroup}})
	if len(subjects) != 1 {
		t.Fatalf("%d subjects", len(subjects))
	}
	for _, name := range environments {
		env, err := explain.EnvironmentNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := explain.Explain(context.Background(), subjects[0], d, env, explain.Options{States: mostStates})
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict == explain.Explains {
			return r.Verdict, ""
		}
		verdict, failed = r.Verdict, name
	}
	return verdict, failed
}

// TestRunsConform: what the live controller of a design does is what the specification says of the design.
func TestRunsConform(t *testing.T) {
	inOrder := func(lag time.Duration) *awsapi.Faults {
		return &awsapi.Faults{InOrder: true, ReadLag: awsapi.ReadLag{"authorize": awsapi.Fixed(lag), "revoke": awsapi.Fixed(lag)}}
	}
	for _, name := range []string{"v3.4.0", "v2.7.2", "no-cache", "invalidate-on-error", "write-through", "guard-view", "guard-reread",
		"confirm-before-revoke", "confirm-authorize", "read-your-writes", "checkpoint-verifies-aws", "proposed", "group-mutex",
		"gate-register"} {
		d := design(t, name)
		for seed := uint64(1); seed <= seeds(2); seed++ {
			plan := Plan{Churn: Boundary, Seed: seed, Duration: 6 * time.Minute, Bindings: 3}
			for _, c := range []struct {
				what         string
				faults       *awsapi.Faults
				change       func(p *Plan)
				environments []string
			}{
				{"reads that are never old", nil, nil, []string{"fresh-reads"}},
				{"reads that are old by 150 ms", inOrder(150 * time.Millisecond), nil, []string{"old-reads", "older-reads"}},
				{"a crash and a restart", nil, func(p *Plan) { p.Crashes, p.Restarts = 1, 1 }, []string{"crash"}},
				{"another leader", nil, func(p *Plan) { p.LeaderChanges, p.Bindings, p.Duration = 1, 2, MinDuration }, []string{"fresh-reads", "leader-change"}},
				{"removal by somebody else", nil, func(p *Plan) { p.ExternalRevokes = 1 }, []string{"external-revokes"}},
			} {
				p := plan
				if c.change != nil {
					c.change(&p)
				}
				run, _ := ran(t, Options{Design: d, Script: script(t, p), Faults: c.faults, Workers: 1})
				h := readHistory(t, run.History)
				if v, failed := explains(t, h, d, c.environments...); v != explain.Explains {
					t.Errorf("%s, %s, seed %d: %s in %s", name, c.what, seed, v, failed)
				}
			}
			run, _ := ran(t, Options{Design: d, Script: script(t, plan), Workers: 2})
			if v, failed := explains(t, readHistory(t, run.History), d, "fresh-reads", "two-workers-old-reads"); v != explain.Explains {
				t.Errorf("%s, two workers, seed %d: %s in %s", name, seed, v, failed)
			}
		}
	}
}

// TestOthersDoNot: a design that makes other calls does not explain them.
func TestOthersDoNot(t *testing.T) {
	run, _ := ran(t, Options{Design: design(t, "v3.4.0"), Script: script(t, Plan{Churn: Boundary, Seed: 1, Duration: 6 * time.Minute, Bindings: 3}), Workers: 1})
	for _, name := range []string{"v2.7.2", "no-cache", "guard-reread", "read-your-writes", "all-ports"} {
		if v, _ := explains(t, readHistory(t, run.History), design(t, name), "fresh-reads", "old-reads"); v != explain.DoesNot {
			t.Errorf("%s: %s", name, v)
		}
	}
}
