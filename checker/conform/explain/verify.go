package explain

import (
	"slices"

	"linearize.example/checker/conform"
	"linearize.example/checker/conform/engine"
	"linearize.example/model"
	"linearize.example/traces"
)

// decides takes the describes by which a design with CheckpointVerifiesAWS decides whether an unchanged binding is skipped. In the
// specification such a describe is a part of the decision: Skip needs an answer that shows the binding's rule, and Pick one that does
// not. So the recorded describe is that step, for a binding with a pod to which its checkpoint is equal, while a worker is free. A binding
// that was skipped before may be skipped again, which changes nothing; its answer must be one that the reads allow all the same.
func (x *search) decides(tr *trail, p int) {
	for _, i := range tr.enabled {
		op := &x.ops[i]
		if op.kind != describe || op.outcome != traces.Succeeded || op.foreign || !x.mayBe(tr, p, op) {
			continue
		}
		x.load(tr.state)
		if v := x.targets[i]; slices.Contains(x.d.Answers(), v) {
			for t := 1; t <= x.world.tgbs; t++ {
				x.decide(tr, p, t, i, v)
			}
		}
	}
}

// decide takes one describe for the decision about one binding.
func (x *search) decide(tr *trail, p, t, op int, v engine.Set) {
	defer x.release(x.scratch.used)
	x.load(tr.state)
	w := 1
	for ; w <= x.world.env.workers && x.d.WorkerOf(p, w).Step != conform.AtIdle; w++ {
	}
	pod, _, checkpoint := x.d.PodOf(t)
	if w > x.world.env.workers || pod == 0 || pod != checkpoint || x.inFlight(p, t) {
		return
	}
	l := label{action: model.Skip, args: conform.Args{Process: p, Worker: w, TGB: t}, answer: v, answered: true, ops: [2]int32{int32(op), -1}}
	if x.shows(v, t) {
		if outs := x.take(tr, model.Skip, l.args); len(outs) > 0 {
			x.see(tr, outs[:x.scratch.words], l)
			return
		}
		l.action, l.args.Rule = model.ExternalRevoke, noRule
		x.see(tr, tr.state, l)
		return
	}
	l.action, l.wants = model.Pick, conform.Port
	memories := []wants{0}
	if x.world.design.GroupMutex { // what is wanted is computed now
		memories = tr.wants[p-1].settled(x.world.tgbs, t, conform.Port)
	}
	for _, m := range memories {
		at := *tr
		if m != 0 {
			at.state = x.copy(tr.state)
			x.compute(at.state, p, m)
		}
		l.memory = m
		if outs := x.take(&at, model.Pick, l.args); len(outs) > 0 {
			state := outs[:x.scratch.words]
			if m != 0 {
				x.compute(state, p, m)
			}
			x.see(tr, state, l)
		}
	}
}

// shows says whether a view holds a rule that allows a binding's port.
func (x *search) shows(v engine.Set, t int) bool {
	for v.Some() {
		if r := x.d.RuleAt(v.Pop()); r.Lo <= t && t <= r.Hi {
			return true
		}
	}
	return false
}
