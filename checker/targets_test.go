package checker_test

import (
	"slices"
	"testing"
	"time"

	"linearize.example/checker"
	need "linearize.example/checker/property"
)

// TestTargetsWithinOneSecond has calls on targets and rules whose times do not tell their order: what the calls name and
// the order of the log's lines do.
func TestTargetsWithinOneSecond(t *testing.T) {
	briefly := []call{
		cur.authorize("09:00:00", "80"),
		cur.register("09:00:05", "web", "10.0.0.1:80"),
		cur.register("10:00:00.1", "web", "10.0.0.2:80"),
		cur.revoke("10:00:00.3", "80"),
		cur.deregister("10:00:00.5", "web", "10.0.0.1:80", "10.0.0.2:80"),
		cur.authorize("10:05:00", "80"),
		cur.register("10:05:05", "web", "10.0.0.3:80"),
	}
	backAtOnce := []call{
		cur.authorize("09:00:00", "80"),
		cur.register("09:00:05", "web", "10.0.0.1:80"),
		cur.revoke("10:00:00.1", "80"),
		cur.deregister("10:00:00.2", "web", "10.0.0.1:80"),
		cur.authorize("10:00:00.5", "80"),
		cur.register("10:00:00.6", "web", "10.0.0.2:80"),
		cur.revoke("10:00:00.8", "80"),
		cur.deregister("10:00:00.9", "web", "10.0.0.2:80"),
	}
	emptied := []call{
		cur.authorize("09:00:00", "80"),
		cur.register("09:00:05", "web", "10.0.0.1:80"),
		cur.revoke("10:00:00.1", "80"),
		cur.register("10:00:00.2", "web", "10.0.0.2:80"),
		cur.authorize("10:00:04.1", "80"),
		cur.revoke("10:00:04.3", "80"),
		cur.deregister("10:00:04.5", "web", "10.0.0.1:80", "10.0.0.2:80"),
	}
	for _, c := range []struct {
		name  string
		files files
		want  string
	}{
		{"a pod that came and went within one second, by CloudTrail", files{"cloudtrail.json": trail(briefly...)}, holds},
		{"the same by the log", files{"controller.log": logged(briefly...)}, holds},
		{"the last pod is replaced within one second, and goes, by the log", files{"controller.log": logged(backAtOnce...)}, holds},
		{"only the last revoke before a deregistration is of its reconcile", files{"controller.log": logged(emptied...)}, violated},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := one(t, judge(t, c.files.load(t), nil))
			if got := outcomeOf(g); got.NeverEmpty != c.want {
				t.Errorf("never-empty %s, want %s: %v", got.NeverEmpty, c.want, got)
			}
		})
	}
}

// TestOrderOfOneReconcileIsNoProof has a deregistration that seems to belong to the reconcile of an earlier revoke: since
// that explains nothing, it does not.
func TestOrderOfOneReconcileIsNoProof(t *testing.T) {
	f := files{"cloudtrail.json": trail(
		cur.authorize("07:07:45", "3000"),
		cur.authorize("07:08:00", "3000-3008"),
		cur.revoke("07:08:00", "3000"),
		cur.revoke("07:08:15", "3000-3008"),
		cur.authorize("07:08:16", "3000-3008"),
		cur.register("07:08:16", "web", "10.0.0.14:3000"),
		cur.deregister("07:08:18", "web", "10.0.0.14:3000"),
	)}
	if got := outcomeOf(one(t, judge(t, f.load(t), nil))); got.NeverEmpty == unknown {
		t.Errorf("no order explains the results: %v", got)
	}
}

// TestSkipsAndDeregistrations: a skip proves a need until targets are deregistered, whose TGB nobody names, and one with a
// checkpoint of no endpoints proves that there is none.
func TestSkipsAndDeregistrations(t *testing.T) {
	known := []call{cur.authorize("09:00:00", "80"), cur.register("09:00:05", "web", "10.0.0.1:80")}
	gone := []call{cur.deregister("09:30:02", "web", "10.0.0.1:80"), cur.revoke("09:30:00", "80").within(time.Second)}
	nothing := said("09:20:00", "Skipping targetgroupbinding reconcile", "tgb", "web", "calculated hash", "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU/spec")
	for _, c := range []struct {
		name  string
		calls []call
		lines string
		want  string
	}{
		{"skipped, then scaled to zero", slices.Concat(known, gone), skipped("09:10:00", "web"), holds},
		{"skipped again after the deregistration", slices.Concat(known, gone), skipped("09:10:00", "web") + skipped("09:40:00", "web"), violated},
		{"skipped, and the rule is revoked without a deregistration", slices.Concat(known, gone[1:]), skipped("09:10:00", "web"), violated},
		{"no calls on targets", slices.Concat(known[:1], gone[1:]), skipped("09:10:00", "web"), violated},
		{"skipped with endpoints, then without", slices.Concat(known[:1], gone[1:]), skipped("09:10:00", "web") + nothing, possible},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := files{"controller.log": logged(c.calls...) + c.lines}
			if got := outcomeOf(one(t, judge(t, f.load(t), func(o *checker.Options) { o.Need = need.Proven }))); got.NeverEmpty != c.want {
				t.Errorf("never-empty %s, want %s: %v", got.NeverEmpty, c.want, got)
			}
		})
	}
}
