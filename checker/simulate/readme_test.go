package simulate

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"linearize.example/checker/report"
)

// TestReadme: the README's sweep has the counts of testdata/readme.json, the seeds of the runs that violate each property, and the
// first two seeds give again what is said of them.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "readme.json"))
	if err != nil {
		t.Fatal(err)
	}
	var recorded map[string]map[string][]uint64
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if len(recorded) < 6 {
		t.Errorf("%d designs", len(recorded))
	}
	for name, violated := range recorded {
		line := fmt.Sprintf("| `%s` |", name)
		for _, p := range Properties {
			s := NewShare(len(violated[p]), 100)
			line += fmt.Sprintf(" %d (%.0f-%.0f%%) |", s.Count, 100*s.Low, 100*s.High)
		}
		if !strings.Contains(string(readme), line+"\n") {
			t.Errorf("the README does not have the line\n%s", line)
		}
		for seed := uint64(1); seed <= seeds(2); seed++ {
			_, r := ran(t, Options{Design: design(t, name), Script: script(t, Plan{Churn: Boundary, Seed: seed, Duration: time.Hour, Bindings: 8}), Faults: lagging(lag)})
			for _, p := range Properties {
				if got := verdictOf(r, p) == report.Violated; got != slices.Contains(violated[p], seed) {
					t.Errorf("%s, seed %d: %s is %s, recorded otherwise", name, seed, p, verdictOf(r, p))
				}
			}
		}
	}
}
