package simulate

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"linearize.example/checker/property"
	"linearize.example/checker/report"
	"linearize.example/traces/awsapi"
)

// TestShrink: what is left of a script violates the property still, by the same command, and nothing more can be left out.
func TestShrink(t *testing.T) {
	for _, c := range []struct {
		design, property string
		plan             Plan
		faults           *awsapi.Faults
		bound            time.Duration
	}{
		{"v3.4.0", property.NeverEmpty, Plan{Churn: Boundary, Seed: 1, Duration: time.Hour, Bindings: 8}, lagging(lag), 5 * time.Minute},
		{"v2.7.2", property.NeverEmpty, Plan{Churn: Rolling, Seed: 1, Duration: 30 * time.Minute, Bindings: 4}, nil, 5 * time.Minute},
		{"v3.4.0", property.RepairBound, Plan{Churn: Steady, Seed: 2, Duration: 2 * time.Hour, Bindings: 3, ExternalRevokes: 2, Restarts: 2}, nil, time.Minute},
		{"v2.7.2", property.Covered, Plan{Churn: Boundary, Seed: 4, Duration: 20 * time.Minute, Bindings: 3, Crashes: 1, Restarts: 1}, nil, 5 * time.Minute},
	} {
		opt := Options{Design: design(t, c.design), Script: script(t, c.plan), Faults: c.faults}
		ctx := context.Background()
		s, err := Shrink(ctx, opt, c.property, c.bound)
		if err != nil {
			t.Errorf("%s, %s: %v", c.design, c.property, err)
			continue
		}
		violates := func(change func(s *Script)) bool {
			smaller := *s.Script
			smaller.Bindings, smaller.Events = slices.Clone(smaller.Bindings), slices.Clone(smaller.Events)
			change(&smaller)
			again := opt
			again.Script = &smaller
			if smaller.validate() != nil {
				return false
			}
			run, err := Run(ctx, again)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Judge(ctx, run.History, c.bound)
			if err != nil {
				return false
			}
			if len(smaller.Events) == len(s.Script.Events) && len(smaller.Bindings) == len(s.Script.Bindings) && !bytes.Equal(run.History, s.History) {
				t.Errorf("%s, %s: the script does not give the history again", c.design, c.property)
			}
			return verdictOf(r, c.property) == report.Violated
		}
		if !violates(func(*Script) {}) || verdictOf(s.Report, c.property) != report.Violated {
			t.Errorf("%s, %s: what is left does not violate it", c.design, c.property)
		}
		for i := range s.Script.Events {
			if violates(func(s *Script) { s.Events = slices.Delete(s.Events, i, i+1) }) {
				t.Errorf("%s, %s: event %d can be left out", c.design, c.property, i)
			}
		}
		for i, b := range s.Script.Bindings {
			if violates(func(s *Script) {
				s.Bindings = slices.Delete(s.Bindings, i, i+1)
				s.Events = slices.DeleteFunc(s.Events, func(e Event) bool { return e.Binding == b.Name })
			}) {
				t.Errorf("%s, %s: %s can be left out", c.design, c.property, b.Name)
			}
		}
		t.Logf("%s, %s: %d events of %d, %d bindings of %d, %s of %s, %d runs", c.design, c.property, len(s.Script.Events), len(opt.Script.Events),
			len(s.Script.Bindings), len(opt.Script.Bindings), time.Duration(s.Script.Duration), c.plan.Duration, s.Tried)
		if len(s.Script.Events) > 6 || len(s.Script.Bindings) > 3 {
			t.Errorf("%s, %s: %d events and %d bindings are left", c.design, c.property, len(s.Script.Events), len(s.Script.Bindings))
		}
	}
}

// TestShrinkRefuses: a property that holds cannot be shown with less.
func TestShrinkRefuses(t *testing.T) {
	opt := Options{Design: design(t, "confirm-authorize"), Script: script(t, Plan{Churn: Steady, Seed: 1, Duration: 10 * time.Minute, Bindings: 2})}
	if s, err := Shrink(context.Background(), opt, property.NeverEmpty, time.Minute); err == nil {
		t.Errorf("shrunk to %v", s.Script)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Shrink(ctx, opt, property.NeverEmpty, time.Minute); err == nil {
		t.Error("no error after the end of the context")
	}
}
