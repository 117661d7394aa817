package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// No format lets a string of a capture through that a terminal, a browser or a viewer might obey.
func TestHostileStringsAreInert(t *testing.T) {
	for name, write := range writers {
		out := string(render(t, write, hostileReport(hostile)))
		if !utf8.ValidString(out) {
			t.Errorf("%s: invalid UTF-8", name)
		}
		for _, r := range out {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%s: raw %U", name, r)
				break
			}
		}
		if !strings.Contains(out, "torvalds") {
			t.Errorf("%s: the string is not there at all", name)
		}
	}
}

func TestTextKeepsToItsWidth(t *testing.T) {
	for name, r := range samples() {
		for _, width := range []int{0, 10, 80, 90, 100, 500} {
			var b bytes.Buffer
			if err := WriteText(&b, r, TextOptions{Width: width}); err != nil {
				t.Fatal(err)
			}
			limit := max(width, minWidth)
			if width == 0 || width > maxWidth {
				limit = maxWidth
			}
			for i, l := range strings.Split(b.String(), "\n") {
				if n := displayWidth(l); n > limit {
					t.Errorf("%s at %d: line %d has %d columns: %q", name, width, i+1, n, l)
				}
			}
		}
	}
}

var escapeSequence = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Colours change nothing but colours.
func TestTextInColor(t *testing.T) {
	for name, r := range samples() {
		var plain, colored bytes.Buffer
		if err := WriteText(&plain, r, TextOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := WriteText(&colored, r, TextOptions{Color: true}); err != nil {
			t.Fatal(err)
		}
		if plain.String() == colored.String() {
			t.Errorf("%s: no colours", name)
		}
		// A gutter in colour keeps the spaces behind it at the end of a line.
		stripped := regexp.MustCompile(` +\n`).ReplaceAllString(escapeSequence.ReplaceAllString(colored.String(), ""), "\n")
		if stripped != plain.String() {
			t.Errorf("%s: more than colours differs", name)
		}
	}
}

var (
	openTag   = regexp.MustCompile(`<[a-zA-Z!/][^>]*>`)
	handler   = regexp.MustCompile(`\son[a-z]+\s*=`)
	srcdoc    = regexp.MustCompile(`srcdoc="[^"]*"`)
	reference = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
)

// Whatever the strings are, the page has the same elements.
func TestHTMLHasNoElementsFromData(t *testing.T) {
	elements := func(s string) []string {
		var out []string
		page := string(render(t, WriteHTML, hostileReport(s)))
		for _, tag := range openTag.FindAllString(srcdoc.ReplaceAllString(page, ""), -1) {
			if handler.MatchString(attributesOnly(tag)) {
				t.Errorf("a handler in %s", tag)
			}
			out = append(out, strings.FieldsFunc(tag, func(r rune) bool { return r == ' ' || r == '>' })[0])
		}
		for _, m := range reference.FindAllStringSubmatch(page, -1) {
			if !strings.HasPrefix(m[1], "#") {
				t.Errorf("the page refers to %q", m[1])
			}
		}
		return out
	}
	want := strings.Join(elements(strings.Repeat("harmless ", 40)), " ")
	for _, s := range []string{hostile, strings.Repeat(`"><b onclick="x">`, 30), strings.Repeat(`'--></script><script>`, 30)} {
		if got := strings.Join(elements(s), " "); got != want {
			t.Errorf("%.40q changes the elements of the page", s)
		}
	}
}

// attributesOnly removes the values of attributes from a tag.
func attributesOnly(tag string) string {
	return regexp.MustCompile(`"[^"]*"`).ReplaceAllString(tag, `""`)
}

func TestHTMLPolicyAllowsExactlyTheScriptsOnThePage(t *testing.T) {
	page := string(render(t, WriteHTML, samples()["unordered"]))
	own := scriptsOf(page)
	if len(own) != 1 || own[0] != pageJS {
		t.Fatalf("the page has %d scripts", len(own))
	}
	if got := strings.Count(page, "&#39;sha256-"); got != 2 {
		t.Errorf("the policy names %d scripts, want the page's and Porcupine's", got)
	}
	for _, s := range []string{"default-src &#39;none&#39;", `sandbox="allow-scripts"`, `<html lang="en">`} {
		if !strings.Contains(page, s) {
			t.Errorf("no %s", s)
		}
	}
	if strings.Contains(page, "unsafe-eval") || strings.Contains(page, "script-src &#39;unsafe-inline&#39;") {
		t.Error("the policy allows scripts that are not named")
	}
}

// A long capture gives a page that a browser can open.
func TestHTMLOfALongCapture(t *testing.T) {
	r := longReport(100_000)
	page := render(t, WriteHTML, r)
	if n := len(page); n > 6<<20 {
		t.Errorf("the page has %d MiB", n>>20)
	}
	if n := bytes.Count(page, []byte("<figure>")); n < 2 || n > maxDetails+1 {
		t.Errorf("%d pictures", n)
	}
	if !bytes.Contains(page, []byte("95000 rows left out")) {
		t.Error("the page does not say what it leaves out")
	}
	if n := len(render(t, WriteMarkdown, r)); n > 65_536 {
		t.Errorf("the Markdown has %d bytes", n)
	}
}

// longReport has n calls in turn, one process after the other, and a window after every thousandth.
func longReport(n int) *Report {
	r := vacuousReport()
	g := &r.Groups[0]
	g.Timeline, g.Bars = nil, nil
	now := at("00:00:00")
	for i := range n {
		now = now.Add(time.Duration(1+i%7) * time.Second)
		row := Row{Kind: "call", ID: fmt.Sprintf("seq %d", i), At: Range{now, now.Add(20 * time.Millisecond)}, Process: fmt.Sprintf("lbc-%d", i%3),
			Summary: "authorize tcp 80-80", Result: "ok", Rules: []string{"tcp 80-80 from sg-0ddd"}}
		if i%2 == 1 {
			row.Summary, row.Rules = "revoke tcp 80-80", []string{}
			g.Bars = append(g.Bars, Bar{Rule: "tcp 80-80 from sg-0ddd", Managed: true, From: g.Timeline[i-1].At, To: &row.At, Certain: true})
		}
		if i%1000 == 1 {
			g.Properties[0].Windows = append(g.Properties[0].Windows, Window{Verdict: Violated, Start: row.At,
				End: &Range{now.Add(time.Second), now.Add(2 * time.Second)}, CertainSeconds: 0.98, PossibleSeconds: 2,
				OpenedBy: &Ref{ID: row.ID, Process: row.Process, Summary: row.Summary}})
		}
		g.Timeline = append(g.Timeline, row)
	}
	g.To = &now
	return r
}

func TestJSONIsStable(t *testing.T) {
	for name, r := range samples() {
		var v map[string]any
		if err := json.Unmarshal(render(t, WriteJSON, r), &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if v["schema"] != Schema {
			t.Errorf("%s: schema %v", name, v["schema"])
		}
		for _, g := range v["groups"].([]any) {
			checkLists(t, name, g)
			for _, p := range g.(map[string]any)["properties"].([]any) {
				p := p.(map[string]any)
				for _, key := range []string{"bound_seconds", "worst_seconds", "statistics", "promise"} {
					if _, ok := p[key]; ok != (p["name"] == "repair-bound") {
						t.Errorf("%s: %v has %s: %v", name, p["name"], key, ok)
					}
				}
			}
		}
	}
	// Strings come through unchanged, but for invalid UTF-8.
	var back struct{ Summary string }
	if err := json.Unmarshal(render(t, WriteJSON, hostileReport(hostile)), &back); err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(hostile, "\xff\xfe", "\ufffd\ufffd"); back.Summary != want {
		t.Errorf("got %q, want %q", back.Summary, want)
	}
}

// checkLists fails for a null where a list belongs.
func checkLists(t *testing.T, name string, v any) {
	t.Helper()
	nullable := map[string]bool{"rules": true, "end": true, "to": true, "from": true, "opened_by": true, "closed_by": true, "unordered": true,
		"worst_seconds": true, "bound_seconds": true, "statistics": true, "promise": true, "read_lag_quantiles": true}
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if x == nil && !nullable[k] {
				t.Errorf("%s: %s is null", name, k)
			}
			checkLists(t, name, x)
		}
	case []any:
		for _, x := range v {
			checkLists(t, name, x)
		}
	}
}

