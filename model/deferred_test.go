package model

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDeferredQueue(t *testing.T) {
	start := time.Date(2026, 8, 28, 10, 5, 0, 0, time.UTC)
	jitter := DeferJitter - 1
	q := NewDeferredQueue(SyncPeriod, func(max time.Duration) time.Duration { return min(jitter, max-1) })
	if !q.Enqueue("a", start) {
		t.Error("a fresh binding is not deferred")
	}
	if q.Enqueue("a", start.Add(SyncPeriod-1)) {
		t.Error("a deferred binding is deferred again within the sync period")
	}
	jitter = 0
	q.MarkProcessed("b", start)
	q.MarkProcessed("b", start.Add(time.Hour)) // does not prolong the mark
	if q.Enqueue("b", start.Add(SyncPeriod-1)) {
		t.Error("a processed binding is deferred within the sync period")
	}
	if !q.Enqueue("b", start.Add(SyncPeriod)) {
		t.Error("the mark outlives the sync period")
	}
	if !q.Enqueue("c", start) {
		t.Error("a fresh binding is not deferred")
	}
	if next, ok := q.Next(); !ok || !next.Equal(start.Add(DeferDelay)) {
		t.Errorf("next is due at %v", next)
	}
	for _, c := range []struct {
		at   time.Duration
		want []string
	}{
		{DeferDelay - 1, nil},
		{DeferDelay, []string{"c"}},
		{DeferDelay + DeferJitter - 2, nil},
		{DeferDelay + DeferJitter - 1, []string{"a"}},
		{SyncPeriod + DeferDelay, []string{"b"}},
		{2 * SyncPeriod, nil},
	} {
		if diff := cmp.Diff(c.want, q.Due(start.Add(c.at))); diff != "" {
			t.Errorf("due at %v (-want +got)\n%s", c.at, diff)
		}
	}
	if _, ok := q.Next(); ok {
		t.Error("the queue is not empty")
	}
}
