package tlccfg

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const example = `\* expect: never-empty violated
\* design: v3.4.0
\* environment: old-reads
\* A sentence: it is no header.
(* a block
   comment *)
SPECIFICATION Spec
CONSTANTS
  MaxLag = 1   \* how many versions back
  Cache = TRUE Order = "authorize-first"
  Ports = {1, 2}
  Procs = {p1, p2}
  Nothing = {}
CONSTANT None = None
INVARIANT TypeOK
INVARIANTS NeverEmpty Covered
PROPERTY Repaired
CHECK_DEADLOCK FALSE
`

func TestParse(t *testing.T) {
	got, err := Parse("x.cfg", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Constants: map[string]Value{
			"MaxLag": 1, "Cache": true, "Order": "authorize-first", "Ports": []Value{1, 2},
			"Procs": []Value{ModelValue("p1"), ModelValue("p2")}, "Nothing": []Value{}, "None": ModelValue("None"),
		},
		Specification: "Spec",
		Invariants:    []string{"TypeOK", "NeverEmpty", "Covered"},
		Properties:    []string{"Repaired"},
		Design:        "v3.4.0", Environment: "old-reads", Expect: "never-empty violated",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if n, err := got.Int("MaxLag"); n != 1 || err != nil {
		t.Error(n, err)
	}
	if _, err := got.Bool("MaxLag"); err == nil || !strings.Contains(err.Error(), "MaxLag") {
		t.Error(err)
	}
	if _, err := got.Set("Missing"); err == nil || !strings.Contains(err.Error(), "Missing") {
		t.Error(err)
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"\nCONSTANT A":            "x.cfg:2: ",
		"CONSTANT A =":            "x.cfg:1: the file ends",
		"CONSTANT A = {1 2}":      "where , or } is expected",
		"CONSTANT A <- B":         "substitution",
		"CONSTANT A = 1\nA = 2":   "x.cfg:2: constant A has a value already",
		"INVARIANT X\nSYMMETRY S": `x.cfg:2: "SYMMETRY" is not a section`,
		"(* open":                 "does not end",
		"CONSTANT A = \"x\n":      "does not end on its line",
		"INIT = ":                 "a name is missing",
		"CONSTANT A = @":          "is not expected",
		"CHECK_DEADLOCK 3":        "TRUE or FALSE",
		"VIEW v":                  `"VIEW" is not a section`,
	} {
		_, err := Parse("x.cfg", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse("x.cfg", text)
		if (c == nil) == (err == nil) {
			t.Fatalf("config %v, error %v", c, err)
		}
	})
}
