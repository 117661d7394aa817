package explain

import (
	"linearize.example/checker/conform"
	"linearize.example/checker/conform/engine"
	"linearize.example/model"
	"linearize.example/traces"
)

// trigger is a reconcile that may begin: of a binding that will want its port or nothing.
type trigger struct {
	tgb   int
	wants engine.Atom
}

// reconciles begins every reconcile that is worth trying. Pods come and go just before: nothing but the beginning of a
// reconcile, and the registration of recorded targets, looks at them, so that they may as well have done so earlier.
func (x *search) reconciles(n *node, count, p, w int) {
	for _, t := range x.triggers(n, p) {
		x.begin(n, count, p, w, t, false)
		x.d.Load(n.state)
	}
	for t := 1; t <= x.world.tgbs; t++ {
		if _, registered, _ := x.d.PodOf(t); registered != 0 && x.watch.Has(t) && !x.inFlight(p, t) && x.recorded(n, t, true, true) {
			x.begin(n, count, p, w, trigger{t, conform.Port}, true)
			x.d.Load(n.state)
		}
	}
}

// near is how many operations a reconcile and what overlaps with it may take before targets are registered.
const near = 24

// recorded says whether the capture still shows a registration, or the opposite, of the binding's targets, near enough to be
// the end of a reconcile that begins now; at the end of the capture it may be missing.
func (x *search) recorded(n *node, tgb int, come, gone bool) bool {
	first := int(n.done.base)
	for i := first; i < min(first+near, len(x.ops)); i++ {
		op := &x.ops[i]
		if (come && op.kind == register || gone && op.kind == deregister) && op.port == x.ports[tgb] && !n.done.has(i) {
			return true
		}
	}
	return first+near >= len(x.ops) && n.left <= near/3
}

func (x *search) inFlight(p, t int) bool {
	for w := 1; w <= x.world.env.workers; w++ {
		if me := x.d.WorkerOf(p, w); me.Step != conform.AtIdle && me.Tgb == t {
			return true
		}
	}
	return false
}

// triggers lists the reconciles worth trying in the loaded state. Of reconciles that change nothing that is wanted one is
// enough, for they differ in nothing that is seen.
func (x *search) triggers(n *node, p int) []trigger {
	m := x.d.MemoryOf(p)
	var out []trigger
	again := false
	add := func(t int, v engine.Atom) {
		changes := m.Computed[t-1] != v
		if x.watch.Has(t) {
			_, registered, _ := x.d.PodOf(t)
			if registers := (registered != 0) != (v == conform.Port); registers && !x.recorded(n, t, v == conform.Port, v == conform.None) {
				return
			} else if registers {
				changes = true
			}
		}
		if changes {
			out = append(out, trigger{t, v})
		} else if !again {
			again = true
			out = append(out, trigger{t, v})
		}
	}
	lo, hi := x.hull(m.Computed[:])
	moved := false
	for t := 1; t <= x.world.tgbs; t++ {
		if x.inFlight(p, t) {
			continue
		}
		switch inside := lo < t && t < hi; {
		case x.full || x.watch.Has(t):
			add(t, conform.Port)
			add(t, conform.None)
		case inside || m.Computed[t-1] == conform.Unknown:
			// What a binding inside of the rule wants matters only once the rule's ends move. It is brought about when the
			// capture's next rules call for it, one binding after the other.
			// What bindings without a pod are known to want after a start matters in no other way.
			turn := false
			for _, v := range x.lookahead(t, int(n.done.base)) {
				if m.Computed[t-1] != v && !moved {
					add(t, v)
					turn = turn || inside || v == conform.None
				}
			}
			moved = moved || turn
			if !inside {
				add(t, conform.Port)
			}
		case t == lo || t == hi:
			add(t, conform.Port)
			add(t, conform.None)
		default:
			add(t, conform.Port)
			if !again && lo == 0 {
				add(t, conform.None)
			}
		}
	}
	return out
}

// hull returns the ends of the rule that is wanted, 0 and 0 when none is.
func (x *search) hull(computed []engine.Atom) (lo, hi int) {
	for t := 1; t <= x.world.tgbs; t++ {
		if computed[t-1] == conform.Port {
			if lo == 0 {
				lo = t
			}
			hi = t
		}
	}
	return lo, hi
}

// lookahead says what the next rules of the capture want of a binding: its port where it is an end of the first rule in which
// it is not inside, nothing where that rule leaves it out. Of operations that overlap any may be the first.
func (x *search) lookahead(t, base int) []engine.Atom {
	if x.hint == nil {
		x.hint = make([][]int32, x.world.tgbs+1)
		for t := 1; t <= x.world.tgbs; t++ {
			next := int32(len(x.ops))
			x.hint[t] = make([]int32, len(x.ops)+1)
			x.hint[t][len(x.ops)] = next
			for i := len(x.ops) - 1; i >= 0; i-- {
				if op := &x.ops[i]; op.kind == authorize && op.outcome != traces.Failed && len(op.rules) == 1 {
					if lo, hi := x.binding(op.rules[0].lo), x.binding(op.rules[0].hi); t <= lo || t >= hi {
						next = int32(i)
					}
				}
				x.hint[t][i] = next
			}
		}
	}
	var out []engine.Atom
	until := traces.Forever
	for i := int(x.hint[t][base]); i < len(x.ops) && x.ops[i].call <= until; i = int(x.hint[t][i+1]) {
		until = min(until, x.ops[i].ret)
		v := engine.Atom(conform.None)
		if lo, hi := x.binding(x.ops[i].rules[0].lo), x.binding(x.ops[i].rules[0].hi); t == lo || t == hi {
			v = conform.Port
		}
		if len(out) == 0 || out[0] != v {
			out = append(out, v)
		}
		if len(out) == 2 {
			break
		}
	}
	if len(out) == 0 {
		out = append(out, conform.None)
	}
	return out
}

// begin brings about what makes the controller look at a binding, and has a worker take it up. With replace, its pod is
// replaced by another.
func (x *search) begin(n *node, count, p, w int, t trigger, replace bool) {
	d := x.d
	d.Load(n.state)
	pod, _, _ := d.PodOf(t.tgb)
	if replace && pod == 0 {
		return
	}
	args := conform.Args{Process: p, Worker: w, TGB: t.tgb}
	at, cur := n, n.state
	var chain []*node
	take := func(a model.Action) bool {
		d.Load(cur)
		outs := d.Take(a, args)
		if len(outs) == 0 {
			return false
		}
		cur = x.clone(outs[:d.Model.Words])
		cost := at.cost + 1
		if a == model.Skip || a == model.FireDeferred {
			cost = at.cost // time passes: likelier than that a pod comes or goes
		}
		c := &node{state: cur, done: at.done, lives: at.lives, left: at.left, cost: cost, parent: at,
			label: label{action: a, args: args, ops: [2]int32{-1, -1}}}
		chain = append(chain, c)
		at = c
		return true
	}
	faults := d.Faults()
	if t.wants == conform.Port {
		if replace {
			take(model.PodGoes)
			pod = 0
		}
		if pod == 0 {
			take(model.PodComes)
		}
	} else if pod != 0 {
		take(model.PodGoes)
	}
	if !take(model.Pick) && !(take(model.Skip) && take(model.FireDeferred) && take(model.Pick)) {
		return
	}
	last := chain[len(chain)-1]
	last.label.wants = t.wants
	d.Canonical(last.state, x.watch, faults)
	x.insert(count, last)
}
