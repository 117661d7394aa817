package capture

import (
	"bytes"
	"testing"
)

// FuzzRead checks on any input that reading it ends, without panic, and that the counts add up.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{history, log, event("e"), zipped(history), tarball("x", history, "y", event("e")), zipArchive("x", log),
		zipped(tarball("x", zipped(event("e")))), "\ufeff" + event("e"), "\x1f\x8b\x08\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		c, err := Read(t.Context(), []string{"-"}, bytes.NewReader(input), Options{})
		if err != nil {
			return
		}
		for _, in := range c.History.Inputs {
			if in.Records != in.Used+in.Duplicates+in.Irrelevant+in.Rejected {
				t.Errorf("the counts do not add up: %+v", in)
			}
		}
	})
}
