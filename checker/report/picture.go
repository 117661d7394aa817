package report

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"slices"
	"strings"
	"unicode/utf8"

	"linearize.example/traces"
)

// The picture of a group: lanes for windows, needs, rules and processes over one time axis, as SVG.
const (
	pictureWidth = 1180
	gutterWidth  = 236 // labels stand left of it
	plotRight    = pictureWidth - 16

	// Beyond maxInstants a picture is an overview to scale, and windows get pictures of their own.
	maxInstants = 150
	maxDetails  = 12 // pictures of single windows
	aroundRows  = 12 // rows that such a picture shows before and after each end of its window

	maxLanes = 16 // of one kind
	maxDepth = 14 // marks above each other in one lane
)

// Picture is one figure of a group.
type Picture struct {
	Caption string
	SVG     template.HTML
}

// numbered is a row of the timeline with its number.
type numbered struct {
	Row
	number int
	// more are further observations of the same process at the same time, which share the mark.
	more []numbered
}

// pictures draws a group: one picture, or an overview and one picture for each of the first windows.
func pictures(g Group, id string) []Picture {
	var rows []numbered
	for i, row := range g.Timeline {
		rows = append(rows, numbered{Row: row, number: i + 1})
	}
	all := instantsOf(g, rows)
	if len(all) == 0 {
		return nil
	}
	whole := Range{all[0], all[len(all)-1]}
	if len(all) <= maxInstants {
		return []Picture{draw(g, id, rows, eventScale(all, gutterWidth, plotRight), whole, false,
			"Calls, rules and windows. Quiet time is shortened; the strip on top is to scale.")}
	}
	out := []Picture{draw(g, id, rows, linearScale(whole.Earliest, whole.Latest, gutterWidth, plotRight), whole, true,
		"The whole capture, to scale.")}
	drawn := map[Range]bool{}
	for _, p := range g.Properties {
		for _, w := range p.Windows {
			if drawn[w.Start] || len(out) > maxDetails {
				continue
			}
			drawn[w.Start] = true
			part := around(rows, w)
			instants := append(instantsOf(Group{}, part), windowInstants(w)...)
			if len(instants) == 0 {
				continue
			}
			out = append(out, draw(g, id, part, eventScale(instants, gutterWidth, plotRight), whole, false,
				windowTitle(p, w)+": "+lengths(w)+". "+momentRange(w.Start)+" UTC."))
		}
	}
	return out
}

func windowInstants(w Window) []Instant {
	list := []Instant{w.Start.Earliest, w.Start.Latest}
	if w.End != nil {
		list = append(list, w.End.Earliest, w.End.Latest)
	}
	return slices.DeleteFunc(list, func(i Instant) bool { return !bounded(i) })
}

// instantsOf collects what rows, bars, needs and windows say of time: ascending, each once.
func instantsOf(g Group, rows []numbered) []Instant {
	var list []Instant
	add := func(from Range, to *Range) {
		list = append(list, from.Earliest, from.Latest)
		if to != nil {
			list = append(list, to.Earliest, to.Latest)
		}
	}
	for _, row := range rows {
		add(row.At, nil)
	}
	for _, b := range g.Bars {
		add(b.From, b.To)
	}
	for _, n := range g.Needs {
		add(n.From, n.To)
	}
	for _, p := range g.Properties {
		for _, w := range p.Windows {
			add(w.Start, w.End)
		}
	}
	for _, i := range []*Instant{g.From, g.To} {
		if i != nil {
			list = append(list, *i)
		}
	}
	list = slices.DeleteFunc(list, func(i Instant) bool { return !bounded(i) })
	slices.Sort(list)
	return slices.Compact(list)
}

// around are the rows near the ends of a window.
func around(rows []numbered, w Window) []numbered {
	var out []numbered
	last := 0
	near := func(r Range) {
		from := slices.IndexFunc(rows, func(row numbered) bool { return row.At.Latest >= r.Earliest })
		if from < 0 {
			from = len(rows)
		}
		to := from
		for to < len(rows) && rows[to].At.Earliest <= r.Latest && to < from+aroundRows {
			to++
		}
		from, to = max(from-aroundRows, last), min(to+aroundRows, len(rows))
		if from < to {
			out = append(out, rows[from:to]...)
			last = to
		}
	}
	near(w.Start)
	if w.End != nil {
		near(*w.End)
	}
	return out
}

