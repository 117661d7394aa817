package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxMarkdown bounds, in bytes, what WriteMarkdown writes: GitHub takes 65,536 characters in the body of an issue.
const maxMarkdown = 60_000

// maxMarkdownRows bounds the timeline before it is laid out.
const maxMarkdownRows = 1000

// WriteMarkdown writes a short form to paste into an issue: tables, and the timeline in a details block. Strings of the
// capture make no links, mentions or HTML there. What exceeds the size of an issue is left out, and said to be.
func WriteMarkdown(w io.Writer, r *Report) error {
	m := &markdown{left: maxMarkdown}
	m.line("**%s**: %s", r.Verdict, prose(clean(r.Summary)))
	for _, g := range r.Groups {
		m.group(g)
	}
	m.inputs(r)
	if m.omitted > 0 {
		m.left = 1 << 10
		m.line("")
		m.line("%s left out for the size of an issue; the JSON form has everything.", count(m.omitted, "line"))
	}
	_, err := w.Write(m.b.Bytes())
	return err
}

// markdown collects lines while there is room.
type markdown struct {
	b       bytes.Buffer
	left    int
	omitted int
}

func (m *markdown) line(format string, args ...any) {
	s := fmt.Sprintf(format, args...) + "\n"
	if len(s) > m.left {
		m.omitted++
		return
	}
	m.left -= len(s)
	m.b.WriteString(s)
}

// prose escapes a clean string so that Markdown shows it as it is and GitHub makes no link or mention of it. An
// invisible character breaks what no backslash can.
func prose(s string) string {
	const breaker = "&#8203;"
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '@' || r == '#':
			b.WriteString(string(r) + breaker)
		case r == ':' && strings.HasPrefix(s[i:], "://"):
			b.WriteString(":" + breaker)
		case r == '.' && i >= 3 && strings.EqualFold(s[i-3:i], "www"):
			b.WriteString(breaker + ".")
		case r == '-' && i >= 2 && strings.EqualFold(s[i-2:i], "gh"): // GH-1 is a link to issue 1
			b.WriteString(breaker + "-")
		case strings.ContainsRune("\\`*_[]!|~$", r), i == 0 && (r == '+' || r == '-'):
			b.WriteString(`\` + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// code puts a clean string into a code span. A pipe would end a table's cell, even there, so such a string, and one with
// backquotes, is escaped as prose.
func code(s string) string {
	if s == "" || strings.ContainsAny(s, "|`") {
		return prose(s)
	}
	return "`" + s + "`"
}

