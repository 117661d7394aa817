package model

// What EC2 may answer to a worker's calls, and the faults of the environment.

// grant returns what a worker is about to authorize, and what EC2 holds against it.
func (x *stepper) grant(p, w int) (grant Bits, duplicate, full bool) {
	site := x.site(p)
	grant = site.Missing(&x.from.Worker[p][w])
	present := x.from.Rules | x.foreign
	return grant, overlap(grant, present), present.Union(grant).Len() > x.RuleLimit
}

// authorized emits the step in which an authorize is answered; if it took effect, the rules change.
func (x *stepper) authorized(a Action, p, w int, grant Bits, effect bool, answer Code) {
	to, site := &x.to, x.site(p)
	if effect {
		x.change(to.Rules | grant)
		x.changedBy(p)
	}
	site.Authorized(&to.Worker[p][w], &to.Memory[p].Cache, answer)
	x.emit(event(a, p, w, int(to.Worker[p][w].TGB)-1, grant))
}

// changedBy ends what other processes know of the group: it has been changed. Clusters do not mind
// each other's changes.
func (x *stepper) changedBy(p int) {
	if !x.TwoClusters {
		x.to.Witness &= 1 << p
	}
}

// AuthorizeOk adds all rules or none (security_group_manager.go:129-147).
func (x *stepper) AuthorizeOk(p, w int) {
	grant, duplicate, full := x.grant(p, w)
	if x.Denied || duplicate || full {
		return
	}
	x.begin()
	x.authorized(AuthorizeOk, p, w, grant, true, OK)
}

// AuthorizeDuplicate: one of the rules is there, and none is added.
func (x *stepper) AuthorizeDuplicate(p, w int) {
	grant, duplicate, _ := x.grant(p, w)
	if x.Denied || !duplicate {
		return
	}
	x.begin()
	x.authorized(AuthorizeDuplicate, p, w, grant, false, Duplicate)
}

// AuthorizeLimit: the group is full.
func (x *stepper) AuthorizeLimit(p, w int) {
	grant, duplicate, full := x.grant(p, w)
	if x.Denied || duplicate || !full {
		return
	}
	x.begin()
	x.authorized(AuthorizeLimit, p, w, grant, false, LimitExceeded)
}

func (x *stepper) AuthorizeDenied(p, w int) {
	if !x.Denied {
		return
	}
	grant, _, _ := x.grant(p, w)
	x.begin()
	x.authorized(AuthorizeDenied, p, w, grant, false, Failed)
}

// SeeGrant ends the describes after a grant: this one shows it. Answers that do not show it change
// nothing, and are not steps.
func (x *stepper) SeeGrant(p, w int, v Bits) {
	to, site := x.begin(), x.site(p)
	to.Memory[p].Cache.Save(&x.Design, v)
	if site.SeesGrant(&to.Worker[p][w], v) {
		x.emit(event(SeeGrant, p, w, int(to.Worker[p][w].TGB)-1, v))
	}
}

// Reread describes just before a revoke.
func (x *stepper) Reread(p, w int, v Bits) {
	to, site := x.begin(), x.site(p)
	to.Memory[p].Cache.Save(&x.Design, v)
	site.Reread(&to.Worker[p][w], v)
	x.emit(event(Reread, p, w, int(to.Worker[p][w].TGB)-1, v))
}

// removal returns what a worker is about to revoke, and whether EC2 accepts it: all of it is there, or
// the VPC is the default one.
func (x *stepper) removal(p, w int) (extra Bits, accepted bool) {
	site := x.site(p)
	extra = site.Extra(&x.from.Worker[p][w])
	return extra, x.DefaultVPC || extra.Minus(x.from.Rules).Empty()
}

// revoked emits the step in which a revoke is answered; if it took effect, the rules change.
func (x *stepper) revoked(a Action, p, w int, extra Bits, effect bool, answer Code) {
	to, site := &x.to, x.site(p)
	if effect {
		x.change(to.Rules.Minus(extra))
		x.changedBy(p)
	}
	site.Revoked(&to.Worker[p][w], &to.Memory[p].Cache, answer)
	x.emit(event(a, p, w, int(to.Worker[p][w].TGB)-1, extra))
}

// RevokeOk removes all rules or none (security_group_manager.go:149-167).
func (x *stepper) RevokeOk(p, w int) {
	extra, accepted := x.removal(p, w)
	if !accepted {
		return
	}
	x.begin()
	x.revoked(RevokeOk, p, w, extra, true, OK)
}

// RevokeNotFound: one of the rules is not there, and none is removed.
func (x *stepper) RevokeNotFound(p, w int) {
	extra, accepted := x.removal(p, w)
	if accepted {
		return
	}
	x.begin()
	x.revoked(RevokeNotFound, p, w, extra, false, NotFound)
}

