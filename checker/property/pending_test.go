package property

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"linearize.example/checker/orders"
	"linearize.example/checker/report"
	"linearize.example/internal/histories"
	"linearize.example/traces"
)

// script builds a capture call by call, a second apart.
type script struct {
	ops []traces.Operation
	now traces.Instant
}

func (s *script) call(op string, rule int, outcome traces.Outcome, code string) {
	s.now = s.now.Add(time.Second)
	o := traces.Operation{Op: op, Group: histories.Group, Process: "p", After: -1, Call: s.now, Return: s.now.Add(time.Second / 2),
		Permissions: []traces.Permission{histories.Rule(rule)}, Outcome: outcome, Error: code}
	if outcome == traces.Pending {
		o.Return = traces.Forever
	}
	s.ops = append(s.ops, o)
}

func (s *script) authorize(rule int) {
	s.call(traces.AuthorizeSecurityGroupIngress, rule, traces.Succeeded, "")
}

func (s *script) revoke(rule int) {
	s.call(traces.RevokeSecurityGroupIngress, rule, traces.Succeeded, "")
}

func (s *script) lose(op string, rule int) { s.call(op, rule, traces.Pending, "") }

// TestManyPending checks that 40 calls of unknown outcome, open at once, leave verdicts definite.
func TestManyPending(t *testing.T) {
	const many = 40
	grant, revoke := traces.AuthorizeSecurityGroupIngress, traces.RevokeSecurityGroupIngress
	tests := []struct {
		name   string
		script func(s *script)
		want   report.Verdict // of never-empty; Unknown: any definite one
	}{
		{"of one rule", func(s *script) {
			s.authorize(0)
			for range many {
				s.lose(grant, 1)
			}
			s.revoke(0)
		}, report.Possible},
		{"of rules that nothing concerns again", func(s *script) {
			s.authorize(0)
			for i := range many {
				s.lose(grant, 1+i)
			}
			s.authorize(many + 1)
		}, report.Holds},
		{"of revokes that nothing concerns again", func(s *script) {
			for i := range many {
				s.authorize(i)
			}
			for i := range many {
				s.lose(revoke, i)
			}
			s.authorize(many + 1)
		}, report.Possible},
		{"each told by a retry, a Duplicate or a revoke", func(s *script) {
			s.authorize(0)
			for i := range many {
				s.lose(grant, 1+i)
			}
			for i := range many {
				switch i % 3 {
				case 0:
					s.authorize(1 + i)
				case 1:
					s.call(grant, 1+i, traces.Failed, "InvalidPermission.Duplicate")
				case 2:
					s.revoke(1 + i)
				}
			}
		}, report.Holds},
		{"of both kinds, each told later", func(s *script) {
			for i := range many / 2 {
				s.authorize(i)
			}
			for i := range many / 2 {
				s.lose(revoke, i)
				s.lose(grant, many+i)
			}
			for i := range many / 2 {
				s.authorize(i)
				s.revoke(many + i)
			}
		}, report.Possible},
		{"of both kinds and the same rules", func(s *script) {
			for i := range many / 2 {
				s.authorize(i)
			}
			for i := range many / 2 {
				s.lose(revoke, i)
				s.lose(grant, i)
			}
			s.authorize(many)
		}, report.Possible},
		{"among five rules that stay in use", func(s *script) {
			s.ops = histories.Random(7, 400, 5, histories.Options{Rules: 5, Batch: 1, Pending: many})
		}, report.Possible},
		{"among five rules that stay in use for long", func(s *script) {
			s.ops = histories.Random(7, 4_000, 5, histories.Options{Rules: 5, Batch: 1, Pending: many})
		}, report.Violated},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &script{}
			test.script(s)
			c := &Capture{Group: histories.Group, Operations: s.ops, From: s.ops[0].Call, To: s.ops[len(s.ops)-1].Call.Add(time.Second)}
			for _, snapshot := range []*traces.Snapshot{nil, {Group: histories.Group}} {
				c.Snapshot = snapshot
				r := Judge(context.Background(), c, Options{})
				if r.NeverEmpty == report.Unknown || r.Covered == report.Unknown || r.Tight == report.Unknown {
					t.Errorf("never-empty %s, covered %s, tight %s: %v, stuck %v", r.NeverEmpty, r.Covered, r.Tight, r.Err, r.Stuck)
				}
				if test.want != report.Unknown && r.NeverEmpty != test.want {
					t.Errorf("never-empty %s, want %s", r.NeverEmpty, test.want)
				}
			}
		})
	}
}

// TestTighten compares, on longer histories with a few calls of unknown outcome, the verdicts with those of the search without
// conclusions on such calls. Bindings keep the needs the same.
func TestTighten(t *testing.T) {
	confirmed, postponed := 0, 0
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 5))
		o := histories.Options{Rules: 2 + rng.IntN(5), Batch: 1 + rng.IntN(2), Pending: 1 + rng.IntN(6), Concurrency: 0.3 + 2*rng.Float64()}
		ops := histories.Random(seed, 40+rng.IntN(120), 4, o)
		c := &Capture{Group: histories.Group, Operations: ops, From: ops[0].Call, To: ops[len(ops)-1].Call.Add(time.Second),
			HasBindings: true, Snapshot: &traces.Snapshot{Group: histories.Group}}
		for i := range min(2, o.Rules) {
			r := histories.Rule(i)
			c.Bindings = append(c.Bindings, traces.Binding{Name: r.Ports(), Created: traces.Beginning, Deleted: traces.Forever,
				Needs: []traces.Need{{Protocol: r.Protocol, Port: r.FromPort, Source: r.Source}}})
		}
		raw := assemble(c, Options{})
		raw.sortOperations()
		j := judge{p: raw, r: &Result{problem: raw, NeverEmpty: report.Holds, Covered: report.Holds, Tight: report.Holds}}
		j.subjects()
		if err := orders.Explore(context.Background(), raw.orders(), orders.Budget{Nodes: 1 << 20}, j.block); errors.Is(err, orders.ErrBudget) {
			continue
		} else if err != nil {
			t.Fatalf("seed %d: without conclusions: %v", seed, err)
		}
		tightened := assemble(c, Options{})
		tightened.tighten()
		for i, o := range tightened.ops {
			if ops[tightened.source[i]].Outcome == traces.Pending && !o.Optional {
				confirmed++
			}
			if o.Call > ops[tightened.source[i]].Call {
				postponed++
			}
		}
		got := Judge(context.Background(), c, Options{})
		verdicts := func(r *Result) [3]report.Verdict { return [3]report.Verdict{r.NeverEmpty, r.Covered, r.Tight} }
		if diff := cmp.Diff(verdicts(j.r), verdicts(got)); diff != "" {
			t.Errorf("seed %d: never-empty, covered, tight (-without +with conclusions):\n%s%v", seed, diff, got.Stuck)
		}
	}
	if confirmed < 30 || postponed < 100 {
		t.Errorf("only %d calls were found to have taken effect, %d to have come later", confirmed, postponed)
	}
}
