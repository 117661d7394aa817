package conform

import (
	"linearize.example/checker/conform/engine"
	"linearize.example/model"
)

// Args are the arguments of an action, which package model names, numbered as successors are committed; those that it does not take are ignored. Processes, workers and bindings count
// from 1, rules are numbers in sets of rules.
type Args struct{ Process, Worker, TGB, Rule int }

// Driver takes single actions of the specification, where a search does not want all successors of a state. Processes,
// workers and bindings must be {1, ..., n}.
type Driver struct {
	*Checker
	Model *engine.Model
	// Skipped are the bindings that are seen to be skipped. Of them Canonical keeps the pod, and whether the checkpoint stands
	// for it.
	Skipped engine.Set
}

// NewDriver makes a driver of a model that NewModel made.
func NewDriver(m *engine.Model) *Driver {
	return &Driver{Checker: New(m).(*Checker), Model: m}
}

// Take returns the successors of the loaded state by one action with the given arguments, one after the other. They are
// valid until the next call.
func (d *Driver) Take(a model.Action, x Args) []uint64 {
	c := d.Checker
	c.out.Reset()
	switch a {
	case model.PodComes:
		c.podComes(x.TGB)
	case model.PodGoes:
		c.podGoes(x.TGB)
	case model.Pick:
		c.pick(x.Process, x.Worker, x.TGB)
	case model.Skip:
		c.skip(x.Process, x.TGB)
	case model.FireDeferred:
		c.fireDeferred(x.Process, x.TGB)
	case model.LookUpGroup:
		c.lookUpGroup(x.Process, x.Worker)
	case model.SaveLookUp:
		c.saveLookUp(x.Process, x.Worker)
	case model.Lock:
		c.lock(x.Process, x.Worker)
	case model.ReadCache:
		c.readCache(x.Process, x.Worker)
	case model.Describe:
		c.describe(x.Process, x.Worker)
	case model.Reload:
		c.reload(x.Process, x.Worker)
	case model.AuthorizeOk:
		c.authorizeOk(x.Process, x.Worker)
	case model.AuthorizeDuplicate:
		c.authorizeDuplicate(x.Process, x.Worker)
	case model.AuthorizeLimit:
		c.authorizeLimit(x.Process, x.Worker)
	case model.AuthorizeDenied:
		c.authorizeDenied(x.Process, x.Worker)
	case model.SeeGrant:
		c.seeGrant(x.Process, x.Worker)
	case model.Reread:
		c.reread(x.Process, x.Worker)
	case model.RevokeOk:
		c.revokeOk(x.Process, x.Worker)
	case model.RevokeNotFound:
		c.revokeNotFound(x.Process, x.Worker)
	case model.SeeRevoke:
		c.seeRevoke(x.Process, x.Worker)
	case model.ListTagged:
		c.listTagged(x.Process, x.Worker)
	case model.Unlock:
		c.unlock(x.Process, x.Worker)
	case model.Register:
		c.register(x.Process, x.Worker)
	case model.DescribeFails:
		c.describeFails(x.Process, x.Worker)
	case model.AuthorizeFails:
		c.authorizeFails(x.Process, x.Worker)
	case model.RevokeFails:
		c.revokeFails(x.Process, x.Worker)
	case model.AuthorizeAnswerLost:
		c.authorizeAnswerLost(x.Process, x.Worker)
	case model.RevokeAnswerLost:
		c.revokeAnswerLost(x.Process, x.Worker)
	case model.RevokeDelayed:
		c.revokeDelayed(x.Process, x.Worker)
	case model.DelayedRevokeArrives:
		c.delayedRevokeArrives()
	case model.Crash:
		c.crash(x.Process)
	case model.LeaderChange:
		c.leaderChange(x.Process)
	case model.ExternalRevoke:
		c.externalRevoke(c.u.rule.Elems[x.Rule])
	case model.Settle:
		c.settle()
	case model.ExpireCache:
		c.expireCache(x.Process)
	case model.Resync:
		c.resync(x.Process)
	case model.Tick:
		c.tick()
	}
	return c.out.Next
}

// RuleNumber is the number of a rule in sets of rules, -1 when there is no such rule.
func (d *Driver) RuleNumber(lo, hi int) int { return d.u.rule.Index(Rule{Source: 1, Lo: lo, Hi: hi}) }

