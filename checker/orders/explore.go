package orders

import (
	"cmp"
	"context"
	"encoding/binary"
	"hash/maphash"
	"slices"

	"linearize.example/traces"
)

// Budget bounds a search. Zero values mean the defaults.
type Budget struct {
	// Nodes bounds the configurations that are kept at one time.
	Nodes int
}

// DefaultNodes keeps a search below about half a GiB.
const DefaultNodes = 4 << 20

// Explore calls visit with the blocks of the graph, in order. A block is valid until visit returns. It returns nil
// when the history has an explanation, a *Stuck when it has none, ErrBudget, the context's error, or what visit
// returned. After a *Stuck the blocks visited so far are those before the cut; what comes after was not visited.
func Explore(ctx context.Context, p *Problem, budget Budget, visit func(*Block) error) error {
	if budget.Nodes == 0 {
		budget.Nodes = DefaultNodes
	}
	x := explorer{p: p, budget: budget, ctx: ctx}
	x.prepare()
	return x.run(visit)
}

// explorer holds one search. A configuration is written as a list of numbers: the first of the mandatory operations
// behind which none is done (top), those below it that are not done (holes), and the optional ones that are done and
// could still matter. All of this together with the state identifies it.
type explorer struct {
	p      *Problem
	ctx    context.Context
	budget Budget

	mandatory []int32          // indices of operations, by Call
	optional  []int32          // the same
	rank      []int32          // operation → its place in mandatory or optional
	deadline  []traces.Instant // place in mandatory → least Return from there on

	block Block
	seed  maphash.Seed

	configs          []config
	keys             []int32 // the numbers of all configurations of the block
	states           stateTable
	layer            int32            // the first node of the layer that is being filled
	table            map[uint64]int32 // hash of a configuration of that layer → node; collisions are chained by next
	indexed          bool             // table and next are in use: the layer has more than a few nodes
	next             []int32
	scratch          State
	key              []int32
	left             []int32 // places of the operations that may come next
	touched, changed State
	waiting          bool   // some operation waits for another one
	moves            []Edge // edges in the order of discovery
}

type config struct {
	at, holes, done int32 // keys[at] is top, then holes, then optional ones that are done
	hash            uint64
}

func (x *explorer) prepare() {
	ops := x.p.Operations
	x.rank = make([]int32, len(ops))
	for i := range ops {
		x.waiting = x.waiting || len(ops[i].After) > 0
		if ops[i].Optional {
			x.rank[i] = int32(len(x.optional))
			x.optional = append(x.optional, int32(i))
		} else {
			x.rank[i] = int32(len(x.mandatory))
			x.mandatory = append(x.mandatory, int32(i))
		}
	}
	x.deadline = make([]traces.Instant, len(x.mandatory)+1)
	x.deadline[len(x.mandatory)] = traces.Forever
	for i := len(x.mandatory) - 1; i >= 0; i-- {
		x.deadline[i] = min(x.deadline[i+1], ops[x.mandatory[i]].Return)
	}
	x.seed = maphash.MakeSeed()
	x.scratch = make(State, x.p.Words)
	x.states.width = x.p.Words
	x.states.seed = x.seed
	x.table = map[uint64]int32{}
	x.block.width = x.p.Words
}

func (x *explorer) run(visit func(*Block) error) error {
	x.reset()
	for _, s := range x.p.Initial {
		x.key = append(x.key[:0], 0)
		x.reach(x.states.intern(s), 0, 0, traces.Beginning)
	}
	x.block.Entries = len(x.block.Nodes)
	layer := 0 // the first node of the open layer
	for done := 0; ; done++ {
		if done&1023 == 0 && x.ctx.Err() != nil {
			return x.ctx.Err()
		}
		x.closeUnderOptional()
		last := done == len(x.mandatory)
		single := len(x.block.Nodes)-layer == 1
		if last || single && layer > 0 {
			x.finish(layer, last, done)
			if err := visit(&x.block); err != nil {
				return err
			}
			if last {
				return nil
			}
			layer = x.restart()
		}
		end := len(x.block.Nodes)
		x.openLayer()
		for n := layer; n < end; n++ {
			x.expand(int32(n))
			if len(x.block.Nodes) > x.budget.Nodes {
				return ErrBudget
			}
			if n&1023 == 1023 && x.ctx.Err() != nil {
				return x.ctx.Err()
			}
		}
		if len(x.block.Nodes) == end {
			return x.stuck(layer, end, done)
		}
		layer = end
	}
}

