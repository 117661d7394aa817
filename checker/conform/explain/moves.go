package explain

import (
	"linearize.example/checker/conform"
	"linearize.example/checker/conform/engine"
	"linearize.example/model"
	"linearize.example/traces"
)

// AWS's error codes that the controller tells apart.
const (
	duplicate = "InvalidPermission.Duplicate"
	notFound  = "InvalidPermission.NotFound"
	limitHit  = "RulesPerSecurityGroupLimitExceeded"
)

// result is how a call of the specification ends.
type result uint8

const (
	ok result = iota
	isDuplicate
	isNotFound
	isLimit
	otherError
	lost // the call took effect, and nobody told the controller
)

func (r result) fits(op *operation) bool {
	switch op.outcome {
	case traces.Pending:
		return true
	case traces.Succeeded:
		return r == ok || r == lost
	}
	switch op.err {
	case "":
		return r != ok && r != lost
	case duplicate:
		return r == isDuplicate
	case notFound:
		return r == isNotFound
	case limitHit:
		return r == isLimit
	}
	return r == otherError
}

// matches lists the enabled operations that a call by a process can be.
func (x *search) matches(n *node, enabled []int, p int, k kind, rules engine.Set, r result) []int {
	var out []int
	for _, i := range enabled {
		op := &x.ops[i]
		if op.kind == k && !op.foreign && r.fits(op) && (k >= describe && op.outcome == traces.Failed || x.targets[i] == rules) && x.mayBe(n, p, op) {
			out = append(out, i)
		}
	}
	return out
}

// mayBe says whether the process can be the operation's caller.
func (x *search) mayBe(n *node, p int, op *operation) bool {
	life := n.lives[p-1]
	return len(x.callers) < 2 || life == 0 || int(life) == x.callerNumber(op)
}

func (x *search) callerNumber(op *operation) int {
	for i, c := range x.callers {
		if c == op.caller {
			return min(i+1, 255)
		}
	}
	return 0
}

// hidden collects the successors by an action that nobody sees.
func (x *search) hidden(n *node, a model.Action, args conform.Args, faults int) {
	outs := x.d.Take(a, args)
	for w := x.d.Model.Words; len(outs) > 0; outs = outs[w:] {
		x.raw = append(x.raw, raw{x.clone(outs[:w]), label{action: a, args: args, ops: [2]int32{-1, -1}}, faults, n.lives})
	}
}

// visible collects the successors by a call, one for each operation that it can be.
func (x *search) visible(n *node, enabled []int, a model.Action, args conform.Args, k kind, rules engine.Set, r result) {
	outs := x.d.Take(a, args)
	if len(outs) == 0 {
		return
	}
	ops := x.matches(n, enabled, args.Process, k, rules, r)
	for _, i := range ops {
		x.see(n, outs[:x.d.Model.Words], label{action: a, args: args, ops: [2]int32{int32(i), -1}})
	}
	if len(ops) == 0 && r != otherError && r != lost {
		x.missed(n, attempt{n.done, k, rules, r})
	}
}

// missed notes a call that the capture does not show, with the length of the shortest way to it.
func (x *search) missed(n *node, a attempt) {
	if cost, ok := x.attempts[a]; !ok || n.cost < cost {
		x.attempts[a] = n.cost
	}
}

// see adds one successor that is seen. What was hidden since the last such step is forgotten.
func (x *search) see(n *node, state []uint64, l label) {
	lives := n.lives
	if len(x.callers) > 1 && l.args.Process > 0 {
		lives[l.args.Process-1] = uint8(x.callerNumber(&x.ops[l.ops[0]]))
	}
	x.raw = append(x.raw, raw{x.clone(state), l, 0, lives})
}

// look collects the successors by an action that describes the group. Where describes were recorded each is an operation.
func (x *search) look(n *node, enabled []int, a model.Action, args conform.Args) {
	answers := x.d.Answers()
	outs := x.d.Take(a, args)
	words := x.d.Model.Words
	if len(outs) == 0 {
		return
	}
	if len(outs)/words != len(answers) { // only those that show what is waited for
		outs = append([]uint64(nil), outs...)
		answers = nil
		for i := 0; i < len(outs); i += words {
			x.d.Load(outs[i : i+words])
			answers = append(answers, x.d.MemoryOf(args.Process).Cache)
		}
		x.d.Load(n.state)
	}
	for i, v := range answers {
		l := label{action: a, args: args, answer: v, answered: true, ops: [2]int32{-1, -1}}
		state := outs[i*words : (i+1)*words]
		if !x.describes || a == model.ListTagged {
			x.raw = append(x.raw, raw{x.clone(state), l, x.d.Faults(), n.lives})
			continue
		}
		ops := x.matches(n, enabled, args.Process, describe, v, ok)
		for _, op := range ops {
			l.ops[0] = int32(op)
			x.see(n, state, l)
		}
		if len(ops) == 0 {
			x.missed(n, attempt{n.done, describe, v, ok})
		}
	}
}

