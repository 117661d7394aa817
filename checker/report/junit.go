package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// The JUnit form, as CI systems read it.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	ClassName string        `xml:"classname,attr"`
	Name      string        `xml:"name,attr"`
	Failure   *junitOutcome `xml:"failure"`
	Error     *junitOutcome `xml:"error"`
	Skipped   *junitOutcome `xml:"skipped"`
	Output    string        `xml:"system-out,omitempty"`
}

type junitOutcome struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes one test suite for each group, and in it one test case for each property and for linearity. Violated
// is a failure; possible and unknown are errors, for they are no success; what holds only because the capture could not
// have violated it is skipped. Reads that are merely old do not fail linearity.
func WriteJUnit(w io.Writer, r *Report) error {
	all := junitSuites{Name: "linearize"}
	for _, g := range r.Groups {
		suite := junitSuite{Name: clean(g.GroupID)}
		rows, told := rowNumbers(g), map[string]bool{}
		for _, p := range g.Properties {
			var windows []string
			for _, win := range p.Windows {
				s := windowTitle(p, win) + ": " + lengths(win) + "; from " + momentRange(win.Start) + " UTC, " + opened(win, rows, told)
				if win.End != nil {
					s += "; to " + momentRange(*win.End) + ", " + closed(win, rows, told)
				}
				windows = append(windows, s)
			}
			suite.add(clean(p.Name), p.Verdict, p.Vacuous, strings.Join(why(p), "; "), windows)
		}
		var lags []string
		for _, l := range g.Linearity.ReadLags {
			lags = append(lags, clean(l.ID)+" read what was "+duration(l.Seconds)+" old")
		}
		v := linearityVerdict(g.Linearity)
		if onlyOldReads(g.Linearity) {
			v = Holds
		}
		suite.add("linearity", v, false, strings.Join(whyLinearity(g.Linearity), "; "), lags)
		all.Tests += suite.Tests
		all.Failures += suite.Failures
		all.Errors += suite.Errors
		all.Skipped += suite.Skipped
		all.Suites = append(all.Suites, suite)
	}
	b, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the report as JUnit: %w", err)
	}
	_, err = io.WriteString(w, xml.Header+string(b)+"\n")
	return err
}

func (s *junitSuite) add(name string, v Verdict, vacuous bool, message string, details []string) {
	c := junitCase{ClassName: s.Name, Name: name}
	outcome := &junitOutcome{Message: message, Type: v.String(), Text: strings.Join(details, "\n")}
	s.Tests++
	switch {
	case v == Violated:
		s.Failures++
		c.Failure = outcome
	case v != Holds:
		s.Errors++
		c.Error = outcome
	case vacuous:
		s.Skipped++
		c.Skipped = &junitOutcome{Message: "vacuous: " + message}
	default:
		c.Output = strings.Join(append([]string{message}, details...), "\n")
	}
	s.Cases = append(s.Cases, c)
}
