package property

import (
	"fmt"
	"slices"
	"time"

	"linearize.example/checker/orders"
	"linearize.example/traces"
)

// pairs finds the authorize and the revoke by which one process replaced one rule by another, in one reconcile. Such a
// pair narrows what the process wants; and its order may follow from the release.
func (p *problem) pairs() {
	p.findOwners()
	p.opened = map[int32][]int{}
	recent := map[string]*authorizes{}
	var revokes []int
	for i := range p.ops {
		if p.source[i] < 0 || p.effects[i].result != changed || p.ops[i].Optional {
			continue
		}
		switch p.effects[i].kind {
		case grant:
			process := p.c.Operations[p.source[i]].Process
			if recent[process] == nil {
				recent[process] = &authorizes{}
			}
			recent[process].add(i, p.ops[i].Return)
		case revoke:
			revokes = append(revokes, i)
		}
	}
	for _, r := range revokes {
		op := &p.c.Operations[p.source[r]]
		rel, known := p.c.Releases[op.Process]
		if known && !rel.Controller {
			continue
		}
		grants := recent[op.Process]
		if grants == nil {
			grants = &authorizes{}
		}
		best := -1
		at, _ := slices.BinarySearchFunc(grants.ops, p.ops[r].Return.Add(sameReconcile), func(g int, t traces.Instant) int {
			if p.ops[g].Call > t {
				return 1
			}
			return -1
		})
		for n := at - 1; n >= 0; n-- {
			g := grants.ops[n]
			if p.ops[g].Return.Add(sameReconcile) < p.ops[r].Call || best >= 0 && p.ops[r].Call.Sub(grants.latest[n]) >= p.gap(best, r) {
				break
			}
			if p.replaces(g, r) && (best < 0 || p.gap(g, r) < p.gap(best, r)) {
				best = g
			}
		}
		p.narrow(best, r, rel.Version)
	}
}

// authorizes are those of one process, by Call; latest is for each the latest Return of it and those before it.
type authorizes struct {
	ops    []int
	latest []traces.Instant
}

func (a *authorizes) add(op int, ret traces.Instant) {
	if n := len(a.latest); n > 0 {
		ret = max(ret, a.latest[n-1])
	}
	a.ops, a.latest = append(a.ops, op), append(a.latest, ret)
}

// gap is the time between two operations, zero where their intervals meet.
func (p *problem) gap(i, j int) time.Duration {
	return max(0, p.ops[i].Call.Sub(p.ops[j].Return), p.ops[j].Call.Sub(p.ops[i].Return))
}

// replaces reports whether the grant has a managed rule of the protocol and source of one that the revoke removes.
func (p *problem) replaces(g, r int) bool {
	for i, a := range p.effects[g].items {
		if p.effects[g].set[i] != a.managed {
			continue
		}
		ra := p.u.facts[a.managed].rule
		for _, b := range p.effects[r].items {
			rb := p.u.facts[b.managed].rule
			if ra != rb && ra.Protocol == rb.Protocol && ra.Source == rb.Source {
				return true
			}
		}
	}
	return false
}

// narrow notes on the pair of a grant (or -1) and a revoke of one process which needs end with it.
func (p *problem) narrow(g, r int, v Version) {
	pair := narrowing{revoke: p.effects[r], role: p.role(p.source[r])}
	if g >= 0 {
		grantFirst := p.ops[g].Call < p.ops[r].Call && p.ops[g].Return < p.ops[r].Return
		switch {
		case p.callsInOrder(p.source[g], p.source[r]) || p.callsInOrder(p.source[r], p.source[g]):
			// The sources tell.
		case v.RevokesFirst() && p.ops[r].Call <= p.ops[g].Call && (p.ops[r].Return <= p.ops[g].Call || !p.cleansUp(r)):
			p.after(g, r, fmt.Sprintf("the contract of %s (revoke, then authorize)", v))
		case v.AuthorizesFirst() && (grantFirst || p.opt.Contract):
			// Of two calls in one second the contract alone does not tell: they may belong to two reconciles.
			p.after(r, g, fmt.Sprintf("the contract of %s (authorize, then revoke)", v))
		}
		pair.grant = p.effects[g]
		// The one of the two that comes second narrows.
		pair.grantNarrows = p.ops[r].Call <= p.ops[g].Return && (p.ops[g].Call <= p.ops[r].Return || !v.AuthorizesFirst())
		pair.revokeNarrows = p.ops[g].Call <= p.ops[r].Return
	}
	narrowed, known := p.narrowed[pair]
	if !known {
		narrowed = p.narrowPair(pair)
		p.narrowed[pair] = narrowed
	}
	p.effects[r] = narrowed[1]
	if g >= 0 {
		p.effects[g] = narrowed[0]
	}
}

