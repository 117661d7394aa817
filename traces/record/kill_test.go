//go:build unix

package record_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"linearize.example/traces"
	"linearize.example/traces/record"
)

// The test program runs itself as a child that records: into which folder, with which file size limit.
const (
	childFolder = "RECORD_TEST_FOLDER"
	childLimit  = "RECORD_TEST_LIMIT"
)

// killsVariable sets how many children are killed.
const killsVariable = "RECORD_TEST_KILLS"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		if err := child(dir, os.Getenv(childLimit)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child records calls of several goroutines, as fast as it can, and acknowledges each by a line with its request id. It ends when
// the recording does.
func child(dir, limit string) error {
	if limit != "" {
		n, err := strconv.ParseUint(limit, 10, 64)
		if err != nil {
			return err
		}
		// A write over the limit gives EFBIG, unless a signal ends the program before.
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
			return err
		}
	}
	l, err := record.Open(record.Options{Dir: dir, RotateBytes: 64 << 10, Sync: true})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	errs := make(chan error)
	for w := range 4 {
		go func() {
			for n := 0; ; n++ {
				op := authorize("sg-1", int32(n%1000))
				op.RequestID = fmt.Sprint(os.Getpid(), "-", w, "-", n)
				e, err := l.Begin(op)
				if err == nil {
					err = e.End(succeeded(op))
				}
				if err == nil {
					_, err = os.Stdout.WriteString(op.RequestID + "\n")
				}
				if err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	err = <-errs
	if _, again := l.Begin(authorize("sg-1", 80)); again == nil {
		return fmt.Errorf("a call was begun after %w", err)
	}
	return err
}

// recordInChild starts a child and returns what it acknowledged until it ended, and what it said at last. kill is called once it is ready.
func recordInChild(t *testing.T, dir, limit string, kill func(*os.Process)) (acknowledged []string, last string) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	c := exec.Command(self)
	c.Env = append(os.Environ(), childFolder+"="+dir, childLimit+"="+limit)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "ready\n" {
		_ = c.Wait()
		t.Fatalf("the child says %q (%v): %s", line, err, stderr.String())
	}
	kill(c.Process)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // a line without its end was not acknowledged
		}
		acknowledged = append(acknowledged, strings.TrimSpace(line))
	}
	_ = c.Wait() // it was killed, or says why on stderr
	return acknowledged, stderr.String()
}

// lost returns what was acknowledged and is not in the history as a success.
func lost(h *traces.History, acknowledged []string) (missing []string) {
	kept := map[string]bool{}
	for _, op := range h.Operations {
		if op.Outcome == traces.Succeeded {
			kept[op.RequestID] = true
		}
	}
	for _, id := range acknowledged {
		if !kept[id] {
			missing = append(missing, id)
		}
	}
	return missing
}

// TestKill: a child that records is killed at random instants, and started again on the same folder. Whatever it acknowledged is in
// the history, which is readable, each number once. RECORD_TEST_KILLS=1000 kills more often.
func TestKill(t *testing.T) {
	kills := 100
	if s := os.Getenv(killsVariable); s != "" {
		var err error
		kills, err = strconv.Atoi(s)
		must(t, err)
	} else if testing.Short() {
		kills = 10
	}
	const perFolder = 10
	var mu sync.Mutex
	total, torn, pending := 0, 0, 0
	var wg sync.WaitGroup
	for half := range 2 {
		wg.Go(func() {
			for n := half * perFolder; n < kills; n += 2 * perFolder {
				rng := rand.New(rand.NewPCG(5, uint64(n)))
				dir := t.TempDir()
				var acknowledged []string
				for range min(perFolder, kills-n) {
					acks, _ := recordInChild(t, dir, "", func(p *os.Process) {
						time.Sleep(time.Duration(rng.IntN(25_000)) * time.Microsecond)
						if err := p.Kill(); err != nil {
							t.Error(err)
						}
					})
					acknowledged = append(acknowledged, acks...)
				}
				h := readFolder(t, dir)
				if missing := lost(h, acknowledged); len(missing) > 0 {
					t.Errorf("%d of %d acknowledged calls are not in the history: %.200q", len(missing), len(acknowledged), missing)
				}
				seqs := map[string]bool{}
				mu.Lock()
				for _, op := range h.Operations {
					if seqs[op.ID] {
						t.Errorf("the number %s is given out twice", op.ID)
					}
					seqs[op.ID] = true
					if op.Outcome == traces.Pending {
						pending++
					}
				}
				for _, in := range h.Inputs {
					torn += len(in.Notes)
					if in.Rejected > len(in.Notes) {
						t.Errorf("%+v", in)
					}
				}
				total += len(acknowledged)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("%d kills, %d calls acknowledged, %d pending, %d lines torn", kills, total, pending, torn)
	if total == 0 {
		t.Error("nothing was acknowledged")
	}
}

// TestFileLimit: a file system that takes no more ends the recording loudly, with the file ending in a whole line and with all
// that was acknowledged in it.
func TestFileLimit(t *testing.T) {
	for _, limit := range []int{9_000, 20_001, 50_010} {
		dir := t.TempDir()
		acknowledged, said := recordInChild(t, dir, fmt.Sprint(limit), func(*os.Process) {})
		if !strings.Contains(said, "file too large") || !strings.Contains(said, "nothing more is recorded") {
			t.Errorf("the child ended with %q", said)
		}
		h := readFolder(t, dir)
		if missing := lost(h, acknowledged); len(missing) > 0 || len(acknowledged) == 0 {
			t.Errorf("%d of %d acknowledged calls are not in the history", len(missing), len(acknowledged))
		}
		if in := h.Inputs[0]; in.Rejected > 0 || len(in.Notes) > 0 {
			t.Errorf("%+v", in)
		}
		text, err := os.ReadFile(filepath.Join(dir, "history-000001.ndjson"))
		must(t, err)
		if len(text) > limit || len(text) < limit/2 {
			t.Errorf("the file has %d bytes", len(text))
		}
	}
}
