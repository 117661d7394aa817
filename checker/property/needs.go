package property

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"linearize.example/checker/orders"
	"linearize.example/traces"
)

// targetEvent is a call that registered or deregistered targets of one target group on one port.
type targetEvent struct {
	source   int // index in Capture.Operations
	register bool
	ids      []string
}

// endpoints names targets by target group and port, for which one fact stands.
type endpoints struct {
	group string
	port  int32
}

// proveNeeds finds the ports that bindings and calls on targets prove to be needed, and when.
func (p *problem) proveNeeds() {
	events := map[endpoints][]targetEvent{}
	var keys []endpoints
	for i := range p.c.Operations {
		op := &p.c.Operations[i]
		register := op.Op == traces.RegisterTargets
		if op.Outcome == traces.Failed || !register && op.Op != traces.DeregisterTargets {
			continue
		}
		byPort := map[int32][]string{}
		for _, t := range op.Targets {
			byPort[t.Port] = append(byPort[t.Port], t.ID)
		}
		ports := make([]int32, 0, len(byPort))
		for port := range byPort {
			ports = append(ports, port)
		}
		slices.Sort(ports)
		for _, port := range ports {
			k := endpoints{op.TargetGroup, port}
			if events[k] == nil {
				keys = append(keys, k)
			}
			events[k] = append(events[k], targetEvent{i, register, byPort[port]})
		}
	}
	if p.c.HasBindings {
		p.bindings(events)
		return
	}
	slices.SortFunc(keys, func(a, b endpoints) int {
		return cmp.Or(strings.Compare(a.group, b.group), cmp.Compare(a.port, b.port))
	})
	ports := map[int32]bool{}
	for _, k := range keys {
		n := -1
		if k.port > 0 {
			n = p.u.port(portKey{Port: k.port})
			ports[k.port] = true
			first := p.c.Operations[events[k][0].source].Call
			if !p.u.ports[n].proven || first < p.u.ports[n].provenFrom {
				p.u.ports[n].proven, p.u.ports[n].provenFrom = true, first
			}
		}
		reason := p.u.reason(n, "target of "+shortTargetGroup(k.group))
		if p.follow(events[k], reason, n, false) {
			p.on = append(p.on, reason)
		}
	}
	if len(ports) > 0 {
		p.assumptions = append(p.assumptions, fmt.Sprintf("ports %s are needed while RegisterTargets and DeregisterTargets say that they have targets", portList(ports)))
	}
}

// bindings makes the needs of the bindings that were given; a binding whose target group's calls were recorded is live as
// they say.
func (p *problem) bindings(events map[endpoints][]targetEvent) {
	live := 0
	for _, b := range p.c.Bindings {
		var calls []targetEvent
		seen := map[int32]bool{}
		for k, e := range events {
			if k.group == b.TargetGroup {
				calls = append(calls, e...)
				seen[k.port] = true
			}
		}
		slices.SortFunc(calls, func(a, b targetEvent) int { return cmp.Compare(a.source, b.source) })
		var ports []int
		for _, n := range b.Needs {
			switch {
			case n.Port != 0:
				ports = append(ports, p.u.port(portKey{n.Protocol, n.Port, n.Source}))
			default:
				// A named port is the pods' own; the targets' ports tell its number.
				for port := range seen {
					if port > 0 {
						ports = append(ports, p.u.port(portKey{n.Protocol, port, n.Source}))
					}
				}
				if len(seen) == 0 {
					ports = append(ports, -1)
				}
			}
		}
		slices.Sort(ports)
		for _, n := range slices.Compact(ports) {
			live++
			if n >= 0 {
				p.u.ports[n].proven, p.u.ports[n].provenFrom = true, traces.Beginning
			}
			reason := p.u.reason(n, "TGB "+b.Name)
			on := p.follow(calls, reason, n, true)
			if len(calls) > 0 {
				p.skipsOf(b.Name, reason)
			}
			switch {
			case b.Created <= p.c.From:
				if on {
					p.on = append(p.on, reason)
				}
			case on:
				p.turnAt(b.Created, reason, true)
			}
			if b.Deleted < p.c.To {
				p.turnAt(b.Deleted, reason, false)
			}
		}
	}
	p.assumptions = append(p.assumptions, fmt.Sprintf("the bindings given need %d ports, each from its creation on while it has targets", live))
}

