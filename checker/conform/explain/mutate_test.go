package explain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"linearize.example/traces"
)

// mutate changes one thing of a history's calls on the group: it drops a call, swaps what two calls were, moves a port, or
// changes a result. It says what it did; an empty text means that nothing would differ.
func mutate(h *traces.History, r *rand.Rand) (*traces.History, string) {
	m := *h
	m.Operations = slices.Clone(h.Operations)
	var calls []int
	for i, op := range m.Operations {
		if op.Op == traces.AuthorizeSecurityGroupIngress || op.Op == traces.RevokeSecurityGroupIngress {
			calls = append(calls, i)
		}
	}
	n := r.IntN(len(calls))
	i := calls[n]
	op := &m.Operations[i]
	switch r.IntN(4) {
	case 0:
		m.Operations = slices.Delete(m.Operations, i, i+1)
		for k := range m.Operations {
			if a := &m.Operations[k].After; *a >= i {
				*a--
			}
		}
		if n == len(calls)-1 {
			return &m, "drop the last"
		}
		return &m, fmt.Sprintf("drop %d", n)
	case 1:
		if n == len(calls)-1 {
			return &m, ""
		}
		a, b := op, &m.Operations[calls[n+1]]
		if a.Op == b.Op && slices.Equal(a.Permissions, b.Permissions) && a.Error == b.Error {
			return &m, ""
		}
		a.Op, b.Op = b.Op, a.Op
		a.Permissions, b.Permissions = b.Permissions, a.Permissions
		a.Outcome, b.Outcome = b.Outcome, a.Outcome
		a.Error, b.Error = b.Error, a.Error
		return &m, fmt.Sprintf("swap %d", n)
	case 2:
		op.Permissions = slices.Clone(op.Permissions)
		p := &op.Permissions[r.IntN(len(op.Permissions))]
		if r.IntN(2) == 0 || p.FromPort == p.ToPort {
			p.ToPort++
		} else {
			p.FromPort++
		}
		return &m, fmt.Sprintf("port of %d", n)
	}
	switch {
	case op.Outcome == traces.Failed:
		op.Outcome, op.Error = traces.Succeeded, ""
	case op.Op == traces.AuthorizeSecurityGroupIngress:
		op.Outcome, op.Error = traces.Failed, duplicate
	default:
		op.Outcome, op.Error = traces.Failed, notFound
	}
	return &m, fmt.Sprintf("result of %d", n)
}

// TestMutationsAreRejected changes recorded runs. Of the changes of runs with their describes more than 95 of 100 must be
// noticed. Each one that is not is listed with the reason, for it is a run that v3.4.0 could have made.
func TestMutationsAreRejected(t *testing.T) {
	const (
		prefix  = "the rest of a behaviour is a behaviour"
		before  = "the rule was there at the start, or another TGB granted less"
		order   = "the TGBs come in another order after a start"
		nobody  = "no TGB has a pod any more, and the group is cleaned"
		another = "a TGB with another port"
		restart = "a start in between, and a describe that is old"
	)
	argued := map[string]map[string]string{
		"real-run-control/history.ndjson":  {"drop the last": prefix},
		"real-run-incident/history.ndjson": {"drop the last": prefix},
		"real-run-restart/history.ndjson":  {},
		"incident-2026-08-28":              {"drop the last": prefix, "drop 0": before, "port of 7": another, "drop 7": nobody},
		"real-run-incident/controller.log": {"drop the last": prefix, "drop 0": before, "drop 1": before, "swap 1": order,
			"swap 2": restart},
	}
	described, noticed := 0, 0
	for _, c := range []struct{ capture, environment string }{
		{"real-run-control/history.ndjson", "fresh-reads"},
		{"real-run-incident/history.ndjson", "old-reads"},
		{"real-run-restart/history.ndjson", "fresh-reads"},
		{"incident-2026-08-28", "old-reads"},
		{"real-run-incident/controller.log", "old-reads"},
	} {
		h, s := read(t, c.capture)
		r := rand.New(rand.NewPCG(1, 2))
		done := map[string]bool{}
		for range 40 {
			m, what := mutate(h, r)
			if what == "" || done[what] {
				continue
			}
			done[what] = true
			v := explained(t, subject(t, m), "v3.4.0", c.environment, Options{}).Verdict
			if s.describes {
				described++
				if v == DoesNot {
					noticed++
				}
			}
			if why := argued[c.capture][what]; v == Unknown || (v == Explains) != (why != "") {
				t.Errorf("%s, %s: %s (argued: %q)", c.capture, what, v, why)
			}
		}
	}
	t.Logf("with describes, %d of %d changes are noticed", noticed, described)
	if noticed*100 <= described*95 {
		t.Errorf("with describes, %d of %d changes are noticed", noticed, described)
	}
}
