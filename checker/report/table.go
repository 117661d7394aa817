package report

import (
	"bufio"
	"io"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// cell is a text in a table, and the style in which it is shown.
type cell struct {
	text  string
	style string
}

// page prints lines of bounded width, in colour where wanted. It remembers the first error.
type page struct {
	w     *bufio.Writer
	width int
	color bool
}

func newPage(w io.Writer, opt TextOptions) *page {
	p := &page{w: bufio.NewWriter(w), width: opt.Width, color: opt.Color}
	if p.width <= 0 || p.width > maxWidth {
		p.width = maxWidth
	}
	if p.width < minWidth {
		p.width = minWidth
	}
	return p
}

// The styles, as parameters of the terminal's "select graphic rendition" sequence (ECMA-48).
const (
	bold    = "1"
	faint   = "2"
	red     = "31"
	green   = "32"
	yellow  = "33"
	magenta = "35"
	boldRed = "1;31"
)

func (p *page) style(s, style string) string {
	if !p.color || style == "" || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

// line prints one line as it is.
func (p *page) line(s string) { p.w.WriteString(strings.TrimRight(s, " ") + "\n") }

// hanging prints a text whose first line begins with lead and whose other lines are indented as deep.
func (p *page) hanging(lead, text, style string) {
	indent := displayWidth(lead)
	for i, l := range wrap(text, p.width-indent) {
		if i > 0 {
			lead = strings.Repeat(" ", indent)
		}
		p.line(lead + p.style(l, style))
	}
}

// table prints rows in aligned columns, two spaces apart, after an indentation. Column i is at most limits[i] wide; 0
// gives it the rest of the line. Longer cells are wrapped.
func (p *page) table(indent string, limits []int, rows [][]cell) {
	widths := make([]int, len(limits))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], displayWidth(c.text))
		}
	}
	left := p.width - displayWidth(indent)
	flexible := 0
	for i, limit := range limits {
		if limit == 0 {
			flexible++
			continue
		}
		widths[i] = min(widths[i], limit)
		if widths[i] > 0 {
			left -= widths[i] + 2
		}
	}
	for i, limit := range limits {
		if limit == 0 {
			widths[i] = min(widths[i], max(left/flexible-2*(flexible-1), 10))
			left -= widths[i] + 2
			flexible--
		}
	}
	for _, row := range rows {
		p.row(indent, indent, widths, row)
	}
}

// row prints one row of a table: first stands before its first line, indent before the others.
func (p *page) row(first, indent string, widths []int, row []cell) {
	lines := make([][]string, len(row))
	height := 0
	for i, c := range row {
		if widths[i] > 0 {
			lines[i] = wrap(c.text, widths[i])
		}
		height = max(height, len(lines[i]))
	}
	for y := range height {
		var b strings.Builder
		if y == 0 {
			b.WriteString(first)
		} else {
			b.WriteString(indent)
		}
		pad := 0
		for i := range row {
			if widths[i] == 0 {
				continue
			}
			text := ""
			if y < len(lines[i]) {
				text = lines[i][y]
			}
			if text != "" {
				b.WriteString(strings.Repeat(" ", pad) + p.style(text, row[i].style))
				pad = 0
			}
			pad += widths[i] - displayWidth(text) + 2
		}
		p.line(b.String())
	}
}

// wrap breaks a text into lines of at most n columns, between words where it can.
func wrap(s string, n int) []string {
	n = max(n, 2)
	var lines []string
	line, used := "", 0
	for _, word := range words(s) {
		w := displayWidth(word)
		if used > 0 && used+1+w <= n {
			line += " " + word
			used += 1 + w
			continue
		}
		if used > 0 {
			lines = append(lines, line)
		}
		for w > n {
			head := fitting(word, n)
			lines = append(lines, word[:head])
			word = word[head:]
			w = displayWidth(word)
		}
		line, used = word, w
	}
	if used > 0 || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// words splits at spaces, but not between a number and its unit of time.
func words(s string) []string {
	var out []string
	for _, word := range strings.Fields(s) {
		if n := len(out); n > 0 && isUnit(word) {
			if last := out[n-1][len(out[n-1])-1]; last >= '0' && last <= '9' {
				out[n-1] += " " + word
				continue
			}
		}
		out = append(out, word)
	}
	return out
}

func isUnit(word string) bool {
	switch strings.TrimRight(word, ".,;:)") {
	case "d", "h", "m", "s", "ms", "µs", "ns":
		return true
	}
	return false
}

// fitting is the number of bytes of s that fit into n columns, after a separator where there is one in the second half.
func fitting(s string, n int) int {
	used, soft := 0, 0
	for i, r := range s {
		w := runeWidth(r)
		if used+w > n {
			if soft > 0 {
				return soft
			}
			return i
		}
		used += w
		if strings.ContainsRune("/:,;", r) && used > n/2 {
			soft = i + 1
		}
	}
	return len(s)
}

func displayWidth(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}
