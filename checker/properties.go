package checker

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"

	"linearize.example/checker/orders"
	"linearize.example/checker/property"
	"linearize.example/checker/report"
	"linearize.example/traces"
)

// properties fills in the four verdicts.
func (j *judgement) properties() {
	never := report.Property{Name: property.NeverEmpty, Verdict: j.r.NeverEmpty, Windows: j.windows(property.NeverEmpty)}
	covered := report.Property{Name: property.Covered, Verdict: j.r.Covered, Windows: j.windows(property.Covered)}
	tight := report.Property{Name: property.Tight, Verdict: j.r.Tight}
	if j.opt.Need == property.Proven && !j.g.capture.HasBindings {
		// What rests on assumed needs alone is at most possible.
		proven := j.provenOnly()
		soften(&never, proven.NeverEmpty, j, &proven, property.NeverEmpty)
		soften(&covered, proven.Covered, j, &proven, property.Covered)
	}
	repair := j.repairBound(append(slices.Clone(never.Windows), covered.Windows...), max(never.Verdict, covered.Verdict))
	j.reasons(&never, &covered, &tight)
	unknown := j.whyUnknown()
	for _, p := range []*report.Property{&never, &covered, &repair, &tight} {
		if unknown != "" && p.Verdict != report.Violated {
			p.Verdict, p.Vacuous, p.Reason = report.Unknown, false, unknown
		}
	}
	for _, p := range []*report.Property{&never, &covered} {
		kept := p.Windows[:0]
		for _, w := range p.Windows {
			if w.PossibleSeconds < j.opt.MinWindow.Seconds() {
				p.Hidden++
				continue
			}
			kept = append(kept, w)
		}
		p.Windows = kept
	}
	never.Meaning, covered.Meaning = property.ErrNeverEmpty.Error(), property.ErrCovered.Error()
	repair.Meaning, tight.Meaning = property.ErrRepairBound.Error(), property.ErrTight.Error()
	j.out.Properties = []report.Property{never, covered, repair, tight}
}

// provenOnly judges once more, with the ports that nothing proves not needed.
func (j *judgement) provenOnly() property.Result {
	c := j.g.capture
	opt := property.Options{Need: property.Proven, Managed: j.opt.Managed, Contract: j.opt.Contract, Settle: j.opt.Settle, Budget: j.opt.Budget}
	return *property.Judge(j.ctx, &c, opt)
}

// soften turns into possible what the proven needs alone do not violate.
func soften(p *report.Property, proven report.Verdict, j *judgement, r *property.Result, name string) {
	if p.Verdict != report.Violated {
		return
	}
	for i := range p.Windows {
		w := &p.Windows[i]
		some, certain := false, 0.0
		for k := range r.Windows {
			o := &r.Windows[k]
			if o.Property == name && o.Certain && o.Subject == w.Subject && o.Start.Earliest <= endOf(w, j) && w.Start.Earliest <= o.End.Latest {
				some, certain = true, certain+o.CertainLength().Seconds()
			}
		}
		switch {
		case w.Verdict != report.Violated:
		case some:
			w.CertainSeconds = min(w.CertainSeconds, certain)
		default:
			w.Verdict, w.CertainSeconds = report.Possible, 0
			w.Text = strings.TrimPrefix(w.Text+"; nothing in the capture proves that a target needed the rules; --bindings would", "; ")
		}
	}
	if proven != report.Violated {
		p.Verdict = report.Possible
	}
}

func endOf(w *report.Window, j *judgement) traces.Instant {
	if w.End == nil {
		return j.g.capture.To
	}
	return w.End.Latest
}

