package simulate

import (
	"fmt"
	"io"
	"strings"

	"linearize.example/checker/report"
)

// WriteShort writes the verdicts of a run in a few lines of at most 100 columns: for each property the verdict and why, and
// for its first window when it was and which call opened it.
func WriteShort(w io.Writer, r *report.Report) error {
	var b strings.Builder
	const indent = 24
	write := func(lead, text string) {
		for _, line := range wrapText(text, 100-indent) {
			fmt.Fprintf(&b, "%-*s%s\n", indent, lead, line)
			lead = ""
		}
	}
	for _, p := range r.Groups[0].Properties {
		verdict := p.Verdict.String()
		if p.Vacuous {
			verdict += "*"
		}
		lead := fmt.Sprintf("%-14s%s", p.Name, verdict)
		write(lead, p.Reason)
		for _, win := range p.Windows {
			if win.Verdict != p.Verdict {
				continue
			}
			write("", "first "+windowText(win))
			break
		}
	}
	l := r.Groups[0].Linearity
	text := "mutations are linearizable"
	if l.Mutations != "linearizable" {
		text = "mutations are " + l.Mutations
	}
	if l.Reads > 0 {
		text += fmt.Sprintf("; %d of %d reads are old, by %s at most", l.StaleReads, l.Reads, report.Duration(l.MaxReadLagSeconds))
	}
	write("linearity", text)
	_, err := io.WriteString(w, b.String())
	return err
}

// windowText says when a window was and which calls opened and closed it.
func windowText(w report.Window) string {
	const clock = "15:04:05.000"
	text := "from " + w.From.Time().Format(clock)
	if w.OpenedBy != nil {
		text += fmt.Sprintf(", %s (%s)", w.OpenedBy.Summary, w.OpenedBy.ID)
	}
	if w.End == nil {
		return text + ", until the end"
	}
	text += ", to " + w.To.Time().Format(clock)
	if w.ClosedBy != nil {
		text += fmt.Sprintf(", %s (%s)", w.ClosedBy.Summary, w.ClosedBy.ID)
	}
	return text
}
