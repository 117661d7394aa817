package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestManyInputs: of a folder with thousands of files those that matter are shown, and the others counted.
func TestManyInputs(t *testing.T) {
	r := &Report{Verdict: Holds}
	for i := range 5000 {
		r.Inputs = append(r.Inputs, Input{Path: fmt.Sprintf("f%04d", i), Format: "cloudtrail", Records: 9, Irrelevant: 9})
	}
	r.Inputs[4321].Used = 1
	for name, write := range map[string]func(*bytes.Buffer) error{
		"text":     func(b *bytes.Buffer) error { return WriteText(b, r, TextOptions{}) },
		"markdown": func(b *bytes.Buffer) error { return WriteMarkdown(b, r) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if s := b.String(); !strings.Contains(s, "f4321") || !strings.Contains(s, "and 4999 more") || strings.Count(s, "\n") > 100 {
			t.Errorf("%s has %d lines: %.2000s", name, strings.Count(s, "\n"), s)
		}
	}
}
