package cloudtrail

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
)

// endless yields a pattern again and again, n bytes in all.
type endless struct {
	pattern []byte
	n       int64
	at      int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.n == 0 {
		return 0, io.EOF
	}
	n := 0
	for n < len(p) && e.n > 0 {
		k := copy(p[n:min(int64(len(p)), int64(n)+e.n)], e.pattern[e.at:])
		e.at = (e.at + k) % len(e.pattern)
		n += k
		e.n -= int64(k)
	}
	return n, nil
}

func pattern(s string) []byte { return bytes.Repeat([]byte(s), 1+(64<<10)/len(s)) }

// TestMemory reads inputs without an end in sight, and checks that the memory taken does not follow them.
func TestMemory(t *testing.T) {
	const limit = 256 << 20
	size := int64(9 << 20) // more than two records may have
	for _, test := range []struct {
		name, before, repeated string
		size                   int64
	}{
		{"a line of 1 GiB", `{"Records":[` + listed + `,{"x":"`, "a", 1 << 30},
		{"a string at the top", authorized + `"`, "a", size},
		{"a name", authorized + `{"`, "a", size},
		{"escapes", `{"Records":[` + authorized + `,"`, `\u0041\"`, size},
		{"white space", authorized, " ", size},
		{"line feeds", authorized, "\n", size},
		{"digits", authorized, "1", size},
		{"words", authorized + "\n", "word ", size},
		{"lists in lists", authorized, "[", size},
		{"objects in objects", authorized, `{"a":`, size},
		{"objects in objects, one a line", authorized + "\n", `{"a":` + "\n", size},
		{"unclosed objects, one a line", authorized + "\n", `{"a":{"b":1` + "\n", 1 << 20},
		{"lists in log files", authorized, `{"Records":[`, size},
		{"lists in records", `{"Records":[` + authorized + `,`, "[", size},
		{"empty objects", authorized, `{}`, 1 << 20},
		{"commas", `{"Records":[` + authorized, `,`, size},
		{"closing brackets", authorized, `}]`, size},
		{"colons", authorized, `:`, size},
		{"records of nothing", `{"Records":[` + authorized + `,`, `0,`, size},
		{"a dict without an end", authorized + `{'`, "a", size},
		{"a table's cell", "eventName,requestParameters\n" + `x,"`, "a", size},
		{"a table's rows", "eventName,requestParameters\n", "SecurityGroup,y\n", 1 << 20},
		{"bytes that are no text", authorized + "\n", "\xff\xfe\x80", size},
		{"zeros", authorized + "\n", "\x00", size},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := &traces.History{Inputs: []traces.Input{{Path: "input"}}}
			start := time.Now()
			err := Read(io.MultiReader(strings.NewReader(test.before), &endless{pattern: pattern(test.repeated), n: test.size}), h, 0, Options{})
			if err != nil && !strings.HasPrefix(test.before, "event") {
				t.Error(err)
			}
			in := h.Inputs[0]
			if in.Records != in.Used+in.Duplicates+in.Irrelevant+in.Rejected {
				t.Errorf("the counts do not add up: %+v", in)
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			t.Logf("%.1fs, %d MiB, %d records, %d rejected", time.Since(start).Seconds(), m.Sys>>20, in.Records, in.Rejected)
			if m.Sys > limit {
				t.Errorf("the memory taken from the system is %d MiB", m.Sys>>20)
			}
		})
	}
}

// TestDecodedMemory decodes records that are as costly as their size allows.
func TestDecodedMemory(t *testing.T) {
	for _, test := range []struct{ name, repeated string }{
		{"numbers", "1,"}, {"lists", "[],"}, {"objects", "{},"}, {"objects with a member", `{"a":{}},`},
	} {
		t.Run(test.name, func(t *testing.T) {
			const start, end = `{"Records":[{"eventName":"SecurityGroup","x":[`, `0]}]}`
			n := (MaxRecord - 1000) / len(test.repeated)
			h := &traces.History{Inputs: []traces.Input{{Path: "input"}}}
			if err := Read(strings.NewReader(start+strings.Repeat(test.repeated, n)+end), h, 0, Options{}); err == nil {
				t.Error("no error, want that no event was found")
			}
			if h.Inputs[0].Rejected != 1 {
				t.Errorf("got %+v", h.Inputs[0])
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			t.Logf("%d MiB", m.Sys>>20)
			if m.Sys > 256<<20 {
				t.Errorf("the memory taken from the system is %d MiB", m.Sys>>20)
			}
		})
	}
}

// TestHostileText checks that what strings hold stays data.
func TestHostileText(t *testing.T) {
	const evil = "\x1b[31m<script>alert(1)</script>\u202e sg-\x00 {\"Records\":[]}"
	input := strings.NewReplacer(`"one"`, quoted(evil), "team=a", strings.Trim(quoted(evil), `"`), `/lbc/one`, `/lbc/`+strings.Trim(quoted(evil), `"`)).Replace(authorized)
	h, err := read(t, input, Options{})
	if err != nil {
		t.Fatal(err)
	}
	op := h.Operations[0]
	if op.Caller.Session != evil || op.Permissions[0].Description != evil+",elbv2.k8s.aws/targetGroupBinding=shared" {
		t.Errorf("got %q and %q", op.Caller.Session, op.Permissions[0].Description)
	}
	h, err = read(t, strings.Replace(authorized, "team", "\xff\xfe", 1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := h.Operations[0].Permissions[0].Description; !strings.HasPrefix(d, "\ufffd\ufffd=a") {
		t.Errorf("got %q", d)
	}
}

// oneByte delivers its bytes one by one.
type oneByte struct{ s string }

func (o *oneByte) Read(p []byte) (int, error) {
	if o.s == "" {
		return 0, io.EOF
	}
	p[0] = o.s[0]
	o.s = o.s[1:]
	return 1, nil
}

// TestSmallReads checks that it does not matter how the input is cut into pieces.
func TestSmallReads(t *testing.T) {
	input := `{"Records":[` + authorized + `,` + indented(listed) + `]}` + "\n" + quoted(revoked) + "\n" + lookup(revoked, "x", "y") + "\n{\"torn"
	whole, err := read(t, input, Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := &traces.History{Inputs: []traces.Input{{Path: "input"}}}
	if err := Read(&oneByte{input}, h, 0, Options{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, h); diff != "" {
		t.Errorf("(-whole +pieces):\n%s", diff)
	}
}

// TestPrescan checks that skipping undecoded records loses nothing: with and without it the same is used.
func TestPrescan(t *testing.T) {
	for _, name := range []string{"AuthorizeSecurityGroupIngress", `Authorize\u0053ecurityGroupIngress`, `\u0041\u0075thorize\u0053ecurityGroup\u0049ngress`,
		`AuthorizeSecurity\u0047roupIngress`, `AuthorizeSecurit\u0079GroupIngress`} {
		record := strings.Replace(authorized, "AuthorizeSecurityGroupIngress", name, 1)
		if !mayMatter([]byte(record)) {
			t.Errorf("%s is passed over", name)
		}
	}
	for name := range calls {
		for i := range name {
			escaped := name[:i] + `\u00` + string("0123456789abcdef"[name[i]>>4]) + string("0123456789abcdef"[name[i]&15]) + name[i+1:]
			if !mayMatter([]byte(escaped)) {
				t.Errorf("%s is passed over", escaped)
			}
		}
	}
	if mayMatter([]byte(strings.Replace(listed, "ListBuckets", `List\u003cBuckets`, 1))) {
		t.Error("an escape that is no letter forces decoding")
	}
}
