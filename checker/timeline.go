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
	key  traces.Instant // where it stands
	op   int32          // index in the group's operations, or -1
	ob   int32          // index in the group's observations, or -1
	keep bool
}

// content is what the replay adds to a row that is shown.
type content struct{ rules, other []string }

// timeline writes the rows, the bars and the needs. Of a long capture it keeps what lies around the windows, the beginning and
// the end, and counts what it leaves out.
func (j *judgement) timeline() {
	ops := j.g.capture.Operations
	lines := make([]line, 0, len(ops)+len(j.g.observations))
	placed := make([]int32, len(ops)) // its place in the order, plus one
	key := traces.Beginning
	for n := range j.r.Order {
		p := &j.r.Order[n]
		key = max(key, p.Earliest)
		if p.Op < 0 || placed[p.Op] > 0 {
			continue
		}
		placed[p.Op] = int32(n + 1)
		lines = append(lines, line{key: key, op: int32(p.Op), ob: -1})
	}
	for i := range ops {
		if placed[i] == 0 {
			lines = append(lines, line{key: ops[i].Call, op: int32(i), ob: -1})
		}
	}
	for i := range j.g.observations {
		lines = append(lines, line{key: j.g.observations[i].Earliest, op: -1, ob: int32(i)})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.key, b.key) })
	at := make([]int32, len(ops))
	for i := range lines {
		if lines[i].op >= 0 {
			at[lines[i].op] = int32(i)
		}
	}
	j.keep(lines, at)
	contents := j.rules(lines, at)
	marks := j.marks(at)
	for i := range lines {
		l := &lines[i]
		if !l.keep {
			j.out.TimelineOmits++
			continue
		}
		row := j.row(l)
		row.Marks, row.Rules, row.Possible = marks[i], contents[i].rules, contents[i].other
		switch {
		case l.op < 0:
			ob := &j.g.observations[l.ob]
			row.At = report.Range{Earliest: ob.Earliest, Latest: ob.Latest}
		case placed[l.op] > 0:
			p := &j.r.Order[placed[l.op]-1]
			row.At = report.Range{Earliest: p.Earliest, Latest: p.Latest}
		default:
			row.At = report.Range{Earliest: ops[l.op].Call, Latest: min(ops[l.op].Return, j.g.capture.To)}
		}
		j.out.Timeline = append(j.out.Timeline, row)
	}
}

// keep chooses the rows that are shown.
func (j *judgement) keep(lines []line, at []int32) {
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
				if op >= 0 {
					around(int(at[op]), 6)
				}
			}
		}
	}
	around(0, left)
}

// rules replays the order and returns, by row that is shown, the managed rules after it. It also notes the bars of all rules.
func (j *judgement) rules(lines []line, at []int32) map[int]content {
	contents := map[int]content{}
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
	current := slices.Clone(j.r.Start())
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
				contents[k] = content{rules: texts(current)}
			}
		}
		last = max(last, upTo-1)
	}
	j.r.Replay(func(k int, before, after orders.State) {
		p := j.r.Order[k]
		when := report.Range{Earliest: p.Earliest, Latest: p.Latest}
		if len(j.out.Bars) < mostBars {
			changed, gone := j.r.Changed(before, after)
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
		if p.Op >= 0 && int(at[p.Op]) > last {
			i := int(at[p.Op])
			fill(i)
			if lines[i].keep && known {
				c := content{rules: texts(after)}
				for _, o := range p.Others {
					c.other = append(c.other, "{"+strings.Join(ruleTexts(j.r.Rules(o, true)), ", ")+"}")
				}
				slices.Sort(c.other)
				c.other = slices.Compact(c.other)
				contents[i] = c
			}
			last = i
		}
		current = append(current[:0], after...)
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
	return contents
}

// mostNeeds bounds the needs in the picture.
const mostNeeds = 100

// needs notes which needs began and ended with a change.
func (j *judgement) needs(open map[property.Reason]report.Range, before, after orders.State, when report.Range, certain bool) {
	if len(j.out.Needs) >= mostNeeds || !j.r.NeedsDiffer(before, after) {
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
func (j *judgement) marks(at []int32) map[int][]string {
	type mark struct {
		row  int
		text string
	}
	var order []mark
	subjects := map[mark][]string{}
	add := func(op int, text, subject string) {
		if op < 0 {
			return
		}
		m := mark{int(at[op]), text}
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
	var row report.Row
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