// whyUnknown says why nothing can be said to hold, or nothing.
func (j *judgement) whyUnknown() string {
	switch {
	case j.r.Stuck != nil:
		return "no order of the operations gives their results, so that the capture is incomplete or a call is missing"
	case errors.Is(j.r.Err, orders.ErrBudget):
		return "too many calls are open at once to try all their orders within the memory allowed"
	case j.r.Err != nil:
		return "the time ran out"
	case len(j.r.Unclear) > 0:
		return fmt.Sprintf("the record of %s does not tell what the call did", j.g.capture.Operations[j.r.Unclear[0]].ID)
	}
	return ""
}

// windows turns a property's windows into those of the report.
func (j *judgement) windows(name string) []report.Window {
	var list []report.Window
	for i := range j.r.Windows {
		w := &j.r.Windows[i]
		if w.Property != name {
			continue
		}
		out := report.Window{Verdict: report.Possible, Start: w.Start, Subject: w.Subject, OpenedBy: j.refOrNil(w.Opener),
			CertainSeconds: w.CertainLength().Seconds(), PossibleSeconds: w.PossibleLength().Seconds()}
		if w.Certain {
			out.Verdict = report.Violated
		}
		if w.Ended {
			end := w.End
			out.End, out.ClosedBy = &end, j.refOrNil(w.Closer)
		}
		out.From, out.To = j.nominalAt(w.Start, w.Opener), j.nominalAt(w.End, w.Closer)
		if !w.Certain {
			out.From, out.To = w.Start.Earliest, w.End.Latest
		}
		out.Text = j.windowText(w)
		list = append(list, out)
	}
	return list
}

// windowText says what else is to be said of a window.
func (j *judgement) windowText(w *property.Window) string {
	var parts []string
	start, end := j.nominalAt(w.Start, w.Opener), j.nominalAt(w.End, w.Closer)
	length := max(0, end.Sub(start)).Seconds()
	switch {
	case !w.Certain:
		parts = append(parts, fmt.Sprintf("in some orders only, between %s and %s", w.Start.Earliest, w.End.Latest))
	case w.Ended:
		parts = append(parts, fmt.Sprintf("about %s, from %s to %s", report.Duration(length), start, end))
	default:
		parts = append(parts, fmt.Sprintf("at least %s, from %s to where the capture ends", report.Duration(w.CertainLength().Seconds()), start))
	}
	if w.Opener < 0 {
		parts = append(parts, "open when the capture begins")
	}
	if w.Certain && w.Ended && w.Open {
		parts = append(parts, "or still open when the capture ends")
	}
	for _, o := range w.Others {
		parts = append(parts, "or opened by "+j.g.capture.Operations[o].ID)
	}
	if w.CoveredByOthers && w.Property == property.NeverEmpty {
		parts = append(parts, "no rule was managed, but every needed port was inside of a rule of somebody else: not an outage")
	}
	if restart := j.restart(w); restart != "" {
		parts = append(parts, restart)
	}
	return strings.Join(parts, "; ")
}

// restart says when a controller last started inside of the window, and how long the repair took from there.
func (j *judgement) restart(w *property.Window) string {
	at := j.lastStart(w.Start.Earliest, w.End.Latest)
	if at == traces.Beginning || !w.Ended {
		return ""
	}
	return fmt.Sprintf("repaired %s after the controller's start at %s", report.Duration(j.nominalAt(w.End, w.Closer).Sub(at).Seconds()), at)
}

// lastStart is the last sign of a controller's start between two instants: a start or a leader election.
func (j *judgement) lastStart(from, to traces.Instant) traces.Instant {
	last := traces.Beginning
	for _, ob := range j.g.observations {
		if ob.Earliest < from || ob.Latest > to {
			continue
		}
		switch ob.Kind {
		case traces.Started, traces.LeaderElected:
			last = max(last, nominal(report.Range{Earliest: ob.Earliest, Latest: ob.Latest}))
		}
	}
	return last
}

// nominalAt is the instant that people write for a range that comes from an operation: the source's own time, where it
// has one inside of the range.
func (j *judgement) nominalAt(r report.Range, op int) traces.Instant {
	if op >= 0 {
		if at := j.g.capture.Operations[op].Stamp; at != 0 && r.Earliest <= at && at <= r.Latest {
			return at
		}
	}
	return nominal(r)
}

