package controllerlog

import (
	"fmt"
	"slices"
	"strings"

	"linearize.example/traces"
)

// call is an operation whose end is still to be found.
type call struct {
	index int
	key   string
	op    string
	// managed calls are made under the process's one mutex.
	managed bool
	at      span
	blame   *failure
}

// maxUnresolved bounds how many calls without a known result wait for a late error line.
const maxUnresolved = 32

// managedLabel is the key of the label in the description of managed rules (pkg/networking/networking_manager.go).
const managedLabel = "elbv2.k8s.aws/targetGroupBinding="

// start begins a call at a line.
func (r *reader) start(p *process, e *entry, op traces.Operation, key string) *call {
	c := &call{key: key, op: op.Op, at: e.at, managed: isManaged(op.Permissions)}
	var over []*call
	for _, q := range p.open {
		if q.key == key || q.managed && c.managed {
			over = append(over, q)
		}
	}
	slices.SortFunc(over, func(a, b *call) int { return a.index - b.index })
	for _, q := range over {
		r.extend(q, e.at)
		r.over(p, q)
		p.unresolved = append(p.unresolved, q)
	}
	if n := len(p.unresolved) - maxUnresolved; n > 0 {
		p.unresolved = slices.Delete(p.unresolved, 0, n)
	}
	delete(p.blamed, key)
	c.index = r.append(p, e, op, key)
	p.open[key] = c
	return c
}

// append adds an operation that begins at a line, pending until a later line tells more.
func (r *reader) append(p *process, e *entry, op traces.Operation, key string) int {
	op.ID = r.id()
	op.Process = p.name
	op.Caller = p.caller
	op.Call, op.Return = e.at.lo.Add(-r.opts.Skew), traces.Forever
	op.After = r.predecessor(p, key)
	op.Sources = []traces.Source{r.source()}
	r.h.Operations = append(r.h.Operations, op)
	return len(r.h.Operations) - 1
}

// maxChain bounds the walk along After.
const maxChain = 64

// predecessor chooses the operation to name in After: the newest of the process, if its own predecessors lead to the
// newest on the same group or target group, and else that one, whose order matters more.
func (r *reader) predecessor(p *process, key string) int {
	same, ok := p.lastEnded[key]
	if !ok {
		return p.lastAny
	}
	i := p.lastAny
	if i >= 0 && r.h.Operations[same].Return < r.h.Operations[i].Call {
		return i // their times tell the order of the other two
	}
	for n := 0; n < maxChain && i > same; n++ {
		i = r.h.Operations[i].After
	}
	if i == same {
		return p.lastAny
	}
	return same
}

// over takes a call out of the open ones: everything that this process sends from now on, it sends afterwards.
func (r *reader) over(p *process, c *call) {
	delete(p.open, c.key)
	if p.lastEnded[c.key] <= c.index {
		p.lastEnded[c.key] = c.index
	}
	p.lastAny = c.index
}

// extend bounds the call's interval by a later line. A clock that was set back meanwhile widens it to both readings.
func (r *reader) extend(c *call, end span) {
	op := &r.h.Operations[c.index]
	op.Call = min(c.at.lo, end.lo).Add(-r.opts.Skew)
	op.Return = max(c.at.hi, end.hi).Add(r.opts.Skew)
}

// succeed ends a call at the line that says so. It returns false where no such call began in this log.
func (r *reader) succeed(p *process, e *entry, key, op string) bool {
	c := p.open[key]
	if c == nil || c.op != op {
		c = nil
		if b := p.blamed[key]; b != nil && b.op == op {
			// The error was somebody else's, who wrote it after this call began.
			c = b
			delete(p.blamed, key)
			o := &r.h.Operations[c.index]
			o.Sources = slices.DeleteFunc(o.Sources, func(s traces.Source) bool { return s == b.blame.from })
			defer r.blame(p, e, *b.blame)
		} else if i := slices.IndexFunc(p.unresolved, func(q *call) bool { return q.key == key && q.op == op }); i >= 0 {
			c = p.unresolved[i]
			p.unresolved = slices.Delete(p.unresolved, i, i+1)
			r.overlapped(c)
		}
		if c == nil {
			return false
		}
	}
	o := &r.h.Operations[c.index]
	o.Outcome, o.Error, o.RequestID = traces.Succeeded, "", ""
	o.Sources = append(o.Sources, r.source())
	r.extend(c, e.at)
	r.over(p, c)
	return true
}

