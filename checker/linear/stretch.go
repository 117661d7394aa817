package linear

import (
	"context"
	"slices"

	"github.com/anishathalye/porcupine"
)

// cut divides calls at quiet instants, at which none is open but those without an answer, into stretches of at least
// size calls.
func (p *part) cut(calls []*call, size int) [][]*call {
	var stretches [][]*call
	from := 0
	var open int64 // the last return so far
	for i, c := range calls {
		if i-from >= size && open < c.callRank {
			stretches = append(stretches, calls[from:i])
			from = i
		}
		if !c.unanswered() {
			open = max(open, c.retRank)
		}
	}
	if from < len(calls) {
		stretches = append(stretches, calls[from:])
	}
	return stretches
}

// start is where a stretch or a piece begins: a state, and the calls before it that have not taken effect yet.
type start struct {
	*state
	open []*call // in the order of callRank
}

// covers reports whether everything that is possible from o is possible from s: a call without an answer that has not yet
// taken effect leaves more open than one that has.
func (s start) covers(o start) bool {
	if !s.state.covers(o.state) {
		return false
	}
	i := 0
	for _, c := range o.open {
		for i < len(s.open) && s.open[i] != c {
			i++
		}
		if i == len(s.open) {
			return false
		}
	}
	return true
}

// failure is where a chain of stretches cannot be ordered: the furthest stretch that any order comes to.
type failure struct {
	part      *part
	stretches [][]*call
	at        int
	// from is the first state from which the stretch could not be ordered, before the one that the stretch before it started
	// from then.
	from, before start
}

// chain orders one stretch after the other.
func (k *checker) chain(p *part, stretches [][]*call, from start) (Verdict, *failure) {
	dead := make([][]start, len(stretches)+1) // what cannot be continued, for each stretch
	live := p.live(stretches)
	at := []start{from}
	furthest := &failure{part: p, stretches: stretches, at: -1}
	kept := 0
	for len(at) <= len(stretches) {
		i := len(at) - 1
		end, verdict := k.stretch(p, stretches, i, at[i], dead[i+1], live)
		switch verdict {
		case Unknown:
			return Unknown, nil
		case Linearizable:
			at = append(at, end)
			continue
		}
		if i > furthest.at {
			furthest.at, furthest.from, furthest.before = i, at[i], at[max(0, i-1)]
		}
		for {
			if i == 0 {
				return NotLinearizable, furthest
			}
			dead[i] = append(dead[i], at[i])
			if kept++; kept > k.opts.MaxStates {
				return k.undecided("more than %d states between two stretches", k.opts.MaxStates), nil
			}
			at = at[:i]
			i--
			if !oneEnd(stretches[i], at[i]) {
				break
			}
		}
	}
	return Linearizable, nil
}

// oneEnd reports whether every order of the stretch ends in the same state.
func oneEnd(calls []*call, from start) bool {
	return len(from.open) == 0 && from.knowsAll() && !slices.ContainsFunc(calls, func(c *call) bool { return !c.settled() })
}

// live gives for each stretch the rules that it or a later one can depend on; nil where that does not matter. Calls
// without an answer only matter as long as a later call concerns their rules, be it through others like them.
func (p *part) live(stretches [][]*call) []bits {
	if !p.unanswered {
		return nil
	}
	var carried []*call
	for _, s := range stretches {
		for _, c := range s {
			if c.unanswered() {
				carried = append(carried, c)
			}
		}
	}
	live := make([]bits, len(stretches)+1)
	later := newBits(len(p.rules))
	for i := len(stretches); i >= 0; i-- {
		if i < len(stretches) {
			for _, c := range stretches[i] {
				later.addRules(c)
			}
			for len(carried) > 0 && carried[len(carried)-1].callRank >= stretches[i][0].callRank {
				carried = carried[:len(carried)-1]
			}
		}
		live[i] = slices.Clone(later)
		for grown := true; grown; {
			grown = false
			for _, c := range carried {
				if live[i].touches(c) && live[i].addRules(c) {
					grown = true
				}
			}
		}
	}
	return live
}

