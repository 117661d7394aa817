package explain

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Schema names the form of the JSON report.
const Schema = "linearize.explain/v1"

// Report is everything that was asked.
type Report struct {
	Schema   string          `json:"schema"`
	Subjects []SubjectReport `json:"subjects"`
}

// SubjectReport holds the answers for one group's rules with one protocol and source.
type SubjectReport struct {
	GroupID    string `json:"group_id"`
	Protocol   string `json:"protocol"`
	Source     string `json:"source"`
	Operations int    `json:"operations"`
	// Observations counts what logs tell besides calls, as far as an explanation has to contain it.
	Observations int      `json:"observations,omitempty"`
	Assumptions  []string `json:"assumptions"`
	// Tried says which environments were tried besides those asked for.
	Tried   string    `json:"tried,omitempty"`
	Results []*Result `json:"results"`
}

// NewSubjectReport joins a subject with its answers.
func NewSubjectReport(s *Subject, results []*Result) SubjectReport {
	return SubjectReport{GroupID: s.Group, Protocol: s.Protocol, Source: s.Source, Operations: s.Operations(), Observations: s.Observations(),
		Assumptions: append([]string{}, s.Notes...), Tried: s.Tried, Results: results}
}

// Conforms answers whether the design explains every subject in one environment at least: DoesNot when some subject is
// explained in none, Unknown when that is not known.
func (r *Report) Conforms(design string) Verdict {
	verdict := Explains
	if len(r.Subjects) == 0 {
		return Unknown
	}
	for _, s := range r.Subjects {
		best := DoesNot
		for _, x := range s.Results {
			if x.Design != design && design != "" {
				continue
			}
			if x.Verdict == Explains || x.Verdict == Unknown && best == DoesNot {
				best = x.Verdict
			}
		}
		switch {
		case best == DoesNot:
			verdict = DoesNot
		case best == Unknown && verdict == Explains:
			verdict = Unknown
		}
	}
	return verdict
}

// WriteJSON writes the report.
func WriteJSON(w io.Writer, r *Report) error {
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

const width = 100

// WriteText writes the report for people: a line for each design in each environment, and the shortest explanation by the
// first design that has one, of others when they are few.
func WriteText(w io.Writer, r *Report) error {
	var b strings.Builder
	for i, s := range r.Subjects {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s, %s from %s: %d operations", s.GroupID, s.Protocol, s.Source, s.Operations)
		if s.Observations > 0 {
			fmt.Fprintf(&b, ", %d observations", s.Observations)
		}
		b.WriteByte('\n')
		for _, a := range s.Assumptions {
			wrap(&b, "  ", "  ", a)
		}
		if s.Tried != "" {
			wrap(&b, "  ", "  ", s.Tried)
		}
		b.WriteByte('\n')
		s.table(&b)
		s.alike(&b)
		s.stories(&b)
	}
	if len(r.Subjects) == 0 {
		b.WriteString("no group with managed rules\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *SubjectReport) table(b *strings.Builder) {
	first, second := 0, 0
	for _, r := range s.Results {
		first, second = max(first, len(r.Design)), max(second, len(r.Environment))
	}
	for _, r := range s.Results {
		head := fmt.Sprintf("%-*s  %-*s  ", first, r.Design, second, r.Environment)
		indent := strings.Repeat(" ", first+second+4)
		switch {
		case r.From != "":
			wrap(b, head, indent, fmt.Sprintf("explains, as in %s", r.From))
		case r.Verdict == Explains:
			text := fmt.Sprintf("explains, with %d steps inferred", r.Inferred)
			if r.WithoutTargets {
				text += "; the calls on targets are left out"
			}
			wrap(b, head, indent, text)
		default:
			text := fmt.Sprintf("%s: %d of %d", r.Verdict, r.Done, r.Of)
			if r.Verdict == Unknown {
				text = fmt.Sprintf("unknown (%s): %d of %d", r.Bound, r.Done, r.Of)
			}
			if r.Stuck != "" {
				text += ", then not " + r.Stuck
			}
			wrap(b, head, indent, text)
			for _, why := range r.Why[:min(len(r.Why), 2)] {
				wrap(b, indent+"- ", indent+"  ", why)
			}
		}
	}
}

// alike names the designs between which the record does not decide.
func (s *SubjectReport) alike(b *strings.Builder) {
	var environments []string
	designs := map[string][]string{}
	for _, r := range s.Results {
		if designs[r.Environment] == nil {
			environments = append(environments, r.Environment)
		}
		if r.Verdict == Explains {
			designs[r.Environment] = append(designs[r.Environment], r.Design)
		} else if designs[r.Environment] == nil {
			designs[r.Environment] = []string{}
		}
	}
	for _, e := range environments {
		if list := designs[e]; len(list) > 1 {
			wrap(b, "", "  ", fmt.Sprintf("In %s nothing that was recorded tells these apart: %s.", e, strings.Join(list, ", ")))
		}
	}
}

// few is how many designs all have their stories told.
const few = 2

func (s *SubjectReport) stories(b *strings.Builder) {
	told := map[string]bool{}
	designs := map[string]bool{}
	for _, r := range s.Results {
		designs[r.Design] = true
	}
	for _, r := range s.Results {
		if len(r.Story) == 0 || told[r.Design] || len(told) > 0 && len(designs) > few {
			continue
		}
		told[r.Design] = true
		fmt.Fprintf(b, "\nThe shortest explanation by %s in %s. Seen is marked by *; the rest is inferred.\n", r.Design, r.Environment)
		for _, l := range r.Story {
			if l.Seen {
				wrap(b, fmt.Sprintf("  * %-12s  ", l.At), strings.Repeat(" ", 18), l.Text)
			} else {
				wrap(b, strings.Repeat(" ", 18), strings.Repeat(" ", 20), l.Text)
			}
		}
		if len(r.Facts) > 0 {
			b.WriteString("In it\n")
			for _, f := range r.Facts {
				wrap(b, "  - ", "    ", f)
			}
		}
	}
}

// wrap writes text in lines of at most width columns.
func wrap(b *strings.Builder, head, indent, text string) {
	line := head
	fresh := true
	for _, word := range strings.Fields(text) {
		if !fresh && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line, fresh = indent, true
		}
		if !fresh {
			line += " "
		}
		line += word
		fresh = false
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}
