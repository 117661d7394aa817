package explain

import (
	"slices"

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
func (x *search) matches(tr *trail, p int, k kind, rules engine.Set, r result) []int {
	var out []int
	for _, i := range tr.enabled {
		op := &x.ops[i]
		if op.kind == k && !op.foreign && r.fits(op) && (k >= describe && op.outcome == traces.Failed || x.targets[i] == rules) && x.mayBe(tr, p, op) {
			out = append(out, i)
		}
	}
	return out
}

// mayBe says whether the process can be the operation's caller.
func (x *search) mayBe(tr *trail, p int, op *operation) bool {
	life := tr.lives[p-1]
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

// trail is a way from a node to the state after it, on which nothing was seen yet.
type trail struct {
	n       *node
	count   int // operations done
	enabled []int
	state   []uint64
	wants   [2]wants
	lives   [2]uint8
	steps   []label
	cost    int32
}

// then extends a trail by one step.
func (tr *trail) then(state []uint64, l label) trail {
	next := *tr
	next.state, next.steps, next.cost = state, append(tr.steps, l), tr.cost+1
	if l.memory != 0 {
		next.wants[l.args.Process-1] = l.memory
	}
	return next
}

// scratch holds states that are needed for the time of a call.
type scratch struct {
	words, used int
	chunks      [][]uint64
}

// copy returns a copy of some states that lasts until used is set back.
func (s *scratch) copy(w []uint64) []uint64 {
	const size = 1 << 12
	for n := len(w); ; s.used = (s.used/size + 1) * size {
		at := s.used / size
		if at == len(s.chunks) {
			s.chunks = append(s.chunks, make([]uint64, size))
		}
		if in := s.used % size; in+n <= size {
			s.used += n
			out := s.chunks[at][in : in+n : in+n]
			copy(out, w)
			return out
		}
	}
}

// copy returns a copy of some states that lasts until release.
func (x *search) copy(w []uint64) []uint64 {
	out := x.scratch.copy(w)
	for i := 0; i < len(out); i += x.scratch.words {
		if x.loaded == &out[i] {
			x.loaded = nil
		}
	}
	return out
}

// load has the driver look at a state, unless it does.
func (x *search) load(state []uint64) {
	if x.loaded != &state[0] {
		x.d.Load(state)
		x.loaded = &state[0]
	}
}

// canonical rewrites a state so that equal situations are equal states.
func (x *search) canonical(state []uint64) {
	x.d.Canonical(state, x.watch, 0)
	x.loaded = nil
}

// take returns the successors of a trail's state by one action, one after the other.
func (x *search) take(tr *trail, a model.Action, args conform.Args) []uint64 {
	x.load(tr.state)
	return x.copy(x.d.Take(a, args))
}

// hidden goes on with the successors by an action that nobody sees.
func (x *search) hidden(tr *trail, a model.Action, args conform.Args) {
	defer x.release(x.scratch.used)
	outs := x.take(tr, a, args)
	for w := x.scratch.words; len(outs) > 0; outs = outs[w:] {
		x.proceed(tr.then(outs[:w], label{action: a, args: args, ops: [2]int32{-1, -1}}))
	}
}

func (x *search) release(used int) { x.scratch.used = used }

// proceed goes on after a step that was not seen. Where nothing can come between the steps of a reconcile the next one is taken
// at once, so that no node is made of what lies between.
func (x *search) proceed(tr trail) {
	if x.over == "" {
		x.over = x.budget.over()
	}
	if x.over != "" {
		return
	}
	x.budget.used++
	if args, ok := x.goesOn(&tr); ok {
		x.work(&tr, args)
		return
	}
	x.put(&tr)
}

// goesOn says whether the worker that took the last step takes the next one at once.
func (x *search) goesOn(tr *trail) (args conform.Args, ok bool) {
	l := &tr.steps[len(tr.steps)-1]
	args = conform.Args{Process: l.args.Process, Worker: l.args.Worker}
	if !x.joined || args.Worker == 0 || describes(l.action) && !x.quiet {
		return args, false
	}
	x.load(tr.state)
	switch me := x.d.WorkerOf(args.Process, args.Worker); me.Step {
	case conform.AtIdle, conform.AtLock:
		return args, x.single && me.Step == conform.AtLock
	case conform.AtRegister:
		return args, x.single && !x.resets.Has(me.Tgb) || !x.lingers(tr, me)
	}
	return args, true
}

// lingers says whether what a worker does with targets will be seen, or whether its checkpoint may be emptied before.
func (x *search) lingers(tr *trail, me *conform.Worker) bool {
	if x.resets.Has(me.Tgb) {
		return true
	}
	if !x.watch.Has(me.Tgb) {
		return false
	}
	_, registered, _ := x.d.PodOf(me.Tgb)
	return registered != me.Pod || registered == 0 && x.recorded(tr, me.Tgb, false, true)
}

// visible goes on with the successors by a call, one for each operation that it can be.
func (x *search) visible(tr *trail, a model.Action, args conform.Args, k kind, rules engine.Set, r result) {
	defer x.release(x.scratch.used)
	outs := x.take(tr, a, args)
	if len(outs) == 0 {
		return
	}
	ops := x.matches(tr, args.Process, k, rules, r)
	for _, i := range ops {
		x.see(tr, outs[:x.scratch.words], label{action: a, args: args, ops: [2]int32{int32(i), -1}})
	}
	if len(ops) == 0 && r != otherError && r != lost {
		x.missed(tr, attempt{tr.n.done, k, rules, r})
	}
}

// missed notes a call that the capture does not show, with the length of the shortest way to it.
func (x *search) missed(tr *trail, a attempt) {
	if cost, ok := x.attempts[a]; !ok || tr.cost < cost {
		x.attempts[a] = tr.cost
	}
}

// see makes a node of one successor that is seen.
func (x *search) see(tr *trail, state []uint64, l label) {
	next := tr.then(state, l)
	if len(x.callers) > 1 && l.args.Process > 0 {
		next.lives[l.args.Process-1] = uint8(x.callerNumber(&x.ops[l.ops[0]]))
	}
	x.put(&next)
}

// put makes a node of the end of a trail.
func (x *search) put(tr *trail) {
	c := node{state: tr.state, wants: tr.wants, done: tr.n.done, lives: tr.lives, left: tr.n.left, cost: tr.cost, parent: tr.n}
	count := tr.count
	if last := &tr.steps[len(tr.steps)-1]; last.seen() {
		c.done = x.finish(c.done, last.ops[:]...)
		for _, i := range last.ops {
			if i >= 0 {
				count++
				if !x.ops[i].optional() {
					c.left--
				}
			}
		}
	}
	defer x.release(x.scratch.used)
	c.state = x.copy(c.state)
	x.anonymous(c.state)
	x.canonical(c.state)
	x.tidy(c.state, &c.wants)
	if x.known(count, &c) {
		return
	}
	steps := tr.steps
	if l, ok := x.widen(&c); ok {
		c.wants[l.args.Process-1] = l.memory
		if x.known(count, &c) {
			return
		}
		steps = append(steps, l)
	}
	c.state, c.steps = slices.Clone(c.state), slices.Clone(steps)
	x.insert(count, &c)
}

// shown says whether the capture shows something of a binding itself: a registration of its targets, or that it was skipped.
func (x *search) shown(tgb int) bool { return x.watch.Has(tgb) || x.d.Skipped.Has(tgb) }

// anonymous forgets whose reconcile is in flight, where nothing of the binding itself is seen and nothing else is in flight: what is still to come does not depend on it.
func (x *search) anonymous(state []uint64) {
	if !x.joined || x.nobody == 0 {
		return
	}
	for p := 1; p <= x.world.env.processes; p++ {
		for w := 1; w <= x.world.env.workers; w++ {
			x.load(state)
			me := x.d.WorkerOf(p, w)
			if me.Step == conform.AtIdle || me.Step == conform.AtLock && !x.single || x.shown(me.Tgb) || me.Tgb != x.nobody && x.inFlight(p, x.nobody) {
				continue
			}
			x.d.Anonymize(state, p, w, x.nobody)
			x.loaded = nil
		}
	}
}

// tidy writes what is typical of wants into a state, and forgets what a process remembers that neither leads nor is busy: when
// it leads again, it starts with nothing.
func (x *search) tidy(state []uint64, w *[2]wants) {
	for p := 1; p <= x.world.env.processes; p++ {
		x.load(state)
		if p != x.d.Leader() && !x.busy(p) {
			x.d.ForgetAll(state, p)
			x.loaded = nil
			w[p-1] = x.fresh()
		}
		x.compute(state, p, w[p-1])
	}
}

// busy says whether a process of the loaded state has a reconcile in flight.
func (x *search) busy(p int) bool {
	for w := 1; w <= x.world.env.workers; w++ {
		if x.d.WorkerOf(p, w).Step != conform.AtIdle {
			return true
		}
	}
	return false
}

// look goes on with the successors by an action that describes the group. Where describes were recorded each is an operation.
func (x *search) look(tr *trail, a model.Action, args conform.Args) {
	defer x.release(x.scratch.used)
	x.load(tr.state)
	answers := slices.Clone(x.d.Answers())
	outs := x.take(tr, a, args)
	words := x.scratch.words
	if len(outs)/words != len(answers) { // only those that show what is waited for
		answers = answers[:0]
		for i := 0; i < len(outs); i += words {
			x.load(outs[i : i+words])
			answers = append(answers, x.d.MemoryOf(args.Process).Cache)
		}
	}
	for i, v := range answers {
		l := label{action: a, args: args, answer: v, answered: true, ops: [2]int32{-1, -1}}
		state := outs[i*words : (i+1)*words]
		if !x.describes || a == model.ListTagged && x.listed {
			x.proceed(tr.then(state, l))
		}
		if !x.describes {
			continue
		}
		ops := x.matches(tr, args.Process, describe, v, ok)
		for _, op := range ops {
			l.ops[0] = int32(op)
			x.see(tr, state, l)
		}
		if len(ops) == 0 {
			x.missed(tr, attempt{tr.n.done, describe, v, ok})
		}
	}
}

// wait describes the group once more, because the answer does not show what is waited for. It is no step of the specification.
func (x *search) wait(tr *trail, a model.Action, args conform.Args) {
	if !x.describes {
		return
	}
	defer x.release(x.scratch.used)
	var shows []engine.Set
	for outs := x.take(tr, a, args); len(outs) > 0; outs = outs[x.scratch.words:] {
		x.load(outs[:x.scratch.words])
		shows = append(shows, x.d.MemoryOf(args.Process).Cache)
	}
	x.load(tr.state)
	for _, v := range slices.Clone(x.d.Answers()) {
		if slices.Contains(shows, v) {
			continue
		}
		l := label{action: model.ExternalRevoke, args: args, answer: v, answered: true}
		l.args.Rule = noRule
		for _, i := range x.matches(tr, args.Process, describe, v, ok) {
			l.ops = [2]int32{int32(i), -1}
			x.see(tr, tr.state, l)
		}
	}
}

// expand makes nodes of the steps from a node that are worth trying.
func (x *search) expand(n *node, count int) {
	d, env := x.d, &x.world.env
	tr := &trail{n: n, count: count, enabled: x.enabled(n.done), state: n.state, wants: n.wants, lives: n.lives, cost: n.cost}
	if x.over = x.budget.over(); x.over != "" {
		return
	}
	x.budget.used++
	for p := 1; p <= env.processes && !x.single; p++ {
		for w := 1; w <= env.workers; w++ {
			if x.alone(tr, conform.Args{Process: p, Worker: w}) {
				return
			}
		}
	}
	x.observed(tr)
	for p := 1; p <= env.processes; p++ {
		idle := 0
		for w := env.workers; w >= 1; w-- {
			x.load(n.state)
			if d.WorkerOf(p, w).Step == conform.AtIdle {
				idle = w
				continue
			}
			x.work(tr, conform.Args{Process: p, Worker: w})
		}
		x.load(n.state)
		leads, busy, begins := d.Leader() == p, x.busy(p), !x.joined || !x.held(p)
		if leads && (!busy || env.crashes) && !x.startedAnew(tr, p) {
			x.restart(tr, model.Crash, p)
		}
		if !leads && env.leaderChanges {
			x.restart(tr, model.LeaderChange, p)
		}
		if leads && !busy && env.severalGroups {
			x.expire(tr, conform.Args{Process: p})
		}
		if leads && idle > 0 && x.verifies {
			x.decides(tr, p)
		}
		if leads && idle > 0 && begins {
			x.reconciles(tr, p, idle)
		}
	}
	x.load(n.state)
	if late := d.Late(); env.delayed && late.Some() {
		r := isNotFound
		if late.In(d.Rules()) || x.world.vpc {
			r = ok
		}
		x.visible(tr, model.DelayedRevokeArrives, conform.Args{Process: 1}, revoke, late, r)
	}
	x.strangers(tr)
}

// alone takes a step that touches nothing that anybody else looks at, before all others: the release of the mutex, and the
// registration of targets that nobody recorded.
func (x *search) alone(tr *trail, args conform.Args) bool {
	x.load(tr.state)
	switch me := x.d.WorkerOf(args.Process, args.Worker); me.Step {
	case conform.AtUnlock:
		x.hidden(tr, model.Unlock, args)
		return true
	case conform.AtRegister:
		if x.lingers(tr, me) {
			return false
		}
		x.hidden(tr, model.Register, args)
		return true
	}
	return false
}

// held says whether a worker of the loaded state has the mutex of a process, or waits for it.
func (x *search) held(p int) bool {
	for w := 1; w <= x.world.env.workers; w++ {
		if s := x.d.WorkerOf(p, w).Step; s != conform.AtIdle && s != conform.AtRegister {
			return true
		}
	}
	return false
}

// expire lets a cache entry expire, once no read is old any more, unless reads may be old for that long. An entry that is true
// need not, unless describes fail: the describe that nobody recorded would have the same answer, and later describes fewer.
func (x *search) expire(tr *trail, args conform.Args) {
	p := args.Process
	x.load(tr.state)
	m := x.d.MemoryOf(p)
	switch {
	case !m.Cached, x.joined && x.quiet && !x.describes && len(x.inner) == 0 && !x.world.env.outlives && !x.world.env.failures && m.Cache == x.d.Rules():
	case x.world.env.outlives || len(x.d.Old()) == 0:
		x.hidden(tr, model.ExpireCache, args)
	default:
		x.hidden(tr, model.Settle, args)
	}
}

// work takes the steps of a busy worker.
func (x *search) work(tr *trail, args conform.Args) {
	d := x.d
	p, w := args.Process, args.Worker
	x.load(tr.state)
	switch d.WorkerOf(p, w).Step {
	case conform.AtLookup:
		x.look(tr, model.LookUpGroup, args)
	case conform.AtSave:
		x.hidden(tr, model.SaveLookUp, args)
	case conform.AtLock:
		x.lock(tr, args)
	case conform.AtFetch:
		x.readCache(tr, args)
		x.expire(tr, args)
		x.look(tr, model.Describe, args)
		x.failedLook(tr, args)
	case conform.AtReload:
		x.look(tr, model.Reload, args)
		x.failedLook(tr, args)
	case conform.AtAuthorize:
		asked := d.ToAuthorize(p, w)
		x.visible(tr, model.AuthorizeOk, args, authorize, asked, ok)
		x.visible(tr, model.AuthorizeDuplicate, args, authorize, asked, isDuplicate)
		x.visible(tr, model.AuthorizeLimit, args, authorize, asked, isLimit)
		x.visible(tr, model.AuthorizeFails, args, authorize, asked, otherError)
		if x.mayLose(tr) {
			x.visible(tr, model.AuthorizeAnswerLost, args, authorize, asked, lost)
		}
		if x.world.design.WriteThrough {
			x.expire(tr, args)
		}
	case conform.AtRevoke:
		asked := d.ToRevoke(p, w)
		x.visible(tr, model.RevokeOk, args, revoke, asked, ok)
		x.visible(tr, model.RevokeNotFound, args, revoke, asked, isNotFound)
		x.visible(tr, model.RevokeFails, args, revoke, asked, otherError)
		if x.mayLose(tr) {
			x.visible(tr, model.RevokeAnswerLost, args, revoke, asked, lost)
		}
		if x.world.env.delayed {
			x.hidden(tr, model.RevokeDelayed, args)
		}
		if x.world.design.WriteThrough {
			x.expire(tr, args)
		}
	case conform.AtSeeGrant:
		x.look(tr, model.SeeGrant, args)
		x.wait(tr, model.SeeGrant, args)
	case conform.AtReread:
		x.look(tr, model.Reread, args)
	case conform.AtSeeRevoke:
		x.look(tr, model.SeeRevoke, args)
		x.wait(tr, model.SeeRevoke, args)
	case conform.AtTrack:
		x.look(tr, model.ListTagged, args)
	case conform.AtUnlock:
		x.hidden(tr, model.Unlock, args)
	case conform.AtRegister:
		x.register(tr, args)
	}
}

// mayLose says whether an answer may be lost: where the environment says so, or where none was recorded.
func (x *search) mayLose(tr *trail) bool {
	if x.world.env.answers {
		return true
	}
	for _, i := range tr.enabled {
		if x.ops[i].outcome == traces.Pending {
			return true
		}
	}
	return false
}

func (x *search) failedLook(tr *trail, args conform.Args) {
	if x.describes {
		x.visible(tr, model.DescribeFails, args, describe, engine.Set{}, otherError)
	} else if x.world.env.failures {
		x.hidden(tr, model.DescribeFails, args)
	}
}

// register takes a registration of targets. Where they were recorded, what changes is one operation or two. A binding of the
// specification has one pod at most; where a new pod takes the place of another, one of the two calls may be missing. Targets
// that are gone already may be deregistered once more, while they are drained.
func (x *search) register(tr *trail, args conform.Args) {
	d := x.d
	x.load(tr.state)
	t := d.WorkerOf(args.Process, args.Worker).Tgb
	_, before, _ := d.PodOf(t)
	defer x.release(x.scratch.used)
	state := x.take(tr, model.Register, args)
	if len(state) == 0 {
		return
	}
	x.load(state)
	_, after, _ := d.PodOf(t)
	l := label{action: model.Register, args: args, ops: [2]int32{-1, -1}}
	if before == after || !x.watch.Has(t) {
		x.proceed(tr.then(state, l))
	}
	if before == after && before != 0 || !x.watch.Has(t) {
		return
	}
	var gone, come []int
	for _, i := range tr.enabled {
		op := &x.ops[i]
		if op.port != x.ports[t] || !x.mayBe(tr, args.Process, op) {
			continue
		}
		if op.kind == deregister {
			gone = append(gone, i)
		}
		if op.kind == register && after != 0 {
			come = append(come, i)
		}
	}
	alone := come
	if before != 0 || after == 0 {
		alone = append(slices.Clone(gone), come...)
	}
	for _, i := range alone {
		l.ops = [2]int32{int32(i), -1}
		x.see(tr, state, l)
	}
	for _, i := range gone {
		for _, j := range x.enabled(x.finish(tr.n.done, int32(i))) {
			if op := &x.ops[j]; op.kind == register && after != 0 && op.port == x.ports[t] && x.mayBe(tr, args.Process, op) {
				l.ops = [2]int32{int32(i), int32(j)}
				x.see(tr, state, l)
			}
		}
	}
}

// noRule is the rule of a removal without effect.
const noRule = -1

// strangers takes the changes by others than the controller.
func (x *search) strangers(tr *trail) {
	for _, i := range tr.enabled {
		op := &x.ops[i]
		switch {
		case op.kind != revoke || !op.foreign && !x.world.env.external:
		case op.foreign && op.outcome == traces.Failed:
			x.see(tr, tr.state, label{action: model.ExternalRevoke, args: conform.Args{Rule: noRule}, ops: [2]int32{int32(i), -1}})
		case op.outcome == traces.Succeeded:
			x.remove(tr, i)
		}
	}
}

// remove takes the rules of one call away; a step of the specification is one rule.
func (x *search) remove(tr *trail, i int) {
	defer x.release(x.scratch.used)
	at := *tr
	for rest := x.targets[i]; rest.Some(); {
		l := label{action: model.ExternalRevoke, args: conform.Args{Rule: rest.Pop()}, ops: [2]int32{-1, -1}}
		state := x.take(&at, model.ExternalRevoke, l.args)
		if len(state) == 0 {
			return
		}
		if rest.Some() {
			x.canonical(state)
			at = at.then(state, l)
			continue
		}
		l.ops[0] = int32(i)
		x.see(&at, state, l)
	}
}
