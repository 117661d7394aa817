package explore

import (
	"encoding/binary"
	"math/bits"
	"sort"
)

// store keeps distinct states in the order in which they were added: the states themselves in
// segments of just as many bytes as a state has, and an open-addressing index of their positions. The
// index holds one byte of each state's hash beside the position, so that most probes that miss never
// touch a state; equality is decided by the state itself.
type store struct {
	size     int // bytes of one state
	segments [][]byte
	count    int
	tags     []uint8  // 0: free
	position []uint32 // valid where the tag is not 0
}

const (
	segmentStates = 1 << 14
	initialSlots  = 1 << 10
	maxLoad       = 0.85
	growth        = 1.5
)

func newStore(stateBits int) *store {
	s := &store{size: (stateBits + 7) / 8}
	s.rebuild(initialSlots)
	return s
}

func (s *store) len() int { return s.count }

// bytes is the memory that the store occupies.
func (s *store) bytes() int {
	return len(s.segments)*segmentStates*s.size + len(s.tags) + 4*len(s.position)
}

// at returns the state at a position.
func (s *store) at(i int) State {
	var buf [8 * len(State{})]byte
	at := i % segmentStates * s.size
	copy(buf[:], s.segments[i/segmentStates][at:at+s.size])
	var st State
	for w := range st {
		st[w] = binary.LittleEndian.Uint64(buf[8*w:])
	}
	return st
}

// hash mixes all words of a state; the constants are those of splitmix64.
func hash(st State) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, w := range st {
		h ^= w
		h ^= h >> 30
		h *= 0xbf58476d1ce4e5b9
		h ^= h >> 27
		h *= 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

// slot maps a hash to the slot at which its probe begins, for any number of slots.
func (s *store) slot(h uint64) int {
	hi, _ := bits.Mul64(h, uint64(len(s.tags)))
	return int(hi)
}

func tag(h uint64) uint8 { return uint8(h)%255 + 1 }

// find returns the position of a state, or -1.
func (s *store) find(st State) int {
	h := hash(st)
	t := tag(h)
	for i := s.slot(h); s.tags[i] != 0; {
		if s.tags[i] == t && s.at(int(s.position[i])) == st {
			return int(s.position[i])
		}
		if i++; i == len(s.tags) {
			i = 0
		}
	}
	return -1
}

// add stores a state unless it is there, and returns its position and whether it is new.
func (s *store) add(st State) (int, bool) {
	if i := s.find(st); i >= 0 {
		return i, false
	}
	if float64(s.count+1) > maxLoad*float64(len(s.tags)) {
		s.rebuild(int(float64(len(s.tags)) * growth))
	}
	if s.count%segmentStates == 0 {
		s.segments = append(s.segments, make([]byte, segmentStates*s.size))
	}
	var buf [8 * len(State{})]byte
	for w, word := range st {
		binary.LittleEndian.PutUint64(buf[8*w:], word)
	}
	at := s.count % segmentStates * s.size
	copy(s.segments[s.count/segmentStates][at:at+s.size], buf[:])
	s.index(st, s.count)
	s.count++
	return s.count - 1, true
}

func (s *store) index(st State, position int) {
	h := hash(st)
	i := s.slot(h)
	for s.tags[i] != 0 {
		if i++; i == len(s.tags) {
			i = 0
		}
	}
	s.tags[i] = tag(h)
	s.position[i] = uint32(position)
}

// rebuild makes the index anew. The old one is dropped first: both never exist at once.
func (s *store) rebuild(slots int) {
	s.tags, s.position = nil, nil
	s.tags, s.position = make([]uint8, slots), make([]uint32, slots)
	for i := range s.count {
		s.index(s.at(i), i)
	}
}

// trace returns the path by which the search first reached a state. A state's parent lies in the
// chunk that was being merged when it was added; expanding that chunk again finds it.
func (s *search) trace(index int) []Step {
	e := s.model.Expander()
	var reversed []Step
	for {
		state := s.store.at(index)
		m := sort.Search(len(s.marks), func(i int) bool { return int(s.marks[i].firstChild) > index }) - 1
		if m < 0 {
			reversed = append(reversed, Step{-1, state})
			break
		}
		parent, by := -1, -1
		for i := int(s.marks[m].from); parent < 0; i++ {
			e.Successors(s.store.at(i), func(action int, next State) {
				if parent < 0 && next == state {
					parent, by = i, action
				}
			})
		}
		reversed = append(reversed, Step{by, state})
		index = parent
	}
	steps := make([]Step, len(reversed))
	for i, st := range reversed {
		steps[len(steps)-1-i] = st
	}
	return steps
}
