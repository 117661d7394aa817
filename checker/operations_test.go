package checker_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"linearize.example/checker"
	"linearize.example/checker/report"
	"linearize.example/traces"
)

// TestOperations has the calls that are no plain authorize or revoke: by rule id, changes of rules and descriptions, whole
// groups, and records that do not tell what the call did.
func TestOperations(t *testing.T) {
	const (
		modify     = traces.ModifySecurityGroupRules
		redescribe = traces.UpdateSecurityGroupRuleDescriptionsIngress
		create     = traces.CreateSecurityGroup
		remove     = traces.DeleteSecurityGroup
	)
	web := []call{cur.authorize("09:00:00", "80").answeredWith("sgr-80"), cur.register("09:00:05", "web", "10.0.0.1:80")}
	end := cur.register("11:00:00", "web", "10.0.0.2:80")
	gone := []string{"never-empty violated 10:00:00 to … by revoke tcp 80-80", "covered violated tcp 80 10:00:00 to … by revoke tcp 80-80"}
	outside := []string{"second-writer", "outside-removal"}
	cases := []scenario{
		{
			name:  "a revoke by the id that the answer to the authorize gave",
			files: files{"cloudtrail.json": trail(append(web, alice.revoke("10:00:00").byID("sgr-80"), end)...)},
			want:  outcome{violated, violated, violated, holds, gone, outside},
		},
		{
			name:   "a revoke by an id of the snapshot",
			files:  files{"cloudtrail.json": trail(cur.register("09:00:05", "web", "10.0.0.1:80"), alice.revoke("10:00:00").byID("sgr-1"), end)},
			change: given(initial("80")),
			want:   outcome{violated, violated, violated, holds, gone, []string{"outside-removal"}},
		},
		{
			name:  "a revoke by an id that nobody explains",
			files: files{"cloudtrail.json": trail(append(web, alice.revoke("10:00:00").byID("sgr-99"), end)...)},
			want:  outcome{unknown, unknown, unknown, unknown, nil, nil},
		},
		{
			name:  "a refused revoke by an id that nobody explains",
			files: files{"cloudtrail.json": trail(append(web, alice.revoke("10:00:00").byID("sgr-99").fails("UnauthorizedOperation"), end)...)},
			want:  outcome{vacuous, holds, vacuous, holds, nil, nil},
		},
		{
			name:  "a rule is moved to another port",
			files: files{"cloudtrail.json": trail(append(web, alice.call("10:00:00", modify, nil).to("sgr-80", "81"), end)...)},
			want: outcome{holds, violated, violated, holds, []string{
				"covered violated tcp 80 10:00:00 to … by modify sgr-80 to tcp 81-81 from sg-0lb",
			}, []string{"second-writer"}},
		},
		{
			name:  "a rule is moved and moved back",
			files: files{"cloudtrail.json": trail(append(web, alice.call("10:00:00", modify, nil).to("sgr-80", "81"), alice.call("10:02:00", modify, nil).to("sgr-80", "80"), end)...)},
			want: outcome{holds, violated, holds, holds, []string{
				"covered violated tcp 80 10:00:00 to 10:02:00 by modify sgr-80 to tcp 81-81 from sg-0lb",
			}, []string{"second-writer"}},
		},
		{
			name:  "a rule is taken from the controller by its description alone",
			files: files{"cloudtrail.json": trail(append(web, alice.call("10:00:00", modify, nil).to("sgr-80", "80#mine"), end)...)},
			want: outcome{violated, holds, violated, holds, []string{
				"never-empty violated 10:00:00 to … by modify sgr-80 to tcp 80-80 from sg-0lb",
			}, []string{"second-writer", "outside-removal", "covered-by-unmanaged"}},
		},
		{
			name:  "a description is changed, and changed back",
			files: files{"cloudtrail.json": trail(append(web, alice.call("10:00:00", redescribe, []string{"80#mine"}), alice.call("10:02:00", redescribe, []string{"80"}), end)...)},
			want: outcome{violated, holds, holds, holds, []string{
				"never-empty violated 10:00:00 to 10:02:00 by describe anew tcp 80-80",
			}, []string{"second-writer", "outside-removal", "covered-by-unmanaged"}},
		},
		{
			name: "a group is created, filled, and deleted with its rules",
			files: files{"cloudtrail.json": trail(alice.call("08:00:00", create, nil), web[0], web[1],
				alice.call("10:00:00", remove, nil), end)},
			want: outcome{violated, violated, violated, holds, []string{
				"never-empty violated 10:00:00 to … by delete the group", "covered violated tcp 80 10:00:00 to … by delete the group",
			}, []string{"outside-removal"}},
		},
		{
			name:  "the record of an authorize lacks the request",
			files: files{"cloudtrail.json": trail(append(web, cur.revoke("10:00:00", "80"), cur.authorize("10:30:00", "80").withoutRequest(), end)...)},
			want: outcome{violated, violated, violated, unknown, []string{
				"never-empty violated 10:00:00 to … by revoke tcp 80-80", "covered violated tcp 80 10:00:00 to … by revoke tcp 80-80",
			}, []string{"unclear-record"}},
		},
		{
			name:  "the record of an authorize lacks the request, and it may have been the repair at once",
			files: files{"cloudtrail.json": trail(append(web, cur.authorize("09:30:00", "80-443").withoutRequest(), cur.revoke("10:00:00", "80"), end)...)},
			want: outcome{unknown, unknown, unknown, unknown, []string{
				"never-empty possible 09:59:59 to … by revoke tcp 80-80", "covered possible tcp 80 09:59:59 to … by revoke tcp 80-80",
			}, []string{"unclear-record"}},
		},
		{
			name: "the record of an authorize lacks the request, and the controller's log has it",
			files: files{
				"cloudtrail.json": trail(append(web, cur.authorize("09:30:00", "80-443").withoutRequest(), cur.revoke("10:00:00", "80"), end)...),
				"controller.log":  logged(cur.authorize("09:30:00", "80-443"), cur.revoke("10:00:00", "80")),
			},
			want: outcome{holds, holds, vacuous, holds, nil, []string{"unclear-record"}},
		},
	}
	for _, c := range cases {
		t.Run(c.name, c.run)
	}
}