// nominal is the instant that people write for a range: the middle, and of a range of a second or more its whole second.
func nominal(r report.Range) traces.Instant {
	if r.Earliest == traces.Beginning || r.Latest == traces.Forever {
		return r.Earliest
	}
	middle := r.Earliest.Add(r.Latest.Sub(r.Earliest) / 2)
	if r.Latest.Sub(r.Earliest) >= time.Second-time.Nanosecond {
		return traces.At(middle.Time().Truncate(time.Second))
	}
	return middle
}

// reasons says why each verdict is what it is, and which are vacuous.
func (j *judgement) reasons(never, covered, tight *report.Property) {
	switch {
	case never.Verdict == report.Violated:
		never.Reason = fmt.Sprintf("no managed rule while ports were needed, in every order (%s)", countOf(len(never.Windows), "window"))
	case never.Verdict == report.Possible:
		never.Reason = "in some orders no managed rule was left while ports were needed, in others one was"
	case !j.r.Managed:
		never.Vacuous, never.Reason = true, "the capture shows no managed rule"
	case j.r.Mutations == 0:
		never.Vacuous, never.Reason = true, "the capture has no change of a rule"
	case j.r.Revokes == 0:
		never.Vacuous, never.Reason = true, "the capture has no revoke, so that it could not have shown a violation"
	case !j.r.Needed:
		never.Vacuous, never.Reason = true, "nobody is known to have needed a rule"
	default:
		never.Reason = fmt.Sprintf("a managed rule was there whenever a port was needed, in every order, through %s", countOf(j.r.Revokes, "revoke"))
	}
	subjects := map[string]bool{}
	for _, w := range covered.Windows {
		subjects[w.Subject] = true
	}
	switch {
	case covered.Verdict == report.Violated:
		covered.Reason = fmt.Sprintf("%s outside of every rule while needed, in every order", countOf(len(subjects), "port"))
	case covered.Verdict == report.Possible:
		covered.Reason = fmt.Sprintf("in some orders %s outside of every rule while needed", countOf(len(subjects), "port"))
	case !j.r.Needed:
		covered.Vacuous, covered.Reason = true, "nobody is known to have needed a port"
	case j.r.Revokes == 0 && j.r.Mutations == 0:
		covered.Vacuous, covered.Reason = true, "the capture has no change of a rule"
	default:
		covered.Reason = "every needed port was inside of a rule, in every order"
	}
	left := strings.Join(ruleTexts(j.r.Leftovers), ", ")
	switch {
	case tight.Verdict == report.Violated:
		tight.Reason = "left at the end, and nobody wants it: " + left
	case tight.Verdict == report.Possible && !j.r.Overdue:
		tight.Reason = fmt.Sprintf("nobody wants %s, and the capture ends before a revoke had to follow", left)
	case tight.Verdict == report.Possible:
		tight.Reason = "in some orders left at the end, and nobody wants it: " + left
	case !j.r.Managed:
		tight.Vacuous, tight.Reason = true, "the capture shows no managed rule"
	case j.r.Mutations == 0:
		tight.Vacuous, tight.Reason = true, "the capture has no change of a rule"
	default:
		tight.Reason = "no managed rule is left at the end that nobody wants"
	}
}

