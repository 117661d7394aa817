package checker_test

import (
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