// follow turns calls on targets into changes of the reason, and reports whether it is given at the beginning. A target
// whose first call deregisters it was registered before. always says that the reason is given at the beginning
// unless calls tell otherwise.
func (p *problem) follow(events []targetEvent, reason int32, port int, always bool) bool {
	events = p.sequence(events)
	live := map[string]bool{}
	initially := always || len(events) > 0 && !events[0].register
	met := map[string]bool{}
	for _, e := range events {
		for _, id := range e.ids {
			if !e.register && !met[id] {
				live[id] = true
			}
			met[id] = true
		}
	}
	previous, previousSource := -1, -1
	for n, e := range events {
		op := &p.c.Operations[e.source]
		ef := effect{kind: turn, once: -1, unless: -1}
		o := orders.Operation{Call: op.Call, Return: op.Return, Optional: op.Outcome == traces.Pending}
		if e.register {
			for _, id := range e.ids {
				live[id] = true
			}
			ef.on = []int32{reason}
			if port >= 0 && p.u.ports[port].assumed >= 0 {
				ef.off = []int32{p.u.ports[port].assumed}
			}
		} else {
			for _, id := range e.ids {
				delete(live, id)
			}
			next := n+1 < len(events) && events[n+1].register && p.c.Operations[events[n+1].source].Call <= op.Return
			if len(live) > 0 || next && !p.rulesChange(e.source, events[n+1].source) {
				continue
			}
			ef.off = []int32{reason}
		}
		if previous >= 0 && !o.Optional {
			o.After = []int32{int32(previous)}
		}
		source := e.source
		if !e.register {
			source = -1
		}
		i := p.push(o, ef, source)
		p.targetCalls = append(p.targetCalls, targetCall{i, e.source, previousSource, port, e.register})
		if !o.Optional {
			previous, previousSource = i, e.source
		}
	}
	return initially
}

// targetCall links an operation of the problem to the call on targets that it came from, and to the call before that on
// the same target group's targets (-1 for none).
type targetCall struct {
	op, source, previous, port int
	register                   bool
}

// sequence puts calls on the targets of one target group into an order: that of their sources, and where these leave it
// open, one in which nothing is deregistered before it is registered; then as within one reconcile, which deregisters
// before it registers (resource_manager.go, line 226 and below).
func (p *problem) sequence(events []targetEvent) []targetEvent {
	left := slices.Clone(events)
	call := func(e targetEvent) traces.Instant { return p.c.Operations[e.source].Call }
	slices.SortStableFunc(left, func(a, b targetEvent) int {
		if c := cmp.Compare(call(a), call(b)); c != 0 || a.register == b.register {
			return c
		}
		if a.register {
			return 1
		}
		return -1
	})
	live := map[string]bool{}
	for n := range left {
		// Whatever may come next began before any other was over.
		rest, until := left[n:], traces.Forever
		open := 0
		for open < min(len(rest), mostOpen) && call(rest[open]) <= until {
			until = min(until, p.c.Operations[rest[open].source].Return)
			open++
		}
		next := -1
		for i, e := range rest[:open] {
			if slices.ContainsFunc(rest[:open], func(o targetEvent) bool { return p.callsInOrder(o.source, e.source) }) {
				continue
			}
			if waits := waitsForRegistration(e, rest[:open], live); next < 0 || !waits {
				next = i
				if !waits {
					break
				}
			}
		}
		next = max(next, 0)
		e := rest[next]
		copy(rest[1:next+1], rest[:next])
		rest[0] = e
		for _, id := range e.ids {
			live[id] = e.register
		}
	}
	return left
}

// mostOpen is how many calls on one target group's targets are compared for their order; more in one second are taken as
// they come.
const mostOpen = 32

// waitsForRegistration reports whether the call deregisters a target that is not there, and that another one of the calls
// that may come next registers.
func waitsForRegistration(e targetEvent, open []targetEvent, live map[string]bool) bool {
	return !e.register && slices.ContainsFunc(e.ids, func(id string) bool {
		return !live[id] && slices.ContainsFunc(open, func(o targetEvent) bool { return o.register && slices.Contains(o.ids, id) })
	})
}

// callsInOrder reports whether call a was over before call b began, by their times or by the order of their caller.
func (p *problem) callsInOrder(a, b int) bool {
	first := &p.c.Operations[a]
	if first.Return < p.c.Operations[b].Call {
		return true
	}
	for i := p.c.Operations[b].After; i >= 0 && p.c.Operations[i].Return >= first.Call; i = p.c.Operations[i].After {
		if i == a {
			return true
		}
	}
	return false
}

// rulesChange reports whether the group's rules may have changed between two calls.
func (p *problem) rulesChange(from, to int) bool {
	a, b := &p.c.Operations[from], &p.c.Operations[to]
	first := p.since(a.Call.Add(-sameReconcile))
	for i := first; i < len(p.c.Operations) && p.c.Operations[i].Call <= b.Return; i++ {
		op := &p.c.Operations[i]
		if changesRules(op.Op) && op.Outcome != traces.Failed && op.Return >= a.Call && !p.callsInOrder(i, from) && !p.callsInOrder(to, i) {
			return true
		}
	}
	return false
}

