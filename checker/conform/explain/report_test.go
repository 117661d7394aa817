package explain

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"linearize.example/model"
)

var update = flag.Bool("update", false, "write the golden files")

func judged(t *testing.T, name string, designs, envs []string) *Report {
	t.Helper()
	_, s := read(t, name)
	var ds []model.Design
	for _, d := range designs {
		design, err := model.DesignNamed(d)
		if err != nil {
			t.Fatal(err)
		}
		ds = append(ds, design)
	}
	var es []Environment
	for _, e := range envs {
		env, err := EnvironmentNamed(e)
		if err != nil {
			t.Fatal(err)
		}
		es = append(es, env)
	}
	results, err := Judge(context.Background(), s, ds, es, Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Report{Schema: Schema, Subjects: []SubjectReport{NewSubjectReport(s, results)}}
}

func TestReports(t *testing.T) {
	r := judged(t, "incident-2026-08-28", []string{"v3.4.0", "confirm-authorize"}, []string{"fresh-reads", "old-reads", "older-reads"})
	for file, write := range map[string]func(io.Writer, *Report) error{"incident.txt": WriteText, "incident.json": WriteJSON} {
		var b bytes.Buffer
		if err := write(&b, r); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", file)
		if *update {
			if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), b.String()); diff != "" {
			t.Errorf("%s (-want +got, see -update):\n%s", file, diff)
		}
		for _, line := range strings.Split(b.String(), "\n") {
			if file == "incident.txt" && utf8.RuneCountInString(line) > width {
				t.Errorf("longer than %d columns: %s", width, line)
			}
		}
	}
}

func TestConforms(t *testing.T) {
	result := func(design string, v Verdict) *Result { return &Result{Design: design, Verdict: v} }
	report := func(subjects ...[]*Result) *Report {
		r := &Report{}
		for _, s := range subjects {
			r.Subjects = append(r.Subjects, SubjectReport{Results: s})
		}
		return r
	}
	for _, c := range []struct {
		name, design string
		report       *Report
		want         Verdict
	}{
		{"no subject", "", report(), Unknown},
		{"one environment is enough", "a", report([]*Result{result("a", DoesNot), result("a", Explains)}), Explains},
		{"another design does not count", "a", report([]*Result{result("a", DoesNot), result("b", Explains)}), DoesNot},
		{"any design", "", report([]*Result{result("a", DoesNot), result("b", Explains)}), Explains},
		{"undecided", "a", report([]*Result{result("a", DoesNot), result("a", Unknown)}), Unknown},
		{"every subject", "a", report([]*Result{result("a", Explains)}, []*Result{result("a", DoesNot)}), DoesNot},
		{"no is worse than undecided", "a", report([]*Result{result("a", Unknown)}, []*Result{result("a", DoesNot)}), DoesNot},
	} {
		if got := c.report.Conforms(c.design); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestBoundsAreSaid: what was not decided is unknown, with the bound.
func TestBoundsAreSaid(t *testing.T) {
	_, s := read(t, "incident-2026-08-28")
	if r := explained(t, s, "v3.4.0", "fresh-reads", Options{States: 100}); r.Verdict != Unknown || r.Bound != "100 states" {
		t.Errorf("%s, bound %q", r.Verdict, r.Bound)
	}
	wide := *s
	for port := range int32(20) {
		wide.ports = append(wide.ports, 9000+port)
	}
	if r := explained(t, &wide, "v3.4.0", "fresh-reads", Options{}); r.Verdict != Unknown || !strings.Contains(r.Bound, "a model can have 15") {
		t.Errorf("%s, bound %q", r.Verdict, r.Bound)
	}
}
