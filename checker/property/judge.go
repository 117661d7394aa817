package property

import (
	"context"
	"errors"
	"slices"
	"time"

	"linearize.example/checker/orders"
	"linearize.example/checker/report"
	"linearize.example/traces"
)

// Result is what the orders of one group's operations say.
type Result struct {
	// NeverEmpty, Covered and Tight are the verdicts; Windows belong to the first two.
	NeverEmpty, Covered, Tight report.Verdict
	Windows                    []Window
	// Leftovers are the managed rules that nobody wants at the end, in some or every order.
	Leftovers []traces.Permission
	// Overdue: a revoke of some leftover had to follow before the capture ends.
	Overdue bool
	// Order is one explanation: the operations in the order in which they took effect. Replay gives the rules.
	Order []Placed
	// Cuts are some of the instants at which the capture can be cut in two, in their order.
	Cuts []Cut
	// Stuck is set when no order explains the results; then all verdicts are Unknown.
	Stuck *Stuck
	// Err is why the verdicts are unknown otherwise: orders.ErrBudget or the context's error.
	Err error
	// Lenient: the results can only be explained when revokes of absent rules succeed, as in a default VPC.
	Lenient bool
	// Mutations counts the operations that changed rules, Revokes those that removed some; Needed tells whether any
	// explanation needed a port at any time.
	Mutations, Revokes int
	Needed             bool
	// Managed tells whether any record shows a managed rule.
	Managed bool
	// Assumptions and Settled are for people: what the verdict rests on, and what narrowed the orders down.
	Assumptions []string
	Settled     map[string]int
	// Unclear are operations (indices in Capture.Operations) of which nobody knows what they did.
	Unclear []int
	// Viewed tells that a describe showed the rules before any mutation; ViewedRules counts them.
	Viewed      bool
	ViewedRules int

	problem *problem
	start   orders.State
	starts  int // explanations begin in so many states
}

// Window is a time in which never-empty or covered was violated, or may have been.
type Window struct {
	Property string
	// Subject is the port, for covered: "tcp 8025".
	Subject string
	// Certain: every explanation has the window.
	Certain    bool
	Start, End report.Range
	// Open: the capture ended first, in some explanation at least; Ended: in some it ended before that.
	Open, Ended bool
	// Opener and Closer index Capture.Operations; -1 for none. Others may have opened it instead.
	Opener, Closer int
	Others         []int
	// Covered: every needed port was inside a rule of somebody else all the time.
	CoveredByOthers bool

	subject   int
	stale     bool
	closerMay bool // nobody knows whether the closer took effect
}

// CertainLength is the least time that the window lasted, PossibleLength the most; `to` is the capture's end.
func (w *Window) CertainLength() time.Duration {
	if !w.Certain {
		return 0
	}
	return max(0, w.End.Earliest.Sub(w.Start.Latest))
}

// PossibleLength is the most that the window can have lasted before it ended or the capture did.
func (w *Window) PossibleLength() time.Duration { return max(0, w.End.Latest.Sub(w.Start.Earliest)) }

// Placed is an operation in an explanation.
type Placed struct {
	// Op indexes Capture.Operations; -1 for a change of needs that is no call.
	Op int
	// Earliest and Latest bound the instant at which it took effect, in this place of the order.
	Earliest, Latest traces.Instant
	// Others are states that other explanations have after the operation.
	Others []orders.State

	internal int32
}

// Stuck is where no explanation survives.
type Stuck struct {
	Op        int // indexes Capture.Operations
	Explained int
	States    [][]traces.Permission
	Refusals  []string
}

// Judge decides never-empty, covered and tight for one group. The context bounds its time.
func Judge(ctx context.Context, c *Capture, opt Options) *Result {
	r := judgeOnce(ctx, c, opt, true)
	// The controller is taken to order calls on targets and on rules as one reconcile does, unless that explains nothing;
	// rules that nothing proves to have been there to have been absent, unless that explains nothing; and revokes to have
	// found what they named, unless that explains nothing either (and no answer says otherwise).
	for _, more := range []Options{{freely: true}, {anyStart: true}, {anyStart: true, freely: true},
		{anyStart: true, Lenient: true}, {anyStart: true, Lenient: true, freely: true}} {
		if r.Stuck == nil || opt.Lenient && more.Lenient {
			break
		}
		if more.Lenient && r.problem.strict() {
			break
		}
		if more.freely && len(r.problem.targetCalls) == 0 || more.anyStart && !more.Lenient && len(r.problem.unknown) == 0 {
			continue // that is what was tried already
		}
		again := opt
		again.anyStart, again.freely, again.Lenient = more.anyStart, more.freely, opt.Lenient || more.Lenient
		if next := judgeOnce(ctx, c, again, true); next.Stuck == nil {
			next.Lenient = again.Lenient
			r, opt = next, again
		}
	}
	if r.problem.optional && r.Stuck == nil && r.Err == nil {
		r.combine(judgeOnce(ctx, c, opt, false))
	}
	r.doubt(c)
	return r
}

