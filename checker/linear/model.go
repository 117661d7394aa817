package linear

import (
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"linearize.example/traces"
)

// state is what is known of the rules at one point of an order, and which of the marked calls have been placed. A
// rule that nothing has been proved of yet is not known: so one state stands for all sets of rules that agree with it.
// States are never changed.
type state struct {
	known, present bits // present is a subset of known; the bits beyond the last rule are known
	done           bits // the calls of a run that have a mark
}

// newState knows nothing of n rules.
func newState(n int) *state {
	s := &state{known: newBits(n), present: newBits(n)}
	for i := n; i < 64*len(s.known); i++ {
		s.known.set(int32(i))
	}
	return s
}

// ended is the state after the pseudo-call that ends a run.
var ended = &state{}

func (s *state) equal(o *state) bool {
	if s == o {
		return true
	}
	if s == ended || o == ended {
		return false
	}
	return s.present.equal(o.present) && s.known.equal(o.known) && s.done.equal(o.done)
}

func (s *state) hash() uint64 {
	const prime = 0x9e3779b97f4a7c15
	h := uint64(len(s.present))
	for _, b := range [...]bits{s.known, s.present, s.done} {
		for _, w := range b {
			h = (h ^ w) * prime
			h ^= h >> 29
		}
	}
	return h
}

// covers reports whether every set of rules that agrees with o agrees with s.
func (s *state) covers(o *state) bool {
	if !o.known.contains(s.known) {
		return false
	}
	for i, w := range s.known {
		if (s.present[i]^o.present[i])&w != 0 {
			return false
		}
	}
	return true
}

// effect is the state after the call took effect, or nil where it cannot have done so.
func (c *call) effect(s *state) *state {
	switch {
	case c.result == shows:
		return s.shown(c.view)
	case c.forget:
		return &state{newBits(64 * len(s.known)), newBits(64 * len(s.known)), s.done}
	case c.wipe:
		return &state{full(64 * len(s.known)), newBits(64 * len(s.known)), s.done}
	}
	for _, r := range c.absent {
		if s.present.has(r) {
			return nil
		}
	}
	for _, r := range c.present {
		if !s.present.has(r) && s.known.has(r) {
			return nil
		}
	}
	n := &state{s.known, s.present, s.done}
	for r := range c.rules {
		if !s.known.has(r) {
			known := slices.Clone(s.known)
			for r := range c.rules {
				known.set(r)
			}
			n.known = known
			break
		}
	}
	present := slices.Clone(s.present)
	for _, r := range c.present {
		present.set(r)
	}
	for _, r := range c.remove {
		present.clear(r)
	}
	for _, r := range c.add {
		present.set(r)
	}
	n.present = present
	return n
}

// shown is the state once a read has shown exactly the rules in view.
func (s *state) shown(view bits) *state {
	partial := false
	for i, w := range view {
		if (w^s.present[i])&s.known[i] != 0 {
			return nil
		}
		partial = partial || w != s.present[i]
	}
	if !partial && s.knowsAll() {
		return s
	}
	return &state{full(64 * len(view)), view, s.done}
}

func (s *state) knowsAll() bool {
	for _, w := range s.known {
		if w != ^uint64(0) {
			return false
		}
	}
	return true
}

// refusal appends the states in which at least one of the rules in c.some is present, or absent: s itself where that
// is known to be so, else one state for each rule of which it may be so, in which the rules before it are known not to be.
func (c *call) refusal(s *state, next []*state) []*state {
	unknown := 0
	for _, r := range c.some {
		switch {
		case !s.known.has(r):
			unknown++
		case s.present.has(r) == c.somePresent:
			return append(next, s)
		}
	}
	if unknown == 0 {
		return next
	}
	known, present := s.known, s.present
	for _, r := range c.some {
		if s.known.has(r) {
			continue
		}
		known = known.with(r)
		if c.somePresent {
			next = append(next, &state{known, present.with(r), s.done})
		} else {
			next = append(next, &state{known, present, s.done})
			present = present.with(r)
		}
	}
	return next
}

