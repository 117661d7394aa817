package capture

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
	"linearize.example/traces/snapshot"
)

const (
	history = `{"history":"v1"}` + "\n" +
		`{"seq":1,"process":"p","op":"DeleteSecurityGroup","groupId":"sg-1","call":"2026-08-28T09:55:16Z","return":"2026-08-28T09:55:17Z"}` + "\n"
	log   = `{"level":"info","ts":"2026-08-28T09:55:16Z","msg":"version","GitVersion":"v3.4.0","GitCommit":"c","BuildDate":"d"}` + "\n"
	other = `{"a":1}`
	rules = `{"SecurityGroupRules":[{"SecurityGroupRuleId":"sgr-1","GroupId":"sg-1","IsEgress":false,"IpProtocol":"tcp","FromPort":1,"ToPort":2,"CidrIpv4":"10.0.0.0/8"}]}`
	tgbs  = `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"elbv2.k8s.aws/v1beta1","kind":"TargetGroupBinding",` +
		`"metadata":{"name":"b","namespace":"a"},"spec":{"targetGroupARN":"tg","targetType":"ip","networking":{"ingress":[{"from":[{"securityGroup":{"groupID":"sg-2"}}],"ports":[{"protocol":"TCP","port":80}]}]}}}]}`
)

// event returns a CloudTrail event with the given id.
func event(id string) string {
	return fmt.Sprintf(`{"eventVersion":"1.11","eventTime":"2026-08-28T09:55:16Z","eventSource":"ec2.amazonaws.com","eventName":"DeleteSecurityGroup",`+
		`"eventType":"AwsApiCall","eventID":"%s","requestParameters":{"groupId":"sg-1"},"userAgent":"terraform"}`, id)
}

func zipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return b.String()
}

func tarball(members ...string) string {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(members); i += 2 {
		w.WriteHeader(&tar.Header{Name: members[i], Size: int64(len(members[i+1])), Mode: 0o600, Typeflag: tar.TypeReg})
		io.WriteString(w, members[i+1])
	}
	w.Close()
	return b.String()
}

func zipArchive(members ...string) string {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(members); i += 2 {
		m, _ := w.Create(members[i])
		io.WriteString(m, members[i+1])
	}
	w.Close()
	return b.String()
}

