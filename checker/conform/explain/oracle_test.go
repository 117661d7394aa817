package explain

import (
	"encoding/binary"
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
	// forget uses Canonical, which forgets pods that nobody sees, instead of Rename, which only gives equal names to equal
	// situations: fewer states, and an assumption that the oracle without it tests.
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

// consult answers for every layout that Explain tries, at most limit states in each; ok is false when these were too few.
func consult(t testing.TB, s *Subject, design, env string, forget bool, limit int) (answer oracleAnswer, states int, ok bool) {
	t.Helper()
	d, err := model.DesignNamed(design)
	if err != nil {
		t.Fatal(err)
	}
	e, err := EnvironmentNamed(env)
	if err != nil {
		t.Fatal(err)
	}
	answer = oracleAnswer{Verdict: DoesNot}
	bestBase := -1
	for _, tagged := range []bool{false, true} {
		for _, extra := range []bool{false, true} {
			if tagged && s.describes && !s.listed || extra && len(s.ports) < 2 {
				continue
			}
			o := &oracle{Subject: s, env: e, ports: []int32{0}, forget: forget, levels: map[uint64]map[string][]uint64{}}
			for i, p := range s.ports {
				o.ports = append(o.ports, p)
				if extra && i == 0 {
					o.ports = append(o.ports, 0)
				}
			}
			m, err := conform.NewModel(world{design: d, env: e, tgbs: len(o.ports) - 1, tagged: tagged, limit: s.limit(), vpc: e.defaultVPC}.constants())
			if err != nil {
				t.Fatal(err)
			}
			o.d = conform.NewDriver(m)
			for _, p := range s.watched {
				o.watch = o.watch.Or(engine.Bit(o.binding(p)))
			}
			base, done, found := o.run(t, d, limit)
			states += o.states
			switch {
			case found:
				return oracleAnswer{Explains, len(s.ops)}, states, true
			case o.states >= limit:
				return answer, states, false
			case base > bestBase || base == bestBase && done > answer.Done:
				bestBase, answer.Done = base, done
			}
		}
	}
	return answer, states, true
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
		o.d.Canonical(c, o.watch, 0)
	} else {
		o.d.Rename(c)
	}
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
	words := d.Model.Words
	d.Load(w)
	next := o.next(mask)
	var outs []uint64
	take := func(a model.Action, x conform.Args) {
		d.Load(w)
		outs = append(outs[:0], d.Take(a, x)...)
	}
	hidden := func(a model.Action, x conform.Args) {
		take(a, x)
		for rest := outs; len(rest) > 0; rest = rest[words:] {
			to(rest[:words], 0)
		}
	}
	fits := func(k kind, rules engine.Set, r result) (ops []int) {
		for _, i := range next {
			if op := &o.ops[i]; op.kind == k && !op.foreign && r.fits(op) && o.rules(op.rules) == rules {
				ops = append(ops, i)
			}
		}
		return ops
	}
	call := func(a model.Action, x conform.Args, k kind, rules engine.Set, r result) {
		take(a, x)
		if len(outs) == 0 {
			return
		}
		state := append([]uint64(nil), outs...)
		for _, i := range fits(k, rules, r) {
			to(state, 1<<i)
		}
	}
	// look takes an action that describes. What the answer was is what the process saves: designs without a cache do not, so
	// that the answers are taken in order.
	look := func(a model.Action, x conform.Args) {
		d.Load(w)
		answers := append([]engine.Set(nil), d.Answers()...)
		take(a, x)
		states := append([]uint64(nil), outs...)
		for i := 0; i < len(states); i += words {
			state := states[i : i+words]
			if !o.describes || a == model.ListTagged {
				to(state, 0)
				continue
			}
			var v engine.Set
			if len(states)/words == len(answers) {
				v = answers[i/words]
			} else {
				d.Load(state)
				v = d.MemoryOf(x.Process).Cache
			}
			d.Load(w)
			for _, op := range fits(describe, v, ok) {
				to(state, 1<<op)
			}
		}
	}
	pending := false
	for _, i := range next {
		pending = pending || o.ops[i].outcome == traces.Pending
	}
	for p := 1; p <= o.env.processes; p++ {
		busy := false
		for wk := 1; wk <= o.env.workers; wk++ {
			x := conform.Args{Process: p, Worker: wk}
			d.Load(w)
			step := d.WorkerOf(p, wk).Step
			for t := 1; t < len(o.ports); t++ {
				hidden(model.Pick, conform.Args{Process: p, Worker: wk, TGB: t})
			}
			if step == conform.AtIdle {
				continue
			}
			busy = true
			for _, a := range []model.Action{model.SaveLookUp, model.Lock, model.ReadCache, model.Unlock} {
				hidden(a, x)
			}
			for _, a := range []model.Action{model.LookUpGroup, model.Describe, model.Reload, model.SeeGrant, model.Reread, model.SeeRevoke, model.ListTagged} {
				look(a, x)
			}
			d.Load(w)
			switch step {
			case conform.AtAuthorize:
				asked := d.ToAuthorize(p, wk)
				call(model.AuthorizeOk, x, authorize, asked, ok)
				call(model.AuthorizeDuplicate, x, authorize, asked, isDuplicate)
				call(model.AuthorizeLimit, x, authorize, asked, isLimit)
				call(model.AuthorizeFails, x, authorize, asked, otherError)
				if o.env.answers || pending {
					call(model.AuthorizeAnswerLost, x, authorize, asked, lost)
				}
			case conform.AtRevoke:
				asked := d.ToRevoke(p, wk)
				call(model.RevokeOk, x, revoke, asked, ok)
				call(model.RevokeNotFound, x, revoke, asked, isNotFound)
				call(model.RevokeFails, x, revoke, asked, otherError)
				if o.env.answers || pending {
					call(model.RevokeAnswerLost, x, revoke, asked, lost)
				}
				if o.env.delayed {
					hidden(model.RevokeDelayed, x)
				}
			case conform.AtFetch, conform.AtReload:
				if o.describes {
					take(model.DescribeFails, x)
					if len(outs) > 0 {
						state := append([]uint64(nil), outs...)
						for _, i := range next {
							if op := &o.ops[i]; op.kind == describe && otherError.fits(op) {
								to(state, 1<<i)
							}
						}
					}
				} else if o.env.failures {
					hidden(model.DescribeFails, x)
				}
			case conform.AtRegister:
				o.register(w, x, mask, next, to)
			}
		}
		d.Load(w)
		leads := d.Leader() == p
		if leads && (!busy || o.env.crashes) {
			hidden(model.Crash, conform.Args{Process: p})
		}
		if o.env.leaderChanges {
			hidden(model.LeaderChange, conform.Args{Process: p})
		}
		hidden(model.ExpireCache, conform.Args{Process: p})
		for t := 1; t < len(o.ports); t++ {
			hidden(model.Skip, conform.Args{Process: p, TGB: t})
			hidden(model.FireDeferred, conform.Args{Process: p, TGB: t})
		}
	}
	for t := 1; t < len(o.ports); t++ {
		hidden(model.PodComes, conform.Args{TGB: t})
		hidden(model.PodGoes, conform.Args{TGB: t})
	}
	hidden(model.Settle, conform.Args{})
	d.Load(w)
	if late := d.Late(); late.Some() {
		r := isNotFound
		if late.In(d.Rules()) || o.env.defaultVPC {
			r = ok
		}
		call(model.DelayedRevokeArrives, conform.Args{}, revoke, late, r)
	}
	for _, i := range next {
		op := &o.ops[i]
		if op.kind != revoke || !op.foreign && !o.env.external || op.outcome == traces.Pending {
			continue
		}
		if op.outcome == traces.Failed {
			if op.foreign {
				to(w, 1<<i)
			}
			continue
		}
		if rule := o.rules(op.rules); rule.Len() == 1 {
			take(model.ExternalRevoke, conform.Args{Rule: rule.Pop()})
			if len(outs) > 0 {
				to(append([]uint64(nil), outs...), 1<<i)
			}
		}
	}
}

