package simulate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"linearize.example/checker"
	"linearize.example/checker/property"
	"linearize.example/checker/report"
	"linearize.example/traces"
	"linearize.example/traces/awsapi"
	"linearize.example/traces/capture"
	"linearize.example/traces/snapshot"
)

// recordingBound is the repair bound that runs are judged by: some repairs take longer, some do not.
const recordingBound = 20 * time.Second

// view is what was so of one property and one port: for sure are the windows of live, registered targets; at most, those that somebody who
// sees only what a recording has may take for violated.
type view struct {
	sure, atMost []Window
	loose        bool // more may be needed than is known
}

// spans are the windows in which bad holds, from and to an instant.
func (o *observed) spans(from, to time.Time, bad func(rules []traces.IdentifiedPermission, s *sample) bool) (list []Window) {
	changes, samples := o.changes, o.samples
	var rules []traces.IdentifiedPermission
	var now sample
	for len(changes) > 0 || len(samples) > 0 {
		at := to
		if len(changes) > 0 {
			at = changes[0].At.Time()
		}
		if len(samples) > 0 && samples[0].at.Before(at) || len(changes) == 0 {
			at = samples[0].at
		}
		for ; len(changes) > 0 && !changes[0].At.Time().After(at); changes = changes[1:] {
			rules = changes[0].Rules
		}
		for ; len(samples) > 0 && !samples[0].at.After(at); samples = samples[1:] {
			now = samples[0]
		}
		list = extend(list, at, bad(rules, &now))
	}
	var clipped []Window
	for _, w := range list {
		if w.Open || w.To.After(to) {
			w.To, w.Open = to, true
		}
		if w.From.Before(from) {
			w.From = from
		}
		if w.From.Before(w.To) {
			clipped = append(clipped, w)
		}
	}
	return clipped
}

// needsOf picks the needs of a sample.
type needsOf func(s *sample) []need

func live(s *sample) []need       { return s.needs }
func registered(s *sample) []need { return s.called }

// there are the needs of bindings with pods or with targets: what their JSON and the calls on targets tell.
func there(s *sample) []need { return append(slices.Clone(s.called), s.wanted...) }

// shown are the needs that calls from an instant on prove, and those that they may be taken to prove: a port was an end of a rule and
// nothing tells that its targets were gone.
func (o *observed) shown(from traces.Instant) (sure, atMost needsOf) {
	since := map[int32]time.Time{}
	for _, op := range o.history.Operations {
		if op.Call < from || op.Op != traces.RegisterTargets || op.Outcome != traces.Succeeded {
			continue
		}
		if _, known := since[op.Targets[0].Port]; !known {
			since[op.Targets[0].Port] = op.Call.Time()
		}
	}
	sure = func(s *sample) (list []need) {
		for _, n := range s.needs {
			if at, known := since[n.port]; known && !s.at.Before(at) {
				list = append(list, n)
			}
		}
		return list
	}
	return sure, func(*sample) (list []need) {
		for _, b := range o.opt.Script.Bindings {
			list = append(list, need{b.protocol(), b.Port, cmp.Or(b.Source, BalancerGroup)})
		}
		return list
	}
}

// truths are the views by property and port; 0 stands for never-empty.
// Bindings alone tell from where and by what protocol.
func (o *observed) truths(from, to time.Time, sure, atMost needsOf, bindings bool) map[int32]*view {
	opened := func(rules []traces.IdentifiedPermission, n need) bool {
		return allowed(rules, n) || !bindings && slices.ContainsFunc(rules, func(p traces.IdentifiedPermission) bool { return p.Covers(p.Protocol, n.port) })
	}
	all := map[int32]*view{}
	empty := func(pick needsOf) []Window {
		return o.spans(from, to, func(rules []traces.IdentifiedPermission, s *sample) bool {
			return len(pick(s)) > 0 && !slices.ContainsFunc(rules, func(p traces.IdentifiedPermission) bool { return property.Managed(p.Description) })
		})
	}
	all[0] = &view{sure: empty(sure), atMost: empty(atMost)}
	for _, b := range o.opt.Script.Bindings {
		open := func(pick needsOf) []Window {
			return o.spans(from, to, func(rules []traces.IdentifiedPermission, s *sample) bool {
				return slices.ContainsFunc(pick(s), func(n need) bool { return n.port == b.Port && !opened(rules, n) })
			})
		}
		all[b.Port] = &view{sure: open(sure), atMost: open(atMost)}
	}
	return all
}

