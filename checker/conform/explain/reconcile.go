package explain

import (
	"slices"

	"linearize.example/checker/conform"
	"linearize.example/checker/conform/engine"
	"linearize.example/model"
)

// pick is a reconcile that may begin: of a binding that will want its port or nothing.
type pick struct {
	tgb       int
	wants     engine.Atom
	replace   bool  // another pod has taken the place of the one there was
	registers bool  // recorded targets change at its end
	again     bool  // or are deregistered once more
	mine      bool  // whose reconcile it is will be seen
	memory    wants // what is computed then
}

// reconciles begins every reconcile that is worth trying. Pods come and go just before: nothing but the beginning of a
// reconcile, and the registration of recorded targets, looks at them, so that they may as well have done so earlier.
func (x *search) reconciles(tr *trail, p, w int) {
	from := len(x.picks)
	x.collect(tr, p, false)
	for i := from; i < len(x.picks); i++ {
		x.pick(tr, conform.Args{Process: p, Worker: w, TGB: x.picks[i].tgb}, &x.picks[i])
	}
	x.picks = x.picks[:from]
}

// collect appends the reconciles that are worth trying; early says that they do not take the mutex yet.
func (x *search) collect(tr *trail, p int, early bool) {
	x.load(tr.state)
	n, now := x.world.tgbs, tr.wants[p-1]
	from := len(x.picks)
	for t := 1; t <= n; t++ {
		if x.inFlight(p, t) {
			continue
		}
		watched := x.watch.Has(t)
		pod, registered, _ := x.d.PodOf(t)
		for _, v := range [...]engine.Atom{conform.Port, conform.None} {
			c := pick{tgb: t, wants: v}
			switch {
			case !watched:
			case v == conform.Port:
				c.registers = registered == 0 || pod != registered
			default:
				c.registers = registered != 0
			}
			if c.registers && !x.recorded(tr, t, v == conform.Port, registered != 0) {
				continue
			}
			c.again = watched && registered == 0 && v == conform.None && x.recorded(tr, t, false, true)
			x.offer(p, from, early, c, now)
		}
		if !watched && pod != 0 && x.d.Skipped.Has(t) {
			x.offer(p, from, early, pick{tgb: t, wants: conform.Port, replace: true}, now)
		}
		if watched && registered != 0 && pod == registered && x.recorded(tr, t, true, true) {
			x.offer(p, from, early, pick{tgb: t, wants: conform.Port, replace: true, registers: true}, now)
		}
	}
}

// offer appends a reconcile, once for each way in which what is computed decides what comes next.
func (x *search) offer(p, from int, early bool, c pick, now wants) {
	if (early || !x.joined) && !x.world.design.GroupMutex {
		x.picks = append(x.picks, c) // decided when the mutex is taken
		return
	}
	for _, memory := range now.settled(x.world.tgbs, c.tgb, c.wants) {
		c.memory = memory
		c.mine = c.registers || c.again || x.d.Skipped.Has(c.tgb)
		if !x.joined || c.mine {
			x.picks = append(x.picks, c)
			continue
		}
		// Two reconciles that change no recorded targets, and between whose steps nothing comes, differ in nothing but whose
		// they are, which nobody sees. One of them is enough where its states hold the other's.
		covered := slices.ContainsFunc(x.picks[from:], func(o pick) bool { return x.covers(p, &o, &c) })
		if !covered {
			x.picks = slices.DeleteFunc(x.picks, func(o pick) bool { return x.covers(p, &c, &o) })
			x.picks = append(x.picks, c)
		}
	}
}

// covers says whether all that follows from the second reconcile follows from the first. That a binding has a pod makes a
// difference only to a process that does not know the group yet.
func (x *search) covers(p int, a, b *pick) bool {
	if a.mine || b.mine || !b.memory.in(a.memory) || a.memory.starting() != b.memory.starting() {
		return false
	}
	if a.wants != b.wants && !x.world.tagged && !x.d.MemoryOf(p).Tracked {
		return false
	}
	lo, hi := a.memory.ends(x.world.tgbs)
	l, h := b.memory.ends(x.world.tgbs)
	return lo == l && hi == h
}

// near is how many operations a reconcile, and what overlaps with it, may take before targets are registered: with one worker it
// takes fewer.
const near = 24

