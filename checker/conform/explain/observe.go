package explain

import (
	"fmt"
	"slices"
	"strings"

	"linearize.example/checker/conform"
	"linearize.example/checker/conform/engine"
	"linearize.example/model"
	"linearize.example/traces"
)

// What sources tell besides calls is a visible step, too.
const (
	runs  kind = iota + deregister + 1 // a process is alive and leads; no step of its own
	elect                              // a process leads from now on: a start, or a change of the leader
	skip                               // a TGB with a known port is skipped
	reset                              // its checkpoint is emptied
	want                               // the mutex is taken, and this is wanted
	hit                                // the rules are taken from the cache
)

// observed says whether the operation is no call.
func (op *operation) observed() bool { return op.kind > deregister }

// otherHalf of a step that sources may tell in two lines, in either order.
var otherHalf = map[traces.ObservationKind]traces.ObservationKind{traces.Skipped: traces.Deferred, traces.Deferred: traces.Skipped}

// observe adds what the history tells besides calls to the operations.
func (s *Subject) observe(h *traces.History, spans func([]traces.Permission) ([]span, bool)) {
	var lines []line
	type told struct {
		kind traces.ObservationKind
		op   int
	}
	last := map[string]told{} // by process: its latest observation
	for i := range h.Observations {
		ob := &h.Observations[i]
		op := operation{outcome: traces.Succeeded, call: ob.Earliest, ret: ob.Latest, after: -1, caller: ob.Process, tgb: ob.TGB,
			certain: certain(h, ob.Sources, ob.Process), id: ob.ID, at: clockAt(ob.Earliest)}
		op.port = s.portOf(ob.TGB)
		switch ob.Kind {
		case traces.LeaderElected:
			op.kind = elect
		case traces.Skipped, traces.Deferred:
			op.kind = runs
			if op.port != 0 {
				op.kind = skip
			}
			if l, ok := last[ob.Process]; ok && l.kind == otherHalf[ob.Kind] && s.ops[l.op].kind == op.kind && sameTGB(s.ops[l.op].tgb, ob.TGB) {
				delete(last, ob.Process)
				continue // that it is skipped and that it is deferred are two halves of one step
			}
		case traces.CheckpointReset:
			op.kind = runs
			if op.port != 0 {
				op.kind = reset
			}
		case traces.Reconciling:
			op.kind = runs
		case traces.Wanted, traces.CacheHit:
			if ob.Group != s.Group {
				continue
			}
			op.kind = hit
			if ob.Kind == traces.Wanted {
				op.kind = want
				op.rules, _ = spans(ob.Permissions)
			}
			if !slices.Contains(s.inner, op.caller) {
				s.inner = append(s.inner, op.caller)
			}
		default:
			continue
		}
		last[ob.Process] = told{ob.Kind, len(s.ops)}
		lines = append(lines, lineOf(h, len(s.ops), ob.Process, ob.Sources))
		s.ops = append(s.ops, op)
		if !slices.Contains(s.callers, op.caller) {
			s.callers = append(s.callers, op.caller)
		}
	}
	s.chain(h, lines)
}

// portOf is the port that a TGB is known to need, 0 where none is, or one that is no end of a rule.
func (s *Subject) portOf(tgb string) int32 {
	found := int32(0)
	for name, port := range s.named {
		if tgb != "" && sameTGB(name, tgb) {
			if found != 0 && found != port {
				return 0
			}
			found = port
		}
	}
	return found
}

// sameTGB compares names of which either may lack the namespace.
func sameTGB(a, b string) bool {
	if strings.Contains(a, "/") != strings.Contains(b, "/") {
		a, b = a[strings.Index(a, "/")+1:], b[strings.Index(b, "/")+1:]
	}
	return a == b
}

// know takes over what is known of the TGBs: the ports that they need from the subject's source. Of a TGB that needs several
// the specification cannot speak.
func (s *Subject) know(sel *Selection) {
	if !sel.HasBindings {
		return
	}
	s.named = map[string]int32{}
	only := true
	needed := map[int32]bool{}
	for _, b := range sel.Bindings {
		var mine []int32
		for _, n := range b.Needs {
			if n.Protocol != s.Protocol || n.Source != s.Source {
				continue
			}
			mine = append(mine, n.Port)
			only = only && slices.Contains(s.ports, n.Port) && !needed[n.Port]
			needed[n.Port] = true
		}
		if len(mine) == 1 && slices.Contains(s.ports, mine[0]) {
			s.named[b.Name] = mine[0]
		}
		only = only && len(mine) <= 1
	}
	s.only = only && len(needed) > 0
	if s.only {
		s.note("the TGBs are those that were given, one for each port; one that was deleted before is not among them")
	}
}