// canvas collects the elements of one picture.
type canvas struct {
	b     strings.Builder
	s     scale
	whole Range // the capture, for the strip to scale
	y     float64
	dense bool
	id    string
}

func (c *canvas) printf(format string, args ...any) { fmt.Fprintf(&c.b, format, args...) }

// esc makes a capture's string safe as a text or an attribute of the picture.
func esc(s string) string { return html.EscapeString(clean(s)) }

func draw(g Group, id string, rows []numbered, s scale, whole Range, dense bool, caption string) Picture {
	c := &canvas{s: s, whole: whole, dense: dense, id: id, y: 8}
	if !dense {
		c.strip(g, rows)
	}
	c.axis(g, rows)
	top := c.y
	c.windowLanes(g)
	c.needLanes(g)
	c.ruleLanes(g)
	c.processLanes(rows)
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%d" role="group" aria-label="%s">`,
		pictureWidth, c.y+6, pictureWidth, esc(caption))
	shade := &canvas{s: s}
	shade.shades(g, top, c.y)
	out.WriteString(shade.b.String())
	out.WriteString(c.b.String())
	out.WriteString("</svg>")
	return Picture{Caption: caption, SVG: template.HTML(out.String())}
}

// strip draws the whole capture to scale, above a picture that is not.
func (c *canvas) strip(g Group, rows []numbered) {
	s := linearScale(c.whole.Earliest, c.whole.Latest, gutterWidth, plotRight)
	c.label("to scale", "", c.y+9, "muted")
	c.printf(`<rect class="strip" x="%d" y="%.0f" width="%d" height="14"/>`, gutterWidth, c.y, plotRight-gutterWidth)
	for _, p := range g.Properties {
		for _, w := range p.Windows {
			from, to := windowSpan(w)
			c.printf(`<rect class="w %s" x="%.1f" y="%.0f" width="%.1f" height="14"/>`, w.Verdict,
				s.pos(from), c.y, max(s.pos(to)-s.pos(from), 1))
		}
	}
	last := -1.0
	for _, row := range rows {
		if x := s.pos(middle(row.At, s)); row.Kind == "call" && x-last >= 1 {
			c.printf(`<path class="pin %s" d="M%.1f %.0fv14"/>`, markClass(row.Row), x, c.y)
			last = x
		}
	}
	for _, t := range linearTicks(s, 8) {
		c.printf(`<path class="tick" d="M%.1f %.0fv4"/>`, t.x, c.y+14)
		c.tickText(t, c.y+27)
	}
	c.y += 42
}

// axis draws the instants of calls and windows, and the lengths of the wide gaps.
func (c *canvas) axis(g Group, rows []numbered) {
	var ticks []tick
	if c.dense {
		ticks = linearTicks(c.s, 10)
	} else {
		var wanted []Instant
		for _, p := range g.Properties {
			for _, w := range p.Windows {
				wanted = append(wanted, windowInstants(w)...)
			}
		}
		for _, row := range rows {
			wanted = append(wanted, row.At.Earliest)
		}
		ticks = eventTicks(c.s, wanted)
	}
	date := day(c.s.from())
	if last := day(c.s.to()); last != date {
		date += " – " + last
	}
	c.label(date+" UTC", "", c.y+27, "strong")
	for _, t := range ticks {
		if t.gap {
			c.printf(`<text class="t gap" x="%.1f" y="%.0f">%s</text>`, t.x, c.y+26, esc(t.text))
			continue
		}
		c.printf(`<path class="tick" d="M%.1f %.0fv14"/>`, t.x, c.y+14)
		c.tickText(t, c.y+10)
	}
	c.y += 32
	c.printf(`<path class="axis" d="M%d %.0fH%d"/>`, gutterWidth, c.y, plotRight)
	c.y += 4
}

