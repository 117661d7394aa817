package simulate

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"linearize.example/checker/property"
	"linearize.example/checker/report"
	"linearize.example/model"
	"linearize.example/traces"
	"linearize.example/traces/awsapi"
)

func design(t testing.TB, name string) model.Design {
	d, err := model.DesignNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func lagging(d awsapi.Distribution) *awsapi.Faults {
	return &awsapi.Faults{ReadLag: awsapi.ReadLag{"*": d}}
}

// lag is the read lag of the incident.
var lag = awsapi.Fixed(1500 * time.Millisecond)

func script(t testing.TB, p Plan) *Script {
	s, err := NewScript(p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ran makes a run and judges it.
func ran(t testing.TB, opt Options) (*Result, *report.Report) {
	t.Helper()
	run, err := Run(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Judge(context.Background(), run.History, 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return run, r
}

// seeds is how many of so many seeds are tried.
func seeds(n uint64) uint64 {
	if fewer {
		return 1
	}
	return n
}

func readHistory(t testing.TB, history []byte) *traces.History {
	h := &traces.History{Inputs: []traces.Input{{Path: "run"}}}
	if err := traces.ReadHistory(bytes.NewReader(history), h, 0); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestDeterminism: the same input gives the same bytes, whatever else the machine does; another seed gives others.
func TestDeterminism(t *testing.T) {
	everything := Plan{Churn: Random, Seed: 7, Duration: 15 * time.Minute, Bindings: 5, ExternalRevokes: 2, Crashes: 1, Restarts: 1, LeaderChanges: 1}
	faults := lagging(awsapi.Exponential(time.Second))
	faults.Latency = awsapi.Uniform(0, 300*time.Millisecond)
	faults.Rules = []awsapi.FaultRule{
		{Action: "*SecurityGroupIngress", Share: 0.1, Lost: true},
		{Action: "*", Share: 0.1, Code: "RequestLimitExceeded"},
		{Action: "RevokeSecurityGroupIngress", Share: 0.1, Late: awsapi.Fixed(20 * time.Second)},
	}
	opt := Options{Design: design(t, "v3.4.0"), Script: script(t, everything), Faults: faults}
	first, _ := ran(t, opt)
	busy, stop := context.WithCancel(context.Background())
	defer stop()
	for range 2 {
		go func() {
			for busy.Err() == nil {
				_ = make([]byte, 1<<16)
			}
		}()
	}
	for range 3 {
		again, _ := ran(t, opt)
		if diff := cmp.Diff(first, again); diff != "" {
			t.Fatalf("the same run again (-first +again):\n%s", diff)
		}
	}
	everything.Seed++
	opt.Script = script(t, everything)
	if other, _ := ran(t, opt); bytes.Equal(first.History, other.History) {
		t.Error("another seed gives the same history")
	}
}

// TestIncident: what emptied the group in the report empties it live, and not if every wanted rule is confirmed first.
func TestIncident(t *testing.T) {
	for name, want := range map[string]report.Verdict{"v3.4.0": report.Violated, "confirm-authorize": report.Holds} {
		run, r := ran(t, Options{Design: design(t, name), Script: script(t, Plan{Churn: Boundary, Seed: 1, Duration: time.Hour, Bindings: 8}), Faults: lagging(lag)})
		if got := verdictOf(r, property.NeverEmpty); got != want {
			t.Errorf("%s: never-empty %s, want %s", name, got, want)
		}
		if (len(run.Truth.Empty) > 0) != (want == report.Violated) {
			t.Errorf("%s: in truth the group was empty %v", name, run.Truth.Empty)
		}
		if g := r.Groups[0]; g.Linearity.Mutations != "linearizable" || g.Linearity.StaleReads == 0 {
			t.Errorf("%s: mutations are %s, %d reads are old", name, g.Linearity.Mutations, g.Linearity.StaleReads)
		}
	}
}

// conditions are faults and plans under which the truth is compared with the verdicts.
func conditions(churn string, seed uint64) (Plan, *awsapi.Faults) {
	p := Plan{Churn: Churn(churn), Seed: seed, Duration: 12 * time.Minute, Bindings: 5}
	faults := lagging(awsapi.Uniform(0, 1500*time.Millisecond))
	if seed%2 == 0 {
		p.ExternalRevokes, p.Crashes, p.LeaderChanges, p.Restarts = 2, 1, 1, 1
	}
	if seed%3 == 0 {
		faults.Rules = []awsapi.FaultRule{
			{Action: "*SecurityGroupIngress", Share: 0.1, Lost: true},
			{Action: "*SecurityGroupIngress", Share: 0.1, Code: "RequestLimitExceeded"},
		}
	}
	return p, faults
}

// TestTruth compares the verdicts, which rest on the record alone, with what was so: a verdict is never the opposite of the truth,
// and a window that is certain lies inside of one that is true as far as calls can tell.
func TestTruth(t *testing.T) {
	undecided, judged := 0, 0
	for _, name := range []string{"v3.4.0", "v2.7.2", "confirm-before-revoke", "confirm-authorize", "group-mutex", "proposed"} {
		for _, churn := range Churns() {
			for seed := uint64(1); seed <= seeds(6); seed++ {
				plan, faults := conditions(churn, seed)
				run, r := ran(t, Options{Design: design(t, name), Script: script(t, plan), Faults: faults})
				truth := run.Truth
				for _, c := range []struct {
					property string
					windows  []Window
					so       bool
				}{
					{property.NeverEmpty, truth.EmptyToCalls, len(truth.Empty) > 0},
					{property.Covered, truth.UncoveredToCalls, len(truth.Uncovered) > 0},
					{property.Tight, nil, len(truth.Leftover) > 0},
				} {
					p := propertyOf(r, c.property)
					judged++
					switch {
					case p.Verdict == report.Violated && !c.so, p.Verdict == report.Holds && c.so, p.Verdict == report.Unknown:
						t.Errorf("%s, %s churn, seed %d: %s %s (%s), in truth %v %v", name, churn, seed, c.property, p.Verdict, p.Reason, c.windows, truth.Leftover)
					case p.Verdict == report.Possible:
						undecided++
					}
					for _, w := range p.Windows {
						if w.Verdict == report.Violated && !slices.ContainsFunc(c.windows, func(o Window) bool {
							return !o.From.After(w.Start.Latest.Time()) && (w.End == nil || !o.To.Before(w.End.Earliest.Time()))
						}) {
							t.Errorf("%s, %s churn, seed %d: %s violated %s, in truth %v", name, churn, seed, c.property, windowText(w), c.windows)
						}
					}
				}
			}
		}
	}
	t.Logf("%d of %d verdicts are left open", undecided, judged)
	if undecided*5 > judged {
		t.Errorf("%d of %d verdicts are left open: the record tells too little", undecided, judged)
	}
}

// TestTimers: without any change a loss is repaired by the controller's own timers alone: after a restart by the deferred queue
// within 45 minutes, else by the resync and the deferred queue.
func TestTimers(t *testing.T) {
	for _, c := range []struct {
		name     string
		events   []Event
		duration time.Duration
		low      time.Duration
		high     time.Duration
	}{
		{"restarted after the loss", []Event{{At: Duration(time.Hour), Kind: ExternalRevoke}, {At: Duration(time.Hour + time.Minute), Kind: Restart}},
			4 * time.Hour, 30 * time.Minute, 47 * time.Minute},
		{"never restarted", []Event{{At: Duration(time.Hour), Kind: ExternalRevoke}}, 24 * time.Hour, 9 * time.Hour, 22 * time.Hour},
	} {
		s := script(t, Plan{Churn: Steady, Seed: 1, Duration: c.duration, Bindings: 3})
		s.Events = c.events
		run, _ := ran(t, Options{Design: design(t, "v3.4.0"), Script: s})
		if w := run.Truth.Empty; len(w) != 1 || w[0].Open || w[0].Length() < c.low || w[0].Length() > c.high {
			t.Errorf("%s: empty %v, want one window of %s to %s", c.name, w, c.low, c.high)
		}
	}
}

// TestLeaders: who leads when, by the history's observations.
func TestLeaders(t *testing.T) {
	for _, c := range []struct {
		kind EventKind
		wait time.Duration // until somebody leads again, at least
	}{{Crash, leaseDuration}, {Restart, leaseDuration}, {LeaderChange, 0}} {
		for _, name := range []string{"v3.4.0", "wait-out"} {
			s := script(t, Plan{Churn: Steady, Seed: 3, Duration: 10 * time.Minute, Bindings: 3})
			at := 3 * time.Minute
			// A reconcile is under way when it happens.
			s.Events = []Event{{At: Duration(at - 200*time.Millisecond), Kind: PodsReplaced, Binding: s.Bindings[0].Name}, {At: Duration(at), Kind: c.kind}}
			run, r := ran(t, Options{Design: design(t, name), Script: s})
			var elected time.Time
			var old traces.Instant
			h := readHistory(t, run.History)
			for _, ob := range h.Observations {
				if ob.Kind == traces.LeaderElected {
					elected = ob.Earliest.Time()
				}
			}
			for _, op := range h.Operations {
				if op.Process == "lbc-1" {
					old = max(old, op.Return)
				}
			}
			if wait := elected.Sub(Beginning.Add(at)); run.Processes != 2 || wait < c.wait || wait > c.wait+time.Minute {
				t.Errorf("%s, %s: %d processes, the second leads after %s", name, c.kind, run.Processes, wait)
			}
			overlaps := old.Time().After(elected)
			if want := c.kind == LeaderChange && name == "v3.4.0"; overlaps != want {
				t.Errorf("%s, %s: the old leader's last call ends at %s, the new one leads from %s", name, c.kind, old.Time(), elected)
			}
			if v := verdictOf(r, property.NeverEmpty); v != report.Holds {
				t.Errorf("%s, %s: never-empty %s", name, c.kind, v)
			}
		}
	}
}

// TestObservations: what a history tells besides calls, in a run that has everything.
func TestObservations(t *testing.T) {
	s := script(t, Plan{Churn: Boundary, Seed: 2, Duration: 100 * time.Minute, Bindings: 3})
	s.Events = append(s.Events, Event{At: Duration(20 * time.Minute), Kind: Crash}, Event{At: Duration(40 * time.Minute), Kind: LeaderChange},
		Event{At: Duration(45 * time.Minute), Kind: Restart})
	faults := &awsapi.Faults{Rules: []awsapi.FaultRule{{Action: "AuthorizeSecurityGroupIngress", EveryNth: 3, Code: "UnauthorizedOperation"}}}
	faults.Rules = append(faults.Rules, awsapi.FaultRule{Action: "RegisterTargets", EveryNth: 3, Code: "ValidationError"})
	run, _ := ran(t, Options{Design: design(t, "v3.4.0"), Script: s, Faults: faults})
	count := map[traces.ObservationKind]int{}
	for _, ob := range readHistory(t, run.History).Observations {
		count[ob.Kind]++
	}
	for _, kind := range []traces.ObservationKind{traces.Started, traces.LeaderElected, traces.LeaderLost, traces.Reconciling, traces.Reconciled,
		traces.ReconcileFailed, traces.Requeued, traces.Skipped, traces.Deferred, traces.CheckpointReset, traces.Wanted, traces.CacheHit, traces.CacheFilled, traces.Noted} {
		if count[kind] == 0 {
			t.Errorf("nothing was noted of the kind %s", kind)
		}
	}
	if count[traces.Started] != run.Processes || run.Processes != 4 {
		t.Errorf("%d processes, %d starts", run.Processes, count[traces.Started])
	}
	if n := count[traces.Reconciling]; n != run.Reconciles {
		t.Errorf("%d reconciles, %d of them noted", run.Reconciles, n)
	}
}

// TestRunRefuses has options that cannot be used.
func TestRunRefuses(t *testing.T) {
	s := script(t, Plan{Churn: Steady, Seed: 1, Duration: 10 * time.Minute, Bindings: 2})
	s.Events = []Event{{Kind: "flood"}}
	if _, err := Run(context.Background(), Options{Design: design(t, "v3.4.0"), Script: s}); err == nil {
		t.Error("an unknown event is no error")
	}
	s.Events = nil
	faults := &awsapi.Faults{Rules: []awsapi.FaultRule{{Action: "MakeCoffee", Code: "Teapot"}}}
	if _, err := Run(context.Background(), Options{Design: design(t, "v3.4.0"), Script: s, Faults: faults}); err == nil {
		t.Error("an unknown action is no error")
	}
}
