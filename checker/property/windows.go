package property

import (
	"slices"

	"linearize.example/checker/orders"
	"linearize.example/checker/report"
	"linearize.example/traces"
)

// maxOthers bounds the alternatives that are kept for the timeline, for one operation and in all.
const (
	maxOthers    = 3
	maxAllOthers = 1 << 16
)

// judge walks the blocks of the graph.
type judge struct {
	p       *problem
	r       *Result
	windows []Window
	// open is, by subject, the window that is open at the cut, or -1. Subject 0 is never-empty, subject i+1 is port i.
	open   []int
	others int
	quiet  quiet
	// The edges of the block at hand by operation: those of operation firstOp+k are byOp[opStart[k]:opStart[k+1]].
	firstOp       int32
	opStart, byOp []int32

	// Of the block at hand:
	b          *orders.Block
	violations [][]bool // state → subject → violated; nil where not computed
	spare      [][]bool
}

func (j *judge) subjects() {
	j.open = make([]int, len(j.p.u.ports)+1)
	for i := range j.open {
		j.open[i] = -1
	}
}

// violated reports what the state of node n violates, by subject.
func (j *judge) violated(n int32) []bool {
	id := j.b.StateOf(n)
	if v := j.violations[id]; v != nil {
		return v
	}
	var v []bool
	if last := len(j.spare) - 1; last >= 0 {
		v, j.spare = j.spare[last], j.spare[:last]
		clear(v)
	} else {
		v = make([]bool, len(j.open))
	}
	s := j.b.State(n)
	if s.Meets(j.p.u.needs) {
		j.r.Needed = j.r.Needed || j.b.Nodes[n].Survives
		j.p.u.violates(s, v)
	}
	j.violations[id] = v
	return v
}

// violates notes in v, by subject, what a state violates in which something is needed.
func (u *universe) violates(s orders.State, v []bool) {
	v[0] = !s.Meets(u.managed)
	for i := range u.ports {
		v[i+1] = s.Meets(u.ports[i].needed) && !s.Meets(u.ports[i].open)
	}
}

// block judges one block.
func (j *judge) block(b *orders.Block) error {
	j.b = b
	for _, v := range j.violations {
		if v != nil {
			j.spare = append(j.spare, v)
		}
	}
	j.violations = append(j.violations[:0], make([][]bool, b.States())...)
	touched := make([]bool, 0, 8)
	some := false
	for n := range b.Nodes {
		if !b.Nodes[n].Survives {
			continue
		}
		for s, v := range j.violated(int32(n)) {
			if v {
				if len(touched) == 0 {
					touched = make([]bool, len(j.open))
				}
				touched[s] = true
				some = true
			}
		}
	}
	if some || slices.ContainsFunc(j.open, func(w int) bool { return w >= 0 }) {
		for s := range j.open {
			if some && touched[s] || j.open[s] >= 0 {
				j.subject(s)
			}
		}
		if some {
			j.r.NeverEmpty = worse(j.r.NeverEmpty, j.verdict(func(v []bool) bool { return v[0] }))
			j.r.Covered = worse(j.r.Covered, j.verdict(func(v []bool) bool { return slices.Contains(v[1:], true) }))
		}
	}
	j.place()
	j.cut()
	if b.Last {
		ends := make([]orders.State, len(b.Exits))
		for i, n := range b.Exits {
			ends[i] = b.State(n)
		}
		j.tight(ends)
	}
	return nil
}

// blockOfRules notes the order of the operations in a block without needs, in case there is none for all of them.
func (j *judge) blockOfRules(b *orders.Block) error {
	j.b = b
	j.place()
	j.cut()
	return nil
}

// restart forgets what blocks without needs said.
func (j *judge) restart() {
	j.r.Order, j.r.Cuts, j.r.start, j.r.starts = j.r.Order[:0], nil, nil, 0
	j.r.Assumptions = j.p.assumptions
	j.others, j.quiet = 0, quiet{}
}

// worse joins the verdicts of two blocks: one that every explanation violates is enough.
func worse(a, b report.Verdict) report.Verdict { return max(a, b) }

// verdict is Violated when every path through the block meets a bad node, Possible when some path does.
func (j *judge) verdict(bad func([]bool) bool) report.Verdict {
	any := false
	for n := range j.b.Nodes {
		any = any || j.b.Nodes[n].Survives && bad(j.violated(int32(n)))
	}
	switch {
	case !any:
		return report.Holds
	case j.avoidable(func(n int32) bool { return j.told(n) && bad(j.violated(n)) }):
		return report.Possible
	}
	return report.Violated
}

