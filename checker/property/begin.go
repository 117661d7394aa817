package property

import (
	"fmt"
	"slices"
	"strings"

	"linearize.example/checker/orders"
	"linearize.example/traces"
)

// maxUnknown bounds the rules whose presence at the beginning is tried both ways.
const maxUnknown = 8

// presence is what the capture says of a rule at its beginning.
type presence uint8

const (
	unsaid presence = iota
	absent
	present
	either
)

// begin works out the states that the first operation may have found: as given, else as the results prove. A successful
// revoke proves that a rule was there, a successful authorize that it was not.
func (p *problem) begin() {
	base := make(orders.State, p.u.words)
	for _, f := range p.on {
		base.Set(f)
	}
	var unknown []item
	if p.c.Snapshot != nil {
		for _, r := range p.c.Snapshot.Rules {
			it := p.u.rule(r.Rule)
			if p.isManaged(r.Description) {
				p.startWith(base, it.managed)
			} else {
				base.Set(it.foreign)
			}
		}
		p.assumptions = append(p.assumptions, fmt.Sprintf("the rules at the beginning are those of --initial (%d)", len(p.c.Snapshot.Rules)))
	} else {
		unknown = p.infer(base)
	}
	if p.c.Snapshot != nil || p.viewed > 0 || p.c.HasBindings && p.grants() {
		// Whoever gives the bindings of a group that is being granted rules asks for the closed world.
		base.Set(told)
	}
	p.initial, p.unknown = []orders.State{base}, unknown
	if !p.opt.anyStart {
		if len(unknown) > 0 {
			names := make([]string, len(unknown))
			for i, it := range unknown {
				names[i] = p.u.facts[it.managed].rule.Ports()
			}
			p.assumptions = append(p.assumptions, "taken to have been absent at the beginning, though the results allow both: "+someOf(names)+" (--initial would tell)")
		}
		return
	}
	for _, it := range unknown {
		for _, s := range slices.Clone(p.initial) {
			with := slices.Clone(s)
			p.startWith(with, p.variant(it))
			p.initial = append(p.initial, with)
		}
	}
}

// grants reports whether a managed rule was granted for certain.
func (p *problem) grants() bool {
	return slices.ContainsFunc(p.effects, func(e *effect) bool {
		return e.kind == grant && e.result == changed && slices.ContainsFunc(e.set, func(f int32) bool { return p.u.facts[f].managed })
	})
}

// startWith puts a rule into a state of the beginning, with the needs that are assumed with it.
func (p *problem) startWith(s orders.State, f int32) {
	s.Set(f)
	if !p.u.facts[f].managed {
		return
	}
	s.Set(told)
	for _, reason := range p.assumed[p.u.facts[f].rule] {
		if n := p.u.facts[reason].port; n < 0 || !p.u.ports[n].proven || p.u.ports[n].provenFrom > p.c.From {
			s.Set(reason)
		}
	}
}

// variant is the fact for a rule of which nobody says whether it is managed: it is, where some record shows it so.
func (p *problem) variant(it item) int32 {
	if p.u.facts[it.managed].port == managedSeen {
		return it.managed
	}
	return it.foreign
}

// testimony is what one operation says of a rule just before it.
type testimony struct {
	op  int32
	say presence
	// adds and removes: the operation may never have taken effect, and if it did, it added or removed the rule.
	adds, removes bool
}

// infer sets the rules of which the results prove that they were there, and returns those that may have been.
func (p *problem) infer(base orders.State) []item {
	says := map[int32][]testimony{}
	for i := range p.ops {
		e := p.effects[i]
		t := testimony{op: int32(i), say: either}
		switch {
		case e.kind == empty:
			for _, it := range p.u.rules {
				says[it.managed] = append(says[it.managed], t)
			}
			continue
		case e.kind == none || e.kind == turn:
			continue
		case p.ops[i].Optional:
			t.adds, t.removes = e.kind == grant, e.kind != grant
		case e.result == duplicate && len(e.items) == 1:
			t.say = present
		case e.result == notFound && len(e.items) == 1:
			t.say = absent
		case e.result != changed:
		case e.kind == grant:
			t.say = absent
		case !p.opt.Lenient:
			t.say = present
		}
		for _, it := range e.items {
			says[it.managed] = append(says[it.managed], t)
		}
		for _, it := range e.absent {
			says[it.managed] = append(says[it.managed], testimony{op: int32(i), say: absent})
		}
	}
	views := p.firstView()
	rules := make([]traces.Rule, 0, len(p.u.rules))
	for r := range p.u.rules {
		rules = append(rules, r)
	}
	slices.SortFunc(rules, traces.Rule.Compare)
	var unknown []item
	for _, r := range rules {
		it := p.u.rules[r]
		verdict := p.firstSay(says[it.managed])
		if seen, known := views[r]; known && (verdict == unsaid || verdict == either) {
			verdict = seen
		}
		switch verdict {
		case present:
			p.startWith(base, p.variant(it))
		case either:
			if len(unknown) < maxUnknown {
				unknown = append(unknown, it)
			} else if p.opt.anyStart && !slices.ContainsFunc(says[it.managed], func(t testimony) bool { return t.adds }) {
				p.startWith(base, p.variant(it))
			}
		case unsaid:
			if p.tried(r) {
				p.startWith(base, p.variant(it))
				p.assumptions = append(p.assumptions, fmt.Sprintf("%s was there at the beginning: a revoke of it was tried, and nothing else tells", r))
			}
		}
	}
	return unknown
}