// tickText centers a tick's label, as far as the picture's edge allows.
func (c *canvas) tickText(t tick, y float64) {
	half := 3.2 * float64(len(t.text))
	c.printf(`<text class="t" x="%.1f" y="%.0f">%s</text>`, min(t.x, pictureWidth-2-half), y, esc(t.text))
}

// label writes a lane's name and a second line into the gutter.
func (c *canvas) label(name, second string, y float64, class string) {
	c.printf(`<text class="l %s" x="%d" y="%.0f">%s%s</text>`, class, gutterWidth-10, y, fullTitle(name, 34), esc(shorten(name, 34)))
	if second != "" {
		c.printf(`<text class="l muted" x="%d" y="%.0f">%s%s</text>`, gutterWidth-10, y+13, fullTitle(second, 36), esc(shorten(second, 36)))
	}
}

func fullTitle(s string, n int) string {
	if shorten(s, n) == s {
		return ""
	}
	return "<title>" + esc(s) + "</title>"
}

// shorten replaces the middle of a long label by "…"; the whole stands in the label's title.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n/2]) + "…" + string(r[len(r)-(n-n/2-1):])
}

func (c *canvas) section(name string) {
	c.y += 6
	c.printf(`<text class="section" x="8" y="%.0f">%s</text>`, c.y+13, name)
}

func (c *canvas) more(n int, noun string) {
	if n > 0 {
		c.label(fmt.Sprintf("and %s not drawn", count(n, noun)), "", c.y+12, "muted")
		c.y += 18
	}
}

// windowSpan is the time in which a window may have been open.
func windowSpan(w Window) (from, to Instant) {
	if w.End == nil {
		return w.Start.Earliest, traces.Forever
	}
	return w.Start.Earliest, w.End.Latest
}

// shades tints the time of the windows behind the lanes: of never-empty, or of the first property that has any.
func (c *canvas) shades(g Group, top, bottom float64) {
	for _, p := range g.Properties {
		last := -1.0
		for _, w := range p.Windows {
			from, to := windowSpan(w)
			if x := c.s.pos(to); !c.s.outside(from, to) && x > last {
				start := max(c.s.pos(from), last)
				c.printf(`<rect class="shade %s" x="%.1f" y="%.0f" width="%.1f" height="%.0f"/>`, w.Verdict,
					start, top, max(x-start, 1), bottom-top)
				last = x
			}
		}
		if len(p.Windows) > 0 {
			return
		}
	}
}

// stretch is one bar of a lane.
type stretch struct {
	from    Range
	to      *Range
	class   string
	title   func() string // called if the bar is drawn
	text    string
	certain bool
}

// bar draws a stretch: solid where it certainly is, faded where it may be.
func (c *canvas) bar(st stretch, y, height, last float64) float64 {
	end := Range{traces.Forever, traces.Forever}
	if st.to != nil {
		end = *st.to
	}
	if c.s.outside(st.from.Earliest, end.Latest) {
		return last
	}
	x0, x1 := c.s.pos(st.from.Earliest), c.s.pos(end.Latest)
	if c.dense && x1-last < 1 {
		return last // nothing to be seen of it
	}
	a, b := c.s.pos(st.from.Latest), c.s.pos(end.Earliest)
	c.printf(`<g class="bar %s"><title>%s</title>`, st.class, esc(st.title()))
	c.printf(`<rect class="may" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2"/>`, x0, y, max(x1-x0, 1.5), height)
	if st.certain && b > a {
		c.printf(`<rect class="is" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2"/>`, a, y, b-a, height)
	}
	if !st.certain {
		a, b = x0, x1
	}
	if st.text != "" && x0 >= last && b-a > float64(7*displayWidth(st.text)+6) {
		c.printf(`<text class="in" x="%.1f" y="%.1f">%s</text>`, (a+b)/2, y+height-4, esc(st.text))
	}
	c.printf(`</g>`)
	return x1
}

// lane collects the stretches that share a label.
type lane struct {
	name, second string
	stretches    []stretch
}

