package linear

import (
	"context"
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"linearize.example/traces"
)

// Verdict says whether some order of the calls, within their intervals, explains every answer. The zero value is
// Unknown.
type Verdict uint8

// The verdicts.
const (
	Unknown         Verdict = iota // time or memory ran out, or the input contradicts itself
	Linearizable                   // some order does
	NotLinearizable                // none does
)

func (v Verdict) String() string {
	return [...]string{"unknown", "linearizable", "not-linearizable"}[v]
}

// Presence is what is known of a rule. The zero value is Maybe.
type Presence uint8

// What may be known of a rule.
const (
	Maybe Presence = iota
	Present
	Absent
)

// Initial is what is known of the group's rules before the first operation.
type Initial struct {
	Rules map[traces.Rule]Presence
	// Others holds for the rules that Rules does not name. A rule that no call changes is, all the same, what the first
	// read shows.
	Others Presence
}

// Options bound and shape the check. The zero value asks for the defaults.
type Options struct {
	// Lenient is for groups of a default VPC, where a revoke of absent rules succeeds and removes those that are there.
	Lenient bool
	// Timeout bounds the time that one Check or ReadLag takes; 0 means that the context alone does.
	Timeout time.Duration
	// MaxStretch is the most operations that Porcupine is given in one piece; 0 means 20,000.
	MaxStretch int
	// MaxBytes bounds the memory, in bytes, that Porcupine's cache may take, by an estimate; 0 means 256 MiB.
	MaxBytes int64
	// MaxStates bounds the states kept between two stretches, and the configurations that ReadLag keeps; 0 means 4,096
	// and 4,194,304.
	MaxStates int

	// stretch is the fewest calls of a stretch between quiet instants: a run of Porcupine costs more than a few calls do.
	// piece is the fewest calls of a piece of a stretch without a quiet instant; it has at most twice as many.
	stretch, piece int
}

// Result is the verdict on one group, and what it took.
type Result struct {
	// Mutations is about the calls that change rules, All about those and the reads.
	Mutations, All Verdict
	// Detail says why a verdict is Unknown.
	Detail string
	// Parts counts the parts that were judged apart in the end, Stretches the stretches between quiet instants of all
	// checks; Longest is the most operations in one of them.
	Parts, Stretches, Longest int
	// Runs counts the runs of Porcupine, Steps the steps that they took.
	Runs, Steps int
	// Failed is the first stretch that cannot be ordered.
	Failed *Failure
}

// Failure is a stretch of operations that no order explains.
type Failure struct {
	// From and To bound the stretch: the first call and the last return, or the last call where no call returned.
	From, To traces.Instant
	// Operations are the stretch's, as indexes into the slice that Check was given, in the order of their calls.
	// Ordered is the longest partial order, which begins with some calls before the stretch, and Next are the calls of which
	// one had to come next.
	Operations, Ordered, Next []int
	// Text is the same in words: how far an order gets, what the rules are then, and why no call fits.
	Text string
	// Visualization is Porcupine's picture, an HTML document; empty for a stretch of more than 2,000 operations.
	Visualization string
}

// Check decides whether the operations of one group are linearizable. Rule ids must have been resolved; After indexes
// ops. Operations that neither change nor show rules are passed over. It does not change ops.
func Check(ctx context.Context, ops []traces.Operation, initial Initial, opts Options) Result {
	if opts.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, opts.Timeout)
		defer cancel()
	}
	k := &checker{opts: opts.withDefaults(), ctx: ctx}
	t, err := newTimeline(ops)
	if err != nil {
		k.res.Detail = err.Error()
		return k.res
	}
	// An order of all calls is one of the mutations too, so those with the reads come first. Half of the time is left for
	// the mutations alone, which are easier to order.
	reads := compile(ops, t, initial, opts.Lenient, readsAmong)
	all, stuck := Unknown, (*failure)(nil)
	if len(reads.reads) > 0 {
		half, cancel := halfTime(ctx)
		defer cancel()
		k.ctx = half
		if all, stuck = k.judge([]*part{reads}); all == Linearizable {
			k.res.All, k.res.Mutations = all, all
			return k.res
		}
		k.ctx = ctx
	}
	mutations, earlier := k.judge(compile(ops, t, initial, opts.Lenient, readsLeftOut).split())
	if mutations == NotLinearizable || len(reads.reads) == 0 {
		all, stuck = mutations, earlier // reads can only add reasons
	}
	k.res.Mutations, k.res.All = mutations, all
	if stuck != nil {
		k.explain(stuck)
	}
	if mutations != Unknown && all != Unknown {
		k.res.Detail = ""
	}
	return k.res
}

// halfTime is a context with half of the time left.
func halfTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithTimeout(ctx, time.Until(deadline)/2)
	}
	return ctx, func() {}
}

// OnePiece returns the model and the history with which Porcupine judges all operations at once, without the parts, cuts
// and bounds of Check: for comparisons. It fails for operations that contradict themselves.
func OnePiece(ops []traces.Operation, initial Initial, opts Options) (porcupine.Model, []porcupine.Operation, error) {
	t, err := newTimeline(ops)
	if err != nil {
		return porcupine.Model{}, nil, err
	}
	p := compile(ops, t, initial, opts.Lenient, readsAmong)
	r := p.newRun(p.calls, start{state: p.start}, p.end, func(*state) bool { return false }, nil)
	return p.model(r.start, r.branching), r.history, nil
}

func (o Options) withDefaults() Options {
	if o.MaxStretch == 0 {
		o.MaxStretch = 20_000
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 256 << 20
	}
	if o.MaxStates == 0 {
		o.MaxStates = 1 << 12
	}
	if o.stretch == 0 {
		o.stretch, o.piece = min(48, o.MaxStretch), max(1, min(64, o.MaxStretch/4))
	}
	return o
}

// checker is one Check under way.
type checker struct {
	ctx  context.Context
	opts Options
	res  Result
	last *run // the run before, for its memory
}

// judge judges parts that are independent of each other.
func (k *checker) judge(parts []*part) (Verdict, *failure) {
	k.res.Parts = len(parts)
	verdict := Linearizable
	for _, p := range parts {
		stretches := p.cut(p.calls, k.opts.stretch)
		k.res.Stretches += len(stretches)
		for _, s := range stretches {
			k.res.Longest = max(k.res.Longest, len(s))
		}
		switch v, stuck := k.chain(p, stretches, start{state: p.start}); v {
		case NotLinearizable:
			return NotLinearizable, stuck
		case Unknown:
			verdict = Unknown
		}
	}
	return verdict, nil
}

// undecided says why, the first time.
func (k *checker) undecided(format string, args ...any) Verdict {
	if k.res.Detail == "" {
		k.res.Detail = fmt.Sprintf(format, args...)
	}
	return Unknown
}