// register takes the end of a reconcile, which is an operation or two where the targets of its binding were recorded.
func (o *oracle) register(w []uint64, x conform.Args, mask uint64, next []int, to func([]uint64, uint64)) {
	d := o.d
	d.Load(w)
	t := d.WorkerOf(x.Process, x.Worker).Tgb
	_, before, _ := d.PodOf(t)
	state := append([]uint64(nil), d.Take(model.Register, x)...)
	d.Load(state)
	_, after, _ := d.PodOf(t)
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

// TestSearchEqualsOracle: on small captures, walks and changed walks, the search and the oracle agree on whether there is an
// explanation, and on how far the longest beginning of one goes.
func TestSearchEqualsOracle(t *testing.T) {
	var cases, explains, states int
	for seed := uint64(1); seed <= 40; seed++ {
		for _, c := range []struct{ design, env string }{{"v3.4.0", "old-reads"}} {
			k := newWalker(t, walk{design: c.design, env: c.env, tgbs: 2, looks: seed%3 == 0, targets: seed%4 < 2, seed: seed})
			for i := 0; i < 400 && len(k.ops) < 6; i++ {
				k.step()
			}
			s := k.subject()
			want, n, ok := consult(t, s, c.design, c.env, false, 1_000_000)
			states += n
			t.Log(seed, want, n, ok)
			if !ok {
				continue
			}
			cases++
			r := explained(t, s, c.design, c.env, Options{})
			if got := (oracleAnswer{r.Verdict, r.Done}); got != want {
				t.Errorf("seed %d: %v, the oracle says %v", seed, got, want)
			}
			if want.Verdict == Explains {
				explains++
			}
		}
	}
	t.Logf("%d cases, %d explained, %d states", cases, explains, states)
}
