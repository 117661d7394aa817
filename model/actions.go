package model

// Action is an action of spec.tla, by its place in Next.
type Action uint8

// The actions.
const (
	PodComes Action = iota
	PodGoes
	Pick
	Skip
	FireDeferred
	LookUpGroup
	SaveLookUp
	Lock
	ReadCache
	Describe
	Reload
	AuthorizeOk
	AuthorizeDuplicate
	AuthorizeLimit
	AuthorizeDenied
	SeeGrant
	Reread
	RevokeOk
	RevokeNotFound
	SeeRevoke
	ListTagged
	Unlock
	Register
	DescribeFails
	AuthorizeFails
	RevokeFails
	AuthorizeAnswerLost
	RevokeAnswerLost
	RevokeDelayed
	DelayedRevokeArrives
	Crash
	LeaderChange
	ExternalRevoke
	Settle
	ExpireCache
	Resync
	Tick
	actions // number of actions
)

var actionNames = [actions]string{
	"PodComes", "PodGoes", "Pick", "Skip", "FireDeferred", "LookUpGroup", "SaveLookUp", "Lock", "ReadCache",
	"Describe", "Reload", "AuthorizeOk", "AuthorizeDuplicate", "AuthorizeLimit", "AuthorizeDenied", "SeeGrant",
	"Reread", "RevokeOk", "RevokeNotFound", "SeeRevoke", "ListTagged", "Unlock", "Register", "DescribeFails",
	"AuthorizeFails", "RevokeFails", "AuthorizeAnswerLost", "RevokeAnswerLost", "RevokeDelayed",
	"DelayedRevokeArrives", "Crash", "LeaderChange", "ExternalRevoke", "Settle", "ExpireCache", "Resync", "Tick",
}

// String returns the action's name in spec.tla.
func (a Action) String() string { return actionNames[a] }

// Event is a step: an action and what it was taken with. Fields that an action does not use are 0.
type Event struct {
	Action Action
	P, W   uint8 // process and worker, from 0
	T      uint8 // binding, from 0
	Rules  Bits  // what a describe answered, or the rule removed from outside
}

// Emit receives a step: it leads to the state next, which is valid only during the call.
type Emit func(e Event, next *State)

// stepper enumerates the steps that leave one state. Each action is a method of the specification's
// name; it returns without effect when its condition does not hold.
type stepper struct {
	*System
	from *State
	to   State
	out  Emit
}

// Next calls emit for every step that leaves st, in the order of the specification's Next.
func (s *System) Next(st *State, emit Emit) {
	x := stepper{System: s, from: st, out: emit}
	x.next()
}

func (x *stepper) next() {
	s, st := x.System, x.from
	var buf [maxVersions + 1]Bits
	answers := st.answers(buf[:0])
	for t := range s.TGBs {
		x.PodComes(t)
	}
	for t := range s.TGBs {
		x.PodGoes(t)
	}
	for p := range s.Procs {
		for _, t := range s.serves(p) {
			for w := range s.Workers {
				x.Pick(p, w, t, answers)
			}
			x.Skip(p, t, answers)
			x.FireDeferred(p, t)
		}
		for w := range s.Workers {
			x.work(p, w, answers)
		}
	}
	x.DelayedRevokeArrives()
	for p := range s.Procs {
		x.Crash(p)
		x.LeaderChange(p)
	}
	for r := range s.names {
		x.ExternalRevoke(1 << r)
	}
	x.Settle()
	for p := range s.Procs {
		x.ExpireCache(p)
		x.Resync(p)
	}
	x.Tick()
}

