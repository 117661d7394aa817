package explain

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"linearize.example/checker/conform"
	"linearize.example/checker/conform/engine"
	"linearize.example/model"
	"linearize.example/traces"
)

// window is how many operations beyond the first one that is not done a state can tell apart.
const window = 64

// done says which operations an explanation contains so far: all before base, and those of the mask behind it.
type done struct {
	base int32
	mask uint64
}

func (d done) has(i int) bool {
	n := i - int(d.base)
	return n < 0 || n < window && d.mask>>n&1 != 0
}

func (d done) with(i int) done {
	d.mask |= 1 << (i - int(d.base))
	for d.mask&1 != 0 {
		d.mask >>= 1
		d.base++
	}
	return d
}

// label is one step of a behaviour. Answer is what a describe returned.
type label struct {
	action   model.Action
	args     conform.Args
	answer   engine.Set
	answered bool
	wants    engine.Atom // of Pick: what the reconcile will want
	ops      [2]int32    // the operations that the step is, by number, -1 where there is none
}

func (l *label) seen() bool { return l.ops[0] >= 0 }

// node is a state of the specification, reached with some operations done. Equal states with the same operations done are
// one node, with the shortest way to it.
type node struct {
	state  []uint64
	done   done
	lives  [2]uint8 // which caller of the capture each process is, counted from 1; 0: not known yet
	left   int32    // operations that are still needed
	cost   int32
	parent *node
	label  label
}

// level holds the nodes with the same number of operations done.
type level struct {
	nodes   map[string]*node
	classes map[string]*class // of nodes that were reached by a call, unless the search is full
	buckets [][]*node         // by cost
	from    int32
}

// class holds the best of the nodes that differ only in what bindings inside of the wanted rule want.
type class struct {
	best *node
	off  int // how many of these want something else than the next rules call for
}

// dead is the cost of a node that is not looked at any more.
const dead = -1

// search looks for one behaviour.
type search struct {
	*Subject
	world   world
	d       *conform.Driver
	ports   []int32      // by binding from 1: its port; 0 for one that is never the end of a rule
	targets []engine.Set // by operation: its rules
	watch   engine.Set   // bindings whose targets were recorded
	full    bool         // every reconcile may happen at any time
	beam    int          // if not 0, how many nodes of a level are looked at, those with the shortest ways
	hint    [][]int32    // by binding: see lookahead
	budget  *budget

	// A search that is not full widens where it comes to a stop.
	narrow    bool
	kept      map[int][]*node
	wideUntil int

	levels   map[int]*level
	attempts map[attempt]int32
	found    *node
	gaveUp   string // what was not looked at, for want of room
	key      []byte
	raw      []raw
	arena    []uint64
}

// budget bounds a search.
type budget struct {
	ctx    context.Context
	states int
	used   int
	until  time.Time
}

func (b *budget) over() string {
	switch {
	case b.used >= b.states:
		return "states"
	case b.used%256 == 0 && (b.ctx.Err() != nil || !b.until.IsZero() && time.Now().After(b.until)):
		return "time"
	}
	return ""
}

// attempt is a call that the design would have made, with some operations done, and that is not what the capture shows.
type attempt struct {
	done   done
	kind   kind
	rules  engine.Set
	result result
}

// raw is a successor that is not yet put in its place.
type raw struct {
	state  []uint64
	label  label
	faults int
	life   [2]uint8
}

// newSearch lays the subject out for the model: each end of a rule is the port of one binding, and with extra there is one
// more binding inside.
func newSearch(s *Subject, w world, extra bool, b *budget) (*search, error) {
	x := &search{Subject: s, world: w, budget: b, levels: map[int]*level{}, attempts: map[attempt]int32{}}
	x.ports = append([]int32{0}, s.ports...)
	if extra {
		x.ports = slices.Insert(x.ports, 2, 0)
	}
	x.world.tgbs = len(x.ports) - 1
	m, err := conform.NewModel(x.world.constants())
	if err != nil {
		return nil, err
	}
	x.d = conform.NewDriver(m)
	x.targets = make([]engine.Set, len(s.ops))
	for i, op := range s.ops {
		x.targets[i] = x.rulesOf(op.rules)
	}
	for _, port := range s.watched {
		x.watch = x.watch.Or(engine.Bit(x.binding(port)))
	}
	return x, nil
}

func (x *search) binding(port int32) int { return slices.Index(x.ports[1:], port) + 1 }

func (x *search) rulesOf(list []span) engine.Set {
	var set engine.Set
	for _, r := range list {
		set = set.Or(engine.Bit(x.d.RuleNumber(x.binding(r.lo), x.binding(r.hi))))
	}
	return set
}

// spansOf is the inverse of rulesOf.
func (x *search) spansOf(set engine.Set) []span {
	var out []span
	for set.Some() {
		r := x.d.RuleAt(set.Pop())
		out = append(out, span{x.ports[r.Lo], x.ports[r.Hi]})
	}
	slices.SortFunc(out, compareSpans)
	return out
}

