package report

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// writers are all formats, by the extension of their golden files.
var writers = map[string]func(io.Writer, *Report) error{
	"txt":   func(w io.Writer, r *Report) error { return WriteText(w, r, TextOptions{}) },
	"json":  WriteJSON,
	"html":  WriteHTML,
	"md":    WriteMarkdown,
	"xml":   WriteJUnit,
	"sarif": WriteSARIF,
}

func render(t *testing.T, write func(io.Writer, *Report) error, r *Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGolden(t *testing.T) {
	for name, r := range samples() {
		for ext, write := range writers {
			file := filepath.Join("testdata", name+"."+ext)
			t.Run(filepath.Base(file), func(t *testing.T) {
				got := render(t, write, r)
				if !bytes.Equal(got, render(t, write, samples()[name])) {
					t.Error("equal reports give different bytes")
				}
				if *update {
					if err := os.WriteFile(file, got, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), string(got)); diff != "" {
					t.Errorf("(-want +got, -update to accept)\n%s", diff)
				}
			})
		}
	}
}