func shortTargetGroup(arn string) string {
	if parts := strings.Split(arn, "/"); len(parts) >= 3 {
		return parts[len(parts)-2]
	}
	return arn
}

func portList(ports map[int32]bool) string {
	list := make([]int, 0, len(ports))
	for port := range ports {
		list = append(list, int(port))
	}
	slices.Sort(list)
	const most = 12
	text := ""
	for i, port := range list {
		if i == most {
			return text + fmt.Sprintf(" and %d more", len(list)-most)
		}
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprint(port)
	}
	return text
}

// assumeNeeds makes a reason for each end of each managed rule whose port nothing proves.
func (p *problem) assumeNeeds() {
	p.assumed = map[traces.Rule][]int32{}
	switch {
	case p.c.HasBindings:
		return
	case p.opt.Need == Proven:
		p.skips()
		return
	}
	rules := make([]traces.Rule, 0, len(p.u.rules))
	for r := range p.u.rules {
		if p.u.isManagedSomewhere(r) {
			rules = append(rules, r)
		}
	}
	slices.SortFunc(rules, traces.Rule.Compare)
	assumed := map[int32]bool{}
	for _, r := range rules {
		for _, n := range p.ends(r) {
			if n < 0 {
				if p.anyPort == 0 {
					p.anyPort = p.u.reason(-1, "assumed") + 1
				}
				p.assumed[r] = append(p.assumed[r], p.anyPort-1)
				continue
			}
			port := &p.u.ports[n]
			if port.assumed < 0 {
				f := p.u.reason(n, "assumed")
				p.u.ports[n].assumed = f
			}
			if !p.u.ports[n].proven {
				assumed[p.u.ports[n].Port] = true
			}
			p.assumed[r] = append(p.assumed[r], p.u.ports[n].assumed)
		}
	}
	for _, t := range p.targetCalls {
		// A call on targets replaces what was assumed of its port, and that somebody needed some port.
		e := p.effects[t.op]
		if t.port >= 0 && p.u.ports[t.port].assumed >= 0 {
			e.off = append(e.off, p.u.ports[t.port].assumed)
		}
		if p.anyPort > 0 {
			e.off = append(e.off, p.anyPort-1)
		}
		p.targetsFrom = min(p.targetsFrom, p.c.Operations[t.source].Call)
	}
	if len(assumed) > 0 {
		p.assumptions = append(p.assumptions, fmt.Sprintf("ports %s are assumed to be needed, being an end of a managed rule, from when it is known to have existed until the controller narrows it (--bindings would tell)", portList(assumed)))
	}
	p.skips()
}

// ends returns the ports at which a managed rule begins and ends: somebody asked for each, since the controller aggregates
// from the lowest to the highest. A rule for all ports tells no port (-1).
func (p *problem) ends(r traces.Rule) []int {
	if r.Protocol != "tcp" && r.Protocol != "udp" || r.FromPort == 0 && r.ToPort == 65535 {
		return []int{-1}
	}
	find := func(port int32) int {
		if n, known := p.u.byPort[portKey{Port: port}]; known {
			return n
		}
		return p.u.port(portKey{Protocol: r.Protocol, Port: port})
	}
	if r.FromPort == r.ToPort {
		return []int{find(r.FromPort)}
	}
	return []int{find(r.FromPort), find(r.ToPort)}
}

// assumedFor are the reasons that a grant of the rule at the instant brings: those of ports of which no call on targets
// has told by then.
func (p *problem) assumedFor(r traces.Rule, at traces.Instant) []int32 {
	var reasons []int32
	for _, f := range p.assumed[r] {
		n := p.u.facts[f].port
		if n < 0 && at <= p.targetsFrom || n >= 0 && (!p.u.ports[n].proven || at <= p.u.ports[n].provenFrom) {
			reasons = append(reasons, f)
		}
	}
	return reasons
}

