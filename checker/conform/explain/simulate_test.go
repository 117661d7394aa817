package explain

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linearize.example/checker/simulate"
	"linearize.example/model"
	"linearize.example/traces"
	"linearize.example/traces/awsapi"
	"linearize.example/traces/capture"
)

// TestSimulatedRunsConform: what the reference implementation does, running live through the AWS SDK, its design explains, with
// all that the recorder tells of it; other designs do not.
func TestSimulatedRunsConform(t *testing.T) {
	for _, c := range []struct {
		design, environment, faults, not string
		plan                             simulate.Plan
	}{
		{design: "v3.4.0", environment: "fresh-reads", not: "confirm-authorize", plan: simulate.Plan{Restarts: 2}},
		{design: "v3.4.0", environment: "old-reads", faults: `{"readLag":{"revoke":"1s"}}`, not: "no-cache"},
		{design: "v3.4.0", environment: "older-reads", faults: `{"readLag":"1s"}`, not: "v2.7.2"},
		{design: "v3.4.0", environment: "crash", not: "v2.7.2", plan: simulate.Plan{Crashes: 2}},
		{design: "v3.4.0", environment: "external-revokes", not: "confirm-authorize", plan: simulate.Plan{ExternalRevokes: 2}},
		{design: "v2.7.2", environment: "fresh-reads", not: "v3.4.0"},
		{design: "confirm-authorize", environment: "older-reads", faults: `{"readLag":"1s"}`, not: "v3.4.0"},
		{design: "read-your-writes", environment: "old-reads", faults: `{"readLag":{"revoke":"1s"}}`, not: "v3.4.0"},
		{design: "no-cache", environment: "fresh-reads", not: "v2.7.2"},
		{design: "checkpoint-verifies-aws", environment: "old-reads", faults: `{"readLag":{"revoke":"1s"}}`, not: "v3.4.0"},
		{design: "proposed", environment: "fresh-reads", not: "checkpoint-verifies-aws"},
		{design: "v3.4.0", environment: "leader-change", not: "v2.7.2", plan: simulate.Plan{LeaderChanges: 1}},
		{design: "v3.4.0", environment: "very-old-reads", faults: `{"readLag":"1.5s"}`, not: "no-cache"},
	} {
		t.Run(c.design+" "+c.environment, func(t *testing.T) {
			c.plan.Churn, c.plan.Seed, c.plan.Duration, c.plan.Bindings = simulate.Boundary, 3, 20*time.Minute, 3
			script, err := simulate.NewScript(c.plan)
			if err != nil {
				t.Fatal(err)
			}
			design, err := model.DesignNamed(c.design)
			if err != nil {
				t.Fatal(err)
			}
			opt := simulate.Options{Design: design, Script: script, Workers: 1}
			if c.faults != "" {
				if opt.Faults, err = awsapi.LoadFaults(strings.NewReader(c.faults)); err != nil {
					t.Fatal(err)
				}
			}
			run, err := simulate.Run(context.Background(), opt)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "history.ndjson")
			if err := os.WriteFile(path, run.History, 0o644); err != nil {
				t.Fatal(err)
			}
			read, err := capture.Read(context.Background(), []string{path}, nil, capture.Options{Skew: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			h := traces.Merge(read.History, time.Second)
			h.Operations = traces.ResolveRuleIDs(h.Operations, nil)
			s := subject(t, h)
			if s.Observations() < 50 || s.Operations() < 50 {
				t.Errorf("%d calls and %d observations only", s.Operations(), s.Observations())
			}
			for _, d := range []string{c.design, c.not} {
				r := explained(t, s, d, c.environment, Options{})
				if (r.Verdict == Explains) != (d == c.design) || r.Verdict == Unknown {
					t.Errorf("%s: %s %d of %d, then not %s: %q %s", d, r.Verdict, r.Done, r.Of, r.Stuck, r.Why, r.Bound)
				}
			}
		})
	}
}
