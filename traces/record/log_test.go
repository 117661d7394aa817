package record_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"linearize.example/traces"
	"linearize.example/traces/capture"
	"linearize.example/traces/record"
)

var start = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)

// ticking is a clock that moves on by a millisecond whenever it is read.
func ticking() func() time.Time {
	var mu sync.Mutex
	now := start
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Millisecond)
		return now
	}
}

func authorize(group string, ports ...int32) traces.Operation {
	op := traces.Operation{Process: "lbc", Op: traces.AuthorizeSecurityGroupIngress, Group: group}
	for _, p := range ports {
		op.Permissions = append(op.Permissions, traces.Permission{Rule: traces.Rule{Protocol: "tcp", FromPort: p, ToPort: p, Source: "sg-lb"}})
	}
	return op
}

func describe(group string) traces.Operation {
	return traces.Operation{Process: "lbc", Op: traces.DescribeSecurityGroups, Group: group}
}

func succeeded(op traces.Operation) traces.Operation {
	op.Outcome = traces.Succeeded
	return op
}

func failed(op traces.Operation, code string) traces.Operation {
	op.Outcome, op.Error = traces.Failed, code
	return op
}

func begin(t testing.TB, l *record.Log, ops ...traces.Operation) *record.Entry {
	t.Helper()
	e, err := l.Begin(ops...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestLogGolden: what a recording looks like, line by line.
func TestLogGolden(t *testing.T) {
	var b bytes.Buffer
	l, err := record.NewLog(&b, record.Options{Now: ticking(), Clock: "a test's", Header: map[string]string{"endpoint": "simulated"}})
	must(t, err)
	first := begin(t, l, authorize("sg-1", 80))
	second := begin(t, l, describe("sg-1"), describe("sg-2"))
	must(t, l.Note(traces.Observation{Kind: traces.Skipped, Process: "lbc", TGB: "ns/web"}))
	must(t, first.End(failed(authorize("sg-1", 80), "InvalidPermission.Duplicate")))
	shown := succeeded(describe("sg-3"))
	shown.View = []traces.Permission{}
	must(t, second.End(succeeded(describe("sg-2")), shown))
	third := begin(t, l, authorize("sg-1", 81))
	pending := authorize("sg-1", 81)
	pending.RequestID = "r-3"
	must(t, third.End(pending))
	if err := third.End(pending); err == nil {
		t.Error("a call ended twice")
	}
	fourth := begin(t, l, traces.Operation{Op: traces.CreateSecurityGroup})
	bounded := traces.Operation{Op: traces.CreateSecurityGroup, Return: traces.At(start.Add(time.Second))}
	must(t, fourth.End(bounded))
	must(t, l.Close())
	if err := l.Close(); !errors.Is(err, record.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
	if _, err := l.Begin(describe("sg-1")); !errors.Is(err, record.ErrClosed) {
		t.Errorf("begun when closed: %v", err)
	}
	const at = "2026-11-30T10:00:00."
	want := `{"history":"v1","clock":"a test's","endpoint":"simulated"}
{"seq":1,"process":"lbc","op":"AuthorizeSecurityGroupIngress","groupId":"sg-1","call":"` + at + `001Z","ipPermissions":[{"IpProtocol":"tcp","FromPort":80,"ToPort":80,"UserIdGroupPairs":[{"GroupId":"sg-lb"}]}]}
{"seq":2,"process":"lbc","op":"DescribeSecurityGroups","groupId":"sg-1","call":"` + at + `002Z"}
{"seq":3,"process":"lbc","op":"DescribeSecurityGroups","groupId":"sg-2","call":"` + at + `002Z"}
{"observation":"skipped","process":"lbc","tgb":"ns/web","at":"` + at + `003Z"}
{"seq":1,"process":"lbc","op":"AuthorizeSecurityGroupIngress","groupId":"sg-1","call":"` + at + `001Z","return":"` + at + `004Z","ipPermissions":[{"IpProtocol":"tcp","FromPort":80,"ToPort":80,"UserIdGroupPairs":[{"GroupId":"sg-lb"}]}],"error":"InvalidPermission.Duplicate"}
{"seq":3,"process":"lbc","op":"DescribeSecurityGroups","groupId":"sg-2","call":"` + at + `002Z","return":"` + at + `005Z"}
{"seq":4,"process":"lbc","op":"DescribeSecurityGroups","groupId":"sg-3","call":"` + at + `002Z","return":"` + at + `005Z","result":{"ipPermissions":[]}}
{"seq":5,"process":"lbc","op":"AuthorizeSecurityGroupIngress","groupId":"sg-1","call":"` + at + `006Z","ipPermissions":[{"IpProtocol":"tcp","FromPort":81,"ToPort":81,"UserIdGroupPairs":[{"GroupId":"sg-lb"}]}]}
{"seq":5,"process":"lbc","op":"AuthorizeSecurityGroupIngress","groupId":"sg-1","call":"` + at + `006Z","ipPermissions":[{"IpProtocol":"tcp","FromPort":81,"ToPort":81,"UserIdGroupPairs":[{"GroupId":"sg-lb"}]}],"requestId":"r-3"}
{"seq":6,"op":"CreateSecurityGroup","call":"` + at + `008Z"}
{"seq":6,"op":"CreateSecurityGroup","call":"` + at + `008Z","return":"2026-11-30T10:00:01Z","pending":true}
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// readFolder reads a recording as `linearize check DIR` does.
func readFolder(t testing.TB, dir string) *traces.History {
	t.Helper()
	c, err := capture.Read(context.Background(), []string{dir}, nil, capture.Options{})
	must(t, err)
	return c.History
}

// TestLogFolder: several goroutines record into a folder that is rotated often; all is there once, in the order of calls, and
// reopening goes on with the numbers.
func TestLogFolder(t *testing.T) {
	for _, synced := range []bool{false, true} {
		t.Run(fmt.Sprint("sync ", synced), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a [new] folder")
			const workers, rounds, calls = 8, 3, 40
			want := map[string]traces.Operation{}
			var mu sync.Mutex
			for round := range rounds {
				l, err := record.Open(record.Options{Dir: dir, RotateBytes: 8 << 10, Sync: synced})
				must(t, err)
				var wg sync.WaitGroup
				for w := range workers {
					wg.Go(func() {
						for n := range calls {
							op := authorize("sg-1", int32(n))
							op.RequestID = fmt.Sprint(round, "-", w, "-", n)
							e, err := l.Begin(op)
							if err == nil {
								err = l.Note(traces.Observation{Kind: traces.Noted, Text: op.RequestID})
							}
							if err == nil {
								err = e.End(succeeded(op))
							}
							if err != nil {
								t.Error(err)
								return
							}
							mu.Lock()
							want[op.RequestID] = e.Operations()[0]
							mu.Unlock()
						}
					})
				}
				wg.Wait()
				must(t, l.Close())
			}
			h := readFolder(t, dir)
			if len(h.Operations) != workers*rounds*calls || len(h.Observations) != len(h.Operations) {
				t.Fatalf("%d operations and %d observations", len(h.Operations), len(h.Observations))
			}
			seqs := map[string]bool{}
			for i, op := range h.Operations {
				seqs[op.ID] = true
				if diff := cmp.Diff(want[op.RequestID], op, cmpopts.IgnoreFields(op, "Sources"), cmpopts.EquateEmpty()); diff != "" {
					t.Fatal(diff)
				}
				if i > 0 && h.Operations[i-1].Call > op.Call {
					t.Fatalf("%s was called before %s", op.ID, h.Operations[i-1].ID)
				}
			}
			if len(seqs) != len(h.Operations) {
				t.Errorf("%d numbers for %d operations", len(seqs), len(h.Operations))
			}
			if len(h.Inputs) < 2*rounds {
				t.Errorf("%d files", len(h.Inputs))
			}
			for i, in := range h.Inputs {
				if in.Rejected > 0 || len(in.Notes) > 0 || in.Part != i+1 || in.Recording != h.Inputs[0].Recording || in.Recording == "" {
					t.Errorf("%+v", in)
				}
			}
			if merged := traces.Merge(h, time.Second); &merged.Operations[0] != &h.Operations[0] {
				t.Error("the parts are not one source")
			}
		})
	}
}

// TestOpenContinues: what a kill leaves behind is no obstacle, and no number is given out twice.
func TestOpenContinues(t *testing.T) {
	line := func(seq int) string {
		return fmt.Sprintf(`{"seq":%d,"op":"DeleteSecurityGroup","groupId":"sg-1","call":"2026-11-30T10:00:00Z"}`, seq) + "\n"
	}
	for name, c := range map[string]struct {
		files map[string]string
		file  string
		seq   int
	}{
		"nothing":                      {nil, "history-000001.ndjson", 1},
		"a torn line":                  {map[string]string{"history-000001.ndjson": `{"history":"v1","recording":"r","part":"1","next":"1"}` + "\n" + line(1) + line(2) + `{"seq":3,"op`}, "history-000002.ndjson", 3},
		"an empty file":                {map[string]string{"history-000001.ndjson": ""}, "history-000002.ndjson", 1},
		"a file that was being made":   {map[string]string{"history-000001.ndjson": `{"history":"v1","recording":"r","part":"1"}` + "\n" + line(7), "history-000002.ndjson.new": `{"his`}, "history-000002.ndjson", 8},
		"a late answer in the last":    {map[string]string{"history-000001.ndjson": `{"history":"v1","recording":"r","part":"1","next":"1"}` + "\n" + line(8), "history-000002.ndjson": `{"history":"v1","recording":"r","part":"2","next":"9"}` + "\n" + line(3)}, "history-000003.ndjson", 9},
		"files of somebody else's":     {map[string]string{"history-old.ndjson": "{}\n", "notes.txt": "hello"}, "history-000001.ndjson", 1},
		"a million files":              {map[string]string{"history-1000000.ndjson": `{"history":"v1","recording":"r","part":"1000000","next":"5"}` + "\n"}, "history-1000001.ndjson", 5},
		"a line that is too long":      {map[string]string{"history-000001.ndjson": line(4) + strings.Repeat("x", traces.MaxLine+1) + "\n" + line(6)}, "history-000002.ndjson", 7},
		"a last file without a header": {map[string]string{"history-000001.ndjson": `{"history":"v1","recording":"r","part":"1","next":"1"}` + "\n" + line(4), "history-000002.ndjson": ""}, "history-000003.ndjson", 5},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range c.files {
				must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
			}
			l, err := record.Open(record.Options{Dir: dir, Now: ticking(), Header: map[string]string{"recording": "r"}})
			must(t, err)
			e := begin(t, l, authorize("sg-1", 80))
			must(t, e.End(succeeded(authorize("sg-1", 80))))
			must(t, l.Close())
			if got := e.Operations()[0].ID; got != "seq "+strconv.Itoa(c.seq) {
				t.Errorf("%s, want %d", got, c.seq)
			}
			text, err := os.ReadFile(filepath.Join(dir, c.file))
			must(t, err)
			if !strings.Contains(string(text), `"recording":"r"`) || strings.Count(string(text), "\n") != 3 {
				t.Errorf("%s", text)
			}
			for name, before := range c.files {
				if after, err := os.ReadFile(filepath.Join(dir, name)); err == nil && string(after) != before {
					t.Errorf("%s was changed", name)
				} else if err != nil && !strings.HasSuffix(name, ".new") {
					t.Error(err)
				}
			}
		})
	}
}

// TestOpenRefuses: a folder is recorded into by one log at a time, and has to be one.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	l, err := record.Open(record.Options{Dir: dir})
	must(t, err)
	if _, err := record.Open(record.Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "somebody else records into it") {
		t.Errorf("a second recording into the folder: %v", err)
	}
	must(t, l.Close())
	l, err = record.Open(record.Options{Dir: dir})
	must(t, err)
	must(t, l.Close())
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o644))
	for _, dir := range []string{"", file, filepath.Join(file, "below")} {
		if _, err := record.Open(record.Options{Dir: dir}); err == nil {
			t.Errorf("a recording into %q", dir)
		}
	}
}