// beginning says in words which rules all explanations begin with, and which only some.
func (r *Result) beginning(starts []orders.State) []string {
	u := r.problem.u
	always, sometimes := []string{}, []string{}
	for _, p := range u.describe(union(starts), false) {
		it := u.rules[p.Rule]
		if slices.ContainsFunc(starts, func(s orders.State) bool { return !it.in(s) }) {
			sometimes = append(sometimes, p.Ports())
		} else {
			always = append(always, p.Ports())
		}
	}
	how := "proven by what came later: "
	if r.Viewed {
		how = "seen by the first describe, or proven by what came later: "
	}
	var out []string
	switch {
	case len(always) > 0:
		out = append(out, "rules at the beginning, "+how+someOf(always))
	case len(sometimes) == 0 && r.Viewed:
		out = append(out, "no rule at the beginning: the first describe shows none")
	case len(sometimes) == 0:
		out = append(out, "no rule at the beginning: nothing proves that one was there")
	}
	if len(sometimes) > 0 {
		out = append(out, "rules that may or may not have been there at the beginning: "+someOf(sometimes))
	}
	return append(out, "rules that the capture never mentions are taken not to exist (--initial would tell)")
}

func union(states []orders.State) orders.State {
	all := slices.Clone(states[0])
	for _, s := range states[1:] {
		for i := range all {
			all[i] |= s[i]
		}
	}
	return all
}

func someOf(list []string) string {
	const most = 6
	if len(list) > most {
		return strings.Join(list[:most], ", ") + fmt.Sprintf(" and %d more", len(list)-most)
	}
	return strings.Join(list, ", ")
}

// firstSay is what the operations that can be the first on a rule say of it.
func (p *problem) firstSay(says []testimony) presence {
	limit := traces.Forever
	for _, t := range says {
		if !p.ops[t.op].Optional {
			limit = min(limit, p.ops[t.op].Return)
		}
	}
	verdict := unsaid
	adds, removes := false, false
	for _, t := range says {
		switch {
		case p.ops[t.op].Call > limit || p.comesAfter(t.op, says):
		case p.ops[t.op].Optional:
			adds, removes = adds || t.adds, removes || t.removes
		case verdict == unsaid:
			verdict = t.say
		case verdict != t.say:
			verdict = either
		}
	}
	if verdict == present && adds || verdict == absent && removes {
		return either
	}
	return verdict
}

// comesAfter reports whether another one of the operations is known to come before op.
func (p *problem) comesAfter(op int32, says []testimony) bool {
	seen := map[int32]bool{}
	var search func(i int32) bool
	search = func(i int32) bool {
		for _, a := range p.ops[i].After {
			if seen[a] {
				continue
			}
			seen[a] = true
			if slices.ContainsFunc(says, func(t testimony) bool { return t.op == a && !p.ops[a].Optional }) || search(a) {
				return true
			}
			if len(seen) > 64 {
				return false
			}
		}
		return false
	}
	return search(op)
}

// tried reports whether a revoke of the rule failed or got no answer, which the controller tries only of rules it saw.
func (p *problem) tried(r traces.Rule) bool {
	for i := range p.c.Operations {
		op := &p.c.Operations[i]
		if op.Op == traces.RevokeSecurityGroupIngress && op.Outcome != traces.Succeeded &&
			slices.ContainsFunc(op.Permissions, func(perm traces.Permission) bool { return perm.Rule == r }) {
			return true
		}
	}
	return false
}

// firstView is what the first describe shows, where no mutation came before it, and of rules that no mutation names what
// any describe shows.
func (p *problem) firstView() map[traces.Rule]presence {
	views := map[traces.Rule]presence{}
	mutated := make([]bool, len(p.u.facts)) // by managed fact
	firstMutation := traces.Forever
	for i := range p.ops {
		if e := p.effects[i]; p.source[i] >= 0 && e.kind != turn && e.kind != none && e.result == changed {
			firstMutation = min(firstMutation, p.ops[i].Call)
			for _, it := range e.items {
				mutated[it.managed] = true
			}
			for _, f := range e.set {
				mutated[p.u.managedOf(f)] = true
			}
		}
	}
	first := true
	var view []traces.Permission // the one before
	for i := range p.c.Operations {
		op := &p.c.Operations[i]
		if op.View == nil || op.Outcome != traces.Succeeded || !first && slices.Equal(view, op.View) {
			continue
		}
		view = op.View
		if first && op.Return <= firstMutation {
			for r := range p.u.rules {
				views[r] = absent
			}
			p.viewed = len(op.View) + 1
		}
		for _, perm := range op.View {
			if first && op.Return <= firstMutation || !mutated[p.u.rules[perm.Rule].managed] {
				views[perm.Rule] = present
			}
		}
		first = false
	}
	return views
}

// spare adds a fact that no rule and no need stands behind, to states and masks that are as wide as they were.
func (p *problem) spare() int32 {
	f := p.u.add(fact{port: -1, spare: true})
	if words := (len(p.u.facts) + 63) / 64; words > p.u.words {
		p.widen(words)
	}
	return f
}

// widen makes all states and masks as long as words says.
func (p *problem) widen(words int) {
	grow := func(s *orders.State) {
		if *s != nil {
			*s = append(slices.Clip(*s), make(orders.State, words-len(*s))...)
		}
	}
	p.u.words = words
	grow(&p.u.managed)
	grow(&p.u.needs)
	grow(&p.u.present)
	for i := range p.u.ports {
		grow(&p.u.ports[i].needed)
		grow(&p.u.ports[i].open)
		grow(&p.u.ports[i].managed)
	}
	for i := range p.initial {
		grow(&p.initial[i])
	}
	for i := range p.effects {
		if n := len(p.effects[i].siblings); n > 0 && n < words {
			grow(&p.effects[i].siblings)
		}
	}
}
