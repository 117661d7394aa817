package simulate

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Back-off of a reconcile that ended with an error (controllers/elbv2/targetgroupbinding_controller.go:284,
// pkg/config/controller_config.go:46).
const (
	baseBackoff = 5 * time.Millisecond
	maxBackoff  = 1000 * time.Second
)

// queue is the work queue of client-go: an item waits once however often it is added, and one that is being worked on
// waits until that is done.
type queue struct {
	clock Clock
	ctx   context.Context // ends the waiting of delayed items

	mu       sync.Mutex
	waiting  []string
	dirty    map[string]string // what waits, or was added while it is worked on, and why
	working  map[string]bool
	failures map[string]int
	idle     []Gate // workers that wait, the longest first
	closed   bool
}

func newQueue(ctx context.Context, clock Clock) *queue {
	return &queue{clock: clock, ctx: ctx, dirty: map[string]string{}, working: map[string]bool{}, failures: map[string]int{}}
}

// add lets a worker take the item up; trigger says why. The first reason of several stays.
func (q *queue) add(item, trigger string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, known := q.dirty[item]; known || q.closed {
		return
	}
	q.dirty[item] = trigger
	if !q.working[item] {
		q.push(item)
	}
}

func (q *queue) push(item string) {
	q.waiting = append(q.waiting, item)
	if len(q.idle) > 0 {
		q.idle[0].Open()
		q.idle = q.idle[1:]
	}
}

// addAfter adds the item after d.
func (q *queue) addAfter(item, trigger string, d time.Duration) {
	q.clock.Go(func() {
		if q.clock.Sleep(q.ctx, d) == nil {
			q.add(item, trigger)
		}
	})
}

// addFailed adds the item after its back-off, which doubles with each failure.
func (q *queue) addFailed(item string) {
	q.mu.Lock()
	n := q.failures[item]
	q.failures[item]++
	q.mu.Unlock()
	const doublings = 18 // 5 ms doubled so often is more than the longest back-off
	q.addAfter(item, "back-off", min(baseBackoff<<min(n, doublings), maxBackoff))
}

// forget resets the item's back-off.
func (q *queue) forget(item string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.failures, item)
}

// get waits for the next item; ok is false when the queue is closed or the context has ended.
func (q *queue) get(ctx context.Context) (item, trigger string, ok bool) {
	for {
		q.mu.Lock()
		if q.closed {
			q.mu.Unlock()
			return "", "", false
		}
		if len(q.waiting) > 0 {
			item := q.waiting[0]
			q.waiting = q.waiting[1:]
			trigger := q.dirty[item]
			delete(q.dirty, item)
			q.working[item] = true
			q.mu.Unlock()
			return item, trigger, true
		}
		gate := q.clock.Gate()
		q.idle = append(q.idle, gate)
		q.mu.Unlock()
		if gate.Wait(ctx) != nil {
			return "", "", false
		}
	}
}

// done says that a worker has finished the item.
func (q *queue) done(item string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.working, item)
	if _, again := q.dirty[item]; again && !slices.Contains(q.waiting, item) {
		q.push(item)
	}
}

// close lets nothing more be taken up.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, g := range q.idle {
		g.Open()
	}
	q.idle = nil
}

// mutexes are the named mutexes of one process. Who waits longest comes next.
type mutexes struct {
	clock Clock
	ctx   context.Context

	mu   sync.Mutex
	held map[string][]Gate // who waits for a mutex that is held
}

// lock takes the named mutex and returns the function that releases it. When the process has died it returns at
// once: whatever follows fails.
func (m *mutexes) lock(name string) func() {
	m.mu.Lock()
	waiting, held := m.held[name]
	if !held {
		m.held[name] = nil
		m.mu.Unlock()
	} else {
		gate := m.clock.Gate()
		m.held[name] = append(waiting, gate)
		m.mu.Unlock()
		if gate.Wait(m.ctx) != nil {
			return func() {}
		}
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		waiting := m.held[name]
		if len(waiting) == 0 {
			delete(m.held, name)
			return
		}
		m.held[name] = waiting[1:]
		waiting[0].Open()
	}
}
