package property

import (
	"cmp"
	"slices"
	"sort"

	"linearize.example/checker/orders"
	"linearize.example/traces"
)

// touch is what one operation says of one rule, and does to it.
type touch struct {
	op            int
	before, after presence // for certain; unsaid where it does not tell
	adds, removes bool     // it may
}

// trail are the touches of one rule.
type trail struct {
	rule item
	// definite are those of operations with an answer, by Call, and latest is for each the latest Return up to it. moving are those
	// of operations of unknown outcome, whose intervals change.
	definite []touch
	latest   []traces.Instant
	moving   []touch
}

// maxRounds bounds how often conclusions are drawn from conclusions; to stop early loses none of the orders.
const maxRounds = 64

// tighten draws the conclusions that the neighbours of an operation of unknown outcome allow, rule by rule. Three of
// them, in which x is a rule, P such an operation that adds x (or removes it: the same with present and absent
// exchanged), and D one that took effect for certain:
//
//   - D found x absent. If P came before D, something that removes x lies between the two. Where nothing can, P comes
//     after D.
//   - P comes after D0, which left x present, and D is the next on x. If P came before D, something that removes x lies
//     between D0 and P. Where nothing can, P comes after D.
//   - D found x present, which was absent at the beginning, or after an operation E that precedes D. Something that adds x
//     lies between. Where only P can, P took effect, and between E and D. Where several can that differ in Call alone, the
//     first that was called can stand for whichever it was: it took effect before D.
//
// Each conclusion narrows intervals, which may allow the next one.
func (p *problem) tighten() []*trail {
	p.toldBy = map[int]int{}
	for i := range p.ops {
		// Nobody waits for an operation that may yet take effect.
		p.ops[i].After = slices.DeleteFunc(p.ops[i].After, func(a int32) bool { return p.ops[a].Optional })
	}
	trails := p.trails()
	for again, rounds := true, 0; again && rounds < maxRounds; rounds++ {
		again = false
		for _, t := range trails {
			for _, m := range t.moving {
				again = p.postpone(t, m) || again
			}
			again = p.confirm(t) || again
		}
	}
	for i := range p.ops {
		if p.ops[i].Optional && p.effects[i].kind == grant {
			p.effects[i].on = nil // a rule that nothing proves to have existed proves no need
		}
	}
	return trails
}

// trails collects the touches of the rules of operations of unknown outcome.
func (p *problem) trails() []*trail {
	byRule := map[int32]*trail{}
	var trails []*trail
	for i := range p.ops {
		if e := p.effects[i]; p.ops[i].Optional && (e.kind == grant || e.kind == revoke) {
			for _, it := range e.items {
				if byRule[it.managed] == nil {
					byRule[it.managed] = &trail{rule: it}
					trails = append(trails, byRule[it.managed])
				}
			}
		}
	}
	touched := map[*trail]bool{}
	for i := range p.ops {
		clear(touched)
		add := func(rule int32, t touch) {
			l := byRule[rule]
			if l == nil {
				return
			}
			touched[l] = true
			t.op = i
			if p.ops[i].Optional {
				l.moving = append(l.moving, t)
			} else {
				l.definite = append(l.definite, t)
			}
		}
		p.touches(i, add, trails)
		p.references(i, func(f int32) {
			if l := byRule[f]; l != nil && !touched[l] {
				add(f, touch{})
			}
		})
	}
	for _, t := range trails {
		slices.SortStableFunc(t.definite, func(a, b touch) int { return cmp.Compare(p.ops[a.op].Call, p.ops[b.op].Call) })
		latest := traces.Beginning
		for _, d := range t.definite {
			latest = max(latest, p.ops[d.op].Return)
			t.latest = append(t.latest, latest)
		}
	}
	return trails
}

