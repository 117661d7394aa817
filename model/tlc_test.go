package model

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linearize.example/model/explore"
)

// tlcResult is what TLC said about a configuration, as docs/evidence/tlc.json records it.
type tlcResult struct {
	File       string
	Distinct   int
	Generated  int
	Depth      int
	Actions    map[string]int
	Properties []tlcProperty
}

type tlcProperty struct {
	Formula string
	Verdict string
	Steps   int `json:"counterexample_steps"`
}

// The explorer counts the states, the transitions (by action, too), the depth and the steps of the
// shortest counterexamples that TLC counted.
func TestCountsEqualTLC(t *testing.T) {
	text, err := os.ReadFile("../docs/evidence/tlc.json")
	if err != nil {
		t.Fatalf("%v; run make tlc", err)
	}
	var record struct{ Configurations []tlcResult }
	if err := json.Unmarshal(text, &record); err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for name := range everyConfiguration(t) {
		left[name] = true
	}
	for _, want := range record.Configurations {
		name := filepath.Base(want.File)
		x, known := configurations[name]
		if !known {
			t.Errorf("docs/evidence/tlc.json records %s, which is not in designs; run make tlc", name)
			continue
		}
		delete(left, name)
		if x.result.Reason == explore.Complete {
			compareWithTLC(t, name, x, want)
		}
	}
	for name := range left {
		t.Errorf("docs/evidence/tlc.json does not record %s; run make tlc", name)
	}
}

func compareWithTLC(t *testing.T, name string, x explored, want tlcResult) {
	t.Helper()
	r := x.result
	got := tlcResult{File: want.File, Distinct: r.States, Generated: int(r.Generated), Depth: r.Depth, Actions: map[string]int{}}
	for a, n := range r.ByAction {
		if n > 0 {
			got.Actions[actionNames[a]] = int(n)
		}
	}
	if x.config.Probe != "" { // TLC stops at the violation, and counts nothing
		got.Distinct, got.Generated, got.Depth, got.Actions = 0, 0, 0, nil
	}
	found := x.violations()
	for _, p := range want.Properties {
		q := tlcProperty{Formula: p.Formula, Verdict: "holds"}
		if slices.Contains(found, p.Formula) {
			q.Verdict = "violated"
		}
		if v, violated := r.Violation(slices.Index(x.config.Invariants, p.Formula)); violated {
			q.Steps = v.Depth - 1
		}
		got.Properties = append(got.Properties, q)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: (-TLC +explorer)\n%s", name, diff)
	}
}