// told reports whether something has told of the managed rules in node n's explanations, so that their absence is known.
func (j *judge) told(n int32) bool { return j.b.State(n).Has(told) }

// avoidable reports whether some path leads from an entry to an exit without a bad node.
func (j *judge) avoidable(bad func(n int32) bool) bool {
	b := j.b
	clean := make([]bool, len(b.Nodes))
	for n := range b.Entries {
		clean[n] = b.Nodes[n].Survives && !bad(int32(n))
	}
	for n := range b.Nodes {
		if !clean[n] {
			continue
		}
		for _, e := range b.EdgesOf(int32(n)) {
			if b.Nodes[e.To].Survives && !bad(e.To) {
				clean[e.To] = true
			}
		}
	}
	return slices.ContainsFunc(b.Exits, func(n int32) bool { return clean[n] })
}

// subject finds the windows of one subject in the block: the connected parts of its bad nodes.
func (j *judge) subject(s int) {
	b := j.b
	bad := func(n int32) bool { return b.Nodes[n].Survives && j.violated(n)[s] }
	if w := j.open[s]; w >= 0 && !b.Last && j.allBad(s) {
		// The window that was open stays open in every state of the block.
		for n := range b.Nodes {
			old := &j.windows[w]
			old.CoveredByOthers = old.CoveredByOthers && s == 0 && (!b.Nodes[n].Survives || j.openToAll(int32(n)))
		}
		return
	}
	part := make([]int32, len(b.Nodes))
	for n := range part {
		part[n] = int32(n)
	}
	find := func(n int32) int32 {
		for part[n] != n {
			part[n] = part[part[n]]
			n = part[n]
		}
		return n
	}
	for _, e := range b.Edges {
		if bad(e.From) && bad(e.To) {
			x, y := find(e.From), find(e.To)
			part[max(x, y)] = min(x, y)
		}
	}
	j.joinExclusive(bad, find, part)
	found := map[int32]*Window{}
	var roots []int32
	window := func(n int32) *Window {
		root := find(n)
		if found[root] == nil {
			found[root] = &Window{subject: s, Opener: -1, Closer: -1, CoveredByOthers: s == 0,
				Start: report.Range{Earliest: traces.Forever, Latest: traces.Beginning},
				End:   report.Range{Earliest: traces.Forever, Latest: traces.Beginning}}
			roots = append(roots, root)
		}
		return found[root]
	}
	carried := map[*Window]bool{}
	for n := range int32(b.Entries) {
		if !bad(n) {
			continue
		}
		w := window(n)
		if before := j.open[s]; before >= 0 {
			old := &j.windows[before]
			w.Start, w.Opener, w.Others, w.Certain, w.CoveredByOthers = old.Start, old.Opener, old.Others, old.Certain, old.CoveredByOthers
			old.stale = true
		} else {
			w.Start = report.Range{Earliest: j.p.c.From, Latest: j.p.c.From}
		}
		carried[w] = true
	}
	j.open[s] = -1
	for n := range b.Nodes {
		if bad(int32(n)) && s == 0 {
			w := window(int32(n))
			w.CoveredByOthers = w.CoveredByOthers && j.openToAll(int32(n))
		}
	}
	for _, e := range b.Edges {
		if !b.Nodes[e.From].Survives || !b.Nodes[e.To].Survives {
			continue
		}
		from, to := bad(e.From), bad(e.To)
		earliest, latest := b.Span(e, &j.p.ops[e.Op])
		latest = min(latest, max(earliest, j.p.c.To)) // what is open for good ends nothing after the capture
		switch {
		case from && to && j.told(e.To) && !j.told(e.From):
			// The window may have been open before; from here on it is for certain.
			w := window(e.To)
			w.Start.Latest = max(w.Start.Latest, latest)
		case !from && to:
			w := window(e.To)
			if w.Start.Earliest > earliest || w.Opener < 0 && !carried[w] {
				w.addOpener(j.p.source[e.Op], !carried[w] && w.Start.Earliest > earliest)
			} else {
				w.addOpener(j.p.source[e.Op], false)
			}
			w.Start.Earliest = min(w.Start.Earliest, earliest)
			w.Start.Latest = max(w.Start.Latest, latest)
		case from && !to:
			w := window(e.From)
			if w.Closer < 0 || j.closes(e.Op, earliest, w) {
				w.Closer, w.closerMay = j.p.source[e.Op], j.p.ops[e.Op].Optional
			}
			w.Ended = true
			w.End.Earliest = min(w.End.Earliest, earliest)
			w.End.Latest = max(w.End.Latest, latest)
		}
	}
	for _, n := range b.Exits {
		if !bad(n) {
			continue
		}
		w := window(n)
		if b.Last {
			w.Open = true
			w.End.Earliest = min(w.End.Earliest, j.p.c.To)
			w.End.Latest = j.p.c.To
			continue
		}
		// All explanations pass through the cut, and there the window is open.
		w.Certain, w.Ended, w.Closer = w.Certain || j.told(n), false, -1
		w.End = report.Range{Earliest: traces.Forever, Latest: traces.Beginning}
		j.open[s] = len(j.windows) + slices.Index(roots, find(n))
	}
	for _, root := range roots {
		w := found[root]
		w.Certain = w.Certain || !j.avoidable(func(n int32) bool { return bad(n) && find(n) == root && j.told(n) })
		w.Property, w.Subject = NeverEmpty, ""
		if s > 0 {
			w.Property, w.Subject = Covered, j.p.u.ports[s-1].name.String()
		}
		j.windows = append(j.windows, *w)
	}
}