// overlapped takes back that later calls came after this one: its end stands behind their start, so that they were not
// made by one process, although nothing in the log tells two apart.
func (r *reader) overlapped(c *call) {
	r.overlapping++
	for i := c.index + 1; i < len(r.h.Operations); i++ {
		if o := &r.h.Operations[i]; o.After == c.index {
			o.After = r.h.Operations[c.index].After
		}
	}
}

// blame finds the call that failed so, and ends it: an open one, else the newest that is over without a result.
func (r *reader) blame(p *process, e *entry, f failure) bool {
	var c *call
	for _, q := range p.open {
		if f.matches(q.op) && (c == nil || q.index > c.index) {
			c = q
		}
	}
	wasOpen := c != nil
	if c == nil {
		for i := len(p.unresolved) - 1; i >= 0; i-- {
			if f.matches(p.unresolved[i].op) {
				c = p.unresolved[i]
				p.unresolved = slices.Delete(p.unresolved, i, i+1)
				break
			}
		}
		if c == nil {
			return false
		}
	}
	r.fail(p, c, e, f, wasOpen)
	return true
}

// fail records the failure of a call. Without a code, AWS did not answer, and the call may still take effect.
func (r *reader) fail(p *process, c *call, e *entry, f failure, wasOpen bool) {
	o := &r.h.Operations[c.index]
	o.Sources = append(o.Sources, f.from)
	o.RequestID = f.requestID
	if f.code == "" {
		o.Return = traces.Forever
		r.unanswered[c.index] = true
	} else {
		o.Outcome, o.Error = traces.Failed, f.code
	}
	if !wasOpen {
		return
	}
	if f.code != "" {
		r.extend(c, e.at)
	}
	r.over(p, c)
	c.blame = &f
	p.blamed[c.key] = c
}

// retried ends the call after whose failure the network part begins again. The line names neither the call nor the
// code, but only three codes lead to it (security_group_reconciler.go, shouldRetryWithoutCache), and only a full
// group makes the second attempt revoke first.
func (r *reader) retried(p *process, e *entry, revokeFirst bool) {
	var c *call
	for _, q := range p.open {
		switch {
		case !slices.Contains(ingressOps, q.op), revokeFirst && q.op != traces.AuthorizeSecurityGroupIngress:
			continue
		case c != nil:
			return // two groups are being changed, and nothing tells which
		}
		c = q
	}
	if c == nil {
		return
	}
	f := failure{code: "InvalidPermission.Duplicate", from: r.source()}
	switch {
	case c.op == traces.RevokeSecurityGroupIngress:
		f.code = "InvalidPermission.NotFound"
	case revokeFirst:
		f.code = "RulesPerSecurityGroupLimitExceeded"
	}
	r.fail(p, c, e, f, true)
	delete(p.blamed, c.key)
}

func isManaged(permissions []traces.Permission) bool {
	for _, p := range permissions {
		if !strings.Contains(p.Description, managedLabel) {
			return false
		}
	}
	return len(permissions) > 0
}

// settle is the last step: it takes back what an excerpt only seems to prove, and cuts After loose from calls that may
// still take effect.
func (r *reader) settle() {
	calls := 0
	for i := r.first; i < len(r.h.Operations); i++ {
		o := &r.h.Operations[i]
		excerpt := slices.Contains(ingressOps, o.Op) && !r.ingressEnds || slices.Contains(targetOps, o.Op) && !r.targetEnds
		if o.Outcome == traces.Pending && (excerpt || r.unanswered[i]) {
			o.Return = traces.Forever
		}
		if excerpt {
			calls++
		}
		for o.After >= r.first && r.h.Operations[o.After].Return == traces.Forever {
			o.After = r.h.Operations[o.After].After
		}
	}
	if calls > 0 {
		r.note("truncated-capture", fmt.Sprintf("the log has lines for the start of %d calls but none for the end of such "+
			"a call: it is an excerpt, and which of them succeeded is unknown", calls))
	}
}
