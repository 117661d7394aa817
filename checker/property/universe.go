package property

import (
	"cmp"
	"slices"
	"strconv"

	"linearize.example/checker/orders"
	"linearize.example/traces"
)

// universe numbers the facts of a state: each rule, managed or not, and each reason why a port is needed.
type universe struct {
	facts   []fact
	rules   map[traces.Rule]item
	managed orders.State // mask of the managed rules
	needs   orders.State // mask of all reasons
	present orders.State // mask of all rules
	ports   []port
	byPort  map[portKey]int
	words   int
}

// told is the fact that something has told of the managed rules: one was there, or the group is known to have been empty.
// Before that, that no rule is there rests on nothing but that the capture does not mention one.
const told int32 = 0

// fact describes one bit.
type fact struct {
	rule    traces.Rule
	managed bool
	need    string // not empty: the fact is a reason, in words
	port    int32  // for a reason: its port in universe.ports, or -1
	spare   bool   // neither rule nor need
}

// item holds the two facts of a rule: it is there with the controller's description, or with another. At most one of
// them is true at a time.
type item struct{ managed, foreign int32 }

// portKey names what has to be open. Protocol is empty where any of the managed protocols will do, Port is -1 for all
// ports, Source is empty where any of the managed sources will do.
type portKey struct {
	Protocol string
	Port     int32
	Source   string
}

// port is a port that may be needed, with the reasons for it and the rules that open it.
type port struct {
	portKey
	name    portKey // the key for people: with the protocol, where all managed rules have the same
	reasons []int32
	assumed int32        // the reason that is assumed where nothing proves one, or -1
	needed  orders.State // mask of reasons
	open    orders.State // mask of the rules, managed or not, that open it
	managed orders.State // mask of the managed ones among them
	// proven: targets or bindings tell when it is needed, so that nothing is assumed from provenFrom on.
	proven     bool
	provenFrom traces.Instant
}

func newUniverse() *universe {
	return &universe{rules: map[traces.Rule]item{}, byPort: map[portKey]int{}, facts: []fact{{spare: true, port: -1}}}
}

func (u *universe) add(f fact) int32 {
	u.facts = append(u.facts, f)
	return int32(len(u.facts) - 1)
}

// rule returns the facts of a rule, new or known.
func (u *universe) rule(r traces.Rule) item {
	it, known := u.rules[r]
	if !known {
		it = item{managed: u.add(fact{rule: r, managed: true, port: -1})}
		it.foreign = u.add(fact{rule: r, port: -1})
		u.rules[r] = it
	}
	return it
}

// managedOf returns the managed fact of the rule that one of its two facts belongs to.
func (u *universe) managedOf(f int32) int32 {
	if u.facts[f].managed {
		return f
	}
	return f - 1
}

// port returns the index of a port, new or known.
func (u *universe) port(k portKey) int {
	i, known := u.byPort[k]
	if !known {
		i = len(u.ports)
		u.ports = append(u.ports, port{portKey: k, assumed: -1})
		u.byPort[k] = i
	}
	return i
}

// reason adds a reason why a port is needed; port -1 is a need of which nobody knows the port.
func (u *universe) reason(port int, text string) int32 {
	f := u.add(fact{need: text, port: int32(port)})
	if port >= 0 {
		u.ports[port].reasons = append(u.ports[port].reasons, f)
	}
	return f
}

// seal computes the masks, once all facts are known.
func (u *universe) seal() {
	u.words = max(1, (len(u.facts)+63)/64)
	mask := func() orders.State { return make(orders.State, u.words) }
	u.managed, u.needs, u.present = mask(), mask(), mask()
	sources, protocols := map[string]bool{}, map[string]bool{}
	for i, f := range u.facts {
		switch {
		case f.spare:
		case f.need != "":
			u.needs.Set(int32(i))
		case f.managed:
			u.managed.Set(int32(i))
			u.present.Set(int32(i))
		default:
			u.present.Set(int32(i))
		}
	}
	for r := range u.rules {
		if u.isManagedSomewhere(r) {
			sources[r.Source] = true
			protocols[r.Protocol] = true
		}
	}
	for i := range u.ports {
		p := &u.ports[i]
		p.needed, p.open, p.managed = mask(), mask(), mask()
		p.name = p.portKey
		if len(protocols) == 1 && p.Protocol == "" {
			for protocol := range protocols {
				p.name.Protocol = protocol
			}
		}
		for _, f := range p.reasons {
			p.needed.Set(f)
		}
		for r, it := range u.rules {
			if !p.openedBy(r) || !reaches(r.Source, p.Source, sources) {
				continue
			}
			p.open.Set(it.managed)
			p.open.Set(it.foreign)
			p.managed.Set(it.managed)
		}
	}
}

// isManagedSomewhere reports whether some record shows the rule with the controller's description.
func (u *universe) isManagedSomewhere(r traces.Rule) bool {
	f := u.facts[u.rules[r].managed]
	return f.port == managedSeen
}

// managedSeen marks, in fact.port of a rule, that some record shows the rule as managed.
const managedSeen = -2

func (u *universe) markManaged(it item) { u.facts[it.managed].port = managedSeen }

func (p *port) openedBy(r traces.Rule) bool {
	if r.Protocol == "-1" {
		return true
	}
	if p.Protocol != "" && r.Protocol != p.Protocol {
		return false
	}
	switch {
	case p.Port < 0:
		return (r.FromPort == 0 || r.FromPort == -1) && (r.ToPort == 65535 || r.ToPort == -1)
	case r.Protocol != "tcp" && r.Protocol != "udp":
		return false
	}
	return r.FromPort <= p.Port && p.Port <= r.ToPort
}

// reaches reports whether a rule's source lets in what has to reach the port: the peer that asked for it, or where
// nobody knows the peer, any that the controller grants to. A rule open to everybody lets in all.
func reaches(source, wanted string, managed map[string]bool) bool {
	if source == "0.0.0.0/0" || source == "::/0" {
		return true
	}
	if wanted != "" {
		return source == wanted
	}
	return len(managed) == 0 || managed[source]
}

// describe prints the rules of a state, in a fixed order.
func (u *universe) describe(s orders.State, managedOnly bool) []traces.Permission {
	var rules []traces.Permission
	for i, f := range u.facts {
		if f.need != "" || f.spare || !s.Has(int32(i)) || managedOnly && !f.managed {
			continue
		}
		p := traces.Permission{Rule: f.rule}
		if f.managed {
			p.Description = "managed"
		}
		rules = append(rules, p)
	}
	slices.SortFunc(rules, func(a, b traces.Permission) int {
		return cmp.Or(a.Rule.Compare(b.Rule), cmp.Compare(a.Description, b.Description))
	})
	return rules
}

// String prints the port as people name it: "tcp 8025", "port 8025", "all ports".
func (k portKey) String() string {
	protocol := k.Protocol
	if protocol == "" {
		protocol = "port"
	}
	if k.Port < 0 {
		protocol = "all ports"
		if k.Protocol != "" {
			protocol = k.Protocol + " (all ports)"
		}
	} else {
		protocol += " " + strconv.Itoa(int(k.Port))
	}
	if k.Source != "" {
		protocol += " from " + k.Source
	}
	return protocol
}
