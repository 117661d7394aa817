package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linearize.example/model/tlccfg"
)

const passed = `TLC2 Version 2.19 of 08 August 2024
<Init line 5, col 1 to line 5, col 4 of module spec>: 1:1
<Pick line 7, col 1 to line 7, col 4 of module spec>: 2:3
Model checking completed. No error has been found.
<Init line 5, col 1 to line 5, col 4 of module spec>: 1:1
<Pick line 7, col 1 to line 7, col 4 of module spec>: 4:5
<Lock line 9, col 1 to line 9, col 4 of module spec (9 8 12 5)>: 3:7
<Skip line 13, col 1 to line 13, col 4 of module spec>: 0:0
13 states generated, 8 distinct states found, 0 states left on queue.
The depth of the complete state graph search is 6.
Finished in 01s at (2026-11-30 08:41:20)
`

const broken = `TLC2 Version 2.19 of 08 August 2024
Error: Invariant Covered is violated.
Error: The behavior up to this point is:
State 1: <Initial predicate>
/\ rules = {}

State 2: <Pick line 7, col 1 to line 7, col 4 of module spec>
/\ rules = {}

9 states generated, 7 distinct states found, 2 states left on queue.
The depth of the complete state graph search is 2.
Finished in 01s at (2026-11-30 08:41:20)
`

func TestParse(t *testing.T) {
	version := "TLC2 Version 2.19 of 08 August 2024"
	tests := []struct {
		name, text string
		want       outcome
		finished   bool
	}{
		{"all holds, the last coverage counts", passed, outcome{version: version, distinct: 8, generated: 13,
			depth: 6, actions: map[string]int64{"Pick": 5, "Lock": 7}}, true},
		{"violated", broken, outcome{version: version, violated: "Covered", trace: 2, distinct: 7, generated: 9,
			depth: 2, actions: map[string]int64{}}, true},
		{"temporal", strings.Replace(broken, "Invariant Covered is violated.", "Temporal properties were violated.", 1),
			outcome{version: version, violated: "a temporal property", trace: 2, distinct: 7, generated: 9,
				depth: 2, actions: map[string]int64{}}, true},
		{"cut off", strings.Replace(passed, "Finished", "", 1), outcome{version: version, distinct: 8, generated: 13,
			depth: 6, actions: map[string]int64{"Pick": 5, "Lock": 7}}, false},
		{"an error that is no verdict", "Error: Parsing failed.\nFinished in 02s\n",
			outcome{actions: map[string]int64{}}, false},
	}
	for _, test := range tests {
		got, finished := parse(test.text)
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(outcome{})); diff != "" || finished != test.finished {
			t.Errorf("%s: finished %v, want %v\n%s", test.name, finished, test.finished, diff)
		}
	}
}

func TestVerdict(t *testing.T) {
	tests := []struct {
		properties []Property
		want       string
	}{
		{nil, "holds"},
		{[]Property{{Name: "never-empty", Verdict: "holds"}}, "holds"},
		{[]Property{{Name: "never-empty", Verdict: "violated"}, {Name: "covered", Verdict: "violated"},
			{Name: "tight", Verdict: "holds"}}, "never-empty violated, covered violated"},
	}
	for _, test := range tests {
		if got := verdict(test.properties); got != test.want {
			t.Errorf("%v: %q, want %q", test.properties, got, test.want)
		}
	}
}

// A record keeps what is unchanged, in the order of the files, and forgets files that are gone.
func TestRecord(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.cfg"), filepath.Join(dir, "b.cfg")
	for _, file := range []string{a, b} {
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "tlc.json")
	record, err := newRecord(path, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []Result{{File: b, SHA256: "1"}, {File: a, SHA256: "1"}, {File: b, SHA256: "2"},
		{File: filepath.Join(dir, "gone.cfg"), SHA256: "1"}} {
		if err := record.add(r); err != nil {
			t.Fatal(err)
		}
	}
	again, err := newRecord(path, true)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range again.Configurations {
		got = append(got, filepath.Base(c.File)+" "+c.SHA256)
	}
	if diff := cmp.Diff([]string{"a.cfg 1", "b.cfg 2"}, got); diff != "" {
		t.Error(diff)
	}
	if _, known := again.find(model{file: b, sum: "1"}); known {
		t.Error("a changed configuration is taken for recorded")
	}
	if _, known := again.find(model{file: b, sum: "2"}); !known {
		t.Error("an unchanged configuration is not found")
	}
}

// Every configuration can be read, is named after its design and environment, switches deadlock
// checking off, and expects something.
func TestConfigurations(t *testing.T) {
	files, err := filepath.Glob("../../designs/*.cfg")
	if err != nil || len(files) == 0 {
		t.Fatalf("no configurations: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := tlccfg.Parse(file, text)
		if err != nil {
			t.Error(err)
			continue
		}
		if want := c.Design + "." + c.Environment + ".cfg"; filepath.Base(file) != want {
			t.Errorf("%s: by its first lines it is %s", file, want)
		}
		if c.CheckDeadlock || c.Expect == "" || (c.Probe != "" && c.Expect == "holds") {
			t.Errorf("%s: deadlock checking %v, expects %q, probe %q", file, c.CheckDeadlock, c.Expect, c.Probe)
		}
	}
}