// expand collects and places the successors that are worth trying.
func (x *search) expand(n *node, count int) {
	d, env := x.d, &x.world.env
	d.Load(n.state)
	enabled := x.enabled(n.done)
	for p := 1; p <= env.processes; p++ {
		for w := 1; w <= env.workers; w++ {
			if x.alone(n, p, w) {
				x.place(n, count)
				return
			}
		}
	}
	for p := 1; p <= env.processes; p++ {
		idle := 0
		busy := false
		for w := env.workers; w >= 1; w-- {
			if d.WorkerOf(p, w).Step == conform.AtIdle {
				idle = w
				continue
			}
			busy = true
			x.work(n, enabled, conform.Args{Process: p, Worker: w})
		}
		leads := d.Leader() == p
		if leads && (!busy || env.crashes) && !x.fresh(p) {
			x.restart(n, model.Crash, p)
		}
		if !leads && env.leaderChanges {
			x.restart(n, model.LeaderChange, p)
		}
		if leads && !busy && env.severalGroups {
			x.expire(n, p)
		}
		if leads && idle > 0 {
			x.reconciles(n, count, p, idle)
			d.Load(n.state)
		}
	}
	if env.delayed && d.Late().Some() {
		r := isNotFound
		if d.Late().In(d.Rules()) || x.world.vpc {
			r = ok
		}
		late := d.Late()
		for _, i := range x.matches(n, enabled, 1, revoke, late, r) {
			outs := d.Take(model.DelayedRevokeArrives, conform.Args{})
			x.see(n, outs, label{action: model.DelayedRevokeArrives, ops: [2]int32{int32(i), -1}})
		}
	}
	x.strangers(n, count, enabled)
	x.place(n, count)
}

// alone takes a step that touches nothing that anybody else looks at, before all others: the release of the mutex, and the
// registration of targets that nobody recorded.
func (x *search) alone(n *node, p, w int) bool {
	d := x.d
	me := d.WorkerOf(p, w)
	args := conform.Args{Process: p, Worker: w}
	switch me.Step {
	case conform.AtUnlock:
		x.hidden(n, model.Unlock, args, d.Faults())
		return true
	case conform.AtRegister:
		if x.watch.Has(me.Tgb) {
			return false
		}
		x.hidden(n, model.Register, args, d.Faults())
		return true
	}
	return false
}

// fresh says whether a process knows nothing, as after a start.
func (x *search) fresh(p int) bool {
	m := x.d.MemoryOf(p)
	if m.Cached || m.Tracked {
		return false
	}
	for t := range x.world.tgbs {
		if m.Computed[t] != conform.Unknown {
			return false
		}
	}
	for w := 1; w <= x.world.env.workers; w++ {
		if x.d.WorkerOf(p, w).Step != conform.AtIdle {
			return false
		}
	}
	return true
}

// restart begins another life of a process, unless the capture shows that the same one was running before and is later.
func (x *search) restart(n *node, a model.Action, p int) {
	for _, life := range x.lives {
		if n.done.has(life[0]) && !n.done.has(life[1]) && (len(x.callers) < 2 || a == model.Crash && x.mayBe(n, p, &x.ops[life[0]])) {
			return
		}
	}
	from := len(x.raw)
	x.hidden(n, a, conform.Args{Process: p}, x.d.Faults())
	for i := from; i < len(x.raw); i++ {
		x.raw[i].life[p-1] = 0
	}
}

// expire lets a cache entry expire, once no read is old any more, unless reads may be old for that long.
func (x *search) expire(n *node, p int) {
	d := x.d
	switch {
	case !d.MemoryOf(p).Cached:
	case x.world.env.outlives || len(d.Old()) == 0:
		x.hidden(n, model.ExpireCache, conform.Args{Process: p}, d.Faults())
	default:
		x.hidden(n, model.Settle, conform.Args{}, d.Faults())
	}
}

