package capture

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestParts(t *testing.T) {
	log := `{"level":"info","ts":"2026-08-28T09:55:15Z","msg":"x"}` + "\n"
	history := `{"history":"v1"}` + "\n" + `{"seq":1}` + "\n"
	trail := `{"Records":[{"a":"}{"}]}`
	long := `{"Records":[` + strings.Repeat(`{"a":"}{"},`, 10_000) + `{}]}`
	for _, want := range [][]string{
		{""}, {"\n\n"}, {log}, {log + log}, {trail}, {trail + trail + "\n" + trail}, {history + log[:20]},
		{trail, log, trail, history, trail}, {long, log, long, log}, {history + "\n", log},
		{"text\n" + log + "more\n" + log, trail + "\n"}, {"[1]\n", history}, {trail + "}", log}, {trail + " {\n \"Records\" : [ ]\n}\n", log},
	} {
		for _, slow := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
			p := &parts{b: bufio.NewReaderSize(slow(strings.NewReader(strings.Join(want, ""))), sniffSize)}
			got := []string{}
			for more := p.next(); more || len(got) == 0; more = p.next() {
				text, err := io.ReadAll(p)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(text))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%.80q: parts (-want +got)\n%s", want, diff)
			}
		}
	}
}

// However a stream is cut into parts, nothing of it is lost.
func FuzzParts(f *testing.F) {
	f.Add(`{"Records":[]}{"level":"info","ts":1}` + "\n" + `{"history":"v1"}`)
	f.Fuzz(func(t *testing.T, text string) {
		p := &parts{b: bufio.NewReaderSize(strings.NewReader(text), sniffSize)}
		var got strings.Builder
		for p.next() {
			if _, err := io.Copy(&got, p); err != nil {
				t.Fatal(err)
			}
		}
		if got.String() != text {
			t.Errorf("%q became %q", text, got.String())
		}
	})
}
