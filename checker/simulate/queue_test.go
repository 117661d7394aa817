package simulate

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestQueue: an item waits once, is not worked on twice at once, and comes back after a back-off that doubles.
func TestQueue(t *testing.T) {
	v := NewVirtual(Beginning)
	ctx, cancel := context.WithCancel(context.Background())
	q := newQueue(ctx, v)
	var seen []string
	for worker := range 2 {
		v.Go(func() {
			for {
				item, trigger, ok := q.get(ctx)
				if !ok {
					seen = append(seen, fmt.Sprintf("%s worker %d ends", v.Now().Sub(Beginning), worker))
					return
				}
				seen = append(seen, fmt.Sprintf("%s %d %s %s", v.Now().Sub(Beginning), worker, item, trigger))
				_ = v.Sleep(ctx, time.Second)
				if item == "fails" && q.failures[item] < 3 {
					q.addFailed(item)
				} else {
					q.forget(item)
				}
				q.done(item)
			}
		})
	}
	v.Go(func() {
		q.add("a", "first")
		q.add("a", "second") // waits already
		_ = v.Sleep(ctx, 500*time.Millisecond)
		q.add("a", "third") // is worked on
		_ = v.Sleep(ctx, 9500*time.Millisecond)
		q.add("fails", "event")
		_ = v.Sleep(ctx, 20*time.Second)
		q.addAfter("never", "too late", time.Hour)
		q.add("a", "last")
		_ = v.Sleep(ctx, 100*time.Millisecond)
		q.close()
		q.add("b", "closed")
		_ = v.Sleep(ctx, 10*time.Second)
		cancel()
		v.Interrupt()
	})
	v.Drain()
	want := []string{
		"0s 0 a first", "1s 0 a third", "10s 1 fails event", "11.005s 0 fails back-off", "12.015s 1 fails back-off",
		"13.035s 0 fails back-off", "30s 1 a last", "30.1s worker 0 ends", "31s worker 1 ends",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestBackoff: 5 ms, doubled with each failure, and no more than 1000 s.
func TestBackoff(t *testing.T) {
	v := NewVirtual(Beginning)
	q := newQueue(context.Background(), v)
	var delays []time.Duration
	v.Go(func() {
		for range 20 {
			from := v.Now()
			q.addFailed("x")
			_, _, _ = q.get(context.Background())
			q.done("x")
			delays = append(delays, v.Now().Sub(from))
		}
	})
	v.Drain()
	for i, d := range delays {
		if want := min(5*time.Millisecond<<i, 1000*time.Second); d != want {
			t.Errorf("after %d failures %s, want %s", i+1, d, want)
		}
	}
	if len(delays) != 20 {
		t.Errorf("%d of 20 came back", len(delays))
	}
}

// TestMutexes: who waits longest is next; the mutexes of two names do not meet; a dead process waits for none.
func TestMutexes(t *testing.T) {
	v := NewVirtual(Beginning)
	ctx, die := context.WithCancel(context.Background())
	m := &mutexes{clock: v, ctx: ctx, held: map[string][]Gate{}}
	var seen []string
	for i := range 3 {
		v.Go(func() {
			defer m.lock("a")()
			seen = append(seen, fmt.Sprintf("%s a%d", v.Now().Sub(Beginning), i))
			_ = v.Sleep(context.Background(), time.Second)
		})
	}
	v.Go(func() {
		unlock := m.lock("b")
		seen = append(seen, fmt.Sprintf("%s b", v.Now().Sub(Beginning)))
		unlock()
		_ = v.Sleep(context.Background(), 10*time.Second)
		m.lock("b")()
		m.lock("a")
		die()
		m.lock("a")()
		seen = append(seen, "dead")
	})
	v.Drain()
	want := []string{"0s a0", "0s b", "1s a1", "2s a2", "dead"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