// limited is a disk that is full after some bytes.
type limited struct {
	bytes.Buffer
	left int
}

var errFull = errors.New("no room is left")

func (w *limited) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.left -= n
	w.Buffer.Write(p[:n])
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

// unsyncable is a disk whose fsync fails once, the nth time, and says afterwards that all is well, as disks do.
type unsyncable struct {
	io.Writer
	after int
}

func (w *unsyncable) Sync() error {
	w.after--
	if w.after == 0 {
		return errFull
	}
	return nil
}

// TestLogBreaks: when the disk fails, the call that it concerns fails, and all that follow; what was acknowledged is in the history.
func TestLogBreaks(t *testing.T) {
	disks := map[string]func(n int) (io.Writer, *bytes.Buffer){
		"write": func(n int) (io.Writer, *bytes.Buffer) {
			w := &limited{left: 100 + 37*n}
			return w, &w.Buffer
		},
		"fsync": func(n int) (io.Writer, *bytes.Buffer) {
			var b bytes.Buffer
			return &unsyncable{&b, n + 1}, &b
		},
	}
	for name, disk := range disks {
		t.Run(name, func(t *testing.T) {
			for n := range 30 {
				w, b := disk(n)
				l, err := record.NewLog(w, record.Options{Sync: true})
				must(t, err)
				var acknowledged []string
				for i := 0; ; i++ {
					op := authorize("sg-1", 80)
					op.RequestID = fmt.Sprint(i)
					e, err := l.Begin(op)
					if err == nil {
						err = e.End(succeeded(op))
					}
					if err != nil {
						if !errors.Is(err, errFull) || !strings.Contains(err.Error(), "nothing more is recorded") {
							t.Fatal(err)
						}
						break
					}
					acknowledged = append(acknowledged, op.RequestID)
				}
				if _, err := l.Begin(describe("sg-1")); !errors.Is(err, errFull) {
					t.Errorf("a call after that: %v", err)
				}
				if err := l.Note(traces.Observation{Kind: traces.Noted}); !errors.Is(err, errFull) {
					t.Errorf("a note after that: %v", err)
				}
				if !errors.Is(l.Err(), errFull) {
					t.Error(l.Err())
				}
				if err := l.Close(); !errors.Is(err, errFull) {
					t.Errorf("closing: %v", err)
				}
				h := &traces.History{Inputs: []traces.Input{{}}}
				must(t, traces.ReadHistory(bytes.NewReader(b.Bytes()), h, 0))
				var kept []string
				for _, op := range h.Operations {
					if op.Outcome == traces.Succeeded {
						kept = append(kept, op.RequestID)
					}
				}
				if len(kept) < len(acknowledged) || len(kept) > len(acknowledged)+1 || !slices.Equal(acknowledged, kept[:len(acknowledged)]) {
					t.Fatalf("%d of %d", len(kept), len(acknowledged))
				}
			}
		})
	}
}

