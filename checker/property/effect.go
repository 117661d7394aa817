package property

import "linearize.example/checker/orders"

// effect is what an operation does to a state, and what its result says of the state that it found.
type effect struct {
	kind   effectKind
	items  []item  // the rules that the call named
	set    []int32 // for a grant: the fact to set for each of items
	absent []item  // for a revoke: those that it reported as not there; for a replacement: those that must not be there
	result result

	on, off []int32 // reasons that begin and end

	// once is set when an optional operation takes effect, and keeps a stand-in for it from doing so again.
	once, unless int32

	// narrows lists ports whose need ends when the controller narrows its rules: when this is the second of an
	// authorize and a revoke that replaced one rule by another, and no managed rule opens the port any more.
	narrows []int
	// partnerThere (for the revoke) and partnerGone (for the authorize) tell whether the other of the two is done.
	partnerThere []int32
	partnerGone  []item
	// drops lists ports whose assumed need ends when the revoke leaves one of siblings, rules of the same protocol and
	// source: the controller narrowed to a rule that was there already.
	drops    []int
	siblings orders.State
}

type effectKind uint8

const (
	none       effectKind = iota
	grant                 // adds rules that are absent
	revoke                // removes rules that are present
	replace               // ModifySecurityGroupRules: removes items, sets `set`
	redescribe            // UpdateSecurityGroupRuleDescriptionsIngress: items stay, `set` says whether managed
	empty                 // a group created or deleted: no rule is left
	turn                  // reasons only
)

// result is what the answer says.
type result uint8

const (
	changed   result = iota // success: it found what it needed
	duplicate               // some of the rules were there
	notFound                // some of the rules were absent
	refused                 // an error that says nothing of the rules
)

func (it item) in(s orders.State) bool { return s.Has(it.managed) || s.Has(it.foreign) }

func (it item) clear(s orders.State) {
	s.Clear(it.managed)
	s.Clear(it.foreign)
}

// apply writes to `to` what the effect makes of `from`, and reports whether the result is possible there.
func (e *effect) apply(u *universe, lenient bool, from, to orders.State) bool {
	copy(to, from)
	if e.unless >= 0 && from.Has(e.unless) {
		return true
	}
	switch e.result {
	case duplicate:
		for _, it := range e.items {
			if it.in(from) {
				return true
			}
		}
		return false
	case notFound:
		for _, it := range e.items {
			if !it.in(from) {
				return true
			}
		}
		return false
	case refused:
		return true
	}
	switch e.kind {
	case grant:
		for _, it := range e.items {
			if it.in(from) {
				return e.unless >= 0
			}
		}
		for _, f := range e.set {
			to.Set(f)
		}
	case revoke:
		for _, it := range e.absent {
			if it.in(from) {
				return false
			}
		}
		for _, it := range e.items {
			if !it.in(from) && !lenient {
				return e.unless >= 0
			}
		}
		for _, it := range e.items {
			it.clear(to)
		}
	case replace:
		for _, it := range e.absent {
			if it.in(from) {
				return false
			}
		}
		for _, it := range e.items {
			if !it.in(from) {
				return false
			}
			it.clear(to)
		}
		for _, f := range e.set {
			to.Set(f)
		}
	case redescribe:
		for i, it := range e.items {
			if !it.in(from) {
				return false
			}
			it.clear(to)
			to.Set(e.set[i])
		}
	case empty:
		for i := range to {
			to[i] &^= u.present[i]
		}
	}
	for _, f := range e.on {
		to.Set(f)
	}
	for _, f := range e.off {
		to.Clear(f)
	}
	if e.once >= 0 {
		to.Set(e.once)
	}
	if e.kind == empty || to.Meets(u.managed) {
		to.Set(told)
	}
	if len(e.narrows) > 0 && e.partnerDone(to) {
		for _, p := range e.narrows {
			if !to.Meets(u.ports[p].managed) {
				for _, f := range u.ports[p].reasons {
					to.Clear(f)
				}
			}
		}
	}
	if len(e.drops) > 0 && to.Meets(e.siblings) {
		for _, p := range e.drops {
			if f := u.ports[p].assumed; f >= 0 && !to.Meets(u.ports[p].managed) {
				to.Clear(f)
			}
		}
	}
	return true
}

func (e *effect) partnerDone(s orders.State) bool {
	for _, f := range e.partnerThere {
		if !s.Has(f) {
			return false
		}
	}
	for _, it := range e.partnerGone {
		if it.in(s) {
			return false
		}
	}
	return true
}