// cleansUp reports whether the revoke removes several rules of one protocol and source: they were granted by reconciles that revoke
// nothing, after a start, and so may the rule of the pair have been.
func (p *problem) cleansUp(r int) bool {
	items := p.effects[r].items
	for i, a := range items {
		ra := p.u.facts[a.managed].rule
		if slices.ContainsFunc(items[:i], func(b item) bool {
			rb := p.u.facts[b.managed].rule
			return ra.Protocol == rb.Protocol && ra.Source == rb.Source
		}) {
			return true
		}
	}
	return false
}

// narrowing is what matters of a grant (or nil) and a revoke for the needs that end with them.
type narrowing struct {
	grant, revoke               *effect
	grantNarrows, revokeNarrows bool
	role                        string
}

// narrowPair returns the effects of the two with the ends of needs.
func (p *problem) narrowPair(pair narrowing) [2]*effect {
	e := *pair.revoke
	e.siblings = p.siblings(e.items)
	// What somebody else asked for stays needed, whatever this process revokes.
	ports := slices.DeleteFunc(slices.Clone(p.openedBy(e.items)), func(n int) bool { return !p.ownedBy(n, pair.role) })
	e.drops = ports
	grant := pair.grant
	if pair.revokeNarrows {
		e.narrows, e.partnerThere = ports, nil
		for i, it := range grant.items {
			if grant.set[i] == it.managed {
				e.partnerThere = append(e.partnerThere, it.managed)
			}
		}
	}
	if pair.grantNarrows {
		narrowed := grant.clone()
		narrowed.narrows = append(narrowed.narrows, ports...)
		narrowed.partnerGone = append(narrowed.partnerGone, e.items...)
		grant = p.unique.intern(narrowed)
	}
	return [2]*effect{grant, p.unique.intern(e)}
}

// openedBy lists the ports that managed rules open.
func (p *problem) openedBy(items []item) []int {
	if len(items) == 1 {
		if ports, known := p.opened[items[0].managed]; known {
			return ports
		}
	}
	ports := []int{}
	for n := range p.u.ports {
		if slices.ContainsFunc(items, func(it item) bool { return p.u.ports[n].managed.Has(it.managed) }) {
			ports = append(ports, n)
		}
	}
	if len(items) == 1 {
		p.opened[items[0].managed] = ports
	}
	return ports
}

// siblings is the mask of the managed rules with the protocol and source of one of items.
func (p *problem) siblings(items []item) orders.State {
	if p.peers == nil {
		p.peers = map[[2]string]orders.State{}
		for rule, it := range p.u.rules {
			k := [2]string{rule.Protocol, rule.Source}
			if p.peers[k] == nil {
				p.peers[k] = make(orders.State, p.u.words)
			}
			p.peers[k].Set(it.managed)
		}
	}
	var mask orders.State
	for _, it := range items {
		rule := p.u.facts[it.managed].rule
		m := p.peers[[2]string{rule.Protocol, rule.Source}]
		switch {
		case mask == nil:
			mask = m
		case &mask[0] != &m[0]:
			mask = slices.Clone(mask)
			for i := range m {
				mask[i] |= m[i]
			}
		}
	}
	return mask
}

// role is who made the call, as far as that tells owners of rules apart.
func (p *problem) role(source int) string {
	return p.c.Releases[p.c.Operations[source].Process].Role
}

// ownedBy reports whether all that is known of who asked for the port agrees with the role.
func (p *problem) ownedBy(port int, role string) bool {
	if role == "" {
		return true
	}
	for owner := range p.owners[port] {
		if owner != role {
			return false
		}
	}
	return true
}

// findOwners notes who granted managed rules that begin or end at a port.
func (p *problem) findOwners() {
	p.owners = map[int]map[string]bool{}
	for i := range p.ops {
		if p.source[i] < 0 || p.effects[i].kind != grant {
			continue
		}
		owner := p.role(p.source[i])
		for _, f := range p.effects[i].on {
			n := int(p.u.facts[f].port)
			if owner == "" || n < 0 {
				continue
			}
			if p.owners[n] == nil {
				p.owners[n] = map[string]bool{}
			}
			p.owners[n][owner] = true
		}
	}
}
