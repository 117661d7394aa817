package report

import (
	"fmt"
	"strings"
	"time"

	"linearize.example/traces"
)

// at reads "15:04:05.999" on the day of the samples.
func at(s string) Instant {
	t, err := time.Parse("2006-01-02 15:04:05", "2026-08-28 "+s)
	if err != nil {
		panic(err)
	}
	return traces.At(t)
}

func instant(s string) *Instant {
	i := at(s)
	return &i
}

// span2 is the range between two times of day.
func span2(from, to string) Range { return Range{at(from), at(to)} }

// second is a whole second widened by one on both sides, as CloudTrail's times are.
func second(s string) Range {
	i := at(s)
	return Range{i.Add(-time.Second), i.Add(2 * time.Second)}
}

func ptr[T any](v T) *T { return &v }

const (
	sg     = "sg-053bdd55831dccd60"
	source = " from sg-014f7b94f96fe2d8d"
	lbc    = "lbc-1"
)

// samples are the reports that every format is shown with, by the name of their golden files.
func samples() map[string]*Report {
	return map[string]*Report{
		"violated":  violatedReport(),
		"vacuous":   vacuousReport(),
		"unordered": unorderedReport(),
		"possible":  possibleReport(),
		"hostile":   hostileReport(hostile),
	}
}

func ctRef(n int, summary string) *Ref {
	return &Ref{ID: fmt.Sprintf("00000000-0000-4000-8000-%012d", n), Process: lbc, Summary: summary,
		Who:     "role lbc-irsa, session 1756371234567890123, key ASIAQWERTYUIOPASDFGH, elbv2.k8s.aws/v3.4.0, 10.0.3.17",
		Sources: []string{fmt.Sprintf("captures/cloudtrail.json record %d", n)}}
}

func ctCall(n int, t, summary, result string, rules ...string) Row {
	for i := range rules {
		rules[i] += source
	}
	if rules == nil {
		rules = []string{}
	}
	return Row{Kind: "call", ID: fmt.Sprintf("00000000-0000-4000-8000-%012d", n), At: second(t), Process: lbc,
		Summary: summary, Result: result, Rules: rules,
		Sources: []string{fmt.Sprintf("captures/cloudtrail.json record %d", n)}}
}

func skip(line int, t, tgb string) Row {
	return Row{Kind: "observation", ID: fmt.Sprintf("controller.log:%d", line), At: Range{at(t), at(t).Add(time.Second)},
		Process: "lbc-2", Summary: "skipped " + tgb, Sources: []string{fmt.Sprintf("captures/controller.log line %d", line)}}
}

func marked(row Row, marks ...string) Row {
	row.Marks = marks
	return row
}

