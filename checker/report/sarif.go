package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// The parts of SARIF 2.1.0 (OASIS, sarif-v2.1.0-os) that are written.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name  string      `json:"name"`
		Rules []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string       `json:"id"`
		ShortDescription sarifMessage `json:"shortDescription"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID              string            `json:"ruleId"`
		RuleIndex           int               `json:"ruleIndex"`
		Level               string            `json:"level"`
		Message             sarifMessage      `json:"message"`
		Locations           []sarifLocation   `json:"locations"`
		RelatedLocations    []sarifLocation   `json:"relatedLocations,omitempty"`
		PartialFingerprints map[string]string `json:"partialFingerprints"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
		Message  *sarifMessage  `json:"message,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
		Kind               string `json:"kind"`
	}
)

var sarifRules = []sarifRule{
	{"never-empty", sarifMessage{"While targets are registered, the managed rules are not empty."}},
	{"covered", sarifMessage{"The port of every registered target is inside some rule."}},
	{"repair-bound", sarifMessage{"What was lost is there again within the bound, restarts included."}},
	{"tight", sarifMessage{"After the last change no managed rule is left that nobody wants."}},
	{"linearity", sarifMessage{"The calls have the results that some order of them gives."}},
}

// WriteSARIF writes a SARIF 2.1.0 log: one result for each window, and one for each other property that is violated
// (error), possible or unknown (warning), or that holds only because the capture could not have violated it (note).
// Old reads are a note too.
// A result's location is the record of the call that opened the window.
func WriteSARIF(w io.Writer, r *Report) error {
	run := sarifRun{ColumnKind: "unicodeCodePoints", Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "linearize", Rules: append([]sarifRule{}, sarifRules...)}
	for _, g := range r.Groups {
		for _, p := range g.Properties {
			i := run.rule(p)
			run.Results = append(run.Results, propertyResults(r, g, p, i)...)
		}
		if v := linearityVerdict(g.Linearity); v != Holds {
			text := join(clean(g.GroupID)+": linearity "+linearityWord(g.Linearity), whyLinearity(g.Linearity))
			res := result(r, g, "linearity", len(sarifRules)-1, v, text, linearityRef(g))
			if onlyOldReads(g.Linearity) {
				res.Level = "note"
			}
			run.Results = append(run.Results, res)
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	log := sarifLog{"https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json", "2.1.0", []sarifRun{run}}
	if err := enc.Encode(log); err != nil {
		return fmt.Errorf("writing the report as SARIF: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// rule is the index of a property's rule. The report's own wording of the property goes before the short one.
func (run *sarifRun) rule(p Property) int {
	rules := run.Tool.Driver.Rules
	for i := range rules {
		if rules[i].ID == p.Name {
			if p.Meaning != "" {
				rules[i].ShortDescription.Text = clean(p.Meaning)
			}
			return i
		}
	}
	text := p.Meaning
	if text == "" {
		text = p.Name
	}
	run.Tool.Driver.Rules = append(rules, sarifRule{clean(p.Name), sarifMessage{clean(text)}})
	return len(rules)
}

func propertyResults(r *Report, g Group, p Property, rule int) []sarifResult {
	head := clean(g.GroupID) + ": " + p.Name + " " + verdictWord(p)
	if len(p.Windows) == 0 {
		if p.Verdict == Holds && !p.Vacuous {
			return nil
		}
		return []sarifResult{result(r, g, clean(p.Name), rule, p.Verdict, join(clean(head), why(p)), nil)}
	}
	var out []sarifResult
	rows := rowNumbers(g)
	for i, w := range p.Windows {
		text := clean(g.GroupID) + ": " + windowTitle(p, w) + ": " + lengths(w) + "; from " + momentRange(w.Start) + " UTC, " +
			opened(w, rows, map[string]bool{})
		if w.Text != "" {
			text += "; " + clean(w.Text)
		}
		res := result(r, g, clean(p.Name), rule, w.Verdict, text, w.OpenedBy)
		res.PartialFingerprints = fingerprint(g.GroupID, p.Name, w.Subject, refID(w.OpenedBy), w.Start.Earliest.String(), strconv.Itoa(i))
		if w.ClosedBy != nil {
			res.RelatedLocations = locations(r, w.ClosedBy, "closed by "+call(w.ClosedBy, rows))
		}
		out = append(out, res)
	}
	return out
}

func refID(ref *Ref) string {
	if ref == nil {
		return ""
	}
	return ref.ID
}

// linearityRef is the operation at which the last explanation died, or nil.
func linearityRef(g Group) *Ref {
	if g.Unordered == nil {
		return nil
	}
	return &g.Unordered.At
}

func join(head string, parts []string) string {
	if len(parts) == 0 {
		return head
	}
	return head + ": " + strings.Join(parts, "; ")
}

func result(r *Report, g Group, id string, rule int, v Verdict, text string, at *Ref) sarifResult {
	level := map[Verdict]string{Violated: "error", Possible: "warning", Unknown: "warning", Holds: "note"}[v]
	return sarifResult{RuleID: id, RuleIndex: rule, Level: level, Message: sarifMessage{text},
		Locations: locations(r, at, ""), PartialFingerprints: fingerprint(g.GroupID, id, refID(at))}
}

func fingerprint(parts ...string) map[string]string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return map[string]string{"linearize/v1": hex.EncodeToString(sum[:16])}
}

// locations are the records of an operation; without any, the first input of the report.
func locations(r *Report, ref *Ref, message string) []sarifLocation {
	out := []sarifLocation{}
	if ref != nil {
		for _, s := range ref.Sources {
			out = append(out, location(r, s, message))
		}
	}
	if len(out) == 0 && len(r.Inputs) > 0 {
		out = append(out, location(r, r.Inputs[0].Path, message))
	}
	return out
}

// location splits a source, "cloudtrail.json record 6", into the input's path and the position. A line becomes a region;
// a record, which need not be a line, a logical location.
func location(r *Report, source, message string) sarifLocation {
	file, position := source, ""
	best := -1
	for _, in := range r.Inputs {
		if rest, ok := strings.CutPrefix(source, in.Path); ok && len(in.Path) > best && (rest == "" || rest[0] == ' ') {
			file, position, best = in.Path, strings.TrimSpace(rest), len(in.Path)
		}
	}
	loc := sarifLocation{Physical: &sarifPhysical{Artifact: sarifArtifact{URI: fileURI(file)}}}
	if n, err := strconv.Atoi(strings.TrimPrefix(position, "line ")); err == nil && n > 0 && strings.HasPrefix(position, "line ") {
		loc.Physical.Region = &sarifRegion{StartLine: n}
	} else if position != "" {
		loc.Logical = []sarifLogical{{FullyQualifiedName: clean(position), Kind: "element"}}
	}
	if message != "" {
		loc.Message = &sarifMessage{message}
	}
	return loc
}

// fileURI is a path as a URI reference: relative paths stay relative.
func fileURI(file string) string {
	if file == "-" || file == "" {
		return "stdin"
	}
	file = path.Clean(strings.ReplaceAll(clean(file), `\`, "/"))
	u := url.URL{Path: file}
	if path.IsAbs(file) {
		u.Scheme = "file"
		return "file://" + u.EscapedPath()
	}
	return u.String()
}
