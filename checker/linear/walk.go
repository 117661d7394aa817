package linear

import (
	"encoding/binary"
	mathbits "math/bits"
	"slices"
)

// config is where an order can be at one instant: the version of the rules, and which of the open calls have taken
// effect, by their slots.
type config struct {
	version int32
	done    uint64
}

// step leads from one config of a layer to another one.
type step struct{ from, to int32 }

// versions numbers the sets of rules that orders reach.
type versions struct {
	states []*state
	ids    map[string]int32
	key    []byte
}

// find returns the number of the version with exactly these rules, or -1 where no order has reached it so far.
func (v *versions) find(present []uint64) int32 {
	v.key = v.key[:0]
	for _, w := range present {
		v.key = binary.LittleEndian.AppendUint64(v.key, w)
	}
	if id, ok := v.ids[string(v.key)]; ok {
		return id
	}
	return -1
}

func (v *versions) number(s *state) int32 {
	if id := v.find(s.present); id >= 0 {
		return id
	}
	id := int32(len(v.states))
	v.states = append(v.states, s)
	v.ids[string(v.key)] = id
	return id
}

// walk goes through calls and returns in the order of time and keeps the layer of all configs that some order can be
// in. All rules are known in all of them.
type walk struct {
	versions *versions
	layer    []config
	spare    []config // memory for the next layer
	steps    []step   // within the layer
	slots    [64]*call
	used     uint64
	// views are the versions that the reads in their slots have seen.
	views  [64]int32
	reads  uint64
	places map[config]int32 // the indexes in layer, once it is large
	moved  []int32          // for the configs of the layer before, their index in this one, or -1
}

// reset starts from the given versions.
func (w *walk) reset(initial []int32) {
	w.layer = w.layer[:0]
	for _, v := range initial {
		w.layer = append(w.layer, config{version: v})
	}
}

// opened adds a call. It is false when more than 64 calls are open.
func (w *walk) opened(c *call) bool {
	slot := mathbits.TrailingZeros64(^w.used)
	if slot == 64 {
		return false
	}
	w.used |= 1 << slot
	w.slots[slot] = c
	c.item = slot
	from := w.layer
	w.moved = w.moved[:0]
	w.begin()
	if c.result == shows {
		w.reads |= 1 << slot
		w.views[slot] = w.versions.find(c.view)
	}
	for _, k := range from {
		w.moved = append(w.moved, w.add(k))
	}
	w.close()
	return true
}

// returned keeps the configs in which the call has taken effect.
func (w *walk) returned(c *call) {
	slot := c.item
	bit := uint64(1) << slot
	w.used &^= bit
	w.reads &^= bit
	w.slots[slot] = nil
	from := w.layer
	w.moved = w.moved[:0]
	w.begin()
	for _, k := range from {
		if k.done&bit == 0 {
			w.moved = append(w.moved, -1)
			continue
		}
		k.done &^= bit
		w.moved = append(w.moved, w.add(k))
	}
	w.close()
}

// begin starts a new layer.
func (w *walk) begin() {
	w.layer, w.spare = w.spare[:0], w.layer
	w.steps = w.steps[:0]
	clear(w.places)
}

// add puts a config into the layer, unless it is there, and returns its index. A read takes effect as soon as it
// can: it changes nothing, so an order in which it waits can do no more.
func (w *walk) add(k config) int32 {
	for left := w.reads &^ k.done; left != 0; left &= left - 1 {
		if slot := mathbits.TrailingZeros64(left); w.views[slot] == k.version {
			k.done |= 1 << slot
		}
	}
	const few = 16
	if len(w.layer) <= few {
		if i := slices.Index(w.layer, k); i >= 0 {
			return int32(i)
		}
	} else {
		if w.places == nil {
			w.places = map[config]int32{}
		}
		if len(w.places) == 0 {
			for i, k := range w.layer {
				w.places[k] = int32(i)
			}
		}
		if i, ok := w.places[k]; ok {
			return i
		}
		w.places[k] = int32(len(w.layer))
	}
	w.layer = append(w.layer, k)
	return int32(len(w.layer) - 1)
}

// close adds what open calls can lead to.
func (w *walk) close() {
	for i := 0; i < len(w.layer); i++ {
		k := w.layer[i]
		for left := w.used &^ w.reads &^ k.done; left != 0; left &= left - 1 {
			slot := mathbits.TrailingZeros64(left)
			c := w.slots[slot]
			if a := c.after; a != nil && w.slots[a.item] == a && k.done&(1<<a.item) == 0 {
				continue
			}
			for _, s := range w.effects(c, w.versions.states[k.version]) {
				if s == nil {
					continue
				}
				next := config{k.version, k.done | 1<<slot}
				if s != w.versions.states[k.version] {
					next.version = w.versions.number(s)
				}
				w.steps = append(w.steps, step{int32(i), w.add(next)})
			}
		}
	}
}

// effects gives what the call can lead to, as up to two states; nil is none.
func (w *walk) effects(c *call, s *state) [2]*state {
	switch {
	case c.result == refused:
		if slices.ContainsFunc(c.some, func(r int32) bool { return s.present.has(r) == c.somePresent }) {
			return [2]*state{s}
		}
		return [2]*state{}
	case c.result == maybe && !c.unanswered():
		return [2]*state{c.effect(s), s}
	}
	return [2]*state{c.effect(s)}
}
