package model

import (
	"math/bits"

	"linearize.example/model/explore"
)

const maxStateBits = explore.MaxBits

// layout is the width in bits of each kind of field. A field that the constants leave one value takes
// no room.
type layout struct {
	rules, versions, pod, checkpoint, leader, tgb       int
	computed, queue, mark, due, resync, faults, witness int
	age                                                 int
	bits                                                int
}

func widthOf(max int) int { return bits.Len(uint(max)) }

func (s *System) newLayout() layout {
	l := layout{
		rules: len(s.names), versions: widthOf(s.MaxLag), pod: widthOf(s.MaxPods), checkpoint: widthOf(s.MaxPods + 1),
		leader: widthOf(s.Procs - 1), tgb: widthOf(s.TGBs), computed: widthOf(int(computed) - 1),
		queue: widthOf(s.DeferMax + 1), mark: widthOf(s.MarkTTL), resync: widthOf(s.ResyncMax),
		faults: widthOf(s.MaxFaults), witness: s.Procs,
	}
	if !s.DeferredQueue {
		l.queue = 0
	}
	if s.Timed {
		l.due = s.TGBs
		l.age = widthOf(s.RepairBound + 1)
	}
	var st State
	p := packer{}
	s.pack(l, &st, &p)
	l.bits = p.at
	return l
}

// packer appends fields to a packed state.
type packer struct {
	state explore.State
	at    int
}

func (p *packer) put(v uint32, width int) {
	if width == 0 {
		return
	}
	word, shift := p.at>>6, p.at&63
	p.at += width
	if word >= len(p.state) {
		return // too wide; NewSystem refuses the layout
	}
	p.state[word] |= uint64(v) << shift
	if shift+width > 64 && word+1 < len(p.state) {
		p.state[word+1] |= uint64(v) >> (64 - shift)
	}
}

func (p *packer) flag(b bool) {
	var v uint32
	if b {
		v = 1
	}
	p.put(v, 1)
}

// pack writes every field in a fixed order; unpack reads them in the same.
func (s *System) pack(l layout, st *State, p *packer) {
	p.put(uint32(st.Rules), l.rules)
	p.put(uint32(st.Old), l.versions)
	for i := range s.MaxLag {
		p.put(uint32(st.Versions[i]), l.rules)
	}
	if s.DelayedRevokes {
		p.put(uint32(st.Late), l.rules)
	}
	p.put(uint32(st.Born), l.pod)
	p.put(uint32(st.Leader), l.leader)
	p.put(uint32(st.Faults), l.faults)
	p.put(uint32(st.Witness), l.witness)
	p.put(uint32(st.Age), l.age)
	for t := range s.TGBs {
		p.put(uint32(st.Registered[t]), l.pod)
		p.put(uint32(st.Pods[t]), l.pod)
		p.put(uint32(st.Checkpoint[t]+1), l.checkpoint)
	}
	for i := range s.Procs {
		m, timer := &st.Memory[i], &st.Timer[i]
		p.flag(m.Cache.Valid)
		p.put(uint32(m.Cache.Rules), l.rules)
		p.flag(m.Tracked)
		p.put(uint32(timer.Due), l.due)
		p.put(uint32(timer.Resync), l.resync)
		for t := range s.TGBs {
			p.put(uint32(m.Computed[t]), l.computed)
			p.put(uint32(timer.Queue[t]+1), l.queue)
			p.put(uint32(timer.Mark[t]), l.mark)
		}
		for j := range s.Workers {
			w := &st.Worker[i][j]
			p.put(uint32(w.Step), 4)
			p.put(uint32(w.TGB), l.tgb)
			p.put(uint32(w.Pod), l.pod)
			p.put(uint32(w.Wanted), l.rules)
			p.put(uint32(w.View), l.rules)
			p.flag(w.Retried)
			p.flag(w.RevokeFirst)
			p.flag(w.Failed)
		}
	}
}

// Pack stores a state in as few bits as the constants allow.
func (s *System) Pack(st *State) explore.State {
	var p packer
	s.pack(s.layout, st, &p)
	return p.state
}

// unpacker takes fields off a packed state.
type unpacker struct {
	state explore.State
	at    int
}

func (u *unpacker) get(width int) uint32 {
	if width == 0 {
		return 0
	}
	word, shift := u.at>>6, u.at&63
	u.at += width
	v := u.state[word] >> shift
	if shift+width > 64 {
		v |= u.state[word+1] << (64 - shift)
	}
	return uint32(v & (1<<width - 1))
}

func (u *unpacker) flag() bool { return u.get(1) == 1 }

// Unpack is the inverse of Pack.
func (s *System) Unpack(packed explore.State) State {
	var st State
	u, l := unpacker{state: packed}, &s.layout
	st.Rules = Bits(u.get(l.rules))
	st.Old = uint8(u.get(l.versions))
	for i := range s.MaxLag {
		st.Versions[i] = Bits(u.get(l.rules))
	}
	if s.DelayedRevokes {
		st.Late = Bits(u.get(l.rules))
	}
	st.Born = uint8(u.get(l.pod))
	st.Leader = uint8(u.get(l.leader))
	st.Faults = uint8(u.get(l.faults))
	st.Witness = uint8(u.get(l.witness))
	st.Age = uint8(u.get(l.age))
	for t := range s.TGBs {
		st.Registered[t] = uint8(u.get(l.pod))
		st.Pods[t] = uint8(u.get(l.pod))
		st.Checkpoint[t] = int8(u.get(l.checkpoint)) - 1
	}
	for i := range s.Procs {
		m, timer := &st.Memory[i], &st.Timer[i]
		m.Cache.Valid = u.flag()
		m.Cache.Rules = Bits(u.get(l.rules))
		m.Tracked = u.flag()
		timer.Due = uint8(u.get(l.due))
		timer.Resync = uint8(u.get(l.resync))
		for t := range s.TGBs {
			m.Computed[t] = Computed(u.get(l.computed))
			timer.Queue[t] = int8(u.get(l.queue)) - 1
			timer.Mark[t] = uint8(u.get(l.mark))
		}
		for j := range s.Workers {
			w := &st.Worker[i][j]
			w.Step = Step(u.get(4))
			w.TGB = uint8(u.get(l.tgb))
			w.Pod = uint8(u.get(l.pod))
			w.Wanted = Bits(u.get(l.rules))
			w.View = Bits(u.get(l.rules))
			w.Retried, w.RevokeFirst, w.Failed = u.flag(), u.flag(), u.flag()
		}
	}
	return st
}
