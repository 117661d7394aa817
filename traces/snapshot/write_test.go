package snapshot_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linearize.example/traces/snapshot"
)

// TestDescribe: what is written is what was read, ids and groups without rules included.
func TestDescribe(t *testing.T) {
	for _, input := range []string{rules, groups} {
		want, err := snapshot.ReadSnapshots(strings.NewReader(input))
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := snapshot.Describe(want).Write(&b); err != nil {
			t.Fatal(err)
		}
		got, err := snapshot.ReadSnapshots(&b)
		if err != nil {
			t.Fatal(err)
		}
		byGroup := func(lines []string) map[string]string {
			m := map[string]string{}
			group := ""
			for _, line := range lines {
				if strings.HasPrefix(line, "sg-") && !strings.Contains(line, " ") {
					group = line
				}
				m[group] += line + "\n"
			}
			return m
		}
		if diff := cmp.Diff(byGroup(printed(want)), byGroup(printed(got))); diff != "" {
			t.Errorf("-read +read again:\n%s", diff)
		}
	}
}
