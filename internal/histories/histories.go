// Package histories makes random histories of one security group: several processes call a correct set of rules,
// and what each of them saw is recorded. Tests and benchmarks of the checkers use it.
package histories

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"linearize.example/traces"
)

// Group is the security group of every operation, Source the source of every rule.
const (
	Group  = "sg-0aaa1111bbbb2222c"
	Source = "sg-0ddd3333eeee4444f"
)

// Start is the instant at which every history begins; the group has no rules then.
var Start = traces.At(time.Date(2026, 8, 28, 9, 0, 0, 0, time.UTC))

// Options shape a history. The zero value asks for an ordinary one: sequential for the most part, without reads.
type Options struct {
	// Rules is the number of rules that the calls choose from; 0 means 16.
	Rules int
	// Batch is the most rules that one call names; 0 means 2.
	Batch int
	// Reads is the share of describes among the calls, 0 to 1.
	Reads float64
	// MaxLag is how far back a read may look: each is old by a random share of it. 0 means linearizable reads.
	MaxLag time.Duration
	// Concurrency is the mean number of calls open at a time, at most the number of processes; 0 means 0.5.
	Concurrency float64
	// Pending is the number of mutations without an answer, spread evenly. Half of them never arrive; the others take
	// effect as usual or, one in four, up to a minute late.
	Pending int
	// Throttled is the share of mutations that fail with RequestLimitExceeded.
	Throttled float64
	// ViolationAt is the index of a mutation that gets an answer which no order explains; 0 means none. Where other
	// calls are open on every rule then, it is the first mutation after it at which one rule is left alone.
	ViolationAt int
	// Tick, if not 0, widens every interval to whole ticks, as a coarse clock would; After then gives the order of the
	// calls of one process.
	Tick time.Duration
}

// Rule returns the i-th rule that the histories use.
func Rule(i int) traces.Permission {
	port := int32(3000 + i)
	return traces.Permission{
		Rule:        traces.Rule{Protocol: "tcp", FromPort: port, ToPort: port, Source: Source},
		Description: "elbv2.k8s.aws/targetGroupBinding=shared",
	}
}

// Random returns n operations of the given number of processes in the order of their calls. Equal arguments give
// equal histories.
func Random(seed uint64, n, processes int, o Options) []traces.Operation {
	if o.Rules == 0 {
		o.Rules = 16
	}
	if o.Batch == 0 {
		o.Batch = 2
	}
	if o.Concurrency == 0 {
		o.Concurrency = 0.5
	}
	processes = max(processes, 1)
	s := &simulation{
		Options: o,
		rng:     rand.New(rand.NewPCG(seed, 0)),
		ops:     make([]traces.Operation, 0, n),
		present: make([]bool, o.Rules),
		busy:    make([]int, o.Rules),
		think:   meanDuration * (float64(processes)/min(o.Concurrency, float64(processes)) - 1),
		locked:  -1,
	}
	s.versions = []version{{from: Start}}
	for p := range processes {
		s.schedule(Start.Add(time.Duration(s.pause())), event{kind: call, process: p})
	}
	for len(s.queue) > 0 {
		e := heap.Pop(&s.queue).(event)
		switch e.kind {
		case call:
			if len(s.ops) < n {
				s.call(e, n)
			}
		case effect:
			s.effect(e)
		case done:
			s.done(e)
		}
	}
	if o.Tick > 0 {
		coarsen(s.ops, o.Tick)
	}
	return s.ops
}

// The mean time, in nanoseconds, between a call and its return.
const meanDuration = float64(10 * time.Millisecond)

type kind uint8

const (
	call kind = iota
	effect
	done
)

type event struct {
	at      traces.Instant
	seq     int // breaks ties, so that the order is fixed
	kind    kind
	process int
	op      int
	rules   []int
}

type queue []event