// item is a call as one run of Porcupine gets it: the input of an operation of the model.
type item struct {
	*call
	// mark is the call's bit in state.done, or -1 for a call that nobody asks about. needs is the mark of the call that must
	// come before it, or -1.
	mark, needs int32
	// end is set for the pseudo-call that ends a run; call is nil then.
	end *ending
}

// ending takes note of the first state that it does not refuse: one that the calls before it can lead to.
type ending struct {
	refuse func(*state) bool
	found  *state
}

// next appends the states that the item can lead to.
//
// After edges are kept by needs: a call that must come after another one is impossible as long as that one's mark is not
// set. The marks in a state are a function of the calls that an order has placed so far, and Porcupine tells states apart
// only among orders that have placed the same calls. So marks add no states to its cache, and an order is
// refused if and only if it places some call before its predecessor.
//
// A call without an answer takes effect when it is placed; one that cannot, or that never arrived, is placed after
// the end, where everything is possible. Where its interval ends nevertheless (a call that its sender had given up before its
// next one) it may be placed without effect as well.
func (it *item) next(s *state, next []*state) []*state {
	if s == ended {
		return append(next, ended)
	}
	if it.end != nil {
		if it.end.refuse(s) {
			return next
		}
		it.end.found = s
		return append(next, ended)
	}
	if it.needs >= 0 && !s.done.has(it.needs) {
		return next
	}
	from := len(next)
	switch it.result {
	case refused:
		next = it.refusal(s, next)
	case maybe:
		if n := it.effect(s); n != nil {
			next = append(next, n)
		}
		if it.ret != traces.Forever {
			next = append(next, s)
		}
	default:
		if n := it.effect(s); n != nil {
			next = append(next, n)
		}
	}
	if it.mark >= 0 {
		for i := from; i < len(next); i++ {
			n := *next[i]
			n.done = n.done.with(it.mark)
			next[i] = &n
		}
	}
	return next
}

// only forgets the rules that are not in live: they count as absent.
func (s *state) only(live bits) *state {
	n := &state{known: slices.Clone(s.known), present: slices.Clone(s.present)}
	for i, w := range live {
		n.known[i] |= ^w
		n.present[i] &= w
	}
	return n
}

// model is the group as Porcupine steps through it, starting from s. A branching model is one in which a step can
// lead to several states.
func (p *part) model(s *state, branching bool) porcupine.Model {
	if branching {
		return p.branchingModel(s)
	}
	return porcupine.Model{
		Init: func() any { return s },
		Step: func(from, input, _ any) (bool, any) {
			var buffer [1]*state
			next := input.(*item).next(from.(*state), buffer[:0])
			if len(next) == 0 {
				return false, nil
			}
			return true, next[0]
		},
		Equal:                     func(a, b any) bool { return a.(*state).equal(b.(*state)) },
		Hash:                      func(a any) uint64 { return a.(*state).hash() },
		DescribeOperation:         func(input, _ any) string { return p.describer().item(input.(*item)) },
		DescribeState:             func(a any) string { return p.describer().state(a.(*state)) },
		DescribeOperationMetadata: describeMetadata,
	}
}

func (p *part) branchingModel(s *state) porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []any { return []any{s} },
		Step: func(from, input, _ any) []any {
			var next []any
			for _, n := range input.(*item).next(from.(*state), nil) {
				next = append(next, n)
			}
			return next
		},
		Equal:                     func(a, b any) bool { return a.(*state).equal(b.(*state)) },
		Hash:                      func(a any) uint64 { return a.(*state).hash() },
		DescribeOperation:         func(input, _ any) string { return p.describer().item(input.(*item)) },
		DescribeOperationMetadata: describeMetadata,
	}
	m := nondeterministic.ToModel()
	m.DescribeState = func(a any) string {
		var all []string
		for _, s := range a.([]any) {
			all = append(all, p.describer().state(s.(*state)))
		}
		return strings.Join(all, " or ")
	}
	return m
}

func describeMetadata(m any) string {
	text, _ := m.(string)
	return text
}
