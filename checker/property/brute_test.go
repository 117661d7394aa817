package property

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"linearize.example/checker/orders"
	"linearize.example/checker/report"
	"linearize.example/traces"
)

const (
	marked = "elbv2.k8s.aws/targetGroupBinding=shared"
	human  = "opened by hand"
	peer   = "sg-0ddd3333eeee4444f"
)

// pool are the rules of random captures: some inside others, some that open the same port, one open to everybody.
var pool = []traces.Rule{
	{Protocol: "tcp", FromPort: 3000, ToPort: 8025, Source: peer},
	{Protocol: "tcp", FromPort: 3000, ToPort: 3008, Source: peer},
	{Protocol: "tcp", FromPort: 8025, ToPort: 8025, Source: peer},
	{Protocol: "tcp", FromPort: 3008, ToPort: 3008, Source: "0.0.0.0/0"},
}

// shape says what a random capture may contain.
type shape struct {
	rules, most      int
	pending, targets bool
	snapshot         bool
	controller       bool
}

func randomCapture(rng *rand.Rand, s shape) *Capture {
	c := &Capture{Group: "sg-1", From: 0, To: 40}
	var present [8]bool
	if s.snapshot {
		c.Snapshot = &traces.Snapshot{Group: c.Group}
		for i := range s.rules {
			if present[i] = rng.IntN(2) == 0; present[i] {
				c.Snapshot.Rules = append(c.Snapshot.Rules, traces.IdentifiedPermission{Permission: permission(rng, i)})
			}
		}
	}
	version := Version{}
	if s.controller {
		version = []Version{{}, {2, 7, 2}, {3, 4, 0}}[rng.IntN(3)]
	}
	c.Releases = map[string]Release{"p": {Controller: s.controller, Version: version}, "q": {Controller: s.controller}}
	width := 1 + rng.IntN(8)
	now := 1
	for n := 1 + rng.IntN(s.most); n > 0; n-- {
		op := traces.Operation{Group: c.Group, Process: []string{"p", "q"}[rng.IntN(2)], After: -1, Outcome: traces.Succeeded,
			Call: traces.Instant(now), Return: traces.Instant(now + rng.IntN(width))}
		now = min(now+rng.IntN(4), 30)
		if s.targets && rng.IntN(4) == 0 {
			op.Op = []string{traces.RegisterTargets, traces.DeregisterTargets}[rng.IntN(2)]
			op.TargetGroup = "arn:targetgroup/tg/1"
			op.Targets = []traces.Target{{ID: fmt.Sprint("10.0.0.", rng.IntN(2)), Port: []int32{3008, 8025}[rng.IntN(2)]}}
		} else {
			randomMutation(rng, s, &op, &present)
		}
		if s.pending && rng.IntN(3) == 0 {
			op.Outcome, op.Error, op.Unknown = traces.Pending, "", nil
			if rng.IntN(3) > 0 {
				op.Return = traces.Forever
			}
		}
		c.Operations = append(c.Operations, op)
	}
	slices.SortStableFunc(c.Operations, func(a, b traces.Operation) int {
		return cmp.Or(cmp.Compare(a.Call, b.Call), cmp.Compare(a.Return, b.Return))
	})
	for i := range c.Operations {
		c.Operations[i].ID = fmt.Sprint("call ", i)
		if j := i - 1 - rng.IntN(3); j >= 0 && rng.IntN(3) == 0 && c.Operations[i].Return > c.Operations[j].Call {
			c.Operations[i].After = j
		}
	}
	return c
}

