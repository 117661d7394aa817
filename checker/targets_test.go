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

// TestOfAnotherReconcile has calls on rules and targets that are near each other and of two workers of one process.
func TestOfAnotherReconcile(t *testing.T) {
	// The grant of 3002 fails, and its target is registered all the same, while another worker's grant is under way.
	denied := []call{
		cur.authorize("09:00:00.2", "3002").fails("UnauthorizedOperation").within(300 * time.Millisecond),
		cur.register("09:00:00.5", "c", "10.0.0.5:3002").within(200 * time.Millisecond),
		cur.authorize("09:00:00.5", "3001-3002").within(400 * time.Millisecond),
		cur.register("09:00:00.9", "b", "10.0.0.3:3001"),
	}
	// The only pod on 8025 goes; 3002 stays wanted, and its pods are replaced a second later.
	replaced := []call{
		old.authorize("09:00:00", "3000-8025"),
		old.register("09:00:01", "c", "10.0.0.5:3002"),
		old.register("09:00:02", "d", "10.0.0.9:8025"),
		old.revoke("09:05:00", "3000-8025").within(200 * time.Millisecond),
		old.authorize("09:05:00.3", "3000-3002").within(200 * time.Millisecond),
		old.deregister("09:05:00.6", "d", "10.0.0.9:8025").within(100 * time.Millisecond),
		old.deregister("09:05:01.6", "c", "10.0.0.5:3002").within(100 * time.Millisecond),
		old.register("09:05:02", "c", "10.0.0.6:3002").within(100 * time.Millisecond),
	}
	// The same by a full group's second attempt, of a release that else authorizes first.
	full := []call{
		cur.authorize("09:00:00", "3000-8025"),
		cur.register("09:00:01", "c", "10.0.0.5:3002"),
		cur.register("09:00:02", "d", "10.0.0.9:8025"),
		cur.authorize("09:04:59.7", "3000-3002").fails("RulesPerSecurityGroupLimitExceeded"),
		cur.revoke("09:04:59.9", "3000-8025"),
		cur.authorize("09:05:00.3", "3000-3002"),
		cur.deregister("09:05:00.6", "d", "10.0.0.9:8025"),
		cur.deregister("09:05:01.6", "c", "10.0.0.5:3002"),
		cur.register("09:05:02", "c", "10.0.0.6:3002"),
	}
	for _, c := range []struct {
		name  string
		files files
		want  string
	}{
		{"denied, by a history", files{"history.ndjson": recorded(denied...)}, possible},
		{"denied, by CloudTrail", files{"cloudtrail.json": trail(denied...)}, possible},
		{"replaced, by a history", files{"history.ndjson": recorded(replaced...)}, violated},
		{"replaced, by CloudTrail", files{"cloudtrail.json": trail(replaced...)}, violated},
		{"a full group, by a history", files{"history.ndjson": recorded(full...)}, violated},
		{"a full group, by CloudTrail", files{"cloudtrail.json": trail(full...)}, possible},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := outcomeOf(one(t, judge(t, c.files.load(t), nil))); got.Covered != c.want {
				t.Errorf("covered %s, want %s: %v", got.Covered, c.want, got)
			}
		})
	}
}

// TestOrderWithinOneSecond has verdicts that rest on what the sources say of the order of calls in one second.
func TestOrderWithinOneSecond(t *testing.T) {
	// A reconcile grants, and the next one, which revokes first, begins in the same second.
	next := []call{
		old.authorize("09:00:00.1", "80").within(100 * time.Millisecond),
		old.register("09:00:00.3", "web", "10.0.0.1:80").within(100 * time.Millisecond),
		old.authorize("09:05:00.1", "80-90").within(100 * time.Millisecond),
		old.revoke("09:05:00.3", "80").within(100 * time.Millisecond),
		old.authorize("09:05:00.5", "80-100").within(100 * time.Millisecond),
	}
	// All pods are gone, and then the rule for all ports, until one is back.
	zero := []call{
		cur.authorize("09:00:00", "0-65535"),
		cur.register("09:00:01", "web", "10.0.0.1:80"),
		cur.deregister("09:10:00", "web", "10.0.0.1:80"),
		cur.revoke("09:10:05", "0-65535"),
		cur.authorize("09:20:00", "0-65535"),
		cur.register("09:20:01", "web", "10.0.0.2:80"),
	}
	// The last target goes before the rule does, as the lines say.
	gone := []call{
		cur.authorize("09:00:00", "80"),
		cur.register("09:00:01", "web", "10.0.0.1:80"),
		cur.deregister("09:10:00.1", "web", "10.0.0.1:80").within(200 * time.Millisecond),
		cur.revoke("09:10:00.5", "80").within(200 * time.Millisecond),
	}
	// A skip's line follows the grant's.
	back := []call{
		cur.authorize("09:00:00.1", "80").within(100 * time.Millisecond),
		cur.register("09:00:00.3", "web", "10.0.0.1:80").within(100 * time.Millisecond),
		cur.authorize("09:01:00", "80-90"),
	}
	for _, c := range []struct {
		name  string
		files files
		want  string
	}{
		{"an old release's grant before its next reconcile's revoke, by the log", files{"controller.log": logged(next...)}, holds},
		{"a rule for all ports that nobody needs, by a history", files{"history.ndjson": recorded(zero...)}, holds},
		{"a rule for all ports that nobody needs, by CloudTrail", files{"cloudtrail.json": trail(zero...)}, holds},
		{"deregistered, then revoked, by the log", files{"controller.log": logged(gone...)}, holds},
		{"skipped after the grant, by the log", files{"controller.log": logged(back[:2]...) + skipped("09:00:00", "web") + logged(back[2:]...)}, holds + " vacuously"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := outcomeOf(one(t, judge(t, c.files.load(t), nil))); got.NeverEmpty != c.want {
				t.Errorf("never-empty %s, want %s: %v", got.NeverEmpty, c.want, got)
			}
		})
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