// RuleAt is the inverse of RuleNumber.
func (d *Driver) RuleAt(number int) Rule { return d.u.rule.Elems[number] }

// Step is where a worker is.
type Step = engine.Atom

// The steps of a worker, by the specification's names.
const (
	AtIdle      = atomIdle
	AtLookup    = atomLookup
	AtSave      = atomSave
	AtLock      = atomLock
	AtFetch     = atomFetch
	AtReload    = atomReload
	AtAuthorize = atomAuthorize
	AtSeeGrant  = atomSeeGrant
	AtReread    = atomReread
	AtRevoke    = atomRevoke
	AtSeeRevoke = atomSeeRevoke
	AtTrack     = atomTrack
	AtUnlock    = atomUnlock
	AtRegister  = atomRegister
)

// What a process knows of a binding's wanted permissions.
const (
	Unknown = atomUnknown
	None    = atomNone
	Port    = atomPort
)

// Rules returns the managed rules of the loaded state.
func (d *Driver) Rules() engine.Set { return d.s.rules }

// Old returns the older versions that a describe may still return, oldest first.
func (d *Driver) Old() []engine.Set { return d.s.versions.E[:d.s.versions.N] }

// Late returns the rules of the revoke that is on its way.
func (d *Driver) Late() engine.Set { return d.s.late }

// Leader is the process that leads.
func (d *Driver) Leader() int { return d.s.leader }

// MemoryOf returns what a process keeps, and WorkerOf what a worker is at, in the loaded state.
func (d *Driver) MemoryOf(process int) *Memory { return &d.s.memory[process-1] }

// WorkerOf returns a worker of the loaded state.
func (d *Driver) WorkerOf(process, worker int) *Worker { return &d.s.worker[process-1][worker-1] }

// PodOf returns the pod of a binding, the pod that is registered, and the pod that the checkpoint stands for.
func (d *Driver) PodOf(tgb int) (pod, registered, checkpoint int) {
	return d.s.pods[tgb-1], d.s.registered[tgb-1], d.s.checkpoint[tgb-1]
}

// ToAuthorize is what a worker at the step "authorize" asks for, ToRevoke what one at "revoke" does.
func (d *Driver) ToAuthorize(process, worker int) engine.Set {
	return d.missing(process, d.s.worker[process-1][worker-1])
}

// ToRevoke is what a worker at the step "revoke" asks to remove.
func (d *Driver) ToRevoke(process, worker int) engine.Set {
	return d.extra(process, d.s.worker[process-1][worker-1])
}

// AuthorizesOnly says whether a process does not revoke yet.
func (d *Driver) AuthorizesOnly(process int) bool { return d.authorizeOnly(process) }

// Answers lists what a describe may answer, in the order of the successors of the actions that describe.
func (d *Driver) Answers() []engine.Set { return d.answers() }

// Begin writes a first state to which the given process has come: the group's rules, what it has computed, and its cache.
// The rest is as in the specification's first state, which must be loaded.
func (d *Driver) Begin(w []uint64, rules engine.Set, computed []engine.Atom, tracked, cached bool) {
	copy(w, d.out.Cur)
	d.at.rules.PutSet(w, d.at.rules.Off, rules)
	m := d.s.memory[0]
	copy(m.Computed[:], computed)
	m.Tracked, m.Cached, m.Cache = tracked, cached, engine.Set{}
	if cached {
		m.Cache = rules
	}
	d.putMemoryAt(w, d.at.memory.Off, &m)
	pods := d.s.pods
	for i, v := range computed {
		if v == None {
			pods[i] = 0
		}
	}
	d.putPods(w, d.at.pods.Off, &pods)
	d.putRegistered(w, d.at.registered.Off, &pods)
	d.putCheckpoint(w, d.at.checkpoint.Off, &pods)
}

// Rename numbers the identities of each binding's pods in the order in which they are met, for nothing but their equality
// matters, and forgets faults and what only properties look at. A new pod gets a number of its own.
func (d *Driver) Rename(w []uint64) { d.rename(w, 0, func(int, bool) {}) }

