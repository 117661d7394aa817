package awsapi

import (
	"math/rand/v2"
	"testing"

	"linearize.example/traces"
)

// TestLagged compares with a list of all changes, and looks that few of them are kept.
func TestLagged(t *testing.T) {
	type made struct {
		key, value int
		present    bool
		visible    traces.Instant
	}
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		var l lagged[int, int]
		var all []made
		now := traces.Instant(0)
		for range 400 {
			m := made{rnd.IntN(3), rnd.Int(), rnd.IntN(3) > 0, now + traces.Instant(rnd.IntN(6))}
			_, there := l.current(m.key)
			switch {
			case m.present:
				l.set(m.key, m.value, now, m.visible)
				all = append(all, m)
			case there:
				l.remove(m.key, now, m.visible)
				all = append(all, m)
			}
			now += traces.Instant(rnd.IntN(3))
			for _, at := range []traces.Instant{now, now + 2, traces.Forever} {
				seen := map[int]made{}
				for _, m := range all {
					if m.visible <= at {
						seen[m.key] = m
					}
				}
				for key := range 3 {
					value, present := l.at(key, at)
					if want := seen[key]; present != want.present || present && value != want.value {
						t.Fatalf("seed %d: at %d of %d the key %d is %v %v, not %+v", seed, at, now, key, value, present, want)
					}
				}
			}
			for key, kept := range l.changes {
				if len(kept) > 8 {
					t.Fatalf("seed %d: %d changes of %d are kept", seed, len(kept), key)
				}
			}
		}
		for key := range 3 {
			l.remove(key, now, now+5)
		}
		l.each(now+5, func(key, _ int) { t.Errorf("seed %d: %d is still there", seed, key) })
		if len(l.changes) > 0 {
			t.Errorf("seed %d: what nobody can see is kept: %v", seed, l.changes)
		}
	}
}