// line is where in a log something was told.
type line struct {
	op          int // the subject's operation
	process     string
	input       int // -1: not in a log
	first, last int
}

func lineOf(h *traces.History, op int, process string, sources []traces.Source) line {
	l := line{op: op, process: process, input: -1}
	for _, s := range sources {
		var n int
		if h.Inputs[s.Input].Format != traces.FormatControllerLog {
			continue
		}
		if _, err := fmt.Sscanf(s.Position, "line %d", &n); err != nil || l.input >= 0 && l.input != s.Input {
			continue
		}
		if l.input < 0 {
			l = line{op, process, s.Input, n, n}
		}
		l.first, l.last = min(l.first, n), max(l.last, n)
	}
	return l
}

// chain orders what one process's log tells by its lines: an observation comes after what ended before its line, and what
// begins after its line comes after it.
func (s *Subject) chain(h *traces.History, observed []line) {
	all := slices.Clone(observed)
	for _, l := range s.calls {
		if !s.ops[l.op].optional() {
			all = append(all, l)
		}
	}
	slices.SortFunc(observed, func(a, b line) int { return a.first - b.first })
	for _, o := range observed {
		if o.input < 0 {
			continue
		}
		before := line{op: -1}
		for _, l := range all {
			if l.input == o.input && l.process == o.process && l.last < o.first && (before.op < 0 || l.last > before.last) {
				before = l
			}
		}
		s.ops[o.op].after = before.op
	}
	for _, l := range append(slices.Clone(s.calls), observed...) {
		before := line{op: -1}
		for _, o := range observed {
			if l.input >= 0 && l.input == o.input && l.process == o.process && o.last < l.first && (before.op < 0 || o.last > before.last) {
				before = o
			}
		}
		if before.op >= 0 && s.follows(before.op, s.ops[l.op].after) {
			s.ops[l.op].after = before.op
		}
	}
}

// follows says whether an operation comes after another, or after none.
func (s *Subject) follows(op, other int) bool {
	for ; op >= 0 && op != other; op = s.ops[op].after {
	}
	return op == other
}

// thin drops what adds nothing: of a process that is seen to lead again and again, with nothing else in between, the first and
// the last time count. In between is nothing where each comes right after the one before, or where no log orders them.
func (s *Subject) thin() {
	var kept []operation
	moved := make([]int, len(s.ops))
	ordered := make([]bool, len(s.ops)+1)
	for i, op := range s.ops {
		if op.after >= 0 {
			ordered[i], ordered[op.after] = true, true
		}
	}
	joins := func(i int) bool { // whether i goes on with what i-1 says
		if i < 1 || i >= len(s.ops) || s.ops[i].kind != runs || s.ops[i-1].kind != runs || s.ops[i].caller != s.ops[i-1].caller {
			return false
		}
		return s.ops[i].after == i-1 || !ordered[i] && !ordered[i-1]
	}
	for i, op := range s.ops {
		if joins(i) && joins(i+1) {
			moved[i] = len(kept) - 1 // what came after it comes after the one before
			continue
		}
		moved[i] = len(kept)
		kept = append(kept, op)
	}
	for i := range kept {
		if kept[i].after >= 0 {
			kept[i].after = moved[kept[i].after]
		}
	}
	s.ops = kept
}

// observed takes what is seen besides calls and happens to no worker.
func (x *search) observed(tr *trail) {
	for _, i := range tr.enabled {
		op := &x.ops[i]
		x.load(tr.state)
		leader := x.d.Leader()
		args := conform.Args{Process: leader, TGB: x.binding(op.port)}
		seen := label{args: args, ops: [2]int32{int32(i), -1}}
		switch op.kind {
		case runs:
			if x.mayBe(tr, leader, op) {
				seen.action, seen.args.Rule = model.ExternalRevoke, noRule
				x.see(tr, tr.state, seen)
			}
		case elect:
			if !x.busy(leader) || x.world.env.crashes {
				x.elected(tr, model.Crash, leader, i)
			}
			if x.world.env.leaderChanges {
				x.elected(tr, model.LeaderChange, 3-leader, i)
			}
		case skip, reset:
			if x.mayBe(tr, leader, op) {
				x.queued(tr, args, i)
			}
		}
	}
}

