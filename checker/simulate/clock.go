package simulate

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Clock is what the actors of a run live by: workers, timers, the script. An actor waits only by the clock's own means.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or before it with the context's error.
	Sleep(ctx context.Context, d time.Duration) error
	// Go starts an actor.
	Go(f func())
	// Gate returns a closed gate.
	Gate() Gate
	// Interrupt is to be called after a context was cancelled whose actors may be asleep.
	Interrupt()
}

// Gate holds one actor until it is opened.
type Gate interface {
	// Wait returns when the gate is open, or before that with the context's error.
	Wait(ctx context.Context) error
	Open()
}

// Virtual is a clock without real time. Of its actors exactly one runs at a time; it goes on until it sleeps, waits or
// ends, and then the one runs whose time comes next. Actors due at the same instant run in the order in which
// they were made due, so that a run depends on nothing but its input.
type Virtual struct {
	now     time.Time
	count   uint64
	due     []wake          // sorted by at, then by number
	parked  map[*actor]bool // asleep or at a gate
	current *actor
	idle    chan struct{} // the running actor has parked or ended
}

type actor struct {
	number uint64
	resume chan struct{}
	turn   uint64 // counts its wakes: one that belongs to an earlier turn is void
	ctx    context.Context
}

type wake struct {
	at     time.Time
	number uint64
	actor  *actor
	turn   uint64
}

// NewVirtual returns a clock that shows start.
func NewVirtual(start time.Time) *Virtual {
	return &Virtual{now: start, parked: map[*actor]bool{}, idle: make(chan struct{})}
}

// Now returns the instant of the actor that runs.
func (v *Virtual) Now() time.Time { return v.now }

// Go starts an actor; it runs when the caller waits.
func (v *Virtual) Go(f func()) {
	v.count++
	a := &actor{number: v.count, resume: make(chan struct{}), ctx: context.Background()}
	go func() {
		<-a.resume
		f()
		v.idle <- struct{}{}
	}()
	v.wake(a, v.now)
}

// Sleep parks the caller.
func (v *Virtual) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	v.wake(v.current, v.now.Add(max(d, 0)))
	v.park(ctx)
	return ctx.Err()
}

func (v *Virtual) wake(a *actor, at time.Time) {
	v.count++
	w := wake{at, v.count, a, a.turn}
	i, _ := slices.BinarySearchFunc(v.due, w, func(x, y wake) int {
		if c := x.at.Compare(y.at); c != 0 {
			return c
		}
		return -1 // what was made due earlier comes first
	})
	v.due = slices.Insert(v.due, i, w)
}

func (v *Virtual) park(ctx context.Context) {
	a := v.current
	a.ctx = ctx
	v.parked[a] = true
	v.idle <- struct{}{}
	<-a.resume
	delete(v.parked, a)
}

// Interrupt wakes the actors whose context has ended.
func (v *Virtual) Interrupt() {
	var ended []*actor
	for a := range v.parked {
		if a.ctx.Err() != nil {
			ended = append(ended, a)
		}
	}
	slices.SortFunc(ended, func(a, b *actor) int { return int(a.number) - int(b.number) })
	for _, a := range ended {
		v.wake(a, v.now)
	}
}

// Run lets the actors run until the given instant.
func (v *Virtual) Run(until time.Time) {
	for len(v.due) > 0 && !v.due[0].at.After(until) {
		v.step()
	}
	v.now = until
}

// Drain lets the actors run until none is left that waits for a time.
func (v *Virtual) Drain() {
	for len(v.due) > 0 {
		v.step()
	}
}

func (v *Virtual) step() {
	w := v.due[0]
	v.due = v.due[1:]
	if w.turn != w.actor.turn {
		return
	}
	v.now = w.at
	v.current = w.actor
	w.actor.turn++
	w.actor.resume <- struct{}{}
	<-v.idle
}

// Gate returns a closed gate.
func (v *Virtual) Gate() Gate { return &virtualGate{clock: v} }

type virtualGate struct {
	clock  *Virtual
	open   bool
	waiter *actor
}

func (g *virtualGate) Wait(ctx context.Context) error {
	if !g.open && ctx.Err() == nil {
		g.waiter = g.clock.current
		g.clock.park(ctx)
		g.waiter = nil
	}
	return ctx.Err()
}

func (g *virtualGate) Open() {
	g.open = true
	if g.waiter != nil {
		g.clock.wake(g.waiter, g.clock.now)
		g.waiter = nil
	}
}

// Wall is real time, run faster by a factor. Its actors run at once.
type Wall struct {
	start  time.Time
	speed  float64
	actors sync.WaitGroup
}

// NewWall returns a clock that shows the present, and from then on goes speed times as fast as real time.
func NewWall(speed float64) *Wall { return &Wall{start: time.Now(), speed: speed} }

// Now returns the time as this clock shows it.
func (w *Wall) Now() time.Time {
	return w.start.Add(time.Duration(float64(time.Since(w.start)) * w.speed))
}

// Sleep waits until the clock has advanced by d.
func (w *Wall) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := time.NewTimer(time.Duration(float64(d) / w.speed))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Go starts an actor.
func (w *Wall) Go(f func()) { w.actors.Go(f) }

// Wait returns when all actors have ended.
func (w *Wall) Wait() { w.actors.Wait() }

// Interrupt has nothing to do: actors watch their contexts themselves.
func (w *Wall) Interrupt() {}

// Gate returns a closed gate.
func (w *Wall) Gate() Gate { return &wallGate{opened: make(chan struct{})} }

type wallGate struct {
	once   sync.Once
	opened chan struct{}
}

func (g *wallGate) Wait(ctx context.Context) error {
	select {
	case <-g.opened:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *wallGate) Open() { g.once.Do(func() { close(g.opened) }) }