func (x *explorer) reset() {
	x.block.Nodes, x.block.Edges, x.block.Exits = x.block.Nodes[:0], x.block.Edges[:0], x.block.Exits[:0]
	x.configs, x.keys, x.next, x.moves = x.configs[:0], x.keys[:0], x.next[:0], x.moves[:0]
	x.states.reset()
	x.openLayer()
}

func (x *explorer) openLayer() {
	x.layer = int32(len(x.block.Nodes))
	if x.indexed {
		clear(x.table)
		x.indexed = false
	}
}

// few is how many configurations are compared one by one before an index pays.
const few = 8

// restart makes the last node of the block the only one of a new block.
func (x *explorer) restart() int {
	n := len(x.block.Nodes) - 1
	c, node := x.configs[n], x.block.Nodes[n]
	x.key = append(x.key[:0], x.keys[c.at:c.at+1+c.holes+c.done]...)
	x.scratch = append(x.scratch[:0], x.states.at(node.state)...)
	x.reset()
	state := x.states.intern(x.scratch)
	x.reach(state, c.holes, c.done, node.First)
	x.block.Entries = 1
	return 0
}

// reach returns the node for the configuration in x.key with the state, new or known, at whose earliest first.
func (x *explorer) reach(state, holes, done int32, first traces.Instant) int32 {
	h := x.hash(state)
	same := func(m int32) bool {
		c := &x.configs[m]
		return c.hash == h && x.block.Nodes[m].state == state && c.holes == holes && c.done == done &&
			slices.Equal(x.keys[c.at:c.at+1+holes+done], x.key)
	}
	if !x.indexed {
		for m := x.layer; int(m) < len(x.block.Nodes); m++ {
			if same(m) {
				x.block.Nodes[m].First = min(x.block.Nodes[m].First, first)
				return m
			}
		}
	} else {
		for m := x.head(h); m >= 0; m = x.next[m] {
			if same(m) {
				x.block.Nodes[m].First = min(x.block.Nodes[m].First, first)
				return m
			}
		}
	}
	m := int32(len(x.block.Nodes))
	x.configs = append(x.configs, config{at: int32(len(x.keys)), holes: holes, done: done, hash: h})
	x.keys = append(x.keys, x.key...)
	x.next = append(x.next, -1)
	x.block.Nodes = append(x.block.Nodes, Node{First: first, Last: x.last(), state: state})
	switch {
	case x.indexed:
		x.next[m] = x.head(h)
		x.table[h] = m
	case m-x.layer >= few:
		x.index()
	}
	return m
}

func (x *explorer) head(h uint64) int32 {
	if m, known := x.table[h]; known {
		return m
	}
	return -1
}

// index builds the table for the layer that is being filled.
func (x *explorer) index() {
	clear(x.table)
	x.indexed = true
	for m := x.layer; int(m) < len(x.block.Nodes); m++ {
		h := x.configs[m].hash
		x.next[m] = x.head(h)
		x.table[h] = m
	}
}

func (x *explorer) hash(state int32) uint64 {
	h := uint64(state)*0x9e3779b97f4a7c15 + 1
	for _, k := range x.key {
		h ^= uint64(uint32(k))
		h *= 0xbf58476d1ce4e5b9
		h ^= h >> 29
	}
	return h
}

