package explain

import (
	"slices"
	"strings"
	"testing"
)

// TestFacts: which design in which environment explains each recording of each capture. A real run conforms to the release that
// made it, in the environment in which it was made, by each of its recordings and by all of them together. Another design that
// explains a recording, too, is one that can have made the same calls, as far as that recording tells:
//
//   - CloudTrail's whole seconds leave the order of an authorize and a revoke in one reconcile open, which is all that v2.7.2
//     does otherwise;
//   - without describes and targets, confirm-authorize makes the calls of v3.4.0 wherever it need not confirm anything, and with
//     one TGB more v2.7.2 does so after a start, before which nothing is revoked.
func TestFacts(t *testing.T) {
	for _, c := range []struct {
		capture               string
		release, old, confirm string // the narrowest environment in which each design explains it
	}{
		{capture: "incident-2026-08-28", release: "old-reads"},
		{capture: "real-run-incident", release: "old-reads"},
		{capture: "real-run-incident/history.ndjson", release: "old-reads"},
		{capture: "real-run-incident/controller.log", release: "old-reads"},
		{capture: "real-run-incident/cloudtrail.json", release: "old-reads", old: "old-reads"},
		{capture: "real-run-control", release: "fresh-reads"},
		{capture: "real-run-control/history.ndjson", release: "fresh-reads", confirm: "fresh-reads"},
		{capture: "real-run-control/controller.log", release: "fresh-reads", confirm: "fresh-reads"},
		{capture: "real-run-control/cloudtrail.json", release: "fresh-reads", old: "fresh-reads"},
		{capture: "real-run-restart", release: "fresh-reads"},
		{capture: "real-run-restart/history.ndjson", release: "fresh-reads", confirm: "fresh-reads"},
		{capture: "real-run-restart/controller.log", release: "fresh-reads", confirm: "fresh-reads", old: "fresh-reads"},
		{capture: "real-run-restart/cloudtrail.json", release: "fresh-reads", old: "fresh-reads"},
	} {
		if sampled && !strings.HasSuffix(c.capture, "history.ndjson") && c.capture != "incident-2026-08-28" {
			continue
		}
		t.Run(c.capture, func(t *testing.T) {
			_, s := read(t, c.capture)
			for design, want := range map[string]string{"v3.4.0": c.release, "v2.7.2": c.old, "confirm-authorize": c.confirm} {
				for _, env := range []string{"fresh-reads", "old-reads"} {
					r := explained(t, s, design, env, Options{})
					verdict := DoesNot
					if want == env || want == "fresh-reads" {
						verdict = Explains
					}
					if r.Verdict != verdict {
						t.Errorf("%s in %s: %s, want %s: %d of %d, then not %s: %s (%s)", design, env, r.Verdict, verdict, r.Done, r.Of, r.Stuck, r.Why, r.Bound)
					}
					if design == "v2.7.2" && r.Verdict == Explains && strings.HasSuffix(c.capture, "cloudtrail.json") &&
						!slices.ContainsFunc(r.Facts, func(f string) bool { return strings.HasPrefix(f, "the record leaves open") }) {
						t.Errorf("%s in %s: the facts do not say which order is open: %q", design, env, r.Facts)
					}
				}
			}
		})
	}
}
