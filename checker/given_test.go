package checker_test

import (
	"fmt"
	"testing"

	"linearize.example/checker"
	"linearize.example/checker/report"
)

// The rules at the start that somebody gives count before those that lie in the folder of the capture.
func TestGivenSnapshotCounts(t *testing.T) {
	controller := lbc("v3.4.0")
	c := files{"cloudtrail.json": trail(
		controller.authorize("09:00:00", "80-80"),
		controller.register("09:00:05", "web", "10.0.0.1:80"),
		controller.revoke("09:10:00", "80-80"),
	)}.load(t)
	c.Snapshots = initial("443-443")
	verdict := func(change func(*checker.Options)) report.Verdict {
		return property(t, one(t, judge(t, c, change)), "never-empty").Verdict
	}
	found := verdict(nil)
	given := verdict(func(o *checker.Options) { o.Initial = initial() })
	if found == given || given != report.Violated {
		t.Errorf("with the folder's snapshot %v, with an empty one given %v; want the latter violated, and the former not", found, given)
	}
}

// Sixty TGBs that are skipped in one second, as after a change of leader, are no 2^60 orders.
func TestManySkipsAtOnce(t *testing.T) {
	log := ""
	for i := range 60 {
		log += skipped("10:05:36", fmt.Sprintf("test/app-%d", i))
	}
	c := files{"controller.log": log, "cloudtrail.json": trail(
		cur.authorize("09:00:00", "3000-8025"),
		cur.revoke("09:56:01", "3000-8025"),
		cur.authorize("10:35:48", "3000-3000"),
	)}.load(t)
	if p := property(t, one(t, judge(t, c, nil)), "never-empty"); p.Verdict != report.Violated {
		t.Errorf("never-empty %v; want violated: the TGBs are there", p.Verdict)
	}
}