func TestJUnitCounts(t *testing.T) {
	tests := []struct {
		sample                    string
		failures, errors, skipped int
	}{{"violated", 3, 0, 0}, {"vacuous", 0, 0, 3}, {"unordered", 1, 4, 0}, {"possible", 0, 3, 0}}
	for _, tt := range tests {
		out := render(t, WriteJUnit, samples()[tt.sample])
		var v junitSuites
		if err := xml.Unmarshal(out, &v); err != nil {
			t.Fatal(err)
		}
		if v.Tests != 5 || v.Failures != tt.failures || v.Errors != tt.errors || v.Skipped != tt.skipped {
			t.Errorf("%s: %d tests, %d failures, %d errors, %d skipped", tt.sample, v.Tests, v.Failures, v.Errors, v.Skipped)
		}
		for _, element := range []struct {
			name string
			n    int
		}{{"<failure", tt.failures}, {"<error", tt.errors}, {"<skipped", tt.skipped}, {"<testcase", 5}} {
			if got := bytes.Count(out, []byte(element.name+" ")); got != element.n {
				t.Errorf("%s: %d times %s, want %d", tt.sample, got, element.name, element.n)
			}
		}
	}
	decoder := xml.NewDecoder(bytes.NewReader(render(t, WriteJUnit, hostileReport(hostile))))
	for {
		if _, err := decoder.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestSARIF(t *testing.T) {
	for name, r := range samples() {
		var log sarifLog
		decoder := json.NewDecoder(bytes.NewReader(render(t, WriteSARIF, r)))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&log); err != nil {
			t.Fatal(err)
		}
		run := log.Runs[0]
		prints := map[string]bool{}
		for _, res := range run.Results {
			if res.RuleIndex >= len(run.Tool.Driver.Rules) || run.Tool.Driver.Rules[res.RuleIndex].ID != res.RuleID {
				t.Errorf("%s: result of %q points at rule %d", name, res.RuleID, res.RuleIndex)
			}
			if len(res.Locations) == 0 || res.Message.Text == "" {
				t.Errorf("%s: a result of %q without location or message", name, res.RuleID)
			}
			if p := res.PartialFingerprints["linearize/v1"]; p == "" || prints[p] {
				t.Errorf("%s: fingerprint %q is empty or not unique", name, p)
			} else {
				prints[p] = true
			}
		}
		if (r.Verdict == Violated) != strings.Contains(string(render(t, WriteSARIF, r)), `"level": "error"`) && name != "unordered" {
			t.Errorf("%s: an error is reported where nothing is violated, or none where something is", name)
		}
	}
}

func TestSARIFLocations(t *testing.T) {
	r := &Report{Inputs: []Input{{Path: "a"}, {Path: "a b/history.ndjson"}, {Path: "/var/log/x.log"}}}
	tests := []struct {
		source, uri string
		line        int
		element     string
	}{
		{"a record 6", "a", 0, "record 6"},
		{"a b/history.ndjson line 5", "a%20b/history.ndjson", 5, ""},
		{"/var/log/x.log line 1", "file:///var/log/x.log", 1, ""},
		{"- line 2", "-%20line%202", 0, ""},
		{"c:d", "./c:d", 0, ""},
	}
	for _, tt := range tests {
		loc := location(r, tt.source, "")
		line, element := 0, ""
		if loc.Physical.Region != nil {
			line = loc.Physical.Region.StartLine
		}
		if len(loc.Logical) > 0 {
			element = loc.Logical[0].FullyQualifiedName
		}
		if loc.Physical.Artifact.URI != tt.uri || line != tt.line || element != tt.element {
			t.Errorf("%q: %q line %d element %q", tt.source, loc.Physical.Artifact.URI, line, element)
		}
	}
}

var active = []*regexp.Regexp{
	regexp.MustCompile(`(^|[^&\w])@\w`), regexp.MustCompile(`(^|[^&\w])#\d`), regexp.MustCompile(`https?://`), regexp.MustCompile(`www\.`),
	regexp.MustCompile(`<(script|img|/|!)`), regexp.MustCompile(`(^|[^\\!])\[a\]\(`), regexp.MustCompile(`\w@\w`),
}

// Outside of code, which GitHub leaves alone, Markdown has no mention, link or element of the capture's.
func TestMarkdownHasNoLinks(t *testing.T) {
	hostiles := []string{hostile, `a \| @torvalds`, "` @torvalds", "`` | @torvalds `", "@torvalds", "#1", "www.evil.example", "GH-1 owner/repo#2", "| @torvalds |"}
	for _, s := range hostiles {
		out := string(render(t, WriteMarkdown, hostileReport(s)))
		fence := regexp.MustCompile("(?s)\n(````*)\n.*?\n````*\n").ReplaceAllString(out, "\n")
		plain := regexp.MustCompile("`[^`\n|]*`").ReplaceAllString(fence, "")
		plain = strings.NewReplacer("<details>", "", "</details>", "", "<summary>", "", "</summary>", "").Replace(plain)
		for _, re := range active {
			if m := re.FindString(plain); m != "" {
				t.Errorf("%.30q: %q is active", s, m)
			}
		}
	}
}
