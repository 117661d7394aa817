package explain

import (
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"linearize.example/checker/conform"
	"linearize.example/checker/conform/engine"
	"linearize.example/model"
	"linearize.example/traces"
)

// oracle answers the search's question by taking every step of Next from every state, breadth first, one operation after the
// other. It shares nothing with the search but the constants of the model.
type oracle struct {
	*Subject
	env   Environment
	d     *conform.Driver
	ports []int32
	watch engine.Set
	// forget takes what nobody sees for the same: which pod of a TGB whose targets were not recorded is registered, and whether
	// its stored checkpoint was emptied. Fewer states, and an assumption that the oracle without it tests.
	forget bool
	levels map[uint64]map[string][]uint64 // by operations done
	states int
}

// oracleAnswer is whether an explanation was found; else the operations done where the longest beginning ends.
type oracleAnswer struct {
	Verdict Verdict
	Done    int
}

func (o *oracle) binding(port int32) int {
	for t, p := range o.ports {
		if t > 0 && p == port {
			return t
		}
	}
	return 0
}

func (o *oracle) rules(list []span) engine.Set {
	var set engine.Set
	for _, r := range list {
		set = set.Or(engine.Bit(o.d.RuleNumber(o.binding(r.lo), o.binding(r.hi))))
	}
	return set
}

// layout is one way to lay a capture out for the model.
type layout struct {
	design, env   string
	tagged, extra bool
}

// consult answers for a layout; ok is false when limit states were too few.
func consult(t testing.TB, s *Subject, l layout, forget bool, limit int) (answer oracleAnswer, states int, ok bool) {
	t.Helper()
	w := l.world(t, s)
	o := &oracle{Subject: s, env: w.env, ports: []int32{0}, forget: forget, levels: map[uint64]map[string][]uint64{}}
	for i, p := range s.ports {
		o.ports = append(o.ports, p)
		if l.extra && i == 0 {
			o.ports = append(o.ports, 0)
		}
	}
	w.tgbs = len(o.ports) - 1
	m, err := conform.NewModel(w.constants())
	if err != nil {
		t.Fatal(err)
	}
	o.d = conform.NewDriver(m)
	for _, p := range s.watched {
		o.watch = o.watch.Or(engine.Bit(o.binding(p)))
	}
	_, done, found := o.run(t, w.design, limit)
	if found {
		return oracleAnswer{Explains, done}, o.states, true
	}
	return oracleAnswer{DoesNot, done}, o.states, o.states < limit
}

func (l layout) world(t testing.TB, s *Subject) world {
	t.Helper()
	d, err := model.DesignNamed(l.design)
	if err != nil {
		t.Fatal(err)
	}
	e, err := EnvironmentNamed(l.env)
	if err != nil {
		t.Fatal(err)
	}
	return world{design: d, env: e, tagged: l.tagged, limit: s.limit(), vpc: e.defaultVPC}
}

// searched is what the search answers for a layout. An explanation is replayed.
func searched(t testing.TB, s *Subject, l layout) oracleAnswer {
	t.Helper()
	x, err := newSearch(s, l.world(t, s), l.extra, &budget{ctx: t.Context(), states: 1 << 30})
	if err == nil {
		err = x.start()
	}
	if err != nil {
		t.Fatal(err)
	}
	best := x.run()
	if x.found == nil {
		return oracleAnswer{DoesNot, best.count}
	}
	path, err := x.replay()
	if err != nil {
		t.Errorf("%+v: %v", l, err)
	}
	x.verify(t, path)
	return oracleAnswer{Explains, len(s.ops)}
}