// Canonical rewrites a state so that states that differ in names only are equal. The identities of a binding's pods are
// numbered in the order in which they are met, for nothing but their equality matters, and of a binding that is not watched
// they are forgotten between reconciles: with deferred reconciles, pods that come and pods that go, any reconcile can be had
// from any of them; for the same reason the checkpoint of a watched one is, unless it is among Skipped. What only properties look
// at is cleared. Born becomes the number of identities that a state can hold; a new pod gets the next.
func (d *Driver) Canonical(w []uint64, watched engine.Set, faults int) {
	d.rename(w, faults, func(i int, busy bool) {
		if busy {
			return
		}
		equal := d.s.checkpoint[i] == d.s.pods[i]
		if !watched.Has(i+1) && !d.Skipped.Has(i+1) {
			d.s.pods[i], d.s.registered[i] = 1, 1
		}
		d.s.checkpoint[i] = d.s.pods[i]
		if !equal && d.Skipped.Has(i+1) {
			d.s.checkpoint[i] = unset
		}
	})
}

// unset is the checkpoint that stands for no pod, the specification's Unset.
const unset = -1

// rename numbers pods anew; forget is then called for each binding, counted from 0, with whether a worker is at it.
func (d *Driver) rename(w []uint64, faults int, forget func(i int, busy bool)) {
	d.Load(w)
	c := d.Checker
	born := 3
	for rest := c.k.procs; rest.Some(); rest.Pop() {
		born += c.k.workers.Len()
	}
	for rest := c.f.domainPods; rest.Some(); {
		i := rest.Pop()
		var seen [8]int
		n := 0
		name := func(pod *int) {
			if *pod <= 0 {
				return
			}
			for j := range n {
				if seen[j] == *pod {
					*pod = j + 1
					return
				}
			}
			seen[n] = *pod
			n++
			*pod = n
		}
		busy := false
		name(&c.s.pods[i])
		name(&c.s.registered[i])
		name(&c.s.checkpoint[i])
		for procs := c.k.procs; procs.Some(); {
			p := procs.Pop() + c.intLo - 1
			for workers := c.k.workers; workers.Some(); {
				me := &c.s.worker[p][workers.Pop()+c.intLo-1]
				if me.Tgb == i+1 {
					busy = true
					name(&me.Pod)
				}
			}
		}
		forget(i, busy)
	}
	c.putPods(w, c.at.pods.Off, &c.s.pods)
	c.putRegistered(w, c.at.registered.Off, &c.s.registered)
	c.putCheckpoint(w, c.at.checkpoint.Off, &c.s.checkpoint)
	c.putWorker(w, c.at.worker.Off, &c.s.worker)
	c.at.born.PutInt(w, c.at.born.Off, born)
	c.at.faults.PutInt(w, c.at.faults.Off, faults)
	c.at.witness.PutSet(w, c.at.witness.Off, engine.Set{})
}

// Compute overwrites what a process of the loaded state has computed of its bindings, in a state that is otherwise the same.
func (d *Driver) Compute(w []uint64, process int, computed [engine.FunCap]engine.Atom) {
	d.putMemoryAtComputed(w, d.at.memory.Off+(process-1)*d.at.memory.Stride+d.at.memoryAtComputed.Off, &computed)
}

// Anonymize has a worker of the loaded state reconcile another binding, with a pod that is registered.
func (d *Driver) Anonymize(w []uint64, process, worker, tgb int) {
	me := d.s.worker[process-1][worker-1]
	me.Tgb, me.Pod = tgb, 1
	d.s.pods[tgb-1], d.s.registered[tgb-1], d.s.checkpoint[tgb-1] = 1, 1, 1
	d.putPods(w, d.at.pods.Off, &d.s.pods)
	d.putRegistered(w, d.at.registered.Off, &d.s.registered)
	d.putCheckpoint(w, d.at.checkpoint.Off, &d.s.checkpoint)
	d.putWorkerAtAt(w, d.at.worker.Off+(process-1)*d.at.worker.Stride+(worker-1)*d.at.workerAt.Stride, &me)
}

// ForgetAll overwrites what a process remembers with what it has after a start.
func (d *Driver) ForgetAll(w []uint64, process int) {
	d.putMemoryAt(w, d.at.memory.Off+(process-1)*d.at.memory.Stride, &d.k.freshMemory)
}

// Faults is how many faults have happened in the loaded state.
func (d *Driver) Faults() int { return d.s.faults }

// Pods is how many identities of pods Canonical needs, with the given processes and workers in each: the constant MaxPods.
func Pods(processes, workers int) int { return 4 + processes*workers }
