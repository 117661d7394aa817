package checker

import (
	"bytes"
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
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
