package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"linearize.example/checker/conform/engine"
	"linearize.example/model"
	"linearize.example/traces"
)

// Verdict says whether a design can have produced a capture in an environment.
type Verdict string

// The verdicts. The zero value is none of them.
const (
	Explains Verdict = "explains"
	DoesNot  Verdict = "does not explain"
	Unknown  Verdict = "unknown" // a bound was reached, or the specification cannot speak about the capture
)

// Options bound the search.
type Options struct {
	// States bounds the states that are looked at for one design in one environment, in each way to lay the capture out for the
	// model; 0 means 1,000,000 and 5,000 more for each operation.
	States int
	// Timeout bounds the time for one design in one environment; 0 means none.
	Timeout time.Duration
}

// Result is the answer for one design in one environment.
type Result struct {
	Design      string  `json:"design"`
	Environment string  `json:"environment"`
	Verdict     Verdict `json:"verdict"`
	// Done of Of operations are explained.
	Done int `json:"done"`
	Of   int `json:"of"`
	// Inferred counts the hidden steps of the shortest explanation, Story tells it, and Facts say what was true in it.
	Inferred int      `json:"inferred,omitempty"`
	Story    []Line   `json:"story,omitempty"`
	Facts    []string `json:"facts,omitempty"`
	// Stuck is the first operation that cannot be explained, and Why the reasons.
	Stuck string   `json:"stuck,omitempty"`
	Why   []string `json:"why,omitempty"`
	// Bound says what was reached when the verdict is unknown.
	Bound string `json:"bound,omitempty"`
	// From is the narrower environment whose explanation this is.
	From string `json:"from,omitempty"`
	// WithoutTargets says that calls on targets were left out.
	WithoutTargets bool `json:"without_targets,omitempty"`
	// States counts the states that were looked at.
	States int `json:"states"`
}

// beam is how many states are looked at after each operation while the sources' own times are taken at their word.
const beam = 4000

// maxMemory is the size of the heap, in bytes, beyond which a search is given up.
const maxMemory = 960 << 20

// maxTGBs is how many bindings a model can have: their rules are the elements of a set of 128.
const maxTGBs = 15

// Explain decides for one design in one environment. The error is one of the program, not of the capture.
//
// Where a bound is reached, the capture is tried once more without the calls on targets. What explains the capture explains what
// is left, too: of what is left some targets are hidden. So when nothing explains that, nothing explains the capture.
func Explain(ctx context.Context, s *Subject, design model.Design, env Environment, opt Options) (*Result, error) {
	bare := env.noTargets && len(s.watched) > 0
	if bare {
		s = s.withoutTargets()
	}
	r, err := explainAsItIs(ctx, s, design, env, opt)
	if r != nil {
		r.WithoutTargets = bare
	}
	if err != nil || r.Verdict != Unknown || r.States == 0 || len(s.watched) == 0 || ctx.Err() != nil {
		return r, err
	}
	less, err := explainAsItIs(ctx, s.withoutTargets(), design, env, opt)
	if err != nil || less.Verdict != DoesNot {
		return r, err
	}
	less.States, less.WithoutTargets = less.States+r.States, true
	less.Why = append(less.Why, "this is so whatever the targets; their calls are left out here")
	return less, nil
}

