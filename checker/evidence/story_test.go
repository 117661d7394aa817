package evidence

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linearize.example/model"
	"linearize.example/model/explore"
	"linearize.example/model/tlccfg"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func constants(t *testing.T, design string, change func(*model.Constants)) model.Constants {
	t.Helper()
	d, err := model.DesignNamed(design)
	if err != nil {
		t.Fatal(err)
	}
	c := model.DefaultConstants(d)
	change(&c)
	return c
}

func outcome(t *testing.T, c model.Constants, through string) Outcome {
	t.Helper()
	e, err := NewExploration(c, []string{"NeverEmpty", "Covered", "Tight"}, through)
	if err != nil {
		t.Fatal(err)
	}
	o, err := e.Run(context.Background(), explore.Options{StopAtViolation: true})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestStories(t *testing.T) {
	oldReads := func(c *model.Constants) { c.MaxLag = 1 }
	for name, o := range map[string]Outcome{
		"old-reads": outcome(t, constants(t, "v3.4.0", oldReads), ""),
		"incident":  outcome(t, constants(t, "v3.4.0", oldReads), "incident"),
		"holds":     outcome(t, constants(t, "confirm-authorize", oldReads), ""),
		"two-clusters": outcome(t, constants(t, "v3.4.0", func(c *model.Constants) {
			c.TwoClusters, c.Procs, c.MaxPods = true, 2, 2
		}), ""),
	} {
		path := filepath.Join("testdata", name+".txt")
		got := o.Text()
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// Every action of the specification happens in some configuration, and there are words for each.
func TestEveryActionHappensAndIsTold(t *testing.T) {
	paths, err := filepath.Glob("../../designs/*.cfg")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no configurations: %v", err)
	}
	m, err := mustSystem(t).Judge(nil)
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, path := range paths {
		if len(said) == len(m.Actions()) {
			break
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		config, err := tlccfg.Parse(path, text)
		if err != nil {
			t.Fatal(err)
		}
		c, err := model.ConstantsOf(config)
		if err != nil {
			t.Fatal(err)
		}
		s, err := model.NewSystem(c)
		if err != nil {
			t.Fatal(err)
		}
		m, err := s.Judge(nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := explore.Run(context.Background(), m, explore.Options{MaxStates: 2000})
		if err != nil {
			t.Fatal(err)
		}
		tell := teller{s}
		r.Each(func(packed explore.State) bool {
			st := s.Unpack(packed)
			s.Next(&st, func(e model.Event, next *model.State) {
				if name := e.Action.String(); said[name] == "" {
					said[name] = tell.line(model.Moment{Event: e, Before: st, After: *next}).Does
				}
			})
			return true
		})
	}
	for _, name := range m.Actions() {
		switch {
		case said[name] == "":
			t.Errorf("%s never happens", name)
		case said[name] == name:
			t.Errorf("%s has no words", name)
		}
	}
}

func mustSystem(t *testing.T) *model.System {
	t.Helper()
	s, err := model.NewSystem(constants(t, "v3.4.0", func(*model.Constants) {}))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A page whose sentence the matrix contradicts is not written.
func TestPagesAreChecked(t *testing.T) {
	e := &Evidence{Cells: []Cell{{Design: "d", Environment: "e", Judged: []Judgment{{Property: neverEmpty, Verdict: "violated", Steps: 3}}}}}
	p := page{sections: []section{{title: "A claim", facts: []fact{no("d", "e", neverEmpty), yes("x", "e", neverEmpty)}}}}
	text, err := e.write(p)
	if err != nil || !strings.Contains(text, "| `d` | `e` | never-empty | **no** |") || strings.Contains(text, "`x`") {
		t.Errorf("%v\n%s", err, text)
	}
	p.sections[0].facts = []fact{yes("d", "e", neverEmpty)}
	if _, err := e.write(p); err == nil || !strings.Contains(err.Error(), "A claim") {
		t.Errorf("a contradiction is not noticed: %v", err)
	}
}

// Two configurations of one environment differ in the design only.
func TestEnvironmentsAgree(t *testing.T) {
	text, err := os.ReadFile("../../designs/v3.4.0.old-reads.cfg")
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(text), "MaxPods = 3", "MaxPods = 2", 1)
	_, err = environments([]Configuration{{"a.cfg", text}, {"b.cfg", []byte(other)}})
	if err == nil || !strings.Contains(err.Error(), "b.cfg") {
		t.Errorf("%v", err)
	}
}

// Costs: what confirming costs in a reconcile that changes nothing, and what verifying costs in one
// that is skipped.
func TestCosts(t *testing.T) {
	calls := func(design string, situation int) Calls {
		d, err := model.DesignNamed(design)
		if err != nil {
			t.Fatal(err)
		}
		c, err := measure(d, nil)
		if err != nil {
			t.Fatal(err)
		}
		out := c.Calls[situation]
		out.Situation = ""
		return out
	}
	for _, c := range []struct {
		design    string
		situation int
		want      Calls
	}{
		{"v3.4.0", 3, Calls{}}, {"v3.4.0", 4, Calls{Authorize: 1, Revoke: 1}}, {"v3.4.0", 5, Calls{}},
		{"confirm-authorize", 3, Calls{Describe: 1, Authorize: 1}},
		{"checkpoint-verifies-aws", 5, Calls{Describe: 1}},
	} {
		if diff := cmp.Diff(c.want, calls(c.design, c.situation)); diff != "" {
			t.Errorf("%s, situation %d (-want +got)\n%s", c.design, c.situation, diff)
		}
	}
}
