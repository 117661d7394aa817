package property

import (
	"fmt"
	"slices"
	"strings"

	"linearize.example/checker/orders"
	"linearize.example/traces"
)

// resolveOptional bounds the operations of unknown outcome, so that few of them are open at once.
//
// First their neighbours on the same rules tell of some of them whether they took effect before (tighten). Then, once
// nothing that is left refers to the rules of such a call, no result can tell any more whether it took effect; and only
// one way to take it matters for each of the two questions. Can a property be violated? It can, if at all, when grants
// never take effect and revokes at once. Can it hold? It can, if at all, when grants take effect at once and revokes
// never. The first is asked with worst, the second without.
func (p *problem) resolveOptional() {
	if !slices.ContainsFunc(p.ops, func(o orders.Operation) bool { return o.Optional }) {
		return
	}
	p.optional = true
	p.never = p.spare()
	p.settle(p.tighten())
	p.few = p.few && p.rulesOfUnknown() <= fewRules
	over, at := p.lastReferences(), map[traces.Instant]int32{}
	for i := range len(p.ops) {
		if p.ops[i].Optional && p.resolvable(i) {
			p.resolve(i, over(i), at)
		}
	}
}

// fewRules is the number of rules up to which calls of unknown outcome may stay open for good, one state or two for each.
const fewRules = 6

// rulesOfUnknown counts the rules that calls of unknown outcome name.
func (p *problem) rulesOfUnknown() int {
	rules := map[int32]bool{}
	for i := range p.ops {
		if p.ops[i].Optional {
			p.references(i, func(f int32) { rules[f] = true })
		}
	}
	return len(rules)
}

// resolvable reports whether it is known what is the worst and the best that the call can do.
func (p *problem) resolvable(i int) bool {
	e := p.effects[i]
	switch {
	case p.ops[i].Return != traces.Forever:
		return false
	case e.kind == turn:
		return len(e.on) == 0 || len(e.off) == 0 || p.samePort(e.on, e.off)
	}
	return e.kind == grant || e.kind == revoke && len(e.absent) == 0
}

// samePort reports whether the reasons are all for one port, so that the port is needed afterwards whatever went before.
func (p *problem) samePort(on, off []int32) bool {
	for _, f := range append(slices.Clip(on), off...) {
		if n := p.u.facts[f].port; n < 0 || n != p.u.facts[on[0]].port {
			return false
		}
	}
	return true
}

// resolve decides what the call does once nothing refers to it any more, from over on. Calls that are decided for the same
// instant come in a fixed order, which changes nothing: at is by instant the one before.
func (p *problem) resolve(i int, over traces.Instant, at map[traces.Instant]int32) {
	if over == traces.Forever {
		return
	}
	o, e := &p.ops[i], p.effects[i]
	chain := func(instant traces.Instant, after []int32) []int32 {
		after = slices.Clone(after)
		if before, known := at[instant]; known {
			after = append(after, before)
		}
		return after
	}
	helps := e.kind == grant || e.kind == turn && len(e.on) == 0
	happens := helps != p.worst
	switch {
	case over < o.Call && happens:
		o.Return, o.Optional = o.Call, false
		e.unless = p.never
		o.After = chain(o.Call, o.After)
		at[o.Call] = int32(i)
	case over < o.Call:
		p.discard(i)
	case happens && p.few:
		// It is left as it is: a stand-in makes states differ that are the same otherwise.
	case happens:
		// It takes effect until then, or at the latest then, but not twice.
		o.Return = over
		once := p.spare()
		e.once, e.unless = once, once
		at[over] = int32(p.push(orders.Operation{Call: over, Return: over, After: chain(over, o.After)}, *e, -1))
	default:
		o.Return = over
	}
}