// TestGroupCommit: calls that wait for the disk at once share an fsync.
func TestGroupCommit(t *testing.T) {
	slow := &slowDisk{}
	l, err := record.NewLog(slow, record.Options{Sync: true})
	must(t, err)
	var wg sync.WaitGroup
	const workers, calls = 32, 10
	for range workers {
		wg.Go(func() {
			for range calls {
				e, err := l.Begin(authorize("sg-1", 80))
				if err == nil {
					err = e.End(succeeded(authorize("sg-1", 80)))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	must(t, l.Close())
	if slow.syncs > workers*calls/2 {
		t.Errorf("%d fsyncs for %d calls", slow.syncs, workers*calls)
	}
}

type slowDisk struct{ syncs int }

func (*slowDisk) Write(p []byte) (int, error) { return len(p), nil }

func (d *slowDisk) Sync() error {
	d.syncs++
	time.Sleep(2 * time.Millisecond)
	return nil
}

// stuck is a disk that does not answer until it is told to.
type stuck struct {
	header bool
	answer chan bool
}

func (d *stuck) Write(p []byte) (int, error) {
	if d.header {
		<-d.answer
	}
	d.header = true
	return len(p), nil
}

// TestNotesDoNotWait: who only notes does not wait for the disk, until there is too much that waits for it.
func TestNotesDoNotWait(t *testing.T) {
	disk := &stuck{answer: make(chan bool)}
	l, err := record.NewLog(disk, record.Options{})
	must(t, err)
	text := strings.Repeat("x", 1000)
	for range 500 {
		must(t, l.Note(traces.Observation{Kind: traces.Noted, Text: text}))
		if _, err := l.Begin(describe("sg-1")); err != nil {
			t.Fatal(err)
		}
	}
	waiting := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < 1000 && err == nil; i++ {
			err = l.Note(traces.Observation{Kind: traces.Noted, Text: text})
		}
		waiting <- err
	}()
	select {
	case err := <-waiting:
		t.Fatalf("more than a megabyte was queued without waiting (%v)", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(disk.answer)
	must(t, <-waiting)
	must(t, l.Close())
}
