package awsapi

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"linearize.example/traces"
)

// Simulator is a Backend: a world with faults and a clock. It may be used by several goroutines; calls take effect one
// after another.
type Simulator struct {
	clock Clock

	mu     sync.Mutex
	world  *World
	faults *deciding
	// late are the calls that take effect later, in the order in which they will.
	late []lateCall
	// history is what happened to each group's ingress rules; nil unless asked for.
	history map[string][]Change
	// effect is the call that is being carried out.
	effect *Call
}

type lateCall struct {
	due  traces.Instant
	call *Call
	on   conditions
}

// Change is one change of a group's ingress rules as it happened, whatever describes showed.
type Change struct {
	At traces.Instant
	// Action and RequestID are the call that changed the rules; empty for those of the start. The request id is the call's
	// ID, empty if it had none.
	Action, RequestID string
	// Rules are the group's ingress rules from At on, oldest first.
	Rules []traces.IdentifiedPermission
}

// NewSimulator makes a simulator that owns the world. Without faults there are none, without a clock it is WallClock.
// An error says which of the faults makes no sense.
func NewSimulator(w *World, f *Faults, clock Clock) (*Simulator, error) {
	if clock == nil {
		clock = WallClock
	}
	s := &Simulator{clock: clock, world: w}
	w.changed = s.note
	return s, s.SetFaults(f)
}

// SetFaults replaces the faults, from now on; nil for none. Calls are counted anew, and buckets are full. What was
// decided of earlier calls stays.
func (s *Simulator) SetFaults(f *Faults) error {
	if f == nil {
		f = &Faults{}
	}
	if err := f.validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = newDeciding(f, traces.At(s.clock.Now()))
	return nil
}

// Faults returns the faults in force, which must not be changed.
func (s *Simulator) Faults() *Faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.Faults
}

// Do answers a call. It fails only when the context is done before the call took effect, or before it was answered.
func (s *Simulator) Do(ctx context.Context, c *Call) (*Answer, error) {
	on := s.decide(c)
	if on.before > 0 {
		if err := s.clock.Sleep(ctx, on.before); err != nil {
			return nil, fmt.Errorf("%s was given up before it took effect: %w", c.Action, err)
		}
	}
	a := s.carryOut(c, &on)
	if on.after > 0 {
		if err := s.clock.Sleep(ctx, on.after); err != nil {
			return nil, fmt.Errorf("%s was given up before it was answered: %w", c.Action, err)
		}
	}
	return a, nil
}

func (s *Simulator) decide(c *Call) fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.decide(traces.At(s.clock.Now()), c)
}

func (s *Simulator) carryOut(c *Call, on *fate) *Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := traces.At(s.clock.Now())
	s.settle(now)
	switch {
	case on.refusal != nil:
		id := c.ID
		if id == "" {
			id = s.world.requestID()
		}
		return ErrorAnswer(c.Service, on.refusal.Code, on.refusal.Message).WithRequestID(c.Service, id)
	case on.dropped:
		return &Answer{Lost: true, RequestID: c.ID}
	case on.isLate:
		late := lateCall{now.Add(on.late), c, on.conditions}
		i, _ := slices.BinarySearchFunc(s.late, late, func(a, b lateCall) int {
			if a.due <= b.due {
				return -1
			}
			return 1
		})
		s.late = slices.Insert(s.late, i, late)
		return &Answer{Lost: true, RequestID: c.ID}
	}
	a := s.apply(now, c, on.conditions)
	a.Lost = on.lost
	return a
}

func (s *Simulator) apply(now traces.Instant, c *Call, on conditions) *Answer {
	s.effect = c
	return s.world.apply(now, c, on)
}

// settle carries out the late calls that are due.
func (s *Simulator) settle(now traces.Instant) {
	for len(s.late) > 0 && s.late[0].due <= now {
		late := s.late[0]
		s.late = s.late[1:]
		s.apply(late.due, late.call, late.on)
	}
}

// KeepChanges makes the simulator remember all changes of ingress rules from now on, beginning with what they are.
func (s *Simulator) KeepChanges() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := traces.At(s.clock.Now())
	s.settle(now)
	s.history = map[string][]Change{}
	for _, g := range s.world.groupsAt(traces.Forever) {
		s.history[g.id] = []Change{{At: now, Rules: g.ingress()}}
	}
}

// note is called for every change, by a call that holds the mutex.
func (s *Simulator) note(g *group) {
	if s.history != nil {
		change := Change{At: s.world.now, Action: s.effect.Action, RequestID: s.effect.ID, Rules: g.ingress()}
		s.history[g.id] = append(s.history[g.id], change)
	}
}

// Changes returns what happened to a group's ingress rules since KeepChanges, the rules of that time first. Late calls that
// have not taken effect yet are not among them.
func (s *Simulator) Changes(group string) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(traces.At(s.clock.Now()))
	return slices.Clone(s.history[group])
}

// Rules returns a group's ingress rules as they are now, whatever describes show, in order; nil if there is no such group.
func (s *Simulator) Rules(group string) []traces.Permission {
	for _, snapshot := range s.Snapshots() {
		if snapshot.Group == group {
			rules := []traces.Permission{}
			for _, r := range snapshot.Rules {
				rules = append(rules, r.Permission)
			}
			slices.SortFunc(rules, func(a, b traces.Permission) int { return a.Compare(b.Rule) })
			return rules
		}
	}
	return nil
}

// Region is the region that the world is of.
func (s *Simulator) Region() string { return s.world.region }

// Snapshots returns all groups with their ingress rules as they are now, whatever describes show, oldest first.
func (s *Simulator) Snapshots() []traces.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(traces.At(s.clock.Now()))
	var all []traces.Snapshot
	for _, g := range s.world.groupsAt(traces.Forever) {
		all = append(all, traces.Snapshot{Group: g.id, Rules: g.ingress()})
	}
	return all
}