func violatedReport() *Report {
	never := "never-empty violated"
	opening := ctRef(6, "revoke tcp 3000-3008")
	closing := ctRef(7, "authorize tcp 3000-3000")
	closing.Process = "lbc-2"
	last := ctRef(9, "authorize tcp 3000-8025")
	last.Process = "lbc-2"
	second2 := func(row Row) Row { row.Process = "lbc-2"; return row }
	return &Report{
		Verdict: Violated,
		Summary: sg + " had no managed rule for 39 m 47 s from 2026-08-28 09:56:01 while targets needed tcp 3000; " +
			"lbc-1 revoked the last one",
		Inputs: []Input{
			{Path: "captures/cloudtrail.json", Format: "cloudtrail", Records: 14, Used: 12, Duplicates: 1, Irrelevant: 1},
			{Path: "captures/controller.log", Format: "controller-log", Records: 214, Used: 38, Irrelevant: 174, Rejected: 2,
				Rejections: []string{"line 17: the line ends inside of a JSON object", "line 201: the time \"yesterday\" is no time"}},
		},
		Groups: []Group{{
			GroupID: sg, Operations: 10, From: instant("09:55:15"), To: instant("10:48:23"),
			Linearity: Linearity{Result: "linearizable", Mutations: "linearizable", Detail: "no describe was recorded"},
			Properties: []Property{
				{Name: "never-empty", Verdict: Violated,
					Meaning: "never-empty: a reconcile must never leave the managed permission set empty while targets are registered",
					Reason:  "no managed rule while targets were registered, in every order",
					Windows: []Window{{Verdict: Violated, Start: second("09:56:01"), End: ptr(second("10:35:48")),
						CertainSeconds: 2384, PossibleSeconds: 2390, OpenedBy: opening, ClosedBy: closing,
						Text: "authorize tcp 3000-3000 was the first call after the restart at 10:05:36"}}},
				{Name: "covered", Verdict: Violated, Reason: "3 ports were outside of every rule", Windows: []Window{
					{Verdict: Violated, Start: second("09:56:01"), End: ptr(second("10:35:48")), Subject: "tcp 3000",
						CertainSeconds: 2384, PossibleSeconds: 2390, OpenedBy: opening, ClosedBy: closing},
					{Verdict: Violated, Start: second("09:56:01"), End: ptr(second("10:39:00")), Subject: "tcp 8025",
						CertainSeconds: 2576, PossibleSeconds: 2582, OpenedBy: opening, ClosedBy: last}}},
				{Name: "repair-bound", Verdict: Violated, Reason: "2 of 2 repairs took longer than the bound",
					BoundSeconds: ptr(300.0), WorstSeconds: ptr(2579.0),
					Statistics: &Statistics{Count: 2, Quantiles: Quantiles{2483, 2579, 2579, 2579}},
					Promise: &Promise{Release: "v3.4.0", BoundSeconds: 2700, Verdict: Holds,
						Text: "45 min after a leader start, by the deferred queue"}},
				{Name: "tight", Verdict: Holds, Reason: "after the last change the rules are what is wanted"},
			},
			Processes: []Process{
				{ID: lbc, Role: "lbc-irsa", Session: "1756371234567890123", SessionStart: "2026-08-28T09:12:44Z",
					AccessKeyID: "ASIAQWERTYUIOPASDFGH", UserAgent: "elbv2.k8s.aws/v3.4.0", SourceAddress: "10.0.3.17",
					Release: "v3.4.0", Controller: true, Operations: 6},
				{ID: "lbc-2", Role: "lbc-irsa", Session: "1756375521000000001", UserAgent: "elbv2.k8s.aws/v3.4.0",
					Release: "v3.4.0", Controller: true, Operations: 4},
			},
			Findings: []Finding{
				{"old-read", "two NotFound on tcp 3000-8025 after its revoke succeeded: lbc-1 acted on a describe that was old by one revoke"},
				{"masked-by-cache", "after the second NotFound the cache kept the old answer for at least 43 s"},
			},
			Assumptions: []string{
				"initial rules: tcp 3000-8025" + source + ", proved present by the revoke at 09:55:17; nothing else (closed world)",
				"targets needed their ports from the first RegisterTargets on; give --bindings to replace this",
			},
			SettledBy: []string{"the results of 2 revokes (NotFound) order 3 calls", "the release's contract (v3.4.0: authorize, then revoke) orders 1 pair"},
			Timeline: []Row{
				{Kind: "capture", At: span2("09:55:15", "09:55:15"), Summary: "the capture begins"},
				ctCall(1, "09:55:16", "authorize tcp 3000-3008", "ok", "tcp 3000-3008", "tcp 3000-8025"),
				ctCall(2, "09:55:17", "deregister 10.0.1.10:8025 of test/mailpit", "ok", "tcp 3000-3008", "tcp 3000-8025"),
				ctCall(3, "09:55:17", "revoke tcp 3000-8025", "ok", "tcp 3000-3008"),
				ctCall(4, "09:55:17", "revoke tcp 3000-8025", "InvalidPermission.NotFound", "tcp 3000-3008"),
				ctCall(5, "09:55:18", "revoke tcp 3000-8025", "InvalidPermission.NotFound", "tcp 3000-3008"),
				marked(ctCall(6, "09:56:01", "revoke tcp 3000-3008", "ok"), never+" from here", "covered violated from here for tcp 3000, tcp 8025"),
				marked(Row{Kind: "observation", ID: "controller.log:3", At: span2("10:05:20", "10:05:21"), Process: "lbc-2",
					Summary: "elected leader", Sources: []string{"captures/controller.log line 3"}}, never),
				marked(skip(17, "10:05:36", "test/mailpit"), never),
				marked(skip(18, "10:05:36", "test/frontend"), never),
				marked(second2(ctCall(7, "10:35:48", "authorize tcp 3000-3000", "ok", "tcp 3000-3000")), never+" until here"),
				second2(ctCall(8, "10:37:35", "authorize tcp 3000-3008", "ok", "tcp 3000-3000", "tcp 3000-3008")),
				marked(second2(ctCall(9, "10:39:00", "authorize tcp 3000-8025", "ok", "tcp 3000-3000", "tcp 3000-3008", "tcp 3000-8025")),
					"covered violated until here for tcp 8025"),
				second2(ctCall(10, "10:48:21", "revoke tcp 3000-3000, tcp 3000-3008", "ok", "tcp 3000-8025")),
				{Kind: "capture", At: span2("10:48:23", "10:48:23"), Summary: "the capture ends"},
			},
			Bars: []Bar{
				{Rule: "tcp 3000-8025" + source, Managed: true, From: span2("09:55:15", "09:55:15"), To: ptr(second("09:55:17")), Certain: true},
				{Rule: "tcp 3000-3008" + source, Managed: true, From: second("09:55:16"), To: ptr(second("09:56:01")), Certain: true},
				{Rule: "tcp 3000-3000" + source, Managed: true, From: second("10:35:48"), To: ptr(second("10:48:21")), Certain: true},
				{Rule: "tcp 3000-3008" + source, Managed: true, From: second("10:37:35"), To: ptr(second("10:48:21")), Certain: true},
				{Rule: "tcp 3000-8025" + source, Managed: true, From: second("10:39:00"), Certain: true},
				{Rule: "tcp 22-22 from 192.0.2.0/24", From: span2("09:55:15", "09:55:15"), Certain: false},
			},
			Needs: []Need{
				{Port: "tcp 3000", Why: "test/frontend, registered 10.0.1.11:3000", From: span2("09:55:15", "09:55:15"), Certain: true},
				{Port: "tcp 8025", Why: "test/mailpit, registered 10.0.1.10:8025", From: span2("09:55:15", "09:55:15"),
					To: ptr(second("09:55:17")), Certain: true},
				{Port: "tcp 8025", Why: "test/mailpit, registered 10.0.1.12:8025", From: second("09:56:01"), Certain: true},
			},
		}},
		Options: []Option{{"--repair-bound", "5m"}, {"--clock-skew", "1s"}, {"--need", "assumed"}},
	}
}