// expectation is how a recording's report is compared.
type expectation struct {
	name         string
	c            *capture.Capture
	opt          checker.Options
	sure, atMost needsOf
	// assumed: what the recording does not show is assumed, so that verdicts rest on less; tight is not compared.
	assumed bool
	// loose: so are needs, whose windows then have other bounds than those that were so.
	loose bool
}

// mostLag is how old reads are at most.
const mostLag = 1500 * time.Millisecond

func windowLine(w *report.Window) string {
	end := "…"
	if w.End != nil {
		end = fmt.Sprintf("[%s %s]", clockText(w.End.Earliest), clockText(w.End.Latest))
	}
	by := ""
	for _, r := range []*report.Ref{w.OpenedBy, w.ClosedBy} {
		if r != nil {
			by += " " + r.ID + " " + r.Summary + ";"
		}
	}
	return fmt.Sprintf("%s %s [%s %s] to %s certain %.3f possible %.3f by%s %s", w.Verdict, w.Subject, clockText(w.Start.Earliest), clockText(w.Start.Latest), end, w.CertainSeconds, w.PossibleSeconds, by, w.Text)
}

func clockText(i traces.Instant) string { return i.Time().Format("15:04:05.000") }

func spansText(list []Window) string {
	var b strings.Builder
	for _, w := range list {
		fmt.Fprintf(&b, "%s-%s ", w.From.Format("15:04:05.000"), w.To.Format("15:04:05.000"))
	}
	return b.String()
}

// judge judges a recording and compares the report with the truth. It returns what is wrong.
func (o *observed) judge(e expectation) (r *report.Report, wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, e.name+": "+fmt.Sprintf(format, args...)) }
	r = checker.Check(context.Background(), e.c, e.opt)
	if len(r.Groups) != 1 {
		say("%d groups", len(r.Groups))
		return r, wrong
	}
	g := &r.Groups[0]
	from, to := g.From.Time(), g.To.Time()
	truths := o.truths(from, to, e.sure, e.atMost, e.opt.HasBindings)
	repair := propertyOf(r, property.RepairBound)
	longSure, longAtMost := false, false
	for _, name := range []string{property.NeverEmpty, property.Covered} {
		p := propertyOf(r, name)
		if p.Verdict == report.Unknown {
			say("%s is unknown: %s", name, p.Reason)
		}
		someSure, someAtMost := false, false
		byPort := map[int32][]report.Window{}
		for _, w := range p.Windows {
			byPort[portOf(w.Subject)] = append(byPort[portOf(w.Subject)], w)
		}
		for port, v := range truths {
			if (port == 0) != (name == property.NeverEmpty) {
				continue
			}
			someSure, someAtMost = someSure || len(v.sure) > 0, someAtMost || len(v.atMost) > 0
			for _, w := range v.sure {
				longSure = longSure || w.Length() > recordingBound
			}
			for _, w := range v.atMost {
				longAtMost = longAtMost || w.Length() > recordingBound
			}
			v.loose = e.loose
			for i := range byPort[port] {
				if text := windowWrong(&byPort[port][i], v, o.history); text != "" {
					say("%s: %s; %s: for sure %s, at most %s", name, text, windowLine(&byPort[port][i]), spansText(v.sure), spansText(v.atMost))
				}
			}
			for _, s := range v.sure {
				if p.Verdict != report.Unknown && !within(s, byPort[port], *g.To) {
					say("%s of %d: nothing says that it was violated %s, but %v", name, port, spansText([]Window{s}), linesOf(byPort[port]))
				}
			}
		}
		switch {
		case p.Verdict == report.Violated && !someAtMost:
			say("%s is violated, and was not", name)
		case p.Verdict == report.Holds && someSure:
			say("%s holds, and did not", name)
		}
	}
	switch {
	case repair.Verdict == report.Violated && !longAtMost:
		say("repair-bound is violated, and was not")
	case repair.Verdict == report.Holds && longSure:
		say("repair-bound holds, and did not")
	}
	if tight := propertyOf(r, property.Tight); !e.assumed && to.Equal(o.history.Observations[len(o.history.Observations)-1].Latest.Time()) {
		switch {
		case tight.Verdict == report.Violated && len(o.Truth.Leftover) == 0:
			say("tight is violated, and was not: %s", tight.Reason)
		case tight.Verdict == report.Holds && len(o.Truth.Leftover) > 0:
			say("tight holds, and did not: %v", o.Truth.Leftover)
		}
	}
	if lag := time.Duration(g.Linearity.MaxReadLagSeconds * float64(time.Second)); o.opt.Faults.InOrder && lag > mostLag {
		say("reads are old by %s, and could be by %s", lag, mostLag)
	}
	if text := jsonWrong(r); text != "" {
		say("JSON: %s", text)
	}
	return r, wrong
}

