package explain

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"linearize.example/model"
	"linearize.example/traces"
	"linearize.example/traces/capture"
)

// read prepares the only subject of a capture.
func read(t *testing.T, name string) (*traces.History, *Subject) {
	t.Helper()
	path := filepath.Join("..", "..", "..", "testdata", "captures", filepath.FromSlash(name))
	c, err := capture.Read(context.Background(), []string{path}, nil, capture.Options{Skew: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	h := traces.Merge(c.History, time.Second)
	h.Operations = traces.ResolveRuleIDs(h.Operations, c.Snapshots)
	return h, subject(t, h)
}

func subject(t *testing.T, h *traces.History) *Subject {
	t.Helper()
	list := Subjects(h, Selection{})
	if len(list) != 1 {
		t.Fatalf("%d subjects", len(list))
	}
	return list[0]
}

func explained(t testing.TB, s *Subject, design, env string, opt Options) *Result {
	t.Helper()
	d, err := model.DesignNamed(design)
	if err != nil {
		t.Fatal(err)
	}
	e, err := EnvironmentNamed(env)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Explain(context.Background(), s, d, e, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestOtherDesigns: see TestFacts for the releases and confirm-authorize.
func TestOtherDesigns(t *testing.T) {
	for _, c := range []struct {
		capture, design, environment string
		want                         Verdict
	}{
		{"incident-2026-08-28", "read-your-writes", "old-reads", DoesNot},
		{"incident-2026-08-28", "all-ports", "old-reads", DoesNot},
		{"incident-2026-08-28", "no-cache", "old-reads", Explains},
		{"incident-2026-08-28", "guard-view", "old-reads", Explains},
		{"incident-2026-08-28", "confirm-authorize", "older-reads", DoesNot},
		{"incident-2026-08-28", "v3.4.0", "slow-reads", Explains},
		{"incident-2026-08-28", "v3.4.0", "crash", Explains},
		{"incident-2026-08-28", "v3.4.0", "default-vpc", DoesNot},
		{"real-run-control/history.ndjson", "no-cache", "fresh-reads", Explains},
	} {
		t.Run(strings.Join([]string{c.capture, c.design, c.environment}, " "), func(t *testing.T) {
			_, s := read(t, c.capture)
			if r := explained(t, s, c.design, c.environment, Options{}); r.Verdict != c.want {
				t.Errorf("%s, want %s: %d of %d, then not %s: %s (%s)", r.Verdict, c.want, r.Done, r.Of, r.Stuck, r.Why, r.Bound)
			}
		})
	}
}

// TestIncident finds what the report could not: two describes that were old, and the cache that kept the second.
func TestIncident(t *testing.T) {
	_, s := read(t, "incident-2026-08-28")
	r := explained(t, s, "v3.4.0", "old-reads", Options{})
	want := []string{
		"the describe between 09:55:17 and 09:55:17 returned a version at least one change old",
		"the describe between 09:55:17 and 09:55:18 returned a version at least one change old",
		"what was decided before 09:56:01 rests on a stale cache: tcp 3000-3008, tcp 3000-8025 instead of tcp 3000-3008",
		"the controller started anew between 09:56:02 and 10:05:36",
	}
	if diff := cmp.Diff(want, r.Facts); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	seen := 0
	for _, l := range r.Story {
		if l.Seen {
			seen++
		}
	}
	if seen != 13 {
		t.Errorf("the story shows %d of 11 calls and two observations", seen)
	}
}

// TestStrangersRemoveSeveralRules: one call of somebody else takes two rules away, and the controller finds out.
func TestStrangersRemoveSeveralRules(t *testing.T) {
	one, two := span{3000, 3000}, span{3000, 3008}
	at := func(second int, op operation) operation {
		op.call = traces.Instant(second) * 1_000_000_000
		op.ret, op.after, op.outcome = op.call, -1, traces.Succeeded
		return op
	}
	s := &Subject{Group: "sg-1", Protocol: "tcp", Source: "sg-lb", ports: []int32{3000, 3008}, initial: [][]span{{one, two}},
		callers: []string{"lbc"}}
	s.ops = []operation{
		at(1, operation{kind: revoke, rules: []span{one, two}, caller: "somebody", foreign: true}),
		at(2, operation{kind: authorize, rules: []span{two}, caller: "lbc"}),
	}
	if r := explained(t, s, "v3.4.0", "fresh-reads", Options{}); r.Verdict != Explains {
		t.Errorf("%s: %s %v", r.Verdict, r.Stuck, r.Why)
	}
	s.ops[0].foreign = false
	if r := explained(t, s, "v3.4.0", "fresh-reads", Options{}); r.Verdict != DoesNot {
		t.Errorf("a controller removes all that it wants: %s", r.Verdict)
	}
}