func vacuousReport() *Report {
	return &Report{
		Verdict: Holds, Summary: "nothing was violated, and never-empty could not have been: the capture has no revoke",
		Inputs: []Input{{Path: "-", Format: "history", Records: 3, Used: 3}},
		Groups: []Group{{
			GroupID: "sg-0aaa1111bbbb2222c", Operations: 3, From: instant("12:00:00.001"), To: instant("12:00:02"),
			Linearity: Linearity{Result: "linearizable", Mutations: "linearizable", Reads: 2,
				Quantiles: &Quantiles{}},
			Properties: []Property{
				{Name: "never-empty", Verdict: Holds, Vacuous: true, Reason: "no call of the capture could have removed a managed rule"},
				{Name: "covered", Verdict: Holds, Vacuous: true, Reason: "nobody needed a port"},
				{Name: "repair-bound", Verdict: Holds, Vacuous: true, Reason: "there was no window to repair", BoundSeconds: ptr(300.0)},
				{Name: "tight", Verdict: Holds},
			},
			Processes:   []Process{{ID: "controller", Release: "v3.4.0", Controller: true, Operations: 3}},
			Assumptions: []string{"the group had no rule at the beginning (a describe shows it)"},
			Timeline: []Row{
				{Kind: "call", ID: "seq 1", At: span2("12:00:00.001", "12:00:00.009201246"), Process: "controller", Summary: "describe: no rules",
					Result: "ok", Rules: []string{}, Sources: []string{"- line 2"}},
				{Kind: "call", ID: "seq 2", At: span2("12:00:00.009523582", "12:00:00.024738482"), Process: "controller",
					Summary: "authorize tcp 3000-3000", Result: "ok", Rules: []string{"tcp 3000-3000 from sg-0ddd3333eeee4444f"}},
				{Kind: "call", ID: "seq 3", At: span2("12:00:01.999999", "12:00:02"), Process: "controller", Summary: "describe: 1 rule",
					Result: "ok", Rules: []string{"tcp 3000-3000 from sg-0ddd3333eeee4444f"}},
			},
			Bars: []Bar{{Rule: "tcp 3000-3000 from sg-0ddd3333eeee4444f", Managed: true, Certain: true,
				From: span2("12:00:00.009523582", "12:00:00.024738482")}},
		}},
	}
}