func linesOf(windows []report.Window) (lines []string) {
	for i := range windows {
		lines = append(lines, windowLine(&windows[i]))
	}
	return lines
}

func portOf(subject string) int32 {
	if subject == "" {
		return 0
	}
	fields := strings.Fields(subject)
	for _, f := range fields {
		if n, err := strconv.Atoi(f); err == nil {
			return int32(n)
		}
	}
	return -1
}

// within reports whether the bounds of some windows together contain a span.
func within(s Window, windows []report.Window, end traces.Instant) bool {
	at := traces.At(s.From)
	for i := range windows {
		until := end
		if windows[i].End != nil {
			until = windows[i].End.Latest
		}
		if windows[i].Start.Earliest <= at && until >= at {
			at = max(at, until)
		}
	}
	return at >= traces.At(s.To)
}

// windowWrong says what is wrong with a window, if it is certain.
func windowWrong(w *report.Window, v *view, h *traces.History) string {
	if w.Verdict != report.Violated {
		return ""
	}
	text := "it is certain, and was not so"
	for _, o := range v.atMost {
		if o.From.After(w.Start.Latest.Time()) || w.End == nil && !o.Open || w.End != nil && o.To.Before(w.End.Earliest.Time()) {
			continue
		}
		if text = windowDiffers(w, v, o, h); text == "" {
			break
		}
	}
	return text
}

// windowDiffers says in what a window differs from one that was so.
func windowDiffers(w *report.Window, v *view, o Window, h *traces.History) string {
	if w.CertainSeconds > o.Length().Seconds() {
		return fmt.Sprintf("it lasted %s", o.Length())
	}
	if v.loose {
		return ""
	}
	bounds := []Window{o}
	for _, s := range v.sure {
		if !s.From.Before(o.From) && !s.To.After(o.To) {
			bounds = append(bounds, s)
		}
	}
	if !slices.ContainsFunc(bounds, func(b Window) bool {
		return !b.From.Before(w.Start.Earliest.Time()) && !b.From.After(w.Start.Latest.Time())
	}) {
		return "it began outside of the bounds"
	}
	if w.End != nil && !slices.ContainsFunc(bounds, func(b Window) bool {
		return !b.To.Before(w.End.Earliest.Time()) && !b.To.After(w.End.Latest.Time())
	}) {
		return "it ended outside of the bounds"
	}
	at := func(ref *report.Ref, instant func(Window) time.Time, others string) bool {
		if ref == nil {
			return true
		}
		return slices.ContainsFunc(h.Operations, func(op traces.Operation) bool {
			return (op.ID == ref.ID || strings.Contains(others, "or opened by "+op.ID)) && slices.ContainsFunc(bounds, func(b Window) bool {
				at := traces.At(instant(b))
				return op.Call <= at && at <= op.Return
			})
		})
	}
	switch {
	case w.OpenedBy == nil || !strings.HasPrefix(w.OpenedBy.ID, "seq "): // of another source, which names calls in other ways
	case !at(w.OpenedBy, func(b Window) time.Time { return b.From }, w.Text):
		return "another call opened it"
	case !at(w.ClosedBy, func(b Window) time.Time { return b.To }, ""):
		return "another call closed it"
	}
	return ""
}