// last is the latest instant that the configuration in x.key can last to: something that is not done must happen.
func (x *explorer) last() traces.Instant {
	top := x.key[0]
	last := x.deadline[top]
	for _, hole := range x.key[1:] {
		if hole < 0 {
			break // optional ones that are done are written as negative numbers
		}
		last = min(last, x.p.Operations[x.mandatory[hole]].Return)
	}
	return last
}

// expand tries every mandatory operation that can come next, or as many of them as are enough.
func (x *explorer) expand(n int32) {
	c, node := x.configs[n], x.block.Nodes[n]
	top := x.keys[c.at]
	if x.p.Touches != nil && len(x.optional) == 0 {
		for _, place := range x.persistent(c, node) {
			x.try(n, place)
		}
		return
	}
	for i := range c.holes {
		x.try(n, x.keys[c.at+1+i])
	}
	for place := top; int(place) < len(x.mandatory); place++ {
		if x.p.Operations[x.mandatory[place]].Call > node.Last {
			break
		}
		x.try(n, place)
	}
}

// persistent lists operations of which one has to come next, before anything that concerns the same facts can: the one whose
// time runs out first, and all those, of the operations that can take effect before it, that change a fact of one of the list,
// or depend on a fact that one of the list changes, or wait for one of the list or are waited for.
func (x *explorer) persistent(c config, node Node) []int32 {
	x.left = append(x.left[:0], x.keys[c.at+1:c.at+1+c.holes]...)
	for place := x.keys[c.at]; int(place) < len(x.mandatory) && x.p.Operations[x.mandatory[place]].Call <= node.Last; place++ {
		x.left = append(x.left, place)
	}
	op := func(place int32) *Operation { return &x.p.Operations[x.mandatory[place]] }
	urgent := 0
	for i, place := range x.left {
		if op(place).Return < op(x.left[urgent]).Return {
			urgent = i
		}
	}
	// The list grows at the front of left.
	x.left[0], x.left[urgent] = x.left[urgent], x.left[0]
	listed := 1
	all, changed := x.p.Touches(int(x.mandatory[x.left[0]]))
	x.touched, x.changed = append(x.touched[:0], all...), append(x.changed[:0], changed...)
	for again := true; again; {
		again = false
		for i := listed; i < len(x.left); i++ {
			place := x.left[i]
			all, changed := x.p.Touches(int(x.mandatory[place]))
			if !all.Meets(x.changed) && !changed.Meets(x.touched) && (!x.waiting || !x.waits(place, x.left[:listed])) {
				continue
			}
			for w := range all {
				x.touched[w] |= all[w]
				x.changed[w] |= changed[w]
			}
			x.left[i], x.left[listed] = x.left[listed], x.left[i]
			listed++
			again = true
		}
	}
	return x.left[:listed]
}

// waits reports whether the operation waits for one of the others, or one of them for it.
func (x *explorer) waits(place int32, others []int32) bool {
	op := x.mandatory[place]
	for _, other := range others {
		b := x.mandatory[other]
		if slices.Contains(x.p.Operations[op].After, b) || slices.Contains(x.p.Operations[b].After, op) {
			return true
		}
	}
	return false
}

// try lets the mandatory operation at the place take effect in node n.
func (x *explorer) try(n, place int32) {
	c, node := x.configs[n], x.block.Nodes[n]
	op := x.mandatory[place]
	o := &x.p.Operations[op]
	if o.Call > node.Last || !x.allDone(c, o.After) {
		return
	}
	if !x.p.Step(int(op), x.states.at(node.state), x.scratch) {
		return
	}
	first := max(node.First, o.Call)
	top := x.keys[c.at]
	x.key = append(x.key[:0], top)
	holes := x.keys[c.at+1 : c.at+1+c.holes]
	if place >= top {
		x.key = append(x.key, holes...)
		for p := top; p < place; p++ {
			x.key = append(x.key, p)
		}
		x.key[0] = place + 1
	} else {
		for _, p := range holes {
			if p != place {
				x.key = append(x.key, p)
			}
		}
	}
	count := int32(len(x.key) - 1)
	for _, d := range x.keys[c.at+1+c.holes : c.at+1+c.holes+c.done] {
		if x.p.Operations[x.optional[^d]].Return >= first {
			x.key = append(x.key, d)
		}
	}
	x.moves = append(x.moves, Edge{n, x.reach(x.states.intern(x.scratch), count, int32(len(x.key))-1-count, first), op})
}

