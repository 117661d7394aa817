package property

import (
	"encoding/binary"
	"slices"
)

// interned keeps one effect of those that are equal: a long capture has few different ones. What it returns must not be
// changed.
type interned struct {
	known map[string]*effect
	key   []byte
}

func (s *interned) intern(e effect) *effect {
	s.key = append(s.key[:0], byte(e.kind), byte(e.result))
	number := func(n int) { s.key = binary.AppendVarint(s.key, int64(n)) }
	items := func(list []item) {
		number(len(list))
		for _, it := range list {
			number(int(it.managed))
		}
	}
	facts := func(list []int32) {
		number(len(list))
		for _, f := range list {
			number(int(f))
		}
	}
	ports := func(list []int) {
		number(len(list))
		for _, n := range list {
			number(n)
		}
	}
	items(e.items)
	items(e.absent)
	items(e.partnerGone)
	facts(e.set)
	facts(e.on)
	facts(e.off)
	facts(e.partnerThere)
	facts([]int32{e.once, e.unless})
	ports(e.narrows)
	ports(e.drops)
	for _, w := range e.siblings {
		s.key = binary.LittleEndian.AppendUint64(s.key, w)
	}
	if same, ok := s.known[string(s.key)]; ok {
		return same
	}
	if s.known == nil {
		s.known = map[string]*effect{}
	}
	own := e.clone()
	s.known[string(s.key)] = &own
	return &own
}

// clone shares no list that addCall or narrow fill.
func (e effect) clone() effect {
	e.items, e.absent, e.partnerGone = slices.Clone(e.items), slices.Clone(e.absent), slices.Clone(e.partnerGone)
	e.set, e.on, e.off = slices.Clone(e.set), slices.Clone(e.on), slices.Clone(e.off)
	e.partnerThere, e.narrows, e.drops = slices.Clone(e.partnerThere), slices.Clone(e.narrows), slices.Clone(e.drops)
	return e
}
