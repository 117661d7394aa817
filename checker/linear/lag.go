package linear

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"linearize.example/traces"
)

// Lag is how old one read was.
type Lag struct {
	// Index is the read's in the slice that ReadLag was given.
	Index int
	ID    string
	// Lag is the least time by which the read must be allowed to look back, so that some order of the mutations explains
	// what it saw; 0 for a read that need not be old.
	Lag time.Duration
	// Explained is false for a read that saw what no order gives, at or before its return: somebody whose calls are not
	// recorded changes the rules. Lag is 0 then.
	Explained bool
}

// LagReport is how old the reads of one group were.
type LagReport struct {
	// Mutations says whether the mutations can be ordered. Where it is not Linearizable there are no lags, and Detail says why.
	Mutations Verdict
	Detail    string
	// Reads are the describes whose answer was recorded, in the order of the operations. Stale counts those with a lag,
	// Unexplained those that no order explains.
	Reads              []Lag
	Stale, Unexplained int
	// Max is the largest lag of a read.
	Max time.Duration
	// Joint is the least lag with which one order explains all explained reads together; at least Max. Together is
	// Linearizable where it is known, NotLinearizable where no lag is enough: the reads contradict each other on the order
	// of concurrent mutations.
	Joint    time.Duration
	Together Verdict
	// Median, P90 and P99 are quantiles of the lags of all explained reads, in seconds: the least lag that at least the
	// given share of reads does not exceed (gonum/stat, Empirical).
	Median, P90, P99 float64
}

// never is longer than any lag.
const never = time.Duration(math.MaxInt64)

// maxUnknown is the most rules of which nothing is known that ReadLag tries with and without.
const maxUnknown = 12

// ReadLag measures how old the reads were: how far back each describe must be allowed to look, its interval becoming
// [Call-lag, Return], for the history to be linearizable. After edges to and from reads narrow intervals, but do not order
// the instant that a read shows.
func ReadLag(ctx context.Context, ops []traces.Operation, initial Initial, opts Options) LagReport {
	if opts.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, opts.Timeout)
		defer cancel()
	}
	if opts.MaxStates == 0 {
		opts.MaxStates = 4 << 20
	}
	t, err := newTimeline(ops)
	if err != nil {
		return LagReport{Detail: err.Error()}
	}
	m := &lagMeter{ctx: ctx, opts: opts, part: compile(ops, t, initial, opts.Lenient, readsApart)}
	m.report.Mutations = m.measure()
	if m.report.Mutations != Linearizable {
		return m.report
	}
	m.summarize()
	m.report.Joint, m.report.Together = m.joint()
	return m.report
}

// lagMeter is one ReadLag under way.
type lagMeter struct {
	ctx    context.Context
	opts   Options
	part   *part
	report LagReport

	versions *versions
	initial  []int32 // the versions that the history may begin with
	events   []event

	// The layers since the last instant at which only one config was possible.
	layers  []layer
	configs []config
	next    []int32 // for each config the same one in the next layer, or -1
	steps   []step
	passed  []bool // for each config, whether an order of the whole history passes through it

	shown   []visible // by version
	reads   []read    // in the order of their returns
	answers int       // how many of them have been answered
}

// event is a call or a return.
type event struct {
	at      traces.Instant
	call    *call
	returns bool
}

// layer is what is possible from at on, until the next layer.
type layer struct {
	at           traces.Instant
	config, step int // where its configs and steps begin
}

// visible is until when a version was last to be seen: in some order, and in every order.
type visible struct {
	possible, certain         traces.Instant
	everPossible, everCertain bool
}

// read is a read with what it takes to explain it.
type read struct {
	*call
	position  int // in LagReport.Reads
	explained bool
	// lag is what it takes in some order, certain what it takes in every order.
	lag, certain time.Duration
}

// measure finds the lag of every read on its own.
func (m *lagMeter) measure() Verdict {
	if v := m.prepare(); v != Linearizable {
		return v
	}
	w := &walk{versions: m.versions}
	w.reset(m.initial)
	m.record(w, traces.Beginning)
	for i, e := range m.events {
		if i%256 == 0 && m.ctx.Err() != nil {
			return m.undecided("the time ran out after %d of %d calls and returns", i, len(m.events))
		}
		if e.returns {
			w.returned(e.call)
		} else if !w.opened(e.call) {
			return m.undecided("more than %d mutations are open at %s", len(w.slots), e.at)
		}
		m.next = append(m.next, w.moved...)
		for j := m.layers[len(m.layers)-1].config; j < len(m.configs); j++ {
			if m.next[j] >= 0 {
				m.next[j] += int32(len(m.configs))
			}
		}
		m.record(w, e.at)
		if len(w.layer) == 0 {
			m.report.Detail = fmt.Sprintf("the mutations cannot be ordered: no order explains %s", name(e.call.op))
			return NotLinearizable
		}
		if len(m.configs) > m.opts.MaxStates {
			return m.undecided("more than %d configurations", m.opts.MaxStates)
		}
		if len(w.layer) == 1 {
			m.settle(false)
		}
	}
	m.settle(true)
	return Linearizable
}

