package linear

import (
	"cmp"
	"maps"
	"slices"

	"linearize.example/traces"
)

// part is a set of calls that can be judged on its own.
type part struct {
	rules []traces.Rule
	calls []*call // in the order of callRank
	// reads are the calls that show rules, in the order of the operations.
	reads []*call
	// start is what is known of the rules before the first call.
	start *state
	// end is a rank after every return but those of unanswered calls.
	end        int64
	unanswered bool     // some call is
	names      []string // the rules in words, once somebody asked
}

// handling says what becomes of the reads.
type handling uint8

const (
	readsLeftOut handling = iota
	readsAmong            // they are among the calls
	readsApart            // they are not, and no After edge leads to or from them
)

// compile prepares the operations as one part.
func compile(ops []traces.Operation, t *timeline, initial Initial, lenient bool, reads handling) *part {
	c := compiler{index: map[traces.Rule]int32{}, lenient: lenient, views: map[viewKey][]int32{}}
	kept := make([]bool, len(ops))
	byIndex := make([]*call, len(ops))
	p := &part{}
	var first *traces.Operation // the first read
	for i := range ops {
		k, ok := c.compile(&ops[i])
		if !ok {
			continue
		}
		k.index, k.call, k.ret = i, t.call[i], t.ret[i]
		if k.result == shows {
			if first == nil || ops[i].Call < first.Call {
				first = &ops[i]
			}
			if reads == readsLeftOut {
				continue
			}
			c.view(ops[i].View)
			p.reads = append(p.reads, k)
			if reads == readsApart {
				continue
			}
		}
		kept[i], byIndex[i] = true, k
		p.calls = append(p.calls, k)
	}
	if reads != readsLeftOut {
		for _, r := range slices.SortedFunc(maps.Keys(initial.Rules), traces.Rule.Compare) {
			c.rule(r)
		}
	}
	p.rules = c.rules
	for _, k := range p.reads {
		k.view = newBits(len(p.rules))
		for _, r := range c.view(k.op.View) {
			k.view.set(r)
		}
	}
	before := t.nearest(ops, kept)
	for _, k := range p.calls {
		if a := before[k.index]; a >= 0 && byIndex[a].ret >= k.call {
			k.after = byIndex[a]
		}
	}
	slices.SortFunc(p.calls, func(a, b *call) int {
		return cmp.Or(cmp.Compare(a.call, b.call), cmp.Compare(t.depth[a.index], t.depth[b.index]), cmp.Compare(a.index, b.index))
	})
	p.rank()
	p.start = p.initialState(initial, first)
	return p
}

// rank orders the calls and returns of all operations; at one instant calls come first.
func (p *part) rank() {
	const called, answered, never = 0, 1, 2
	type event struct {
		at   traces.Instant
		kind int
		call *call
	}
	events := make([]event, 0, 2*len(p.calls))
	for _, k := range p.calls {
		e := event{k.ret, answered, k}
		if k.unanswered() {
			e.kind, p.unanswered = never, true
		}
		events = append(events, event{k.call, called, k}, e)
	}
	slices.SortStableFunc(events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind))
	})
	for i, e := range events {
		rank := int64(2*i + 2)
		if e.kind == called {
			e.call.callRank = rank
		} else {
			e.call.retRank = rank
		}
		if e.kind != never {
			p.end = rank + 1
		}
	}
}

// initialState is what the caller knows, and for a rule that no call changes what the first read shows.
func (p *part) initialState(initial Initial, first *traces.Operation) *state {
	s := newState(len(p.rules))
	shown := map[traces.Rule]bool{}
	if first != nil {
		for i := range first.View {
			shown[first.View[i].Rule] = true
		}
	}
	changed := newBits(len(p.rules))
	for _, k := range p.calls {
		if k.wipe || k.forget {
			changed = full(len(p.rules))
			break
		}
		for _, list := range [...][]int32{k.add, k.remove} {
			for _, r := range list {
				changed.set(r)
			}
		}
	}
	for i, r := range p.rules {
		i := int32(i)
		presence, explicit := initial.Rules[r]
		switch {
		case explicit:
		case first != nil && !changed.has(i):
			presence = Absent
			if shown[r] {
				presence = Present
			}
		default:
			presence = initial.Others
		}
		if presence != Maybe {
			s.known.set(i)
		}
		if presence == Present {
			s.present.set(i)
		}
	}
	return s
}

// split separates calls that share no rule and are not ordered by an After edge, so that each part is linearizable
// if and only if the whole is.
func (p *part) split() []*part {
	if len(p.calls) == 0 {
		return nil
	}
	sets := newSets(len(p.rules) + len(p.calls))
	all := int32(-1)
	for i, k := range p.calls {
		k.item = i
		me := int32(len(p.rules) + i)
		for r := range k.rules {
			sets.join(me, r)
		}
		if k.everything() {
			all = me
		}
		if k.after != nil {
			sets.join(me, int32(len(p.rules)+k.after.item))
		}
	}
	if all >= 0 {
		return []*part{p}
	}
	parts := map[int32]*part{}
	var list []*part
	local := make([]int32, len(p.rules))
	for i, r := range p.rules {
		root := sets.find(int32(i))
		q := parts[root]
		if q == nil {
			q = &part{end: p.end}
			parts[root] = q
		}
		local[i] = int32(len(q.rules))
		q.rules = append(q.rules, r)
	}
	for i, k := range p.calls {
		root := sets.find(int32(len(p.rules) + i))
		q := parts[root]
		if len(q.calls) == 0 {
			list = append(list, q)
		}
		q.calls = append(q.calls, k)
		q.unanswered = q.unanswered || k.unanswered()
		k.renumber(local)
	}
	for _, q := range list {
		q.start = newState(len(q.rules))
	}
	for i := range int32(len(p.rules)) {
		s := parts[sets.find(i)].start
		if s == nil {
			continue // a rule that no call names
		}
		if p.start.known.has(i) {
			s.known.set(local[i])
		}
		if p.start.present.has(i) {
			s.present.set(local[i])
		}
	}
	return list
}

func (k *call) renumber(local []int32) {
	renumbered := func(list []int32) []int32 {
		if list == nil {
			return nil
		}
		l := make([]int32, len(list))
		for i, r := range list {
			l[i] = local[r]
		}
		return l
	}
	k.absent, k.present, k.some = renumbered(k.absent), renumbered(k.present), renumbered(k.some)
	k.remove, k.add = renumbered(k.remove), renumbered(k.add)
}

// sets is a partition of small integers: union and find with path halving.
type sets []int32

func newSets(n int) sets {
	s := make(sets, n)
	for i := range s {
		s[i] = int32(i)
	}
	return s
}

func (s sets) find(i int32) int32 {
	for s[i] != i {
		s[i] = s[s[i]]
		i = s[i]
	}
	return i
}

func (s sets) join(a, b int32) { s[s.find(a)] = s.find(b) }