// touches visits the rules that the operation says something of, by their managed facts.
func (p *problem) touches(i int, visit func(rule int32, t touch), trails []*trail) {
	e := p.effects[i]
	definite := !p.ops[i].Optional
	say := func(it item, t touch) {
		if !definite {
			t.before, t.after = unsaid, unsaid
		}
		visit(it.managed, t)
	}
	switch {
	case e.kind == none || e.kind == turn || e.result == refused:
	case e.kind == empty:
		for _, t := range trails {
			say(t.rule, touch{after: absent, removes: true})
		}
	case e.result == duplicate && len(e.items) == 1:
		say(e.items[0], touch{before: present, after: present})
	case e.result == notFound && len(e.items) == 1:
		say(e.items[0], touch{before: absent, after: absent})
	case e.result != changed:
	case e.kind == grant:
		for _, it := range e.items {
			say(it, touch{before: absent, after: present, adds: true})
		}
	case e.kind == revoke:
		for _, it := range e.absent {
			say(it, touch{before: absent, after: absent})
		}
		before := present
		if p.opt.Lenient {
			before = unsaid
		}
		for _, it := range e.items {
			say(it, touch{before: before, after: absent, removes: true})
		}
	case e.kind == redescribe:
		for _, it := range e.items {
			say(it, touch{before: present, after: present})
		}
	case e.kind == replace:
		for _, it := range e.items {
			say(it, touch{removes: true})
		}
		for _, f := range e.set {
			say(p.u.rules[p.u.facts[f].rule], touch{adds: true})
		}
	}
}

// between visits the touches other than those of the operations `but` that can take effect between from and to, both
// included, until visit returns false.
func (t *trail) between(p *problem, from, to traces.Instant, but [2]int, visit func(touch) bool) {
	end := sort.Search(len(t.definite), func(n int) bool { return p.ops[t.definite[n].op].Call > to })
	for n := end - 1; n >= 0 && t.latest[n] >= from; n-- {
		o := t.definite[n]
		if p.ops[o.op].Return >= from && o.op != but[0] && o.op != but[1] && !visit(o) {
			return
		}
	}
	for _, o := range t.moving {
		if p.effects[o.op].kind != none && p.ops[o.op].Call <= to && p.ops[o.op].Return >= from && o.op != but[0] && o.op != but[1] && !visit(o) {
			return
		}
	}
}

// makes reports whether the touch may make the rule present, or absent.
func (t touch) makes(v presence) bool {
	if v == present {
		return t.adds
	}
	return t.removes
}

// postpone moves a pending operation behind those that it cannot precede.
func (p *problem) postpone(t *trail, pending touch) (changed bool) {
	i := pending.op
	o := &p.ops[i]
	if !o.Optional || pending.adds == pending.removes || p.effects[i].kind == none {
		return false
	}
	gives, finds := present, absent
	if pending.removes {
		gives, finds = absent, present
	}
	leaves := finds
	if pending.removes && p.opt.Lenient {
		finds = unsaid // it takes effect whatever it finds
	}
	possible := func(from, to traces.Instant, but int) bool {
		found := false
		t.between(p, from, to, [2]int{i, but}, func(u touch) bool {
			found = u.makes(leaves)
			return !found
		})
		return found
	}
	blocked := -1 // what precedes P and left the rule as P would
	for _, d := range t.definite {
		od := &p.ops[d.op]
		if d.before == unsaid && d.after == unsaid {
			continue
		}
		if !p.precedes(d.op, i) {
			first := d.before == leaves && !possible(o.Call, od.Return, d.op)
			second := blocked >= 0 && !possible(p.ops[blocked].Call, od.Return, d.op)
			if !first && !second {
				return changed
			}
			o.Call = max(o.Call, od.Call)
			o.After = slices.DeleteFunc(append(slices.Clone(o.After), int32(d.op)), func(a int32) bool { return p.ops[a].Return < o.Call })
			changed = true
			if o.Call > o.Return {
				p.discard(i)
				return true
			}
		}
		switch {
		case finds != unsaid && d.after == gives:
			blocked = d.op
		case d.after == leaves:
			blocked = -1
		}
	}
	if blocked >= 0 && !possible(p.ops[blocked].Call, o.Return, -1) {
		p.discard(i)
		return true
	}
	return changed
}