// randomMutation makes a call whose answer is mostly one that the calls before it make possible.
func randomMutation(rng *rand.Rand, s shape, op *traces.Operation, present *[8]bool) {
	rules := rng.Perm(s.rules)[:1+rng.IntN(min(2, s.rules))]
	op.Op = traces.AuthorizeSecurityGroupIngress
	revoke := present[rules[0]] != (rng.IntN(4) == 0)
	if revoke {
		op.Op = traces.RevokeSecurityGroupIngress
	}
	fits := true
	for _, i := range rules {
		op.Permissions = append(op.Permissions, permission(rng, i))
		fits = fits && present[i] == revoke
	}
	switch {
	case rng.IntN(10) == 0:
		op.Outcome, op.Error = traces.Failed, "UnauthorizedOperation"
	case fits != (rng.IntN(12) == 0):
		for _, i := range rules {
			present[i] = !revoke
		}
	case revoke && len(rules) > 1 && rng.IntN(2) == 0:
		op.Unknown = op.Permissions[1:]
		present[rules[0]] = false
	case revoke:
		op.Outcome, op.Error = traces.Failed, "InvalidPermission.NotFound"
	default:
		op.Outcome, op.Error = traces.Failed, "InvalidPermission.Duplicate"
	}
}

func permission(rng *rand.Rand, i int) traces.Permission {
	p := traces.Permission{Rule: pool[i], Description: marked}
	if rng.IntN(5) == 0 {
		p.Description = human
	}
	return p
}

// outcome is what one explanation violates: never-empty and covered, and the same where something has told of the rules.
type outcome struct{ Empty, Uncovered, ToldEmpty, ToldUncovered, Dirty bool }

// timed is an operation in an explanation, with the bounds of its instant there.
type timed struct {
	op               int
	earliest, latest traces.Instant
}

// explanation is an order of the operations; bad says, for the state before the first and after each of them, whether
// never-empty is violated.
type explanation struct {
	order []timed
	bad   []bool
}

// enumeration is what all orders together say.
type enumeration struct {
	outcomes     map[outcome]bool
	explanations []explanation
}

// verdicts says for never-empty, covered and tight what the outcomes amount to.
func (e *enumeration) verdicts() [3]report.Verdict {
	of := func(bad, told func(outcome) bool) report.Verdict {
		some, all := false, true
		for o := range e.outcomes {
			some, all = some || bad(o), all && told(o)
		}
		switch {
		case len(e.outcomes) == 0:
			return report.Unknown
		case !some:
			return report.Holds
		case all:
			return report.Violated
		}
		return report.Possible
	}
	dirty := func(o outcome) bool { return o.Dirty }
	return [3]report.Verdict{
		of(func(o outcome) bool { return o.Empty }, func(o outcome) bool { return o.ToldEmpty }),
		of(func(o outcome) bool { return o.Uncovered }, func(o outcome) bool { return o.ToldUncovered }),
		of(dirty, dirty),
	}
}

// world is what enumerate needs to know of states, which are S.
type world[S any] struct {
	ops     []orders.Operation
	initial []S
	step    func(op int, s S) (S, bool) // false also for an optional one that changes nothing
	judge   func(s S) outcome
}

// enumerate tries every order that intervals and After allow, with every choice of the optional operations.
func enumerate[S any](w world[S]) *enumeration {
	e := &enumeration{outcomes: map[outcome]bool{}}
	done := make([]bool, len(w.ops))
	var order []timed
	var bad []bool
	var try func(s S, now traces.Instant, sofar outcome)
	try = func(s S, now traces.Instant, sofar outcome) {
		finished := true
		for i, o := range w.ops {
			if !done[i] && !o.Optional {
				if finished = false; o.Return < now {
					return
				}
			}
		}
		o := w.judge(s)
		sofar = outcome{sofar.Empty || o.Empty, sofar.Uncovered || o.Uncovered, sofar.ToldEmpty || o.ToldEmpty,
			sofar.ToldUncovered || o.ToldUncovered, o.Dirty}
		bad = append(bad, o.Empty)
		defer func() { bad = bad[:len(bad)-1] }()
		if finished {
			e.outcomes[sofar] = true
			x := explanation{slices.Clone(order), slices.Clone(bad)}
			latest := traces.Forever
			for i := len(x.order) - 1; i >= 0; i-- {
				latest = min(latest, w.ops[x.order[i].op].Return)
				x.order[i].latest = latest
			}
			e.explanations = append(e.explanations, x)
		}
		for i, o := range w.ops {
			at := max(now, o.Call)
			if done[i] || at > o.Return || slices.ContainsFunc(o.After, func(b int32) bool { return !done[b] && !w.ops[b].Optional }) {
				continue
			}
			next, possible := w.step(i, s)
			if !possible {
				continue
			}
			done[i] = true
			order = append(order, timed{op: i, earliest: at})
			try(next, at, sofar)
			order = order[:len(order)-1]
			done[i] = false
		}
	}
	for _, s := range w.initial {
		try(s, traces.Beginning, outcome{})
	}
	return e
}

