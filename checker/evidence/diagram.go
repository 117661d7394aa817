package evidence

import (
	"fmt"
	"html"
	"strings"
)

// Diagram is a sequence diagram: who does what, in order, from top to bottom, and what the group's
// rules are after each step.
type Diagram struct {
	Title string
	Lanes []string
	Rows  []Row
	End   string // the last line, set apart: what is violated
}

// Row is one step.
type Row struct {
	From, To int    // lanes; equal for a step that only its own lane takes
	Text     string // what is done or answered
	Failed   bool   // the call failed
	After    string // the rules after the step; shown where it differs from the row before
}

// Sizes of the drawing, in pixels.
const (
	laneWidth  = 196
	leftEdge   = 44
	headHeight = 84
	rowHeight  = 42
	rulesWidth = 210
	charWidth  = 6.6 // of the 12-pixel text, on average
)

// The colours hold on a light and on a dark page; the page's preference chooses.
const style = `<style>
text{font:12px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#1f2328}
.title{font-size:15px;font-weight:600}.lane{font-weight:600;text-anchor:middle}.mid{text-anchor:middle}
.num,.head{fill:#656d76}.num{text-anchor:end}.bad{fill:#cf222e;font-weight:600}
.over{paint-order:stroke;stroke:#fff;stroke-width:5px;text-anchor:middle}
.page{fill:#fff}.life{stroke:#d0d7de}.zebra{fill:#f6f8fa}
.call{stroke:#0969da;fill:none;stroke-width:1.5}.tip{fill:#0969da}
.fail{stroke:#cf222e;fill:none;stroke-width:1.5;stroke-dasharray:5 3}.failtip{fill:#cf222e}
.box{fill:#ddf4ff;stroke:#54aeff}.alarm{fill:#ffebe9;stroke:#cf222e}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.over{stroke:#0d1117}.num,.head{fill:#8d96a0}.bad{fill:#ff7b72}
.page{fill:#0d1117}.life{stroke:#3d444d}.zebra{fill:#151b23}
.call{stroke:#4493f8}.tip{fill:#4493f8}.fail{stroke:#ff7b72}.failtip{fill:#ff7b72}
.box{fill:#121d2f;stroke:#1f6feb}.alarm{fill:#25171c;stroke:#ff7b72}}
</style>`

// SVG draws the diagram. Equal diagrams give equal bytes.
func (d Diagram) SVG() string {
	var b strings.Builder
	width := leftEdge + laneWidth*len(d.Lanes) + rulesWidth
	height := headHeight + rowHeight*len(d.Rows) + 56
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n",
		width, height, width, height, html.EscapeString(d.Title))
	b.WriteString(style + "\n")
	fmt.Fprintf(&b, `<rect class="page" width="%d" height="%d"/>`+"\n", width, height)
	text(&b, "title", 16, 26, d.Title)
	for i := 1; i < len(d.Rows); i += 2 {
		fmt.Fprintf(&b, `<rect class="zebra" x="0" y="%d" width="%d" height="%d"/>`+"\n", headHeight+rowHeight*i, width, rowHeight)
	}
	bottom := headHeight + rowHeight*len(d.Rows)
	for i, name := range d.Lanes {
		text(&b, "lane", laneX(i), headHeight-26, name)
		fmt.Fprintf(&b, `<line class="life" x1="%d" y1="%d" x2="%d" y2="%d"/>`+"\n", laneX(i), headHeight-16, laneX(i), bottom)
	}
	rulesX := leftEdge + laneWidth*len(d.Lanes)
	text(&b, "head", rulesX, headHeight-26, "rules of the group afterwards")
	before := ""
	for i, r := range d.Rows {
		y := headHeight + rowHeight*i
		text(&b, "num", leftEdge-14, y+26, fmt.Sprint(i))
		r.draw(&b, y, len(d.Lanes))
		if r.After != before {
			text(&b, "", rulesX, y+26, r.After)
			before = r.After
		}
	}
	fmt.Fprintf(&b, `<rect class="alarm" x="16" y="%d" width="%d" height="30" rx="4"/>`+"\n", bottom+12, width-32)
	text(&b, "bad", 28, bottom+32, d.End)
	b.WriteString("</svg>\n")
	return b.String()
}

func laneX(lane int) int { return leftEdge + laneWidth*lane + laneWidth/2 }

// draw puts a row's text, with an arrow between two lanes or in a box on one.
func (r Row) draw(b *strings.Builder, y, lanes int) {
	if r.From == r.To {
		w := int(charWidth*float64(len(r.Text))) + 16
		x := laneX(r.From) - w/2
		x = min(max(x, leftEdge), leftEdge+laneWidth*lanes-w)
		class := "box"
		if r.Failed {
			class = "alarm"
		}
		fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="%d" height="26" rx="4"/>`+"\n", class, x, y+8, w)
		text(b, "mid", x+w/2, y+25, r.Text)
		return
	}
	x1, x2 := laneX(r.From), laneX(r.To)
	class, tip, back := "call", "tip", -8
	if r.Failed {
		class, tip = "fail", "failtip"
	}
	if x2 < x1 {
		back = 8
	}
	text(b, "over", (x1+x2)/2, y+20, r.Text)
	fmt.Fprintf(b, `<line class="%s" x1="%d" y1="%d" x2="%d" y2="%d"/>`+"\n", class, x1, y+30, x2+back, y+30)
	fmt.Fprintf(b, `<path class="%s" d="M%d %d l%d -4 v8 z"/>`+"\n", tip, x2, y+30, back)
}

func text(b *strings.Builder, class string, x, y int, s string) {
	fmt.Fprintf(b, `<text`)
	if class != "" {
		fmt.Fprintf(b, ` class="%s"`, class)
	}
	fmt.Fprintf(b, ` x="%d" y="%d">%s</text>`+"\n", x, y, html.EscapeString(s))
}
