package orders

import (
	"context"
	"encoding/binary"
	"slices"

	"linearize.example/traces"
)

// End is how some explanation ends: the state at its end, and the marks of all states on its way.
type End struct {
	State State
	Marks uint8
}

// Reach returns all ends that explanations have, each once, in a fixed order. It answers less than Explore, which gives the
// explanations, but takes less for it where many optional operations are open: of two configurations that differ in nothing
// but the optional operations that are done, the one in which fewer are done, and all of them in the other too, can end
// in every way that the other can, and is the only one that is kept. Memory does not grow with the history's length. The
// errors are those of Explore; the budget bounds the configurations of one layer.
func Reach(ctx context.Context, p *Problem, budget Budget, mark func(State) uint8) ([]End, error) {
	if budget.Nodes == 0 {
		budget.Nodes = DefaultNodes
	}
	x := explorer{p: p, budget: budget, ctx: ctx}
	x.prepare()
	r := reach{explorer: &x, mark: mark, wide: (len(x.optional) + 63) / 64}
	return r.run()
}

type reach struct {
	*explorer
	mark  func(State) uint8
	wide  int // the words of a set of optional operations
	layer layer
}

// layer holds configurations with equally many mandatory operations done.
type layer struct {
	kept  map[string][]*reached
	queue []*reached // in the order of discovery; those that were outdone since are marked
}

// reached is one configuration.
type reached struct {
	top     int32
	holes   []int32
	state   State
	marks   uint8
	done    State // optional operations, by rank
	first   traces.Instant
	outdone bool
}

func (r *reach) run() ([]End, error) {
	r.layer = layer{kept: map[string][]*reached{}}
	for _, s := range r.p.Initial {
		r.add(&r.layer, &reached{state: slices.Clone(s), marks: r.mark(s), done: make(State, r.wide), first: traces.Beginning})
	}
	for done := 0; ; done++ {
		if err := r.close(); err != nil {
			return nil, err
		}
		if done == len(r.mandatory) {
			return r.ends(), nil
		}
		next := layer{kept: map[string][]*reached{}}
		for n, c := range r.layer.queue {
			if n&1023 == 1023 && r.ctx.Err() != nil {
				return nil, r.ctx.Err()
			}
			if !c.outdone {
				r.advance(c, &next)
			}
		}
		if len(next.queue) == 0 {
			return nil, r.stuckAt(done)
		}
		r.layer = next
	}
}

// add keeps the configuration, unless one that is known can end in every way that it can.
func (r *reach) add(l *layer, c *reached) {
	key := make([]byte, 0, 64)
	key = append(binary.AppendVarint(key, int64(c.top)), c.marks)
	for _, h := range c.holes {
		key = binary.AppendVarint(key, int64(h))
	}
	key = binary.AppendVarint(key, -1)
	for _, w := range c.state {
		key = binary.LittleEndian.AppendUint64(key, w)
	}
	same := l.kept[string(key)]
	for _, o := range same {
		if within(o.done, c.done) {
			return
		}
	}
	same = slices.DeleteFunc(same, func(o *reached) bool {
		o.outdone = within(c.done, o.done)
		return o.outdone
	})
	l.kept[string(key)] = append(same, c)
	l.queue = append(l.queue, c)
}

// within reports whether all of a is in b.
func within(a, b State) bool {
	for i, w := range a {
		if w&^b[i] != 0 {
			return false
		}
	}
	return true
}

// last is the latest instant that the configuration can last to.
func (r *reach) last(c *reached) traces.Instant {
	last := r.deadline[c.top]
	for _, h := range c.holes {
		last = min(last, r.p.Operations[r.mandatory[h]].Return)
	}
	return last
}

// waited reports whether all mandatory operations of ops are done.
func (r *reach) waited(c *reached, ops []int32) bool {
	return !slices.ContainsFunc(ops, func(op int32) bool {
		return !r.p.Operations[op].Optional && (r.rank[op] >= c.top || slices.Contains(c.holes, r.rank[op]))
	})
}

