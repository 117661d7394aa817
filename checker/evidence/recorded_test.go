package evidence

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// counts are what TLC and the explorer must agree on in one cell.
type counts struct {
	States, Transitions, Depth int
	Properties                 map[string]verdictIn
}

type verdictIn struct {
	Verdict string
	Steps   int
}

// The checked-in matrix has the counts that TLC recorded, the largest configurations included.
func TestMatrixEqualsTLC(t *testing.T) {
	var matrix struct{ Cells []Cell }
	read(t, "../../docs/evidence/matrix.json", &matrix)
	explored := map[[2]string]counts{}
	for _, c := range matrix.Cells {
		if !c.Complete {
			t.Errorf("%s, %s: not explored completely", c.Design, c.Environment)
		}
		n := counts{c.States, int(c.Transitions), c.Depth + 1, map[string]verdictIn{}}
		for _, j := range c.Judged {
			n.Properties[j.Property] = verdictIn{j.Verdict, j.Steps}
		}
		explored[[2]string{c.Design, c.Environment}] = n
	}
	var record struct {
		Configurations []struct {
			Design, Environment, Probe string
			Distinct, Generated, Depth int
			Properties                 []struct {
				Name, Verdict string
				Steps         int `json:"counterexample_steps"`
			}
		}
	}
	read(t, "../../docs/evidence/tlc.json", &record)
	if len(record.Configurations) == 0 {
		t.Error("docs/evidence/tlc.json records nothing; run make tlc")
	}
	for _, c := range record.Configurations {
		if c.Probe != "" {
			continue
		}
		got, found := explored[[2]string{c.Design, c.Environment}]
		if !found {
			t.Errorf("%s, %s: not in the matrix; run make evidence", c.Design, c.Environment)
			continue
		}
		want := counts{c.Distinct, c.Generated, c.Depth, map[string]verdictIn{}}
		for _, p := range c.Properties {
			v := verdictIn{p.Verdict, p.Steps}
			if p.Verdict == "violated" && p.Steps == 0 {
				v.Steps = got.Properties[p.Name].Steps // TLC records no length for a temporal property
			}
			want.Properties[p.Name] = v
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s, %s: (-TLC +explorer)\n%s", c.Design, c.Environment, diff)
		}
	}
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