// rulesNow are the rules of the independent oracle: true for a managed one.
type rulesNow map[traces.Rule]bool

// oracle judges a capture with a snapshot and with bindings whose needs do not change, knowing nothing of this package.
func oracle(c *Capture, lenient bool) *enumeration {
	w := world[rulesNow]{}
	start := rulesNow{}
	for _, r := range c.Snapshot.Rules {
		start[r.Rule] = r.Description == marked
	}
	w.initial = []rulesNow{start}
	for i := range c.Operations {
		op := &c.Operations[i]
		o := orders.Operation{Call: op.Call, Return: op.Return, Optional: op.Outcome == traces.Pending}
		for a := op.After; a >= 0; a = c.Operations[a].After {
			o.After = append(o.After, int32(a))
		}
		w.ops = append(w.ops, o)
	}
	w.step = func(i int, s rulesNow) (rulesNow, bool) {
		op := &c.Operations[i]
		has := func(p traces.Permission) bool { _, there := s[p.Rule]; return there }
		hasNot := func(p traces.Permission) bool { return !has(p) }
		switch {
		case op.Error == "InvalidPermission.Duplicate":
			return s, slices.ContainsFunc(op.Permissions, has)
		case op.Error == "InvalidPermission.NotFound":
			return s, slices.ContainsFunc(op.Permissions, hasNot)
		case op.Outcome == traces.Failed:
			return s, true
		case op.Op == traces.AuthorizeSecurityGroupIngress && slices.ContainsFunc(op.Permissions, has):
			return s, false
		}
		next := rulesNow{}
		for r, managed := range s {
			next[r] = managed
		}
		removed := 0
		for _, p := range op.Permissions {
			isUnknown := slices.Contains(op.Unknown, p)
			switch {
			case op.Op == traces.AuthorizeSecurityGroupIngress:
				next[p.Rule] = p.Description == marked
			case isUnknown && has(p), !isUnknown && !has(p) && !lenient:
				return s, false
			case has(p):
				delete(next, p.Rule)
				removed++
			}
		}
		useless := op.Outcome == traces.Pending && op.Op == traces.RevokeSecurityGroupIngress && removed == 0
		return next, !useless
	}
	w.judge = func(s rulesNow) outcome {
		o := outcome{Empty: true}
		for _, managed := range s {
			o.Empty = o.Empty && !managed
		}
		var needed []int32
		for _, b := range c.Bindings {
			for _, n := range b.Needs {
				needed = append(needed, n.Port)
				covered := false
				for r := range s {
					covered = covered || r.FromPort <= n.Port && n.Port <= r.ToPort
				}
				o.Uncovered = o.Uncovered || !covered
			}
		}
		o.Empty = o.Empty && len(needed) > 0
		o.ToldEmpty, o.ToldUncovered = o.Empty, o.Uncovered // the snapshot tells
		for r, managed := range s {
			if !managed {
				continue
			}
			wanted := slices.ContainsFunc(needed, func(p int32) bool { return r.FromPort <= p && p <= r.ToPort })
			for other, alsoManaged := range s {
				if alsoManaged && other != r && other.Source == r.Source && other.FromPort <= r.FromPort && r.ToPort <= other.ToPort {
					wanted = false
				}
			}
			o.Dirty = o.Dirty || !wanted
		}
		return o
	}
	return enumerate(w)
}

