package explain

import (
	"linearize.example/checker/conform"
	"linearize.example/model"
)

// startedAnew says whether a process knows nothing, as after a start.
func (x *search) startedAnew(tr *trail, p int) bool {
	x.load(tr.state)
	m := x.d.MemoryOf(p)
	return !m.Cached && !m.Tracked && tr.wants[p-1] == x.fresh() && !x.busy(p)
}

// restart begins another life of a process, unless the capture shows that the same one was running before and is later.
func (x *search) restart(tr *trail, a model.Action, p int) {
	if x.tellsAll || x.runsOn(tr, a, p) {
		return
	}
	x.leaves(tr, a, 0, func(tr *trail) {
		defer x.release(x.scratch.used)
		args := conform.Args{Process: p}
		outs := x.take(tr, a, args)
		if len(outs) == 0 {
			return
		}
		next := tr.then(outs, label{action: a, args: args, memory: x.fresh(), ops: [2]int32{-1, -1}})
		next.lives[p-1] = 0
		x.proceed(next)
	})
}

// leaves goes on with each state in which the leader may be when another process takes over: it may have begun reconciles, of bindings
// beyond the given one, for whose mutex it still waits. At all other times a reconcile may as well begin when it takes the mutex.
func (x *search) leaves(tr *trail, a model.Action, beyond int, then func(*trail)) {
	then(tr)
	x.load(tr.state)
	p, w := x.d.Leader(), 1
	for ; w <= x.world.env.workers && x.d.WorkerOf(p, w).Step != conform.AtIdle; w++ {
	}
	if !x.joined || a != model.LeaderChange || w > x.world.env.workers || !x.goesOnLater(tr, p) {
		return
	}
	from := len(x.picks)
	x.collect(tr, p, true)
	for i := from; i < len(x.picks); i++ {
		c := x.picks[i]
		if c.tgb <= beyond {
			continue
		}
		used := x.scratch.used
		if next, ok := x.begins(tr, conform.Args{Process: p, Worker: w, TGB: c.tgb}, &c); ok {
			x.leaves(&next, a, c.tgb, then)
		}
		x.release(used)
	}
	x.picks = x.picks[:from]
}

// goesOnLater says whether the capture may still show a call by a process.
func (x *search) goesOnLater(tr *trail, p int) bool {
	life := int(tr.lives[p-1])
	if len(x.callers) < 2 || life == 0 {
		return !x.tellsAll
	}
	for i := int(tr.n.done.base); i < len(x.ops); i++ {
		op := &x.ops[i]
		if !tr.n.done.has(i) && op.caller == x.callers[life-1] && (!op.observed() || op.kind >= want) {
			return true
		}
	}
	return false
}

// runsOn says whether the capture shows that the process that would end was running before and is later.
func (x *search) runsOn(tr *trail, a model.Action, p int) bool {
	done := tr.n.done
	for _, life := range x.Subject.lives {
		if done.has(life[0]) && !done.has(life[1]) && x.ends(tr, a, p, &x.ops[life[0]]) {
			return true
		}
	}
	return false
}

// ends says whether a process that begins anew may be, or is, the one that sent an operation.
func (x *search) ends(tr *trail, a model.Action, p int, op *operation) bool {
	switch {
	case len(x.callers) < 2:
		return true
	case a == model.Crash:
		return x.mayBe(tr, p, op)
	}
	return int(tr.lives[p-1]) == x.callerNumber(op) // it did not lead, and may never have run before
}