// TestGroups: each group is judged by itself, and calls on targets go to the group that has a rule for the port.
func TestGroups(t *testing.T) {
	const second = "sg-0bbb"
	c := files{"cloudtrail.json": trail(
		cur.authorize("09:00:00", "80"), cur.authorize("09:00:00", "9000").on(second), alice.authorize("09:00:00", "22#ssh").on("sg-0ssh"),
		cur.register("09:00:05", "web", "10.0.0.1:80"), cur.register("09:00:05", "api", "10.0.0.1:9000"),
		cur.revoke("10:00:00", "9000").on(second), cur.revoke("10:00:00", "80").fails("RequestLimitExceeded"),
		cur.register("11:00:00", "web", "10.0.0.2:80"))}.load(t)
	r := judge(t, c, nil)
	got := map[string]outcome{}
	for i := range r.Groups {
		got[r.Groups[i].GroupID] = outcomeOf(&r.Groups[i])
	}
	want := map[string]outcome{
		group: {vacuous, holds, vacuous, holds, nil, nil},
		second: {violated, violated, violated, holds, []string{
			"never-empty violated 10:00:00 to … by revoke tcp 9000-9000", "covered violated tcp 9000 10:00:00 to … by revoke tcp 9000-9000",
		}, nil},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("-want +got\n" + diff)
	}
	if r.Verdict != report.Violated || !strings.HasPrefix(r.Summary, second) || !strings.Contains(r.Summary, "1 group without managed rules left out") {
		t.Errorf("%v: %s", r.Verdict, r.Summary)
	}
	r = judge(t, c, func(o *checker.Options) { o.Groups = []string{group, "sg-0ssh", group} })
	var ids []string
	for _, g := range r.Groups {
		ids = append(ids, g.GroupID)
	}
	if diff := cmp.Diff([]string{group, "sg-0ssh"}, ids); diff != "" {
		t.Error(diff)
	}
	if r.Verdict != report.Holds {
		t.Errorf("%v: %s", r.Verdict, r.Summary)
	}
}

// TestSnapshotNamesGroup: a capture without a call on a group's rules is judged by the rules that were given.
func TestSnapshotNamesGroup(t *testing.T) {
	c := files{"cloudtrail.json": trail(cur.register("10:00:00", "web", "10.0.0.1:80"), cur.register("11:00:00", "api", "10.0.0.1:9000"))}.load(t)
	got := outcomeOf(one(t, judge(t, c, given(initial("80")))))
	want := outcome{vacuous, violated, possible, vacuous, []string{
		"covered violated tcp 9000 11:00:00 to … by register 10.0.0.1:9000 of api",
	}, nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("-want +got\n" + diff)
	}
}

// TestTimeRange cuts a capture: what is over before --since or begins after --until is left out.
func TestTimeRange(t *testing.T) {
	c := read(t, incident)
	at := func(s string) traces.Instant { return traces.At(clock(s)) }
	t.Run("until", func(t *testing.T) {
		g := one(t, judge(t, c, func(o *checker.Options) { o.Until = at("10:20:00") }))
		p := property(t, g, "never-empty")
		if p.Verdict != report.Violated || len(p.Windows) != 1 || p.Windows[0].End != nil || *g.To > at("10:20:00") {
			t.Errorf("%v, windows %v, to %v", p.Verdict, p.Windows, *g.To)
		}
		if s := property(t, g, "repair-bound").Statistics; s.Censored != s.Count || s.Count != 4 {
			t.Errorf("statistics %+v", s)
		}
	})
	t.Run("since", func(t *testing.T) {
		g := one(t, judge(t, c, func(o *checker.Options) { o.Since = at("10:20:00") }))
		if got := outcomeOf(g); got.NeverEmpty != holds || *g.From < at("10:20:00") {
			t.Errorf("%v from %v", got, *g.From)
		}
		for _, row := range g.Timeline {
			if row.At.Latest < at("10:20:00") {
				t.Errorf("row %q at %v", row.Summary, row.At)
			}
		}
	})
}

