package property

import (
	"context"
	"errors"
	"slices"

	"linearize.example/checker/orders"
	"linearize.example/checker/report"
)

// The marks of what the states of an explanation violate: anywhere, and where something has told of the rules.
const (
	isEmpty uint8 = 1 << iota
	isToldEmpty
	isUncovered
	isToldUncovered
	isNeeded
)

// outcomes finds the verdicts without the explanations, which are too many: without windows, and without an order.
func (j *judge) outcomes(ctx context.Context) error {
	p := j.p
	violated := make([]bool, len(j.open))
	ends, err := orders.Reach(ctx, p.orders(), p.opt.Budget, func(s orders.State) (marks uint8) {
		if !s.Meets(p.u.needs) {
			return 0
		}
		marks = isNeeded
		p.u.violates(s, violated)
		if violated[0] {
			marks |= isEmpty
		}
		if slices.Contains(violated[1:], true) {
			marks |= isUncovered
		}
		if s.Has(told) {
			marks |= marks & (isEmpty | isUncovered) << 1
		}
		return marks
	})
	if err != nil {
		return err
	}
	verdict := func(anywhere, whereTold uint8) report.Verdict {
		some := slices.ContainsFunc(ends, func(e orders.End) bool { return e.Marks&anywhere != 0 })
		all := !slices.ContainsFunc(ends, func(e orders.End) bool { return e.Marks&whereTold == 0 })
		switch {
		case !some:
			return report.Holds
		case all:
			return report.Violated
		}
		return report.Possible
	}
	j.r.NeverEmpty, j.r.Covered = verdict(isEmpty, isToldEmpty), verdict(isUncovered, isToldUncovered)
	j.r.Needed = slices.ContainsFunc(ends, func(e orders.End) bool { return e.Marks&isNeeded != 0 })
	var states []orders.State
	for _, e := range ends {
		states = append(states, e.State)
	}
	j.tight(states)
	j.r.Assumptions = append(j.r.Assumptions, "so many calls have an unknown outcome that the verdicts come without windows and without an order")
	return nil
}

// explore gives the explanations to j.block. Where calls of unknown outcome make too many of them, it finds the outcomes.
func (j *judge) explore(ctx context.Context) error {
	budget := j.p.opt.Budget
	if budget.Nodes == 0 {
		budget.Nodes = orders.DefaultNodes
	}
	if j.p.optional {
		budget.Nodes = min(budget.Nodes, max(manyNodes, nodesPerCall*len(j.p.ops)))
	}
	err := orders.Explore(ctx, j.p.orders(), budget, j.block)
	if !j.p.optional || !errors.Is(err, orders.ErrBudget) {
		return err
	}
	opt := j.p.opt
	opt.fewOpen = true
	j.p = build(j.p.c, opt, j.p.worst)
	j.r.problem = j.p
	j.subjects()
	j.restart()
	j.r.NeverEmpty, j.r.Covered, j.r.Tight = report.Holds, report.Holds, report.Holds
	j.windows, j.r.Leftovers, j.r.Overdue, j.r.Needed = nil, nil, false, false
	return j.outcomes(ctx)
}

// With calls of unknown outcome, explanations are searched among so many configurations: in all, or for every call.
const (
	manyNodes    = 1 << 16
	nodesPerCall = 16
)
