package simulate

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"

	"linearize.example/checker/report"
)

// Measures of the plot, in pixels.
const (
	plotWidth    = 960
	plotMargin   = 24
	labelWidth   = 250
	rowHeight    = 26
	curveHeight  = 280
	legendHeight = 22
)

// curveStyles tell designs apart by colour and by dashes; later designs use them again.
var curveStyles = []string{"", "7 4", "2 3", "9 3 2 3", "", "7 4", "2 3", "9 3 2 3"}

const plotStyle = `svg{background:#fff;color:#1d2228;font:13px system-ui,sans-serif}
text{fill:currentColor}.soft{fill:#5b6670}.grid{stroke:#d9dee3}.axis{stroke:#5b6670}.head{font-weight:600}
.bar{stroke:currentColor;stroke-width:1.5}.dot{fill:currentColor}.curve{fill:none;stroke-width:2}
.c0{color:#0b62a8}.c1{color:#b3420c}.c2{color:#0a7a5a}.c3{color:#8a3d86}.c4{color:#7a6200}.c5{color:#1f7f93}.c6{color:#a3224a}.c7{color:#4c5560}
.c0,.c1,.c2,.c3,.c4,.c5,.c6,.c7{stroke:currentColor}.dot{stroke:none}
@media(prefers-color-scheme:dark){svg{background:#14181c;color:#e6eaee}.soft{fill:#9aa6b1}.grid{stroke:#2e363d}.axis{stroke:#9aa6b1}
.c0{color:#6cb6ff}.c1{color:#ff9d6b}.c2{color:#5ed3ab}.c3{color:#e39be0}.c4{color:#e0c24a}.c5{color:#6fd3e6}.c6{color:#ff8fae}.c7{color:#b8c2cc}}
`

// plot writes SVG.
type plot struct {
	strings.Builder
	r *SweepReport
}

func (p *plot) add(format string, args ...any) { fmt.Fprintf(&p.Builder, format+"\n", args...) }

func (p *plot) text(x, y float64, class, anchor, text string) {
	p.add(`<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>`, x, y, class, anchor, html.EscapeString(text))
}

