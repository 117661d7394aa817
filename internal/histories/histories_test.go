package histories

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
)

func TestRandom(t *testing.T) {
	o := Options{Rules: 40, Reads: 0.3, Pending: 5, Concurrency: 2, Throttled: 0.05, ViolationAt: 300}
	ops := Random(1, 1000, 4, o)
	if diff := cmp.Diff(ops, Random(1, 1000, 4, o)); diff != "" {
		t.Errorf("equal arguments give different histories:\n%s", diff)
	}
	if len(ops) != 1000 {
		t.Fatalf("got %d operations, want 1000", len(ops))
	}
	count := map[string]int{}
	var open time.Duration
	last := map[string]traces.Instant{}
	for i, op := range ops {
		if i > 0 && op.Call < ops[i-1].Call {
			t.Errorf("%s is called before %s", op.ID, ops[i-1].ID)
		}
		if op.Call <= last[op.Process] {
			t.Errorf("%s is called while another call of %s is open", op.ID, op.Process)
		}
		if op.Outcome == traces.Pending {
			count["pending"]++
			continue
		}
		last[op.Process] = op.Return
		open += op.Return.Sub(op.Call)
		count[op.Op]++
		count[op.Error]++
	}
	if count["pending"] != 5 {
		t.Errorf("%d operations are pending, want 5", count["pending"])
	}
	if mean := float64(open) / float64(ops[999].Call.Sub(Start)); mean < 1.5 || mean > 2.5 {
		t.Errorf("%.2f calls are open on average, want 2", mean)
	}
	for _, k := range []string{
		traces.AuthorizeSecurityGroupIngress, traces.RevokeSecurityGroupIngress, traces.DescribeSecurityGroups,
		"InvalidPermission.Duplicate", "InvalidPermission.NotFound", "RequestLimitExceeded",
	} {
		if count[k] < 10 {
			t.Errorf("only %d of %s", count[k], k)
		}
	}
}

// A sequential history replays against a set; the one wrong answer is where it was asked for.
func TestViolation(t *testing.T) {
	for seed := range uint64(50) {
		ops := Random(seed, 60, 1, Options{Rules: 3, ViolationAt: 30, Reads: 0.2})
		set := map[traces.Rule]bool{}
		var wrong []int
		for i, op := range ops {
			if op.Op == traces.DescribeSecurityGroups {
				if len(op.View) != len(set) || slices.ContainsFunc(op.View, func(p traces.Permission) bool { return !set[p.Rule] }) {
					wrong = append(wrong, i)
				}
				continue
			}
			authorize := op.Op == traces.AuthorizeSecurityGroupIngress
			ok := !slices.ContainsFunc(op.Permissions, func(p traces.Permission) bool { return set[p.Rule] == authorize })
			if ok != (op.Outcome == traces.Succeeded) {
				wrong = append(wrong, i)
				continue
			}
			for _, p := range op.Permissions {
				if ok && authorize {
					set[p.Rule] = true
				} else if ok {
					delete(set, p.Rule)
				}
			}
		}
		if len(wrong) != 1 || wrong[0] < 30 || wrong[0] > 35 {
			t.Errorf("seed %d: wrong answers at %v, want one at 30 or soon after", seed, wrong)
		}
	}
}

func TestTick(t *testing.T) {
	ops := Random(3, 200, 2, Options{Tick: time.Second})
	ordered := 0
	for i, op := range ops {
		if op.Call%1e9 != 0 || op.Return%1e9 != 0 || op.Return <= op.Call {
			t.Errorf("%s has the interval [%s, %s]", op.ID, op.Call, op.Return)
		}
		if op.After >= i || op.After >= 0 && ops[op.After].Process != op.Process {
			t.Errorf("operation %d comes after %d", i, op.After)
		}
		if op.After >= 0 {
			ordered++
		}
	}
	if ordered != 198 {
		t.Errorf("%d operations have a predecessor, want 198", ordered)
	}
}