// work takes the steps of a busy worker.
func (x *search) work(n *node, enabled []int, args conform.Args) {
	d, env := x.d, &x.world.env
	p, w := args.Process, args.Worker
	me := d.WorkerOf(p, w)
	faults := d.Faults()
	switch me.Step {
	case conform.AtLookup:
		x.look(n, enabled, model.LookUpGroup, args)
	case conform.AtSave:
		x.hidden(n, model.SaveLookUp, args, faults)
	case conform.AtLock:
		x.hidden(n, model.Lock, args, faults)
	case conform.AtFetch:
		x.hidden(n, model.ReadCache, args, faults)
		x.expire(n, p)
		x.look(n, enabled, model.Describe, args)
		x.failedLook(n, enabled, args)
	case conform.AtReload:
		x.look(n, enabled, model.Reload, args)
		x.failedLook(n, enabled, args)
	case conform.AtAuthorize:
		asked := d.ToAuthorize(p, w)
		x.visible(n, enabled, model.AuthorizeOk, args, authorize, asked, ok)
		x.visible(n, enabled, model.AuthorizeDuplicate, args, authorize, asked, isDuplicate)
		x.visible(n, enabled, model.AuthorizeLimit, args, authorize, asked, isLimit)
		x.visible(n, enabled, model.AuthorizeFails, args, authorize, asked, otherError)
		if x.mayLose(enabled) {
			x.visible(n, enabled, model.AuthorizeAnswerLost, args, authorize, asked, lost)
		}
		if x.world.design.WriteThrough {
			x.expire(n, p)
		}
	case conform.AtRevoke:
		asked := d.ToRevoke(p, w)
		x.visible(n, enabled, model.RevokeOk, args, revoke, asked, ok)
		x.visible(n, enabled, model.RevokeNotFound, args, revoke, asked, isNotFound)
		x.visible(n, enabled, model.RevokeFails, args, revoke, asked, otherError)
		if x.mayLose(enabled) {
			x.visible(n, enabled, model.RevokeAnswerLost, args, revoke, asked, lost)
		}
		if env.delayed && faults == 0 {
			x.hidden(n, model.RevokeDelayed, args, 1)
		}
		if x.world.design.WriteThrough {
			x.expire(n, p)
		}
	case conform.AtSeeGrant:
		x.look(n, enabled, model.SeeGrant, args)
	case conform.AtReread:
		x.look(n, enabled, model.Reread, args)
	case conform.AtSeeRevoke:
		x.look(n, enabled, model.SeeRevoke, args)
	case conform.AtTrack:
		x.look(n, enabled, model.ListTagged, args)
	case conform.AtRegister:
		x.register(n, enabled, args)
	}
}

// mayLose says whether an answer may be lost: where the environment says so, or where none was recorded.
func (x *search) mayLose(enabled []int) bool {
	if x.world.env.answers {
		return true
	}
	for _, i := range enabled {
		if x.ops[i].outcome == traces.Pending {
			return true
		}
	}
	return false
}

func (x *search) failedLook(n *node, enabled []int, args conform.Args) {
	if x.describes {
		x.visible(n, enabled, model.DescribeFails, args, describe, engine.Set{}, otherError)
	} else if x.world.env.failures && x.d.Faults() == 0 {
		x.hidden(n, model.DescribeFails, args, 1)
	}
}

// register takes a registration of recorded targets: what changes is one operation or two. A binding of the specification
// has one pod at most; where a new pod takes the place of another, one of the two calls may be missing.
func (x *search) register(n *node, enabled []int, args conform.Args) {
	d := x.d
	t := d.WorkerOf(args.Process, args.Worker).Tgb
	_, before, _ := d.PodOf(t)
	outs := d.Take(model.Register, args)
	if len(outs) == 0 {
		return
	}
	state := x.clone(outs)
	d.Load(state)
	_, after, _ := d.PodOf(t)
	d.Load(n.state)
	l := label{action: model.Register, args: args, ops: [2]int32{-1, -1}}
	if before == after {
		x.raw = append(x.raw, raw{state, l, d.Faults(), n.lives})
		return
	}
	var gone, come []int
	for _, i := range enabled {
		op := &x.ops[i]
		if op.port != x.ports[t] || !x.mayBe(n, args.Process, op) {
			continue
		}
		if op.kind == deregister && before != 0 {
			gone = append(gone, i)
		}
		if op.kind == register && after != 0 {
			come = append(come, i)
		}
	}
	for _, i := range append(gone, come...) {
		l.ops = [2]int32{int32(i), -1}
		x.see(n, state, l)
	}
	for _, i := range gone {
		for _, j := range x.enabled(x.finish(n.done, int32(i))) {
			if op := &x.ops[j]; op.kind == register && after != 0 && op.port == x.ports[t] && x.mayBe(n, args.Process, op) {
				l.ops = [2]int32{int32(i), int32(j)}
				x.see(n, state, l)
			}
		}
	}
}

// strangers takes the changes by others than the controller.
func (x *search) strangers(n *node, count int, enabled []int) {
	for _, i := range enabled {
		op := &x.ops[i]
		switch {
		case op.kind != revoke || !op.foreign && !x.world.env.external:
		case op.foreign && op.outcome == traces.Failed:
			x.see(n, n.state, label{action: model.ExternalRevoke, ops: [2]int32{int32(i), -1}})
		case op.outcome == traces.Succeeded:
			x.remove(n, count, i)
		}
	}
}

// remove takes the rules of one call away; a step of the specification is one rule.
func (x *search) remove(n *node, count, i int) {
	at := n
	for rest := x.targets[i]; rest.Some(); {
		l := label{action: model.ExternalRevoke, args: conform.Args{Rule: rest.Pop()}, ops: [2]int32{-1, -1}}
		x.d.Load(at.state)
		outs := x.d.Take(model.ExternalRevoke, l.args)
		if len(outs) == 0 {
			break
		}
		r := raw{x.clone(outs), l, x.d.Faults(), n.lives}
		if rest.Some() {
			at = &node{state: r.state, done: at.done, lives: at.lives, left: at.left, cost: at.cost + 1, parent: at, label: l}
			continue
		}
		r.label.ops[0], r.faults = int32(i), 0
		x.put(at, count, &r)
	}
	x.d.Load(n.state)
}