// jsonWrong says what of the report is not as its stable form has it.
func jsonWrong(r *report.Report) string {
	var b bytes.Buffer
	if err := report.WriteJSON(&b, r); err != nil {
		return err.Error()
	}
	for _, word := range []string{`"beginning"`, `"forever"`} {
		if bytes.Contains(b.Bytes(), []byte(word)) {
			return "a time is " + word
		}
	}
	type span struct {
		Earliest, Latest *time.Time
	}
	var got struct {
		Schema, Verdict string
		Groups          []struct {
			Linearity  struct{ Result string }
			Properties []struct {
				Name, Verdict string
				Vacuous       *bool
				Windows       []struct {
					Verdict  string
					Start    span
					End      *span
					Certain  *float64 `json:"certain_seconds"`
					Possible *float64 `json:"possible_seconds"`
				}
				Worst *float64 `json:"worst_seconds"`
			}
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		return err.Error()
	}
	if got.Schema != report.Schema || len(got.Groups) != len(r.Groups) {
		return "the schema or the groups"
	}
	for _, g := range got.Groups {
		if !slices.Contains([]string{"linearizable", "not-linearizable", "unknown"}, g.Linearity.Result) || len(g.Properties) != len(Properties) {
			return "linearity or the properties"
		}
		for i, p := range g.Properties {
			if p.Name != Properties[i] || p.Vacuous == nil || !slices.Contains([]string{"holds", "possible", "violated", "unknown"}, p.Verdict) {
				return "property " + p.Name
			}
			worst := report.Holds.String()
			for _, w := range p.Windows {
				switch {
				case w.Start.Earliest == nil || w.Start.Latest == nil || w.Start.Latest.Before(*w.Start.Earliest),
					w.End != nil && (w.End.Earliest == nil || w.End.Latest == nil || w.End.Latest.Before(*w.End.Earliest)),
					w.End != nil && w.End.Latest.Before(*w.Start.Earliest),
					w.Certain == nil || w.Possible == nil || *w.Certain < 0 || *w.Certain > *w.Possible,
					w.Verdict != "violated" && (w.Verdict != "possible" || *w.Certain != 0):
					return fmt.Sprintf("a window of %s: %+v", p.Name, w)
				}
				worst = w.Verdict
			}
			if (worst == "holds") != (p.Verdict == "holds" || p.Verdict == "unknown") && i < 2 {
				return fmt.Sprintf("%s is %s with %d windows", p.Name, p.Verdict, len(p.Windows))
			}
		}
	}
	return ""
}

// duller says where a joined recording tells less than one of its parts.
func duller(name string, joined *report.Report, part string, of *report.Report) (wrong []string) {
	for _, p := range []string{property.NeverEmpty, property.Covered} {
		a, b := propertyOf(joined, p), propertyOf(of, p)
		if (b.Verdict == report.Violated || b.Verdict == report.Holds) && a.Verdict != b.Verdict {
			wrong = append(wrong, fmt.Sprintf("%s: %s is %s, and %s by the %s alone", name, p, a.Verdict, b.Verdict, part))
		}
		for i := range b.Windows {
			w := &b.Windows[i]
			if w.Verdict == report.Violated && !slices.ContainsFunc(a.Windows, func(o report.Window) bool {
				return o.Verdict == report.Violated && o.Subject == w.Subject && o.Start.Earliest >= w.Start.Earliest && o.Start.Latest <= w.Start.Latest &&
					(w.End == nil || o.End != nil && o.End.Earliest >= w.End.Earliest && o.End.Latest <= w.End.Latest)
			}) {
				wrong = append(wrong, fmt.Sprintf("%s: %s: the %s alone has %s, and not %v", name, p, part, windowLine(w), linesOf(a.Windows)))
			}
		}
	}
	return wrong
}

// surroundings are a plan and faults.
type surroundings struct {
	name       string
	change     func(p *Plan)
	faults     func() *awsapi.Faults
	defaultVPC bool
	bindings   func(list []ScriptBinding)
}

func someSurroundings() []surroundings {
	base := func() *awsapi.Faults { return lagging(awsapi.Uniform(0, 1500*time.Millisecond)) }
	with := func(rules ...awsapi.FaultRule) func() *awsapi.Faults {
		return func() *awsapi.Faults {
			f := base()
			f.Rules = rules
			return f
		}
	}
	return []surroundings{
		{name: "old reads", faults: base},
		{name: "restart, crash", faults: base, change: func(p *Plan) { p.Crashes, p.Restarts = 1, 1 }},
		{name: "leaders", faults: base, change: func(p *Plan) { p.LeaderChanges = 2 }},
		{name: "somebody else", faults: base, change: func(p *Plan) { p.ExternalRevokes = 3 }},
		{name: "throttled", faults: with(awsapi.FaultRule{Action: "*", Share: 0.15, Code: "RequestLimitExceeded"})},
		{name: "denied", faults: with(awsapi.FaultRule{Action: "AuthorizeSecurityGroupIngress", Share: 0.2, Code: "UnauthorizedOperation"},
			awsapi.FaultRule{Action: "RegisterTargets", Share: 0.1, Code: "ValidationError"})},
		{name: "lost", faults: with(awsapi.FaultRule{Action: "*SecurityGroupIngress", Share: 0.15, Lost: true})},
		{name: "late", faults: with(awsapi.FaultRule{Action: "*SecurityGroupIngress", Share: 0.1, Late: awsapi.Uniform(0, 20*time.Second)})},
		{name: "limit", faults: func() *awsapi.Faults { f := base(); f.RulesPerGroup = 1; return f }},
		{name: "sources and protocols", faults: base, bindings: func(list []ScriptBinding) {
			list[1].Source, list[2].Protocol = "sg-0eee5555ffff66660", "udp"
		}},
		{name: "default VPC", faults: base, defaultVPC: true, change: func(p *Plan) { p.ExternalRevokes = 1 }},
	}
}

// TestRecordings judges runs by what weaker recordings of them have. What is certain was so, and what was so is at least possible. With
// RECORDINGS_SEEDS=n it tries n seeds, from RECORDINGS_FIRST on, of every design, churn and surrounding.
func TestRecordings(t *testing.T) {
	number := func(name string, otherwise uint64) uint64 {
		if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
			return n
		}
		return otherwise
	}
	some := []string{"v3.4.0", "v2.7.2", "confirm-authorize"}
	all := append(some, "no-cache", "guard-reread", "write-through", "read-your-writes", "group-mutex", "wait-out", "proposed", "all-ports", "guard-view",
		"invalidate-on-error", "gate-register", "checkpoint-verifies-aws")
	churns := []Churn{Boundary, ScaleToZero, Random, Rolling}
	first, count := number("RECORDINGS_FIRST", 1), number("RECORDINGS_SEEDS", 0)
	try := func(name string, s surroundings, churn Churn, seed uint64) {
		plan := Plan{Churn: churn, Seed: seed, Duration: 8 * time.Minute, Bindings: 4}
		if s.change != nil {
			s.change(&plan)
		}
		opt := Options{Design: design(t, name), Script: script(t, plan), Faults: s.faults()}
		// Else a describe may show rules as they never were, and nothing says how old these are.
		opt.Faults.InOrder = seed%2 == 0
		if s.bindings != nil {
			s.bindings(opt.Script.Bindings)
		}
		for _, wrong := range compared(t, observe(t, opt, s.defaultVPC), plan) {
			t.Errorf("%s, %s, %s churn, seed %d: %s", name, s.name, churn, seed, wrong)
		}
	}
	for i, s := range someSurroundings() {
		switch {
		case count > 0:
			for seed := first; seed < first+count; seed++ {
				for _, name := range all {
					for _, churn := range churns {
						try(name, s, churn, seed)
					}
				}
			}
		case fewer && i%3 > 0:
		default:
			for k, name := range some {
				try(name, s, churns[(i+k)%len(churns)], first)
			}
		}
	}
}