// lastReferences returns a function that gives, for an optional operation, the instant at which the last operation that
// its effect can matter to is over: Forever where that is another one of unknown outcome with other rules.
func (p *problem) lastReferences() func(i int) traces.Instant {
	last := make([]traces.Instant, len(p.u.facts)) // by fact; of a rule's two facts the managed one stands for both
	for f := range last {
		last[f] = traces.Beginning
	}
	narrowed := slices.Clone(last)
	sets, mixed := map[int32]string{}, p.mixed()
	for i := range p.ops {
		if !p.ops[i].Optional || !p.resolvable(i) {
			p.references(i, func(f int32) { last[f] = max(last[f], p.ops[i].Return) })
			continue
		}
		// Calls without an answer on the same rules only exclude or undo each other; with other rules they matter more.
		set := p.rulesKey(i, mixed)
		p.references(i, func(f int32) {
			if other, known := sets[f]; known && other != set {
				last[f] = traces.Forever
			}
			sets[f] = set
		})
	}
	// A need ends when no rule opens its port any more. A grant that is there then keeps the port open, so that it does
	// no harm that the need stays; but a revoke does more harm behind that instant than before it.
	for n, at := range p.needsEnd() {
		for f := range last {
			if p.u.ports[n].managed.Has(int32(f)) {
				narrowed[f] = max(narrowed[f], at)
			}
			if p.u.ports[n].needed.Has(int32(f)) {
				last[f] = max(last[f], at)
			}
		}
	}
	return func(i int) traces.Instant {
		over := traces.Beginning
		for _, a := range p.ops[i].After {
			over = max(over, p.ops[a].Return)
		}
		p.references(i, func(f int32) {
			over = max(over, last[f])
			if p.effects[i].kind == revoke {
				over = max(over, narrowed[f])
			}
		})
		return over
	}
}

// needsEnd gives, by port, when the last operation that may end its need is over.
func (p *problem) needsEnd() map[int]traces.Instant {
	ends := map[int]traces.Instant{}
	for i := range p.effects {
		e := p.effects[i]
		for _, list := range [][]int{e.narrows, e.drops} {
			for _, n := range list {
				ends[n] = max(ends[n], p.ops[i].Return)
			}
		}
	}
	return ends
}

// references visits the facts that the operation depends on or changes.
func (p *problem) references(i int, visit func(f int32)) {
	e := p.effects[i]
	for _, list := range [][]item{e.items, e.absent, e.partnerGone} {
		for _, it := range list {
			visit(it.managed)
		}
	}
	for _, list := range [][]int32{e.set, e.partnerThere} {
		for _, f := range list {
			visit(p.u.rules[p.u.facts[f].rule].managed)
		}
	}
	if e.kind == turn {
		for _, list := range [][]int32{e.on, e.off} {
			for _, f := range list {
				visit(f)
			}
		}
	}
	if e.kind == empty {
		for _, it := range p.u.rules {
			visit(it.managed)
		}
	}
}

// rulesKey names the rules of an optional operation, or its reasons. Of a rule that may be there with another description
// it also matters what the operation does: it may take one to revoke it, and another one to grant it as managed.
func (p *problem) rulesKey(i int, mixed map[int32]bool) string {
	var facts []int32
	p.references(i, func(f int32) { facts = append(facts, f) })
	slices.Sort(facts)
	facts = slices.Compact(facts)
	var b strings.Builder
	fmt.Fprint(&b, facts)
	if slices.ContainsFunc(facts, func(f int32) bool { return mixed[f] }) {
		fmt.Fprint(&b, p.effects[i].kind, p.effects[i].set)
	}
	return b.String()
}

// mixed are the rules, by their managed facts, that may be there with a description that is not the controller's.
func (p *problem) mixed() map[int32]bool {
	mixed := map[int32]bool{}
	for _, it := range p.u.rules {
		mixed[it.managed] = slices.ContainsFunc(p.initial, func(s orders.State) bool { return s.Has(it.foreign) })
	}
	for i := range p.effects {
		for _, f := range p.effects[i].set {
			if !p.u.facts[f].managed {
				mixed[p.u.rules[p.u.facts[f].rule].managed] = true
			}
		}
	}
	return mixed
}