// work takes the steps of one worker. Its position decides which actions are possible at all.
func (x *stepper) work(p, w int, answers []Bits) {
	switch x.from.Worker[p][w].Step {
	case LookUp:
		for _, v := range answers {
			x.LookUpGroup(p, w, v)
		}
	case SaveStep:
		x.SaveLookUp(p, w)
	case LockStep:
		x.Lock(p, w)
	case Fetch:
		x.ReadCache(p, w)
		for _, v := range answers {
			x.Describe(p, w, v)
		}
		x.DescribeFails(p, w)
	case ReloadStep:
		for _, v := range answers {
			x.Reload(p, w, v)
		}
		x.DescribeFails(p, w)
	case Authorize:
		x.AuthorizeOk(p, w)
		x.AuthorizeDuplicate(p, w)
		x.AuthorizeLimit(p, w)
		x.AuthorizeDenied(p, w)
		x.AuthorizeFails(p, w)
		x.AuthorizeAnswerLost(p, w)
	case SeeGrantStep:
		for _, v := range answers {
			x.SeeGrant(p, w, v)
		}
	case RereadStep:
		for _, v := range answers {
			x.Reread(p, w, v)
		}
	case Revoke:
		x.RevokeOk(p, w)
		x.RevokeNotFound(p, w)
		x.RevokeFails(p, w)
		x.RevokeAnswerLost(p, w)
		x.RevokeDelayed(p, w)
	case SeeRevokeStep:
		for _, v := range answers {
			x.SeeRevoke(p, w, v)
		}
	case Track:
		for _, v := range answers {
			x.ListTagged(p, w, v)
		}
	case UnlockStep:
		x.Unlock(p, w)
	case RegisterStep:
		x.Register(p, w)
	}
}

// begin starts the state after a step.
func (x *stepper) begin() *State {
	x.to = *x.from
	return &x.to
}

func (x *stepper) emit(e Event) { x.out(e, &x.to) }

func event(a Action, p, w, t int, rules Bits) Event {
	return Event{a, uint8(p), uint8(w), uint8(t), rules}
}

// change replaces the rules. Describes may go on answering with what was before.
func (x *stepper) change(rules Bits) {
	st := &x.to
	if rules == st.Rules {
		return
	}
	if x.MaxLag > 0 {
		if int(st.Old) == x.MaxLag {
			st.dropOldest()
		}
		st.Versions[st.Old] = st.Rules
		st.Old++
	}
	st.Rules = rules
}

func (st *State) dropOldest() {
	copy(st.Versions[:], st.Versions[1:st.Old])
	st.Old--
	st.Versions[st.Old] = 0
}

// spend pays for a fault, if one may still happen.
func (x *stepper) spend() bool {
	if int(x.from.Faults) >= x.MaxFaults {
		return false
	}
	x.to.Faults++
	return true
}

func (x *stepper) leads(p int) bool { return x.TwoClusters || int(x.from.Leader) == p }

// site is what process p's decisions depend on in the state before the step.
func (x *stepper) site(p int) Site[Bits] {
	return Site[Bits]{
		Design: &x.Design, Foreign: x.foreign, Own: x.sources[p],
		AuthorizeOnly: x.authorizeOnly(x.from, p), Tagged: x.GroupTagged, Tracked: x.from.Memory[p].Tracked,
	}
}

func (s *System) authorizeOnly(st *State, p int) bool {
	for _, t := range s.serves(p) {
		if st.Memory[p].Computed[t] == Unknown {
			return true
		}
	}
	return false
}

// wantedBy aggregates what a process has computed.
func (s *System) wantedBy(p int, known *[maxTGBs]Computed) Bits {
	set := 0
	for _, t := range s.serves(p) {
		if known[t] == OnePort {
			set |= 1 << t
		}
	}
	if s.TwoClusters {
		return s.hulls[p][set]
	}
	return s.hulls[0][set]
}

func wants(pod uint8) Computed {
	if pod == 0 {
		return None
	}
	return OnePort
}

func (x *stepper) inFlight(p, t int) bool {
	for w := range x.Workers {
		if me := &x.from.Worker[p][w]; me.Step != Idle && int(me.TGB) == t+1 {
			return true
		}
	}
	return false
}

