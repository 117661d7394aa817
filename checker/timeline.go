package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"linearize.example/checker/orders"
	"linearize.example/checker/property"

	"linearize.example/checker/report"
	"linearize.example/traces"
)

// line is a row of the timeline before it is written out.
type line struct {
	key   traces.Instant // where it stands
	op    int            // index in the group's operations, or -1
	ob    int            // index in the group's observations, or -1
	at    report.Range
	rules []string
	other []string
	keep  bool
}

// timeline writes the rows, the bars and the needs. Of a long capture it keeps what lies around the windows, the beginning and
// the end, and counts what it leaves out.
func (j *judgement) timeline() {
	ops := j.g.capture.Operations
	lines := make([]line, 0, len(ops)+len(j.g.observations))
	placed := make([]bool, len(ops))
	key := traces.Beginning
	for _, p := range j.r.Order {
		key = max(key, p.Earliest)
		if p.Op < 0 || placed[p.Op] {
			continue
		}
		placed[p.Op] = true
		lines = append(lines, line{key: key, op: p.Op, ob: -1, at: report.Range{Earliest: p.Earliest, Latest: p.Latest}})
	}
	for i := range ops {
		if !placed[i] {
			lines = append(lines, line{key: ops[i].Call, op: i, ob: -1, at: report.Range{Earliest: ops[i].Call, Latest: min(ops[i].Return, j.g.capture.To)}})
		}
	}
	for i, ob := range j.g.observations {
		lines = append(lines, line{key: ob.Earliest, op: -1, ob: i, at: report.Range{Earliest: ob.Earliest, Latest: ob.Latest}})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.key, b.key) })
	at := make([]int, len(ops))
	for i := range at {
		at[i] = -1
	}
	for i := range lines {
		if lines[i].op >= 0 {
			at[lines[i].op] = i
		}
	}
	j.keep(lines, at)
	j.rules(lines, at)
	marks := j.marks(at)
	for i := range lines {
		if !lines[i].keep {
			j.out.TimelineOmits++
			continue
		}
		row := j.row(&lines[i])
		row.Marks = marks[i]
		j.out.Timeline = append(j.out.Timeline, row)
	}
}

// keep chooses the rows that are shown.
func (j *judgement) keep(lines []line, at []int) {
	most := j.opt.Rows
	if most <= 0 || len(lines) <= most {
		for i := range lines {
			lines[i].keep = true
		}
		return
	}
	left := most
	around := func(i, radius int) {
		for k := max(0, i-radius); k < min(len(lines), i+radius+1) && left > 0; k++ {
			if !lines[k].keep {
				lines[k].keep = true
				left--
			}
		}
	}
	edge := max(1, most/16)
	around(0, edge)
	around(len(lines)-1, edge)
	for _, certain := range []bool{true, false} {
		for i := range j.r.Windows {
			w := &j.r.Windows[i]
			if w.Certain != certain {
				continue
			}
			for _, op := range []int{w.Opener, w.Closer} {
				if op >= 0 && at[op] >= 0 {
					around(at[op], 6)
				}
			}
		}
	}
	around(0, left)
}

// rules replays the order and notes the managed rules after each row that is shown, and the bars of all rules.
func (j *judgement) rules(lines []line, at []int) {
	type open struct {
		from report.Range
		p    traces.Permission
	}
	bars := map[traces.Permission]open{}
	const mostBars = 1000
	started := func(p traces.Permission, from report.Range) { bars[p] = open{from, p} }
	begin := report.Range{Earliest: j.g.capture.From, Latest: j.g.capture.From}
	if s := j.r.Start(); s != nil {
		for _, p := range j.r.Rules(s, false) {
			started(p, begin)
		}
	}
	needs := map[property.Reason]report.Range{}
	if s := j.r.Start(); s != nil {
		for _, n := range j.r.Reasons(s) {
			needs[n] = begin
		}
	}
	current := j.r.Start()
	last := -1
	known := j.r.Stuck == nil && j.r.Err == nil
	texts := func(s orders.State) []string {
		list := ruleTexts(j.r.Rules(s, true))
		if list == nil {
			list = []string{}
		}
		return list
	}
	// Between two changes the rows of describes and observations have the rules of the change before them.
	fill := func(upTo int) {
		for k := last + 1; k < upTo; k++ {
			if lines[k].keep && known && current != nil {
				lines[k].rules = texts(current)
			}
		}
		last = max(last, upTo-1)
	}
	j.r.Replay(func(k int, before, after orders.State) {
		p := j.r.Order[k]
		when := report.Range{Earliest: p.Earliest, Latest: p.Latest}
		if changed, gone := j.r.Changed(before, after); len(changed)+len(gone) > 0 && len(j.out.Bars) < mostBars {
			for _, perm := range gone {
				if b, ok := bars[perm]; ok {
					end := when
					j.out.Bars = append(j.out.Bars, report.Bar{Rule: perm.Rule.String(), Managed: perm.Description != "", From: b.from, To: &end, Certain: len(p.Others) == 0})
					delete(bars, perm)
				}
			}
			for _, perm := range changed {
				started(perm, when)
			}
		}
		j.needs(needs, before, after, when, len(p.Others) == 0)
		if p.Op < 0 || at[p.Op] < 0 || at[p.Op] <= last {
			current = slices.Clone(after)
			return
		}
		i := at[p.Op]
		fill(i)
		if lines[i].keep && known {
			lines[i].rules = texts(after)
			for _, o := range p.Others {
				lines[i].other = append(lines[i].other, "{"+strings.Join(ruleTexts(j.r.Rules(o, true)), ", ")+"}")
			}
			slices.Sort(lines[i].other)
			lines[i].other = slices.Compact(lines[i].other)
		}
		last = i
		current = append(current[:0:0], after...)
	})
	fill(len(lines))
	for n, from := range needs {
		if len(j.out.Needs) < mostNeeds {
			j.out.Needs = append(j.out.Needs, report.Need{Port: n.Port, Why: n.Why, From: from, Certain: true})
		}
	}
	slices.SortFunc(j.out.Needs, func(a, b report.Need) int {
		return cmp.Or(cmp.Compare(a.From.Earliest, b.From.Earliest), strings.Compare(a.Port, b.Port), strings.Compare(a.Why, b.Why), cmp.Compare(a.From.Latest, b.From.Latest))
	})
	for _, b := range bars {
		if len(j.out.Bars) < mostBars {
			j.out.Bars = append(j.out.Bars, report.Bar{Rule: b.p.Rule.String(), Managed: b.p.Description != "", From: b.from, Certain: true})
		}
	}
	slices.SortFunc(j.out.Bars, func(a, b report.Bar) int {
		return cmp.Or(cmp.Compare(a.From.Earliest, b.From.Earliest), strings.Compare(a.Rule, b.Rule), cmp.Compare(a.From.Latest, b.From.Latest))
	})
}

