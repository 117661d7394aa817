package model

import "linearize.example/model/explore"

// Moment is one step of a run with what it was: the event, and the states before and after it.
type Moment struct {
	Event         Event
	Before, After State
}

// Moments returns the steps of a path that the explorer found, without its initial state. Of several
// events that make the same step, the first is taken.
func (s *System) Moments(path []explore.Step) []Moment {
	var out []Moment
	for i := 1; i < len(path); i++ {
		m := Moment{Before: s.Unpack(path[i-1].State), After: s.Unpack(path[i].State)}
		found := false
		s.Next(&m.Before, func(e Event, next *State) {
			if !found && int(e.Action) == path[i].Action && *next == m.After {
				m.Event, found = e, true
			}
		})
		out = append(out, m)
	}
	return out
}

// AuthorizeOnly reports whether process p may only grant in a state: some binding's permissions have
// not been computed since its start.
func (s *System) AuthorizeOnly(st *State, p int) bool { return s.authorizeOnly(st, p) }