func explainAsItIs(ctx context.Context, s *Subject, design model.Design, env Environment, opt Options) (*Result, error) {
	r := &Result{Design: design.Name, Environment: env.Name, Of: len(s.ops)}
	if s.Cannot != "" {
		r.Verdict, r.Bound = Unknown, s.Cannot
		return r, nil
	}
	if len(s.ports) > maxTGBs {
		r.Verdict, r.Bound = Unknown, fmt.Sprintf("%d different ends of rules; a model can have %d", len(s.ports), maxTGBs)
		return r, nil
	}
	if opt.States == 0 {
		opt.States = 1_000_000 + 5_000*len(s.ops)
	}
	b := &budget{ctx: ctx, states: opt.States, memory: maxMemory}
	if opt.Timeout > 0 {
		b.until = time.Now().Add(opt.Timeout)
	}
	var last *search
	var best stop
	whole := s
	for _, try := range s.tries() {
		s := whole
		if try.stamped {
			s = whole.narrowed()
		}
		b.used = 0
		w := world{design: design, env: env, tagged: try.tagged, limit: s.limit(), vpc: env.defaultVPC}
		x, err := newSearch(s, w, try.extra, b)
		if err != nil {
			return nil, err
		}
		if try.stamped {
			x.beam = beam
		}
		if err := x.start(); err != nil {
			return nil, err
		}
		got, err := x.safely()
		if err != nil {
			return nil, err
		}
		r.States += b.used
		if x.found != nil {
			r.Verdict = Explains
			return r, x.tell(r)
		}
		if try.stamped {
			continue
		}
		if got.at != nil && best.behind(got.at, got.count) {
			best, last, r.Done = got, x, got.count
		}
		if x.gaveUp != "" {
			r.Bound = x.gaveUp
		}
		if x.over != "" {
			r.Bound = x.over
			break
		}
	}
	r.Verdict = DoesNot
	if r.Bound != "" {
		r.Verdict = Unknown
	}
	if last != nil {
		last.blame(r, best)
	}
	return r, nil
}

// safely turns a failure of the generated code into an error.
func (x *search) safely() (best stop, err error) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case engine.Failure:
			err = errors.Join(f, fmt.Errorf("in the state\n%s", x.d.Model.Show(x.d.Output().Cur)))
		default:
			panic(f)
		}
	}()
	return x.run(), nil
}

// try is one way to lay the capture out.
type try struct{ stamped, tagged, extra bool }

// tries lists the ways, the likeliest first: whether the group bears the cluster's tag is not known, nor whether there are
// more bindings than ends of rules.
func (s *Subject) tries() []try {
	var out []try
	for _, stamped := range []bool{true, false} {
		if stamped && !s.stamped() {
			continue
		}
		for _, extra := range []bool{false, true} {
			if extra && (len(s.ports) < 2 || len(s.ports) == maxTGBs || s.only) {
				continue
			}
			// Where every describe was recorded, and none of groups with a tag, that may still be what one of the group was.
			for _, tagged := range []bool{!s.describes || s.listed, s.describes && !s.listed} {
				out = append(out, try{stamped, tagged, extra})
			}
		}
	}
	return out
}

// stamped says whether the sources' own times are closer together than the intervals, which allow for clocks that differ.
func (s *Subject) stamped() bool {
	return slices.ContainsFunc(s.ops, func(op operation) bool { return op.stamp != 0 })
}

// narrowed is the subject with the sources' own times. What explains it explains the capture; the reverse is not true.
func (s *Subject) narrowed() *Subject {
	n := *s
	n.ops = slices.Clone(s.ops)
	for i := range n.ops {
		if op := &n.ops[i]; op.stamp != 0 {
			op.call, op.ret = max(op.call, op.stamp), min(op.ret, op.stamp.Add(time.Second-1))
			if op.call > op.ret {
				op.call, op.ret = s.ops[i].call, s.ops[i].ret
			}
		}
	}
	n.order()
	n.live()
	return &n
}

// limit is how many rules the group can hold: no fewer than it ever held, and no more than when the limit was hit.
func (s *Subject) limit() int {
	held, limit := map[span]bool{}, 999
	if len(s.initial) > 0 {
		for _, r := range s.initial[0] {
			held[r] = true
		}
	}
	for i := range s.ops {
		op := &s.ops[i]
		switch {
		case op.kind == authorize && op.err == limitHit:
			limit = min(limit, len(held)+len(op.rules)-1)
		case op.outcome != traces.Succeeded:
		case op.kind == authorize:
			for _, r := range op.rules {
				held[r] = true
			}
		case op.kind == revoke:
			for _, r := range op.rules {
				delete(held, r)
			}
		}
	}
	return limit
}

