package checker

import (
	"context"
	"errors"
	"slices"

	"linearize.example/checker/report"
	"linearize.example/traces"
	"linearize.example/traces/capture"
)

// Minimize returns a smallest part of a capture whose verdict is violated: a history of its own, from which no operation
// and no observation can be left out without the first violated property of r ceasing to be violated by a window that the
// same call opens. It is found by delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002). The context bounds
// the search; what was reached by then is returned.
func Minimize(ctx context.Context, c *capture.Capture, opt Options, r *report.Report) (*traces.History, error) {
	group, name, opener := firstViolated(r)
	if name == "" {
		return nil, errors.New("nothing is violated, so that there is nothing to minimize")
	}
	opt.Groups, opt.Progress, opt.Rows = []string{group}, nil, 1
	merged := traces.Merge(c.History, opt.ClockSkew)
	merged.Operations = traces.ResolveRuleIDs(merged.Operations, append(slices.Clone(opt.Initial), c.Snapshots...))
	violates := func(h *traces.History) bool {
		judged := Check(ctx, &capture.Capture{History: h, Snapshots: c.Snapshots, Bindings: c.Bindings}, opt)
		for _, g := range judged.Groups {
			for _, p := range g.Properties {
				if p.Name == name && p.Verdict == report.Violated && (opener == "" || opens(p, opener)) {
					return true
				}
			}
		}
		return false
	}
	// Indices 0 to n-1 are operations, those behind are observations.
	n := len(merged.Operations)
	all := make([]int, 0, n+len(merged.Observations))
	for i := range n {
		if op := &merged.Operations[i]; op.Group == group || isTargetCall(op) {
			all = append(all, i)
		}
	}
	for i := range merged.Observations {
		all = append(all, n+i)
	}
	part := func(keep []int) *traces.History {
		operations, _ := slices.BinarySearch(keep, n)
		h := &traces.History{Header: merged.Header, Inputs: merged.Inputs, Operations: traces.Pick(merged.Operations, keep[:operations])}
		for _, i := range keep[operations:] {
			h.Observations = append(h.Observations, merged.Observations[i-n])
		}
		return h
	}
	if !violates(part(all)) {
		return nil, errors.New("the group alone does not show the violation")
	}
	for size := max(1, len(all)/2); ; {
		smaller := false
		for at := 0; at < len(all) && ctx.Err() == nil; {
			without := append(slices.Clone(all[:at]), all[min(len(all), at+size):]...)
			if len(without) > 0 && violates(part(without)) {
				all, smaller = without, true
				continue
			}
			at += size
		}
		if ctx.Err() != nil || size == 1 && !smaller {
			break
		}
		if !smaller || size > len(all) {
			size = max(1, min(size, len(all))/2)
		}
	}
	return part(all), nil
}

// firstViolated names the first property that is violated, its group, and the call that opened its first window, if one did.
func firstViolated(r *report.Report) (group, name, opener string) {
	for _, g := range r.Groups {
		for _, p := range g.Properties {
			if p.Verdict != report.Violated {
				continue
			}
			for _, w := range p.Windows {
				if w.Verdict == report.Violated && w.OpenedBy != nil {
					return g.GroupID, p.Name, w.OpenedBy.ID
				}
			}
			return g.GroupID, p.Name, ""
		}
	}
	return "", "", ""
}

// opens reports whether the call opened a window that every explanation has.
func opens(p report.Property, id string) bool {
	return slices.ContainsFunc(p.Windows, func(w report.Window) bool {
		return w.Verdict == report.Violated && w.OpenedBy != nil && w.OpenedBy.ID == id
	})
}