func (x *stepper) idleWorkers(p int) int {
	n := 0
	for w := range x.Workers {
		if x.from.Worker[p][w].Step == Idle {
			n++
		}
	}
	return n
}

func (x *stepper) triggered(p, t int) bool { return !x.Timed || x.from.Timer[p].Due&(1<<t) != 0 }

// shows returns by how many rules of a view a binding's traffic is seen to be allowed; a binding
// without a pod needs none, which counts as one.
func (x *stepper) shows(view Bits, t int) int {
	if x.from.Pods[t] == 0 {
		return 1
	}
	return common(view, x.allows[t]).Len()
}

func (x *stepper) PodComes(t int) {
	if x.from.Pods[t] != 0 || int(x.from.Born) >= x.MaxPods {
		return
	}
	to := x.begin()
	to.Born++
	to.Pods[t] = to.Born
	x.emit(event(PodComes, 0, 0, t, 0))
}

func (x *stepper) PodGoes(t int) {
	if x.from.Pods[t] == 0 || x.StablePod && t == 0 {
		return
	}
	to := x.begin()
	to.Pods[t] = 0
	x.emit(event(PodGoes, 0, 0, t, 0))
}

// Pick takes up a changed binding: the endpoints are resolved, the checkpoint differs
// (resource_manager.go:173-193).
func (x *stepper) Pick(p, w, t int, answers []Bits) {
	from := x.from
	if !x.leads(p) || from.Worker[p][w].Step != Idle || x.inFlight(p, t) {
		return
	}
	ways := 1 // TLC takes the step once for each answer that makes its condition true
	if from.Checkpoint[t] == int8(from.Pods[t]) {
		ways = 0
		for _, v := range answers {
			if x.Design.CheckpointVerifiesAWS && x.triggered(p, t) && x.shows(v, t) == 0 {
				ways++
			}
		}
	}
	to := x.begin()
	me := &to.Worker[p][w]
	me.Step, me.TGB, me.Pod = LockStep, uint8(t+1), from.Pods[t]
	if x.SeveralGroups && x.Design.UseCache && from.Pods[t] != 0 && !from.Memory[p].Cache.Valid {
		me.Step = LookUp
	}
	if x.Design.GroupMutex {
		to.Memory[p].Computed[t] = wants(from.Pods[t])
		me.Wanted = x.wantedBy(p, &to.Memory[p].Computed)
	}
	to.Timer[p].Due &^= 1 << t
	for range ways {
		x.emit(event(Pick, p, w, t, 0))
	}
}

// Skip leaves an unchanged binding alone (resource_manager.go:193-196) and hands it to the deferred
// queue, unless it is marked as queued or processed recently (deferred_reconciler.go:64-70).
func (x *stepper) Skip(p, t int, answers []Bits) {
	from := x.from
	if !x.DeferredQueue || !x.leads(p) || x.inFlight(p, t) || x.idleWorkers(p) == 0 || !x.triggered(p, t) ||
		from.Checkpoint[t] != int8(from.Pods[t]) {
		return
	}
	ways := 1 // as in Pick; here also once for each rule that shows it
	if x.Design.CheckpointVerifiesAWS {
		ways = 0
		for _, v := range answers {
			ways += x.shows(v, t)
		}
	}
	to := x.begin()
	to.Timer[p].Due &^= 1 << t
	fresh := from.Timer[p].Mark[t] == 0 && from.Timer[p].Queue[t] == Unset
	if !fresh && !x.Timed {
		return
	}
	for range ways {
		if !fresh {
			x.emit(event(Skip, p, 0, t, 0))
			continue
		}
		to.Timer[p].Mark[t] = uint8(x.MarkTTL)
		for delay := x.DeferMin; delay <= x.DeferMax; delay++ {
			to.Timer[p].Queue[t] = int8(delay)
			x.emit(event(Skip, p, 0, t, 0))
		}
	}
}

