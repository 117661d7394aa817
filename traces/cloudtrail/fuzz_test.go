package cloudtrail

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
)

// FuzzRead checks on any input that the counts add up, that pieces read like the whole, and that decoding every record
// gives the same operations as passing over those that name no call in question.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"Records":[` + authorized + `,` + listed + `,` + revoked + `]}`,
		`{"Events":[` + lookup(authorized, "e", "n") + `],"NextToken":"t"}`,
		quoted(authorized) + "\n" + revoked, bridge(authorized), printedByPython(bridge(authorized)),
		`{"results":[` + lakeCells(true) + `],"status":"Running"}`, `{"QueryStatus":"FINISHED","QueryResultRows":[` + lakeCells(false) + `]}`,
		athenaCSV(), athenaAPI(), authorizedWithEscapes, utf16le(listed), strings.Replace(elasticFlat, "%s", `"request_parameters":"{groupId=sg-1}"`, 1),
		strings.Replace(ocsf, "%s", quoted(requestText), 1), `{"a":{"b":1` + "\n" + authorized, authorized + "}]" + "\nEVENTS\tx\n",
		",eventNAme0", // names of columns that come in more than one piece
		`{"digestStartTime":"x","logFiles":[{}]}`, `{"hits":{"hits":[{"_source":` + authorized + `}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		readAll := func(src io.Reader, decodeAll bool) (*traces.History, error) {
			h := &traces.History{Inputs: []traces.Input{{Path: "input"}}}
			r := NewReader(h, Options{})
			r.decodeAll = decodeAll
			err := r.Read(src, 0)
			r.Finish()
			if err != nil && !errors.Is(err, ErrNoEvents) {
				t.Fatal(err)
			}
			in := h.Inputs[0]
			if in.Records != in.Used+in.Duplicates+in.Irrelevant+in.Rejected || in.Used != len(h.Operations) {
				t.Fatalf("the counts do not add up: %+v and %d operations", in, len(h.Operations))
			}
			return h, err
		}
		whole, _ := readAll(bytes.NewReader(input), false)
		pieces, _ := readAll(iotest.OneByteReader(bytes.NewReader(input)), false)
		if diff := cmp.Diff(whole, pieces); diff != "" {
			t.Errorf("(-whole +pieces):\n%s", diff)
		}
		decoded, _ := readAll(bytes.NewReader(input), true)
		positions := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Sources" || p.Last().String() == ".ID" }, cmp.Ignore())
		if diff := cmp.Diff(decoded.Operations, whole.Operations, positions); diff != "" {
			t.Errorf("(-decoded +passed over):\n%s", diff)
		}
	})
}

// FuzzSplitter compares the values that the splitter finds with those that encoding/json finds.
func FuzzSplitter(f *testing.F) {
	f.Add([]byte(`{"a":[1,"\"]}"]} [] "x" 12 true`), 3)
	f.Add([]byte(`{"a":"\\"}{}`), 1)
	f.Add([]byte("[\n{},\n{}]\n\"\""), 7)
	f.Fuzz(func(t *testing.T, input []byte, piece int) {
		var want []string
		d := json.NewDecoder(bytes.NewReader(input))
		for {
			var raw json.RawMessage
			if err := d.Decode(&raw); err != nil {
				if err != io.EOF {
					return // the splitter checks no grammar
				}
				break
			}
			if raw[0] != '{' && raw[0] != '[' && raw[0] != '"' {
				return // where words and numbers end that touch the next value, the two see differently
			}
			want = append(want, string(raw))
		}
		var got []string
		s := newSplitter(&pieces{input, max(1, piece%100)}, MaxRecord)
		for {
			if _, err := s.peek(); err != nil {
				break
			}
			raw, err := s.take()
			if err != nil {
				t.Fatalf("%v behind %q", err, got)
			}
			got = append(got, string(raw))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-json +splitter):\n%s", diff)
		}
	})
}

type pieces struct {
	b []byte
	n int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.b[:min(p.n, len(p.b))])
	p.b = p.b[n:]
	return n, nil
}

// FuzzMapText checks that printed maps are read without panic, and that JSON is read as what it is.
func FuzzMapText(f *testing.F) {
	for _, seed := range []string{lakeRequest, requestText, `{a=b, c=[d, e, {f=g}]}`, `{a=, b=null}`, `[{a=b}, c]`, `{a={b={c=d, e}, f}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parseStructured(s)
		if want, jsonErr := decode([]byte(strings.TrimSpace(s))); jsonErr == nil && err == nil {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-json +map):\n%s", diff)
			}
		}
	})
}

// FuzzPython checks that what Python prints of JSON reads like the JSON.
func FuzzPython(f *testing.F) {
	for _, seed := range []string{printedByPython(authorized), `{'a': "it's", 'b': [1, -2.5, None], 'c': ('x',)}`, `{'a': '\x41\u0042\U00000043\\'}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, rest, err := parsePython(s)
		if err != nil {
			return
		}
		again, _, err := parsePython(s[:len(s)-len(rest)])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v, again); diff != "" {
			t.Errorf("without what follows it is another:\n%s", diff)
		}
	})
}

// FuzzTime checks that times are within the range that they were written in.
func FuzzTime(f *testing.F) {
	for _, seed := range []string{"2026-08-28T09:55:16Z", "2026-08-28 09:55:16.123", "1787910916", "1787910916123", "1.78e9", "2026-08-28 20:55:16+11:00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, resolution, err := parseTime(s)
		if err == nil && (resolution <= 0 || resolution > 1e9) {
			t.Errorf("%q is %s, exact to %s", s, at, resolution)
		}
	})
}
