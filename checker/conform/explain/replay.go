package explain

import (
	"fmt"
	"slices"

	"linearize.example/checker/conform"
	"linearize.example/checker/conform/engine"
	"linearize.example/model"
)

// moment is a state of a behaviour and the step that led to it.
type moment struct {
	state []uint64
	label label
}

// vector is what one process has computed.
type vector = [engine.FunCap]engine.Atom

// replay turns the way to the last node into a behaviour of the specification, step by step from its first state: what was left
// open of what processes had computed is chosen from the end backwards, and reconciles that changed nothing else are made
// where the choice needs them. It fails if a step is not one of the specification's.
func (x *search) replay() ([]moment, error) {
	var labels []label
	root := x.found
	for ; root.parent != nil; root = root.parent {
		for i := len(root.steps) - 1; i >= 0; i-- {
			labels = append(labels, root.steps[i])
		}
	}
	slices.Reverse(labels)
	first, changes := x.choose(root, labels)
	state, err := x.first(root, first)
	if err != nil {
		return nil, err
	}
	r := &replayer{search: x, path: []moment{{state: state, label: label{ops: [2]int32{-1, -1}}}}}
	for i := range labels {
		l := &labels[i]
		switch {
		case l.free:
			for _, c := range changes[i] {
				r.idle(conform.Args{Process: l.args.Process, Worker: l.args.Worker, TGB: c.tgb}, c.wants)
			}
		case l.action == model.Pick && !l.answered:
			r.pick(l)
		case l.action == model.ExternalRevoke && l.args.Rule == noRule:
			r.path = append(r.path, moment{r.state(), *l})
		default:
			r.step(*l)
		}
		if r.err != nil {
			return nil, r.err
		}
	}
	return r.path, nil
}

// choose returns what the leader has computed at first, and for each step that leaves open which reconciles happen, those that
// have to.
func (x *search) choose(root *node, labels []label) (first vector, changes map[int][]pick) {
	changes = map[int][]pick{}
	now := root.wants
	before := make([]wants, len(labels)) // of the process whose memory changes
	for i := range labels {
		if l := &labels[i]; l.memory != 0 {
			before[i] = now[l.args.Process-1]
			now[l.args.Process-1] = l.memory
		}
	}
	chosen := [2]vector{x.member(now[0]), x.member(now[1])}
	for i := len(labels) - 1; i >= 0; i-- {
		l := &labels[i]
		if l.memory == 0 {
			continue
		}
		v := &chosen[l.args.Process-1]
		switch {
		case l.free:
			for t := 1; t <= x.world.tgbs; t++ {
				if v[t-1] == conform.Unknown || before[i].of(t)&may(v[t-1]) != 0 {
					continue
				}
				changes[i] = append(changes[i], pick{tgb: t, wants: v[t-1]})
				v[t-1] = one(before[i].of(t))
			}
		case l.action == model.Pick || l.action == model.Lock:
			t := l.args.TGB
			if is := before[i].of(t); is&may(v[t-1]) == 0 || before[i].starting() {
				v[t-1] = one(is)
			}
		default: // a start
			*v = x.member(before[i])
		}
	}
	return chosen[0], changes
}

// one chooses what a binding wants: unknown, where that is possible, for nothing is known of it then.
func one(w wants) engine.Atom {
	switch {
	case w&mayUnknown != 0:
		return conform.Unknown
	case w&mayPort != 0:
		return conform.Port
	}
	return conform.None
}

// member returns one of the states of memory that wants stand for.
func (x *search) member(w wants) (v vector) {
	for t := 1; t <= x.world.tgbs; t++ {
		v[t-1] = one(w.of(t))
	}
	return v
}

// first returns the state in which the capture begins.
func (x *search) first(root *node, computed vector) ([]uint64, error) {
	for _, b := range x.beginnings() {
		w, err := x.begin(b, x.member(b.wants))
		if err != nil {
			return nil, err
		}
		tidied := slices.Clone(w)
		all := [2]wants{b.wants, x.fresh()}
		x.canonical(tidied)
		x.tidy(tidied, &all)
		if all[0] == root.wants[0] && slices.Equal(tidied, root.state) {
			return x.begin(b, computed)
		}
	}
	return nil, fmt.Errorf("the explanation begins in no state in which the capture can begin")
}

// replayer takes the steps of a behaviour one after the other.
type replayer struct {
	*search
	path []moment
	err  error
}

func (r *replayer) state() []uint64 { return r.path[len(r.path)-1].state }

// step takes a step of the specification; of those that an action allows, the one with the same answer.
func (r *replayer) step(l label) {
	if r.err != nil {
		return
	}
	d := r.d
	r.load(r.state())
	answers := slices.Clone(d.Answers())
	outs := slices.Clone(d.Take(l.action, l.args))
	looks := l.answered && describes(l.action)
	words := d.Model.Words
	n := len(outs) / words
	for i := range n {
		state := outs[i*words : (i+1)*words]
		if looks && n == len(answers) && answers[i] != l.answer {
			continue
		}
		if r.load(state); looks && n != len(answers) && d.MemoryOf(l.args.Process).Cache != l.answer {
			continue
		}
		r.append(state, l)
		return
	}
	r.err = fmt.Errorf("the explanation does not hold: the specification has no step %v %v in\n%s", l.action, l.args, d.Model.Show(r.state()))
}

// append adds a state. Pods get the names in which they are met, and faults are forgotten, so that both never run out.
func (r *replayer) append(state []uint64, l label) {
	state = slices.Clone(state)
	r.d.Rename(state)
	r.loaded = nil
	r.path = append(r.path, moment{state, l})
}

// pick begins a reconcile.
func (r *replayer) pick(l *label) {
	defer r.release(r.scratch.used)
	end := r.occasion(r.state(), l.args, l.wants, l.replace, func(a model.Action, state []uint64) {
		step := label{action: a, args: l.args, ops: [2]int32{-1, -1}}
		if a == model.Pick {
			step = *l
		}
		r.append(state, step)
	})
	if end == nil {
		r.err = fmt.Errorf("the explanation does not hold: the reconcile of binding %d cannot begin in\n%s", l.args.TGB, r.d.Model.Show(r.state()))
	}
}

// idle makes a reconcile that shows nothing.
func (r *replayer) idle(args conform.Args, v engine.Atom) {
	step := func(a model.Action) { r.step(label{action: a, args: args, ops: [2]int32{-1, -1}}) }
	at := func() engine.Atom { r.load(r.state()); return r.d.WorkerOf(args.Process, args.Worker).Step }
	r.pick(&label{action: model.Pick, args: args, wants: v, ops: [2]int32{-1, -1}})
	step(model.Lock)
	if r.err != nil {
		return
	}
	if at() == conform.AtFetch {
		if r.d.MemoryOf(args.Process).Cached {
			step(model.ReadCache)
		} else {
			r.look(args)
		}
	}
	step(model.Unlock)
	step(model.Register)
}

// look takes the describe after which there is nothing to do, or one that fails.
func (r *replayer) look(args conform.Args) {
	from := r.state()
	r.load(from)
	for _, v := range slices.Clone(r.d.Answers()) {
		r.step(label{action: model.Describe, args: args, answer: v, answered: true, ops: [2]int32{-1, -1}})
		if r.err != nil {
			return
		}
		if r.load(r.state()); r.d.WorkerOf(args.Process, args.Worker).Step == conform.AtUnlock {
			return
		}
		r.path = r.path[:len(r.path)-1]
	}
	r.step(label{action: model.DescribeFails, args: args, ops: [2]int32{-1, -1}})
}
