package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"strings"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

// What the page shows at most; the JSON form has everything.
const (
	maxPageRows          = 5000
	maxPageWindows       = 1000
	maxPageVisualization = 4 << 20 // bytes
)

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"clean": clean, "cleanAll": cleanAll, "span": span, "headline": headline, "why": why, "verdictWord": verdictWord,
	"whyLinearity": whyLinearity, "linearityWord": linearityWord, "linearityVerdict": linearityVerdict,
	"lengths": lengths, "windowTitle": windowTitle, "momentRange": momentRange, "clockRange": clockRange,
	"processKind": processKind, "duration": duration, "count": count, "markClass": markClass, "label": label,
}).Parse(pageHTML))

// WriteHTML writes the report as one page that needs nothing else: no network, no fonts, and no script but its own, which
// only fills the panel below a picture; the page's policy (CSP) forbids all others.
func WriteHTML(w io.Writer, r *Report) error {
	p := pageView{Report: r, CSS: template.CSS(pageCSS), JS: template.JS(pageJS)}
	scripts := []string{pageJS}
	for i, g := range r.Groups {
		v := groupView(g, fmt.Sprintf("g%d", i+1))
		if v.Visualization != "" {
			scripts = append(scripts, scriptsOf(v.Visualization)...)
		}
		p.Groups = append(p.Groups, v)
	}
	p.Policy = policy(scripts)
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return fmt.Errorf("writing the report as HTML: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// pageView is what the template shows.
type pageView struct {
	*Report
	Policy string
	CSS    template.CSS
	JS     template.JS
	Groups []htmlGroup
}

// htmlGroup is a group with what is computed for the page.
type htmlGroup struct {
	Group
	ID       string
	Pictures []Picture
	Days     []htmlDay
	Windows  []htmlWindow
	Common   string // the source that the timeline's rules have in common
	Omitted  int    // rows of the timeline not shown
	Unlisted int    // windows not shown
	Unshown  string // why Porcupine's view is left out
	Refused  []refusal
	Where    string // the operation at which the last explanation died
}

type htmlDay struct {
	Date string
	Rows []htmlRow
}

type htmlRow struct {
	Row
	Number int
	Result string
	Rules  string // empty where they are the same as before
	Marks  []string
	Inside bool // in a window
}

type htmlWindow struct {
	Window
	Title, Opened, Closed string
}

type refusal struct{ State, Reason string }

func groupView(g Group, id string) htmlGroup {
	v := htmlGroup{Group: g, ID: id, Pictures: pictures(g, id), Common: clean(commonSource(g.Timeline)), Omitted: g.TimelineOmits}
	if n := len(g.Timeline) - maxPageRows; n > 0 {
		v.Omitted += n
		g.Timeline = g.Timeline[:maxPageRows]
	}
	v.Days = htmlDays(g)
	rows, told := rowNumbers(g), map[string]bool{}
	for _, p := range g.Properties {
		for _, w := range p.Windows {
			if len(v.Windows) == maxPageWindows {
				v.Unlisted++
				continue
			}
			v.Windows = append(v.Windows, htmlWindow{w, windowTitle(p, w), opened(w, rows, told), closed(w, rows, told)})
		}
	}
	if u := g.Unordered; u != nil {
		v.Where = call(&u.At, rows)
		for i := range max(len(u.States), len(u.Refusals)) {
			var f refusal
			if i < len(u.States) {
				f.State = clean(u.States[i])
			}
			if i < len(u.Refusals) {
				f.Reason = clean(u.Refusals[i])
			}
			v.Refused = append(v.Refused, f)
		}
	}
	if n := len(g.Visualization); n > maxPageVisualization {
		v.Visualization = ""
		v.Unshown = fmt.Sprintf("Porcupine's view of this stretch has %d MiB and is left out.", n>>20)
	}
	return v
}

func htmlDays(g Group) []htmlDay {
	var days []htmlDay
	common := commonSource(g.Timeline)
	open := spans(g)
	number, previous := 0, ""
	var shown []string
	for _, d := range splitDays(g.Timeline) {
		out := htmlDay{Date: d.date}
		for _, row := range d.rows {
			number++
			h := htmlRow{Row: row, Number: number, Result: resultOf(row, common), Marks: newMarks(row, &shown), Inside: inside(row, open)}
			if rules := rulesAfter(row, common); row.Kind == "call" && rules != previous {
				h.Rules, previous = rules, rules
			}
			out.Rows = append(out.Rows, h)
		}
		days = append(days, out)
	}
	return days
}

// label joins what is known of a caller.
func label(parts ...string) string {
	var out []string
	for _, s := range parts {
		if s != "" {
			out = append(out, clean(s))
		}
	}
	return strings.Join(out, ", ")
}

// policy allows the given scripts, by their hashes, and nothing from anywhere.
func policy(scripts []string) string {
	var b strings.Builder
	b.WriteString("default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; script-src")
	for _, s := range scripts {
		sum := sha256.Sum256([]byte(s))
		fmt.Fprintf(&b, " 'sha256-%s'", base64.StdEncoding.EncodeToString(sum[:]))
	}
	return b.String()
}

var scriptElement = regexp.MustCompile(`(?s)<script>(.*?)</script>`)

// scriptsOf are the inline scripts of Porcupine's document. The frame it is shown in obeys the page's policy.
func scriptsOf(document string) []string {
	var out []string
	for _, m := range scriptElement.FindAllStringSubmatch(document, -1) {
		out = append(out, m[1])
	}
	return out
}