// allDone reports whether all mandatory ones of ops are done.
func (x *explorer) allDone(c config, ops []int32) bool {
	for _, op := range ops {
		if x.p.Operations[op].Optional {
			continue
		}
		place := x.rank[op]
		if place >= x.keys[c.at] || slices.Contains(x.keys[c.at+1:c.at+1+c.holes], place) {
			return false
		}
	}
	return true
}

// closeUnderOptional adds to the open layer what optional operations lead to from its nodes. Nodes are left in the order of
// how many optional operations they have done, so that a node's earliest instant is final before it is left, and edges
// lead from lower to higher numbers.
func (x *explorer) closeUnderOptional() {
	if len(x.optional) == 0 {
		return
	}
	x.sortFrom(int(x.layer))
	sorted := len(x.block.Nodes)
	for n := int(x.layer); n < len(x.block.Nodes) && n <= x.budget.Nodes; n++ {
		if len(x.block.Nodes) > sorted && n > 0 && x.configs[n].done != x.configs[n-1].done {
			x.sortFrom(n)
			sorted = len(x.block.Nodes)
		}
		x.tryOptional(int32(n))
	}
}

// sortFrom renumbers the nodes of the open layer from first on by the number of optional operations that are done.
func (x *explorer) sortFrom(first int) {
	count := len(x.block.Nodes) - first
	order := make([]int32, count)
	for i := range order {
		order[i] = int32(first + i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(x.configs[a].done, x.configs[b].done) })
	if slices.IsSorted(order) {
		return
	}
	nodes, configs := slices.Clone(x.block.Nodes[first:]), slices.Clone(x.configs[first:])
	place := make([]int32, count)
	for to, from := range order {
		x.block.Nodes[first+to], x.configs[first+to] = nodes[int(from)-first], configs[int(from)-first]
		place[int(from)-first] = int32(first + to)
	}
	// The edges into the open layer are the last ones.
	for i := len(x.moves) - 1; i >= 0 && x.moves[i].To >= x.layer; i-- {
		if int(x.moves[i].To) >= first {
			x.moves[i].To = place[int(x.moves[i].To)-first]
		}
	}
	if x.indexed {
		x.index()
	}
}

func (x *explorer) tryOptional(n int32) {
	for rank, op := range x.optional {
		o := &x.p.Operations[op]
		c, node := x.configs[n], x.block.Nodes[n]
		if o.Call > node.Last {
			break
		}
		done := x.keys[c.at+1+c.holes : c.at+1+c.holes+c.done]
		if o.Return < node.First || slices.Contains(done, ^int32(rank)) || !x.firstAlike(rank, done, node) || !x.allDone(c, o.After) {
			continue
		}
		if !x.p.Step(int(op), x.states.at(node.state), x.scratch) || slices.Equal(x.scratch, x.states.at(node.state)) {
			continue
		}
		first := max(node.First, o.Call)
		x.key = append(x.key[:0], x.keys[c.at:c.at+1+c.holes]...)
		at := len(x.key)
		x.key = append(append(x.key, done...), ^int32(rank))
		slices.Sort(x.key[at:])
		x.moves = append(x.moves, Edge{n, x.reach(x.states.intern(x.scratch), c.holes, int32(len(x.key)-at), first), op})
	}
}

// firstAlike reports whether no optional operation like the one of the rank was called before it and is not done.
func (x *explorer) firstAlike(rank int, done []int32, node Node) bool {
	alike := x.p.Operations[x.optional[rank]].Alike
	if alike == 0 {
		return true
	}
	for r := rank - 1; r >= 0; r-- {
		o := &x.p.Operations[x.optional[r]]
		if o.Alike == alike && o.Return >= node.First && !slices.Contains(done, ^int32(r)) {
			return false
		}
	}
	return true
}