// verify checks that each state of a behaviour follows from the one before by a step of Next, and that the steps that are seen
// are the capture's operations, each once, in an order that their times allow.
func (x *search) verify(t testing.TB, path []moment) {
	t.Helper()
	d := conform.NewDriver(x.d.Model)
	words := d.Model.Words
	var order []int
	for i := 1; i < len(path); i++ {
		l := &path[i].label
		d.Load(path[i-1].state)
		asked := engine.Set{}
		if p, w := l.args.Process, l.args.Worker; w > 0 {
			switch d.WorkerOf(p, w).Step {
			case conform.AtAuthorize:
				asked = d.ToAuthorize(p, w)
			case conform.AtRevoke:
				asked = d.ToRevoke(p, w)
			}
		}
		if l.action == model.DelayedRevokeArrives {
			asked = d.Late()
		}
		out := d.Output()
		out.Reset()
		d.Next()
		found := l.args.Rule == noRule
		for j, a := range out.Actions {
			state := slices.Clone(out.Next[j*words : (j+1)*words])
			if model.Action(a) == l.action && !found {
				conform.NewDriver(d.Model).Rename(state)
				found = slices.Equal(state, path[i].state)
			}
		}
		if !found {
			t.Errorf("step %d, %v %v, is none of Next's", i, l.action, l.args)
		}
		for _, o := range l.ops {
			if o < 0 {
				continue
			}
			order = append(order, int(o))
			if op := &x.ops[o]; (op.kind == authorize || op.kind == revoke && l.action != model.ExternalRevoke) && x.targets[o] != asked {
				t.Errorf("step %d asks for %v, the operation for %v", i, x.spansOf(asked), op.rules)
			} else if op.kind == describe && op.outcome == traces.Succeeded && x.targets[o] != l.answer {
				t.Errorf("step %d answers %v, the operation %v", i, x.spansOf(l.answer), op.rules)
			}
		}
	}
	done := map[int]bool{}
	for _, o := range order {
		for i := range x.ops {
			if !done[i] && i != o && !x.ops[i].optional() && x.ops[i].ret < x.ops[o].call {
				t.Errorf("operation %d comes before %d", o, i)
			}
		}
		if done[o] {
			t.Errorf("operation %d comes twice", o)
		}
		done[o] = true
	}
	for i := range x.ops {
		if !done[i] && !x.ops[i].optional() {
			t.Errorf("operation %d is missing", i)
		}
	}
}

// run returns the number of operations up to the first that is not done, and of all that are, where the longest beginning
// ends.
func (o *oracle) run(t testing.TB, design model.Design, limit int) (base, done int, found bool) {
	states, err := o.d.Model.Initial()
	if err != nil {
		t.Fatal(err)
	}
	n := len(o.ports) - 1
	begin := func(rules engine.Set, computed []engine.Atom, cold bool) {
		for _, cached := range []bool{false, true} {
			if cached && (cold || !design.UseCache) {
				continue
			}
			w := make([]uint64, len(states[0]))
			o.d.Load(states[0])
			o.d.Begin(w, rules, computed, !cold, cached)
			o.add(w, 0)
		}
	}
	for _, list := range o.initial {
		rules := o.rules(list)
		computed := make([]engine.Atom, n)
		for t := range computed {
			computed[t] = conform.Unknown
		}
		begin(rules, computed, true)
		// wants is called with the ends of what is wanted; what TGBs inside want is open, unless their targets were recorded.
		wants := func(lo, hi int) {
			for inside := range 1 << n {
				computed := make([]engine.Atom, n)
				fits := true
				for t := range computed {
					computed[t] = conform.None
					switch at := t + 1; {
					case at == lo || at == hi || lo < at && at < hi && o.watch.Has(at):
						computed[t] = conform.Port
						fits = fits && inside>>t&1 == 0
					case lo < at && at < hi:
						if inside>>t&1 != 0 {
							computed[t] = conform.Port
						}
					default:
						fits = fits && inside>>t&1 == 0
					}
				}
				if fits {
					begin(rules, computed, false)
				}
			}
		}
		for _, r := range list {
			wants(o.binding(r.lo), o.binding(r.hi))
		}
		if len(list) == 0 {
			wants(0, 0)
			wants(1, n)
		}
	}
	all := uint64(1)<<len(o.ops) - 1
	base = -1
	for mask := uint64(0); mask <= all; mask++ { // a step of the capture makes the mask greater
		level := o.levels[mask]
		if len(level) == 0 {
			continue
		}
		b, count, complete := 0, 0, true
		for i := range o.ops {
			if mask>>i&1 != 0 {
				count++
				if b == i {
					b++
				}
			} else if !o.ops[i].optional() {
				complete = false
			}
		}
		if complete {
			return len(o.ops), len(o.ops), true
		}
		if b > base || b == base && count > done {
			base, done = b, count
		}
		var queue [][]uint64
		for _, w := range level {
			queue = append(queue, w)
		}
		for len(queue) > 0 {
			w := queue[len(queue)-1]
			queue = queue[:len(queue)-1]
			if o.states++; o.states >= limit {
				return base, done, false
			}
			o.expand(w, mask, func(next []uint64, ops uint64) {
				if c := o.add(next, mask|ops); c != nil && ops == 0 {
					queue = append(queue, c)
				}
			})
		}
		delete(o.levels, mask)
	}
	return base, done, false
}