// recorded says whether the capture still shows a registration, or the opposite, of the binding's targets, near enough to be
// the end of a reconcile that begins now; at the end of the capture it may be missing. A reconcile need not come to its end
// where processes die or several registers targets, or where a design keeps targets back.
func (x *search) recorded(tr *trail, tgb int, come, gone bool) bool {
	env := &x.world.env
	if env.crashes || env.processes > 1 || come && x.world.design.GateRegister {
		return true
	}
	seen := 0
	for i := int(tr.n.done.base); i < len(x.ops); i++ {
		op := &x.ops[i]
		if tr.n.done.has(i) || op.optional() || op.foreign || op.observed() {
			continue
		}
		if (come && op.kind == register || gone && op.kind == deregister) && op.port == x.ports[tgb] {
			return true
		}
		if seen++; seen >= near*env.workers {
			return false
		}
	}
	return true
}

func (x *search) inFlight(p, t int) bool {
	for w := 1; w <= x.world.env.workers; w++ {
		if me := x.d.WorkerOf(p, w); me.Step != conform.AtIdle && me.Tgb == t {
			return true
		}
	}
	return false
}

// occasion brings about what makes the controller look at a binding, and has a worker take it up. Each state on the way is
// given to visit; the last is returned, none when the reconcile cannot begin.
func (x *search) occasion(state []uint64, args conform.Args, wants engine.Atom, replace bool, visit func(model.Action, []uint64)) []uint64 {
	d := x.d
	x.load(state)
	pod, _, _ := d.PodOf(args.TGB)
	take := func(a model.Action) bool {
		x.load(state)
		outs := d.Take(a, args)
		if len(outs) == 0 {
			return false
		}
		state = x.copy(outs[:x.scratch.words]) // the specification may allow a step in several ways
		visit(a, state)
		return true
	}
	if wants == conform.Port {
		if replace {
			take(model.PodGoes)
			pod = 0
		}
		if pod == 0 {
			take(model.PodComes)
		}
	} else if pod != 0 {
		take(model.PodGoes)
	}
	if take(model.Pick) {
		return state
	}
	take(model.Skip) // unless it was skipped before, and seen to be
	if take(model.FireDeferred) && take(model.Pick) {
		return state
	}
	return nil
}

// pick begins a reconcile.
func (x *search) pick(tr *trail, args conform.Args, c *pick) {
	defer x.release(x.scratch.used)
	next, ok := x.begins(tr, args, c)
	switch {
	case !ok:
	case x.joined && !x.world.design.GroupMutex:
		x.lockWith(&next, args, c.memory)
	default:
		x.proceed(next)
	}
}

// begins takes a reconcile up, which then waits for the mutex.
func (x *search) begins(tr *trail, args conform.Args, c *pick) (next trail, ok bool) {
	l := label{action: model.Pick, args: args, wants: c.wants, replace: c.replace, ops: [2]int32{-1, -1}}
	state := tr.state
	early := x.world.design.GroupMutex // what is wanted is computed before the mutex is taken
	if early {
		state = x.copy(state)
		x.compute(state, args.Process, c.memory)
		l.memory = c.memory
	}
	cost := int32(0)
	state = x.occasion(state, args, c.wants, c.replace, func(a model.Action, _ []uint64) {
		if a == model.PodComes || a == model.PodGoes {
			cost++ // that time passes, and a binding is reconciled again, is likelier
		}
	})
	if state == nil {
		return next, false
	}
	if early {
		x.compute(state, args.Process, c.memory)
	}
	next = tr.then(state, l)
	next.cost += cost
	return next, true
}

// compute writes what is typical of wants into a state.
func (x *search) compute(state []uint64, p int, w wants) {
	v := w.typical(x.world.tgbs)
	x.d.Compute(state, p, v)
	if x.loaded == &state[0] {
		x.d.MemoryOf(p).Computed = v
	}
}

// lock takes the mutex, where it is free.
func (x *search) lock(tr *trail, args conform.Args) {
	me := x.d.WorkerOf(args.Process, args.Worker)
	args.TGB = me.Tgb
	if x.world.design.GroupMutex {
		x.lockWith(tr, args, 0)
		return
	}
	v := engine.Atom(conform.None)
	if me.Pod != 0 {
		v = conform.Port
	}
	for _, memory := range tr.wants[args.Process-1].settled(x.world.tgbs, args.TGB, v) {
		x.lockWith(tr, args, memory)
	}
}

