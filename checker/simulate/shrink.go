package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"linearize.example/checker/report"
)

// Shrunk is the least that still shows a violation.
type Shrunk struct {
	Script *Script
	// History is that of the script's run, Report the verdict on it.
	History []byte
	Report  *report.Report
	// Tried is how many runs it took.
	Tried int
}

// Shrink takes from the script of a run whatever the violation of a property does not need, and runs it again after each
// change: the end, events (by delta debugging: Zeller, Hildebrandt, IEEE TSE 28, 2002), bindings, pods, idle times.
// From what is left no single event and no single binding can be taken away without losing the violation. It is
// an error if the script does not violate the property in the first place.
func Shrink(ctx context.Context, opt Options, property string, bound time.Duration) (*Shrunk, error) {
	s := shrinker{ctx: ctx, opt: opt, property: property, bound: bound}
	if !s.try(opt.Script) {
		if s.err == nil {
			s.err = fmt.Errorf("the script does not violate %s", property)
		}
		return nil, s.err
	}
	// What is taken away can make room for more: again until nothing changes.
	for before := (*Script)(nil); before != s.best.Script && s.err == nil; {
		before = s.best.Script
		s.end()
		s.events()
		s.bindings()
		s.pods()
		s.idle()
	}
	if s.err != nil {
		return nil, s.err
	}
	s.best.Tried = s.tried
	return &s.best, nil
}

type shrinker struct {
	ctx      context.Context
	opt      Options
	property string
	bound    time.Duration
	best     Shrunk
	tried    int
	err      error
}

// try runs a script and takes it if it still violates the property.
func (s *shrinker) try(script *Script) bool {
	if s.err != nil || script.validate() != nil {
		return false
	}
	s.tried++
	opt := s.opt
	opt.Script = script
	run, err := Run(s.ctx, opt)
	if err != nil {
		s.err = err
		return false
	}
	r, err := Judge(s.ctx, run.History, s.bound)
	switch {
	case s.ctx.Err() != nil:
		s.err = s.ctx.Err()
		return false
	case err != nil: // a run without a rule has nothing to judge
		return false
	case verdictOf(r, s.property) != report.Violated:
		return false
	}
	s.best = Shrunk{Script: script, History: run.History, Report: r}
	return true
}

// change tries a copy of the best script with a change.
func (s *shrinker) change(alter func(script *Script)) bool {
	c := *s.best.Script
	c.Bindings = slices.Clone(c.Bindings)
	c.Events = slices.Clone(c.Events)
	alter(&c)
	return s.try(&c)
}

// end cuts the run off as early as the violation allows: after each of some events, the earliest first.
func (s *shrinker) end() {
	events := s.best.Script.Events
	ends := []time.Duration{0}
	for _, e := range events {
		ends = append(ends, time.Duration(e.At))
	}
	// The first end that shows the violation, supposing that later ones do too; if they do not, the end stays.
	low, high := 0, len(ends)
	for low < high && s.err == nil {
		middle := (low + high) / 2
		if s.cut(ends[middle]) {
			high = middle
		} else {
			low = middle + 1
		}
	}
}

// cut ends the run some time after an event.
func (s *shrinker) cut(last time.Duration) bool {
	for _, rest := range []time.Duration{10 * time.Second, time.Minute, 2 * time.Minute, s.bound + time.Minute, s.bound + time.Hour} {
		end := last + rest
		if end >= time.Duration(s.best.Script.Duration) {
			return false
		}
		if s.change(func(c *Script) {
			c.Duration = Duration(end)
			c.Events = slices.DeleteFunc(c.Events, func(e Event) bool { return time.Duration(e.At) > last })
		}) {
			return true
		}
	}
	return false
}

// events takes events away: first large parts, then smaller ones, at last one by one until none can go.
func (s *shrinker) events() {
	for part := max(len(s.best.Script.Events)/2, 1); ; {
		removed := false
		for from := 0; from < len(s.best.Script.Events) && s.err == nil; {
			to := min(from+part, len(s.best.Script.Events))
			if s.change(func(c *Script) { c.Events = slices.Delete(c.Events, from, to) }) {
				removed = true
			} else {
				from = to
			}
		}
		if part == 1 && !removed || s.err != nil {
			return
		}
		if !removed || part > len(s.best.Script.Events) {
			part = max(part/2, 1)
		}
	}
}

// bindings takes bindings away, with their events.
func (s *shrinker) bindings() {
	for i := 0; i < len(s.best.Script.Bindings) && s.err == nil; {
		name := s.best.Script.Bindings[i].Name
		if !s.change(func(c *Script) {
			c.Bindings = slices.Delete(c.Bindings, i, i+1)
			c.Events = slices.DeleteFunc(c.Events, func(e Event) bool { return e.Binding == name })
		}) {
			i++
		}
	}
}

// pods leaves each binding with one pod.
func (s *shrinker) pods() {
	for i, b := range s.best.Script.Bindings {
		if b.Pods > 1 {
			s.change(func(c *Script) { c.Bindings[i].Pods = 1 })
		}
	}
	for i, e := range s.best.Script.Events {
		if e.Pods > 1 {
			s.change(func(c *Script) { c.Events[i].Pods = 0 })
		}
	}
}

// idle shortens the times in which nothing happens.
func (s *shrinker) idle() {
	const short = 10 * time.Second
	for i := range s.best.Script.Events {
		before := time.Duration(0)
		if i > 0 {
			before = time.Duration(s.best.Script.Events[i-1].At)
		}
		gap := time.Duration(s.best.Script.Events[i].At) - before
		if gap <= short {
			continue
		}
		s.change(func(c *Script) {
			for j := i; j < len(c.Events); j++ {
				c.Events[j].At -= Duration(gap - short)
			}
			c.Duration -= Duration(gap - short)
		})
	}
}