// mostNeeds bounds the needs in the picture.
const mostNeeds = 100

// needs notes which needs began and ended with a change.
func (j *judgement) needs(open map[property.Reason]report.Range, before, after orders.State, when report.Range, certain bool) {
	if !j.r.NeedsDiffer(before, after) {
		return
	}
	now := j.r.Reasons(after)
	for _, n := range j.r.Reasons(before) {
		if slices.Contains(now, n) {
			continue
		}
		if from, known := open[n]; known && len(j.out.Needs) < mostNeeds {
			end := when
			j.out.Needs = append(j.out.Needs, report.Need{Port: n.Port, Why: n.Why, From: from, To: &end, Certain: certain})
		}
		delete(open, n)
	}
	for _, n := range now {
		if _, known := open[n]; !known {
			open[n] = when
		}
	}
}

// marks says at which rows windows begin and end.
func (j *judgement) marks(at []int) map[int][]string {
	type mark struct {
		row  int
		text string
	}
	var order []mark
	subjects := map[mark][]string{}
	add := func(op int, text, subject string) {
		if op < 0 || at[op] < 0 {
			return
		}
		m := mark{at[op], text}
		if subjects[m] == nil {
			order = append(order, m)
		}
		subjects[m] = append(subjects[m], subject)
	}
	for i := range j.r.Windows {
		w := &j.r.Windows[i]
		if w.PossibleLength() < j.opt.MinWindow {
			continue
		}
		verdict := report.Possible
		if w.Certain {
			verdict = report.Violated
		}
		add(w.Opener, fmt.Sprintf("%s %s from here", w.Property, verdict), w.Subject)
		if w.Ended {
			add(w.Closer, fmt.Sprintf("%s %s until here", w.Property, verdict), w.Subject)
		}
	}
	marks := map[int][]string{}
	for _, m := range order {
		text := m.text
		if list := slices.DeleteFunc(subjects[m], func(s string) bool { return s == "" }); len(list) > 0 {
			text += " for " + strings.Join(slices.Compact(list), ", ")
		}
		marks[m.row] = append(marks[m.row], text)
	}
	return marks
}

// row writes out one line.
func (j *judgement) row(l *line) report.Row {
	row := report.Row{At: l.at, Rules: l.rules, Possible: l.other}
	if l.op >= 0 {
		op := &j.g.capture.Operations[l.op]
		row.Kind, row.ID, row.Process, row.Summary = "call", op.ID, op.Process, callSummary(op)
		row.Sources = j.sources(op.Sources)
		switch op.Outcome {
		case traces.Succeeded:
			row.Result = "ok"
			if len(op.Unknown) > 0 {
				row.Result = fmt.Sprintf("ok, %d not found", len(op.Unknown))
			}
			if op.Unclear {
				row.Result = "ok, effect not recorded"
			}
		case traces.Failed:
			row.Result = op.Error
		default:
			row.Result = "no answer"
		}
		if op.View != nil {
			row.Result = "saw {" + strings.Join(ruleTexts(shown(op.View)), ", ") + "}"
		}
		return row
	}
	ob := &j.g.observations[l.ob]
	row.Kind, row.ID, row.Process, row.Summary = "observation", ob.ID, ob.Process, observationSummary(ob)
	row.Sources = j.sources(ob.Sources)
	return row
}

func shown(view []traces.Permission) []traces.Permission {
	const most = 12
	if len(view) > most {
		return view[:most]
	}
	return view
}

// observationSummary says what was observed.
func observationSummary(ob *traces.Observation) string {
	words := map[traces.ObservationKind]string{
		traces.Started: "controller started", traces.LeaderElected: "elected leader", traces.LeaderLost: "lost the lease",
		traces.Skipped: "skipped", traces.Deferred: "deferred", traces.CheckpointReset: "checkpoint reset of",
		traces.Reconciled: "reconciled", traces.Requeued: "requeued", traces.ReconcileFailed: "reconcile failed of",
		traces.Retrying: "retrying without the cache", traces.Wanted: "wanted",
	}[ob.Kind]
	if words == "" || len(ob.Sources) == 0 && ob.Text != "" { // what was inferred says so itself
		words = cmp.Or(ob.Text, string(ob.Kind))
	}
	if ob.TGB != "" {
		words += " " + ob.TGB
	}
	if len(ob.Permissions) > 0 {
		words += " " + strings.Join(ruleTexts(ob.Permissions), ", ")
	}
	if ob.Error != "" {
		words += ": " + ob.Error
	}
	return words
}