// SeeRevoke ends the describes after a revoke: this one shows it.
func (x *stepper) SeeRevoke(p, w int, v Bits) {
	to, site := x.begin(), x.site(p)
	to.Memory[p].Cache.Save(&x.Design, v)
	if site.SeesRevoke(&to.Worker[p][w], v) {
		x.emit(event(SeeRevoke, p, w, int(to.Worker[p][w].TGB)-1, v))
	}
}

// ListTagged lists the groups with the cluster's tag, once after a start; the answer holds their rules
// and is cached as well (networking_manager.go:590-634, security_group_manager.go:120-127).
func (x *stepper) ListTagged(p, w int, v Bits) {
	to := x.begin()
	to.Memory[p].Cache.Save(&x.Design, v)
	to.Memory[p].Tracked = true
	me := &to.Worker[p][w]
	me.Step = UnlockStep
	if me.Wanted.Empty() {
		me.Step = Fetch
	}
	x.emit(event(ListTagged, p, w, int(me.TGB)-1, v))
}

// Unlock releases the mutex. If anything will change, or the network part failed, the empty checkpoint
// is stored first (resource_manager.go:226-232).
func (x *stepper) Unlock(p, w int) {
	to := x.begin()
	me := &to.Worker[p][w]
	t := int(me.TGB) - 1
	me.Step, me.Wanted = RegisterStep, 0
	if to.Registered[t] != me.Pod || me.Failed {
		to.Checkpoint[t] = Unset
	}
	x.emit(event(Unlock, p, w, t, 0))
}

// Register deregisters and registers targets, also after a network error (resource_manager.go:208-213,
// 240-272), and stores the new checkpoint unless there was one (288-294, 142). A live target that
// another process registered meanwhile is not in this worker's list, and stays.
func (x *stepper) Register(p, w int) {
	to := x.begin()
	me := &to.Worker[p][w]
	t := int(me.TGB) - 1
	if !to.live(t) {
		if me.Pod != to.Registered[t] && !x.Design.MayRegister(me.Failed) {
			to.Registered[t] = 0
		} else {
			to.Registered[t] = me.Pod
		}
	}
	if !me.Failed {
		to.Checkpoint[t] = int8(me.Pod)
		if to.Timer[p].Mark[t] == 0 { // targetgroupbinding_deferred_reconciler.go:73-78
			to.Timer[p].Mark[t] = uint8(x.MarkTTL)
		}
	}
	*me = Worker[Bits]{}
	x.emit(event(Register, p, w, t, 0))
}

// DescribeFails: errors other than the three that are told apart are not tried again
// (security_group_reconciler.go:82-84).
func (x *stepper) DescribeFails(p, w int) {
	me := &x.from.Worker[p][w]
	to, site := x.begin(), x.site(p)
	if !x.Failures || me.Step == Fetch && x.from.Memory[p].Cache.Valid || !x.spend() {
		return
	}
	site.DescribeFailed(&to.Worker[p][w])
	x.emit(event(DescribeFails, p, w, int(me.TGB)-1, 0))
}

func (x *stepper) AuthorizeFails(p, w int) {
	x.begin()
	if x.Failures && x.spend() {
		grant, _, _ := x.grant(p, w)
		x.authorized(AuthorizeFails, p, w, grant, false, Failed)
	}
}

func (x *stepper) RevokeFails(p, w int) {
	x.begin()
	if x.Failures && x.spend() {
		extra, _ := x.removal(p, w)
		x.revoked(RevokeFails, p, w, extra, false, Failed)
	}
}

// AuthorizeAnswerLost: the call takes effect and its answer is lost. The cache is not cleared
// (security_group_manager.go:138-140).
func (x *stepper) AuthorizeAnswerLost(p, w int) {
	grant, duplicate, full := x.grant(p, w)
	x.begin()
	if x.LostAnswers && !x.Denied && !duplicate && !full && x.spend() {
		x.authorized(AuthorizeAnswerLost, p, w, grant, true, Failed)
	}
}

func (x *stepper) RevokeAnswerLost(p, w int) {
	extra, accepted := x.removal(p, w)
	x.begin()
	if x.LostAnswers && accepted && x.spend() {
		x.revoked(RevokeAnswerLost, p, w, extra, true, Failed)
	}
}

// RevokeDelayed: the answer is lost and the revoke is still on its way.
func (x *stepper) RevokeDelayed(p, w int) {
	extra, _ := x.removal(p, w)
	to := x.begin()
	if x.DelayedRevokes && x.from.Late == 0 && x.spend() {
		to.Late = extra
		x.revoked(RevokeDelayed, p, w, extra, false, Failed)
	}
}

