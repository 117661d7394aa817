package main

import (
	"os/exec"
	"testing"
)

// TestPasted: a shell reads what is printed as the word that was meant.
func TestPasted(t *testing.T) {
	for _, c := range []struct{ word, plain string }{
		{"run", "run"},
		{"runs/2026-08-28_a,b:c=d@e%f+g.ndjson", "runs/2026-08-28_a,b:c=d@e%f+g.ndjson"},
		{"uniform:0s-2s", "uniform:0s-2s"},
		{"", ""},
		{"my run", ""},
		{"it's", ""},
		{"$(date) `date` \\ \"x\" ; & | * ? ~ # !", ""},
		{"a\nb\tc", ""},
		{"läufe", ""},
	} {
		got := pasted(c.word)
		if c.plain != "" && got != c.plain {
			t.Errorf("%q is printed as %s", c.word, got)
		}
		said, err := exec.Command("sh", "-c", "printf %s "+got).Output()
		if err != nil || string(said) != c.word {
			t.Errorf("%q is printed as %s, which a shell takes for %q (%v)", c.word, got, said, err)
		}
	}
	if got := pasted("-o"); got != "./-o" {
		t.Errorf("a folder that is called -o is printed as %s", got)
	}
}