// add returns a copy of the state unless it is known.
func (o *oracle) add(w []uint64, mask uint64) []uint64 {
	c := append([]uint64(nil), w...)
	if o.forget {
		o.blur(c)
	}
	o.d.Rename(c)
	var key []byte
	for _, x := range c {
		key = binary.LittleEndian.AppendUint64(key, x)
	}
	level := o.levels[mask]
	if level == nil {
		level = map[string][]uint64{}
		o.levels[mask] = level
	}
	if level[string(key)] != nil {
		return nil
	}
	level[string(key)] = c
	return c
}

// blur has the TGBs at which no worker is, and whose targets nobody recorded, with their pod registered and no checkpoint.
func (o *oracle) blur(w []uint64) {
	o.d.Load(w)
	pods, registered, checkpoint := o.d.Model.Slot("pods"), o.d.Model.Slot("registered"), o.d.Model.Slot("checkpoint")
	for t := 1; t < len(o.ports); t++ {
		busy := o.watch.Has(t)
		for p := 1; p <= o.env.processes; p++ {
			for v := 1; v <= o.env.workers; v++ {
				busy = busy || o.d.WorkerOf(p, v).Tgb == t
			}
		}
		if !busy {
			pod := pods.Elem.GetInt(w, pods.Off+(t-1)*pods.Stride)
			registered.Elem.PutInt(w, registered.Off+(t-1)*registered.Stride, pod)
			checkpoint.Elem.PutInt(w, checkpoint.Off+(t-1)*checkpoint.Stride, -1)
		}
	}
}

// next lists the operations that can come next: none that must be done has returned before they were called.
func (o *oracle) next(mask uint64) []int {
	var out []int
	for i := range o.ops {
		free := mask>>i&1 == 0
		for j := range o.ops {
			if mask>>j&1 == 0 && j != i && !o.ops[j].optional() && (o.ops[j].ret < o.ops[i].call || o.ops[i].after == j) {
				free = false
			}
		}
		if free {
			out = append(out, i)
		}
	}
	return out
}

