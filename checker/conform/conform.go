// Package conform checks the specification in spec.tla: the file spec_gen.go holds its actions and properties as Go,
// written by cmd/tla2go, and package engine runs them. What the constants are is said when the checker is made, so that
// one binary serves every configuration in designs/.
package conform

import (
	"linearize.example/checker/conform/engine"
	"linearize.example/model/tlccfg"
)

//go:generate go run ../../cmd/tla2go -package conform -o spec_gen.go ../../spec.tla ../../designs/v3.4.0.old-reads.cfg

// Explore visits every state that the specification can reach under a configuration, breadth first, and evaluates the
// configuration's invariants. The options' invariants, constraints and deadlock are the configuration's.
func Explore(c *tlccfg.Config, o engine.Options) (*engine.Model, *engine.Result, error) {
	m, err := NewModel(c.Constants)
	if err != nil {
		return nil, nil, err
	}
	o.Invariants, o.Constraints, o.Deadlock = c.Invariants, c.Constraints, c.CheckDeadlock
	r, err := engine.Explore(m, New, o)
	return m, r, err
}
