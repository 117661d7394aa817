package conform

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"linearize.example/checker/conform/engine"
	"linearize.example/checker/conform/eval"
	"linearize.example/checker/conform/tla"
	"linearize.example/model/tlccfg"
)

func config(t testing.TB, path string) *tlccfg.Config {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := tlccfg.Parse(path, text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// tlcRecord is what TLC said, with counts of the complete graphs.
type tlcRecord struct {
	Configurations []struct {
		File       string
		Properties []struct {
			Formula, Verdict string
			Steps            int `json:"counterexample_steps"`
		}
		Distinct, Generated, Depth int
		Actions                    map[string]int
	}
}

func record(t testing.TB) tlcRecord {
	t.Helper()
	text, err := os.ReadFile("../../docs/evidence/tlc.json")
	if err != nil {
		t.Fatal(err)
	}
	var r tlcRecord
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestGraphIsTLCs(t *testing.T) {
	compared := 0
	for _, want := range record(t).Configurations {
		if want.Distinct == 0 || want.Distinct > maxStates { // a probe has no counts
			continue
		}
		compared++
		t.Run(strings.TrimSuffix(filepath.Base(want.File), ".cfg"), func(t *testing.T) {
			c := config(t, filepath.Join("../..", want.File))
			_, r, err := Explore(c, engine.Options{Workers: 2, Keep: true})
			if err != nil {
				t.Fatal(err)
			}
			type graph struct {
				Distinct, Generated, Depth int
				Actions                    map[string]int
			}
			if d := cmp.Diff(graph{want.Distinct, want.Generated, want.Depth, want.Actions},
				graph{r.Distinct, r.Generated, r.Diameter, r.Actions}); d != "" {
				t.Errorf("(-TLC +generated)\n%s", d)
			}
			for _, p := range want.Properties {
				if !slices.Contains(c.Invariants, p.Formula) { // temporal
					continue
				}
				if broken := slices.Contains(r.Broken, p.Formula); broken != (p.Verdict == "violated") {
					t.Errorf("%s: violated is %v, for TLC it %s", p.Formula, broken, p.Verdict)
				} else if broken {
					c := *c
					c.Invariants = []string{p.Formula}
					_, one, err := Explore(&c, engine.Options{Workers: 2})
					if err != nil {
						t.Fatal(err)
					}
					if len(one.Trace)-1 != p.Steps {
						t.Errorf("%s: a counterexample of %d steps, TLC's has %d", p.Formula, len(one.Trace)-1, p.Steps)
					}
				}
			}
		})
	}
	if compared == 0 {
		t.Error("no configuration was compared")
	}
}

func TestDesignsGiveTheExpectedVerdict(t *testing.T) {
	sizes := map[string]int{}
	for _, c := range record(t).Configurations {
		sizes[filepath.Base(c.File)] = c.Distinct
	}
	files, err := filepath.Glob("../../designs/*.cfg")
	if err != nil || len(files) == 0 {
		t.Fatalf("no configurations: %v", err)
	}
	for _, file := range files {
		if size, known := sizes[filepath.Base(file)]; size > maxStates || !known && maxStates < 10_000_000 {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".cfg"), func(t *testing.T) {
			c := config(t, file)
			_, r, err := Explore(c, engine.Options{Workers: 2, Keep: true})
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Properties) > 0 { // temporal properties are for TLC to decide
				if len(r.Broken) > 0 {
					t.Errorf("%q are violated; only temporal properties may be", r.Broken)
				}
				return
			}
			var want []string
			for _, part := range strings.Split(c.Expect, ", ") {
				if name, ok := strings.CutSuffix(part, " violated"); ok {
					want = append(want, name)
				} else if part != "holds" {
					t.Errorf("cannot read the expectation %q", c.Expect)
				}
			}
			var got []string
			for _, name := range r.Broken {
				got = append(got, kebab(name))
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("violated (-want +got)\n%s", d)
			}
		})
	}
}

// kebab writes an invariant's name as the configurations' comments do.
func kebab(name string) string {
	if name == "RepairedInTime" {
		return "repair-bound"
	}
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// The interpreter shares the parser with the generator and nothing else.
func TestGraphIsTheInterpreters(t *testing.T) {
	m, err := tla.ParseFile("../../spec.tla")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"v3.4.0.fresh-reads", "confirm-authorize.two-clusters", "v3.4.0.stable-pod",
		"proposed.leader-change", "v2.7.2.fresh-reads"} {
		t.Run(name, func(t *testing.T) {
			c := config(t, "../../designs/"+name+".cfg")
			ev, err := eval.New(m, c.Constants)
			if err != nil {
				t.Fatal(err)
			}
			s, err := eval.Select(m, c)
			if err != nil {
				t.Fatal(err)
			}
			want, err := ev.Explore(s, true, 10_000)
			if err != nil {
				t.Fatal(err)
			}
			_, got, err := Explore(c, engine.Options{Workers: 2, Keep: true})
			if err != nil {
				t.Fatal(err)
			}
			type graph struct {
				Distinct, Generated, Diameter, Trace int
				Actions                              map[string]int
			}
			if d := cmp.Diff(graph{want.Distinct, want.Generated, want.Diameter, len(want.Trace), want.Actions},
				graph{got.Distinct, got.Generated, got.Diameter, len(got.Trace), got.Actions}); d != "" {
				t.Errorf("(-interpreter +generated)\n%s", d)
			}
		})
	}
}

func TestTraceIsTheIncident(t *testing.T) {
	m, r, err := Explore(config(t, "../../designs/v3.4.0.old-reads.cfg"), engine.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	if r.Violated != "NeverEmpty" {
		t.Fatalf("violated: %q", r.Violated)
	}
	for i, st := range r.Trace {
		if i > 0 && st.Action == "" {
			t.Errorf("step %d has no action", i)
		}
	}
	last := r.Trace[len(r.Trace)-1].State
	if got := m.Value(last, "rules").String(); got != "{}" {
		t.Errorf("the rules at the end are %s", got)
	}
	if !strings.Contains(m.Show(last), "/\\ rules = {}\n") {
		t.Errorf("the state is shown as\n%s", m.Show(last))
	}
}

// The constants are given when the checker runs: a model with twelve TGBs needs no other binary.
func TestManyTGBs(t *testing.T) {
	c := config(t, "../../designs/v3.4.0.fresh-reads.cfg")
	var tgbs []tlccfg.Value
	for i := range 12 {
		tgbs = append(tgbs, i+1)
	}
	c.Constants["TGBs"] = tgbs
	c.Constants["MaxPods"] = 13
	m, err := NewModel(c.Constants)
	if err != nil {
		t.Fatal(err)
	}
	initial, err := m.Initial()
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for st, next := range engine.Steps(m, New(m), initial[0]) {
		steps++
		if st.Action == "PodGoes" && m.Value(next, "pods").String() == m.Value(initial[0], "pods").String() {
			t.Errorf("%s changes no pod", st.Label())
		}
	}
	if steps != 12 { // each pod may go; nothing else can happen
		t.Errorf("%d steps from the first state, want 12", steps)
	}
}

// benchmarkModel has more than a million states.
const benchmarkModel = "../../designs/proposed.everything-twice.cfg"

func BenchmarkExplore(b *testing.B) {
	c := config(b, benchmarkModel)
	states, bytes := 0, 0.0
	for b.Loop() {
		_, r, err := Explore(c, engine.Options{Workers: 2})
		if err != nil {
			b.Fatal(err)
		}
		states += r.Distinct
		bytes = float64(r.Bytes) / float64(r.Distinct)
	}
	b.ReportMetric(float64(states)/b.Elapsed().Seconds(), "states/s")
	b.ReportMetric(bytes, "B/state")
}

// BenchmarkTLC runs TLC, where TLA2TOOLS_JAR names its jar, and the generated checker on the same model, each with two
// workers, and reports how many times faster the checker is.
func BenchmarkTLC(b *testing.B) {
	jar := os.Getenv("TLA2TOOLS_JAR")
	if jar == "" {
		b.Log("TLC is not measured: TLA2TOOLS_JAR does not name its jar")
		return
	}
	jar, err := filepath.Abs(jar)
	if err != nil {
		b.Fatal(err)
	}
	c := config(b, benchmarkModel)
	var tlc, own time.Duration
	for b.Loop() {
		start := time.Now()
		cmd := exec.Command("java", "-XX:+UseParallelGC", "-cp", jar, "tlc2.TLC", "-workers", "2", "-metadir", b.TempDir(),
			"-config", benchmarkModel, "../../spec.tla")
		out, err := cmd.CombinedOutput()
		if err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		tlc += time.Since(start)
		start = time.Now()
		_, r, err := Explore(c, engine.Options{Workers: 2})
		if err != nil {
			b.Fatal(err)
		}
		own += time.Since(start)
		if want := fmt.Sprintf("%d states generated, %d distinct states found", r.Generated, r.Distinct); !strings.Contains(
			string(out), want) {
			b.Errorf("TLC does not say %q:\n%s", want, out)
		}
	}
	b.ReportMetric(tlc.Seconds()/own.Seconds(), "times-TLC")
}
