package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// markClass is the class of a row's mark: by its call and its result.
func markClass(row Row) string {
	verb, _, _ := strings.Cut(row.Summary, " ")
	verb = strings.TrimSuffix(verb, ":")
	switch {
	case row.Kind != "call":
		return "note"
	case verb == "authorize", verb == "revoke", verb == "describe", verb == "register", verb == "deregister":
	default:
		verb = "other"
	}
	switch {
	case succeeded(row):
		return verb
	case row.Result == "no answer", row.Result == "":
		return verb + " pending"
	}
	return verb + " failed"
}

// signs stand in the marks, so that they can be told apart without colours.
var signs = map[string]string{"authorize": "+", "revoke": "−", "describe": "?", "register": "↑", "deregister": "↓", "other": "•", "note": ""}

// rowTitle tells all of a row.
func rowTitle(row numbered) string {
	s := fmt.Sprintf("%d: %s", row.number, momentRange(row.At))
	if row.Process != "" {
		s += ", " + row.Process
	}
	s += ": " + row.Summary
	if row.Result != "" {
		s += " → " + row.Result
	}
	if row.Kind == "call" {
		s += "; rules afterwards: " + rulesAfter(row.Row, "")
	}
	if len(row.Marks) > 0 {
		s += "; " + strings.Join(row.Marks, "; ")
	}
	if len(row.Sources) > 0 {
		s += " (" + strings.Join(row.Sources, ", ") + ")"
	}
	for _, o := range row.more {
		s += " | " + rowTitle(o)
	}
	return s
}

// joinNotes lets observations of one process at one time share a mark.
func joinNotes(rows []numbered) []numbered {
	var out []numbered
	for _, row := range rows {
		if n := len(out) - 1; n >= 0 && row.Kind == "observation" && out[n].Kind == "observation" &&
			out[n].Process == row.Process && out[n].At == row.At {
			out[n].more = append(out[n].more, row)
			continue
		}
		out = append(out, row)
	}
	return out
}

// processLanes draws the calls and observations of each process.
func (c *canvas) processLanes(rows []numbered) {
	var names []string
	byName := map[string][]numbered{}
	for _, row := range rows {
		if row.Kind != "call" && row.Kind != "observation" {
			continue
		}
		if _, ok := byName[row.Process]; !ok {
			names = append(names, row.Process)
		}
		byName[row.Process] = append(byName[row.Process], row)
	}
	if len(names) == 0 {
		return
	}
	c.section("calls")
	for _, name := range names[:min(len(names), maxLanes)] {
		label := name
		if label == "" {
			label = "(caller unknown)"
		}
		c.label(label, count(len(byName[name]), "row"), c.y+14, "strong")
		if c.dense {
			c.denseMarks(byName[name])
		} else {
			c.marks(joinNotes(byName[name]))
		}
		c.printf(`<path class="rule" d="M%d %.1fH%d"/>`, gutterWidth, c.y-2, plotRight)
	}
	c.more(len(names)-maxLanes, "process")
}

// denseMarks draws one line for each column in which something happened.
func (c *canvas) denseMarks(rows []numbered) {
	const height = 20
	worst := map[int]string{}
	for _, row := range rows {
		x := int(math.Round(c.s.pos(middle(row.At, c.s))))
		if class := markClass(row.Row); severity(class) > severity(worst[x]) {
			worst[x] = class
		}
	}
	for x := gutterWidth; x <= plotRight; x++ {
		if class := worst[x]; class != "" {
			c.printf(`<path class="pin %s" d="M%d %.0fv%d"/>`, class, x, c.y+3, height)
		}
	}
	c.y += height + 10
}

func severity(class string) int {
	switch {
	case class == "":
		return 0
	case strings.HasSuffix(class, "failed"):
		return 5
	case class == "revoke":
		return 4
	case class == "authorize":
		return 3
	case class == "note":
		return 1
	}
	return 2
}

// textRows is the number of rows up to which a lane's marks carry their text and not only their number.
const textRows = 40

// placed is a mark with its place: the ends of its interval, its middle, its level, and where its text begins or, to
// the left of the mark, ends.
type placed struct {
	numbered
	x0, x1, x float64
	level     int
	text      string
	textX     float64
	leftward  bool
}

// place finds the place of each mark; marks that would overlap stand on different levels, as far as there are any.
func (c *canvas) place(rows []numbered) []placed {
	var out []placed
	var ends []float64
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b numbered) int { return cmp.Compare(a.At.Earliest, b.At.Earliest) })
	for _, row := range rows {
		if c.s.outside(row.At.Earliest, row.At.Latest) {
			continue
		}
		m := placed{numbered: row, x0: c.s.pos(row.At.Earliest), x1: c.s.pos(row.At.Latest), x: c.s.pos(middle(row.At, c.s))}
		number := fmt.Sprint(row.number)
		if n := len(row.more); n > 0 {
			number += fmt.Sprintf("–%d", row.more[n-1].number)
		}
		m.text = number
		if len(rows) <= textRows {
			m.text += " " + shorten(clean(row.Summary), 56)
		}
		length := 5.7*float64(displayWidth(m.text)) + 4
		left, right := min(m.x0, m.x-9), max(m.x1, m.x+9)
		if !bounded(row.At.Latest) {
			right = m.x + 9 // the open end may be drawn over
		}
		if m.textX = right + 3; m.textX+length <= plotRight+12 || left-length < gutterWidth {
			right += length
		} else {
			m.leftward, m.textX = true, left-3
			left -= length
		}
		for m.level < len(ends) && m.level < maxDepth-1 && ends[m.level]+3 > left {
			m.level++
		}
		if m.level == len(ends) {
			ends = append(ends, 0)
		} else if ends[m.level]+3 > left {
			m.text = number // no level is free
		}
		ends[m.level] = max(ends[m.level], right)
		out = append(out, m)
	}
	return out
}

// marks draws each call as its interval and a sign, with the row's number and, where there is room, what it did.
func (c *canvas) marks(rows []numbered) {
	const height = 20
	depth := 1
	for _, m := range c.place(rows) {
		depth = max(depth, m.level+1)
		y := c.y + 3 + float64(m.level*height)
		class := markClass(m.Row)
		c.printf(`<a href="#%sr%d" class="mark %s"><title>%s</title>`, c.id, m.number, class, esc(rowTitle(m.numbered)))
		c.printf(`<rect class="iv" x="%.1f" y="%.1f" width="%.1f" height="8" rx="4"/>`, m.x0, y+4, max(m.x1-m.x0, 1.5))
		if class == "note" {
			c.printf(`<path class="sign" d="M%.1f %.1fl6 6l-6 6l-6 -6z"/>`, m.x, y+2)
		} else {
			verb, _, _ := strings.Cut(class, " ")
			c.printf(`<circle class="sign" cx="%.1f" cy="%.1f" r="8"/><text class="g" x="%.1f" y="%.1f">%s</text>`, m.x, y+8, m.x, y+12.5, signs[verb])
			if strings.HasSuffix(class, "failed") {
				c.printf(`<path class="cross" d="M%.1f %.1fl12 12"/>`, m.x-6, y+2)
			}
		}
		anchor := "n"
		if m.leftward {
			anchor = "n left"
		}
		c.printf(`<text class="%s" x="%.1f" y="%.1f">%s</text></a>`, anchor, m.textX, y+12, esc(m.text))
	}
	c.y += float64(max(depth*height, 30) + 10)
}