func (q queue) Len() int      { return len(q) }
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q *queue) Push(e any) { *q = append(*q, e.(event)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// version is what the group's rules were from one instant on.
type version struct {
	from  traces.Instant
	rules []int
}

type simulation struct {
	Options
	rng      *rand.Rand
	queue    queue
	seq      int
	ops      []traces.Operation
	present  []bool
	busy     []int // for each rule the calls on it that are open, those without an answer included
	think    float64
	pendings int
	versions []version
	violated bool
	locked   int // the rule that the violation is about, while its call is open
}

func (s *simulation) schedule(at traces.Instant, e event) {
	e.at, e.seq = at, s.seq
	s.seq++
	heap.Push(&s.queue, e)
}

// pause is the time between a process's calls: an exponential distribution leaves quiet instants.
func (s *simulation) pause() float64 { return 1 + s.rng.ExpFloat64()*s.think }

func (s *simulation) call(e event, n int) {
	i := len(s.ops)
	duration := time.Duration(meanDuration * (0.5 + s.rng.Float64()))
	ret := e.at.Add(duration)
	op := traces.Operation{
		ID:      "seq " + strconv.Itoa(i+1),
		Process: "p" + strconv.Itoa(e.process+1),
		Group:   Group,
		Call:    e.at,
		Return:  ret,
		After:   -1,
	}
	at := e.at.Add(time.Duration(s.rng.Float64() * float64(duration)))
	var rules []int
	read := s.rng.Float64() < s.Reads
	if !read {
		rules = s.choose()
	}
	switch {
	case len(rules) == 0:
		op.Op, op.Outcome = traces.DescribeSecurityGroups, traces.Succeeded
		s.schedule(at, event{kind: effect, op: i})
	case s.violates(i, &op):
		rules = []int{s.locked}
	default:
		s.mutation(&op, rules)
		if s.Pending > s.pendings && i >= s.pendings*n/s.Pending {
			s.pendings++
			op.Outcome, op.Return = traces.Pending, traces.Forever
			for _, r := range rules {
				s.busy[r]++ // for ever
			}
			if s.rng.IntN(4) == 0 {
				at = at.Add(time.Duration(s.rng.Float64() * float64(time.Minute)))
			}
			if s.rng.IntN(2) == 0 {
				s.schedule(at, event{kind: effect, op: i, rules: rules})
			}
			break
		}
		op.Outcome = traces.Succeeded
		if s.rng.Float64() < s.Throttled {
			op.Outcome, op.Error = traces.Failed, "RequestLimitExceeded"
			break
		}
		s.schedule(at, event{kind: effect, op: i, rules: rules})
	}
	for _, r := range rules {
		s.busy[r]++
	}
	s.ops = append(s.ops, op)
	s.schedule(ret, event{kind: done, process: e.process, op: i, rules: rules})
}

// choose picks the rules of a call; none are left when the only rule is locked.
func (s *simulation) choose() []int {
	var rules []int
	for range 1 + s.rng.IntN(s.Batch) {
		if r := s.rng.IntN(s.Rules); r != s.locked && !slices.Contains(rules, r) {
			rules = append(rules, r)
		}
	}
	return rules
}

// mutation makes a call that succeeds more often than not.
func (s *simulation) mutation(op *traces.Operation, rules []int) {
	revoke := s.present[rules[0]] == (s.rng.IntN(5) > 0)
	op.Op = traces.AuthorizeSecurityGroupIngress
	if revoke {
		op.Op = traces.RevokeSecurityGroupIngress
	}
	for _, r := range rules {
		op.Permissions = append(op.Permissions, Rule(r))
	}
}

// violates makes a call whose answer is wrong, on a rule that nobody else has a call open on. Which calls succeeded
// tells whether the rule is present then, so that no order explains the answer.
func (s *simulation) violates(i int, op *traces.Operation) bool {
	if s.violated || s.ViolationAt == 0 || i < s.ViolationAt {
		return false
	}
	r := slices.Index(s.busy, 0)
	if r < 0 {
		return false
	}
	s.violated, s.locked = true, r
	op.Op, op.Outcome = traces.RevokeSecurityGroupIngress, traces.Succeeded
	if s.present[r] {
		op.Op = traces.AuthorizeSecurityGroupIngress
	}
	op.Permissions = []traces.Permission{Rule(r)}
	return true
}

func (s *simulation) effect(e event) {
	op := &s.ops[e.op]
	if op.Op == traces.DescribeSecurityGroups {
		op.View = s.view(e.at)
		return
	}
	revoke := op.Op == traces.RevokeSecurityGroupIngress
	for _, r := range e.rules {
		if s.present[r] != revoke {
			if op.Outcome == traces.Succeeded {
				op.Outcome, op.Error = traces.Failed, "InvalidPermission.Duplicate"
				if revoke {
					op.Error = "InvalidPermission.NotFound"
				}
			}
			return
		}
	}
	var now []int
	for _, r := range e.rules {
		s.present[r] = !revoke
	}
	for r, p := range s.present {
		if p {
			now = append(now, r)
		}
	}
	if s.MaxLag == 0 {
		s.versions = s.versions[:0] // only the newest can be read
	}
	s.versions = append(s.versions, version{e.at, now})
}

func (s *simulation) view(at traces.Instant) []traces.Permission {
	at = at.Add(-time.Duration(s.rng.Float64() * float64(s.MaxLag)))
	i := len(s.versions) - 1
	for i > 0 && s.versions[i].from > at {
		i--
	}
	view := make([]traces.Permission, 0, len(s.versions[i].rules))
	for _, r := range s.versions[i].rules {
		view = append(view, Rule(r))
	}
	return view
}

func (s *simulation) done(e event) {
	for _, r := range e.rules {
		s.busy[r]--
		if r == s.locked {
			s.locked = -1
		}
	}
	s.schedule(e.at.Add(time.Duration(s.pause())), event{kind: call, process: e.process})
}

func coarsen(ops []traces.Operation, tick time.Duration) {
	last := map[string]int{}
	for i := range ops {
		op := &ops[i]
		op.Call -= op.Call % traces.Instant(tick)
		if p, ok := last[op.Process]; ok {
			op.After = p
		}
		if op.Outcome == traces.Pending {
			continue
		}
		op.Return = (op.Return - 1).Add(tick)
		op.Return -= op.Return % traces.Instant(tick)
		last[op.Process] = i
	}
}