// discard makes of a pending operation one that does nothing.
func (p *problem) discard(i int) {
	p.ops[i].Return = p.ops[i].Call
	p.effects[i] = &effect{once: -1, unless: -1}
}

// settle pins operations that took effect for certain, at an instant that only one other operation tells of: where nothing
// else concerns their rules meanwhile, a grant does most harm when it comes as late as it can, and least at once; a revoke
// the other way round.
func (p *problem) settle(trails []*trail) {
	ends := p.needsEnd()
	for i, d := range p.toldBy {
		o, e := &p.ops[i], p.effects[i]
		if e.kind != grant && e.kind != revoke || o.Optional {
			continue
		}
		alone := true
		for _, it := range e.items {
			for _, t := range trails {
				if t.rule != it {
					continue
				}
				t.between(p, o.Call, o.Return, [2]int{i, d}, func(u touch) bool {
					alone = alone && p.precedes(u.op, i)
					return alone
				})
			}
			for n, at := range ends {
				alone = alone && (e.kind == grant || at < o.Call || !p.u.ports[n].managed.Has(it.managed))
			}
		}
		switch {
		case !alone:
		case (e.kind == grant) == p.worst:
			o.Call = max(o.Call, min(p.ops[d].Call, o.Return))
		default:
			at := o.Call
			for _, a := range o.After {
				at = max(at, p.ops[a].Return)
			}
			o.Return = min(o.Return, at)
		}
	}
}

// precedes reports whether a takes effect before b for certain, as far as one look tells.
func (p *problem) precedes(a, b int) bool {
	return p.ops[a].Return < p.ops[b].Call || slices.Contains(p.ops[b].After, int32(a))
}

// confirm makes the pending operations definite that alone can have made the rule what another one found.
func (p *problem) confirm(t *trail) (changed bool) {
	for n, d := range t.definite {
		od := &p.ops[d.op]
		if d.before == unsaid {
			continue
		}
		other := absent
		if d.before == absent {
			other = present
		}
		// The last operation before D that left the rule otherwise.
		e := -1
		for k := n - 1; k >= 0; k-- {
			if before := t.definite[k]; before.after == other && p.precedes(before.op, d.op) {
				e = before.op
				break
			}
			if n-k > 64 {
				break
			}
		}
		from := traces.Beginning
		if e >= 0 {
			from = p.ops[e].Call
		} else if slices.ContainsFunc(p.initial, func(s orders.State) bool { return t.rule.in(s) == (other == absent) }) {
			continue
		}
		first, count, only := -1, 0, true
		t.between(p, from, od.Return, [2]int{d.op, e}, func(u touch) bool {
			if !u.makes(d.before) || e >= 0 && p.precedes(u.op, e) || p.precedes(d.op, u.op) {
				return true
			}
			count++
			only = p.ops[u.op].Optional && u.adds != u.removes && (first < 0 || p.sameCall(first, u.op))
			if first < 0 || p.ops[u.op].Call < p.ops[first].Call {
				first = u.op
			}
			return only
		})
		if first < 0 || !only {
			continue
		}
		o := &p.ops[first]
		o.Optional, o.Return = false, min(o.Return, od.Return)
		p.toldBy[first] = d.op
		if !slices.Contains(od.After, int32(first)) {
			od.After = append(slices.Clip(od.After), int32(first))
		}
		if count == 1 && e >= 0 {
			o.Call = max(o.Call, p.ops[e].Call)
			if !slices.Contains(o.After, int32(e)) {
				o.After = append(slices.Clip(o.After), int32(e))
			}
		}
		changed = true
	}
	return changed
}

// sameCall reports whether two pending operations differ in nothing but their Call.
func (p *problem) sameCall(i, j int) bool {
	a, b := p.effects[i], p.effects[j]
	return p.ops[i].Return == p.ops[j].Return && slices.Equal(p.ops[i].After, p.ops[j].After) &&
		a.kind == b.kind && slices.Equal(a.items, b.items) && slices.Equal(a.set, b.set)
}
