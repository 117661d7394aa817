package eval

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linearize.example/checker/conform/tla"
	"linearize.example/model/tlccfg"
)

// counts are TLC's numbers for one configuration, from a run with one worker.
type counts struct {
	Module                        string
	Distinct, Generated, Diameter int
	Violated                      string
	Trace                         int
}

func load(t *testing.T, module, config string) (*Evaluator, *Spec) {
	t.Helper()
	m, err := tla.ParseFile(filepath.Join("../testdata", module+".tla"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("../testdata", config+".cfg"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := tlccfg.Parse(config, text)
	if err != nil {
		t.Fatal(err)
	}
	ev, err := New(m, c.Constants)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Select(m, c)
	if err != nil {
		t.Fatal(err)
	}
	return ev, s
}

func TestExploreAgreesWithTLC(t *testing.T) {
	text, err := os.ReadFile("../testdata/tlc.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]counts
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for name, want := range all {
		t.Run(name, func(t *testing.T) {
			ev, s := load(t, want.Module, name)
			r, err := ev.Explore(s, false, 10_000)
			if err != nil {
				t.Fatal(err)
			}
			got := counts{want.Module, r.Distinct, r.Generated, r.Diameter, r.Violated, len(r.Trace)}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("TLC and the explorer differ (-TLC +explorer)\n%s", d)
			}
		})
	}
}

func TestUncheckedIsReported(t *testing.T) {
	_, s := load(t, "mutex", "mutex")
	if len(s.Unchecked) != 1 {
		t.Errorf("unchecked: %q, want the fairness", s.Unchecked)
	}
}

func TestLabels(t *testing.T) {
	ev, s := load(t, "commit", "commit.hasty")
	r, err := ev.Explore(s, false, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, st := range r.Trace[1:] {
		got = append(got, st.Label())
	}
	want := []string{`Prepare("r1")`, `RcvPrepared("r1")`, `DoCommit`, `Told("r1", "Commit")`, `GiveUp("r2")`}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("trace (-want +got)\n%s", d)
	}
}
