package examples

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linearize.example/checker/conform/engine"
	"linearize.example/checker/conform/eval"
	"linearize.example/checker/conform/tla"
	"linearize.example/model/tlccfg"
)

const testdata = "../../../../checker/conform/testdata"

// numbers are TLC's for one configuration; the counts are those of the whole graph where nothing is violated.
type numbers struct {
	Module                        string
	Distinct, Generated, Diameter int
	Violated                      string
	Trace                         int
}

func TestExamplesAgreeWithTLC(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testdata, "tlc.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]numbers
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for name, want := range all {
		t.Run(name, func(t *testing.T) {
			x, ok := All[want.Module]
			if !ok {
				t.Fatalf("module %s is not generated", want.Module)
			}
			c := config(t, name)
			m, err := x.NewModel(c.Constants)
			if err != nil {
				t.Fatal(err)
			}
			o := engine.Options{Workers: 2, Invariants: c.Invariants, Constraints: c.Constraints, Deadlock: c.CheckDeadlock}
			r, err := engine.Explore(m, x.New, o)
			if err != nil {
				t.Fatal(err)
			}
			got := numbers{want.Module, r.Distinct, r.Generated, r.Diameter, r.Violated, len(r.Trace)}
			if want.Violated != "" { // how much TLC had seen when it stopped depends on its order
				got.Distinct, got.Generated, got.Diameter = want.Distinct, want.Generated, want.Diameter
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-TLC +generated)\n%s", d)
			}
			o.Keep = true
			compare(t, name, want.Module, m, x, o)
		})
	}
}

func config(t *testing.T, name string) *tlccfg.Config {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testdata, name+".cfg"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := tlccfg.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// compare explores the whole graph with the interpreter too, violations or not.
func compare(t *testing.T, name, module string, m *engine.Model, x Example, o engine.Options) {
	mod, err := tla.ParseFile(filepath.Join(testdata, module+".tla"))
	if err != nil {
		t.Fatal(err)
	}
	c := config(t, name)
	ev, err := eval.New(mod, c.Constants)
	if err != nil {
		t.Fatal(err)
	}
	s, err := eval.Select(mod, c)
	if err != nil {
		t.Fatal(err)
	}
	want, err := ev.Explore(s, true, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	got, err := engine.Explore(m, x.New, o)
	if err != nil {
		t.Fatal(err)
	}
	type graph struct {
		Distinct, Generated, Diameter, Trace int
		Actions                              map[string]int
	}
	if d := cmp.Diff(graph{want.Distinct, want.Generated, want.Diameter, len(want.Trace), want.Actions},
		graph{got.Distinct, got.Generated, got.Diameter, len(got.Trace), got.Actions}); d != "" {
		t.Errorf("whole graph (-interpreter +generated)\n%s", d)
	}
	if len(got.Trace) == 0 {
		return
	}
	// Each step of the trace is one of the interpreter's.
	for i := 1; i < len(got.Trace); i++ {
		from, to := state(m, got.Trace[i-1].State), state(m, got.Trace[i].State)
		found := false
		err := ev.NextStates(s.Next, from, func(st eval.Step) bool {
			found = found || st.Label() == got.Trace[i].Label() && st.Next.Key() == to.Key()
			return !found
		})
		if err != nil || !found {
			t.Errorf("step %d, %s, is none of the interpreter's (%v)", i, got.Trace[i].Label(), err)
		}
	}
}

func state(m *engine.Model, w []uint64) eval.State {
	var s eval.State
	for _, v := range m.Vars {
		s = append(s, m.Value(w, v.Name))
	}
	return s
}