// skips makes a reason of each TGB that was skipped: its equal checkpoint proves that it is there, with the endpoints
// of its last reconcile. It counts from when a managed rule is known to have existed, until a skip without endpoints or
// a deregistration.
func (p *problem) skips() {
	known := traces.Forever
	for i := range p.c.Operations {
		op := &p.c.Operations[i]
		if op.Outcome != traces.Succeeded {
			continue
		}
		managed := slices.ContainsFunc(op.Permissions, func(perm traces.Permission) bool { return p.managedPermission(op, perm) })
		switch {
		case managed && op.Op == traces.RevokeSecurityGroupIngress:
			known = min(known, op.Call)
		case managed && op.Op == traces.AuthorizeSecurityGroupIngress:
			known = min(known, op.Return)
		}
	}
	if known == traces.Forever {
		return
	}
	deregistrations := p.deregistrations()
	reasons := map[string]int32{}
	given := map[string]traces.Instant{} // when each reason was last given, and no skip has taken it back
	for _, s := range p.c.Skips {
		at := p.following(max(s.Latest, known))
		since, is := given[s.TGB]
		switch empty := strings.Contains(s.Text, noEndpoints); {
		case empty && is:
			p.turnAt(at, reasons[s.TGB], false)
			delete(given, s.TGB)
		case empty || is && !deregistrations.between(since, at):
		default:
			if _, known := reasons[s.TGB]; !known {
				reasons[s.TGB] = p.u.reason(-1, "TGB "+s.TGB+" was skipped")
			}
			p.turnAt(at, reasons[s.TGB], true)
			given[s.TGB] = at
		}
	}
	// Nobody says which target group a TGB has: any deregistration may be its own, and then it has no endpoints any more.
	for _, t := range p.targetCalls {
		for _, name := range slices.Sorted(maps.Keys(reasons)) {
			if !t.register {
				p.effects[t.op].off = append(p.effects[t.op].off, reasons[name])
			}
		}
	}
	if len(reasons) > 0 {
		p.assumptions = append(p.assumptions, fmt.Sprintf("%d TGBs were skipped with an equal checkpoint, which proves that they are there", len(reasons)))
	}
}

// deregistrations are the intervals of the calls that took the last target of a port away, by their beginning; latest is
// the latest end of the first ones.
type deregistrations struct{ call, latest []traces.Instant }

func (p *problem) deregistrations() deregistrations {
	var ops []orders.Operation
	for _, t := range p.targetCalls {
		if !t.register {
			ops = append(ops, p.ops[t.op])
		}
	}
	slices.SortFunc(ops, func(a, b orders.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var d deregistrations
	latest := traces.Beginning
	for _, o := range ops {
		latest = max(latest, o.Return)
		d.call, d.latest = append(d.call, o.Call), append(d.latest, latest)
	}
	return d
}

// between reports whether one of them may have taken effect between two instants.
func (d deregistrations) between(from, to traces.Instant) bool {
	n, _ := slices.BinarySearch(d.call, to+1)
	return n > 0 && d.latest[n-1] >= from
}

// turnAt gives a reason, or takes it away, at an instant. All that turn at one instant turn together, as far as they are different
// reasons: no time passes between them, and many TGBs are skipped at once.
func (p *problem) turnAt(at traces.Instant, reason int32, on bool) {
	i, known := p.turns[at]
	if known {
		e := p.effects[i]
		known = !slices.Contains(e.on, reason) && !slices.Contains(e.off, reason)
	}
	if !known {
		i = p.push(orders.Operation{Call: at, Return: at}, effect{kind: turn, once: -1, unless: -1}, -1)
		if p.turns == nil {
			p.turns = map[traces.Instant]int{}
		}
		p.turns[at] = i
	}
	if e := p.effects[i]; on {
		e.on = append(e.on, reason)
	} else {
		e.off = append(e.off, reason)
	}
}

// following is the first instant after one at which calls may have ended, as long as the capture goes on: their effects come before what
// is known by then.
func (p *problem) following(at traces.Instant) traces.Instant { return min(at+1, max(at, p.c.To)) }

// noEndpoints is in the text of a skip whose checkpoint was computed from no endpoint at all: the SHA-256 of nothing
// (pkg/targetgroupbinding/utils.go, calculateTGBReconcileCheckpoint).
const noEndpoints = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU/"

// skipsOf gives the reason again whenever the TGB is skipped: its equal checkpoint proves that it has endpoints, though
// the calls on its targets tell otherwise (issue #4343: a clean-up that kept the checkpoint).
func (p *problem) skipsOf(name string, reason int32) {
	_, short, _ := strings.Cut(name, "/")
	for _, s := range p.c.Skips {
		if (s.TGB == name || s.TGB == short) && !strings.Contains(s.Text, noEndpoints) {
			p.turnAt(s.Latest, reason, true)
		}
	}
}

func changesRules(call string) bool {
	switch call {
	case traces.RegisterTargets, traces.DeregisterTargets, traces.DescribeSecurityGroups, traces.DescribeSecurityGroupRules:
		return false
	}
	return true
}

// since is the first operation of the capture whose interval begins at the instant or later.
func (p *problem) since(at traces.Instant) int {
	first, _ := slices.BinarySearchFunc(p.c.Operations, at, func(o traces.Operation, at traces.Instant) int {
		return cmp.Compare(o.Call, at)
	})
	return first
}

// second is the whole second that people would give for a call.
func second(op *traces.Operation) int64 {
	at := op.Call
	if op.Stamp != 0 {
		at = op.Stamp
	}
	return int64(at) / int64(time.Second)
}