func unorderedReport() *Report {
	return &Report{
		Verdict: Unknown, Summary: "the results of sg-0aaa1111bbbb2222c contradict each other in every order",
		Inputs: []Input{{Path: "history.ndjson", Format: "history", Records: 2, Used: 2}},
		Groups: []Group{{
			GroupID: "sg-0aaa1111bbbb2222c", Operations: 2, From: instant("12:00:00"), To: instant("12:00:02"),
			Linearity: Linearity{Result: "not-linearizable", Mutations: "not-linearizable"},
			Properties: []Property{
				{Name: "never-empty", Reason: "the operations cannot be ordered"},
				{Name: "covered", Reason: "the operations cannot be ordered"},
				{Name: "repair-bound", Reason: "the operations cannot be ordered", BoundSeconds: ptr(300.0)},
				{Name: "tight", Reason: "the operations cannot be ordered"},
			},
			Unordered: &Unordered{At: Ref{ID: "seq 2", Process: "lbc-1", Summary: "authorize tcp 80-80", Sources: []string{"history.ndjson line 3"}},
				Explained: 1, States: []string{"{tcp 80-80 from sg-0ddd}"},
				Refusals: []string{"authorize of a rule that is present cannot succeed (InvalidPermission.Duplicate)"}},
			Timeline: []Row{
				{Kind: "call", ID: "seq 1", At: span2("12:00:00", "12:00:00.5"), Process: "lbc-1", Summary: "authorize tcp 80-80", Result: "ok",
					Rules: []string{"tcp 80-80 from sg-0ddd"}, Sources: []string{"history.ndjson line 2"}},
				{Kind: "call", ID: "seq 2", At: span2("12:00:01", "12:00:02"), Process: "lbc-1", Summary: "authorize tcp 80-80", Result: "ok",
					Sources: []string{"history.ndjson line 3"}},
			},
			Visualization: "<!doctype html>\n<html><body><script>\nconst data = {\"Annotations\":null,\"Description\":\"sg-0aaa1111bbbb2222c\"}\n" +
				"document.body.textContent = data.Description\n</script></body></html>\n",
		}},
	}
}

func possibleReport() *Report {
	open := Ref{ID: "seq 4", Process: "terraform", Summary: "revoke tcp 80-80", Who: "role deploy, session ci", Sources: []string{"a b/history.ndjson line 5"}}
	return &Report{
		Verdict: Possible, Summary: "sg-0ddd may have had no managed rule for up to 150 ms; two calls overlap",
		Inputs: []Input{{Path: "a b/history.ndjson", Format: "history", Records: 5, Used: 5}},
		Groups: []Group{{
			GroupID: "sg-0ddd", Operations: 4, From: instant("23:59:58"), To: ptr(at("00:00:05").Add(24 * time.Hour)),
			Linearity: Linearity{Result: "not-linearizable", Mutations: "linearizable", Reads: 20, StaleReads: 2, MaxReadLagSeconds: 0.0238,
				ReadLags: []ReadLag{{"seq 3", 0.0238}, {"seq 5", 0.0011}}, Quantiles: &Quantiles{0, 0.0011, 0.0238, 0.0238}},
			Properties: []Property{
				{Name: "never-empty", Verdict: Possible, Reason: "the group is empty if seq 4 came before seq 5", Hidden: 3, Windows: []Window{
					{Verdict: Possible, Start: span2("23:59:59.8", "23:59:59.9"), End: ptr(Range{at("23:59:59.95"), at("00:00:00.05").Add(24 * time.Hour)}),
						PossibleSeconds: 0.15, OpenedBy: &open, ClosedBy: &Ref{ID: "seq 5", Process: "controller", Summary: "authorize tcp 80-80"}},
					{Verdict: Possible, Start: Range{traces.Beginning, at("23:59:58")}, PossibleSeconds: 1.5, Text: "seen by one read alone"}}},
				{Name: "covered", Verdict: Unknown, Reason: "the budget of 1 GiB was used up after 3 operations"},
				{Name: "repair-bound", Verdict: Possible, BoundSeconds: ptr(0.1), WorstSeconds: ptr(0.15),
					Statistics: &Statistics{Count: 1, Censored: 1, Quantiles: Quantiles{0.15, 0.15, 0.15, 0.15}}},
				{Name: "tight", Verdict: Holds},
			},
			Processes: []Process{{ID: "terraform", Role: "deploy", Session: "ci", UserAgent: "APN/1.0 HashiCorp/1.0 Terraform/1.9.5", Operations: 1},
				{ID: "controller", Release: "v2.7.2", Controller: true, Operations: 3}},
			Findings: []Finding{{"second-writer", "terraform changes managed rules of sg-0ddd"}},
			Timeline: []Row{
				{Kind: "call", ID: "seq 3", At: span2("23:59:58", "23:59:58.25"), Process: "controller", Summary: "describe: 1 rule", Result: "ok",
					Rules: []string{"tcp 80-80 from sg-0eee"}},
				{Kind: "window-start", At: span2("23:59:59.8", "23:59:59.9"), Summary: "never-empty may be violated from here"},
				{Kind: "call", ID: "seq 4", At: span2("23:59:59.8", "23:59:59.95"), Process: "terraform", Summary: "revoke tcp 80-80", Result: "ok",
					Rules: []string{}, Possible: []string{"{tcp 80-80 from sg-0eee}"}},
				{Kind: "call", ID: "seq 5", At: Range{at("23:59:59.8"), traces.Forever}, Process: "controller", Summary: "authorize tcp 80-80",
					Result: "no answer", Possible: []string{"{}", "{tcp 80-80 from sg-0eee}"}},
				{Kind: "window-end", At: Range{at("23:59:59.95"), at("00:00:00.05").Add(24 * time.Hour)}, Summary: "never-empty holds again"},
				{Kind: "call", ID: "seq 6", At: Range{at("00:00:04").Add(24 * time.Hour), at("00:00:05").Add(24 * time.Hour)}, Process: "controller",
					Summary: "describe: 1 rule", Result: "ok", Rules: []string{"tcp 80-80 from sg-0eee"}},
			},
			TimelineOmits: 12,
			Bars: []Bar{{Rule: "tcp 80-80 from sg-0eee", Managed: true, From: Range{traces.Beginning, at("23:59:58")},
				To: ptr(span2("23:59:59.8", "23:59:59.95")), Certain: true},
				{Rule: "tcp 80-80 from sg-0eee", Managed: true, From: Range{at("23:59:59.8"), traces.Forever}}},
		}},
	}
}

