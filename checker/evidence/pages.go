package evidence

import (
	"fmt"
	"slices"
	"strings"
)

// matrixPage is the page that people begin with.
func (e *Evidence) matrixPage() string {
	var b strings.Builder
	b.WriteString(`# Evidence

Written by ` + "`linearize evidence`" + `; do not edit. It explores every design in every environment with the reference
implementation, exhaustively: "yes" means that no reachable state violates the property within the bounds given below.
"no, 13" means that it is violated, and that the shortest way there has 13 steps; the link shows it. (For eventually-repaired and
eventually-tight, it is a way to where a fair run can go on badly for ever.) Numbers of states are those that TLC counts, too ([tlc.json](tlc.json)). [matrix.json](matrix.json) is the same for machines. What this says
about the report's four suggestions is on [a page of its own](suggestions.md), and what it says about the claims of an earlier
prototype on [another](claims.md).

`)
	for _, p := range []struct{ name, text string }{
		{"never-empty", "While some binding has a live, registered target, the managed rules are not empty."},
		{"covered", "The port of every live, registered target is inside some managed rule. This is what clients feel."},
		{"tight", "After the last change has settled, no managed rule is left that nobody wants."},
	} {
		fmt.Fprintf(&b, "## %s\n%s\n\n", p.name, p.text)
		e.matrix(&b, func(c Cell) string {
			if j, judged := c.judgment(p.name); judged {
				return j.cell()
			}
			return ""
		})
	}
	b.WriteString("## States\nHow many states each design has in each environment. All were explored, except where a number has a +.\n\n")
	e.matrix(&b, func(c Cell) string {
		if c.Complete {
			return fmt.Sprint(c.States)
		}
		return fmt.Sprintf("%d+", c.States)
	})
	b.WriteString("## Bounds\nEach environment is exhaustive within these bounds.\n\n")
	var rows [][]string
	for _, env := range e.environments {
		rows = append(rows, []string{"`" + env.name + "`", describe(env.constants)})
	}
	table(&b, []string{"environment", "what it allows"}, rows)
	e.others(&b)
	e.costs(&b)
	return b.String()
}

// matrix writes a table of the designs and the core environments.
func (e *Evidence) matrix(b *strings.Builder, text func(Cell) string) {
	var designs, columns []string
	for _, c := range e.Cells {
		if !isVariant(c.Design) && !slices.Contains(designs, c.Design) {
			designs = append(designs, c.Design)
		}
	}
	for _, env := range e.environments {
		if rank(env.name) < len(core) {
			columns = append(columns, env.name)
		}
	}
	var rows [][]string
	for _, d := range designs {
		row := []string{"`" + d + "`"}
		for _, env := range columns {
			if c, explored := e.cell(d, env); explored {
				row = append(row, text(c))
			} else {
				row = append(row, "")
			}
		}
		rows = append(rows, row)
	}
	table(b, append([]string{""}, columns...), rows)
}

// others lists what was explored besides the matrix.
func (e *Evidence) others(b *strings.Builder) {
	b.WriteString("## Beyond the matrix\nFurther environments, and the proposed design with one part taken away or replaced: each part is needed.\n\n")
	var rows [][]string
	for _, c := range e.Cells {
		if rank(c.Environment) < len(core) && !isVariant(c.Design) {
			continue
		}
		var verdicts []string
		for _, j := range c.Judged {
			verdicts = append(verdicts, j.Property+": "+j.cell())
		}
		states := fmt.Sprint(c.States)
		if !c.Complete {
			states += "+"
		}
		rows = append(rows, []string{"`" + c.Design + "`", "`" + c.Environment + "`", strings.Join(verdicts, ", "), states})
	}
	table(b, []string{"design", "environment", "verdicts", "states"}, rows)
}

// costs writes what the designs cost.
func (e *Evidence) costs(b *strings.Builder) {
	b.WriteString(`## Cost in calls
Calls to EC2 in one reconcile (describe + authorize + revoke), counted on the live reference implementation: two bindings
share a group, reads are never old. The first describe after a start also looks for groups with the cluster's tag.

`)
	if len(e.Costs) == 0 {
		return
	}
	head := []string{""}
	for _, c := range e.Costs[0].Calls {
		head = append(head, c.Situation)
	}
	var rows [][]string
	for _, cost := range e.Costs {
		row := []string{"`" + cost.Design + "`"}
		for _, c := range cost.Calls {
			if c.total() == 0 {
				row = append(row, "0")
			} else {
				row = append(row, fmt.Sprintf("%d (%d+%d+%d)", c.total(), c.Describe, c.Authorize, c.Revoke))
			}
		}
		rows = append(rows, row)
	}
	table(b, head, rows)
	fmt.Fprintf(b, `## Time to repair
How long lost rules stay lost when nothing in the cluster changes: %d simulated runs with %d bindings, the deferred queue's
30 minutes plus up to 15 of jitter, a resync every 10 hours give or take 10 %%, and the mark that keeps a binding out of the
queue for 10 hours. The first full reconcile of any binding repairs the rule that they share. Quantiles are of the simulated times.

`, simulatedRuns, simulatedBindings)
	rows = nil
	for i, cost := range e.Costs {
		same := func(c Cost) bool { return slices.Equal(c.Repair, cost.Repair) }
		if slices.IndexFunc(e.Costs, same) < i {
			continue
		}
		var names []string
		for _, other := range e.Costs {
			if same(other) {
				names = append(names, "`"+other.Design+"`")
			}
		}
		for _, r := range cost.Repair {
			rows = append(rows, []string{strings.Join(names, ", "), r.Scenario, duration(r.Median), duration(r.P90), duration(r.P99), duration(r.Max)})
		}
	}
	table(b, []string{"designs", "scenario", "median", "90 %", "99 %", "longest"}, rows)
}
