package checker

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gonum.org/v1/gonum/stat"

	"linearize.example/checker/linear"
	"linearize.example/checker/report"
	"linearize.example/traces"
)

// Porcupine, and the measurement of the reads, get this much time each, and so much more for every operation.
const (
	linearTime        = 5 * time.Second
	linearTimePerCall = 50 * time.Microsecond
)

// segment is a part of the group's operations that can be judged apart.
type segment struct {
	from, to int
	initial  linear.Initial
}

// linearity reports what Porcupine says of the segments, and measures the reads.
func (j *judgement) linearity(ctx context.Context, segments, asked []segment, result linear.Result) {
	mutations, all, detail := result.Mutations, result.All, result.Detail
	searched := j.r.Err == nil && len(j.r.Unclear) == 0
	if mutations == linear.Unknown && searched {
		mutations, detail = linear.Linearizable, "by the search over orders; Porcupine gave up: "+detail
		if j.r.Stuck != nil {
			mutations = linear.NotLinearizable
		}
	}
	if j.reads() == 0 || mutations == linear.NotLinearizable {
		all = mutations
	}
	if len(asked) < len(segments) {
		n := 0
		for _, s := range asked {
			n += s.to - s.from
		}
		detail = cmp.Or(detail, fmt.Sprintf("one order, which the search found, explains the calls; Porcupine was asked of %d of the %d, where some were left", n, len(j.g.capture.Operations)))
	}
	l := report.Linearity{Result: all.String(), Mutations: mutations.String(), Detail: detail, Reads: j.reads()}
	switch {
	case l.Reads == 0:
		l.Detail = cmp.Or(l.Detail, "no describe with its answer was recorded")
	case mutations == linear.NotLinearizable:
		l.Detail = cmp.Or(l.Detail, "the changes cannot be ordered, so that no describe was measured")
	case all == linear.Linearizable: // then no read is old
		l.Quantiles = &report.Quantiles{}
		l.Detail = cmp.Or(l.Detail, readsInWords(linear.LagReport{Reads: make([]linear.Lag, l.Reads)}))
	default:
		measured(&l, j.readLag(ctx, segments))
	}
	j.out.Linearity = l
	if f := result.Failed; f != nil && result.Mutations == linear.NotLinearizable {
		j.out.Visualization = f.Visualization
	}
	j.unordered()
	// The two engines judge the same question; if they ever differ, neither is to be believed.
	mine := j.r.Err == nil
	if mine && (result.Mutations == linear.NotLinearizable) != (j.r.Stuck != nil) && result.Mutations != linear.Unknown &&
		len(j.r.Unclear) == 0 && j.g.capture.Snapshot == nil && j.r.CertainStart() {
		j.disagree(result)
	}
}

// measured notes how old the reads were.
func measured(l *report.Linearity, lag linear.LagReport) {
	l.Reads, l.StaleReads, l.MaxReadLagSeconds = len(lag.Reads), lag.Stale, max(lag.Max, lag.Joint).Seconds()
	for _, read := range lag.Reads {
		if read.Lag > 0 {
			l.ReadLags = append(l.ReadLags, report.ReadLag{ID: read.ID, Seconds: read.Lag.Seconds()})
		}
	}
	if len(lag.Reads) > 0 {
		l.Quantiles = &report.Quantiles{Median: lag.Median, P90: lag.P90, P99: lag.P99, Max: lag.Max.Seconds()}
	}
	l.Detail = cmp.Or(l.Detail, readsInWords(lag))
}

// unordered says where no order of the operations goes on.
func (j *judgement) unordered() {
	s := j.r.Stuck
	if s == nil {
		return
	}
	u := &report.Unordered{Explained: s.Explained, Refusals: s.Refusals}
	if s.Op >= 0 {
		u.At = j.ref(s.Op)
	}
	for _, state := range s.States {
		u.States = append(u.States, "{"+strings.Join(ruleTexts(state), ", ")+"}")
	}
	j.out.Unordered = u
}

// disagree withdraws the verdicts.
func (j *judgement) disagree(result linear.Result) {
	for i := range j.out.Properties {
		j.out.Properties[i].Verdict = report.Unknown
		j.out.Properties[i].Reason = "the search over orders and Porcupine disagree (" + result.Mutations.String() + "); please report this capture"
	}
}

