package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// TextOptions say how WriteText lays its output out.
type TextOptions struct {
	// Width is the number of columns of a line: 80 to 100; 0 means 100.
	Width int
	// Color turns terminal colours on. The caller decides, by the terminal and NO_COLOR.
	Color bool
}

const minWidth, maxWidth = 80, 100

// WriteText writes the report for a terminal: the verdict in one line, then each group, then what was read. Every
// string of the capture is escaped so that it cannot steer a terminal; times are in UTC.
func WriteText(w io.Writer, r *Report, opt TextOptions) error {
	p := newPage(w, opt)
	p.hanging("", headline(r), headlineStyle(r.Verdict))
	for _, g := range r.Groups {
		p.group(g)
	}
	p.inputs(r)
	return p.w.Flush()
}

func headlineStyle(v Verdict) string { return bold + ";" + verdictStyle(v) }

func verdictStyle(v Verdict) string {
	switch v {
	case Holds:
		return green
	case Possible:
		return yellow
	case Violated:
		return red
	}
	return magenta
}

func (p *page) heading(s string) {
	p.line("")
	p.hanging("", s, bold)
}

func (p *page) group(g Group) {
	p.line("")
	p.hanging("", clean(g.GroupID)+": "+span(g), bold)
	p.properties(g)
	if g.Unordered != nil {
		p.unordered(g.Unordered, rowNumbers(g))
	}
	if len(g.Timeline) > 0 {
		p.heading("Timeline, UTC; rules are the managed ones afterwards" + unsaid(g))
		p.timeline(g)
	}
	p.windows(g)
	p.processes(g)
	if len(g.Findings) > 0 {
		p.heading("Findings")
		rows := [][]cell{}
		for _, f := range g.Findings {
			rows = append(rows, []cell{{clean(f.Kind), yellow}, {clean(f.Text), ""}})
		}
		p.table("  ", []int{24, 0}, rows)
	}
	p.list("Rests on", g.Assumptions)
	p.list("Order settled by", g.SettledBy)
}

func (p *page) list(title string, items []string) {
	if len(items) == 0 {
		return
	}
	p.heading(title)
	for _, s := range items {
		p.hanging("  - ", clean(s), "")
	}
}

func (p *page) properties(g Group) {
	var rows [][]cell
	add := func(name, word string, v Verdict, why []string) {
		if len(why) == 0 {
			why = []string{""}
		}
		for i, s := range why {
			if i == 0 {
				rows = append(rows, []cell{{name, ""}, {word, verdictStyle(v)}, {s, ""}})
			} else {
				rows = append(rows, []cell{{}, {}, {s, ""}})
			}
		}
	}
	for _, pr := range g.Properties {
		add(clean(pr.Name), verdictWord(pr), pr.Verdict, why(pr))
	}
	add("linearity", linearityWord(g.Linearity), linearityVerdict(g.Linearity), whyLinearity(g.Linearity))
	p.table("  ", []int{14, 18, 0}, rows)
}

func linearityWord(l Linearity) string {
	if l.Result == "" {
		return "unknown"
	}
	return clean(l.Result)
}

func (p *page) unordered(u *Unordered, rows map[string]int) {
	p.heading("No order of the operations explains their results")
	p.hanging("  ", fmt.Sprintf("%s can be explained; no explanation survives %s.",
		count(u.Explained, "operation"), call(&u.At, rows)), "")
	for i, s := range u.States {
		p.hanging("  - ", "with the rules "+clean(s), "")
		if i < len(u.Refusals) {
			p.hanging("    ", clean(u.Refusals[i]), "")
		}
	}
	for _, s := range u.Refusals[min(len(u.States), len(u.Refusals)):] {
		p.hanging("  - ", clean(s), "")
	}
}

// unsaid names the source that the timeline's rules have in common, for its heading.
func unsaid(g Group) string {
	if common := commonSource(g.Timeline); common != "" {
		return "," + clean(common)
	}
	return ""
}

