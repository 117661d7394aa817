package model

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// The controller's periods.
const (
	CacheTTL       = 10 * time.Minute // security_group_manager.go:17
	SyncPeriod     = 10 * time.Hour   // default of --sync-period
	DeferDelay     = 30 * time.Minute // targetgroupbinding_deferred_reconciler.go:22
	DeferJitter    = 15 * time.Minute // targetgroupbinding_deferred_reconciler.go:25
	NetworkRequeue = 15 * time.Second // resource_manager.go:57, 293
	SyncJitter     = 0.1              // the resync of controller-runtime comes up to 10 % earlier or later
)

// DeferredQueue holds the bindings whose reconcile was skipped, each until its stored checkpoint is to
// be emptied. The zero value is not ready; use NewDeferredQueue. Several workers may use one at once.
type DeferredQueue struct {
	mu         sync.Mutex
	syncPeriod time.Duration
	jitter     func(max time.Duration) time.Duration
	processed  map[string]time.Time // when the mark of a recently processed binding ends
	waiting    []deferred           // sorted by due, then by binding
}

type deferred struct {
	binding string
	due     time.Time
}

// NewDeferredQueue returns an empty queue. Jitter returns a random duration below max.
func NewDeferredQueue(syncPeriod time.Duration, jitter func(max time.Duration) time.Duration) *DeferredQueue {
	return &DeferredQueue{syncPeriod: syncPeriod, jitter: jitter, processed: map[string]time.Time{}}
}

// Enqueue defers a skipped binding, unless it was deferred or processed within the sync period. It
// reports whether it did (deferred_reconciler.go:69, 139).
func (q *DeferredQueue) Enqueue(binding string, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.marked(binding, now) {
		return false
	}
	q.processed[binding] = now.Add(q.syncPeriod)
	d := deferred{binding, now.Add(DeferDelay + q.jitter(DeferJitter))}
	i, _ := slices.BinarySearchFunc(q.waiting, d, func(a, b deferred) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.binding, b.binding))
	})
	q.waiting = slices.Insert(q.waiting, i, d)
	return true
}

// MarkProcessed notes that a binding was reconciled in full. A mark that is there is not prolonged
// (deferred_reconciler.go:78).
func (q *DeferredQueue) MarkProcessed(binding string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.marked(binding, now) {
		q.processed[binding] = now.Add(q.syncPeriod)
	}
}

// Due removes and returns the bindings whose time has come, in the order of their times.
func (q *DeferredQueue) Due(now time.Time) []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	var due []string
	for len(q.waiting) > 0 && !q.waiting[0].due.After(now) {
		due = append(due, q.waiting[0].binding)
		q.waiting = q.waiting[1:]
	}
	return due
}

// Next returns the time at which the next binding is due, and whether there is one.
func (q *DeferredQueue) Next() (time.Time, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return time.Time{}, false
	}
	return q.waiting[0].due, true
}

func (q *DeferredQueue) marked(binding string, now time.Time) bool {
	until, found := q.processed[binding]
	return found && now.Before(until)
}
