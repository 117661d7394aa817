package checker

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"linearize.example/checker/linear"
	"linearize.example/checker/property"
	"linearize.example/internal/histories"
)

// TestWitness checks that an order that explains the describes is one that Porcupine agrees with, and that most histories
// whose reads are never old have one.
func TestWitness(t *testing.T) {
	found, missed, old := 0, 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 4))
		o := histories.Options{Rules: 2 + rng.IntN(6), Reads: 0.3 + rng.Float64()/2, Concurrency: 0.5 + 2*rng.Float64()}
		if seed%3 == 0 {
			o.MaxLag = 100 * time.Millisecond
		}
		if seed%5 == 0 {
			o.Tick = 20 * time.Millisecond
		}
		p := prepare(capturing(histories.Random(seed, 60, 4, o)), DefaultOptions())
		if len(p.groups) == 0 {
			continue
		}
		j := judgement{p: p, g: p.groups[0], opt: DefaultOptions()}
		j.r = property.Judge(context.Background(), &p.groups[0].capture, property.Options{})
		unexplained, known := j.r.Witness(isRead)
		witnessed := known && len(unexplained) == 0
		all := linear.Check(context.Background(), j.onRules(0, len(j.g.capture.Operations)), j.segments()[0].initial, linear.Options{}).All
		switch {
		case witnessed && all != linear.Linearizable:
			t.Errorf("seed %d: the order explains all reads, and Porcupine says %s", seed, all)
		case witnessed:
			found++
		case all == linear.Linearizable:
			missed++
		default:
			old++
		}
	}
	if found < 100 || missed > found || old < 20 {
		t.Errorf("%d witnesses, %d missed, %d histories with old reads", found, missed, old)
	}
	t.Logf("%d witnesses, %d missed, %d histories with old reads", found, missed, old)
}