// conjuncts are the conditions of spec.tla that decide between the results of a call.
var conjuncts = map[kind]map[result]string{
	authorize: {
		ok:          `no rule of it is there: AuthorizeDuplicate fails at Missing \cap Present # {}`,
		isDuplicate: `a rule of it is there: AuthorizeOk fails at grant \cap Present = {}`,
		isLimit:     `the group is full: AuthorizeOk fails at Cardinality(Present \cup grant) <= RuleLimit`,
	},
	revoke: {
		ok:         `all of it is there: RevokeNotFound fails at ~(Extra \subseteq rules)`,
		isNotFound: `a rule of it is not there: RevokeOk fails at extra \subseteq rules`,
	},
}

var resultWords = map[result]string{ok: "ok", isDuplicate: "Duplicate", isNotFound: "NotFound", isLimit: "the limit error"}

// blame says which operation cannot follow, and why: what the design would have done instead.
func (x *search) blame(r *Result, best stop) {
	enabled := x.enabled(best.at.done)
	if len(enabled) == 0 {
		return
	}
	op := &x.ops[enabled[0]]
	r.Stuck = op.at + " " + x.text(op)
	type scored struct {
		text  string
		score int32
	}
	var list []scored
	for a, n := range best.attempts {
		call := kindWords[a.kind] + " " + x.list(x.spansOf(a.rules))
		same := slices.ContainsFunc(enabled, func(i int) bool { return x.ops[i].kind == a.kind && x.targets[i] == a.rules })
		switch {
		case a.kind == want:
			list = append(list, scored{"a reconcile here would have wanted " + x.list(x.spansOf(a.rules)), n + 1<<20})
		case a.kind == hit:
			list = append(list, scored{"the cache would have been used here", n + 2<<20})
		case a.kind == describe:
			list = append(list, scored{"a describe here would have answered " + x.list(x.spansOf(a.rules)), n + 2<<20})
		case same:
			list = append(list, scored{fmt.Sprintf("%s would have returned %s: %s", call, resultWords[a.result], conjuncts[a.kind][a.result]), n})
		default:
			list = append(list, scored{fmt.Sprintf("the design would have called %s here (%s)", call, resultWords[a.result]), n + 1<<20})
		}
	}
	sort.Slice(list, func(i, j int) bool {
		if list[i].score != list[j].score {
			return list[i].score < list[j].score
		}
		return list[i].text < list[j].text
	})
	for i, l := range list {
		if i == 3 {
			r.Why = append(r.Why, fmt.Sprintf("and %d other calls", len(list)-i))
			break
		}
		r.Why = append(r.Why, l.text)
	}
	if len(list) == 0 {
		r.Why = append(r.Why, "the design makes no further call here, whatever the endpoints do")
	}
}

// Judge answers for every design in every environment. What is explained in a narrower environment is explained in a wider one.
func Judge(ctx context.Context, s *Subject, designs []model.Design, envs []Environment, opt Options, progress func(string)) ([]*Result, error) {
	var out []*Result
	for _, d := range designs {
		var mine []*Result
		for _, e := range envs {
			if progress != nil {
				progress(d.Name + " in " + e.Name)
			}
			r, err := inherited(mine, envs, e), error(nil)
			if r == nil {
				if r, err = Explain(ctx, s, d, e, opt); err != nil {
					return nil, fmt.Errorf("%s in %s: %w", d.Name, e.Name, err)
				}
			}
			mine = append(mine, r)
		}
		out = append(out, mine...)
	}
	return out, nil
}

func inherited(mine []*Result, envs []Environment, e Environment) *Result {
	for i, r := range mine {
		if r.Verdict == Explains && envs[i].within(e) {
			c := *r
			c.Environment, c.From, c.Story, c.Facts, c.States = e.Name, envs[i].Name, nil, nil, 0
			if r.From != "" {
				c.From = r.From
			}
			return &c
		}
	}
	return nil
}

// describeAction names the actions that describe the group.
func describes(a model.Action) bool {
	switch a {
	case model.Describe, model.Reload, model.LookUpGroup, model.SeeGrant, model.Reread, model.SeeRevoke, model.ListTagged:
		return true
	}
	return false
}
