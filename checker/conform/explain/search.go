package explain

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime/metrics"
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
	ops      [2]int32    // the operations that the step is, by number, -1 where there is none
	wants    engine.Atom // of Pick: what the reconcile will want
	replace  bool        // of Pick: another pod has taken the place of the one there was
	// memory is what the process may have computed from then on; 0 where the step does not change that.
	memory wants
	// free stands for reconciles that leave everything as it was but what is computed: any of them may happen here, or none.
	free bool
}

func (l *label) seen() bool { return l.ops[0] >= 0 }

// node is a set of states of the specification that differ in what was computed alone, reached with some operations done.
type node struct {
	state  []uint64 // with what is typical of wants
	wants  [2]wants
	done   done
	lives  [2]uint8 // which caller of the capture each process is, counted from 1; 0: not known yet
	dead   bool     // another node holds its states
	left   int32    // operations that are still needed
	cost   int32
	parent *node
	steps  []label // from the parent to this node
	other  *node   // the next with the same key
}

// level holds the nodes with the same number of operations done. Nodes with the same key differ in wants alone.
type level struct {
	nodes   map[string]*node
	buckets [][]*node // by cost
	from    int32
}

// search looks for one behaviour.
type search struct {
	*Subject
	world   world
	d       *conform.Driver
	ports   []int32      // by binding from 1: its port; 0 for one that is never the end of a rule
	targets []engine.Set // by operation: its rules
	watch   engine.Set   // bindings whose targets were recorded
	resets  engine.Set   // bindings whose checkpoint is seen to be emptied
	beam    int          // if not 0, how many states of a level are looked at, those with the shortest ways
	twins   []int32      // by operation: the one before that is its equal; -1
	budget  *budget

	// nobody is a binding of which nothing is shown; 0 if there is none.
	nobody int
	// single says that nothing comes between the steps of a reconcile that are not seen.
	single bool
	// joined says that a reconcile begins where it takes the mutex: between the two it does nothing that others look at. And what it
	// does under the mutex and nobody sees is done at once, up to a describe; where it is quiet, up to the next step that is seen,
	// for nobody else changes the group.
	joined, quiet bool
	verifies      bool // describes are recorded, and some decide whether a binding is skipped
	tellsAll      bool // of every process the capture tells when it leads, so that no other start is hidden

	levels   map[int]*level
	attempts map[attempt]int32
	found    *node
	over     string // the bound that was reached
	gaveUp   string // what was not looked at, for want of room
	key      []byte
	scratch  scratch
	loaded   *uint64 // the beginning of the state that the driver looks at
	picks    []pick
}

// budget bounds a search.
type budget struct {
	ctx    context.Context
	states int
	used   int
	memory uint64 // bytes of the heap; 0 for no bound
	until  time.Time
	sample [1]metrics.Sample
}

// over names the bound that was reached.
func (b *budget) over() string {
	switch {
	case b.used >= b.states:
		return fmt.Sprintf("%d states", b.states)
	case b.used%256 != 0:
	case b.ctx.Err() != nil:
		return "interrupted"
	case !b.until.IsZero() && time.Now().After(b.until):
		return "the time that was given"
	case b.memory > 0 && b.used%(1<<14) == 0 && b.heap() > b.memory:
		return fmt.Sprintf("%d MiB of memory", b.memory>>20)
	}
	return ""
}

// heap is the size of what is live, or was when garbage was last looked for, and of what came since then.
func (b *budget) heap() uint64 {
	b.sample[0].Name = "/memory/classes/heap/objects:bytes"
	metrics.Read(b.sample[:])
	return b.sample[0].Value.Uint64()
}

