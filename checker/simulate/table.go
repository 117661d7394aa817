package simulate

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"linearize.example/checker/report"
)

// SweepSchema names the form of the JSON report of a sweep.
const SweepSchema = "linearize.sweep/v1"

// SweepReport is what a sweep says, with what it was made with.
type SweepReport struct {
	Schema     string   `json:"schema"`
	Churn      Churn    `json:"churn"`
	Conditions string   `json:"conditions"` // in words, beyond the churn
	First      uint64   `json:"first_seed"`
	Seeds      int      `json:"seeds"`
	Bindings   int      `json:"bindings"`
	Duration   Duration `json:"duration"`
	Bound      Duration `json:"repair_bound"`
	Properties []string `json:"properties"`
	Rows       []Row    `json:"rows"`
}

// NewSweepReport joins a sweep with its rows. Conditions say in words what the plan does not.
func NewSweepReport(s *Sweep, rows []Row, conditions string) *SweepReport {
	return &SweepReport{Schema: SweepSchema, Churn: s.Plan.Churn, Conditions: conditions, First: s.First, Seeds: s.Seeds,
		Bindings: s.Plan.Bindings, Duration: Duration(s.Plan.Duration), Bound: Duration(s.RepairBound), Properties: Properties, Rows: rows}
}

// Verdict is violated if some run violates some property, possible if one is not decided.
func (r *SweepReport) Verdict() report.Verdict {
	verdict := report.Holds
	for _, row := range r.Rows {
		for p := range r.Properties {
			switch {
			case row.Violated[p].Count > 0:
				return report.Violated
			case row.Possible[p]+row.Unknown[p] > 0:
				verdict = report.Possible
			}
		}
	}
	return verdict
}

// title says what was run.
func (r *SweepReport) title() string {
	seeds := fmt.Sprintf("seed %d", r.First)
	if r.Seeds > 1 {
		seeds = fmt.Sprintf("seeds %d to %d", r.First, r.First+uint64(r.Seeds)-1)
	}
	text := fmt.Sprintf("%s churn of %d bindings for %s, %s", r.Churn, r.Bindings, report.Duration(time.Duration(r.Duration).Seconds()), seeds)
	if r.Conditions != "" {
		text += ", " + r.Conditions
	}
	return text
}

// sharesTitle and repairsTitle head the two halves of the report.
func (r *SweepReport) sharesTitle() string {
	return fmt.Sprintf("Runs of %d that violate, and the true share in percent with 95 %% confidence (Wilson)", r.Seeds)
}

const repairsTitle = "Time until rules that were missing are back (Kaplan-Meier; cut: the run ended first)"

// cells are the share's cell of each property.
func (row *Row) cells() []string {
	var cells []string
	for p, s := range row.Violated {
		cell := fmt.Sprintf("%d (%.0f-%.0f%%)", s.Count, 100*s.Low, 100*s.High)
		if n := row.Possible[p] + row.Unknown[p]; n > 0 {
			cell += fmt.Sprintf(" %d?", n)
		}
		cells = append(cells, cell)
	}
	return cells
}

// undecided reports whether some verdict of some run is open.
func (r *SweepReport) undecided() bool {
	for _, row := range r.Rows {
		for p := range r.Properties {
			if row.Possible[p]+row.Unknown[p] > 0 {
				return true
			}
		}
	}
	return false
}

const undecidedNote = `"n?" counts runs whose record leaves the property open.`

// repairCells are windows, cut, median, p90, p99, max.
func (row *Row) repairCells() []string {
	s := NewSurvival(row.Repairs)
	cells := []string{fmt.Sprint(s.Count), fmt.Sprint(s.Censored)}
	if s.Count == 0 {
		return append(cells, "-", "-", "-", "-")
	}
	for _, p := range []float64{0.5, 0.9, 0.99, 1} {
		seconds, known := s.Quantile(p)
		cell := shortDuration(seconds)
		if !known {
			cell = "> " + cell
		}
		cells = append(cells, cell)
	}
	return cells
}

// shortDuration prints two units at most.
func shortDuration(seconds float64) string {
	const hour, day = 3600, 24 * 3600
	switch {
	case seconds >= day:
		seconds = math.Round(seconds/hour) * hour
	case seconds >= hour:
		seconds = math.Round(seconds/60) * 60
	}
	return report.Duration(seconds)
}

var repairColumns = []string{"windows", "cut", "median", "p90", "p99", "max"}

// WriteText writes the sweep as two tables of at most 100 columns.
func (r *SweepReport) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, line := range wrapText(r.title(), 100) {
		b.WriteString(line + "\n")
	}
	b.WriteString("\n" + r.sharesTitle() + "\n")
	rows := [][]string{append([]string{"design"}, r.Properties...)}
	for _, row := range r.Rows {
		rows = append(rows, append([]string{row.Design}, row.cells()...))
	}
	writeTable(&b, rows, false)
	if r.undecided() {
		b.WriteString(undecidedNote + "\n")
	}
	b.WriteString("\n" + repairsTitle + "\n")
	rows = [][]string{append([]string{"design"}, repairColumns...)}
	for _, row := range r.Rows {
		rows = append(rows, append([]string{row.Design}, row.repairCells()...))
	}
	writeTable(&b, rows, true)
	_, err := io.WriteString(w, b.String())
	return err
}

// wrapText breaks a text into lines.
func wrapText(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

func writeTable(b *strings.Builder, rows [][]string, right bool) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			if i > 0 {
				line += "  "
			}
			if right && i > 0 {
				line += fmt.Sprintf("%*s", widths[i], cell)
			} else {
				line += fmt.Sprintf("%-*s", widths[i], cell)
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// WriteMarkdown writes the sweep as two tables of Markdown.
func (r *SweepReport) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	table := func(title string, columns []string, cells func(row *Row) []string) {
		fmt.Fprintf(&b, "%s:\n\n| design | %s |\n|---|%s\n", title, strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
		for i := range r.Rows {
			fmt.Fprintf(&b, "| `%s` | %s |\n", r.Rows[i].Design, strings.Join(cells(&r.Rows[i]), " | "))
		}
	}
	b.WriteString(r.title() + ".\n\n")
	table(r.sharesTitle(), r.Properties, (*Row).cells)
	if r.undecided() {
		b.WriteString("\n" + undecidedNote + "\n")
	}
	b.WriteString("\n")
	table(repairsTitle, repairColumns, (*Row).repairCells)
	_, err := io.WriteString(w, b.String())
	return err
}

// MarshalJSON adds the quantiles of the repair times to a row; null is one that too many runs end before.
func (row Row) MarshalJSON() ([]byte, error) {
	type plain Row
	s := NewSurvival(row.Repairs)
	quantile := func(p float64) *float64 {
		if seconds, known := s.Quantile(p); known && s.Count > 0 {
			return &seconds
		}
		return nil
	}
	return json.Marshal(struct {
		plain
		Statistics any `json:"repair_statistics"`
	}{plain(row), struct {
		Windows  int      `json:"windows"`
		Censored int      `json:"censored"`
		Median   *float64 `json:"median_seconds"`
		P90      *float64 `json:"p90_seconds"`
		P99      *float64 `json:"p99_seconds"`
		Max      *float64 `json:"max_seconds"`
		Longest  float64  `json:"longest_seconds"`
	}{s.Count, s.Censored, quantile(0.5), quantile(0.9), quantile(0.99), quantile(1), s.Longest}})
}

// WriteJSON writes the sweep as JSON.
func (r *SweepReport) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
