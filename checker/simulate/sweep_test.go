package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"linearize.example/checker/report"
	"linearize.example/model"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got, see -update)\n%s", name, diff)
	}
}

func smallSweep(t *testing.T, parallel int) *Sweep {
	var designs []model.Design
	for _, name := range []string{"v3.4.0", "v2.7.2", "confirm-authorize"} {
		designs = append(designs, design(t, name))
	}
	return &Sweep{Designs: designs, First: 1, Seeds: 5, Plan: Plan{Churn: Boundary, Duration: 20 * time.Minute, Bindings: 4, ExternalRevokes: 1},
		Faults: lagging(lag), RepairBound: time.Minute, Parallel: parallel}
}

// TestSweep: the rows do not depend on how many runs are made at a time, and say what single runs say.
func TestSweep(t *testing.T) {
	ctx := context.Background()
	one := smallSweep(t, 1)
	rows, err := one.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	progress := []int{}
	several := smallSweep(t, 4)
	several.Progress = func(done, of int) { progress = append(progress, done*100+of) }
	again, err := several.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rows, again); diff != "" {
		t.Errorf("(-one at a time +four at a time)\n%s", diff)
	}
	if len(progress) != 15 || !slices.IsSorted(progress) || progress[14] != 1515 {
		t.Errorf("progress %v", progress)
	}
	for d, row := range rows {
		for p, name := range Properties {
			var seeds []uint64
			for seed := uint64(1); seed <= 5; seed++ {
				opt, err := one.Options(one.Designs[d], seed)
				if err != nil {
					t.Fatal(err)
				}
				run, err := Run(ctx, opt)
				if err != nil {
					t.Fatal(err)
				}
				r, err := Judge(ctx, run.History, time.Minute)
				if err != nil {
					t.Fatal(err)
				}
				if verdictOf(r, name) == report.Violated {
					seeds = append(seeds, seed)
				}
			}
			if diff := cmp.Diff(seeds, row.Seeds[p]); diff != "" || row.Violated[p].Count != len(seeds) {
				t.Errorf("%s, %s: (-single runs +sweep) %d\n%s", row.Design, name, row.Violated[p].Count, diff)
			}
		}
	}
	sample := NewSweepReport(one, rows, "read lag 1.5s")
	if sample.Verdict() != report.Violated {
		t.Errorf("the sweep is %s", sample.Verdict())
	}
	for name, write := range map[string]func(io.Writer) error{"sweep.txt": sample.WriteText, "sweep.md": sample.WriteMarkdown, "sweep.json": sample.WriteJSON, "sweep.svg": sample.WritePlot} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.Bytes())
		for _, line := range strings.Split(b.String(), "\n") {
			if n := utf8.RuneCountInString(line); name == "sweep.txt" && n > 100 {
				t.Errorf("a line of %d columns: %s", n, line)
			}
		}
	}
}

// TestSweepErrors: the first error ends it, with the run's name; so does the context.
func TestSweepErrors(t *testing.T) {
	s := smallSweep(t, 2)
	s.Plan.Churn = "chaos"
	if _, err := s.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "seed ") || !strings.Contains(err.Error(), "chaos") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s = smallSweep(t, 2)
	s.Progress = func(done, _ int) {
		if done == 2 {
			cancel()
		}
	}
	if _, err := s.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// hardReport has everything that is awkward: no window at all, censored ones alone, undecided runs, many designs.
func hardReport() *SweepReport {
	r := &SweepReport{Schema: SweepSchema, Churn: Random, First: 7, Seeds: 1, Bindings: 1, Duration: Duration(time.Hour), Properties: Properties}
	row := func(name string, repairs ...Lifetime) {
		n := len(Properties)
		out := Row{Design: name, Runs: 1, Possible: make([]int, n), Unknown: make([]int, n), Seeds: make([][]uint64, n), Repairs: repairs}
		for range Properties {
			out.Violated = append(out.Violated, NewShare(0, 1))
		}
		r.Rows = append(r.Rows, out)
	}
	row("v3.4.0")
	row("censored", Lifetime{10, true}, Lifetime{20, true})
	row("at-once", Lifetime{0, false}, Lifetime{0, false})
	row("half <&>", Lifetime{1, false}, Lifetime{100000, true}, Lifetime{2, false})
	r.Rows[1].Possible[0], r.Rows[1].Unknown[2] = 1, 1
	for _, name := range []string{"a", "b", "c", "d", "proposed-without-checkpoint-verifies-aws"} {
		row(name, Lifetime{3600, false})
	}
	return r
}

// TestAwkwardReports: they are complete, well-formed and within their width.
func TestAwkwardReports(t *testing.T) {
	r := hardReport()
	var text, markdown, picture, object bytes.Buffer
	if err := errors.Join(r.WriteText(&text), r.WriteMarkdown(&markdown), r.WritePlot(&picture), r.WriteJSON(&object)); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(text.String(), "\n") {
		if n := utf8.RuneCountInString(line); n > 100 {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
	if !strings.Contains(text.String(), "> 20 s") || !strings.Contains(text.String(), undecidedNote) {
		t.Errorf("neither the censored median nor the undecided runs are told:\n%s", text.String())
	}
	d := xml.NewDecoder(&picture)
	for {
		_, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
	var out struct {
		Rows []struct {
			Statistics map[string]*float64 `json:"repair_statistics"`
		}
	}
	if err := json.Unmarshal(object.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	if m := out.Rows[1].Statistics["median_seconds"]; m != nil {
		t.Errorf("a median of %v, of censored windows alone", *m)
	}
	if m := out.Rows[3].Statistics["median_seconds"]; m == nil || *m != 2 {
		t.Errorf("the median of 1, 2 and a censored one is %v", m)
	}
	if r.Verdict() != report.Possible {
		t.Errorf("the sweep is %s", r.Verdict())
	}
	empty := &SweepReport{Properties: Properties}
	if err := errors.Join(empty.WriteText(io.Discard), empty.WritePlot(io.Discard), empty.WriteMarkdown(io.Discard)); err != nil || empty.Verdict() != report.Holds {
		t.Errorf("an empty report: %v, %s", err, empty.Verdict())
	}
}

// TestLifetimes joins windows of the two properties that overlap.
func TestLifetimes(t *testing.T) {
	at := func(seconds int) report.Instant { return report.Instant(int64(seconds) * int64(time.Second)) }
	window := func(verdict report.Verdict, from, to int) report.Window {
		w := report.Window{Verdict: verdict, From: at(from), To: at(to), End: &report.Range{}}
		if to == 100 {
			w.End = nil
		}
		return w
	}
	end := at(100)
	r := &report.Report{Groups: []report.Group{{To: &end, Properties: []report.Property{
		{Name: "never-empty", Windows: []report.Window{window(report.Violated, 10, 20), window(report.Possible, 50, 60)}},
		{Name: "covered", Windows: []report.Window{window(report.Violated, 5, 12), window(report.Violated, 15, 30), window(report.Violated, 40, 41), window(report.Violated, 90, 100)}},
		{Name: "tight"},
	}}}}
	want := []Lifetime{{25, false}, {1, false}, {10, true}}
	if diff := cmp.Diff(want, Lifetimes(r)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