// countOf counts in words; the plural is what with an s, unless it is given.
func countOf(n int, what string, plural ...string) string {
	switch {
	case n == 1:
		return "1 " + what
	case len(plural) > 0:
		return fmt.Sprintf("%d %s", n, plural[0])
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// repairBound judges the lengths of the windows.
func (j *judgement) repairBound(windows []report.Window, worst report.Verdict) report.Property {
	bound := j.opt.RepairBound.Seconds()
	p := report.Property{Name: property.RepairBound, Verdict: report.Holds, BoundSeconds: &bound}
	if len(windows) == 0 {
		p.Vacuous, p.Reason = true, "there was nothing to repair"
		return p
	}
	judge := func(bound float64) report.Verdict {
		verdict := report.Holds
		for _, w := range windows {
			switch {
			case w.Verdict == report.Violated && w.CertainSeconds > bound:
				return report.Violated
			case w.PossibleSeconds > bound || w.End == nil:
				verdict = report.Possible
			}
		}
		return verdict
	}
	p.Verdict = judge(bound)
	var lengths []float64
	s := report.Statistics{}
	longest, late := 0.0, 0
	counted := slices.DeleteFunc(slices.Clone(windows), func(w report.Window) bool { return w.Verdict != report.Violated })
	if len(counted) == 0 {
		counted = windows // there are only possible ones
	}
	var cut []float64
	for _, w := range counted {
		length := w.PossibleSeconds
		if w.End != nil {
			length = max(0, w.To.Sub(w.From)).Seconds()
			lengths = append(lengths, length)
		} else {
			s.Censored++
			cut = append(cut, w.CertainSeconds)
		}
		longest = max(longest, length)
		if w.CertainSeconds > bound {
			late++
		}
	}
	s.Count = len(counted)
	if len(lengths) == 0 {
		lengths = cut // all were cut off: the lengths are lower bounds
	}
	if len(lengths) > 0 {
		slices.Sort(lengths)
		quantile := func(q float64) float64 { return stat.Quantile(q, stat.Empirical, lengths, nil) }
		s.Quantiles = report.Quantiles{Median: quantile(0.5), P90: quantile(0.9), P99: quantile(0.99), Max: lengths[len(lengths)-1]}
	}
	p.Statistics, p.WorstSeconds = &s, &longest
	switch {
	case p.Verdict == report.Violated:
		p.Reason = fmt.Sprintf("%d of %s took longer than %s", late, countOf(len(counted), "repair"), report.Duration(bound))
	case p.Verdict == report.Possible && s.Censored > 0:
		p.Reason = fmt.Sprintf("the capture ends before %s", countOf(s.Censored, "repair"))
	case p.Verdict == report.Possible:
		p.Reason = "some order of the calls, or some time of a repair, exceeds the bound"
	default:
		p.Reason = fmt.Sprintf("%s within %s", countOf(len(counted), "repair"), report.Duration(bound))
	}
	p.Promise = j.promise(windows, judge)
	return p
}

// promise compares the windows with what the release can promise.
func (j *judgement) promise(windows []report.Window, judge func(float64) report.Verdict) *report.Promise {
	var v property.Version
	for i := range j.g.capture.Operations {
		if r := j.p.releases[j.g.capture.Operations[i].Process]; r.Controller && v.Less(r.Version) {
			v = r.Version
		}
	}
	if v == (property.Version{}) {
		return nil
	}
	promised := v.Promise()
	text := fmt.Sprintf("from a start of the controller %s, without one %s, by its own timers", report.Duration(promised.Restarted.Seconds()), report.Duration(promised.Running.Seconds()))
	out := &report.Promise{Release: v.String(), BoundSeconds: promised.Running.Seconds()}
	first, last := traces.Forever, traces.Beginning
	for _, w := range windows {
		first = min(first, w.Start.Earliest)
		last = max(last, endOf(&w, j))
	}
	if start := j.lastStart(first, last); start != traces.Beginning {
		// The promise that matters counts from the start: what was open before it has until then.
		out.BoundSeconds = promised.Restarted.Seconds()
		verdict := report.Holds
		var took float64
		for _, w := range windows {
			end := endOf(&w, j)
			if end < start {
				continue
			}
			from := max(start, w.From)
			length := end.Sub(from).Seconds()
			if w.End != nil {
				length = w.To.Sub(from).Seconds()
			}
			took = math.Max(took, length)
			switch {
			case length > out.BoundSeconds && w.Verdict == report.Violated:
				verdict = report.Violated
			case length > out.BoundSeconds || w.End == nil:
				verdict = max(verdict, report.Possible)
			}
		}
		out.Verdict = verdict
		out.Text = fmt.Sprintf("%s; the last repair took %s from the start at %s", text, report.Duration(took), start)
		return out
	}
	out.Verdict, out.Text = judge(out.BoundSeconds), text
	return out
}

// summarize joins the groups' verdicts: the worst of them.
func summarize(r *report.Report, p *prepared) {
	rank := map[report.Verdict]int{report.Holds: 0, report.Possible: 1, report.Unknown: 2, report.Violated: 3}
	var worst *report.Property
	var where *report.Group
	all := true
	vacuous := map[string]bool{}
	for g := range r.Groups {
		for i := range r.Groups[g].Properties {
			property := &r.Groups[g].Properties[i]
			all = all && property.Vacuous
			if property.Vacuous {
				vacuous[property.Name] = true
			}
			if worst == nil || rank[property.Verdict] > rank[worst.Verdict] {
				worst, where = property, &r.Groups[g]
			}
		}
	}
	switch {
	case worst == nil:
		r.Verdict, r.Summary = report.Unknown, "the capture has no call on a security group's rules"
		if n := p.nameless(); n > 0 {
			r.Summary = fmt.Sprintf("%s that the capture has on security groups' rules do not tell on which group (their requestParameters are missing)", countOf(n, "call"))
		}
		return
	case worst.Verdict == report.Holds && all:
		r.Summary = "every property holds, but vacuously: the capture could not have shown a violation"
	case worst.Verdict == report.Holds:
		r.Summary = "every property holds, in every order that the capture allows"
		if len(vacuous) > 0 {
			r.Summary += "; " + strings.Join(slices.Sorted(maps.Keys(vacuous)), ", ") + " but vacuously"
		}
	case worst.Verdict == report.Unknown:
		r.Summary = where.GroupID + ": " + worst.Reason
	default:
		r.Summary = headline(where, worst)
	}
	r.Verdict = worst.Verdict
	rejected := 0
	for _, in := range r.Inputs {
		rejected += in.Rejected
	}
	if rejected > 0 && r.Verdict == report.Holds {
		r.Summary += fmt.Sprintf("; but %s could not be used and may tell otherwise", countOf(rejected, "record"))
	}
	if p.unjudged > 0 {
		r.Summary += fmt.Sprintf(" (%s without managed rules left out; --sg names them)", countOf(p.unjudged, "group"))
	}
}

// headline says the most important thing of a property that is violated or may be.
func headline(g *report.Group, p *report.Property) string {
	at := slices.IndexFunc(p.Windows, func(w report.Window) bool { return w.Verdict == p.Verdict })
	if at < 0 {
		return fmt.Sprintf("%s: %s %s: %s", g.GroupID, p.Name, p.Verdict, p.Reason)
	}
	w := p.Windows[at]
	text := fmt.Sprintf("%s: %s %s", g.GroupID, p.Name, p.Verdict)
	if w.Subject != "" {
		text += " for " + w.Subject
	}
	if w.Verdict == report.Possible {
		text += fmt.Sprintf(" between %s and %s (up to %s)", w.From, w.To, report.Duration(w.PossibleSeconds))
		return text + openedBy(w)
	}
	text += fmt.Sprintf(" from %s", w.From)
	if w.End != nil {
		text += fmt.Sprintf(" to %s (about %s)", w.To, report.Duration(max(0, w.To.Sub(w.From)).Seconds()))
	} else {
		text += " to the end of the capture"
	}
	return text + openedBy(w)
}

func openedBy(w report.Window) string {
	if w.OpenedBy == nil {
		return ""
	}
	text := ", opened by " + w.OpenedBy.Summary
	if w.OpenedBy.Process != "" {
		text += " of " + w.OpenedBy.Process
	}
	return text
}