// start inserts the states in which the capture can begin: the controller is idle, and either wants what one of the rules
// is, or nothing, or has just started.
func (x *search) start() error {
	states, err := x.d.Model.Initial()
	if err != nil {
		return err
	}
	first := states[0]
	n := x.world.tgbs
	left := int32(0)
	for i := range x.ops {
		if !x.ops[i].optional() {
			left++
		}
	}
	var wanted [][]engine.Atom
	add := func(lo, hi int, inside, outside engine.Atom) {
		list := make([]engine.Atom, n)
		for t := range list {
			list[t] = outside
			if lo <= t+1 && t+1 <= hi {
				list[t] = inside
			}
		}
		if !slices.ContainsFunc(wanted, func(l []engine.Atom) bool { return slices.Equal(l, list) }) {
			wanted = append(wanted, list)
		}
	}
	for _, list := range x.initial {
		rules := x.rulesOf(list)
		wanted = wanted[:0]
		for _, r := range list {
			add(x.binding(r.lo), x.binding(r.hi), conform.Port, conform.None)
		}
		if len(list) == 0 {
			add(1, 0, conform.Port, conform.None)
			add(1, n, conform.Port, conform.None)
		}
		add(1, 0, conform.Unknown, conform.Unknown)
		for _, computed := range wanted {
			cold := computed[0] == conform.Unknown
			for _, cached := range []bool{false, true} {
				if cached && (cold || !x.world.design.UseCache) {
					continue
				}
				w := make([]uint64, len(first))
				x.d.Load(first)
				x.d.Begin(w, rules, computed, !cold, cached)
				x.d.Canonical(w, x.watch, 0)
				x.insert(0, &node{state: w, left: left, label: label{ops: [2]int32{-1, -1}}})
			}
		}
	}
	return nil
}

// insert puts a node into its level, unless there is a shorter way to the same.
func (x *search) insert(count int, n *node) {
	l := x.levels[count]
	if l == nil {
		l = &level{nodes: map[string]*node{}, from: n.cost}
		x.levels[count] = l
	}
	key := x.keyOf(n.state, n)
	if old := l.nodes[string(key)]; old != nil && old.cost != dead && old.cost <= n.cost {
		return
	} else if old != nil {
		old.cost = dead
	}
	l.nodes[string(key)] = n
	at := int(n.cost - l.from)
	if at < 0 {
		l.buckets = append(make([][]*node, -at), l.buckets...)
		l.from, at = n.cost, 0
	}
	for len(l.buckets) <= at {
		l.buckets = append(l.buckets, nil)
	}
	l.buckets[at] = append(l.buckets[at], n)
}

// keyOf tells nodes apart; the result is valid until the next call.
func (x *search) keyOf(state []uint64, n *node) []byte {
	x.key = x.key[:0]
	for _, w := range state {
		x.key = binary.LittleEndian.AppendUint64(x.key, w)
	}
	x.key = binary.LittleEndian.AppendUint32(x.key, uint32(n.done.base))
	x.key = binary.LittleEndian.AppendUint64(x.key, n.done.mask)
	x.key = append(x.key, n.lives[:]...)
	return x.key
}

// stop is where a search came to a stop: the node that explains the longest beginning of the capture, and what the design
// would have called there.
type stop struct {
	at       *node
	count    int // operations done
	attempts map[attempt]int32
}

func (s stop) behind(n *node, count int) bool {
	switch {
	case s.at == nil:
		return true
	case s.at.done.base != n.done.base:
		return s.at.done.base < n.done.base
	}
	return s.count < count
}

// run searches level by level until an explanation is found, nothing is left, or the budget is over.
func (x *search) run() (best stop, over string) {
	for count := 0; len(x.levels) > 0; count++ {
		l := x.levels[count]
		if l == nil {
			continue
		}
		clear(x.attempts)
		until := x.budget.used + x.beam
		for i := 0; i < len(l.buckets); i++ {
			for j := 0; j < len(l.buckets[i]); j++ {
				n := l.buckets[i][j]
				if n.cost != l.from+int32(i) {
					continue // a shorter way was found
				}
				if best.behind(n, count) {
					best.at, best.count, best.attempts = n, count, nil
				}
				if n.left == 0 {
					x.found = n
					return best, ""
				}
				if over = x.budget.over(); over != "" {
					break
				}
				x.budget.used++
				x.expand(n, count)
			}
			l.buckets[i] = nil
			if over != "" || x.beam > 0 && x.budget.used >= until {
				break
			}
		}
		if best.attempts == nil {
			best.attempts = map[attempt]int32{}
			for a, cost := range x.attempts {
				if a.done == best.at.done {
					best.attempts[a] = cost
				}
			}
		}
		if over != "" {
			return best, over
		}
		x.keep(l, count)
		delete(x.levels, count)
		if x.narrow && count > x.wideUntil {
			x.full = false
		}
		if len(x.levels) == 0 && x.widen(count) {
			count = max(count-back, 0) - 1
		}
	}
	return best, ""
}