// elected begins another life of a process, which is seen.
func (x *search) elected(tr *trail, a model.Action, p, i int) {
	if x.runsOn(tr, a, p) {
		return
	}
	x.leaves(tr, a, 0, func(tr *trail) {
		defer x.release(x.scratch.used)
		args := conform.Args{Process: p}
		if outs := x.take(tr, a, args); len(outs) > 0 {
			x.see(tr, outs[:x.scratch.words], label{action: a, args: args, memory: x.fresh(), ops: [2]int32{int32(i), -1}})
		}
	})
}

// queued skips a binding, or empties the checkpoint of one that was skipped. One that is queued already may be skipped again,
// which changes nothing; that it was skipped need not have been seen when its checkpoint is emptied.
func (x *search) queued(tr *trail, args conform.Args, i int) {
	defer x.release(x.scratch.used)
	seen := [2]int32{int32(i), -1}
	pod, _, checkpoint := x.d.PodOf(args.TGB)
	outs := x.take(tr, model.Skip, args)
	if x.ops[i].kind == skip {
		if len(outs) > 0 {
			x.see(tr, outs[:x.scratch.words], label{action: model.Skip, args: args, ops: seen})
		} else if x.load(tr.state); pod == checkpoint && x.mayPick(args) {
			args.Rule = noRule
			x.see(tr, tr.state, label{action: model.ExternalRevoke, args: args, ops: seen})
		}
		return
	}
	at := *tr
	if len(outs) > 0 {
		at = tr.then(outs[:x.scratch.words], label{action: model.Skip, args: args, ops: [2]int32{-1, -1}})
	}
	if outs = x.take(&at, model.FireDeferred, args); len(outs) > 0 {
		x.see(&at, outs[:x.scratch.words], label{action: model.FireDeferred, args: args, ops: seen})
	}
}

// mayPick says whether a worker of the leader is idle, and none has the binding in flight.
func (x *search) mayPick(args conform.Args) bool {
	for w := 1; w <= x.world.env.workers; w++ {
		if x.d.WorkerOf(args.Process, w).Step == conform.AtIdle {
			return !x.inFlight(args.Process, args.TGB)
		}
	}
	return false
}

// inside says whether the steps under the mutex by a process are recorded, and whether they may be hidden all the same: of
// a process of which nothing is known yet both may be true.
func (x *search) inside(tr *trail, p int) (recorded, hidden bool) {
	life := int(tr.lives[p-1])
	if len(x.callers) > 1 && life > 0 {
		recorded = slices.Contains(x.inner, x.callers[life-1])
		return recorded, !recorded
	}
	return len(x.inner) > 0, len(x.inner) < len(x.callers)
}

// inward takes a step under the mutex: it is seen where the process records such steps.
func (x *search) inward(tr *trail, state []uint64, l label, k kind, rules engine.Set) {
	recorded, hidden := x.inside(tr, l.args.Process)
	if hidden || k == want && rules == (engine.Set{}) {
		x.proceed(tr.then(state, l))
	}
	if !recorded {
		return
	}
	ops := x.matches(tr, l.args.Process, k, rules, ok)
	for _, i := range ops {
		l.ops[0] = int32(i)
		x.see(tr, state, l)
	}
	if len(ops) == 0 {
		x.missed(tr, attempt{tr.n.done, k, rules, ok})
	}
}

// readCache takes the rules from the cache.
func (x *search) readCache(tr *trail, args conform.Args) {
	defer x.release(x.scratch.used)
	if outs := x.take(tr, model.ReadCache, args); len(outs) > 0 {
		x.inward(tr, outs[:x.scratch.words], label{action: model.ReadCache, args: args, ops: [2]int32{-1, -1}}, hit, engine.Set{})
	}
}

// tellsAll says whether every process that is seen is one for sure, and the first that is seen of it is that it was elected.
func (s *Subject) tellsAll() bool {
	first := map[string]bool{}
	for i := range s.ops {
		op := &s.ops[i]
		if _, ok := first[op.caller]; !ok && !op.foreign {
			first[op.caller] = op.kind == elect && op.certain
		}
	}
	for _, elected := range first {
		if !elected {
			return false
		}
	}
	return len(first) > 0
}
