package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"linearize.example/model"
	"linearize.example/traces"
)

// The time for further environments of one subject, and for one search in them.
const (
	furtherTime = 45 * time.Second
	furtherEach = 15 * time.Second
)

// Further tries wider environments where the usual ones leave the question open: of the design of the release that the capture's
// own user agents name, when that design explains nothing yet; and of all designs, that one first, when none explains anything.
// It stops at the first explanation. The note says what was tried; it is empty when nothing had to be. Results of a design that
// stays without an explanation are those of the last environment that was tried.
func Further(ctx context.Context, s *Subject, designs []model.Design, results []*Result, opt Options, progress func(string)) (more []*Result, note string, err error) {
	explained := map[string]bool{}
	for _, r := range results {
		explained[r.Design] = explained[r.Design] || r.Verdict == Explains
		explained[""] = explained[""] || r.Verdict == Explains
	}
	named := slices.IndexFunc(designs, func(d model.Design) bool { return d.Name == s.release })
	if s.Cannot != "" || len(s.ports) > maxTGBs || named >= 0 && explained[s.release] || named < 0 && explained[""] {
		return nil, "", nil
	}
	order := slices.Clone(designs)
	if named >= 0 {
		order = append([]model.Design{designs[named]}, slices.Delete(order, named, named+1)...)
		if explained[""] {
			order = order[:1]
		}
	}
	until := time.Now().Add(furtherTime)
	var names []string
	for _, d := range order {
		var last *Result
		for _, e := range s.further() {
			left := time.Until(until)
			if left <= 0 || ctx.Err() != nil {
				return more, tried(names) + fmt.Sprintf("; then their time, %s, was over", furtherTime), nil
			}
			if !slices.Contains(names, e.Name) {
				names = append(names, e.Name)
			}
			if progress != nil {
				progress(d.Name + " in " + e.Name)
			}
			mine := opt
			if mine.Timeout == 0 || mine.Timeout > min(left, furtherEach) {
				mine.Timeout = min(left, furtherEach)
			}
			if last, err = Explain(ctx, s, d, e, mine); err != nil {
				return nil, "", fmt.Errorf("%s in %s: %w", d.Name, e.Name, err)
			}
			if last.Verdict == Explains {
				return append(more, last), tried(names) + "; " + d.Name + " explains it in the last", nil
			}
		}
		more = append(more, last)
	}
	return more, tried(names) + "; none does", nil
}

func tried(names []string) string {
	return "as fresh-reads and old-reads do not explain it, wider environments were tried: " + strings.Join(names, ", ")
}

// further lists the environments that go beyond the usual ones, in order of strength: reads that are older, more workers, and
// what the capture itself gives a reason for.
func (s *Subject) further() []Environment {
	var reasons []string
	elected, pending, failed, foreign := 0, false, false, false
	for i := range s.ops {
		op := &s.ops[i]
		if op.kind == elect {
			elected++
		}
		pending = pending || op.optional()
		foreign = foreign || op.foreign
		failed = failed || op.outcome == traces.Failed && op.err != duplicate && op.err != notFound && op.err != limitHit
	}
	if elected > 1 || len(s.callers) > 1 {
		reasons = append(reasons, "crash", "leader-change")
	}
	if foreign || len(s.callers) > 1 && elected == 0 {
		reasons = append(reasons, "external-revokes")
	}
	if pending {
		reasons = append(reasons, "lost-answers", "delayed-revokes")
	}
	if failed && !s.describes {
		reasons = append(reasons, "failures")
	}
	names := []string{"older-reads", "three-workers-old-reads", "very-old-reads"}
	for _, r := range reasons {
		names = append(names, "very-old-reads+"+r)
	}
	if len(reasons) > 1 {
		names = append(names, "very-old-reads+"+strings.Join(reasons, "+"))
	}
	var out []Environment
	for _, name := range names {
		if e, err := EnvironmentNamed(name); err == nil {
			out = append(out, e)
		}
	}
	return out
}

// Insert puts further results behind those of the same design.
func Insert(results, more []*Result) []*Result {
	out := slices.Clone(results)
	for _, r := range more {
		at := len(out)
		for i := range out {
			if out[i].Design == r.Design {
				at = i + 1
			}
		}
		out = slices.Insert(out, at, r)
	}
	return out
}
