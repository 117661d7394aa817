package evidence

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"linearize.example/model"
)

// RepairTime is the distribution of the time until rules that were lost are put back, in seconds.
type RepairTime struct {
	Scenario string  `json:"scenario"`
	Median   float64 `json:"median_seconds"`
	P90      float64 `json:"p90_seconds"`
	P99      float64 `json:"p99_seconds"`
	Max      float64 `json:"max_seconds"`
}

// Repair scenarios. Nothing in the cluster changes, so that only the controller's own clocks repair.
const (
	afterRestart = "a new process starts after the loss"
	steadyState  = "the same process goes on"
)

// Sizes of the simulation: bindings that share the group, as in the report, and repetitions.
const (
	simulatedBindings = 8
	simulatedRuns     = 4000
)

// repairTimes simulates the controller's clocks: the resync, the mark of a recently processed
// binding, and the delay and jitter of the deferred queue. If verifies is set, a binding is skipped only
// when the group's rules are as they should be, so that every reconcile repairs. Calls take no time,
// and reads are never old. Equal seeds give equal results.
func repairTimes(verifies bool, seed uint64, runs int) []RepairTime {
	r := rand.New(rand.NewPCG(seed, 0))
	var restart, steady []float64
	for range runs {
		restart = append(restart, firstRepair(r, verifies, 0).Seconds())
		// The loss comes at any time of the process's fifth to fifteenth day: its start is forgotten by then.
		lost := 96*time.Hour + time.Duration(r.Int64N(int64(240*time.Hour)))
		steady = append(steady, firstRepair(r, verifies, lost).Seconds())
	}
	return []RepairTime{quantiles(afterRestart, restart), quantiles(steadyState, steady)}
}

// firstRepair runs a process that starts at zero and returns how long after the loss the first full
// reconcile of any binding comes.
func firstRepair(r *rand.Rand, verifies bool, lost time.Duration) time.Duration {
	start := time.Unix(0, 0)
	q := model.NewDeferredQueue(model.SyncPeriod, func(limit time.Duration) time.Duration {
		return time.Duration(r.Int64N(int64(limit)))
	})
	// One factor a process: controller-runtime draws it when it makes the informer.
	factor := 1 - model.SyncJitter + 2*model.SyncJitter*r.Float64()
	resync := time.Duration(float64(model.SyncPeriod) * factor)
	for tick := start; ; tick = tick.Add(resync) {
		// Before this tick the deferred queue may be due.
		for {
			due, any := q.Next()
			if !any || due.After(tick) {
				break
			}
			for _, binding := range q.Due(due) {
				if since := due.Sub(start); since >= lost {
					return since - lost
				}
				q.MarkProcessed(binding, due)
			}
		}
		if since := tick.Sub(start); verifies && since >= lost {
			return since - lost
		}
		for b := range simulatedBindings {
			q.Enqueue(string(rune('a'+b)), tick)
		}
	}
}

func quantiles(scenario string, seconds []float64) RepairTime {
	slices.Sort(seconds)
	at := func(p float64) float64 { return math.Round(stat.Quantile(p, stat.Empirical, seconds, nil)) }
	return RepairTime{scenario, at(0.5), at(0.9), at(0.99), at(1)}
}
