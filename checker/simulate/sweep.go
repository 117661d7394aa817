package simulate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"linearize.example/checker/property"
	"linearize.example/checker/report"
	"linearize.example/model"
	"linearize.example/traces"
	"linearize.example/traces/awsapi"
)

// Sweep is one plan, repeated over seeds and designs.
type Sweep struct {
	Designs []model.Design
	// Seeds are the first seed, and how many follow it.
	First uint64
	Seeds int
	// Plan says what scripts to make; its Seed does not count.
	Plan Plan
	// Workers, SyncPeriod and Faults are those of Options.
	Workers    int
	SyncPeriod time.Duration
	Faults     *awsapi.Faults
	// RepairBound is the bound to judge by.
	RepairBound time.Duration
	// Parallel is how many runs are made at a time.
	Parallel int
	// Progress, if not nil, is told how many runs are done, by one goroutine at a time.
	Progress func(done, of int)
}

// Options are those of the run of one design with one seed.
func (s *Sweep) Options(design model.Design, seed uint64) (Options, error) {
	plan := s.Plan
	plan.Seed = seed
	script, err := NewScript(plan)
	return Options{Design: design, Script: script, Workers: s.Workers, SyncPeriod: s.SyncPeriod, Faults: s.Faults}, err
}

// Row is what the runs of one design amount to.
type Row struct {
	Design string `json:"design"`
	Runs   int    `json:"runs"`
	// Violated has, in the order of Properties, how many runs violate each; Possible and Unknown those that are not decided.
	Violated []Share `json:"violated"`
	Possible []int   `json:"possible"`
	Unknown  []int   `json:"unknown"`
	// Repairs are the windows of never-empty and covered, by seed and time.
	Repairs []Lifetime `json:"repairs"`
	// Calls and Reconciles are sums over the runs.
	Calls      int `json:"calls"`
	Reconciles int `json:"reconciles"`
	// Seeds are the seeds of the runs that violate each property.
	Seeds [][]uint64 `json:"seeds"`
}

// outcome is what is kept of one run.
type outcome struct {
	verdicts          []report.Verdict
	repairs           []Lifetime
	calls, reconciles int
	err               error
}

// Run makes all runs, several at a time, and adds them up. The rows depend on the sweep alone.
func (s *Sweep) Run(ctx context.Context) ([]Row, error) {
	of := len(s.Designs) * s.Seeds
	outcomes := make([]outcome, of)
	err := s.each(ctx, of, func(i int) error {
		outcomes[i] = s.one(ctx, s.Designs[i/s.Seeds], s.First+uint64(i%s.Seeds))
		return outcomes[i].err
	}, s.Progress)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(s.Designs))
	for d, design := range s.Designs {
		rows[d] = s.row(design, outcomes[d*s.Seeds:(d+1)*s.Seeds])
	}
	return rows, nil
}

// each calls f for the numbers below n, several at a time, until one of them fails.
func (s *Sweep) each(ctx context.Context, n int, f func(i int) error, progress func(done, of int)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var workers sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range max(s.Parallel, 1) {
		workers.Go(func() {
			for i := range next {
				if err := f(i); err != nil {
					cancel(err)
				}
				mu.Lock()
				if done++; progress != nil {
					progress(done, n)
				}
				mu.Unlock()
			}
		})
	}
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

func (s *Sweep) one(ctx context.Context, design model.Design, seed uint64) outcome {
	fail := func(err error) outcome {
		return outcome{err: fmt.Errorf("design %s, seed %d: %w", design.Name, seed, err)}
	}
	opt, err := s.Options(design, seed)
	if err != nil {
		return fail(err)
	}
	run, err := Run(ctx, opt)
	if err != nil {
		return fail(err)
	}
	r, err := Judge(ctx, run.History, s.RepairBound)
	if err != nil {
		return fail(err)
	}
	out := outcome{calls: run.Calls, reconciles: run.Reconciles, repairs: Lifetimes(r)}
	for _, name := range Properties {
		out.verdicts = append(out.verdicts, verdictOf(r, name))
	}
	return out
}

func (s *Sweep) row(design model.Design, runs []outcome) Row {
	n := len(Properties)
	row := Row{Design: design.Name, Runs: len(runs), Possible: make([]int, n), Unknown: make([]int, n), Seeds: make([][]uint64, n)}
	for p := range Properties {
		for i, o := range runs {
			switch o.verdicts[p] {
			case report.Violated:
				row.Seeds[p] = append(row.Seeds[p], s.First+uint64(i))
			case report.Possible:
				row.Possible[p]++
			case report.Unknown:
				row.Unknown[p]++
			}
		}
		row.Violated = append(row.Violated, NewShare(len(row.Seeds[p]), len(runs)))
	}
	for _, o := range runs {
		row.Repairs = append(row.Repairs, o.repairs...)
		row.Calls += o.calls
		row.Reconciles += o.reconciles
	}
	return row
}

// Lifetimes are the windows in which never-empty or covered was violated for certain. Windows that overlap are one: what
// is repaired is the group.
func Lifetimes(r *report.Report) []Lifetime {
	type span struct{ from, to traces.Instant }
	var spans []span
	for _, name := range []string{property.NeverEmpty, property.Covered} {
		if p := propertyOf(r, name); p != nil {
			for _, w := range p.Windows {
				to := traces.Forever
				if w.End != nil {
					to = w.To
				}
				if w.Verdict == report.Violated {
					spans = append(spans, span{w.From, to})
				}
			}
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var joined []span
	for _, s := range spans {
		if n := len(joined); n > 0 && s.from <= joined[n-1].to {
			joined[n-1].to = max(joined[n-1].to, s.to)
			continue
		}
		joined = append(joined, s)
	}
	var out []Lifetime
	for _, s := range joined {
		censored := s.to == traces.Forever
		if censored {
			s.to = *r.Groups[0].To
		}
		out = append(out, Lifetime{s.to.Sub(s.from).Seconds(), censored})
	}
	return out
}