// expand calls to with each state that one step of Next leads to, and the operations that the step is.
func (o *oracle) expand(w []uint64, mask uint64, to func(next []uint64, ops uint64)) {
	d := o.d
	d.Load(w)
	out := d.Output()
	out.Reset()
	out.WithArgs = true
	d.Next()
	words := d.Model.Words
	outs := slices.Clone(out.Next)
	actions, args := slices.Clone(out.Actions), slices.Clone(out.Args)
	next := o.next(mask)
	answers := slices.Clone(d.Answers())
	late, rules, leader := d.Late(), d.Rules(), d.Leader()
	asked := func(p, w int) engine.Set {
		if d.WorkerOf(p, w).Step == conform.AtAuthorize {
			return d.ToAuthorize(p, w)
		}
		return d.ToRevoke(p, w)
	}
	pending := false
	for _, i := range next {
		pending = pending || o.ops[i].outcome == traces.Pending
	}
	nth := 0 // of the successors by one action with one worker
	for i, number := range actions {
		state := outs[i*words : (i+1)*words]
		a := model.Action(number)
		arg := func(i int, of int) int { return args[of][i].(int) }
		fits := func(k kind, rules engine.Set, r result) {
			for _, j := range next {
				if op := &o.ops[j]; op.kind == k && !op.foreign && r.fits(op) && o.rules(op.rules) == rules {
					to(state, 1<<j)
				}
			}
		}
		call := func(k kind, r result) {
			d.Load(w)
			fits(k, asked(arg(0, i), arg(1, i)), r)
		}
		if nth++; i == 0 || actions[i-1] != number || !slices.Equal(args[i-1], args[i]) {
			nth = 0
		}
		switch a {
		case model.AuthorizeOk:
			call(authorize, ok)
		case model.AuthorizeDuplicate:
			call(authorize, isDuplicate)
		case model.AuthorizeLimit:
			call(authorize, isLimit)
		case model.AuthorizeFails:
			call(authorize, otherError)
		case model.AuthorizeAnswerLost:
			if o.env.answers || pending {
				call(authorize, lost)
			}
		case model.RevokeOk:
			call(revoke, ok)
		case model.RevokeNotFound:
			call(revoke, isNotFound)
		case model.RevokeFails:
			call(revoke, otherError)
		case model.RevokeAnswerLost:
			if o.env.answers || pending {
				call(revoke, lost)
			}
		case model.DelayedRevokeArrives:
			if late.In(rules) || o.env.defaultVPC {
				fits(revoke, late, ok)
			} else {
				fits(revoke, late, isNotFound)
			}
		case model.RevokeDelayed:
			if o.env.delayed {
				to(state, 0)
			}
		case model.ExternalRevoke:
			for _, j := range next {
				op := &o.ops[j]
				removed := rules.AndNot(o.rulesIn(state))
				if op.kind == revoke && (op.foreign || o.env.external) && op.outcome == traces.Succeeded && o.rules(op.rules) == removed {
					to(state, 1<<j)
				}
			}
		case model.DescribeFails:
			for _, j := range next {
				if op := &o.ops[j]; o.describes && op.kind == describe && otherError.fits(op) {
					to(state, 1<<j)
				}
			}
			if !o.describes && o.env.failures {
				to(state, 0)
			}
		case model.LookUpGroup, model.Describe, model.Reload, model.Reread, model.SeeGrant, model.SeeRevoke:
			if !o.describes {
				to(state, 0)
				break
			}
			v := answers[min(nth, len(answers)-1)]
			if a == model.SeeGrant || a == model.SeeRevoke { // only of answers that show the change
				d.Load(state)
				v = d.MemoryOf(arg(0, i)).Cache
			}
			fits(describe, v, ok)
		case model.Crash:
			d.Load(w)
			idle := true
			for v := 1; v <= o.env.workers; v++ {
				idle = idle && d.WorkerOf(leader, v).Step == conform.AtIdle
			}
			if idle || o.env.crashes {
				to(state, 0)
			}
		case model.LeaderChange:
			if o.env.leaderChanges {
				to(state, 0)
			}
		case model.Register:
			d.Load(w)
			o.register(state, d.WorkerOf(arg(0, i), arg(1, i)).Tgb, mask, next, to)
		default:
			to(state, 0)
		}
	}
	for _, i := range next {
		if op := &o.ops[i]; op.foreign && op.kind == revoke && op.outcome == traces.Failed {
			to(w, 1<<i)
		}
	}
}

// rulesIn returns the rules of a state.
func (o *oracle) rulesIn(state []uint64) engine.Set {
	o.d.Load(state)
	return o.d.Rules()
}

// register takes the end of a reconcile, which is an operation or two where the targets of its binding were recorded.
func (o *oracle) register(state []uint64, t int, mask uint64, next []int, to func([]uint64, uint64)) {
	_, before, _ := o.d.PodOf(t)
	o.d.Load(state)
	_, after, _ := o.d.PodOf(t)
	if !o.watch.Has(t) || before == after {
		to(state, 0)
		return
	}
	is := func(i int, k kind) bool { return o.ops[i].kind == k && o.ops[i].port == o.ports[t] }
	for _, i := range next {
		if before != 0 && is(i, deregister) {
			to(state, 1<<i)
			for _, j := range o.next(mask | 1<<i) {
				if after != 0 && is(j, register) {
					to(state, 1<<i|1<<j)
				}
			}
		}
		if after != 0 && is(i, register) {
			to(state, 1<<i)
		}
	}
}