// strict reports whether some revoke was answered with InvalidPermission.NotFound, which no group of a default VPC does
// (AWS: API_RevokeSecurityGroupIngress).
func (p *problem) strict() bool {
	for i := range p.c.Operations {
		if op := &p.c.Operations[i]; op.Op == traces.RevokeSecurityGroupIngress && op.Error == "InvalidPermission.NotFound" {
			return true
		}
	}
	return false
}

// doubt takes back what calls of unknown effect may have prevented: from its call on, such a call may have granted what was
// missing, or ended a need; and it may have removed what is left, or begun a need of it.
func (r *Result) doubt(c *Capture) {
	from := traces.Forever
	for _, i := range r.Unclear {
		if op := c.Operations[i].Op; op != traces.AuthorizeSecurityGroupIngress && op != traces.DeregisterTargets && r.Tight != report.Holds {
			r.Tight = report.Unknown
		}
		switch c.Operations[i].Op {
		case traces.RevokeSecurityGroupIngress, traces.RegisterTargets, traces.CreateSecurityGroup, traces.DeleteSecurityGroup:
		default:
			from = min(from, c.Operations[i].Call)
		}
	}
	if from == traces.Forever {
		return
	}
	certain := map[string]bool{}
	for i := range r.Windows {
		w := &r.Windows[i]
		w.Certain = w.Certain && w.Start.Latest < from
		w.End.Earliest = min(w.End.Earliest, max(from, w.Start.Latest))
		certain[w.Property] = certain[w.Property] || w.Certain
	}
	if r.NeverEmpty == report.Violated && !certain[NeverEmpty] {
		r.NeverEmpty = report.Unknown
	}
	if r.Covered == report.Violated && !certain[Covered] {
		r.Covered = report.Unknown
	}
}

// combine joins the two questions about operations without an answer: r says what can be violated, best what must be.
func (r *Result) combine(best *Result) {
	if best.Err != nil || best.Stuck != nil {
		r.Err = errors.Join(best.Err)
		if best.Stuck != nil {
			r.Stuck = best.Stuck
		}
		r.NeverEmpty, r.Covered, r.Tight = report.Unknown, report.Unknown, report.Unknown
		return
	}
	join := func(worst, best report.Verdict) report.Verdict {
		if worst == report.Violated && best != report.Violated {
			return report.Possible
		}
		return worst
	}
	r.NeverEmpty = join(r.NeverEmpty, best.NeverEmpty)
	r.Covered = join(r.Covered, best.Covered)
	if r.Tight != best.Tight {
		r.Tight = report.Possible
		r.Leftovers = append(r.Leftovers, best.Leftovers...)
	}
	for i := range r.Windows {
		w := &r.Windows[i]
		n := slices.IndexFunc(best.Windows, func(o Window) bool {
			return o.Property == w.Property && o.Subject == w.Subject && o.Certain && o.Opener == w.Opener
		})
		if n < 0 {
			w.Certain = false
			continue
		}
		o := &best.Windows[n]
		w.Start.Latest = max(w.Start.Latest, o.Start.Latest)
		w.End.Earliest = min(w.End.Earliest, o.End.Earliest)
		w.Ended = w.Ended || o.Ended
		if w.Closer < 0 {
			w.Closer = o.Closer
		}
	}
}