// lockWith takes the mutex, where what is computed then is known, or was before: then memory is 0.
func (x *search) lockWith(tr *trail, args conform.Args, memory wants) {
	defer x.release(x.scratch.used)
	var state []uint64
	if memory == 0 {
		state = x.take(tr, model.Lock, args)
	} else {
		state = x.locked(tr.state, args, memory)
	}
	if len(state) == 0 {
		return
	}
	x.load(state)
	wanted := x.d.WorkerOf(args.Process, args.Worker).Wanted
	x.inward(tr, state, label{action: model.Lock, args: args, memory: memory, ops: [2]int32{-1, -1}}, want, wanted)
}

func (x *search) locked(state []uint64, args conform.Args, memory wants) []uint64 {
	state = x.copy(state)
	x.compute(state, args.Process, memory)
	x.load(state)
	outs := x.d.Take(model.Lock, args)
	if len(outs) == 0 {
		return nil
	}
	outs = x.copy(outs)
	x.compute(outs, args.Process, memory)
	return outs
}

// widen finds the bindings that may be reconciled in a node without any call and without a change but of what they want, and
// adds what they may want then. Their reconciles may come in any number and order, so that every choice can be had.
func (x *search) widen(c *node) (l label, ok bool) {
	d := x.d
	x.load(c.state)
	p, w := d.Leader(), 1
	for ; w <= x.world.env.workers && d.WorkerOf(p, w).Step != conform.AtIdle; w++ {
	}
	if w > x.world.env.workers {
		return l, false
	}
	now := c.wants[p-1]
	all := now
	lo, hi := now.ends(x.world.tgbs)
	for t := 1; t <= x.world.tgbs; t++ {
		if t == lo || t == hi || now.starting() && !now.with(t, mayNone).starting() {
			continue
		}
		for _, v := range [...]engine.Atom{conform.None, conform.Port} {
			inside := lo < t && t < hi
			if now.of(t)&may(v) != 0 || v == conform.Port && !inside {
				continue
			}
			if x.idles(c, conform.Args{Process: p, Worker: w, TGB: t}, v) {
				all = all.with(t, all.of(t)|may(v))
			}
		}
	}
	return label{args: conform.Args{Process: p, Worker: w}, memory: all, free: true, ops: [2]int32{-1, -1}}, all != now
}

// idles says whether a reconcile of a binding can go unseen and leave everything else as it was.
func (x *search) idles(c *node, args conform.Args, v engine.Atom) bool {
	d := x.d
	x.load(c.state)
	if x.inFlight(args.Process, args.TGB) {
		return false
	}
	defer x.release(x.scratch.used)
	state := x.occasion(c.state, args, v, false, func(model.Action, []uint64) {})
	if state == nil {
		return false
	}
	state = x.locked(state, args, c.wants[args.Process-1])
	if state == nil {
		return false
	}
	if x.load(state); len(x.inner) > 0 && d.WorkerOf(args.Process, args.Worker).Step != conform.AtUnlock {
		return false // what it wants, or finds in the cache, is recorded
	}
	for _, end := range x.unseen(state, args) {
		x.load(end)
		end = x.copy(d.Take(model.Register, args))
		x.canonical(end)
		x.compute(end, args.Process, c.wants[args.Process-1])
		if slices.Equal(end, c.state) {
			return true
		}
	}
	return false
}

// unseen returns the states in which a reconcile that has the mutex is about to register targets without having made a call.
func (x *search) unseen(state []uint64, args conform.Args) (ends [][]uint64) {
	d := x.d
	words := x.scratch.words
	list := state
	x.load(state)
	if d.WorkerOf(args.Process, args.Worker).Step == conform.AtFetch {
		list = x.copy(d.Take(model.ReadCache, args))
		if len(list) == 0 && !x.describes {
			list = x.copy(d.Take(model.Describe, args))
			if x.world.env.failures {
				list = append(list, d.Take(model.DescribeFails, args)...)
			}
		}
	}
	for ; len(list) > 0; list = list[words:] {
		x.load(list[:words])
		if d.WorkerOf(args.Process, args.Worker).Step == conform.AtUnlock {
			ends = append(ends, x.copy(d.Take(model.Unlock, args)))
		}
	}
	return ends
}