// hostile is a string that tries to get out of every format. It has marker to be found again.
var hostile = strings.Join([]string{
	"\x1b[31mred\x1b]0;title\a", "\u009b2J", "\u202eevil\u2066", "bad\xff\xfeutf8", "\x00\x7f\r\nnew line",
	"<script>alert(1)</script>", `"'><img src=x onerror=alert(1)>`, "]]>", "<!--", "&amp;", "</style>", "</title>", "</svg>",
	"@torvalds", "#1", "http://evil.example/", "www.evil.example", "me@evil.example", "[a](b)", "![a](b)", "``` `x` ``", "|a|b|", "\\", "**b**", "~~~",
	"日本語", "a\u0301\u200b\u00ad",
}, " ")

// hostileReport has the string s wherever a capture's strings may come to stand.
func hostileReport(s string) *Report {
	ref := &Ref{ID: s, Process: s, Summary: s, Who: s, Sources: []string{s}}
	return &Report{
		Verdict: Violated, Summary: s,
		Inputs:  []Input{{Path: s, Format: s, Records: 1, Rejected: 1, Rejections: []string{s}}},
		Options: []Option{{s, s}},
		Groups: []Group{{
			GroupID: s, Operations: 1, From: instant("12:00:00"), To: instant("12:00:01"),
			Linearity: Linearity{Result: s, Mutations: s + "!", Reads: 1, StaleReads: 1, ReadLags: []ReadLag{{s, 1}}, Detail: s},
			Properties: []Property{
				{Name: "never-empty", Verdict: Violated, Meaning: s, Reason: s, Windows: []Window{{Verdict: Violated, Start: span2("12:00:00", "12:00:00"),
					End: ptr(span2("12:00:01", "12:00:01")), CertainSeconds: 1, PossibleSeconds: 1, OpenedBy: ref, ClosedBy: ref, Subject: s, Text: s}}},
				{Name: "repair-bound", Verdict: Possible, Reason: s, Promise: &Promise{Release: s, Text: s}},
				{Name: s, Verdict: Unknown},
			},
			Processes: []Process{{ID: s, Role: s, Session: s, SessionStart: s, AccessKeyID: s, UserAgent: s, SourceAddress: s, Release: s, Controller: true}},
			Findings:  []Finding{{s, s}}, Assumptions: []string{s}, SettledBy: []string{s},
			Timeline: []Row{{Kind: "call", ID: s, At: span2("12:00:00", "12:00:01"), Process: s, Summary: s, Result: s,
				Rules: []string{s}, Possible: []string{s}, Marks: []string{s}, Sources: []string{s}},
				{Kind: s, At: span2("12:00:00", "12:00:01"), Summary: s}},
			Bars:          []Bar{{Rule: s, From: span2("12:00:00", "12:00:00"), Certain: true}},
			Needs:         []Need{{Port: s, Why: s, From: span2("12:00:00", "12:00:00")}},
			Unordered:     &Unordered{At: *ref, Explained: 1, States: []string{s}, Refusals: []string{s, s}},
			Visualization: "<!doctype html><p>x</p><script>\nconst data = {}\n</script>",
		}},
	}
}