func (m *lagMeter) undecided(format string, args ...any) Verdict {
	m.report.Detail = fmt.Sprintf(format, args...)
	return Unknown
}

// prepare numbers the initial versions and puts mutations and reads into their orders.
func (m *lagMeter) prepare() Verdict {
	p := m.part
	start := p.infer()
	var unknown []int32
	for i := range int32(len(p.rules)) {
		if !start.known.has(i) {
			unknown = append(unknown, i)
		}
	}
	if len(unknown) > maxUnknown {
		return m.undecided("of %d rules nothing tells whether they were there at first", len(unknown))
	}
	m.versions = &versions{ids: map[string]int32{}}
	all := full(len(p.rules))
	for subset := range 1 << len(unknown) {
		present := slices.Clone(start.present)
		for i, r := range unknown {
			if subset&(1<<i) != 0 {
				present.set(r)
			}
		}
		m.initial = append(m.initial, m.versions.number(&state{known: all, present: present}))
	}
	ranked := make([]event, p.end/2+1)
	for _, c := range p.calls {
		if c.forget {
			return m.undecided("the record of %s does not tell what it changed", name(c.op))
		}
		ranked[c.callRank/2] = event{at: c.call, call: c}
		if !c.unanswered() {
			ranked[c.retRank/2] = event{at: c.ret, call: c, returns: true}
		}
	}
	m.events = slices.DeleteFunc(ranked, func(e event) bool { return e.call == nil })
	m.report.Reads = make([]Lag, len(p.reads))
	for i, c := range p.reads {
		m.report.Reads[i] = Lag{Index: c.index, ID: c.op.ID}
		m.reads = append(m.reads, read{call: c, position: i})
	}
	slices.SortStableFunc(m.reads, func(a, b read) int { return cmp.Compare(a.ret, b.ret) })
	return Linearizable
}

// infer adds to what is known of the rules at first what the answers prove: a rule was absent if every mutation of it
// that can have been the first one requires that, and present likewise.
func (p *part) infer() *state {
	n := len(p.rules)
	s := &state{known: slices.Clone(p.start.known), present: slices.Clone(p.start.present)}
	first := make([]traces.Instant, n) // the first return of a call that proves something
	for i := range first {
		first[i] = traces.Forever
	}
	for _, c := range p.calls {
		if c.result == maybe {
			continue
		}
		for r := range c.proves {
			first[r] = min(first[r], c.ret)
		}
	}
	absent, present := newBits(n), newBits(n)
	for _, c := range p.calls {
		if c.wipe {
			for i := range int32(n) {
				if c.call <= first[i] {
					absent.set(i)
					present.set(i)
				}
			}
		}
		for r, wasPresent := range c.proves {
			if c.call > first[r] {
				continue
			}
			if wasPresent {
				present.set(r)
			} else {
				absent.set(r)
			}
		}
		for _, r := range c.remove {
			if !slices.Contains(c.present, r) && c.call <= first[r] {
				absent.set(r)
				present.set(r)
			}
		}
	}
	for i := range int32(n) {
		if !s.known.has(i) && first[i] != traces.Forever && absent.has(i) != present.has(i) {
			s.known.set(i)
			if present.has(i) {
				s.present.set(i)
			}
		}
	}
	return s
}

// proves yields the rules of which the call's effect or answer tells whether they were present.
func (c *call) proves(yield func(rule int32, present bool) bool) {
	for _, r := range c.absent {
		if !yield(r, false) {
			return
		}
	}
	for _, r := range c.present {
		if !yield(r, true) {
			return
		}
	}
	if len(c.some) == 1 {
		yield(c.some[0], c.somePresent)
	}
}

// record keeps the layer that the walk has come to.
func (m *lagMeter) record(w *walk, at traces.Instant) {
	m.layers = append(m.layers, layer{at, len(m.configs), len(m.steps)})
	offset := int32(len(m.configs))
	m.configs = append(m.configs, w.layer...)
	for _, s := range w.steps {
		m.steps = append(m.steps, step{s.from + offset, s.to + offset})
	}
}

