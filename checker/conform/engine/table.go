package engine

import (
	"math/bits"
	"sync"
)

// table is a set of fingerprints: 256 open-addressing tables, chosen by the top bits, each with its own lock. A slot's
// place grows with the fingerprint, so that growing is one pass in order.
type table struct{ shards [256]shard }

type shard struct {
	mu    sync.Mutex
	slots []uint64 // 0 is empty
	used  int
	_     [24]byte // keeps the locks of neighbours on different cache lines
}

const firstSlots = 64

func newTable() *table {
	t := &table{}
	for i := range t.shards {
		t.shards[i].slots = make([]uint64, firstSlots)
	}
	return t
}

// add stores a fingerprint and says whether it was new. It is safe for concurrent use.
func (t *table) add(fp uint64) bool {
	if fp == 0 {
		fp = 1
	}
	s := &t.shards[fp>>56]
	s.mu.Lock()
	i := s.place(fp)
	for s.slots[i] != 0 {
		if s.slots[i] == fp {
			s.mu.Unlock()
			return false
		}
		if i++; i == len(s.slots) {
			i = 0
		}
	}
	s.slots[i] = fp
	s.used++
	if s.used*8 > len(s.slots)*6 {
		s.grow()
	}
	s.mu.Unlock()
	return true
}

// place is the first slot to try.
func (s *shard) place(fp uint64) int {
	hi, _ := bits.Mul64(fp<<8, uint64(len(s.slots)))
	return int(hi)
}

// grow makes the shard half as large again, so that between three eighths and three quarters of it, in memory 10.7 to
// 16 bytes a state, stay in use.
func (s *shard) grow() {
	old := s.slots
	s.slots = make([]uint64, len(old)+len(old)/2)
	for _, fp := range old {
		if fp == 0 {
			continue
		}
		i := s.place(fp)
		for s.slots[i] != 0 {
			if i++; i == len(s.slots) {
				i = 0
			}
		}
		s.slots[i] = fp
	}
}

func (t *table) bytes() int {
	n := 0
	for i := range t.shards {
		n += 8 * len(t.shards[i].slots)
	}
	return n
}