func (b bits) touches(c *call) bool {
	if c.everything() {
		return slices.ContainsFunc(b, func(w uint64) bool { return w != 0 })
	}
	for r := range c.rules {
		if b.has(r) {
			return true
		}
	}
	return false
}

func (b bits) addRules(c *call) (grown bool) {
	if c.everything() {
		for i := range b {
			grown = grown || b[i] != ^uint64(0)
			b[i] = ^uint64(0)
		}
		return grown
	}
	for r := range c.rules {
		grown = grown || !b.has(r)
		b.set(r)
	}
	return grown
}

// stretch orders the i-th stretch from one start and returns where it can end, other than in what dead covers.
func (k *checker) stretch(p *part, stretches [][]*call, i int, from start, dead []start, live []bits) (start, Verdict) {
	calls, end := stretches[i], p.end
	if i+1 < len(stretches) {
		end = stretches[i+1][0].callRank - 1
	}
	project := func(s start) start { return s }
	if live != nil {
		rules := live[i+1]
		project = func(s start) start {
			s.state = s.state.only(rules)
			s.open = slices.DeleteFunc(s.open, func(c *call) bool { return !rules.touches(c) })
			return s
		}
	}
	none := func(start) bool { return false }
	refuse := func(s start) bool {
		return slices.ContainsFunc(dead, func(d start) bool { return d.covers(s) })
	}
	if len(dead) == 0 {
		refuse = none
	}
	cuts := pieces(calls, k.opts.piece)
	chain := []link{{0, from}}
	for {
		last := chain[len(chain)-1].piece
		if last == len(cuts)-1 {
			return chain[len(chain)-1].start, Linearizable
		}
		to := cuts[last+1]
		pieceEnd, pieceProject, pieceRefuse := end, project, refuse
		if to < len(calls) {
			pieceEnd = calls[to].callRank - 1
			pieceProject, pieceRefuse = func(s start) start { return s }, none
		}
		for back := 1; ; back *= 2 {
			j := max(0, len(chain)-back)
			s, verdict := k.run(p, calls[cuts[chain[j].piece]:to], chain[j].start, pieceEnd, pieceProject, pieceRefuse)
			if verdict == Linearizable {
				chain = append(chain[:j+1], link{last + 1, s})
				break
			}
			if verdict == Unknown || j == 0 {
				return start{}, verdict
			}
		}
	}
}

// link is where the order found so far passes a cut between two pieces.
type link struct {
	piece int
	start start
}

// pieces gives the positions at which a stretch is cut, its beginning and its end included: those at which the fewest
// calls are open, size to twice that apart.
func pieces(calls []*call, size int) []int {
	cuts := []int{0}
	var open []int64 // the returns of the calls that are open
	best, fewest := 0, 0
	for i, c := range calls {
		open = slices.DeleteFunc(open, func(r int64) bool { return r < c.callRank })
		from := cuts[len(cuts)-1]
		if i >= from+size && (best <= from || len(open) < fewest) {
			best, fewest = i, len(open)
		}
		if i == from+2*size {
			cuts = append(cuts, best)
		}
		if !c.unanswered() {
			open = append(open, c.retRank)
		}
	}
	return append(cuts, len(calls))
}

// run is one run of Porcupine: the calls, those before them that are still open, and the end.
type run struct {
	start     *state
	history   []porcupine.Operation
	items     []item
	end       *ending
	branching bool // a step can lead to several states
}