var oracleCases = flag.Int("oracle", 60, "how many small captures to compare with the oracle")

// TestSearchEqualsOracle: on small captures, walks and changed walks, the search and the oracle agree on whether there is an
// explanation, and on how far the longest beginning of one goes.
func TestSearchEqualsOracle(t *testing.T) {
	designs := []string{"v3.4.0", "v2.7.2", "confirm-authorize", "no-cache", "write-through", "read-your-writes", "guard-view",
		"guard-reread", "group-mutex", "all-ports", "invalidate-on-error", "proposed", "confirm-before-revoke", "checkpoint-verifies-aws"}
	r := rand.New(rand.NewPCG(7, 7))
	count, given, states, later := map[Verdict]int{}, 0, 0, 0
	cases := *oracleCases
	if sampled {
		cases /= 30
	}
	for seed := uint64(1); seed <= uint64(cases); seed++ {
		env := environments[r.IntN(len(environments))].Name
		l := layout{design: designs[r.IntN(len(designs))], env: env, tagged: r.IntN(3) == 0}
		w := walk{design: l.design, env: env, tgbs: 2, looks: r.IntN(3) == 0, targets: r.IntN(3) == 0, tagged: l.tagged, seed: seed}
		if r.IntN(2) == 0 {
			w.design = designs[r.IntN(len(designs))]
		}
		forget, length := r.IntN(5) > 0, 3+r.IntN(4)
		if forget && r.IntN(5) == 0 {
			w.tgbs, length = 3, min(length, 5)
		}
		k := newWalker(t, w)
		for i := 0; i < 600 && len(k.ops) < length; i++ {
			k.step()
		}
		if len(k.ops) > 0 && r.IntN(2) == 0 {
			k.spoil(r)
		}
		s := k.subject()
		if len(s.ports) > w.tgbs {
			continue
		}
		l.extra = len(s.ports) == 2 && forget && r.IntN(6) == 0
		want, n, done := consult(t, s, l, forget, oracleStates)
		states += n
		if !done {
			given++
			continue
		}
		if count[want.Verdict]++; want.Verdict == DoesNot && want.Done > 0 {
			later++
		}
		if got := searched(t, s, l); got != want {
			for i := range s.ops {
				t.Logf("%d %s", i, s.text(&s.ops[i]))
			}
			t.Errorf("%+v of %+v, forget %v: %v, the oracle says %v", w, l, forget, got, want)
		}
	}
	t.Logf("%v, %d of them rejected after the first operation; %d too large; %d states of the oracle", count, later, given, states)
	if count[Explains] < cases/6 || later < cases/12 {
		t.Error("these are too few of one kind to show anything")
	}
}

// oracleStates is how many states the oracle may visit for one capture.
const oracleStates = 25_000

// spoil changes something of a walk, so that it need not be a behaviour any more.
func (k *walker) spoil(r *rand.Rand) {
	i := r.IntN(len(k.ops))
	op := &k.ops[i]
	switch r.IntN(5) {
	case 0:
		k.ops = slices.Delete(k.ops, i, i+1)
	case 1:
		if i > 0 {
			a := &k.ops[i-1]
			*a, *op = *op, *a
			a.call, a.ret, op.call, op.ret = op.call, op.ret, a.call, a.ret
		}
	case 2:
		if len(op.rules) > 0 {
			op.rules = k.spans(engine.Bit(r.IntN(3)))
		}
	case 3: // its time is not known well, nor that of what follows
		for j := i; j < min(i+3, len(k.ops)); j++ {
			k.ops[j].call, k.ops[j].ret = op.call, op.ret+3_000_000_000
		}
	default:
		switch {
		case op.kind == authorize && op.outcome == traces.Succeeded:
			op.outcome, op.err = traces.Failed, duplicate
		case op.kind == revoke && op.outcome == traces.Succeeded:
			op.outcome, op.err = traces.Failed, notFound
		default:
			op.outcome, op.err = traces.Succeeded, ""
		}
	}
}