func (p *plot) line(x1, y1, x2, y2 float64, class string) {
	p.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>`, x1, y1, x2, y2, class)
}

// WritePlot draws the sweep: how often each design violates each property, and how long its windows last. The picture needs
// nothing else, and follows the reader's choice of light or dark.
func (r *SweepReport) WritePlot(w io.Writer) error {
	p := plot{r: r}
	sharesTop := 84.0
	sharesBottom := sharesTop + float64(rowHeight*len(r.Rows)) + 8
	curveTop := sharesBottom + 84
	legendTop := curveTop + curveHeight + 56
	height := legendTop + float64(legendHeight*((len(r.Rows)+2)/3)) + 12
	p.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%d" height="%.0f" role="img">`, plotWidth, height, plotWidth, height)
	p.add("<title>%s</title>\n<style>%s</style>", html.EscapeString(r.title()), plotStyle)
	p.text(plotMargin, 26, "head", "start", "How often each design violates each property, and how long it takes to repair")
	p.text(plotMargin, 46, "soft", "start", r.title())
	p.shares(sharesTop, sharesBottom)
	p.text(plotMargin, curveTop-30, "head", "start", "Share of the windows that are repaired within the time (Kaplan-Meier; a tick: the run ended first)")
	p.curves(curveTop, curveTop+curveHeight)
	for i := range r.Rows {
		x, y := plotMargin+float64(i%3)*(plotWidth-2*plotMargin)/3, legendTop+float64(i/3*legendHeight)
		p.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="curve c%d" stroke-dasharray="%s"/>`, x, y-4, x+34, y-4, i%len(curveStyles), curveStyles[i%len(curveStyles)])
		p.text(x+42, y, "", "start", fmt.Sprintf("%s (%d windows)", r.Rows[i].Design, len(r.Rows[i].Repairs)))
	}
	p.add("</svg>")
	_, err := io.WriteString(w, p.String())
	return err
}

// shares draws a column for each property: a dot at the share that was seen, a bar over the interval of the true one.
func (p *plot) shares(top, bottom float64) {
	width := (plotWidth - plotMargin - labelWidth) / float64(len(p.r.Properties))
	for c, name := range p.r.Properties {
		left := labelWidth + float64(c)*width
		at := func(share float64) float64 { return left + 8 + share*(width-56) }
		p.text(left+8, top-10, "head", "start", name)
		for _, tick := range []float64{0, 0.5, 1} {
			p.line(at(tick), top, at(tick), bottom, "grid")
			p.text(at(tick), bottom+16, "soft", "middle", fmt.Sprintf("%.0f %%", 100*tick))
		}
		for i := range p.r.Rows {
			s := p.r.Rows[i].Violated[c]
			y := top + (float64(i)+0.5)*rowHeight
			style := i % len(curveStyles)
			p.add(`<g class="c%d"><title>%s</title>`, style, html.EscapeString(fmt.Sprintf("%s, %s: %d of %d runs; 95 %% interval %.1f to %.1f %%",
				p.r.Rows[i].Design, name, s.Count, s.Of, 100*s.Low, 100*s.High)))
			p.line(at(s.Low), y, at(s.High), y, "bar")
			if s.Of > 0 {
				p.add(`<circle cx="%.1f" cy="%.1f" r="4" class="dot"/>`, at(float64(s.Count)/float64(s.Of)), y)
			}
			p.add("</g>")
		}
	}
	for i := range p.r.Rows {
		p.text(plotMargin, top+(float64(i)+0.5)*rowHeight+4, "", "start", p.r.Rows[i].Design)
	}
}

// curves draws each design's distribution of repair times on a logarithmic axis.
func (p *plot) curves(top, bottom float64) {
	low, high := math.Inf(1), 0.0
	for _, row := range p.r.Rows {
		for _, l := range row.Repairs {
			if l.Seconds > 0 {
				low, high = min(low, l.Seconds), max(high, l.Seconds)
			}
		}
	}
	left, right := float64(plotMargin+44), float64(plotWidth-plotMargin)
	y := func(share float64) float64 { return bottom - share*(bottom-top) }
	for _, share := range []float64{0, 0.25, 0.5, 0.75, 1} {
		p.line(left, y(share), right, y(share), "grid")
		p.text(left-8, y(share)+4, "soft", "end", fmt.Sprintf("%.0f %%", 100*share))
	}
	if high == 0 {
		p.text((left+right)/2, (top+bottom)/2, "soft", "middle", "No run had anything to repair.")
		return
	}
	low, high = low/1.3, high*1.3
	x := func(seconds float64) float64 {
		return left + (right-left)*math.Log(max(seconds, low)/low)/math.Log(high/low)
	}
	last := math.Inf(-1)
	for _, tick := range []float64{0.001, 0.01, 0.1, 1, 10, 60, 300, 1800, 3600, 6 * 3600, 24 * 3600, 240 * 3600} {
		if tick >= low && tick <= high && x(tick)-last > 40 {
			last = x(tick)
			p.line(last, top, last, bottom, "grid")
			p.text(last, bottom+18, "soft", "middle", report.Duration(tick))
		}
	}
	p.line(left, bottom, right, bottom, "axis")
	for i := range p.r.Rows {
		s := NewSurvival(p.r.Rows[i].Repairs)
		if s.Count == 0 {
			continue
		}
		style := i % len(curveStyles)
		path := fmt.Sprintf("M%.1f %.1f", left, y(0))
		share := 0.0
		for _, step := range s.Steps {
			share = 1 - step.Lasts
			path += fmt.Sprintf("H%.1fV%.1f", x(step.Seconds), y(share))
		}
		path += fmt.Sprintf("H%.1f", x(s.Longest))
		p.add(`<path d="%s" class="curve c%d" stroke-dasharray="%s"/>`, path, style, curveStyles[style])
		for _, l := range p.r.Rows[i].Repairs {
			if l.Censored {
				at := y(s.repaired(l.Seconds))
				p.line(x(l.Seconds), at-5, x(l.Seconds), at+5, fmt.Sprintf("bar c%d", style))
			}
		}
	}
}
