package linear

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"linearize.example/internal/histories"
	"linearize.example/traces"
)

var closedWorld = Initial{Others: Absent}

// histories of five processes: mostly sequential ones, and ones in which three calls are open on average.
func benchmarkHistories(b *testing.B, f func(b *testing.B, ops []traces.Operation)) {
	for _, concurrency := range []float64{0.5, 3} {
		for _, n := range []int{1_000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("concurrency=%v/operations=%d", concurrency, n), func(b *testing.B) {
				f(b, histories.Random(1, n, 5, histories.Options{Reads: 0.5, Concurrency: concurrency}))
			})
		}
	}
}

// reportMemory reports the most bytes that the heap's objects took while f ran, beyond those before it: the rest of a
// collection not yet made included.
func reportMemory(b *testing.B, f func()) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	heap := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	var peak uint64
	for b.Loop() {
		b.StopTimer()
		runtime.GC()
		before := heap()
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
		b.StartTimer()
		f()
		b.StopTimer()
		close(stop)
		<-stopped
		b.StartTimer()
	}
	b.ReportMetric(float64(peak), "peak-B")
}

func BenchmarkPorcupineOnePiece(b *testing.B) {
	benchmarkHistories(b, func(b *testing.B, ops []traces.Operation) {
		model, history, err := OnePiece(ops, closedWorld, Options{})
		if err != nil {
			b.Fatal(err)
		}
		reportMemory(b, func() {
			if !porcupine.CheckOperations(model, history) {
				b.Fatal("the history is not linearizable")
			}
		})
	})
}

func BenchmarkCheck(b *testing.B) {
	benchmarkHistories(b, func(b *testing.B, ops []traces.Operation) {
		reportMemory(b, func() {
			if r := Check(context.Background(), ops, closedWorld, Options{}); r.All != Linearizable {
				b.Fatalf("%s: %s", r.All, r.Detail)
			}
		})
	})
}

func BenchmarkReadLag(b *testing.B) {
	benchmarkHistories(b, func(b *testing.B, ops []traces.Operation) {
		reportMemory(b, func() {
			if r := ReadLag(context.Background(), ops, closedWorld, Options{}); r.Max != 0 || r.Together != Linearizable {
				b.Fatalf("%s %s: %s", r.Max, r.Together, r.Detail)
			}
		})
	})
}