// newRun prepares a run that ends just after the rank end. Calls that return later may take effect before it or
// not. The run's end refuses the states that refuse refuses.
// It reuses the memory of an earlier run, if one is given.
func (p *part) newRun(calls []*call, from start, end int64, refuse func(*state) bool, earlier *run) *run {
	n := len(from.open) + len(calls) + 1
	r := &run{end: &ending{refuse: refuse}}
	if earlier != nil {
		r.items, r.history = earlier.items[:0], earlier.history[:0]
	}
	r.items, r.history = slices.Grow(r.items, n), slices.Grow(r.history, n)
	for _, list := range [...][]*call{from.open, calls} {
		for _, c := range list {
			c.item = len(r.items)
			r.items = append(r.items, item{call: c, mark: -1, needs: -1})
		}
	}
	marks := int32(0)
	mark := func(it *item) int32 {
		if it.mark < 0 {
			it.mark = marks
			marks++
		}
		return it.mark
	}
	unknown := !from.knowsAll()
	for i := range r.items {
		it := &r.items[i]
		if it.retRank > end {
			mark(it)
		}
		if a := it.after; a != nil && a.item < len(r.items) && r.items[a.item].call == a {
			it.needs = mark(&r.items[a.item])
		}
		unknown = unknown || it.forget
		if it.result == maybe && !it.unanswered() {
			r.branching = true
		}
	}
	if unknown {
		r.branching = r.branching || slices.ContainsFunc(r.items, func(it item) bool { return len(it.some) > 1 })
	}
	r.start = &state{from.known, from.present, newBits(int(marks))}
	for i := range r.items {
		it := &r.items[i]
		r.history = append(r.history, porcupine.Operation{Input: it, Call: it.callRank, Return: it.retRank})
	}
	r.items = append(r.items, item{mark: -1, needs: -1, end: r.end})
	r.history = append(r.history, porcupine.Operation{Input: &r.items[len(r.items)-1], Call: end, Return: end})
	return r
}

// open gives the calls that the state leaves open.
func (r *run) open(s *state) []*call {
	var open []*call
	for i := range r.items {
		if it := &r.items[i]; it.mark >= 0 && it.retRank > r.history[len(r.history)-1].Call && !s.done.has(it.mark) {
			open = append(open, it.call)
		}
	}
	return open
}

// run lets Porcupine order the calls and returns the start of what follows them, as project sees it and refuse does not
// refuse it.
func (k *checker) run(p *part, calls []*call, from start, end int64, project func(start) start, refuse func(start) bool) (start, Verdict) {
	n := len(calls) + len(from.open)
	if n > k.opts.MaxStretch {
		return start{}, k.undecided("a stretch of %d operations without a quiet instant is longer than %d", n, k.opts.MaxStretch)
	}
	var r *run
	next := func(s *state) start {
		return project(start{&state{known: s.known, present: s.present}, r.open(s)})
	}
	r = p.newRun(calls, from, end, func(s *state) bool { return refuse(next(s)) }, k.last)
	k.last = r
	b := &budget{ctx: k.ctx, left: k.opts.MaxBytes, each: entrySize(n, r.start)}
	k.res.Runs++
	ok := porcupine.CheckOperations(b.bound(p.model(r.start, r.branching)), r.history)
	k.res.Steps += b.steps
	switch {
	case b.stopped && k.ctx.Err() != nil:
		return start{}, k.undecided("the time ran out after %d runs of Porcupine", k.res.Runs)
	case b.stopped:
		return start{}, k.undecided("the memory for a stretch of %d operations ran out", n)
	case !ok:
		return start{}, NotLinearizable
	}
	return next(r.end.found), Linearizable
}

// budget stops a run when time or memory runs out, by refusing every further step: Porcupine then has nothing left to
// try and returns.
type budget struct {
	ctx        context.Context
	left, each int64 // bytes
	steps      int
	stopped    bool
}

// entrySize estimates, in bytes, what an entry of Porcupine's cache takes: a bit for each operation, the state, and
// their headers.
func entrySize(n int, s *state) int64 {
	const headers = 240
	return int64(n/8 + 8*(len(s.present)+len(s.done)) + headers)
}

// bound makes the model spend the budget: each step that succeeds costs an entry of the cache, which is given back when
// the cache has an equal one.
func (b *budget) bound(m porcupine.Model) porcupine.Model {
	step, equal := m.Step, m.Equal
	m.StepContext = nil
	m.Step = func(from, input, output any) (bool, any) {
		b.steps++
		if b.steps&63 == 0 && b.ctx.Err() != nil || b.left < 0 {
			b.stopped = true
		}
		if b.stopped {
			return false, nil
		}
		ok, next := step(from, input, output)
		if ok {
			b.left -= b.each
		}
		return ok, next
	}
	m.Equal = func(x, y any) bool {
		if !equal(x, y) {
			return false
		}
		b.left += b.each
		return true
	}
	return m
}