// attempt is a call that the design would have made, with some operations done, and that is not what the capture shows.
type attempt struct {
	done   done
	kind   kind
	rules  engine.Set
	result result
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
	for _, op := range s.ops {
		if op.kind == reset {
			x.resets = x.resets.Or(engine.Bit(x.binding(op.port)))
		}
		if op.kind == skip || op.kind == reset {
			x.d.Skipped = x.d.Skipped.Or(engine.Bit(x.binding(op.port)))
		}
	}
	e := &w.env
	x.quiet = e.processes == 1 && !e.external && !e.delayed && !slices.ContainsFunc(s.ops, func(op operation) bool { return op.foreign })
	x.single = x.quiet && e.workers == 1
	x.joined = !e.severalGroups && (e.workers == 1 || !w.design.GroupMutex)
	x.tellsAll = s.tellsAll()
	if x.verifies = w.design.CheckpointVerifiesAWS && s.describes; x.verifies {
		for t := 1; t <= x.world.tgbs; t++ { // whether a checkpoint is equal matters for each
			x.d.Skipped = x.d.Skipped.Or(engine.Bit(t))
		}
	}
	x.scratch.words = m.Words
	for t := x.world.tgbs; t > 0; t-- {
		if !x.shown(t) {
			x.nobody = t
		}
	}
	x.twins = s.twins()
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

// beginning is a set of states in which the capture can begin.
type beginning struct {
	rules  engine.Set
	wants  wants
	cold   bool // the controller has just started
	cached bool
}

// beginnings lists how the capture can begin: the controller is idle, and either wants what one of the rules is, or nothing, or
// has just started.
func (x *search) beginnings() []beginning {
	var out []beginning
	n := x.world.tgbs
	for _, list := range x.initial {
		rules := x.rulesOf(list)
		add := func(lo, hi int) {
			var w wants
			for t := 1; t <= n; t++ {
				switch {
				case t == lo || t == hi || lo < t && t < hi && x.watch.Has(t):
					w = w.with(t, mayPort)
				case lo < t && t < hi:
					w = w.with(t, mayPort|mayNone)
				default:
					w = w.with(t, mayNone)
				}
			}
			out = append(out, beginning{rules: rules, wants: w})
			if x.world.design.UseCache {
				out = append(out, beginning{rules: rules, wants: w, cached: true})
			}
		}
		for _, r := range list {
			add(x.binding(r.lo), x.binding(r.hi))
		}
		if len(list) == 0 {
			add(0, 0)
			add(1, n)
		}
		out = append(out, beginning{rules: rules, wants: x.fresh(), cold: true})
	}
	return out
}

// fresh is what a process wants after a start: nothing is computed.
func (x *search) fresh() (w wants) {
	for t := 1; t <= x.world.tgbs; t++ {
		w = w.with(t, mayUnknown)
	}
	return w
}

// begin returns a state of a beginning.
func (x *search) begin(b beginning, computed [engine.FunCap]engine.Atom) ([]uint64, error) {
	states, err := x.d.Model.Initial()
	if err != nil {
		return nil, err
	}
	w := make([]uint64, x.d.Model.Words)
	x.load(states[0])
	x.d.Begin(w, b.rules, computed[:x.world.tgbs], !b.cold, b.cached)
	return w, nil
}

// start inserts the nodes with which the capture can begin.
func (x *search) start() error {
	left := int32(0)
	for i := range x.ops {
		if !x.ops[i].optional() {
			left++
		}
	}
	for _, b := range x.beginnings() {
		w, err := x.begin(b, x.member(b.wants))
		if err != nil {
			return err
		}
		x.canonical(w)
		n := &node{state: w, left: left, wants: [2]wants{b.wants, x.fresh()}}
		x.tidy(w, &n.wants)
		x.insert(0, n)
	}
	return nil
}

// insert puts a node into its level, unless its states are known with no longer a way to them.
func (x *search) insert(count int, n *node) {
	l := x.levels[count]
	if l == nil {
		l = &level{nodes: map[string]*node{}, from: n.cost}
		x.levels[count] = l
	}
	key := x.keyOf(n)
	first := l.nodes[string(key)]
	if first.holds(n) {
		return
	}
	for old := first; old != nil; old = old.other {
		old.dead = old.dead || n.cost <= old.cost && old.within(n)
	}
	for first != nil && first.dead {
		first = first.other
	}
	n.other = first
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

// within says whether all states of a node are states of another with the same key.
func (n *node) within(m *node) bool { return n.wants[0].in(m.wants[0]) && n.wants[1].in(m.wants[1]) }

// holds says whether one of the nodes from n on has all states of another.
func (n *node) holds(m *node) bool {
	for ; n != nil; n = n.other {
		if !n.dead && n.cost <= m.cost && m.within(n) {
			return true
		}
	}
	return false
}

// known says whether a node that is not yet in its level need not be.
func (x *search) known(count int, n *node) bool {
	l := x.levels[count]
	return l != nil && l.nodes[string(x.keyOf(n))].holds(n)
}

// keyOf tells nodes apart that differ in more than wants; the result is valid until the next call.
func (x *search) keyOf(n *node) []byte {
	x.key = x.key[:0]
	for _, w := range n.state {
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

// run searches level by level until an explanation is found, nothing is left, or the budget is over. What lies behind is
// forgotten, but for the ways to what is looked at.
func (x *search) run() (best stop) {
	for count := 0; len(x.levels) > 0; count++ {
		l := x.levels[count]
		if l == nil {
			continue
		}
		clear(x.attempts)
		until := x.budget.used + x.beam
		for i := 0; i < len(l.buckets) && x.over == "" && (x.beam == 0 || x.budget.used < until); i++ {
			for j := 0; j < len(l.buckets[i]) && x.over == ""; j++ {
				n := l.buckets[i][j]
				if n.dead {
					continue
				}
				if best.behind(n, count) {
					best.at, best.count, best.attempts = n, count, nil
				}
				if n.left == 0 {
					x.found = n
					return best
				}
				x.expand(n, count)
			}
			l.buckets[i] = nil
		}
		if best.attempts == nil {
			best.attempts = map[attempt]int32{}
			for a, cost := range x.attempts {
				if a.done == best.at.done {
					best.attempts[a] = cost
				}
			}
		}
		if x.over != "" {
			return best
		}
		delete(x.levels, count)
	}
	return best
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
		if op.call == until && x.meets(d, i) {
			continue
		}
		if !op.optional() {
			until = min(until, op.ret)
		}
		if twin := x.twins[i]; twin >= 0 && !d.has(int(twin)) {
			continue
		}
		if op.after < 0 || d.has(op.after) || x.ops[op.after].optional() {
			out = append(out, i)
		}
	}
	return out
}

// twins finds for each operation the last one before it that differs in nothing but when it was called and returned, both no
// later. The two can change places in every explanation, so that only those matter in which they come in this order.
func (s *Subject) twins() []int32 {
	tied := make([]bool, len(s.ops)) // to another by what their caller did first
	for i := range s.ops {
		if a := s.ops[i].after; a >= 0 {
			tied[i], tied[a] = true, true
		}
	}
	for _, life := range s.lives {
		tied[life[0]], tied[life[1]] = true, true
	}
	type class struct {
		kind               kind
		outcome            traces.Outcome
		port               int32
		foreign, certain   bool
		rules, err, caller string
	}
	last := map[class]int32{}
	twins := make([]int32, len(s.ops))
	for i := range s.ops {
		op := &s.ops[i]
		twins[i] = -1
		if tied[i] || op.observed() {
			continue
		}
		c := class{op.kind, op.outcome, op.port, op.foreign, op.certain, fmt.Sprint(op.rules), op.err, op.caller}
		if j, ok := last[c]; ok && s.ops[j].call <= op.call && s.ops[j].ret <= op.ret {
			twins[i] = j
		}
		last[c] = int32(i)
	}
	return twins
}

// meets says whether an operation begins at the very instant at which another one that is not done ends. The two were not at work
// at once, so that their order is not open; only what two callers did at one instant, as far as a coarse clock tells, is.
func (x *search) meets(d done, i int) bool {
	op := &x.ops[i]
	for j := int(d.base); j < i; j++ {
		o := &x.ops[j]
		if !d.has(j) && !o.optional() && o.ret == op.call && (o.caller == op.caller || o.call < o.ret) {
			return true
		}
	}
	return false
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