// settle answers the reads that returned within the recorded layers, the last of which is one that every order
// passes through, and forgets all but that one. It is final when no event follows.
func (m *lagMeter) settle(final bool) {
	m.pass()
	m.shown = append(m.shown, make([]visible, len(m.versions.states)-len(m.shown))...)
	last := len(m.layers) - 1
	for i, l := range m.layers {
		for m.answers < len(m.reads) && m.reads[m.answers].ret < l.at {
			m.answer(&m.reads[m.answers])
			m.answers++
		}
		if i == last && !final {
			break
		}
		until, end := traces.Forever, len(m.configs)
		if i < last {
			until, end = m.layers[i+1].at, m.layers[i+1].config
		}
		version, several := int32(-1), false
		for j := l.config; j < end; j++ {
			if !m.passed[j] {
				continue
			}
			v := m.configs[j].version
			m.shown[v].possible, m.shown[v].everPossible = until, true
			several = several || version >= 0 && version != v
			version = v
		}
		if !several {
			m.shown[version].certain, m.shown[version].everCertain = until, true
		}
	}
	if final {
		for ; m.answers < len(m.reads); m.answers++ {
			m.answer(&m.reads[m.answers])
		}
		return
	}
	l := m.layers[last]
	m.configs = append(m.configs[:0], m.configs[l.config:]...)
	m.layers = append(m.layers[:0], layer{at: l.at})
	m.steps, m.next = m.steps[:0], m.next[:0]
}

// pass marks the configs that lead to the last layer.
func (m *lagMeter) pass() {
	m.passed = slices.Grow(m.passed[:0], len(m.configs))[:len(m.configs)]
	clear(m.passed)
	end, endStep := len(m.configs), len(m.steps)
	for i := len(m.layers) - 1; i >= 0; i-- {
		l := m.layers[i]
		for j := l.config; j < end; j++ {
			m.passed[j] = i == len(m.layers)-1 || m.next[j] >= 0 && m.passed[m.next[j]]
		}
		for again := true; again; {
			again = false
			for j := endStep - 1; j >= l.step; j-- {
				if s := m.steps[j]; m.passed[s.to] && !m.passed[s.from] {
					m.passed[s.from], again = true, true
				}
			}
		}
		end, endStep = l.config, l.step
	}
}

// answer gives a read its lag: the time since what it saw was last to be seen, before it returned.
func (m *lagMeter) answer(r *read) {
	id := m.versions.find(r.view)
	if id < 0 || int(id) >= len(m.shown) || !m.shown[id].everPossible {
		return
	}
	v := m.shown[id]
	r.explained = true
	r.lag = max(0, r.call.call.Sub(min(v.possible, r.ret)))
	r.certain = never
	if v.everCertain {
		r.certain = max(0, r.call.call.Sub(min(v.certain, r.ret)))
	}
	m.report.Reads[r.position].Explained = true
	m.report.Reads[r.position].Lag = r.lag
}

func (m *lagMeter) summarize() {
	var seconds []float64
	for _, r := range m.report.Reads {
		switch {
		case !r.Explained:
			m.report.Unexplained++
			continue
		case r.Lag > 0:
			m.report.Stale++
		}
		m.report.Max = max(m.report.Max, r.Lag)
		seconds = append(seconds, r.Lag.Seconds())
	}
	if len(seconds) == 0 {
		return
	}
	slices.Sort(seconds)
	quantile := func(p float64) float64 { return stat.Quantile(p, stat.Empirical, seconds, nil) }
	m.report.Median, m.report.P90, m.report.P99 = quantile(0.5), quantile(0.9), quantile(0.99)
}

// joint finds the least lag with which one order explains all reads. With a longer lag every order is possible that
// is with a shorter one, so halving finds it; instants are whole nanoseconds.
func (m *lagMeter) joint() (time.Duration, Verdict) {
	least := m.report.Max
	if v := m.together(least); v != NotLinearizable {
		return least, v
	}
	longest := never - 1
	if v := m.together(longest); v != Linearizable {
		return 0, v
	}
	// least is too short, longest is long enough.
	for longest-least > 1 {
		middle := least + (longest-least)/2
		switch m.together(middle) {
		case Linearizable:
			longest = middle
		case NotLinearizable:
			least = middle
		default:
			return 0, Unknown
		}
	}
	return longest, Linearizable
}

// together reports whether one order explains all reads that may look back by lag. Reads that every order explains
// do not take part.
func (m *lagMeter) together(lag time.Duration) Verdict {
	events := slices.Clone(m.events)
	for _, r := range m.reads {
		if r.explained && r.certain > lag {
			events = append(events, event{r.call.call.Add(-lag), r.call, false}, event{r.ret, r.call, true})
		}
	}
	if len(events) == len(m.events) {
		return Linearizable
	}
	slices.SortStableFunc(events, func(a, b event) int {
		if c := cmp.Compare(a.at, b.at); c != 0 || a.returns == b.returns {
			return c
		}
		if b.returns {
			return -1
		}
		return 1
	})
	w := &walk{versions: m.versions}
	w.reset(m.initial)
	for i, e := range events {
		if i%256 == 0 && m.ctx.Err() != nil {
			return m.undecided("the time ran out while looking for one order that explains all reads")
		}
		if e.returns {
			w.returned(e.call)
		} else if !w.opened(e.call) {
			return m.undecided("more than %d mutations and reads are open at %s", len(w.slots), e.at)
		}
		if len(w.layer) == 0 {
			return NotLinearizable
		}
		if len(w.layer) > m.opts.MaxStates {
			return m.undecided("more than %d configurations", m.opts.MaxStates)
		}
	}
	return Linearizable
}
