package explain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"linearize.example/checker/conform"
	"linearize.example/checker/conform/engine"
	"linearize.example/model"
	"linearize.example/traces"
)

// walker takes random steps of the specification, all of Next's and not only those that the search tries, and records what
// is visible.
type walker struct {
	d       *conform.Driver
	env     Environment
	r       *rand.Rand
	state   []uint64
	ports   []int32
	ops     []operation
	looks   bool // describes are recorded
	targets bool // calls on targets are
	tagged  bool
	changes int // steps since the last change of a pod, so that most reconciles come to their end
}

func newWalker(t testing.TB, design, env string, tgbs int, tagged, looks bool, seed uint64) *walker {
	t.Helper()
	d, err := model.DesignNamed(design)
	if err != nil {
		t.Fatal(err)
	}
	e, err := EnvironmentNamed(env)
	if err != nil {
		t.Fatal(err)
	}
	w := world{design: d, env: e, tgbs: tgbs, tagged: tagged, limit: 999, vpc: e.defaultVPC}
	m, err := conform.NewModel(w.constants())
	if err != nil {
		t.Fatal(err)
	}
	states, err := m.Initial()
	if err != nil {
		t.Fatal(err)
	}
	k := &walker{d: conform.NewDriver(m), env: e, r: rand.New(rand.NewPCG(seed, 1)), state: states[0], looks: looks, tagged: tagged, targets: seed%4 < 2, ports: []int32{0}}
	for i := range tgbs {
		k.ports = append(k.ports, int32(3000+i*i*10))
	}
	return k
}

func (k *walker) spans(set engine.Set) []span {
	var out []span
	for set.Some() {
		r := k.d.RuleAt(set.Pop())
		out = append(out, span{k.ports[r.Lo], k.ports[r.Hi]})
	}
	slices.SortFunc(out, compareSpans)
	return out
}

// step takes one random step.
func (k *walker) step() {
	d := k.d
	d.Load(k.state)
	type choice struct {
		action model.Action
		args   conform.Args
		op     *operation
		state  []uint64
	}
	registered := func(t int) int { _, r, _ := d.PodOf(t); return r }
	var list []choice
	add := func(a model.Action, x conform.Args, op *operation) {
		answers := slices.Clone(d.Answers())
		outs := d.Take(a, x)
		for i := 0; i < len(outs); i += d.Model.Words {
			o := op
			if describes(a) && a != model.ListTagged && k.looks {
				o = &operation{kind: describe, outcome: traces.Succeeded, rules: k.spans(answers[i/d.Model.Words])}
			}
			list = append(list, choice{a, x, o, slices.Clone(outs[i : i+d.Model.Words])})
		}
	}
	call := func(kd kind, rules engine.Set, err string) *operation {
		op := &operation{kind: kd, outcome: traces.Succeeded, rules: k.spans(rules), err: err}
		if err != "" {
			op.outcome = traces.Failed
		}
		return op
	}
	busy := false
	for p := 1; p <= k.env.processes; p++ {
		for w := 1; w <= k.env.workers; w++ {
			x := conform.Args{Process: p, Worker: w}
			if d.WorkerOf(p, w).Step == conform.AtIdle {
				continue
			}
			busy = true
			for _, a := range []model.Action{model.LookUpGroup, model.SaveLookUp, model.Lock, model.ReadCache, model.Describe,
				model.Reload, model.Reread, model.ListTagged, model.Unlock, model.Register} {
				add(a, x, nil)
			}
			switch d.WorkerOf(p, w).Step {
			case conform.AtAuthorize:
				asked := d.ToAuthorize(p, w)
				add(model.AuthorizeOk, x, call(authorize, asked, ""))
				add(model.AuthorizeDuplicate, x, call(authorize, asked, duplicate))
				if k.r.IntN(20) == 0 {
					add(model.AuthorizeFails, x, call(authorize, asked, "RequestLimitExceeded"))
				}
			case conform.AtRevoke:
				asked := d.ToRevoke(p, w)
				add(model.RevokeOk, x, call(revoke, asked, ""))
				add(model.RevokeNotFound, x, call(revoke, asked, notFound))
				if k.r.IntN(20) == 0 {
					add(model.RevokeFails, x, call(revoke, asked, "RequestLimitExceeded"))
				}
			}
		}
	}
	if k.changes++; !busy || k.changes > 4 && k.r.IntN(3) == 0 {
		for t := 1; t < len(k.ports); t++ {
			add(model.PodComes, conform.Args{TGB: t}, nil)
			add(model.PodGoes, conform.Args{TGB: t}, nil)
			for w := 1; w <= k.env.workers; w++ {
				x := conform.Args{Process: d.Leader(), Worker: w, TGB: t}
				add(model.Pick, x, nil)
				add(model.Pick, x, nil)
			}
			add(model.Skip, conform.Args{Process: d.Leader(), TGB: t}, nil)
			add(model.FireDeferred, conform.Args{Process: d.Leader(), TGB: t}, nil)
		}
		k.changes = 0
	}
	if k.r.IntN(8) == 0 {
		add(model.Settle, conform.Args{}, nil)
		add(model.ExpireCache, conform.Args{Process: 1}, nil)
	}
	if !busy && k.r.IntN(60) == 0 {
		add(model.Crash, conform.Args{Process: d.Leader()}, nil)
	}
	if len(list) == 0 {
		return
	}
	c := list[k.r.IntN(len(list))]
	if c.op != nil {
		k.record(*c.op)
	}
	if c.action == model.Register && k.targets {
		t := d.WorkerOf(c.args.Process, c.args.Worker).Tgb
		before := registered(t)
		d.Load(c.state)
		if after := registered(t); before != after {
			if before != 0 {
				k.record(operation{kind: deregister, outcome: traces.Succeeded, port: k.ports[t]})
			}
			if after != 0 {
				k.record(operation{kind: register, outcome: traces.Succeeded, port: k.ports[t]})
			}
		}
	}
	k.state = c.state
	k.d.Rename(k.state)
}