// reused enumerates the orders of the problem that this package builds, with its effects and its needs.
func reused(c *Capture, opt Options) *enumeration {
	p := assemble(c, opt)
	p.tighten() // which also decides whose rules prove a need; TestOracle guards the rest of it
	j := judge{p: p}
	return enumerate(world[orders.State]{
		ops:     p.ops,
		initial: p.initial,
		step: func(i int, s orders.State) (orders.State, bool) {
			to := make(orders.State, len(s))
			ok := p.effects[i].apply(p.u, p.opt.Lenient, s, to)
			return to, ok && !(p.ops[i].Optional && slices.Equal(s, to))
		},
		judge: func(s orders.State) outcome {
			o := outcome{Dirty: len(j.leftovers(s)) > 0}
			if s.Meets(p.u.needs) {
				o.Empty = !s.Meets(p.u.managed)
				for i := range p.u.ports {
					o.Uncovered = o.Uncovered || s.Meets(p.u.ports[i].needed) && !s.Meets(p.u.ports[i].open)
				}
			}
			o.ToldEmpty, o.ToldUncovered = o.Empty && s.Has(told), o.Uncovered && s.Has(told)
			return o
		},
	})
}

func compare(t *testing.T, seed int, c *Capture, got *Result, want *enumeration) {
	t.Helper()
	verdicts := [3]report.Verdict{got.NeverEmpty, got.Covered, got.Tight}
	if diff := gocmp.Diff(want.verdicts(), verdicts); diff != "" || (got.Stuck != nil) != (len(want.outcomes) == 0) || got.Err != nil {
		t.Errorf("seed %d: never-empty, covered, tight (-brute force +search):\n%s stuck %v, error %v, outcomes %v", seed, diff, got.Stuck, got.Err, want.outcomes)
		logCapture(t, c)
	}
}

// compareOutcomes compares the verdicts that are found without the explanations.
func compareOutcomes(t *testing.T, seed int, c *Capture, got *Result) {
	t.Helper()
	if got.Stuck != nil {
		return
	}
	once := func(worst bool) *Result {
		opt := got.problem.opt
		opt.fewOpen = seed%4 < 2
		p := build(c, opt, worst)
		j := judge{p: p, r: &Result{problem: p, NeverEmpty: report.Holds, Covered: report.Holds, Tight: report.Holds}}
		j.subjects()
		if err := j.outcomes(context.Background()); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		return j.r
	}
	r := once(true)
	if r.problem.optional {
		r.combine(once(false))
	}
	if diff := gocmp.Diff([3]report.Verdict{got.NeverEmpty, got.Covered, got.Tight}, [3]report.Verdict{r.NeverEmpty, r.Covered, r.Tight}); diff != "" {
		t.Errorf("seed %d: never-empty, covered, tight (-with +without explanations):\n%s", seed, diff)
		logCapture(t, c)
	}
}

func logCapture(t *testing.T, c *Capture) {
	t.Helper()
	if c.Snapshot != nil {
		for _, r := range c.Snapshot.Rules {
			t.Log("begins with ", r.Rule, r.Description)
		}
	}
	for _, op := range c.Operations {
		t.Logf("%s %s %s [%d, %d] after %d: %v %v %v unknown %v %s", op.ID, op.Process, op.Op, op.Call, op.Return, op.After, op.Permissions, op.Targets, op.Outcome, op.Unknown, op.Error)
	}
	t.Logf("bindings %v %v releases %v", c.HasBindings, c.Bindings, c.Releases)
}

// toldNotFound reports whether the group is one whose revokes of absent rules fail.
func toldNotFound(c *Capture) bool {
	return slices.ContainsFunc(c.Operations, func(op traces.Operation) bool {
		return op.Op == traces.RevokeSecurityGroupIngress && op.Error == "InvalidPermission.NotFound"
	})
}

func cases(t *testing.T) int {
	if testing.Short() {
		return 300
	}
	return 3_000
}