// longestRun is the length of the longest run of backquotes.
func longestRun(s string) int {
	longest, run := 0, 0
	for _, r := range s {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

func (m *markdown) group(g Group) {
	m.line("")
	m.line("### %s", code(clean(g.GroupID)))
	m.line("")
	m.line("%s", span(g))
	m.line("")
	m.line("| property | verdict | why |")
	m.line("|---|---|---|")
	for _, p := range g.Properties {
		m.line("| %s | %s | %s |", prose(clean(p.Name)), verdictWord(p), prose(strings.Join(why(p), "; ")))
	}
	m.line("| linearity | %s | %s |", prose(linearityWord(g.Linearity)), prose(strings.Join(whyLinearity(g.Linearity), "; ")))
	m.unordered(g)
	m.windows(g)
	if len(g.Findings) > 0 {
		m.line("")
		for _, f := range g.Findings {
			m.line("- **%s**: %s", prose(clean(f.Kind)), prose(clean(f.Text)))
		}
	}
	m.processes(g)
	m.list("Rests on", g.Assumptions)
	m.list("Order settled by", g.SettledBy)
	m.timeline(g)
}

func (m *markdown) list(title string, items []string) {
	if len(items) == 0 {
		return
	}
	m.line("")
	m.line("%s:", title)
	for _, s := range items {
		m.line("- %s", prose(clean(s)))
	}
}

func (m *markdown) unordered(g Group) {
	u := g.Unordered
	if u == nil {
		return
	}
	m.line("")
	m.line("%s can be explained; no explanation survives %s.", count(u.Explained, "operation"), prose(call(&u.At, rowNumbers(g))))
	for i := range max(len(u.States), len(u.Refusals)) {
		var parts []string
		if i < len(u.States) {
			parts = append(parts, "with the rules "+code(clean(u.States[i])))
		}
		if i < len(u.Refusals) {
			parts = append(parts, prose(clean(u.Refusals[i])))
		}
		m.line("- %s", strings.Join(parts, ": "))
	}
}

func (m *markdown) windows(g Group) {
	rows, told := rowNumbers(g), map[string]bool{}
	first := true
	for _, p := range g.Properties {
		for _, w := range p.Windows {
			if first {
				m.line("")
				m.line("| window | length | from (UTC) | to | opened | closed |")
				m.line("|---|---|---|---|---|---|")
				first = false
			}
			to, end := "", ""
			if w.End != nil {
				to, end = clockRange(*w.End), closed(w, rows, told)
				if day(w.End.Earliest) != day(w.Start.Earliest) {
					to = momentRange(*w.End)
				}
			}
			text := prose(opened(w, rows, told))
			if w.Text != "" {
				text += "; " + prose(clean(w.Text))
			}
			m.line("| %s | %s | %s | %s | %s | %s |", prose(windowTitle(p, w)), lengths(w), momentRange(w.Start), to, text, prose(end))
		}
	}
}

func (m *markdown) processes(g Group) {
	if len(g.Processes) == 0 {
		return
	}
	m.line("")
	m.line("| process | kind | operations |")
	m.line("|---|---|---|")
	for _, p := range g.Processes {
		m.line("| %s | %s | %s |", code(clean(p.ID)), prose(processKind(p)), prose(processDetail(p)))
	}
}

// timeline shows the rows as the text form does, in a fenced block.
func (m *markdown) timeline(g Group) {
	if len(g.Timeline) == 0 {
		return
	}
	if n := len(g.Timeline) - maxMarkdownRows; n > 0 {
		g.Timeline = g.Timeline[:maxMarkdownRows]
		g.TimelineOmits += n
	}
	var text bytes.Buffer
	p := newPage(&text, TextOptions{})
	p.timeline(g)
	if p.w.Flush() != nil || m.left < 1<<10 {
		m.omitted += len(g.Timeline)
		return
	}
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	fence := strings.Repeat("`", max(longestRun(text.String())+1, 3))
	m.line("")
	m.line("<details><summary>Timeline, UTC; rules are the managed ones afterwards%s</summary>", htmlProse(unsaid(g)))
	m.line("")
	m.line("%s", fence)
	const closing = 64 // bytes kept for the end of the block
	m.left -= closing + len(fence)
	for _, l := range lines {
		m.line("%s", l)
	}
	m.left += closing + len(fence)
	m.line("%s", fence)
	m.line("</details>")
}

// htmlProse escapes a clean string for use in an HTML block, where Markdown's escapes do not count.
func htmlProse(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < utf8.RuneSelf && strings.ContainsRune("&<>\"'`@#:.[]()|\\*_~!", r) {
			fmt.Fprintf(&b, "&#%d;", r)
			if r == '@' || r == '#' || r == ':' || r == '.' {
				b.WriteString("&#8203;")
			}
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (m *markdown) inputs(r *Report) {
	if len(r.Inputs) > 0 {
		m.line("")
		m.line("| input | format | records | used | duplicate | irrelevant | rejected |")
		m.line("|---|---|---|---|---|---|---|")
		inputs, more := listed(r.Inputs)
		for _, in := range inputs {
			m.line("| %s | %s | %d | %d | %d | %d | %d |", code(clean(in.Path)), prose(clean(in.Format)), in.Records, in.Used,
				in.Duplicates, in.Irrelevant, in.Rejected)
		}
		if more > 0 {
			m.line("")
			m.line("and %d more inputs", more)
		}
		for _, in := range r.Inputs {
			for _, s := range in.Rejections {
				m.line("- rejected in %s: %s", code(clean(in.Path)), prose(clean(s)))
			}
		}
	}
	if len(r.Options) > 0 {
		var parts []string
		for _, o := range r.Options {
			parts = append(parts, code(clean(o.Name)+" "+clean(o.Value)))
		}
		m.line("")
		m.line("Asked with %s.", strings.Join(parts, ", "))
	}
}
