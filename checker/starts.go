package checker

import (
	"fmt"
	"time"

	"linearize.example/traces"
)

// oneWave is how far apart the first skips after a start may be: they are made three at a time, each in milliseconds.
const oneWave = 5 * time.Second

// inferStarts adds the start of a controller whose log lacks the line of it. A TGB that is skipped is handed to the
// deferred queue the first time after a start, and again only when the sync period (10 h by default) is over
// (targetgroupbinding_deferred_reconciler.go): several that are handed over at once show a start, or that resync.
func inferStarts(observations []traces.Observation) []traces.Observation {
	told := map[string]bool{} // processes whose start is in the log, or was inferred
	var out []traces.Observation
	for i := range observations {
		ob := &observations[i]
		switch {
		case ob.Kind == traces.Started || ob.Kind == traces.LeaderElected:
			told[ob.Process] = true
		case ob.Kind == traces.Skipped && !told[ob.Process]:
			if n := wave(observations[i:]); n > 1 {
				told[ob.Process] = true
				out = append(out, traces.Observation{Kind: traces.Started, Process: ob.Process, Earliest: ob.Earliest, Latest: ob.Latest,
					Text: fmt.Sprintf("controller started, or resynced, by then: %d TGBs are skipped and deferred at once; the log has no line of it", n)})
			}
		}
		out = append(out, *ob)
	}
	return out
}

// wave counts the TGBs that the process of the first observation skips and defers together, beginning with it.
func wave(observations []traces.Observation) int {
	first := &observations[0]
	skipped, deferred := map[string]bool{}, map[string]bool{}
	for i := range observations {
		ob := &observations[i]
		if ob.Earliest > first.Latest.Add(oneWave) {
			break
		}
		switch {
		case ob.Process != first.Process:
		case ob.Kind == traces.Skipped:
			skipped[ob.TGB] = true
		case ob.Kind == traces.Deferred && skipped[ob.TGB]:
			deferred[ob.TGB] = true
		}
	}
	return len(deferred)
}