// segments cuts the operations where the search found one set of rules at a quiet instant: Porcupine's memory grows with
// what it is given.
func (j *judgement) segments() []segment {
	initial := linear.Initial{Rules: map[traces.Rule]linear.Presence{}, Others: linear.Absent}
	start := j.r.Start()
	switch {
	case j.g.capture.Snapshot != nil:
		for _, r := range j.g.capture.Snapshot.Rules {
			initial.Rules[r.Rule] = linear.Present
		}
	case start != nil && j.r.CertainStart():
		for _, p := range j.r.Rules(start, false) {
			initial.Rules[p.Rule] = linear.Present
		}
	default:
		initial.Others = linear.Maybe
	}
	segments := []segment{{initial: initial}}
	for _, cut := range j.r.Cuts {
		segments[len(segments)-1].to = cut.At
		initial := linear.Initial{Rules: map[traces.Rule]linear.Presence{}, Others: linear.Absent}
		for _, p := range j.r.Rules(cut.State, false) {
			initial.Rules[p.Rule] = linear.Present
		}
		segments = append(segments, segment{from: cut.At, initial: initial})
	}
	segments[len(segments)-1].to = len(j.g.capture.Operations)
	return segments
}

// Porcupine is asked of every segment of a capture of up to so many operations. Of a longer one it judges those with describes
// that the search's own order does not explain, and some others for a second opinion.
const (
	mostAsked = 20_000
	samples   = 16
)

// asked are the segments that Porcupine judges.
func (j *judgement) asked(segments []segment) []segment {
	if len(j.g.capture.Operations) <= mostAsked || len(segments) <= samples {
		return segments
	}
	unexplained, known := j.r.Witness(isRead)
	if !known {
		return segments
	}
	var some []segment
	for i, s := range segments {
		open := 0
		for open < len(unexplained) && unexplained[open] < s.to {
			open++
		}
		unexplained = unexplained[open:]
		if open > 0 || i*samples/len(segments) != (i-1)*samples/len(segments) || i == 0 {
			some = append(some, s)
		}
	}
	return some
}

// onRules are the operations from one index to another, without those on targets.
func (j *judgement) onRules(from, to int) []traces.Operation {
	ops := j.g.capture.Operations
	var kept []int
	asTheyAre := true
	for i := from; i < to; i++ {
		target := isTargetCall(&ops[i])
		if asTheyAre = asTheyAre && !target && (from == 0 || ops[i].After < 0); !target {
			kept = append(kept, i)
		}
	}
	if asTheyAre {
		return ops[from:to]
	}
	return traces.Pick(ops, kept)
}

// withTime bounds the time by the number of operations. Where the search found no order, a second opinion is worth less.
func (j *judgement) withTime(ctx context.Context) (context.Context, context.CancelFunc) {
	most := linearTime + time.Duration(len(j.g.capture.Operations))*linearTimePerCall
	if j.r.Stuck != nil {
		most /= 100
	}
	return context.WithTimeout(ctx, most)
}

// porcupine joins what Porcupine says of the segments.
func (j *judgement) porcupine(ctx context.Context, segments []segment) linear.Result {
	opt := linear.Options{Lenient: j.r.Lenient}
	ctx, cancel := j.withTime(ctx)
	defer cancel()
	joined := linear.Result{Mutations: linear.Linearizable, All: linear.Linearizable}
	worse := func(a, b linear.Verdict) linear.Verdict {
		switch {
		case a == linear.NotLinearizable || b == linear.NotLinearizable:
			return linear.NotLinearizable
		case a == linear.Unknown || b == linear.Unknown:
			return linear.Unknown
		}
		return linear.Linearizable
	}
	results := make([]linear.Result, len(segments))
	var failed atomic.Int64 // the first segment that fails: nothing behind it matters
	failed.Store(int64(len(segments)))
	inParallel(len(segments), func(n int) {
		if int64(n) > failed.Load() {
			return
		}
		s := segments[n]
		results[n] = linear.Check(ctx, j.onRules(s.from, s.to), s.initial, opt)
		for was := failed.Load(); results[n].Mutations == linear.NotLinearizable && int64(n) < was && !failed.CompareAndSwap(was, int64(n)); was = failed.Load() {
		}
	})
	for _, r := range results {
		if joined.Failed == nil {
			joined.Failed = r.Failed
		}
		if joined.Detail == "" {
			joined.Detail = r.Detail
		}
		joined.Mutations, joined.All = worse(joined.Mutations, r.Mutations), worse(joined.All, r.All)
		if r.Mutations == linear.NotLinearizable {
			joined.Failed = r.Failed
			break
		}
	}
	return joined
}

