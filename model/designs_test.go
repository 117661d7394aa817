package model

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linearize.example/model/explore"
	"linearize.example/model/tlccfg"
)

var all = flag.Bool("all", false, "explore every configuration completely")

// load reads a configuration of ../designs.
func load(t *testing.T, path string) (*tlccfg.Config, *System) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := tlccfg.Parse(path, text)
	if err != nil {
		t.Fatal(err)
	}
	constants, err := ConstantsOf(c)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	s, err := NewSystem(constants)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return c, s
}

// run explores a system completely, or up to limit states.
func run(t *testing.T, s *System, invariants []string, limit int) *explore.Result {
	t.Helper()
	m, err := s.Judge(invariants)
	if err != nil {
		t.Fatal(err)
	}
	r, err := explore.Run(context.Background(), m, explore.Options{MaxStates: limit})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// violated lists the violated invariants in the order of the configuration.
func violated(r *explore.Result, invariants []string) []string {
	var out []string
	for i, name := range invariants {
		if _, found := r.Violation(i); found {
			out = append(out, name)
		}
	}
	return out
}

// explored is a configuration and what exploring it found.
type explored struct {
	config *tlccfg.Config
	system *System
	result *explore.Result
}

var configurations = map[string]explored{}

// everyConfiguration explores the files of ../designs once for all tests, completely or up to quickStates.
func everyConfiguration(t *testing.T) map[string]explored {
	t.Helper()
	if len(configurations) > 0 {
		return configurations
	}
	paths, err := filepath.Glob("../designs/*.cfg")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no configurations in ../designs: %v", err)
	}
	limit := quickStates
	if *all {
		limit = 0
	}
	for _, path := range paths {
		c, s := load(t, path)
		configurations[filepath.Base(path)] = explored{c, s, run(t, s, c.Invariants, limit)}
	}
	return configurations
}

// violations lists the violated properties of an exploration in the order of its configuration; temporal
// ones only if it is complete.
func (x explored) violations() []string {
	out := violated(x.result, x.config.Invariants)
	for _, p := range x.config.Properties {
		if x.result.Reason == explore.Complete && x.system.EventuallyViolated(x.result, p) != nil {
			out = append(out, p)
		}
	}
	return out
}

// Every configuration has the switches of the design that it names, and gives the verdict that it
// expects. Where not all was explored, nothing is violated that it expects to hold.
func TestVerdicts(t *testing.T) {
	complete := 0
	for name, x := range everyConfiguration(t) {
		if want, err := DesignNamed(x.config.Design); err != nil || want != x.system.Design {
			t.Errorf("%s: the switches are not those of design %s: %v\n%s", name, x.config.Design, err, cmp.Diff(want, x.system.Design))
		}
		found := x.violations()
		if x.result.Reason == explore.Complete {
			complete++
			if got := Verdict(found); got != x.config.Expect {
				t.Errorf("%s: %s; the configuration expects %s", name, got, x.config.Expect)
			}
			continue
		}
		for _, p := range found {
			if !slices.Contains(strings.Split(x.config.Expect, ", "), Verdict([]string{p})) {
				t.Errorf("%s: %s is violated; the configuration expects %s", name, p, x.config.Expect)
			}
		}
	}
	if complete < len(configurations)/mostly {
		t.Errorf("only %d of %d configurations were explored completely; raise quickStates", complete, len(configurations))
	}
}
