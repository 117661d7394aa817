package simulate

import (
	"slices"
	"time"

	"linearize.example/checker/property"
	"linearize.example/traces"
	"linearize.example/traces/awsapi"
)

// Truth is what was so in a run: the windows in which a property was violated, from the endpoint's own rules and
// targets and the cluster's pods, not from what was recorded.
type Truth struct {
	// Empty are the windows without a managed rule while a live, registered target was there; Uncovered those in which the port
	// of such a target was inside no rule.
	Empty, Uncovered []Window
	// EmptyToCalls and UncoveredToCalls are the same for targets that were registered, live or not: who sees nothing but calls
	// does not know that a pod is gone until its target is deregistered.
	EmptyToCalls, UncoveredToCalls []Window
	// Leftover are the managed rules at the end that nobody needs; Settled is the time since the last change of needs or rules.
	Leftover []traces.Rule
	Settled  time.Duration
}

// Window is a time span. Open says that the run ended first.
type Window struct {
	From, To time.Time
	Open     bool
}

// Length is how long the window lasted.
func (w Window) Length() time.Duration { return w.To.Sub(w.From) }

// need is what a live, registered target needs: its port, for one source.
type need struct {
	protocol string
	port     int32
	source   string
}

// sample is what targets and pods needed from an instant on.
type sample struct {
	at     time.Time
	needs  []need // of live, registered targets
	called []need // of registered targets, live or not
	wanted []need // of live pods, registered or not
}

// truthOf joins what happened to the rules with what was needed.
func truthOf(changes []awsapi.Change, samples []sample, end time.Time) Truth {
	var o, toCalls observer
	var rules []traces.IdentifiedPermission
	var now sample
	for len(changes) > 0 || len(samples) > 0 {
		at := end
		if len(changes) > 0 {
			at = changes[0].At.Time()
		}
		if len(samples) > 0 && samples[0].at.Before(at) {
			at = samples[0].at
		}
		for ; len(changes) > 0 && !changes[0].At.Time().After(at); changes = changes[1:] {
			rules, o.changed = changes[0].Rules, at
		}
		for ; len(samples) > 0 && !samples[0].at.After(at); samples = samples[1:] {
			if !slices.Equal(now.wanted, samples[0].wanted) || !slices.Equal(now.needs, samples[0].needs) {
				o.changed = at
			}
			now = samples[0]
		}
		o.look(at, rules, now.needs)
		toCalls.look(at, rules, now.called)
	}
	t := o.finish(end, rules, now.wanted)
	dead := toCalls.finish(end, rules, now.wanted)
	t.EmptyToCalls, t.UncoveredToCalls = dead.Empty, dead.Uncovered
	return t
}

// observer keeps the windows.
type observer struct {
	empty, uncovered []Window
	changed          time.Time
}

// look takes the rules and the needs from an instant on.
func (o *observer) look(at time.Time, rules []traces.IdentifiedPermission, needs []need) {
	managed := slices.ContainsFunc(rules, func(p traces.IdentifiedPermission) bool { return property.Managed(p.Description) })
	open := slices.ContainsFunc(needs, func(n need) bool { return !allowed(rules, n) })
	o.empty = extend(o.empty, at, len(needs) > 0 && !managed)
	o.uncovered = extend(o.uncovered, at, open)
}

func allowed(rules []traces.IdentifiedPermission, n need) bool {
	for _, p := range rules {
		if p.Source == n.source && p.Covers(n.protocol, n.port) {
			return true
		}
	}
	return false
}

// extend opens or closes the last window. One that opens in the instant in which the last one closed continues it.
func extend(windows []Window, now time.Time, violated bool) []Window {
	n := len(windows)
	open := n > 0 && windows[n-1].Open
	switch {
	case violated && !open:
		if n > 0 && windows[n-1].To.Equal(now) {
			windows[n-1].Open = true
			return windows
		}
		return append(windows, Window{From: now, To: now, Open: true})
	case !violated && open:
		windows[n-1].Open, windows[n-1].To = false, now
		if windows[n-1].From.Equal(now) {
			return windows[:n-1]
		}
	}
	return windows
}

// finish ends the run.
func (o *observer) finish(now time.Time, rules []traces.IdentifiedPermission, wanted []need) Truth {
	t := Truth{Settled: now.Sub(o.changed)}
	for _, list := range []struct{ from, to *[]Window }{{&o.empty, &t.Empty}, {&o.uncovered, &t.Uncovered}} {
		for _, w := range *list.from {
			if w.Open {
				w.To = now
			}
			*list.to = append(*list.to, w)
		}
	}
	for _, p := range rules {
		if property.Managed(p.Description) && superfluous(p.Rule, rules, wanted) {
			t.Leftover = append(t.Leftover, p.Rule)
		}
	}
	return t
}

// superfluous reports whether nobody needs a managed rule: another one opens all that it opens, or no live pod is inside it.
func superfluous(r traces.Rule, rules []traces.IdentifiedPermission, wanted []need) bool {
	for _, o := range rules {
		if property.Managed(o.Description) && o.Rule != r && o.Contains(r) {
			return true
		}
	}
	return !slices.ContainsFunc(wanted, func(n need) bool { return n.source == r.Source && r.Covers(n.protocol, n.port) })
}