// close adds what optional operations lead to.
func (r *reach) close() error {
	for n := 0; n < len(r.layer.queue); n++ {
		if n > r.budget.Nodes {
			return ErrBudget
		}
		if n&1023 == 1023 && r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		c := r.layer.queue[n]
		if c.outdone {
			continue
		}
		last := r.last(c)
		for rank, op := range r.optional {
			o := &r.p.Operations[op]
			if o.Call > last {
				break
			}
			if o.Return < c.first || c.done.Has(int32(rank)) || !r.firstOpen(c, rank) || !r.waited(c, o.After) ||
				!r.p.Step(int(op), c.state, r.scratch) || slices.Equal(r.scratch, c.state) {
				continue
			}
			to := *c
			to.state = slices.Clone(r.scratch)
			to.marks |= r.mark(to.state)
			to.done = slices.Clone(c.done)
			to.done.Set(int32(rank))
			to.first = max(c.first, o.Call)
			r.add(&r.layer, &to)
		}
	}
	return nil
}

// firstOpen reports whether no optional operation like the one of the rank was called before it and may still take effect.
func (r *reach) firstOpen(c *reached, rank int) bool {
	alike := r.p.Operations[r.optional[rank]].Alike
	for k := rank - 1; alike != 0 && k >= 0; k-- {
		if o := &r.p.Operations[r.optional[k]]; o.Alike == alike && o.Return >= c.first && !c.done.Has(int32(k)) {
			return false
		}
	}
	return true
}

// advance lets each mandatory operation that can come next take effect.
func (r *reach) advance(c *reached, next *layer) {
	last := r.last(c)
	try := func(place int32) {
		op := r.mandatory[place]
		o := &r.p.Operations[op]
		if o.Call > last || !r.waited(c, o.After) || !r.p.Step(int(op), c.state, r.scratch) {
			return
		}
		to := &reached{top: c.top, state: slices.Clone(r.scratch), first: max(c.first, o.Call)}
		to.marks = c.marks | r.mark(to.state)
		for _, h := range c.holes {
			if h != place {
				to.holes = append(to.holes, h)
			}
		}
		if place >= c.top {
			for p := c.top; p < place; p++ {
				to.holes = append(to.holes, p)
			}
			to.top = place + 1
		}
		to.done = slices.Clone(c.done)
		for rank, op := range r.optional {
			if r.p.Operations[op].Return < to.first {
				to.done.Clear(int32(rank)) // it cannot take effect any more
			}
		}
		r.add(next, to)
	}
	for _, h := range c.holes {
		try(h)
	}
	for place := c.top; int(place) < len(r.mandatory) && r.p.Operations[r.mandatory[place]].Call <= last; place++ {
		try(place)
	}
}

// ends are those of the last layer.
func (r *reach) ends() []End {
	var ends []End
	for _, c := range r.layer.queue {
		if !slices.ContainsFunc(ends, func(e End) bool { return e.Marks == c.marks && slices.Equal(e.State, c.state) }) {
			ends = append(ends, End{c.state, c.marks})
		}
	}
	return ends
}

// stuckAt says where no configuration of the layer goes on.
func (r *reach) stuckAt(done int) error {
	s := &Stuck{Op: -1, Explained: done}
	deadline := traces.Forever
	for _, c := range r.layer.queue {
		if len(s.States) < MaxStuckStates {
			s.States = append(s.States, slices.Clone(c.state))
		}
		last := r.last(c)
		consider := func(place int32) {
			op := int(r.mandatory[place])
			if o := &r.p.Operations[op]; s.Op < 0 || o.Return < deadline {
				s.Op, deadline = op, o.Return
			}
			if len(s.Refused) < MaxStuckStates && !slices.Contains(s.Refused, op) {
				s.Refused = append(s.Refused, op)
			}
		}
		for _, h := range c.holes {
			consider(h)
		}
		for place := c.top; int(place) < len(r.mandatory) && r.p.Operations[r.mandatory[place]].Call <= last; place++ {
			consider(place)
		}
	}
	slices.Sort(s.Refused)
	return s
}