// closes reports whether an operation is to be named as the one that closed the window, rather than the one that is: one that has an
// answer, and of these the first.
func (j *judge) closes(op int32, earliest traces.Instant, w *Window) bool {
	if may := j.p.ops[op].Optional; may != w.closerMay {
		return !may
	}
	return earliest < w.End.Earliest
}

// maxParts bounds the parts of one block whose co-occurrence is looked at; with more, each stands for itself.
const maxParts = 512

// joinExclusive joins parts of the same time that no path has both of: they are the same window, reached by other orders.
func (j *judge) joinExclusive(bad func(int32) bool, find func(int32) int32, part []int32) {
	b := j.b
	var roots []int32
	index := map[int32]int{}
	for n := range int32(len(b.Nodes)) {
		if bad(n) && find(n) == n {
			index[n] = len(roots)
			roots = append(roots, n)
		}
	}
	if len(roots) < 2 || len(roots) > maxParts {
		return
	}
	// reach[n] are the parts that a path from node n passes through; meets[i] those that share a path with part i.
	words := (len(roots) + 63) / 64
	reach := make([]orders.State, len(b.Nodes))
	meets := make([]orders.State, len(roots))
	spans := make([]report.Range, len(roots))
	for i := range meets {
		meets[i] = make(orders.State, words)
		spans[i] = report.Range{Earliest: traces.Forever, Latest: traces.Beginning}
	}
	for n := int32(len(b.Nodes)) - 1; n >= 0; n-- {
		if !b.Nodes[n].Survives {
			continue
		}
		set := make(orders.State, words)
		for _, e := range b.EdgesOf(n) {
			for w, bits := range reach[e.To] {
				set[w] |= bits
			}
		}
		if bad(n) {
			i := index[find(n)]
			spans[i].Earliest = min(spans[i].Earliest, b.Nodes[n].First)
			spans[i].Latest = max(spans[i].Latest, min(b.Nodes[n].Last, j.p.c.To))
			for k := range roots {
				if k != i && set.Has(int32(k)) {
					meets[i].Set(int32(k))
					meets[k].Set(int32(i))
				}
			}
			set.Set(int32(i))
		}
		reach[n] = set
	}
	groups := [][]int{}
	for i, root := range roots {
		at := slices.IndexFunc(groups, func(g []int) bool {
			return !slices.ContainsFunc(g, func(k int) bool {
				return meets[i].Has(int32(k)) || spans[i].Latest < spans[k].Earliest || spans[k].Latest < spans[i].Earliest
			})
		})
		if at < 0 {
			groups = append(groups, []int{i})
			continue
		}
		groups[at] = append(groups[at], i)
		first := roots[groups[at][0]]
		part[root] = find(first)
	}
}

func (j *judge) allBad(s int) bool {
	for n := range j.b.Nodes {
		if j.b.Nodes[n].Survives && !j.violated(int32(n))[s] {
			return false
		}
	}
	return true
}

// addOpener notes an operation that opened the window in some explanation; main makes it the one that is named.
func (w *Window) addOpener(op int, main bool) {
	if main || w.Opener < 0 {
		op, w.Opener = w.Opener, op
	}
	if op >= 0 && op != w.Opener && !slices.Contains(w.Others, op) {
		w.Others = append(slices.Clip(w.Others), op)
	}
}