// timeline prints the numbered rows under the date of their day. A bar in front marks what lies in a window; the
// rules are printed where they change.
func (p *page) timeline(g Group) {
	common := commonSource(g.Timeline)
	digits := len(strconv.Itoa(len(g.Timeline)))
	open := spans(g)
	number, previous := 0, ""
	var shown []string
	for _, d := range splitDays(g.Timeline) {
		p.line("  " + p.style(d.date, faint))
		widths := columns(p.width-4-digits-1, d.rows, common)
		for _, row := range d.rows {
			number++
			gutter := "  "
			if inside(row, open) {
				gutter = p.style("┃", red) + " "
			}
			lead := "  " + gutter
			indent := 4 + digits + 1 + widths[0] + 2
			p.row(lead+p.style(fmt.Sprintf("%*d ", digits, number), faint),
				lead+strings.Repeat(" ", digits+1), widths, timelineCells(row, common))
			lead += strings.Repeat(" ", indent-4)
			if rules := rulesAfter(row, common); row.Kind == "call" && rules != previous {
				p.under(lead, indent, "→ "+rules, faint)
				previous = rules
			}
			for _, m := range newMarks(row, &shown) {
				p.under(lead, indent, "▲ "+m, boldRed)
			}
		}
	}
	if g.TimelineOmits > 0 {
		p.line(fmt.Sprintf("  (%s left out)", count(g.TimelineOmits, "row")))
	}
}

// under prints a text behind a lead that is indent columns wide and may have colours in it.
func (p *page) under(lead string, indent int, text, style string) {
	for _, l := range wrap(text, p.width-indent) {
		p.line(lead + p.style(l, style))
	}
}

func timelineCells(row Row, common string) []cell {
	summary, style := clean(row.Summary), ""
	switch row.Kind {
	case "call":
		if row.ID != "" && len(row.ID) <= shortID {
			summary += " (" + clean(row.ID) + ")"
		}
	case "window-start", "window-end":
		style = boldRed
	default:
		style = faint
	}
	resultStyle := ""
	if row.Kind == "call" && !succeeded(row) {
		resultStyle = yellow
	}
	return []cell{{clockRange(row.At), ""}, {clean(row.Process), ""}, {summary, style}, {resultOf(row, common), resultStyle}}
}

// columns are the widths of the timeline's columns: time, process, what, result.
func columns(total int, rows []Row, common string) []int {
	var widths [4]int
	for _, row := range rows {
		for i, c := range timelineCells(row, common) {
			widths[i] = max(widths[i], displayWidth(c.text))
		}
	}
	widths[0] = min(widths[0], 26) // two times of a day to the microsecond
	widths[1] = min(widths[1], total/5)
	widths[3] = min(widths[3], total/3)
	rest := total - widths[0] - 2
	for _, n := range []int{widths[1], widths[3]} {
		if n > 0 {
			rest -= n + 2
		}
	}
	widths[2] = min(widths[2], max(rest, 12))
	return widths[:]
}

type dayRows struct {
	date string
	rows []Row
}

// splitDays groups successive rows by the date on which they begin.
func splitDays(rows []Row) []dayRows {
	var out []dayRows
	for _, row := range rows {
		d := day(row.At.Earliest)
		if d == "" {
			d = day(row.At.Latest)
		}
		if d == "" && len(out) > 0 {
			d = out[len(out)-1].date
		}
		if len(out) == 0 || out[len(out)-1].date != d {
			out = append(out, dayRows{date: d})
		}
		last := &out[len(out)-1]
		last.rows = append(last.rows, row)
	}
	return out
}

func (p *page) windows(g Group) {
	rows := rowNumbers(g)
	n := 0
	told := map[string]bool{}
	for _, pr := range g.Properties {
		for _, w := range pr.Windows {
			if n == 0 {
				p.heading("Windows")
			}
			n++
			p.hanging(fmt.Sprintf("  %d. ", n), windowTitle(pr, w)+": "+lengths(w), verdictStyle(w.Verdict))
			table := [][]cell{{{"from", faint}, {momentRange(w.Start), ""}, {opened(w, rows, told), ""}}}
			if w.End != nil {
				table = append(table, []cell{{"to", faint}, {momentRange(*w.End), ""}, {closed(w, rows, told), ""}})
			}
			p.table("     ", []int{4, 26, 0}, table)
			if w.Text != "" {
				p.hanging("     ", clean(w.Text), "")
			}
		}
	}
}

