package explain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"linearize.example/checker/conform"
	"linearize.example/checker/conform/engine"
	"linearize.example/model"
	"linearize.example/traces"
)

// walker takes random steps of the specification, all of Next's and not only those that the search tries, and records what
// is visible.
type walker struct {
	walk
	d       *conform.Driver
	env     Environment
	r       *rand.Rand
	state   []uint64
	ports   []int32
	ops     []operation
	quiet   int // steps since the last change of a pod, so that most reconciles come to their end
	unseen  int // faults since the last thing that was seen
	lives   [2]int
	callers []string
}

// walk is what a random walk is made of.
type walk struct {
	design, env string
	tgbs, limit int
	seed        uint64
	looks       bool // describes are recorded
	targets     bool // calls on targets are
	tagged      bool
	told        bool // with names: logs tell of starts and of skipped TGBs, and recorders of what is wanted and cached
	names       bool // the record tells running processes apart, and shows calls without an answer as such
}

func newWalker(t testing.TB, w walk) *walker {
	t.Helper()
	d, err := model.DesignNamed(w.design)
	if err != nil {
		t.Fatal(err)
	}
	e, err := EnvironmentNamed(w.env)
	if err != nil {
		t.Fatal(err)
	}
	if w.limit == 0 {
		w.limit = 999
	}
	m, err := conform.NewModel(world{design: d, env: e, tgbs: w.tgbs, tagged: w.tagged, limit: w.limit, vpc: e.defaultVPC}.constants())
	if err != nil {
		t.Fatal(err)
	}
	states, err := m.Initial()
	if err != nil {
		t.Fatal(err)
	}
	k := &walker{walk: w, d: conform.NewDriver(m), env: e, r: rand.New(rand.NewPCG(w.seed, 1)), state: states[0], ports: []int32{0}}
	for i := range w.tgbs {
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

// choice is a step that can be taken, and what is seen of it.
type choice struct {
	action model.Action
	args   conform.Args
	op     *operation
	state  []uint64
}

// step takes one random step.
func (k *walker) step() {
	d := k.d
	d.Load(k.state)
	var list []choice
	add := func(a model.Action, x conform.Args, op *operation) {
		answers := slices.Clone(d.Answers())
		outs := d.Take(a, x)
		for i := 0; i < len(outs); i += d.Model.Words {
			o := op
			if describes(a) && a != model.ListTagged && k.looks {
				o = &operation{kind: describe, outcome: traces.Succeeded, rules: k.shown(a, answers, outs, i)}
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
	unseen := func(a model.Action, x conform.Args) { // the search allows one at a time
		if k.unseen == 0 {
			add(a, x, nil)
		}
	}
	const throttled = "RequestLimitExceeded"
	rarely := k.r.IntN(20) == 0
	busy := false
	for p := 1; p <= k.env.processes; p++ {
		for w := 1; w <= k.env.workers; w++ {
			x := conform.Args{Process: p, Worker: w}
			if d.WorkerOf(p, w).Step == conform.AtIdle {
				continue
			}
			busy = true
			for _, a := range []model.Action{model.LookUpGroup, model.SaveLookUp, model.Lock, model.ReadCache, model.Describe,
				model.Reload, model.Reread, model.SeeGrant, model.SeeRevoke, model.ListTagged, model.Unlock, model.Register} {
				add(a, x, nil)
			}
			if k.looks && rarely {
				add(model.DescribeFails, x, call(describe, engine.Set{}, throttled))
			} else if !k.looks && k.env.failures {
				unseen(model.DescribeFails, x)
			}
			switch d.WorkerOf(p, w).Step {
			case conform.AtAuthorize:
				asked := d.ToAuthorize(p, w)
				add(model.AuthorizeOk, x, call(authorize, asked, ""))
				add(model.AuthorizeDuplicate, x, call(authorize, asked, duplicate))
				add(model.AuthorizeLimit, x, call(authorize, asked, limitHit))
				if rarely {
					add(model.AuthorizeFails, x, call(authorize, asked, throttled))
				}
				if k.env.answers {
					add(model.AuthorizeAnswerLost, x, k.unanswered(call(authorize, asked, "")))
				}
			case conform.AtRevoke:
				asked := d.ToRevoke(p, w)
				add(model.RevokeOk, x, call(revoke, asked, ""))
				add(model.RevokeNotFound, x, call(revoke, asked, notFound))
				if rarely {
					add(model.RevokeFails, x, call(revoke, asked, throttled))
				}
				if k.env.answers {
					add(model.RevokeAnswerLost, x, k.unanswered(call(revoke, asked, "")))
				}
				if k.env.delayed && k.names {
					add(model.RevokeDelayed, x, k.unanswered(call(revoke, asked, "")))
				} else if k.env.delayed {
					unseen(model.RevokeDelayed, x)
				}
			}
		}
	}
	leader := d.Leader()
	if k.quiet++; !busy || k.quiet > 4 && k.r.IntN(3) == 0 {
		for t := 1; t < len(k.ports); t++ {
			add(model.PodComes, conform.Args{TGB: t}, nil)
			add(model.PodGoes, conform.Args{TGB: t}, nil)
			for w := 1; w <= k.env.workers; w++ {
				x := conform.Args{Process: leader, Worker: w, TGB: t}
				add(model.Pick, x, nil)
				add(model.Pick, x, nil)
			}
			add(model.Skip, conform.Args{Process: leader, TGB: t}, nil)
			add(model.FireDeferred, conform.Args{Process: leader, TGB: t}, nil)
		}
		k.quiet = 0
	}
	if k.r.IntN(8) == 0 {
		add(model.Settle, conform.Args{}, nil)
		add(model.ExpireCache, conform.Args{Process: leader}, nil)
	}
	if d.Late().Some() && k.r.IntN(6) == 0 {
		op := call(revoke, d.Late(), "")
		if !d.Late().In(d.Rules()) && !k.env.defaultVPC {
			op = call(revoke, d.Late(), notFound)
		}
		if k.names {
			op = nil // it was recorded when it was sent
		}
		add(model.DelayedRevokeArrives, conform.Args{}, op)
	}
	if !busy && k.r.IntN(60) == 0 || k.env.crashes && k.r.IntN(30) == 0 {
		add(model.Crash, conform.Args{Process: leader}, nil)
	}
	if k.env.leaderChanges && k.r.IntN(15) == 0 {
		add(model.LeaderChange, conform.Args{Process: 3 - leader}, nil)
	}
	if k.env.external && k.r.IntN(10) == 0 && d.Rules().Some() {
		rules := d.Rules()
		rule := rules.Pop()
		op := call(revoke, engine.Bit(rule), "")
		op.foreign = k.names
		add(model.ExternalRevoke, conform.Args{Rule: rule}, op)
	}
	if len(list) > 0 {
		k.take(list[k.r.IntN(len(list))])
	}
}

// shown is the answer behind one successor: of those that wait for a change only some answers have one.
func (k *walker) shown(a model.Action, answers []engine.Set, outs []uint64, i int) []span {
	if a != model.SeeGrant && a != model.SeeRevoke {
		return k.spans(answers[i/k.d.Model.Words])
	}
	k.d.Load(outs[i : i+k.d.Model.Words])
	cache := k.d.MemoryOf(1).Cache
	k.d.Load(k.state)
	return k.spans(cache)
}

// unanswered is a call whose answer the controller never gets: where processes record their own calls, nobody knows the
// outcome; elsewhere, AWS's side of it is seen.
func (k *walker) unanswered(op *operation) *operation {
	if k.names {
		op.outcome, op.ret = traces.Pending, traces.Forever
	}
	return op
}

// take takes a step and records what is seen of it.
func (k *walker) take(c choice) {
	d := k.d
	who := ""
	if p := c.args.Process; k.names && p > 0 {
		who = fmt.Sprintf("lbc-%d-%d", p, k.lives[p-1])
	}
	if c.op != nil {
		c.op.caller = who
		if c.op.foreign {
			c.op.caller = "somebody"
		}
		k.record(*c.op)
	}
	if k.told {
		k.tell(c, who)
	}
	switch c.action {
	case model.Crash, model.LeaderChange:
		k.lives[c.args.Process-1]++
	case model.DescribeFails, model.RevokeDelayed:
		if c.op == nil {
			k.unseen++
		}
	case model.Register:
		if !k.targets {
			break
		}
		t := d.WorkerOf(c.args.Process, c.args.Worker).Tgb
		_, before, _ := d.PodOf(t)
		d.Load(c.state)
		_, after, _ := d.PodOf(t)
		if before == after {
			break
		}
		if before != 0 {
			k.record(operation{kind: deregister, outcome: traces.Succeeded, port: k.ports[t], caller: who})
		}
		if after != 0 {
			k.record(operation{kind: register, outcome: traces.Succeeded, port: k.ports[t], caller: who})
		}
	}
	k.state = c.state
	d.Rename(k.state)
}

// tell records what is seen of a step that is no call.
func (k *walker) tell(c choice, who string) {
	op := operation{outcome: traces.Succeeded, caller: who}
	p := c.args.Process
	switch c.action {
	case model.Crash, model.LeaderChange:
		op.kind, op.caller = elect, fmt.Sprintf("lbc-%d-%d", p, k.lives[p-1]+1)
	case model.Skip:
		op.kind, op.port = skip, k.ports[c.args.TGB]
	case model.FireDeferred:
		op.kind, op.port = reset, k.ports[c.args.TGB]
	case model.Lock:
		k.d.Load(c.state)
		op.kind, op.rules = want, k.spans(k.d.WorkerOf(p, c.args.Worker).Wanted)
		k.d.Load(k.state)
		if len(op.rules) == 0 {
			return
		}
	case model.ReadCache:
		op.kind = hit
	default:
		return
	}
	k.record(op)
}

// record appends an operation, a second after the last.
func (k *walker) record(op operation) {
	at := traces.Instant(len(k.ops)+1) * 1_000_000_000
	op.call, op.after, op.at, op.certain = at, -1, fmt.Sprint(len(k.ops)+1), k.names
	if op.outcome != traces.Pending {
		op.ret = at + 500_000_000
	}
	k.ops = append(k.ops, op)
	k.unseen = 0
	if !op.foreign && !slices.Contains(k.callers, op.caller) {
		k.callers = append(k.callers, op.caller)
	}
}

func (k *walker) subject() *Subject {
	s := &Subject{Group: "sg-1", Protocol: "tcp", Source: "sg-lb", ops: slices.Clone(k.ops), describes: k.looks, listed: k.looks && k.tagged, callers: k.callers}
	for _, op := range s.ops {
		if op.port != 0 {
			s.ports = append(s.ports, op.port)
		}
		if op.kind == register || op.kind == deregister {
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
	if k.told {
		s.inner = k.callers
	}
	s.live()
	return s
}

// TestWalksAreExplained: what a design does in an environment, it explains in that environment.
func TestWalksAreExplained(t *testing.T) {
	calls, seed := 0, uint64(0)
	try := func(w walk, length int) {
		seed++
		w.seed, w.tagged, w.looks, w.targets = seed, seed%2 == 0, seed%3 == 0, seed%4 < 2
		k := newWalker(t, w)
		for i := 0; i < 4000 && len(k.ops) < length; i++ {
			k.step()
		}
		calls += len(k.ops)
		s := k.subject()
		r := explained(t, s, w.design, w.env, Options{States: 3_000_000})
		if r.Verdict != Explains {
			for i := range s.ops[:min(r.Done+2, len(s.ops))] {
				t.Logf("%d %s %s", i, s.ops[i].caller, s.text(&s.ops[i]))
			}
			t.Errorf("%+v: %s at %d of %d: %s %v %s", w, r.Verdict, r.Done, r.Of, r.Stuck, r.Why, r.Bound)
		}
	}
	designs := []string{"v3.4.0", "v2.7.2", "confirm-authorize", "no-cache", "write-through", "invalidate-on-error", "guard-view",
		"guard-reread", "read-your-writes", "proposed", "all-ports"}
	if sampled {
		designs = []string{"v3.4.0"}
	}
	for _, design := range designs {
		for _, env := range []string{"fresh-reads", "old-reads", "older-reads"} {
			for range 4 {
				try(walk{design: design, env: env, tgbs: 3}, 20)
			}
		}
		for _, env := range EnvironmentNames() {
			for i, known := range []walk{{}, {names: true}, {names: true, told: true}} {
				if sampled && i == 1 {
					continue
				}
				length := 12
				if strings.HasPrefix(env, "leader-change") { // two processes multiply what can be hidden
					if !slices.Contains([]string{"v3.4.0", "v2.7.2", "read-your-writes", "proposed"}, design) {
						continue
					}
					if length = 6; env == "leader-change-old-reads" {
						length = 4
					}
				}
				if sampled && strings.HasPrefix(env, "leader-change") {
					length = 3
				}
				if known.told {
					length *= 2 // about half of what is seen are calls
				}
				try(walk{design: design, env: env, tgbs: 2, names: known.names, told: known.told}, length)
			}
		}
		try(walk{design: design, env: "old-reads", tgbs: 3, limit: 2}, 20)
	}
	rounds := 4
	if sampled {
		rounds = 1
	}
	for range rounds {
		try(walk{design: "v3.4.0", env: "old-reads", tgbs: 6}, 30)
		try(walk{design: "v2.7.2", env: "fresh-reads", tgbs: 6}, 30)
	}
	if calls < 5000 && !sampled {
		t.Errorf("the walks hold %d calls only", calls)
	}
}