// openToAll reports whether rules of somebody else open every port that is needed in node n.
func (j *judge) openToAll(n int32) bool {
	s := j.b.State(n)
	some := false
	for i := range j.p.u.ports {
		if p := &j.p.u.ports[i]; s.Meets(p.needed) {
			if !s.Meets(p.open) {
				return false
			}
			some = true
		}
	}
	return some
}

// place follows one path through the block and notes the order of the operations on it.
func (j *judge) place() {
	b := j.b
	n := int32(slices.IndexFunc(b.Nodes[:b.Entries], func(n orders.Node) bool { return n.Survives }))
	if n < 0 {
		return
	}
	if j.r.start == nil {
		j.r.start = slices.Clone(b.State(n))
		var starts []orders.State
		for n, entry := range b.Nodes[:b.Entries] {
			if entry.Survives {
				starts = append(starts, b.State(int32(n)))
			}
		}
		j.r.starts = len(starts)
		if j.p.c.Snapshot == nil {
			j.r.Assumptions = append(j.r.Assumptions, j.r.beginning(starts)...)
		}
	}
	branching := len(b.Edges) > 1
	if branching && j.others < maxAllOthers {
		j.indexEdges()
	}
	for {
		next := orders.Edge{From: -1}
		for _, e := range b.EdgesOf(n) {
			if b.Nodes[e.To].Survives && (next.From < 0 || e.Op < next.Op) {
				next = e
			}
		}
		if next.From < 0 {
			return
		}
		earliest, latest := b.Span(next, &j.p.ops[next.Op])
		placed := Placed{Op: j.p.source[next.Op], Earliest: earliest, Latest: latest, internal: next.Op}
		if branching && j.others < maxAllOthers {
			placed.Others = j.alternatives(next)
		}
		j.r.Order = append(j.r.Order, placed)
		n = next.To
	}
}

// indexEdges sorts the edges of the block by operation.
func (j *judge) indexEdges() {
	edges := j.b.Edges
	first, last := edges[0].Op, edges[0].Op
	for _, e := range edges {
		first, last = min(first, e.Op), max(last, e.Op)
	}
	j.firstOp = first
	j.opStart = append(j.opStart[:0], make([]int32, last-first+2)...)
	for _, e := range edges {
		j.opStart[e.Op-first+1]++
	}
	for k := 1; k < len(j.opStart); k++ {
		j.opStart[k] += j.opStart[k-1]
	}
	j.byOp = append(j.byOp[:0], make([]int32, len(edges))...)
	next := slices.Clone(j.opStart)
	for i, e := range edges {
		at := &next[e.Op-first]
		j.byOp[*at] = int32(i)
		*at++
	}
}

// alternatives are the rules that other explanations have after the operation.
func (j *judge) alternatives(taken orders.Edge) []orders.State {
	var others []orders.State
	same := func(a, b orders.State) bool {
		for i, mask := range j.p.u.present {
			if (a[i]^b[i])&mask != 0 {
				return false
			}
		}
		return true
	}
	chosen := j.b.State(taken.To)
	first := taken.Op - j.firstOp
	for _, i := range j.byOp[j.opStart[first]:j.opStart[first+1]] {
		e := j.b.Edges[i]
		if !j.b.Nodes[e.To].Survives || !j.b.Nodes[e.From].Survives || len(others) == maxOthers {
			continue
		}
		s := j.b.State(e.To)
		if !same(s, chosen) && !slices.ContainsFunc(others, func(o orders.State) bool { return same(o, s) }) {
			others = append(others, slices.Clone(s))
			j.others++
		}
	}
	return others
}

// tight looks at the rules that are left at the end of every explanation, and whether a revoke had to follow by then.
func (j *judge) tight(ends []orders.State) {
	overdue := map[traces.Rule]bool{}
	everywhere := true
	for _, s := range ends {
		late := false
		for _, p := range j.leftovers(s) {
			is, known := overdue[p.Rule]
			if !known {
				is = j.p.c.To.Sub(j.lastChange(p.Rule)) >= j.p.opt.Settle
				overdue[p.Rule] = is
				j.r.Leftovers = append(j.r.Leftovers, p)
				j.r.Overdue = j.r.Overdue || is
			}
			late = late || is
		}
		everywhere = everywhere && late
	}
	slices.SortFunc(j.r.Leftovers, func(a, b traces.Permission) int { return a.Rule.Compare(b.Rule) })
	switch {
	case len(j.r.Leftovers) == 0:
	case everywhere:
		j.r.Tight = report.Violated
	default:
		j.r.Tight = report.Possible
	}
}