// back is how many operations a search that came to a stop goes back, to try every reconcile from there.
const back = 12

// keep remembers the nodes with which a level began, for widen.
func (x *search) keep(l *level, count int) {
	if x.full {
		return
	}
	if x.kept == nil {
		x.narrow, x.kept = true, map[int][]*node{}
	}
	x.kept[count] = nil
	for _, n := range l.nodes {
		if n.cost != dead && (n.label.seen() || n.parent == nil) {
			x.kept[count] = append(x.kept[count], n)
		}
	}
	delete(x.kept, count-back-1)
}

// widen goes back some operations and tries every reconcile until the stop is passed. It reports whether that is worth trying:
// it is not where it has been done before.
func (x *search) widen(count int) bool {
	if !x.narrow || x.full || count <= x.wideUntil || x.beam > 0 {
		return false
	}
	from := max(count-back, 0)
	for _, n := range x.kept[from] {
		x.insert(from, n)
	}
	x.full, x.wideUntil = true, count+1
	return true
}

// enabled lists the operations that can come next.
func (x *search) enabled(d done) []int {
	var out []int
	until := traces.Forever
	for i := int(d.base); i < len(x.ops) && x.ops[i].call <= until; i++ {
		if i-int(d.base) >= window {
			x.gaveUp = "more than 64 operations overlap"
			break
		}
		op := &x.ops[i]
		if d.has(i) {
			continue
		}
		if !op.optional() {
			until = min(until, op.ret)
		}
		if op.after < 0 || d.has(op.after) || x.ops[op.after].optional() {
			out = append(out, i)
		}
	}
	return out
}

// finish marks operations as done. Of operations without an answer that lie far behind it is assumed that they never took
// effect.
func (x *search) finish(d done, ops ...int32) done {
	for _, i := range ops {
		if i < 0 {
			continue
		}
		d = d.with(int(i))
	}
	for d.mask>>(window/2) != 0 && x.ops[d.base].optional() {
		x.gaveUp = "an operation without an answer was left out after 32 others"
		d = d.with(int(d.base))
	}
	return d
}

// place makes nodes of the collected successors.
func (x *search) place(n *node, count int) {
	for i := range x.raw {
		r := &x.raw[i]
		x.put(n, count, r)
	}
	x.raw = x.raw[:0]
}

func (x *search) put(parent *node, count int, r *raw) {
	x.d.Canonical(r.state, x.watch, r.faults)
	c := &node{state: r.state, done: parent.done, lives: r.life, left: parent.left, cost: parent.cost + 1, parent: parent,
		label: r.label}
	if r.label.seen() {
		c.done = x.finish(c.done, r.label.ops[:]...)
		for _, i := range r.label.ops {
			if i >= 0 {
				count++
				if !x.ops[i].optional() {
					c.left--
				}
			}
		}
	}
	if !x.full && r.label.seen() && x.worse(count, c) {
		return
	}
	x.insert(count, c)
}

// worse says whether another node of the same class is known that is nearer to what the next rules call for; if not, the node
// is the best of its class from now on. Which one is kept is a guess; a full search keeps all.
func (x *search) worse(count int, n *node) bool {
	l := x.levels[count]
	if l == nil {
		l = &level{nodes: map[string]*node{}, from: n.cost}
		x.levels[count] = l
	}
	if l.classes == nil {
		l.classes = map[string]*class{}
	}
	x.d.Load(n.state)
	masked := slices.Clone(n.state)
	off := 0
	for p := 1; p <= x.world.env.processes; p++ {
		computed := x.d.MemoryOf(p).Computed
		lo, hi := x.hull(computed[:])
		for t := lo + 1; t < hi; t++ {
			if v := computed[t-1]; v != conform.Unknown {
				if !slices.Contains(x.lookahead(t, int(n.done.base)), v) {
					off++
				}
				computed[t-1] = conform.None
			}
		}
		x.d.Compute(masked, p, computed)
	}
	key := string(x.keyOf(masked, n))
	c := l.classes[key]
	switch {
	case c == nil:
		l.classes[key] = &class{n, off}
		return false
	case c.off < off || c.off == off && c.best.cost <= n.cost:
		return true
	}
	c.best.cost = dead
	c.best, c.off = n, off
	return false
}

// clone copies a packed state into memory of its own.
func (x *search) clone(w []uint64) []uint64 {
	if len(x.arena) < len(w) {
		x.arena = make([]uint64, 256*len(w))
	}
	out := x.arena[:len(w):len(w)]
	x.arena = x.arena[len(w):]
	copy(out, w)
	return out
}
