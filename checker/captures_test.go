package checker_test

import (
	"bytes"
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"linearize.example/checker"
	need "linearize.example/checker/property"
	"linearize.example/checker/report"
	"linearize.example/traces"
	"linearize.example/traces/capture"
)

// read reads captures that lie in the repository.
func read(t *testing.T, paths ...string) *capture.Capture {
	t.Helper()
	full := make([]string, len(paths))
	for i, p := range paths {
		full[i] = filepath.Join("..", "testdata", "captures", p)
	}
	c, err := capture.Read(context.Background(), full, nil, capture.Options{Skew: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const incident = "incident-2026-08-28"

func instant(t *testing.T, s string) traces.Instant {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return traces.At(at)
}

// TestIncident checks what the report of 2026-08-28 says, on the capture that was rebuilt from it.
func TestIncident(t *testing.T) {
	r := judge(t, read(t, incident), nil)
	g := one(t, r)
	if r.Verdict != report.Violated {
		t.Errorf("verdict %v", r.Verdict)
	}
	want := outcome{violated, violated, violated, holds, []string{
		"never-empty violated 09:56:01 to 10:35:48 by revoke tcp 3000-3008",
		"covered violated tcp 3000 09:56:01 to 10:35:48 by revoke tcp 3000-3008",
		"covered violated tcp 3008 09:56:01 to 10:37:35 by revoke tcp 3000-3008",
		"covered violated tcp 8025 09:56:02 to 10:39:00 by register 10.0.2.20:8025 of k8s-test-mailpit",
	}, []string{"old-read", "skipped-while-empty", "truncated-capture"}}
	if diff := cmp.Diff(want, outcomeOf(g)); diff != "" {
		t.Error("-want +got\n" + diff)
	}
	never := property(t, g, "never-empty")
	w := never.Windows[0]
	if got := w.To.Sub(w.From); got != 2387*time.Second {
		t.Errorf("the window lasts %v, want 2387 s", got)
	}
	// The length is certain up to the second of CloudTrail, that of the log, and the skew on both sides.
	if w.CertainSeconds > 2387 || w.CertainSeconds < 2387-4 || w.PossibleSeconds < 2387 || w.PossibleSeconds > 2387+4 {
		t.Errorf("the window lasts %v s for certain and %v s at most, want 2387 s give or take 4", w.CertainSeconds, w.PossibleSeconds)
	}
	if opened := instant(t, "2026-08-28T09:56:01Z"); w.Start.Earliest > opened || w.Start.Latest < opened {
		t.Errorf("it starts between %v and %v", w.Start.Earliest, w.Start.Latest)
	}
	for _, part := range []string{"repaired 30 m 12 s after the controller's start at 2026-08-28T10:05:36Z", "about 39 m 47 s"} {
		if !strings.Contains(w.Text, part) {
			t.Errorf("the window's text lacks %q: %s", part, w.Text)
		}
	}
	if who := w.OpenedBy.Who; !strings.Contains(who, "elbv2.k8s.aws/v3.4.0") {
		t.Errorf("opened by %q", who)
	}
	repair := property(t, g, "repair-bound")
	if want := (report.Promise{Release: "v3.4.0", BoundSeconds: 45 * 60, Verdict: report.Holds, Text: repair.Promise.Text}); *repair.Promise != want {
		t.Errorf("promise %+v, want %+v", *repair.Promise, want)
	}
	if !strings.Contains(repair.Promise.Text, "the last repair took 33 m 24 s from the start") {
		t.Error(repair.Promise.Text)
	}
	if diff := cmp.Diff(&report.Statistics{Count: 4, Quantiles: report.Quantiles{Median: 2387, P90: 2578, P99: 2578, Max: 2578}}, repair.Statistics); diff != "" {
		t.Error(diff)
	}
	if !slices.ContainsFunc(g.Assumptions, func(s string) bool {
		return strings.HasPrefix(s, "rules that the capture never mentions are taken not to exist")
	}) {
		t.Errorf("the assumption about rules that the capture never mentions is not stated: %q", g.Assumptions)
	}
	settled := []string{
		"the contract of v3.4.0 (authorize, then revoke) orders 1 pair of calls",
		"the controller's order (a target is deregistered because its pod is gone) orders 1 pair of calls",
	}
	if diff := cmp.Diff(settled, g.SettledBy); diff != "" {
		t.Error(diff)
	}
}

func TestIncidentTimeline(t *testing.T) {
	g := one(t, judge(t, read(t, incident), nil))
	count := map[string]int{}
	for _, row := range g.Timeline {
		switch {
		case row.Result == "InvalidPermission.NotFound":
			count["NotFound"]++
			if row.At.Earliest > instant(t, "2026-08-28T09:55:20Z") || row.Rules == nil {
				t.Errorf("NotFound is placed at %v with rules %v", row.At, row.Rules)
			}
		case strings.HasPrefix(row.Summary, "skipped test/"):
			count["skipped"]++
		case strings.HasPrefix(row.Summary, "controller started"):
			count["start"]++
			if row.At.Earliest != instant(t, "2026-08-28T10:05:36Z") || len(row.Rules) != 0 || row.Rules == nil {
				t.Errorf("the start is at %v with rules %v", row.At, row.Rules)
			}
		}
	}
	if diff := cmp.Diff(map[string]int{"NotFound": 2, "skipped": 8, "start": 1}, count); diff != "" {
		t.Error(diff)
	}
	// The revoke at 10:48:21 is in order: it opens nothing, and the wide rule stays.
	last := g.Timeline[len(g.Timeline)-1]
	if last.Summary != "revoke tcp 3000-3000, tcp 3000-3008" || len(last.Marks) > 0 || !slices.Equal(last.Rules, []string{"tcp 3000-8025 from sg-014f7b94f96fe2d8d"}) {
		t.Errorf("the last row is %+v", last)
	}
}

func TestIncidentOptions(t *testing.T) {
	c := read(t, incident)
	t.Run("repair bound 45m", func(t *testing.T) {
		g := one(t, judge(t, c, func(o *checker.Options) { o.RepairBound = 45 * time.Minute }))
		if p := property(t, g, "repair-bound"); p.Verdict != report.Holds || p.Vacuous || *p.BoundSeconds != 2700 {
			t.Errorf("%v, vacuous %v: %s", p.Verdict, p.Vacuous, p.Reason)
		}
	})
	t.Run("need proven", func(t *testing.T) {
		// The skips and the target on 8025 prove that somebody needed rules; nothing proves 3000 and 3008.
		g := one(t, judge(t, c, func(o *checker.Options) { o.Need = need.Proven }))
		want := outcome{violated, violated, violated, holds, []string{
			"never-empty violated 09:56:01 to 10:35:48 by revoke tcp 3000-3008",
			"covered possible tcp 3000 09:56:01 to 10:35:48 by revoke tcp 3000-3008",
			"covered possible tcp 3008 09:56:01 to 10:37:35 by revoke tcp 3000-3008",
			"covered violated tcp 8025 09:56:02 to 10:39:00 by register 10.0.2.20:8025 of k8s-test-mailpit",
		}, []string{"old-read", "skipped-while-empty", "truncated-capture"}}
		if diff := cmp.Diff(want, outcomeOf(g)); diff != "" {
			t.Error("-want +got\n" + diff)
		}
	})
	t.Run("CloudTrail alone", func(t *testing.T) {
		g := one(t, judge(t, read(t, incident+"/cloudtrail.json"), nil))
		w := property(t, g, "never-empty").Windows[0]
		if w.Verdict != report.Violated || hour(w.From) != "09:56:01" || hour(w.To) != "10:35:48" {
			t.Errorf("%v from %v to %v", w.Verdict, w.From, w.To)
		}
	})
	t.Run("min-window", func(t *testing.T) {
		g := one(t, judge(t, c, func(o *checker.Options) { o.MinWindow = 40 * time.Minute }))
		if p := property(t, g, "never-empty"); p.Verdict != report.Violated || len(p.Windows) != 0 || p.Hidden != 1 {
			t.Errorf("%v with %d windows and %d hidden", p.Verdict, len(p.Windows), p.Hidden)
		}
		if p := property(t, g, "covered"); len(p.Windows) != 2 || p.Hidden != 1 {
			t.Errorf("covered has %d windows and %d hidden", len(p.Windows), p.Hidden)
		}
	})
}

// TestRealRuns checks each recording of the three runs, and all of one run together.
func TestRealRuns(t *testing.T) {
	opener := "revoke tcp 3000-3008"
	cases := []struct {
		path                string
		neverEmpty, covered string
		opener              string
	}{
		{"real-run-incident/history.ndjson", violated, violated, opener},
		{"real-run-incident/cloudtrail.json", violated, violated, opener},
		{"real-run-incident/controller.log", violated, violated, opener},
		{"real-run-incident", violated, violated, opener},
		{"real-run-control/history.ndjson", holds, holds, ""},
		{"real-run-control/cloudtrail.json", possible, possible, ""},
		{"real-run-control/controller.log", holds, holds, ""},
		{"real-run-control", holds, holds, ""},
		{"real-run-restart/history.ndjson", holds, holds, ""},
		{"real-run-restart/cloudtrail.json", possible, possible, ""},
		{"real-run-restart/controller.log", holds, holds, ""},
		{"real-run-restart", holds, holds, ""},
	}
	for _, c := range cases {
		t.Run(c.path, func(t *testing.T) {
			g := one(t, judge(t, read(t, c.path), nil))
			got := outcomeOf(g)
			if got.NeverEmpty != c.neverEmpty || got.Covered != c.covered || got.Tight != holds {
				t.Errorf("never-empty %s, covered %s, tight %s", got.NeverEmpty, got.Covered, got.Tight)
			}
			var openers []string
			for _, w := range property(t, g, "never-empty").Windows {
				switch {
				case w.Verdict != report.Violated:
				case w.OpenedBy == nil:
					openers = append(openers, "nobody")
				default:
					openers = append(openers, w.OpenedBy.Summary)
				}
			}
			if strings.Join(openers, ";") != c.opener {
				t.Errorf("opened by %q, want %q", openers, c.opener)
			}
		})
	}
}

// TestRealRunReads compares the reads with what the stand-in knew: two describes of the incident were old, and none of the
// other runs.
func TestRealRunReads(t *testing.T) {
	for path, want := range map[string]report.Linearity{
		"real-run-incident": {Result: "not-linearizable", Mutations: "linearizable", Reads: 6, StaleReads: 2, MaxReadLagSeconds: 0.0238},
		"real-run-control":  {Result: "linearizable", Mutations: "linearizable", Reads: 5},
		"real-run-restart":  {Result: "linearizable", Mutations: "linearizable", Reads: 4},
	} {
		for _, path := range []string{path, path + "/history.ndjson"} {
			l := one(t, judge(t, read(t, path), nil)).Linearity
			got := report.Linearity{Result: l.Result, Mutations: l.Mutations, Reads: l.Reads, StaleReads: l.StaleReads,
				MaxReadLagSeconds: math.Round(l.MaxReadLagSeconds*1e4) / 1e4}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", path, diff)
			}
		}
	}
}

func TestContractIsNamed(t *testing.T) {
	g := one(t, judge(t, read(t, "real-run-restart/cloudtrail.json"), func(o *checker.Options) { o.Contract = true }))
	if got := outcomeOf(g); got.NeverEmpty != holds || got.Covered != holds {
		t.Errorf("never-empty %s, covered %s", got.NeverEmpty, got.Covered)
	}
	if !slices.Contains(g.SettledBy, "the contract of v3.4.0 (authorize, then revoke) orders 1 pair of calls") {
		t.Errorf("settled by %q", g.SettledBy)
	}
}

// TestRestartFromNothing: the capture begins with no rule, which is drift if TGBs were live.
func TestRestartFromNothing(t *testing.T) {
	c := read(t, "real-run-restart")
	g := one(t, judge(t, c, nil))
	if text := finding(g, "begins-empty"); !strings.Contains(text, "no rule at all") || !strings.Contains(text, "--bindings") {
		t.Errorf("begins-empty: %q", text)
	}
	live := func(name, port string) traces.Binding {
		b := binding(name, port+"<sg-0ddd3333eeee4444f")
		b.TargetGroup = "arn:aws:elasticloadbalancing:us-east-1:111122223333:targetgroup/k8s-test-" + name + "/0123456789abcdef"
		return b
	}
	g = one(t, judge(t, c, bound(live("web", "3000"), live("api", "3008"), live("mail", "8025"))))
	got := outcomeOf(g)
	if got.NeverEmpty != violated || got.Covered != violated {
		t.Errorf("with bindings: never-empty %s, covered %s", got.NeverEmpty, got.Covered)
	}
	closed := map[string]string{}
	for _, name := range []string{"never-empty", "covered"} {
		for _, w := range property(t, g, name).Windows {
			if w.OpenedBy != nil || w.ClosedBy == nil {
				t.Errorf("%s: opened by %v, closed by %v", windowText(name, &w), w.OpenedBy, w.ClosedBy)
				continue
			}
			closed[name+w.Subject] = w.ClosedBy.Summary
		}
	}
	want := map[string]string{
		"never-empty": "authorize tcp 3000-3000",
		"coveredtcp 3000 from sg-0ddd3333eeee4444f": "authorize tcp 3000-3000",
		"coveredtcp 3008 from sg-0ddd3333eeee4444f": "authorize tcp 3000-3008",
		"coveredtcp 8025 from sg-0ddd3333eeee4444f": "authorize tcp 3000-8025",
	}
	if diff := cmp.Diff(want, closed); diff != "" {
		t.Error("closed by: -want +got\n" + diff)
	}
}

// TestOneCallOnce: the three recordings of one run are of the same calls, none of which may count twice.
func TestOneCallOnce(t *testing.T) {
	for path, want := range map[string]map[string]int{
		"real-run-incident": {"AuthorizeSecurityGroupIngress": 4, "RevokeSecurityGroupIngress": 5, "DescribeSecurityGroups": 6},
		"real-run-control":  {"AuthorizeSecurityGroupIngress": 5, "RevokeSecurityGroupIngress": 3, "DescribeSecurityGroups": 5},
		"real-run-restart":  {"AuthorizeSecurityGroupIngress": 3, "RevokeSecurityGroupIngress": 1, "DescribeSecurityGroups": 4},
	} {
		merged := traces.Merge(read(t, path).History, time.Second)
		got := map[string]int{}
		for _, op := range merged.Operations {
			if op.Group == "" {
				continue
			}
			got[op.Op]++
			if op.Op != traces.DescribeSecurityGroups && len(op.Sources) < 3 {
				t.Errorf("%s: %s was read from %d sources", path, op.ID, len(op.Sources))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", path, diff)
		}
		g := one(t, judge(t, read(t, path), nil))
		if len(g.Processes) != 1 {
			t.Errorf("%s: %d processes, all calls are of one", path, len(g.Processes))
		}
	}
}

// TestDeterminism: equal inputs give equal bytes, and the order of files does not change what is found.
func TestDeterminism(t *testing.T) {
	bytesOf := func(paths ...string) string {
		var b bytes.Buffer
		if err := report.WriteJSON(&b, judge(t, read(t, paths...), nil)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for _, run := range []string{incident, "real-run-incident", "real-run-control", "real-run-restart"} {
		if diff := cmp.Diff(bytesOf(run), bytesOf(run)); diff != "" {
			t.Errorf("%s: two runs differ:\n%s", run, diff)
		}
	}
	names := []string{"history.ndjson", "cloudtrail.json", "controller.log"}
	for _, run := range []string{"real-run-incident", "real-run-control", "real-run-restart"} {
		var first outcome
		for i, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {1, 0, 2}, {0, 1, 2, 0}} {
			var paths []string
			for _, n := range order {
				paths = append(paths, run+"/"+names[n])
			}
			got := outcomeOf(one(t, judge(t, read(t, paths...), nil)))
			if i == 0 {
				first = got
			}
			if diff := cmp.Diff(first, got); diff != "" {
				t.Errorf("%s in the order %v: -first +this\n%s", run, order, diff)
			}
		}
	}
}