// finish orders the edges, marks what survives and lists the exits.
func (x *explorer) finish(layer int, last bool, done int) {
	b := &x.block
	b.Last, b.Done = last, done
	b.words = x.states.words
	for n := layer; n < len(b.Nodes); n++ {
		b.Nodes[n].Survives = true
		b.Exits = append(b.Exits, int32(n))
	}
	if !slices.IsSortedFunc(x.moves, byFrom) {
		slices.SortStableFunc(x.moves, byFrom)
	}
	b.Edges = append(b.Edges[:0], x.moves...)
	e := len(b.Edges)
	for n := len(b.Nodes) - 1; n >= 0; n-- {
		for e > 0 && int(b.Edges[e-1].From) == n {
			e--
			b.Nodes[n].Survives = b.Nodes[n].Survives || b.Nodes[b.Edges[e].To].Survives
		}
		b.Nodes[n].FirstEdge = int32(e)
	}
}

func byFrom(a, b Edge) int { return cmp.Compare(a.From, b.From) }

func (x *explorer) stuck(layer, end, done int) error {
	s := &Stuck{Explained: done, Op: -1}
	tried := map[int]bool{}
	deadline := traces.Forever
	for n := layer; n < end; n++ {
		c, node := x.configs[n], x.block.Nodes[n]
		if len(s.States) < MaxStuckStates {
			s.States = append(s.States, slices.Clone(x.states.at(node.state)))
		}
		consider := func(place int32) {
			op := int(x.mandatory[place])
			if o := &x.p.Operations[op]; s.Op < 0 || o.Return < deadline {
				s.Op, deadline = op, o.Return
			}
			if !tried[op] && len(s.Refused) < MaxStuckStates {
				tried[op] = true
				s.Refused = append(s.Refused, op)
			}
		}
		for i := range c.holes {
			consider(x.keys[c.at+1+i])
		}
		for place := x.keys[c.at]; int(place) < len(x.mandatory) && x.p.Operations[x.mandatory[place]].Call <= node.Last; place++ {
			consider(place)
		}
	}
	slices.Sort(s.Refused)
	return s
}

// stateTable gives equal states equal numbers.
type stateTable struct {
	width int
	seed  maphash.Seed
	words []uint64
	index map[uint64][]int32
	count int32
}

func (t *stateTable) reset() {
	t.words, t.count = t.words[:0], 0
	if len(t.index) > 0 {
		clear(t.index)
	}
}

func (t *stateTable) at(i int32) State {
	at := int(i) * t.width
	return State(t.words[at : at+t.width : at+t.width])
}

// intern returns the state's number. Few states are compared one by one; only a block that has many needs an index.
func (t *stateTable) intern(s State) int32 {
	if t.count <= few {
		for i := range t.count {
			if slices.Equal(t.at(i), s) {
				return i
			}
		}
		t.words = append(t.words, s...)
		t.count++
		if t.count > few {
			if t.index == nil {
				t.index = map[uint64][]int32{}
			}
			for i := range t.count {
				h := t.hash(t.at(i))
				t.index[h] = append(t.index[h], i)
			}
		}
		return t.count - 1
	}
	h := t.hash(s)
	for _, i := range t.index[h] {
		if slices.Equal(t.at(i), s) {
			return i
		}
	}
	t.words = append(t.words, s...)
	t.index[h] = append(t.index[h], t.count)
	t.count++
	return t.count - 1
}

func (t *stateTable) hash(s State) uint64 {
	var h maphash.Hash
	h.SetSeed(t.seed)
	var b [8]byte
	for _, w := range s {
		binary.LittleEndian.PutUint64(b[:], w)
		h.Write(b[:])
	}
	return h.Sum64()
}