// record appends an operation, a second after the last.
func (k *walker) record(op operation) {
	at := traces.Instant(len(k.ops)+1) * 1_000_000_000
	op.call, op.ret, op.after, op.at = at, at+500_000_000, -1, fmt.Sprint(len(k.ops)+1)
	k.ops = append(k.ops, op)
}

func (k *walker) subject() *Subject {
	s := &Subject{Group: "sg-1", Protocol: "tcp", Source: "sg-lb", ops: slices.Clone(k.ops), describes: k.looks, listed: k.looks && k.tagged, callers: []string{""}}
	for _, op := range s.ops {
		if op.port != 0 {
			s.ports = append(s.ports, op.port)
			s.watched = append(s.watched, op.port)
		}
		for _, r := range op.rules {
			s.ports = append(s.ports, r.lo, r.hi)
		}
	}
	if len(s.ports) == 0 {
		s.ports = []int32{k.ports[1]}
	}
	slices.Sort(s.watched)
	s.watched = slices.Compact(s.watched)
	all := span{k.ports[1], k.ports[len(k.ports)-1]}
	s.ports = append(s.ports, all.lo, all.hi)
	slices.Sort(s.ports)
	s.ports = slices.Compact(s.ports)
	s.initial = [][]span{{all}}
	return s
}

// TestWalksAreExplained: what a design does in an environment, it explains in that environment.
func TestWalksAreExplained(t *testing.T) {
	calls, seed := 0, uint64(0)
	walk := func(design, env string, tgbs, length int) {
		seed++
		k := newWalker(t, design, env, tgbs, seed%2 == 0, seed%3 == 0, seed)
		for i := 0; i < 4000 && len(k.ops) < length; i++ {
			k.step()
		}
		calls += len(k.ops)
		s := k.subject()
		r := explained(t, s, design, env, Options{States: 3_000_000})
		if r.Verdict != Explains {
			for i := range s.ops[:min(r.Done+2, len(s.ops))] {
				t.Logf("%d %s", i, s.text(&s.ops[i]))
			}
			t.Errorf("%s in %s, %d bindings, seed %d: %s at %d of %d: %s %v %s", design, env, tgbs, seed, r.Verdict, r.Done, r.Of, r.Stuck, r.Why, r.Bound)
		}
	}
	for _, design := range []string{"v3.4.0", "v2.7.2", "confirm-authorize", "no-cache", "write-through", "invalidate-on-error", "guard-view", "guard-reread", "proposed", "all-ports"} {
		for _, env := range []string{"fresh-reads", "old-reads", "older-reads"} {
			for range 4 {
				walk(design, env, 3, 20)
			}
		}
		walk(design, "two-workers-old-reads", 2, 12)
		walk(design, "several-groups", 2, 12)
	}
	for range 4 {
		walk("v3.4.0", "old-reads", 6, 30)
		walk("v2.7.2", "fresh-reads", 6, 30)
	}
	if calls < 2000 {
		t.Errorf("the walks hold %d calls only", calls)
	}
}