// lanes draws one lane for each name, in the order of their first stretches.
func (c *canvas) lanes(section, noun string, height float64, lanes []lane) {
	if len(lanes) == 0 {
		return
	}
	c.section(section)
	for _, l := range lanes[:min(len(lanes), maxLanes)] {
		deep, baseline := max(height, 12), 4.0
		if l.second != "" {
			deep, baseline = max(height, 24), -2
		}
		center := c.y + deep/2 + 2
		c.label(l.name, l.second, center+baseline, "")
		last := -1.0
		for _, st := range l.stretches {
			last = c.bar(st, center-height/2, height, last)
		}
		c.y += deep + 8
		c.printf(`<path class="rule" d="M%d %.1fH%d"/>`, gutterWidth, c.y-2, plotRight)
	}
	c.more(len(lanes)-maxLanes, noun)
}

// collect sorts stretches into lanes.
func collect(lanes []lane, index map[string]int, name, second string, st stretch) []lane {
	key := name + "\x00" + second
	i, ok := index[key]
	if !ok {
		i = len(lanes)
		index[key] = i
		lanes = append(lanes, lane{name: name, second: second})
	}
	lanes[i].stretches = append(lanes[i].stretches, st)
	return lanes
}

// barOfWindow and barOfRule are the titles of their bars.
func barOfWindow(p Property, w Window) string {
	s := windowTitle(p, w) + ": " + lengths(w) + "; from " + momentRange(w.Start)
	if w.OpenedBy != nil {
		s += ", opened by " + call(w.OpenedBy, nil)
	}
	if w.ClosedBy != nil {
		s += ", closed by " + call(w.ClosedBy, nil)
	}
	return s
}

func barOfRule(b Bar) string {
	s := b.Rule + ", managed"
	if !b.Managed {
		s = b.Rule + ", not managed"
	}
	s += ", from " + momentRange(b.From)
	if b.To != nil {
		s += " to " + momentRange(*b.To)
	}
	if !b.Certain {
		s += "; may have been there"
	}
	return s
}

func (c *canvas) windowLanes(g Group) {
	var lanes []lane
	index := map[string]int{}
	for _, p := range g.Properties {
		for _, w := range p.Windows {
			name := p.Name
			if w.Subject != "" {
				name += " " + w.Subject
			}
			text := duration(w.CertainSeconds)
			if w.CertainSeconds == 0 {
				text = "up to " + duration(w.PossibleSeconds)
			}
			lanes = collect(lanes, index, name, "", stretch{from: w.Start, to: w.End, class: "win " + w.Verdict.String(),
				title: func() string { return barOfWindow(p, w) }, text: text, certain: w.Verdict == Violated})
		}
	}
	c.lanes("windows", "lane", 15, lanes)
}

func (c *canvas) needLanes(g Group) {
	var lanes []lane
	index := map[string]int{}
	for _, n := range g.Needs {
		lanes = collect(lanes, index, n.Port, "", stretch{from: n.From, to: n.To, class: "need",
			title: func() string { return n.Port + " needed: " + n.Why }, certain: n.Certain})
	}
	c.lanes("needed", "port", 6, lanes)
}

func (c *canvas) ruleLanes(g Group) {
	var lanes []lane
	index := map[string]int{}
	bars := slices.Clone(g.Bars)
	slices.SortStableFunc(bars, func(a, b Bar) int {
		if a.Managed != b.Managed {
			if a.Managed {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.From.Earliest, b.From.Earliest)
	})
	for _, b := range bars {
		if b.To != nil && c.s.outside(b.From.Earliest, b.To.Latest) {
			continue
		}
		name, from, _ := strings.Cut(b.Rule, " from ")
		if from != "" {
			from = "from " + from
		}
		class := "managed"
		if !b.Managed {
			class, from = "foreign", from+" (not managed)"
		}
		lanes = collect(lanes, index, name, from, stretch{from: b.From, to: b.To, class: class,
			title: func() string { return barOfRule(b) }, certain: b.Certain})
	}
	c.lanes("rules", "rule", 12, lanes)
}

// middle is the instant at which a mark stands: the middle of what the picture shows of its interval.
func middle(r Range, s scale) Instant {
	from, to := max(r.Earliest, s.from()), min(r.Latest, s.to())
	if !bounded(r.Latest) {
		to = from
	}
	return from + (to-from)/2
}