// FireDeferred empties the checkpoint of a binding whose delay is over (deferred_reconciler.go:97-115).
func (x *stepper) FireDeferred(p, t int) {
	if !x.leads(p) || x.from.Timer[p].Queue[t] != 0 {
		return
	}
	to := x.begin()
	to.Timer[p].Queue[t] = Unset
	to.Checkpoint[t] = Unset
	x.emit(event(FireDeferred, p, 0, t, 0))
}

// LookUpGroup answers the describe for the tags of an interface's groups, outside the mutex
// (networking_manager.go:168, 548-554) ...
func (x *stepper) LookUpGroup(p, w int, v Bits) {
	to := x.begin()
	me := &to.Worker[p][w]
	me.Step, me.View = SaveStep, v
	x.emit(event(LookUpGroup, p, w, int(me.TGB)-1, v))
}

// SaveLookUp saves its answer later (security_group_manager.go:107).
func (x *stepper) SaveLookUp(p, w int) {
	to := x.begin()
	me := &to.Worker[p][w]
	to.Memory[p].Cache.Save(&x.Design, me.View)
	me.Step, me.View = LockStep, 0
	x.emit(event(SaveLookUp, p, w, int(me.TGB)-1, to.Memory[p].Cache.Rules))
}

// Lock takes the mutex, stores this binding's permissions and aggregates all
// (networking_manager.go:217-230).
func (x *stepper) Lock(p, w int) {
	if x.Design.WaitOut && x.from.Late != 0 {
		return
	}
	for other := range x.Workers {
		if x.from.Worker[p][other].Step.locked() {
			return
		}
	}
	to := x.begin()
	me, memory := &to.Worker[p][w], &to.Memory[p]
	wanted := me.Wanted
	if !x.Design.GroupMutex {
		memory.Computed[me.TGB-1] = wants(me.Pod)
		wanted = x.wantedBy(p, &memory.Computed)
	}
	// Clean-up knows the group when a binding had a pod in it since the start (223).
	memory.Tracked = memory.Tracked || !x.GroupTagged && me.Pod != 0
	site := x.site(p)
	site.AuthorizeOnly, site.Tracked = x.authorizeOnly(to, p), memory.Tracked
	site.Locked(me, wanted)
	x.emit(event(Lock, p, w, int(me.TGB)-1, wanted))
}

// ReadCache takes the group's rules from the cache (security_group_reconciler.go:75,
// security_group_manager.go:89-94).
func (x *stepper) ReadCache(p, w int) {
	cache := x.from.Memory[p].Cache
	if !cache.Valid {
		return
	}
	to, site := x.begin(), x.site(p)
	site.Viewed(&to.Worker[p][w], cache.Rules)
	x.looked(p, cache.Rules)
	x.emit(event(ReadCache, p, w, int(to.Worker[p][w].TGB)-1, cache.Rules))
}

// looked notes whether the process's look at the group was true.
func (x *stepper) looked(p int, view Bits) {
	x.to.Witness &^= 1 << p
	if view == x.from.Rules {
		x.to.Witness |= 1 << p
	}
}

// Describe asks EC2 for the rules and saves them (security_group_manager.go:99-107).
func (x *stepper) Describe(p, w int, v Bits) {
	if !x.from.Memory[p].Cache.Valid {
		x.described(Describe, p, w, v)
	}
}

// Reload asks EC2 after certain errors, whatever the cache holds (security_group_reconciler.go:87).
func (x *stepper) Reload(p, w int, v Bits) { x.described(Reload, p, w, v) }

func (x *stepper) described(a Action, p, w int, v Bits) {
	to, site := x.begin(), x.site(p)
	to.Memory[p].Cache.Save(&x.Design, v)
	site.Viewed(&to.Worker[p][w], v)
	x.looked(p, v)
	x.emit(event(a, p, w, int(to.Worker[p][w].TGB)-1, v))
}
