package model

import (
	"slices"

	"linearize.example/model/explore"
)

// eventual are the temporal properties of spec.tla, each of the form []<>P: P is true again and again.
var eventual = map[string]func(*System, *State) bool{
	"EventuallyRepaired": func(s *System, st *State) bool { return s.NeverEmpty(st) && s.Covered(st) },
	"EventuallyTight": func(s *System, st *State) bool {
		return st.Rules.Minus(s.needs[s.withPods(st)]).Empty()
	},
}

// Eventual reports whether a name is that of a temporal property that can be judged.
func Eventual(name string) bool {
	_, known := eventual[name]
	return known
}

// fairness classes: the steps for which FairSpec demands weak or strong fairness, as bits of a mask.
type fairness struct {
	*System
	strong uint64
}

// class returns the class of a step as a bit; 0 for a step that need not happen.
func (f *fairness) class(e Event) uint64 {
	const perPair = maxProcs * maxTGBs
	pair := int(e.P)*maxTGBs + int(e.T)
	worker := 3*perPair + int(e.P)*maxWorkers + int(e.W)
	rest := 3*perPair + maxProcs*maxWorkers
	switch e.Action {
	case Pick:
		return 1 << pair
	case Skip:
		return 1 << (perPair + pair)
	case FireDeferred:
		return 1 << (2*perPair + pair)
	case SaveLookUp, Lock, ReadCache, AuthorizeOk, AuthorizeDuplicate, AuthorizeLimit, AuthorizeDenied, RevokeOk,
		RevokeNotFound, Unlock, Register, LookUpGroup, Describe, Reload, ListTagged, SeeGrant, Reread, SeeRevoke:
		return 1 << worker
	case ExpireCache:
		return 1 << (rest + int(e.P))
	case Settle:
		return 1 << (rest + maxProcs)
	case DelayedRevokeArrives:
		return 1 << (rest + maxProcs + 1)
	}
	return 0
}

// liveGraph is the part of a state graph where a property is false.
type liveGraph struct {
	enabled []uint64  // by state: the classes with a step that changes something
	edges   [][]int32 // successors inside the part
	classes [][]uint64
	strong  uint64
}

// EventuallyViolated looks for a fair run of an explored system that keeps a temporal property false for
// ever. It returns the shortest path to a state from which such a run need not leave the states where
// the property is false, or nil when there is none. The exploration must be complete, and the property
// one that Eventual knows.
//
// A run that does so ends in a set of states, connected in both directions, where the property is
// false. It is fair if it takes a step of every class that is always enabled there (weak fairness), and
// of every strongly fair class that is ever enabled there. Standing still is allowed, as TLA+ has it.
func (s *System) EventuallyViolated(r *explore.Result, property string) []explore.Step {
	holds := eventual[property]
	f := &fairness{System: s, strong: 1<<(2*maxProcs*maxTGBs) - 1}
	g := liveGraph{strong: f.strong}
	number := map[explore.State]int32{}
	var states []State
	r.Each(func(packed explore.State) bool {
		st := s.Unpack(packed)
		if !holds(s, &st) {
			number[packed] = int32(len(states))
			states = append(states, st)
		}
		return true
	})
	g.enabled = make([]uint64, len(states))
	g.edges = make([][]int32, len(states))
	g.classes = make([][]uint64, len(states))
	for i := range states {
		s.Next(&states[i], func(e Event, next *State) {
			if *next == states[i] {
				return
			}
			class := f.class(e)
			g.enabled[i] |= class
			if to, inside := number[s.Pack(next)]; inside {
				g.edges[i] = append(g.edges[i], to)
				g.classes[i] = append(g.classes[i], class)
			}
		})
	}
	all := make([]int32, len(states))
	for i := range all {
		all[i] = int32(i)
	}
	stays := g.fairWithin(all)
	if stays == nil {
		return nil
	}
	first := s.Pack(&states[slices.Min(stays)])
	return r.Find(func(packed explore.State) bool { return packed == first })
}

// fairWithin returns some of the given states inside which a fair run can stay for ever, or nil.
func (g *liveGraph) fairWithin(states []int32) []int32 {
	for _, component := range g.components(states) {
		member := map[int32]bool{}
		for _, v := range component {
			member[v] = true
		}
		always, ever, taken := ^uint64(0), uint64(0), uint64(0)
		for _, v := range component {
			always &= g.enabled[v]
			ever |= g.enabled[v]
			for i, to := range g.edges[v] {
				if member[to] {
					taken |= g.classes[v][i]
				}
			}
		}
		if always&^taken != 0 {
			continue // a class that is always enabled is never taken, here or in any part
		}
		starved := ever & g.strong &^ taken
		if starved == 0 {
			return component
		}
		// A fair run avoids the states that enable a starved class.
		var rest []int32
		for _, v := range component {
			if g.enabled[v]&starved == 0 {
				rest = append(rest, v)
			}
		}
		if stays := g.fairWithin(rest); stays != nil {
			return stays
		}
	}
	return nil
}

// components returns the strongly connected components of the graph on the given states (Tarjan's
// algorithm, with an explicit stack).
func (g *liveGraph) components(states []int32) [][]int32 {
	const unseen = 0
	inside := map[int32]bool{}
	for _, v := range states {
		inside[v] = true
	}
	index, low := map[int32]int{}, map[int32]int{}
	onStack := map[int32]bool{}
	var stack []int32
	var out [][]int32
	type frame struct {
		v    int32
		edge int
	}
	counter := 0
	for _, root := range states {
		if index[root] != unseen {
			continue
		}
		work := []frame{{v: root}}
		for len(work) > 0 {
			top := &work[len(work)-1]
			v := top.v
			if top.edge == 0 {
				counter++
				index[v], low[v] = counter, counter
				stack = append(stack, v)
				onStack[v] = true
			}
			descended := false
			for top.edge < len(g.edges[v]) {
				to := g.edges[v][top.edge]
				top.edge++
				if !inside[to] {
					continue
				}
				if index[to] == unseen {
					work = append(work, frame{v: to})
					descended = true
					break
				}
				if onStack[to] {
					low[v] = min(low[v], index[to])
				}
			}
			if descended {
				continue
			}
			work = work[:len(work)-1]
			if len(work) > 0 {
				parent := work[len(work)-1].v
				low[parent] = min(low[parent], low[v])
			}
			if low[v] == index[v] {
				at := len(stack) - 1
				for stack[at] != v {
					at--
				}
				component := append([]int32(nil), stack[at:]...)
				stack = stack[:at]
				for _, u := range component {
					onStack[u] = false
				}
				out = append(out, component)
			}
		}
	}
	return out
}
