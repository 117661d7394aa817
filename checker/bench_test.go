package checker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"linearize.example/checker/linear"
	"linearize.example/checker/report"
	"linearize.example/internal/histories"
	"linearize.example/traces"
	"linearize.example/traces/capture"
)

// measure returns the time that f takes, and the most bytes that the heap's objects took meanwhile beyond those before it:
// the rest of a collection not yet made included.
func measure(f func()) (time.Duration, uint64) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	heap := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	runtime.GC()
	before, peak := heap(), uint64(1)
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				if h := heap(); h > before {
					peak = max(peak, h-before)
				}
			}
		}
	}()
	begin := time.Now()
	f()
	took := time.Since(begin)
	close(stop)
	<-stopped
	return took, peak
}

// capturing makes a capture of operations, by way of a history file.
func capturing(ops []traces.Operation) *capture.Capture {
	var b bytes.Buffer
	if err := traces.WriteHistory(&b, &traces.History{Operations: ops}); err != nil {
		panic(err)
	}
	h := &traces.History{Inputs: []traces.Input{{Path: "history.ndjson", Format: traces.FormatHistory}}}
	if err := traces.ReadHistory(&b, h, 0); err != nil {
		panic(err)
	}
	return &capture.Capture{History: h}
}

func check(b *testing.B, c *capture.Capture) *report.Report {
	r := Check(context.Background(), c, DefaultOptions())
	if len(r.Groups) != 1 || r.Groups[0].Linearity.Mutations == "" {
		b.Fatalf("%d groups", len(r.Groups))
	}
	return r
}

// onePiece has Porcupine judge all operations at once.
func onePiece(b *testing.B, ops []traces.Operation) bool {
	model, history, err := linear.OnePiece(ops, linear.Initial{Others: linear.Absent}, linear.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return porcupine.CheckOperations(model, history)
}

// ordinary histories are sequential for the most part; half of their calls are describes.
var ordinary = histories.Options{Reads: 0.5}

// quietly has the collector run often, so that the memory that is measured is what is needed.
func quietly(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	_, peak := measure(f)
	return peak
}

// BenchmarkMillion has the tool check a history of a million operations, half of them describes, and compares its time with that
// for 100,000, each as a process of its own.
func BenchmarkMillion(b *testing.B) {
	if testing.Short() {
		b.Skip("it takes a minute and a file of 1 GB")
	}
	tool := build(b)
	var files []string
	for _, n := range []int{100_000, 1_000_000} {
		name := filepath.Join(b.TempDir(), "history.ndjson")
		f, err := os.Create(name)
		if err != nil {
			b.Fatal(err)
		}
		err = traces.WriteHistory(f, &traces.History{Operations: histories.Random(1, n, 5, ordinary)})
		if err = errors.Join(err, f.Close()); err != nil {
			b.Fatal(err)
		}
		files = append(files, name)
	}
	for b.Loop() {
		short, _ := process(b, tool, "check", "--format", "json", files[0])
		long, memory := process(b, tool, "check", "--format", "json", files[1])
		b.ReportMetric(long.Seconds(), "s")
		b.ReportMetric(long.Seconds()/short.Seconds(), "x-100k")
		b.ReportMetric(memory, "MiB-RSS")
	}
}

// BenchmarkIncident has the tool check the incident, and compares that with jq, which counts the top-level values of the same
// files.
func BenchmarkIncident(b *testing.B) {
	jq, err := exec.LookPath("jq")
	if err != nil {
		b.Skip("jq is not installed")
	}
	const folder = "../../shared/captures/incident-2026-08-28"
	tool := build(b)
	for b.Loop() {
		mine, other := time.Duration(1<<62), time.Duration(1<<62)
		for range 10 {
			took, _ := process(b, tool, "check", folder)
			mine = min(mine, took)
			took, _ = process(b, jq, "length", folder+"/cloudtrail.json")
			other = min(other, took)
		}
		b.ReportMetric(1000*mine.Seconds(), "ms")
		b.ReportMetric(mine.Seconds()/other.Seconds(), "x-jq")
	}
}

// build builds the tool.
func build(b *testing.B) string {
	tool := filepath.Join(b.TempDir(), "linearize")
	if out, err := exec.Command("go", "build", "-o", tool, "../cmd/linearize").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return tool
}

// process runs a program to its end and returns how long it took and the most memory that it had resident, in MiB, as the kernel
// tells while it runs; 0 where it tells nothing. The tool's exit status 1 is a verdict.
func process(b *testing.B, name string, args ...string) (took time.Duration, memory float64) {
	c := exec.Command(name, args...)
	begin := time.Now()
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		for {
			// Not the resource usage, which counts what the parent had resident when it forked.
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Process.Pid))
			if _, after, found := strings.Cut(string(status), "VmHWM:"); found {
				var kib float64
				if _, err := fmt.Sscan(after, &kib); err == nil {
					memory = max(memory, kib/1024)
				}
			}
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	err := c.Wait()
	took = time.Since(begin)
	close(stop)
	<-stopped
	if err != nil && c.ProcessState.ExitCode() != 1 {
		b.Fatalf("%s: %v", name, err)
	}
	return took, memory
}

// compare reports the time and the memory that ours takes, and how many times those theirs takes in the same run.
func compare(b *testing.B, ours, theirs func()) {
	for b.Loop() {
		mine, _ := measure(ours)
		other, _ := measure(theirs)
		b.ReportMetric(mine.Seconds(), "s")
		b.ReportMetric(other.Seconds()/mine.Seconds(), "x-faster")
		memory := quietly(ours)
		b.ReportMetric(float64(memory)/(1<<20), "MiB")
		b.ReportMetric(float64(quietly(theirs))/float64(memory), "x-less-memory")
	}
}

// BenchmarkCheck100k has every property and linearity judged, 100,000 operations of five processes, and compares that with
// Porcupine, which judges linearity alone, in one piece.
func BenchmarkCheck100k(b *testing.B) {
	ops := histories.Random(1, 100_000, 5, ordinary)
	c := capturing(ops)
	compare(b, func() { check(b, c) }, func() {
		if !onePiece(b, ops) {
			b.Fatal("Porcupine finds no order")
		}
	})
}

// BenchmarkViolation10k finds the one call that no order explains among 10,000 operations of ten processes, which are busy all
// the time, and names it.
func BenchmarkViolation10k(b *testing.B) {
	ops := histories.Random(3, 10_000, 10, histories.Options{Concurrency: 10, ViolationAt: 9_900})
	c := capturing(ops)
	compare(b, func() {
		r := check(b, c)
		if u := r.Groups[0].Unordered; u == nil || u.At.ID != "seq 9901" || r.Groups[0].Linearity.Mutations != "not-linearizable" {
			b.Fatalf("linearity %+v, unordered %+v", r.Groups[0].Linearity, u)
		}
	}, func() {
		if onePiece(b, ops) {
			b.Fatal("Porcupine finds an order")
		}
	})
}