// TestOracle compares verdicts with an oracle that shares nothing with this package.
func TestOracle(t *testing.T) {
	seen := map[[3]report.Verdict]int{}
	for seed := range cases(t) {
		rng := rand.New(rand.NewPCG(uint64(seed), 2))
		c := randomCapture(rng, shape{rules: 1 + rng.IntN(len(pool)), most: 7, pending: seed%2 == 0, snapshot: true})
		c.HasBindings = true
		for _, port := range []int32{3000, 3008, 8025} {
			if rng.IntN(2) == 0 {
				c.Bindings = append(c.Bindings, traces.Binding{Name: fmt.Sprint("ns/", port), Created: traces.Beginning, Deleted: traces.Forever,
					Needs: []traces.Need{{Protocol: "tcp", Port: port, Source: peer}}})
			}
		}
		got := Judge(context.Background(), c, Options{})
		want := oracle(c, false)
		if len(want.outcomes) == 0 && !toldNotFound(c) {
			want = oracle(c, true)
		}
		compare(t, seed, c, got, want)
		compareOutcomes(t, seed, c, got)
		if seed%2 == 1 {
			compareWindow(t, seed, c, got, want)
		}
		seen[want.verdicts()]++
		if t.Failed() {
			t.FailNow()
		}
	}
	if len(seen) < 8 {
		t.Errorf("the captures gave only the verdicts %v", seen)
	}
}

// TestReused compares verdicts on captures of controllers, whose beginnings and needs are inferred, with the enumeration of
// the orders of the same problem.
func TestReused(t *testing.T) {
	seen := map[[3]report.Verdict]int{}
	for seed := range cases(t) {
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		c := randomCapture(rng, shape{rules: 1 + rng.IntN(len(pool)), most: 7, pending: seed%2 == 0, targets: seed%3 == 0,
			snapshot: seed%4 == 0, controller: true})
		opt := Options{Need: Need(rng.IntN(2)), Contract: rng.IntN(2) == 0}
		got := Judge(context.Background(), c, opt)
		var want *enumeration
		for _, o := range []Options{opt, {anyStart: true}, {anyStart: true, Lenient: true}} {
			o.Need, o.Contract = opt.Need, opt.Contract
			if o.Lenient && toldNotFound(c) {
				break
			}
			if want = reused(c, o); len(want.outcomes) > 0 {
				break
			}
		}
		compare(t, seed, c, got, want)
		compareOutcomes(t, seed, c, got)
		if seed%2 == 1 {
			compareWindow(t, seed, c, got, want)
		}
		seen[want.verdicts()]++
		if t.Failed() {
			t.FailNow()
		}
	}
	if len(seen) < 8 {
		t.Errorf("the captures gave only the verdicts %v", seen)
	}
}

// compareWindow compares the bounds of never-empty's window, where there is one, in every order, that some calls open and close.
func compareWindow(t *testing.T, seed int, c *Capture, got *Result, want *enumeration) {
	t.Helper()
	start := report.Range{Earliest: traces.Forever, Latest: traces.Beginning}
	end := start
	for _, x := range want.explanations {
		opened, closed := -1, -1
		for i := 1; i < len(x.bad); i++ {
			switch {
			case x.bad[i] && !x.bad[i-1] && opened < 0:
				opened = i - 1
			case !x.bad[i] && x.bad[i-1] && closed < 0:
				closed = i - 1
			case x.bad[i] != x.bad[i-1]:
				return // more than one
			}
		}
		if x.bad[0] || opened < 0 || closed < 0 {
			return
		}
		start.Earliest, start.Latest = min(start.Earliest, x.order[opened].earliest), max(start.Latest, x.order[opened].latest)
		end.Earliest, end.Latest = min(end.Earliest, x.order[closed].earliest), max(end.Latest, x.order[closed].latest)
	}
	windows := slices.DeleteFunc(slices.Clone(got.Windows), func(w Window) bool { return w.Property != NeverEmpty })
	if len(want.explanations) == 0 || len(windows) != 1 {
		return
	}
	if diff := gocmp.Diff([2]report.Range{start, end}, [2]report.Range{windows[0].Start, windows[0].End}); diff != "" {
		t.Errorf("seed %d: window (-brute force +search):\n%s", seed, diff)
		logCapture(t, c)
	}
}
