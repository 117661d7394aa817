package simulate

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// dice are the random numbers of one purpose. A draw depends on the seed, the purpose, what it is for, and the instant, but on no draw
// before: what is taken from a script leaves what happens at other instants as it was, so that scripts can be shrunk.
type dice struct {
	clock   Clock
	seed    uint64
	purpose string

	mu    sync.Mutex
	at    time.Time // of the last draw
	count int       // draws at that instant
}

func newDice(clock Clock, seed uint64, purpose string) *dice {
	return &dice{clock: clock, seed: seed, purpose: purpose}
}

// next returns the random numbers of one draw.
func (d *dice) next(what string) *rand.Rand {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	if !now.Equal(d.at) {
		d.at, d.count = now, 0
	}
	d.count++
	h := fnv.New64a()
	h.Write([]byte(d.purpose + " " + what))
	return rand.New(rand.NewPCG(d.seed^uint64(now.UnixNano()), h.Sum64()+uint64(d.count)))
}

// below draws a duration from [0, limit).
func (d *dice) below(limit time.Duration, what string) time.Duration {
	if limit <= 0 {
		return 0
	}
	return time.Duration(d.next(what).Int64N(int64(limit)))
}

// between draws a duration from [low, high).
func (d *dice) between(low, high time.Duration, what string) time.Duration {
	return low + d.below(high-low, what)
}
