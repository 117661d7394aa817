package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestVirtual has actors that sleep, meet at gates and are cancelled: they run one at a time, in the order of their times.
func TestVirtual(t *testing.T) {
	v := NewVirtual(Beginning)
	var seen []string
	note := func(format string, args ...any) {
		seen = append(seen, fmt.Sprintf("%s %s", v.Now().Sub(Beginning), fmt.Sprintf(format, args...)))
	}
	ctx := context.Background()
	mortal, kill := context.WithCancel(ctx)
	gate := v.Gate()
	for _, name := range []string{"a", "b"} {
		v.Go(func() {
			for range 2 {
				if err := v.Sleep(ctx, time.Second); err != nil {
					t.Error(err)
				}
				note("%s", name)
			}
		})
	}
	v.Go(func() {
		note("waits: %v", gate.Wait(ctx))
		note("open: %v", gate.Wait(ctx))
	})
	v.Go(func() { note("long sleep: %v", v.Sleep(mortal, time.Hour)) })
	v.Go(func() { note("shut gate: %v", v.Gate().Wait(mortal)) })
	v.Go(func() {
		note("no time: %v", v.Sleep(ctx, -time.Second))
		_ = v.Sleep(ctx, 1500*time.Millisecond)
		gate.Open()
		kill()
		v.Interrupt()
		note("killed")
		v.Go(func() { note("dead: %v, %v", v.Sleep(mortal, time.Second), v.Gate().Wait(mortal)) })
	})
	v.Run(Beginning.Add(time.Minute))
	want := []string{
		"0s no time: <nil>", "1s a", "1s b", "1.5s killed", "1.5s waits: <nil>", "1.5s open: <nil>",
		"1.5s long sleep: context canceled", "1.5s shut gate: context canceled", "1.5s dead: context canceled, context canceled", "2s a", "2s b",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := v.Now().Sub(Beginning); got != time.Minute {
		t.Errorf("the clock shows %s after a run of a minute", got)
	}
	v.Go(func() { _ = v.Sleep(ctx, time.Hour) })
	v.Drain()
	if got := v.Now().Sub(Beginning); got != time.Hour+time.Minute {
		t.Errorf("the clock shows %s when nobody sleeps any more", got)
	}
}

// TestSpuriousWake: a gate that opens after its waiter was cancelled does not wake it from what it does next.
func TestSpuriousWake(t *testing.T) {
	v := NewVirtual(Beginning)
	mortal, kill := context.WithCancel(context.Background())
	gate := v.Gate()
	var slept time.Duration
	v.Go(func() {
		if !errors.Is(gate.Wait(mortal), context.Canceled) {
			t.Error("the gate was not left")
		}
		from := v.Now()
		_ = v.Sleep(context.Background(), time.Minute)
		slept = v.Now().Sub(from)
	})
	v.Go(func() {
		_ = v.Sleep(context.Background(), time.Second)
		kill()
		v.Interrupt()
		_ = v.Sleep(context.Background(), time.Second)
		gate.Open()
	})
	v.Drain()
	if slept != time.Minute {
		t.Errorf("slept %s of a minute", slept)
	}
}

// TestWall: the other clock does the same in real time.
func TestWall(t *testing.T) {
	w := NewWall(1000)
	start := w.Now()
	ctx, cancel := context.WithCancel(context.Background())
	gate, shut := w.Gate(), w.Gate()
	results := make(chan string, 3)
	w.Go(func() { results <- fmt.Sprint("gate: ", gate.Wait(ctx)) })
	w.Go(func() { results <- fmt.Sprint("shut: ", shut.Wait(ctx)) })
	w.Go(func() { results <- fmt.Sprint("sleep: ", w.Sleep(ctx, 1000*time.Hour)) })
	if err := w.Sleep(ctx, time.Second); err != nil {
		t.Error(err)
	}
	if got := w.Now().Sub(start); got < time.Second {
		t.Errorf("the clock went on by %s in a sleep of a second", got)
	}
	gate.Open()
	gate.Open()
	got := []string{<-results}
	cancel()
	w.Interrupt()
	w.Wait()
	got = append(got, <-results, <-results, fmt.Sprint("late: ", w.Sleep(ctx, 0)))
	slices.Sort(got)
	want := []string{"gate: <nil>", "late: context canceled", "shut: context canceled", "sleep: context canceled"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