// folder writes files, by pairs of name and content, into a new folder.
func folder(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// summary says of each input its name, format, counts and notes' kinds.
func summary(dir string, c *Capture) []string {
	var lines []string
	for _, in := range c.History.Inputs {
		line := fmt.Sprintf("%s %s %d/%d/%d/%d/%d", strings.TrimPrefix(strings.TrimPrefix(in.Path, dir), "/"), in.Format,
			in.Records, in.Used, in.Duplicates, in.Irrelevant, in.Rejected)
		for _, n := range in.Notes {
			line += " " + n.Kind
		}
		lines = append(lines, line)
	}
	return lines
}

// TestRead reads one file each, and whole folders.
func TestRead(t *testing.T) {
	trail := `{"Records":[` + event("e-1") + `]}`
	for _, test := range []struct {
		name  string
		files []string
		named string // the path that is named; "" for the folder
		want  []string
	}{
		{"a history", []string{"a", history}, "a", []string{"a history 1/1/0/0/0"}},
		{"a log", []string{"a", log}, "a", []string{"a controller-log 1/1/0/0/0"}},
		{"a trail", []string{"a", trail}, "a", []string{"a cloudtrail 1/1/0/0/0"}},
		{"compressed", []string{"a", zipped(trail)}, "a", []string{"a cloudtrail 1/1/0/0/0"}},
		{"compressed, in members", []string{"a", zipped(trail[:50]) + zipped(trail[50:])}, "a", []string{"a cloudtrail 1/1/0/0/0"}},
		{"compressed twice", []string{"a", zipped(zipped(history))}, "a", []string{"a history 1/1/0/0/0"}},
		{"cut off while compressed", []string{"a", cut(zipped(history+strings.Repeat(" ", 1000)), 8)}, "a", []string{"a history 1/1/0/0/0 truncated-capture"}},
		{"damaged while compressed", []string{"a", cut(zipped(history), 8) + "damaged!"}, "a", []string{"a history 1/1/0/0/0 truncated-capture"}},
		{"byte order mark", []string{"a", "\ufeff" + history}, "a", []string{"a history 1/1/0/0/0"}},
		{"tar", []string{"a", tarball("x/h", history, "x/t.gz", zipped(trail), "x/o", other)}, "a",
			[]string{"a!x/h history 1/1/0/0/0", "a!x/t.gz cloudtrail 1/1/0/0/0", "a archive 0/0/0/0/0 skipped-file"}},
		{"tar.gz", []string{"a", zipped(tarball("x", history))}, "a", []string{"a!x history 1/1/0/0/0"}},
		{"zip", []string{"a", zipArchive("y", other, "x", history)}, "a", []string{"a!x history 1/1/0/0/0", "a archive 0/0/0/0/0 skipped-file"}},
		{"a folder", []string{"b/2.json", trail, "b/1.json.gz", zipped(trail), "a.ndjson", history, "c.log", log, "truth.json", other, "empty", "", "z.png", "\x89PNG"}, "",
			[]string{"a.ndjson history 1/1/0/0/0", "b/1.json.gz cloudtrail 1/1/0/0/0", "b/2.json cloudtrail 1/0/1/0/0", "c.log controller-log 1/1/0/0/0",
				" folder 0/0/0/0/0 skipped-file skipped-file skipped-file"}},
		{"a snapshot and bindings", []string{"r.json", rules, "t.yaml", tgbs, "x.json", `{"SecurityGroupRules":[],"NextToken":"t"}`}, "",
			[]string{"r.json snapshot 1/1/0/0/0", "t.yaml bindings 1/1/0/0/0", " folder 0/0/0/0/0 skipped-file"}},
		{"an archive in a folder", []string{"a.tar", tarball("x", other), "b", history}, "", []string{"b history 1/1/0/0/0", " folder 0/0/0/0/0 skipped-file"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := folder(t, test.files...)
			c, err := Read(t.Context(), []string{filepath.Join(dir, test.named)}, nil, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, summary(dir, c)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func cut(s string, n int) string { return s[:len(s)-n] }

// TestRefused names what is no capture.
func TestRefused(t *testing.T) {
	for _, test := range []struct {
		name  string
		files []string
		named string
		error string
	}{
		{"empty", []string{"a", ""}, "a", "it is empty"},
		{"text", []string{"a", "hello\n"}, "a", `it begins with "hello"`},
		{"other JSON", []string{"a", other}, "a", "no eventName"},
		{"binary", []string{"a", "\x89PNG\r\n\x1a\n"}, "a", `it begins with "\x89PNG`},
		{"compressed text", []string{"a", zipped("hello")}, "a", `it begins with "hello"`},
		{"nothing but damage", []string{"a", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x07damage"}, "a", "the gzip stream is damaged"},
		{"an empty folder", nil, "", "the folder is empty"},
		{"a folder of other things", []string{"a", other, "b", "x"}, "", "none of the 2 files"},
		{"an archive of other things", []string{"a", tarball("x", "hello")}, "a", "an archive without a capture"},
		{"a damaged zip archive", []string{"a", "PK\x03\x04xxxx"}, "a", "damaged zip"},
		{"the console's CSV", []string{"a", "Event ID,Event time,Event name,Event source\n"}, "a", "no requestParameters"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := folder(t, test.files...)
			path := filepath.Join(dir, test.named)
			_, err := Read(t.Context(), []string{path}, nil, Options{})
			if !errors.Is(err, ErrNoCapture) || !strings.Contains(err.Error(), test.error) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want %q", err, test.error)
			}
		})
	}
	dir := folder(t, "a", `{"SecurityGroupRules":[],"NextToken":"t"}`)
	if _, err := Read(t.Context(), []string{filepath.Join(dir, "a")}, nil, Options{}); !errors.Is(err, snapshot.ErrIncomplete) {
		t.Errorf("got %v, want that the snapshot is incomplete", err)
	}
	if _, err := Read(t.Context(), []string{"does-not-exist"}, nil, Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that there is no such file", err)
	}
}

// TestSamePaths names files twice, links, and standard input.
func TestSamePaths(t *testing.T) {
	dir := folder(t, "a", history, "sub/b", history)
	outside := folder(t, "secret", history)
	for name, to := range map[string]string{"link-out": outside, "link-file": filepath.Join(outside, "secret"), "link-in": filepath.Join(dir, "a"), "loop": dir} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Read(t.Context(), []string{filepath.Join(dir, "link-in"), "-", dir}, strings.NewReader(zipped(history)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"link-in history 1/1/0/0/0",
		"standard input history 1/1/0/0/0",
		"a named twice 0/0/0/0/0 skipped-file",
		"sub/b history 1/1/0/0/0",
		" folder 0/0/0/0/0 skipped-file skipped-file skipped-file skipped-file",
	}
	if diff := cmp.Diff(want, summary(dir, c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := Read(t.Context(), []string{"-", "-"}, strings.NewReader(history), Options{}); err == nil {
		t.Error("standard input was named twice without an error")
	}
}

// TestDeterministic reads a folder twice and expects the same.
func TestDeterministic(t *testing.T) {
	var files []string
	for i := range 20 {
		files = append(files, fmt.Sprintf("d%d/f%d.json", i%3, i), `{"Records":[`+event(fmt.Sprint("e-", i%7))+`,`+event(fmt.Sprint("f-", i))+`]}`)
	}
	dir := folder(t, files...)
	var first *Capture
	for range 3 {
		c, err := Read(t.Context(), []string{dir}, nil, Options{Skew: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = c
		}
		if diff := cmp.Diff(first, c); diff != "" {
			t.Errorf("(-first +again):\n%s", diff)
		}
	}
	if len(first.History.Operations) != 27 {
		t.Errorf("%d operations, want 27", len(first.History.Operations))
	}
}

// bomb compresses n spaces.
func bomb(t *testing.T, n int) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	spaces := bytes.Repeat([]byte{' '}, 1<<20)
	for ; n > 0; n -= len(spaces) {
		if _, err := z.Write(spaces); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestBomb reads streams that expand a thousand times.
func TestBomb(t *testing.T) {
	spaces := bomb(t, 80<<20)
	for _, test := range []struct{ name, content string }{
		{"spaces", spaces},
		{"a string behind an event", zipped(event("e")+`"`) + spaces},
		{"a history's line", zipped(history+"{") + spaces},
		{"a bomb in a bomb", zipped(spaces)},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := folder(t, "a.gz", test.content)
			_, err := Read(t.Context(), []string{dir}, nil, Options{})
			if err == nil || !strings.Contains(err.Error(), "a.gz: it decompresses to") {
				t.Errorf("got %v, want that it expands too much", err)
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			if m.Sys > 256<<20 {
				t.Errorf("the memory taken from the system is %d MiB", m.Sys>>20)
			}
		})
	}
}

// TestCancelled stops in the middle of an endless input.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	src := io.MultiReader(strings.NewReader(event("e")), &cancelling{cancel: cancel})
	if _, err := Read(ctx, []string{"-"}, src, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
}

type cancelling struct {
	cancel func()
	reads  int
}

func (c *cancelling) Read(p []byte) (int, error) {
	if c.reads++; c.reads == 10 {
		c.cancel()
	}
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the disk is on fire") }

// TestFailing passes on what the source fails with.
func TestFailing(t *testing.T) {
	for _, before := range []string{"", history, event("e"), `{"Records":[` + event("e"), log, cut(zipped(history), 9), "eventName,_raw\n", rules} {
		_, err := Read(t.Context(), []string{"-"}, io.MultiReader(strings.NewReader(before), failing{}), Options{})
		if err == nil || !strings.Contains(err.Error(), "the disk is on fire") || errors.Is(err, ErrNoCapture) {
			t.Errorf("%.20q: got %v, want the source's error", before, err)
		}
	}
}

// TestCaptures reads the captures of the project's own testdata.
func TestCaptures(t *testing.T) {
	const captures = "../../testdata/captures"
	for name, want := range map[string][]string{
		"incident-2026-08-28": {"cloudtrail.json cloudtrail 11/11", "controller.log controller-log"},
		"real-run-incident":   {"cloudtrail.json cloudtrail 16/16", "controller.log controller-log", "history.ndjson history 15/15", " folder 0/0"},
		"real-run-control":    {"cloudtrail.json cloudtrail", "controller.log controller-log", "history.ndjson history", " folder 0/0"},
		"real-run-restart":    {"cloudtrail.json cloudtrail", "controller.log controller-log", "history.ndjson history", " folder 0/0"},
	} {
		dir := filepath.Join(captures, name)
		c, err := Read(t.Context(), []string{dir}, nil, Options{Skew: time.Second})
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		got := summary(dir, c)
		if len(got) != len(want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
			continue
		}
		for i := range want {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("%s: got %q, want %q", name, got[i], want[i])
			}
		}
		for _, in := range c.History.Inputs {
			if in.Rejected != 0 || in.Records != in.Used+in.Duplicates+in.Irrelevant {
				t.Errorf("%s: %+v", name, in)
			}
		}
		for _, op := range c.History.Operations {
			if op.Outcome == traces.Pending && !strings.HasSuffix(op.Op, "Targets") && name != "incident-2026-08-28" {
				t.Logf("%s: pending %s", name, op.ID)
			}
		}
	}
}

// Files of several formats that were concatenated are read as if each had been named.
func TestConcatenated(t *testing.T) {
	files := map[string]string{}
	for _, name := range []string{"history.ndjson", "cloudtrail.json", "controller.log"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "captures", "real-run-incident", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	type count struct {
		Format                    string
		Records, Used, Irrelevant int
	}
	counts := func(names ...string) (all []count) {
		text := ""
		for _, name := range names {
			text += files[name]
		}
		c, err := Read(context.Background(), []string{"-"}, strings.NewReader(text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range c.History.Inputs {
			if in.Rejected > 0 || len(in.Notes) > 0 {
				t.Errorf("%v: %+v", names, in)
			}
			all = append(all, count{in.Format, in.Records, in.Used, in.Irrelevant})
		}
		return all
	}
	alone := map[string]count{}
	for name := range files {
		alone[name] = counts(name)[0]
	}
	for _, names := range [][]string{
		{"history.ndjson", "cloudtrail.json", "controller.log"}, {"controller.log", "cloudtrail.json", "history.ndjson"},
		{"cloudtrail.json", "history.ndjson", "controller.log"}, {"cloudtrail.json", "controller.log", "cloudtrail.json"},
	} {
		var want []count
		for _, name := range names {
			want = append(want, alone[name])
		}
		if names[0] == names[2] {
			want[2].Used = 0 // every event a second time
		}
		if diff := cmp.Diff(want, counts(names...)); diff != "" {
			t.Errorf("%v: inputs (-each alone +concatenated)\n%s", names, diff)
		}
	}
}

// What comes before the first line of a log is part of it.
func TestLogAfterOtherLines(t *testing.T) {
	log, err := os.ReadFile(filepath.Join("..", "..", "testdata", "captures", "real-run-incident", "controller.log"))
	if err != nil {
		t.Fatal(err)
	}
	text := "Defaulted container \"controller\" out of: controller, proxy\nI0828 09:55:14.000000 1 leaderelection.go:257] attempting\n" + string(log)
	c, err := Read(context.Background(), []string{"-"}, strings.NewReader(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(c.History.Inputs); n != 1 {
		t.Errorf("%d inputs; want one: %+v", n, c.History.Inputs)
	}
}
