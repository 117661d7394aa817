package property

import (
	"slices"

	"linearize.example/checker/orders"
	"linearize.example/traces"
)

// Cut is an instant at which no call is open and all explanations have the same rules, so that what comes after it can be
// judged apart from what comes before.
type Cut struct {
	// At indexes Capture.Operations: it and those behind it were called after those before it were over.
	At int
	// State is what every explanation has there.
	State orders.State
}

// fewest is how many operations lie between two cuts at least.
const fewest = 512

// quiet follows the operations up to the cut that was last looked at.
type quiet struct {
	done, at             int // operations of the problem, and of the capture
	over, overOfCaptured traces.Instant
}

// cut notes where the block at hand ends, if that is quiet.
func (j *judge) cut() {
	b, q, p := j.b, &j.quiet, j.p
	last := 0
	if n := len(j.r.Cuts); n > 0 {
		last = j.r.Cuts[n-1].At
	}
	if p.optional || b.Last || len(b.Exits) != 1 {
		return
	}
	for ; q.done < b.Done; q.done++ {
		q.over = max(q.over, p.ops[q.done].Return)
	}
	if q.done == len(p.ops) || p.ops[q.done].Call <= q.over {
		return
	}
	for q.at < len(p.c.Operations) && p.c.Operations[q.at].Call < p.ops[q.done].Call {
		q.overOfCaptured = max(q.overOfCaptured, p.c.Operations[q.at].Return)
		q.at++
	}
	if q.overOfCaptured < p.ops[q.done].Call && q.at-last >= fewest {
		j.r.Cuts = append(j.r.Cuts, Cut{q.at, slices.Clone(b.State(b.Exits[0]))})
	}
}
