package property

import (
	"slices"
	"time"

	"linearize.example/traces"
)

// bindNeeds orders calls on targets and on rules of one process, as its protocol does: rules are granted before targets
// are registered, and a target is deregistered because its pod is gone, which was before the reconcile began.
func (p *problem) bindNeeds() {
	for _, t := range p.targetCalls {
		op := &p.c.Operations[t.source]
		if rel, known := p.c.Releases[op.Process]; known && !rel.Controller || t.port < 0 {
			continue
		}
		first := p.since(op.Call.Add(-sameReconcile))
		if t.register {
			p.bindRegistration(t, first)
		} else {
			p.bindDeregistration(t, first)
		}
	}
}

// alongside reports whether the call, or its failure, may be of the reconcile that made a call on targets.
func (p *problem) alongside(t targetCall, i int) bool {
	op := &p.c.Operations[t.source]
	return second(&p.c.Operations[i]) <= second(op) && p.c.Operations[i].Process == op.Process && !p.callsInOrder(t.source, i) &&
		(t.previous < 0 || t.register || !p.callsInOrder(i, t.previous))
}

// bindRegistration puts the grant of the reconcile before the registration, unless the grant may be another reconcile's: a worker
// whose own grant failed registers all the same (resource_manager.go, line 208), while another worker's call is under way.
func (p *problem) bindRegistration(t targetCall, first int) {
	op, port := &p.c.Operations[t.source], &p.u.ports[t.port]
	granted := -1
	for i := first; i < len(p.c.Operations) && p.c.Operations[i].Call <= op.Return; i++ {
		n, known := p.place(i)
		if !known || p.ops[n].Optional || !p.alongside(t, i) || !p.asksFor(i, port) {
			continue
		}
		switch {
		case p.answeredTooLate(i, t.source):
		case p.effects[n].result != changed:
			if !slices.Contains(triedAgain, p.c.Operations[i].Error) {
				return
			}
		case granted < 0 || p.fits(n, port) > p.fits(granted, port):
			granted = n
		}
	}
	if granted >= 0 {
		p.after(t.op, granted, "the controller's order (rules, then targets)")
	}
}

// triedAgain are the errors after which the same reconcile makes the same call once more: those that the SDK retries, and that of
// a full group.
var triedAgain = []string{"RequestLimitExceeded", "InternalError", "Unavailable", "RulesPerSecurityGroupLimitExceeded"}

// asksFor reports whether the call asks for a rule that opens the port, granted or not.
func (p *problem) asksFor(i int, port *port) bool {
	op := &p.c.Operations[i]
	return op.Op == traces.AuthorizeSecurityGroupIngress &&
		slices.ContainsFunc(op.Permissions, func(perm traces.Permission) bool { return port.managed.Has(p.u.rule(perm.Rule).managed) })
}

// bindDeregistration puts the end of the need before the revoke of the reconcile. Where that revoke may be another reconcile's, the need
// may have ended before or after it.
func (p *problem) bindDeregistration(t targetCall, first int) {
	op, port := &p.c.Operations[t.source], &p.u.ports[t.port]
	var revoked []int // indices in Capture.Operations
	doubt := map[int]bool{}
	for i := first; i < len(p.c.Operations) && p.c.Operations[i].Call <= op.Return; i++ {
		n, known := p.place(i)
		if !known || p.ops[n].Optional || p.effects[n].result != changed || !p.alongside(t, i) {
			continue
		}
		opens := func(it item) bool { return port.managed.Has(it.managed) }
		if p.effects[n].kind == revoke && slices.ContainsFunc(p.effects[n].items, opens) {
			wanted, may := p.stillWanted(i, t, port)
			if wanted {
				continue
			}
			doubt[i] = may
			// A reconcile revokes once: of several it is the last.
			revoked = slices.DeleteFunc(revoked, func(r int) bool { return p.callsInOrder(r, i) })
			revoked = append(revoked, i)
		}
	}
	if len(revoked) != 1 { // of several nobody knows which
		return
	}
	n, _ := p.place(revoked[0])
	p.ops[t.op].Call = min(p.ops[t.op].Call, p.ops[n].Call)
	if doubt[revoked[0]] || p.answeredTooLate(revoked[0], t.source) || p.anotherBetween(revoked[0], t.source) {
		return
	}
	p.ops[t.op].Return = max(p.ops[t.op].Call, min(p.ops[t.op].Return, p.ops[n].Return))
	p.after(n, t.op, "the controller's order (a target is deregistered because its pod is gone)")
}

// stillWanted reports whether the process granted a rule for the port after the revoke and before it deregistered, or may have: then it
// did not revoke because the port's pods are gone.
func (p *problem) stillWanted(revoke int, t targetCall, port *port) (is, may bool) {
	op := &p.c.Operations[t.source]
	early := p.c.Releases[op.Process].Version.RevokesFirst()
	for i := p.since(p.c.Operations[revoke].Call.Add(-sameReconcile)); i < len(p.c.Operations) && p.c.Operations[i].Call <= op.Return; i++ {
		n, known := p.place(i)
		if !known || p.c.Operations[i].Process != op.Process || p.effects[n].result != changed || !p.asksFor(i, port) ||
			p.callsInOrder(t.source, i) || p.callsInOrder(i, revoke) {
			continue
		}
		may = true
		is = is || early || p.callsInOrder(revoke, i)
	}
	return is, may
}

// answeredTooLate reports whether call b was sent before call a was answered, so that they are of two reconciles: one makes a call after
// the other.
func (p *problem) answeredTooLate(a, b int) bool {
	first, then := &p.c.Operations[a], &p.c.Operations[b]
	if exact(first) && exact(then) {
		return first.Return > then.Call
	}
	return first.After >= 0 && then.After >= 0 && !p.callsInOrder(a, b)
}

// anotherBetween reports whether the process made another call on rules between two of its calls, and had the answer.
func (p *problem) anotherBetween(a, b int) bool {
	first, then := &p.c.Operations[a], &p.c.Operations[b]
	if !exact(first) || !exact(then) {
		return false
	}
	for i := p.since(first.Return); i < len(p.c.Operations) && p.c.Operations[i].Call < then.Call; i++ {
		op := &p.c.Operations[i]
		if op.Process == then.Process && op.TargetGroup == "" && op.Return < then.Call && (isRead(op) || op.Op == traces.RevokeSecurityGroupIngress) {
			return true
		}
	}
	return false
}

// exact reports whether a recorder saw the call begin and end, and did not make its interval of whole seconds.
func exact(op *traces.Operation) bool {
	const s = int64(time.Second)
	return op.Stamp == 0 && op.After < 0 && op.Return != traces.Forever && (int64(op.Call)%s != 0 || (int64(op.Return)+1)%s != 0)
}

func isRead(op *traces.Operation) bool {
	return op.Op == traces.DescribeSecurityGroups || op.Op == traces.DescribeSecurityGroupRules
}

// fits says how well a grant suits the reconcile that registers a target on the port: best is the one whose rule begins or
// ends there, and of those the one with the fewest ports.
func (p *problem) fits(n int, port *port) int {
	best := 0
	for _, it := range p.effects[n].items {
		r := p.u.facts[it.managed].rule
		if !port.managed.Has(it.managed) {
			continue
		}
		fit := 1<<17 - int(r.ToPort-r.FromPort)
		if r.FromPort == port.Port || r.ToPort == port.Port {
			fit += 1 << 18
		}
		best = max(best, fit)
	}
	return best
}
