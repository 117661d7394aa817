package model

import (
	"fmt"
	"maps"
	"slices"

	"linearize.example/model/explore"
)

// properties are the invariants of spec.tla by their names there. Each reports whether it holds.
var properties = map[string]func(*System, *State) bool{
	"NeverEmpty":     (*System).NeverEmpty,
	"Covered":        (*System).Covered,
	"Reachable":      (*System).Reachable,
	"Tight":          (*System).Tight,
	"RepairedInTime": (*System).RepairedInTime,
	"TypeOK":         (*System).TypeOK,
	"Sane":           (*System).Sane,

	"ProbeLive":          (*System).probeLive,
	"ProbeSettled":       (*System).probeSettled,
	"ProbeShrunk":        (*System).probeShrunk,
	"ProbeTwoRules":      (*System).probeTwoRules,
	"ProbeOldCache":      (*System).probeOldCache,
	"ProbeOldView":       (*System).probeOldView,
	"ProbeAuthorizeOnly": (*System).probeAuthorizeOnly,
	"ProbeRevokeFirst":   (*System).probeRevokeFirst,
	"ProbeFailed":        (*System).probeFailed,
	"ProbeTwoAtOnce":     (*System).probeTwoAtOnce,
	"ProbeCleaned":       (*System).probeCleaned,
	"ProbeDrift":         (*System).probeDrift,
	"ProbeRepaired":      (*System).probeRepaired,
}

// NeverEmpty: while some binding has a live, registered target, the managed rules are not empty (in
// each cluster, those with its source).
func (s *System) NeverEmpty(st *State) bool {
	for t := range s.TGBs {
		rules := st.Rules
		if s.TwoClusters {
			rules &= s.sources[t]
		}
		if st.live(t) && rules.Empty() {
			return false
		}
	}
	return true
}

// Covered: the port of every live, registered target is inside some managed rule.
func (s *System) Covered(st *State) bool { return !s.uncovered(st) }

func (s *System) uncovered(st *State) bool {
	for t := range s.TGBs {
		if st.live(t) && !overlap(st.Rules, s.allows[t]) {
			return true
		}
	}
	return false
}

// Reachable: the same, any rule counting. It is what clients feel.
func (s *System) Reachable(st *State) bool {
	for t := range s.TGBs {
		if st.live(t) && !overlap(st.Rules|s.foreign, s.allows[t]) {
			return false
		}
	}
	return true
}

// settled: nothing is going on, no read is old, every binding has been reconciled as it is, all
// permissions are computed, and the leader's latest look at the group was true.
func (s *System) settled(st *State) bool {
	if s.running(st) || st.Old > 0 || st.Late != 0 {
		return false
	}
	for t := range s.TGBs {
		if st.Checkpoint[t] != int8(st.Pods[t]) {
			return false
		}
	}
	for p := range s.Procs {
		leads := s.TwoClusters || int(st.Leader) == p
		if leads && (s.authorizeOnly(st, p) || st.Witness&(1<<p) == 0) {
			return false
		}
	}
	return true
}

// Tight: after the last change has settled, no managed rule is left that nobody wants.
func (s *System) Tight(st *State) bool {
	return !s.settled(st) || st.Rules.Minus(s.needs[s.withPods(st)]).Empty()
}

// RepairedInTime: what violates never-empty or covered is repaired within RepairBound ticks.
func (s *System) RepairedInTime(st *State) bool { return int(st.Age) <= s.RepairBound }

// TypeOK: every variable is in its domain. A state that is not survives packing changed.
func (s *System) TypeOK(st *State) bool {
	for t := range s.TGBs {
		if int(st.Pods[t]) > s.MaxPods || int(st.Registered[t]) > s.MaxPods || int(st.Checkpoint[t]) > s.MaxPods ||
			st.Checkpoint[t] < Unset {
			return false
		}
	}
	return int(st.Old) <= s.MaxLag && int(st.Faults) <= s.MaxFaults && int(st.Age) <= s.RepairBound+1 &&
		st.Born >= 1 && int(st.Born) <= s.MaxPods && s.Unpack(s.Pack(st)) == *st
}

// Sane: what must be true of the model itself. The mutex holds, a binding is reconciled once at a time,
// and what is not in use is empty, so that equal situations are equal states.
func (s *System) Sane(st *State) bool {
	for p := range s.Procs {
		inside := 0
		var inFlight uint8
		for w := range s.Workers {
			me := &st.Worker[p][w]
			if me.Step.locked() {
				inside++
			}
			if me.Step == Idle {
				if *me != (Worker[Bits]{}) {
					return false
				}
				continue
			}
			if inFlight&(1<<me.TGB) != 0 {
				return false
			}
			inFlight |= 1 << me.TGB
		}
		if inside > 1 || !st.Memory[p].Cache.Valid && st.Memory[p].Cache.Rules != 0 {
			return false
		}
	}
	return true
}

// Model presents a System to the explorer.
type Model struct {
	*System
	names  []string
	checks []func(*System, *State) bool
}

// Judge returns the system as the explorer wants it, judged by the named invariants of spec.tla.
func (s *System) Judge(invariants []string) (*Model, error) {
	m := &Model{System: s, names: invariants}
	for _, name := range invariants {
		check, known := properties[name]
		if !known {
			return nil, fmt.Errorf("invariant %s is not known; known are %v", name, slices.Sorted(maps.Keys(properties)))
		}
		m.checks = append(m.checks, check)
	}
	return m, nil
}

// Bits is the width of a packed state.
func (m *Model) Bits() int { return m.layout.bits }

// Actions names the actions.
func (m *Model) Actions() []string { return actionNames[:] }

// Invariants names the properties.
func (m *Model) Invariants() []string { return m.names }

// Initial emits the packed initial states.
func (m *Model) Initial(emit func(explore.State)) {
	for _, st := range m.System.Initial() {
		emit(m.Pack(&st))
	}
}

// expander is a worker's own view of the model. It keeps the memory of a step from one to the next.
type expander struct {
	*Model
	from State
	x    stepper
}

// Expander returns the functions that one worker uses.
func (m *Model) Expander() explore.Expander {
	e := &expander{Model: m}
	e.x.System, e.x.from = m.System, &e.from
	return e
}

// Successors emits every step that leaves a packed state.
func (e *expander) Successors(packed explore.State, emit func(int, explore.State)) {
	e.from = e.Unpack(packed)
	e.x.out = func(event Event, next *State) { emit(int(event.Action), e.Pack(next)) }
	e.x.next()
}

// Violated returns the violated invariants as bits.
func (m *Model) Violated(packed explore.State) uint64 {
	st := m.Unpack(packed)
	var violated uint64
	for i, holds := range m.checks {
		if !holds(m.System, &st) {
			violated |= 1 << i
		}
	}
	return violated
}