// TestMinWindow: lengths count one by one, and --min-window hides, never deletes.
func TestMinWindow(t *testing.T) {
	c := files{"history.ndjson": recorded(old.authorize("09:00:00", "80"),
		old.revoke("10:00:00", "80"), old.authorize("10:00:00.150", "80-81"),
		old.revoke("10:10:00", "80-81"), old.authorize("10:10:00.150", "80-82"),
		old.revoke("10:20:00", "80-82"), old.authorize("10:29:00", "80-83"))}.load(t)
	for _, x := range []struct {
		least         time.Duration
		shown, hidden int
	}{{0, 3, 0}, {time.Second, 1, 2}, {time.Hour, 0, 3}} {
		g := one(t, judge(t, c, func(o *checker.Options) { o.MinWindow = x.least }))
		p := property(t, g, "never-empty")
		if p.Verdict != report.Violated || len(p.Windows) != x.shown || p.Hidden != x.hidden {
			t.Errorf("%v: %v, %d windows, %d hidden", x.least, p.Verdict, len(p.Windows), p.Hidden)
		}
		if s := property(t, g, "repair-bound").Statistics; s.Max != 540 || s.Median > 0.2 {
			t.Errorf("%v: statistics %+v: hidden windows count too", x.least, s)
		}
	}
}

// TestMinimize: the part that is left still violates by the same call, and nothing can be left out of it.
func TestMinimize(t *testing.T) {
	for name, c := range map[string]struct {
		files            files
		paths            []string
		property, opener string
	}{
		"the incident":       {paths: []string{incident}, property: "never-empty", opener: "00000000-0000-4000-8000-000000000006"},
		"a real run":         {paths: []string{"real-run-incident"}, property: "never-empty", opener: "seq 15"},
		"a real run's trail": {paths: []string{"real-run-incident/cloudtrail.json"}, property: "never-empty", opener: "e-000022"},
		"covered alone": {property: "covered", opener: "e-04", files: files{"cloudtrail.json": trail(cur.authorize("09:00:00", "80"), cur.authorize("09:10:00", "80-90"), cur.revoke("09:10:05", "80"),
			cur.register("10:00:00", "web", "10.0.0.1:9000"), cur.register("11:00:00", "web", "10.0.0.2:80"))}},
	} {
		t.Run(name, func(t *testing.T) {
			loaded := read(t, c.paths...)
			if c.files != nil {
				loaded = c.files.load(t)
			}
			opt := checker.DefaultOptions()
			r := judge(t, loaded, nil)
			small, err := checker.Minimize(t.Context(), loaded, opt, r)
			if err != nil {
				t.Fatal(err)
			}
			shows := func(r *report.Report, name, opener string) bool {
				return len(r.Groups) > 0 && slices.ContainsFunc(r.Groups[0].Properties, func(p report.Property) bool {
					return p.Name == name && p.Verdict == report.Violated && slices.ContainsFunc(p.Windows, func(w report.Window) bool {
						return w.Verdict == report.Violated && w.OpenedBy != nil && w.OpenedBy.ID == opener
					})
				})
			}
			again := func(h *traces.History) bool {
				part := *loaded
				part.History = h
				return shows(judge(t, &part, nil), c.property, c.opener)
			}
			if !shows(r, c.property, c.opener) || !again(small) {
				t.Fatalf("%s by %s: the capture shows it: %v, the part shows it: %v", c.property, c.opener, shows(r, c.property, c.opener), again(small))
			}
			for i := range small.Operations {
				h := *small
				h.Operations = slices.Delete(slices.Clone(small.Operations), i, i+1)
				for n := range h.Operations {
					h.Operations[n].After = -1
				}
				if again(&h) {
					t.Errorf("%s can be left out of %d operations", small.Operations[i].ID, len(small.Operations))
				}
			}
			for i := range small.Observations {
				h := *small
				h.Observations = slices.Delete(slices.Clone(small.Observations), i, i+1)
				if again(&h) {
					t.Errorf("%s can be left out", small.Observations[i].ID)
				}
			}
			if len(small.Operations) > 3 {
				t.Errorf("%d operations are left", len(small.Operations))
			}
		})
	}
}