// judgeOnce runs the search once.
func judgeOnce(ctx context.Context, c *Capture, opt Options, worst bool) *Result {
	p := build(c, opt, worst)
	j := judge{p: p, r: &Result{problem: p, Assumptions: p.assumptions, Settled: p.settled, Unclear: p.unclear,
		NeverEmpty: report.Holds, Covered: report.Holds, Tight: report.Holds,
		Viewed: p.viewed > 0, ViewedRules: max(0, p.viewed-1)}}
	for r := range p.u.rules {
		j.r.Managed = j.r.Managed || p.u.isManagedSomewhere(r)
	}
	for i := range p.effects {
		e := p.effects[i]
		if p.source[i] >= 0 && e.result == changed && e.kind != none && e.kind != turn {
			j.r.Mutations++
			if e.kind != grant {
				j.r.Revokes++
			}
		}
	}
	j.subjects()
	j.r.Order = make([]Placed, 0, len(p.ops))
	var stuck *orders.Stuck
	var err error
	if !p.optional && p.isBusy() {
		// Whether there is any order takes less to tell than what all of them say.
		err = orders.Explore(ctx, p.rulesAlone(), opt.Budget, j.blockOfRules)
	}
	if err == nil {
		j.restart()
		err = j.explore(ctx)
	}
	switch {
	case errors.As(err, &stuck):
		j.r.Stuck = p.explain(stuck)
	case err != nil:
		j.r.Err = err
	}
	if err != nil {
		j.r.NeverEmpty, j.r.Covered, j.r.Tight = report.Unknown, report.Unknown, report.Unknown
	}
	j.r.Windows = joinAlternatives(slices.DeleteFunc(j.windows, func(w Window) bool { return w.stale }))
	slices.SortStableFunc(j.r.Windows, func(a, b Window) int {
		switch {
		case a.Start.Earliest != b.Start.Earliest:
			return int(max(-1, min(1, a.Start.Earliest.Sub(b.Start.Earliest))))
		}
		return a.subject - b.subject
	})
	return j.r
}

// joinAlternatives makes one window of windows of one subject that only some explanations have and that overlap in time:
// they are alternatives to each other.
func joinAlternatives(windows []Window) []Window {
	last := map[int]int{} // subject → its last window that is not certain
	var joined []Window
	for _, w := range windows {
		i, known := last[w.subject]
		if w.Certain || !known || joined[i].End.Latest < w.Start.Earliest {
			if !w.Certain {
				last[w.subject] = len(joined)
			}
			joined = append(joined, w)
			continue
		}
		a := &joined[i]
		for _, op := range append([]int{w.Opener}, w.Others...) {
			a.addOpener(op, false)
		}
		if w.Ended && (!a.Ended || w.End.Latest > a.End.Latest) {
			a.Closer = w.Closer
		}
		a.Start = report.Range{Earliest: min(a.Start.Earliest, w.Start.Earliest), Latest: max(a.Start.Latest, w.Start.Latest)}
		a.End = report.Range{Earliest: min(a.End.Earliest, w.End.Earliest), Latest: max(a.End.Latest, w.End.Latest)}
		a.Open, a.Ended = a.Open || w.Open, a.Ended || w.Ended
		a.CoveredByOthers = a.CoveredByOthers && w.CoveredByOthers
	}
	return joined
}

// explain says in words why the search is stuck.
func (p *problem) explain(s *orders.Stuck) *Stuck {
	out := &Stuck{Op: -1, Explained: s.Explained}
	if s.Op >= 0 {
		out.Op = p.source[s.Op]
	}
	for _, state := range s.States {
		out.States = append(out.States, p.u.describe(state, false))
		for _, op := range s.Refused {
			if out.Op >= 0 && op != s.Op {
				continue
			}
			out.Refusals = append(out.Refusals, p.refusal(op, state))
		}
	}
	return out
}

func (p *problem) refusal(op int, s orders.State) string {
	e := p.effects[op]
	name := "the call"
	if p.source[op] >= 0 {
		name = p.c.Operations[p.source[op]].ID
	}
	rule := func(it item) string { return p.u.facts[it.managed].rule.String() }
	switch {
	case e.result == duplicate:
		return name + " was answered with InvalidPermission.Duplicate, and none of its rules is there"
	case e.result == notFound:
		return name + " was answered with InvalidPermission.NotFound, and all of its rules are there"
	case e.kind == grant:
		for _, it := range e.items {
			if it.in(s) {
				return name + " granted " + rule(it) + ", which is there already"
			}
		}
	case e.kind == revoke || e.kind == replace || e.kind == redescribe:
		for _, it := range e.absent {
			if it.in(s) {
				return name + " did not find " + rule(it) + ", which is there"
			}
		}
		for _, it := range e.items {
			if !it.in(s) {
				return name + " changed " + rule(it) + ", which is not there"
			}
		}
	}
	return name + " waits for an operation that cannot come before it"
}

// CertainStart reports whether every rule's presence at the beginning is known: all explanations begin alike.
func (r *Result) CertainStart() bool { return r.starts == 1 }
