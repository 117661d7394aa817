// Package property judges never-empty, covered, tight and repair-bound over every order that a capture allows.
//
// It turns the operations on one group into a problem of package orders, whose states are sets of facts (which rules are
// there, which ports are needed), and judges the graph that comes back: a property is violated when every path, that is
// every explanation of the capture, passes through a state that violates it, possible when some do, and holds when none
// does.
package property

import "errors"

// The properties, each with the wording that is public (the issue of the incident, "Expected Behavior").
var (
	ErrNeverEmpty  = errors.New("never-empty: a reconcile must never leave the managed permission set empty while targets are registered")
	ErrCovered     = errors.New("covered: the port of every live, registered target is inside some rule")
	ErrRepairBound = errors.New("repair-bound: drift is repaired within the bound, restarts included")
	ErrTight       = errors.New("tight: after the last change has settled, no managed rule is left that nobody wants")
)

// The names of the properties, as reports print them.
const (
	NeverEmpty  = "never-empty"
	Covered     = "covered"
	RepairBound = "repair-bound"
	Tight       = "tight"
)