// lastChange is when something last happened that can have made a rule superfluous: a change of managed rules of its
// protocol and source, or the end of a need of a port that it opens.
func (j *judge) lastChange(r traces.Rule) traces.Instant {
	u := j.p.u
	alike := func(f int32) bool {
		o := u.facts[f].rule
		return u.facts[f].managed && u.isManagedSomewhere(o) && o.Protocol == r.Protocol && o.Source == r.Source
	}
	last := traces.Beginning
	for i := range j.p.ops {
		e := j.p.effects[i]
		concerns := e.kind == empty
		switch e.kind {
		case none:
		case turn:
			concerns = len(e.on) == 0 && slices.ContainsFunc(e.off, func(f int32) bool {
				n := u.facts[f].port
				return n < 0 || u.ports[n].managed.Has(u.rules[r].managed)
			})
		case grant:
			concerns = slices.ContainsFunc(e.set, alike)
		default:
			concerns = slices.ContainsFunc(e.set, alike) || slices.ContainsFunc(e.items, func(it item) bool { return alike(it.managed) })
		}
		if concerns && e.result == changed {
			last = max(last, min(j.p.ops[i].Return, j.p.c.To))
		}
	}
	return last
}

// leftovers are the managed rules of a state that nobody wants: those inside another managed rule of the same protocol and
// source, since the controller aggregates to one rule; and those none of whose ports is needed, where targets or
// bindings tell that.
func (j *judge) leftovers(s orders.State) []traces.Permission {
	u := j.p.u
	rules := u.describe(s, true)
	return slices.DeleteFunc(rules, func(p traces.Permission) bool {
		for _, o := range rules {
			if o.Rule != p.Rule && o.Contains(p.Rule) {
				return false
			}
		}
		told, needed := j.p.c.HasBindings, false
		f := u.rules[p.Rule].managed
		for i := range u.ports {
			if u.ports[i].managed.Has(f) {
				told = told || u.ports[i].proven
				needed = needed || s.Meets(u.ports[i].needed)
			}
		}
		return needed || !told
	})
}

// Replay calls visit with each operation of the order and the states before and after it.
func (r *Result) Replay(visit func(k int, before, after orders.State)) {
	if r.start == nil {
		return
	}
	p := r.problem
	before, after := slices.Clone(r.start), make(orders.State, p.u.words)
	for k := range r.Order {
		p.effects[r.Order[k].internal].apply(p.u, p.opt.Lenient, before, after)
		visit(k, before, after)
		before, after = after, before
	}
}

// Start is the state at the beginning of the order, nil without one.
func (r *Result) Start() orders.State { return r.start }

// Rules are the rules of a state, in a fixed order; managed ones have the description "managed".
func (r *Result) Rules(s orders.State, managedOnly bool) []traces.Permission {
	return r.problem.u.describe(s, managedOnly)
}

// Changed lists the rules that are in after and not in before, and the other way round.
func (r *Result) Changed(before, after orders.State) (come, gone []traces.Permission) {
	for w, mask := range r.problem.u.present {
		if diff := (before[w] ^ after[w]) & mask; diff == 0 {
			continue
		}
		for i := w * 64; i < min(len(r.problem.u.facts), w*64+64); i++ {
			f := int32(i)
			if r.problem.u.present.Has(f) && before.Has(f) != after.Has(f) {
				p := traces.Permission{Rule: r.problem.u.facts[f].rule}
				if r.problem.u.facts[f].managed {
					p.Description = "managed"
				}
				if after.Has(f) {
					come = append(come, p)
				} else {
					gone = append(gone, p)
				}
			}
		}
	}
	return come, gone
}

// HasManaged reports whether some managed rule is in the state.
func (r *Result) HasManaged(s orders.State) bool { return s.Meets(r.problem.u.managed) }

// Reason is why a port is needed.
type Reason struct {
	// Port is the port as people name it, "some port" where nobody knows it; Why says who needs it.
	Port, Why string
}

// Reasons are the reasons of a state, in a fixed order.
func (r *Result) Reasons(s orders.State) []Reason {
	var list []Reason
	u := r.problem.u
	for i, f := range u.facts {
		if f.need == "" || !s.Has(int32(i)) {
			continue
		}
		port := "some port"
		if f.port >= 0 {
			port = u.ports[f.port].name.String()
		}
		list = append(list, Reason{port, f.need})
	}
	return list
}

// NeedsDiffer reports whether the states differ in what is needed.
func (r *Result) NeedsDiffer(a, b orders.State) bool {
	for i, mask := range r.problem.u.needs {
		if (a[i]^b[i])&mask != 0 {
			return true
		}
	}
	return false
}