// inParallel does work n times, with as many at once as there are processors, the first ones first.
func inParallel(n int, work func(i int)) {
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				work(i)
			}
		})
	}
	wait.Wait()
}

// isRead reports whether the call shows all rules of the group.
func isRead(op *traces.Operation) bool {
	describes := op.Op == traces.DescribeSecurityGroups || op.Op == traces.DescribeSecurityGroupRules
	return describes && op.View != nil && op.Outcome == traces.Succeeded && len(op.RuleIDs) == 0
}

// reads counts the describes whose answer was recorded.
func (j *judgement) reads() int {
	if j.counted {
		return j.readCount
	}
	n := 0
	for i := range j.g.capture.Operations {
		if isRead(&j.g.capture.Operations[i]) {
			n++
		}
	}
	j.readCount, j.counted = n, true
	return n
}

// readLag measures the reads of each segment, which may look back into the segment before it. Where some read looks back
// further, all operations are taken together.
func (j *judgement) readLag(ctx context.Context, segments []segment) linear.LagReport {
	opt := linear.Options{Lenient: j.r.Lenient}
	ctx, cancel := j.withTime(ctx)
	defer cancel()
	whole := func() linear.LagReport {
		return linear.ReadLag(ctx, j.onRules(0, len(j.g.capture.Operations)), segments[0].initial, opt)
	}
	if len(segments) == 1 {
		return whole()
	}
	joined := linear.LagReport{Mutations: linear.Linearizable, Together: linear.Linearizable}
	for n, s := range segments {
		first := max(0, n-1)
		from := segments[first]
		lag := linear.ReadLag(ctx, j.onRules(from.from, s.to), from.initial, opt)
		if lag.Mutations != linear.Linearizable || lag.Unexplained > 0 {
			return whole()
		}
		before := 0
		for i := from.from; i < s.from; i++ {
			if isRead(&j.g.capture.Operations[i]) {
				before++
			}
		}
		for _, read := range lag.Reads[before:] {
			if read.Lag > 0 {
				joined.Stale++
			}
			joined.Max = max(joined.Max, read.Lag)
			joined.Reads = append(joined.Reads, read)
		}
		joined.Joint = max(joined.Joint, lag.Joint)
		if lag.Together != linear.Linearizable {
			joined.Together = lag.Together
		}
	}
	joined.Median, joined.P90, joined.P99 = quantiles(joined.Reads)
	return joined
}

// quantiles are those of the lags, in seconds, as linear.LagReport has them.
func quantiles(reads []linear.Lag) (median, p90, p99 float64) {
	seconds := make([]float64, len(reads))
	for i := range reads {
		seconds[i] = reads[i].Lag.Seconds()
	}
	if len(seconds) == 0 {
		return 0, 0, 0
	}
	slices.Sort(seconds)
	quantile := func(p float64) float64 { return stat.Quantile(p, stat.Empirical, seconds, nil) }
	return quantile(0.5), quantile(0.9), quantile(0.99)
}

func readsInWords(lag linear.LagReport) string {
	switch {
	case len(lag.Reads) == 0:
		return "the age of the describes could not be measured: " + lag.Detail
	case lag.Unexplained > 0:
		return fmt.Sprintf("%d of %d describes saw rules that no order of the recorded calls gives: somebody whose calls are not recorded changes the group", lag.Unexplained, len(lag.Reads))
	case lag.Stale > 0:
		return fmt.Sprintf("%d of %d describes were answered from an old version", lag.Stale, len(lag.Reads))
	}
	return fmt.Sprintf("none of %d describes was answered from an old version", len(lag.Reads))
}