// opened and closed say by which call a window began and ended. Who made the call is told once; told remembers it.
func opened(w Window, rows map[string]int, told map[string]bool) string {
	if w.OpenedBy == nil {
		return "open when the capture began"
	}
	return "opened by " + call(w.OpenedBy, rows) + who(w.OpenedBy, told)
}

func closed(w Window, rows map[string]int, told map[string]bool) string {
	if w.ClosedBy == nil {
		return "closed by no call in the capture"
	}
	return "closed by " + call(w.ClosedBy, rows) + who(w.ClosedBy, told)
}

func who(ref *Ref, told map[string]bool) string {
	key := ref.Process + "\x00" + ref.Who
	if ref.Who == "" || ref.Who == ref.Process || told[key] {
		return ""
	}
	told[key] = true
	return ": " + clean(ref.Who)
}

func (p *page) processes(g Group) {
	if len(g.Processes) == 0 {
		return
	}
	p.heading("Processes")
	rows := [][]cell{}
	for _, pr := range g.Processes {
		rows = append(rows, []cell{{clean(pr.ID), bold}, {processKind(pr), ""}, {processDetail(pr), ""}})
	}
	p.table("  ", []int{24, 18, 0}, rows)
}

func processKind(pr Process) string {
	s := "not the controller"
	if pr.UserAgent == "" {
		s = "agent not recorded"
	}
	if pr.Controller {
		s = "controller"
		if pr.Release != "" {
			s += " " + clean(pr.Release)
		}
	}
	return s
}

func processDetail(pr Process) string {
	parts := []string{count(pr.Operations, "operation")}
	for _, f := range [][2]string{{"role", pr.Role}, {"session", pr.Session}, {"since", pr.SessionStart},
		{"key", pr.AccessKeyID}, {"from", pr.SourceAddress}, {"agent", pr.UserAgent}} {
		if f[1] != "" {
			parts = append(parts, f[0]+" "+clean(f[1]))
		}
	}
	return strings.Join(parts, ", ")
}

func (p *page) inputs(r *Report) {
	if len(r.Inputs) > 0 {
		p.heading("Inputs")
		rows := [][]cell{{{"file", faint}, {"format", faint}, {"records", faint}, {"used", faint},
			{"duplicate", faint}, {"irrelevant", faint}, {"rejected", faint}}}
		inputs, more := listed(r.Inputs)
		for _, in := range inputs {
			rejected := ""
			if in.Rejected > 0 {
				rejected = yellow
			}
			row := []cell{{clean(in.Path), ""}, {clean(in.Format), ""}}
			for _, n := range []int{in.Records, in.Used, in.Duplicates, in.Irrelevant} {
				row = append(row, cell{text: strconv.Itoa(n)})
			}
			rows = append(rows, append(row, cell{strconv.Itoa(in.Rejected), rejected}))
		}
		p.table("  ", []int{0, 18, 9, 9, 9, 10, 9}, rows)
		if more > 0 {
			p.line(fmt.Sprintf("  and %d more (--format json lists all)", more))
		}
		for _, in := range r.Inputs {
			p.rejections(in)
		}
	}
	if len(r.Options) > 0 {
		p.heading("Asked with")
		var parts []string
		for _, o := range r.Options {
			parts = append(parts, clean(o.Name)+" "+clean(o.Value))
		}
		p.hanging("  ", strings.Join(parts, ", "), "")
	}
}

// listed are the inputs to show people, and how many it leaves out: of a great many, those that had something to use or to
// reject come first.
func listed(inputs []Input) ([]Input, int) {
	const most = 50
	if len(inputs) <= most {
		return inputs, 0
	}
	idle := func(in Input) bool { return in.Used+in.Duplicates+in.Rejected+len(in.Rejections) == 0 }
	out := slices.DeleteFunc(slices.Clone(inputs), idle)
	out = out[:min(most, len(out))]
	return out, len(inputs) - len(out)
}

func (p *page) rejections(in Input) {
	if len(in.Rejections) == 0 {
		return
	}
	p.hanging("  ", "rejected in "+clean(in.Path)+":", "")
	for _, s := range in.Rejections {
		p.hanging("    - ", clean(s), "")
	}
	if n := in.Rejected - len(in.Rejections); n > 0 {
		p.line(fmt.Sprintf("    - and %d more", n))
	}
}