func (x *stepper) DelayedRevokeArrives() {
	late := x.from.Late
	if late == 0 {
		return
	}
	to := x.begin()
	to.Late, to.Witness = 0, 0
	if x.DefaultVPC || late.Minus(to.Rules).Empty() {
		x.change(to.Rules.Minus(late))
	}
	x.emit(event(DelayedRevokeArrives, 0, 0, 0, late))
}

// Crash: the leading process dies, at any step; the next one starts with nothing in memory.
func (x *stepper) Crash(p int) {
	to := x.begin()
	if !x.Crashes || !x.leads(p) || !x.spend() {
		return
	}
	to.Memory[p] = Memory{}
	to.Worker[p] = [maxWorkers]Worker[Bits]{}
	to.Witness = 0
	x.restart(p, event(Crash, p, 0, 0, 0))
}

// restart emits the step once for each period that the resync of the new process may have.
func (x *stepper) restart(p int, e Event) {
	for _, timer := range x.freshTimers() {
		x.to.Timer[p] = timer
		x.emit(e)
	}
}

// LeaderChange: another process leads from now on, with nothing in memory; the old leader takes up no
// new work, but finishes what it had begun.
func (x *stepper) LeaderChange(q int) {
	to := x.begin()
	if !x.LeaderChanges || x.TwoClusters || q == int(x.from.Leader) || x.idleWorkers(q) < x.Workers ||
		x.Design.WaitOut && x.idleWorkers(int(x.from.Leader)) < x.Workers || !x.spend() {
		return
	}
	to.Leader = uint8(q)
	to.Memory[q] = Memory{}
	to.Witness = 0
	x.restart(q, event(LeaderChange, q, 0, 0, 0))
}

func (x *stepper) ExternalRevoke(rule Bits) {
	to := x.begin()
	if x.ExternalRevokes && overlap(rule, x.from.Rules) && x.spend() {
		x.change(to.Rules.Minus(rule))
		x.emit(event(ExternalRevoke, 0, 0, 0, rule))
	}
}

// Settle: the oldest version is no longer returned by any describe.
func (x *stepper) Settle() {
	if x.from.Old == 0 {
		return
	}
	x.begin().dropOldest()
	x.emit(event(Settle, 0, 0, 0, 0))
}

// ExpireCache: an entry is ten minutes old (security_group_manager.go:189).
func (x *stepper) ExpireCache(p int) {
	if x.Timed || !x.from.Memory[p].Cache.Valid || x.from.Old > 0 && !x.LagOutlivesCache {
		return
	}
	to := x.begin()
	to.Memory[p].Cache.Forget()
	x.emit(event(ExpireCache, p, 0, 0, 0))
}

// Resync: the period is over; every binding is looked at.
func (x *stepper) Resync(p int) {
	if !x.Timed || !x.leads(p) || x.from.Timer[p].Resync != 0 {
		return
	}
	to := x.begin()
	to.Timer[p].Due = x.serving(p)
	for n := x.ResyncMin; n <= x.ResyncMax; n++ {
		to.Timer[p].Resync = uint8(n)
		x.emit(event(Resync, p, 0, 0, 0))
	}
}

// Tick: time passes. A tick is longer than any reconcile, any lag and the life of a cache entry, so it
// comes only when nothing is left to do at once.
func (x *stepper) Tick() {
	from := x.from
	if !x.Timed || from.Old > 0 || from.Late != 0 || x.running(from) {
		return
	}
	for t := range x.TGBs {
		if from.Checkpoint[t] != int8(from.Pods[t]) {
			return
		}
	}
	for p := range x.Procs {
		if !x.leads(p) {
			continue
		}
		timer := &from.Timer[p]
		if timer.Due != 0 || timer.Resync == 0 {
			return
		}
		for t := range x.TGBs {
			if timer.Queue[t] == 0 {
				return
			}
		}
	}
	to := x.begin()
	for p := range x.Procs {
		timer := &to.Timer[p]
		for t := range x.TGBs {
			if timer.Queue[t] > 0 {
				timer.Queue[t]--
			}
			if timer.Mark[t] > 0 {
				timer.Mark[t]--
			}
		}
		if timer.Resync > 0 {
			timer.Resync--
		}
		to.Memory[p].Cache.Forget()
	}
	if x.uncovered(from) {
		if int(to.Age) <= x.RepairBound {
			to.Age++
		}
	} else {
		to.Age = 0
	}
	x.emit(event(Tick, 0, 0, 0, 0))
}

func (s *System) running(st *State) bool {
	for p := range s.Procs {
		for w := range s.Workers {
			if st.Worker[p][w].Step != Idle {
				return true
			}
		}
	}
	return false
}