// compared judges all recordings of a run.
func compared(t *testing.T, o *observed, plan Plan) (wrong []string) {
	r := recordings{t, t.TempDir()}
	base := checker.DefaultOptions()
	base.RepairBound, base.Groups, base.ClockSkew = recordingBound, []string{PodGroup}, 0
	reports := map[string]*report.Report{}
	judge := func(e expectation) {
		if e.sure == nil {
			e.sure, e.atMost = live, registered
		}
		report, said := o.judge(e)
		reports[e.name] = report
		wrong = append(wrong, said...)
	}
	all := func(*traces.Operation) bool { return true }
	history := r.history(o, "history.ndjson", all)
	judge(expectation{name: "history", c: r.read(0, history), opt: base})
	judge(expectation{name: "without describes", c: r.read(0, r.history(o, "blind.ndjson", func(op *traces.Operation) bool { return !isDescribe(op) })), opt: base})
	judge(expectation{name: "answers forgotten", c: r.read(0, r.forgotten(o)), opt: base})
	bindings, err := snapshot.ReadBindings(bytes.NewReader(o.bindings()))
	if err != nil {
		t.Fatal(err)
	}
	bound := base
	bound.Bindings, bound.HasBindings = bindings, true
	judge(expectation{name: "history and bindings", c: r.read(0, history), opt: bound, atMost: there, sure: live})

	end := traces.At(Beginning.Add(plan.Duration))
	for n := range 2 {
		from := o.quiet(traces.At(Beginning.Add(plan.Duration * time.Duration(1+n) / 4)))
		to := end.Add(-plan.Duration / time.Duration(5-n))
		judge(expectation{name: "ends early", c: r.read(0, r.window(o, "early.ndjson", 0, to)), opt: base, assumed: true})
		cut := r.read(0, r.window(o, "late.ndjson", from, end))
		with := base
		with.Initial = o.rulesAt(from)
		seen, any := o.shown(from)
		judge(expectation{name: "begins late, with rules", c: cut, opt: with, assumed: true, loose: true, sure: seen, atMost: any})
		judge(expectation{name: "begins late", c: cut, opt: base, assumed: true, loose: true, sure: seen, atMost: any})
	}

	late := slices.ContainsFunc(o.opt.Faults.Rules, func(f awsapi.FaultRule) bool { return f.Late != (awsapi.Distribution{}) })
	if !late { // what takes effect late is not in the files that are made here
		logs := r.logs(o)
		if !o.external && !o.silent {
			judge(expectation{name: "log", c: r.read(0, logs...), opt: base})
		}
		for _, ids := range []bool{true, false} { // records are of one call by their ids, or by times that may be off
			trail, opt := r.cloudTrail(o, ids), base
			if !ids {
				opt.ClockSkew = time.Second
			}
			join := func(name string, parts ...string) {
				for _, part := range parts {
					// read-your-writes describes after its revoke, as else only the next reconcile does: where describes are recorded, they
					// leave open whose deregistration follows.
					if reports[part] != nil && o.opt.Design.Name != "read-your-writes" {
						wrong = append(wrong, duller(name, reports[name], part, reports[part])...)
					}
				}
			}
			alone, and, log := fmt.Sprintf("CloudTrail %s", opt.ClockSkew), fmt.Sprintf("history and CloudTrail %s", opt.ClockSkew), fmt.Sprintf("log and CloudTrail %s", opt.ClockSkew)
			judge(expectation{name: alone, c: r.read(opt.ClockSkew, trail), opt: opt})
			judge(expectation{name: and, c: r.read(opt.ClockSkew, history, trail), opt: opt})
			join(and, "history", alone)
			judge(expectation{name: log, c: r.read(opt.ClockSkew, append(slices.Clone(logs), trail)...), opt: opt})
			join(log, "log", alone)
		}
	}
	return wrong
}
