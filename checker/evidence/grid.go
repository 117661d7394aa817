package evidence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"linearize.example/model"
	"linearize.example/model/explore"
	"linearize.example/model/tlccfg"
)

// Configuration is a TLC configuration: its file's name and its text.
type Configuration struct {
	Name string
	Text []byte
}

// Cell is a design in an environment, explored.
type Cell struct {
	Design      string     `json:"design"`
	Environment string     `json:"environment"`
	States      int        `json:"states"`
	Transitions uint64     `json:"transitions"`
	Depth       int        `json:"depth"`    // steps to the farthest state
	Complete    bool       `json:"complete"` // every state was explored
	Judged      []Judgment `json:"properties"`

	counterexamples map[string]Story // by property
}

// Judgment is one property's verdict in a cell.
type Judgment struct {
	Property string `json:"property"`
	Verdict  string `json:"verdict"`         // holds, violated, or unknown: not all was explored
	Steps    int    `json:"steps,omitempty"` // of the shortest counterexample
	Story    string `json:"story,omitempty"` // the counterexample's file, without its ending
}

// Judgment returns the judgment of a property, and whether the cell has one.
func (c Cell) judgment(property string) (Judgment, bool) {
	i := slices.IndexFunc(c.Judged, func(j Judgment) bool { return j.Property == property })
	if i < 0 {
		return Judgment{}, false
	}
	return c.Judged[i], true
}

// environment is what the configurations of one environment have in common.
type environment struct {
	name       string
	constants  model.Constants // of some design
	properties []string
	designs    []string // those that a configuration names
}

// core are the environments in which every design is explored. In the others, only the designs that
// have a configuration are.
var core = []string{
	"fresh-reads", "old-reads", "two-workers-old-reads", "several-groups", "default-vpc", "crash", "failures",
	"lost-answers", "delayed-revokes", "denied", "limit", "leader-change", "two-clusters",
}

// rank orders environments: the core first, in its order, then the others by name.
func rank(name string) int {
	if i := slices.Index(core, name); i >= 0 {
		return i
	}
	return len(core)
}

// environments reads the environments off the configurations. Two configurations of one environment
// must agree on everything but the design; probes are left out.
func environments(configurations []Configuration) ([]environment, error) {
	byName := map[string]*environment{}
	var failed []error
	for _, file := range configurations {
		c, err := tlccfg.Parse(file.Name, file.Text)
		if err != nil {
			return nil, err
		}
		if c.Probe != "" {
			continue
		}
		constants, err := model.ConstantsOf(c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name, err)
		}
		var judged []string
		for _, p := range append(slices.Clone(c.Invariants), c.Properties...) {
			if p != "TypeOK" && p != "Sane" {
				judged = append(judged, p)
			}
		}
		design := c.Design
		constants.Design = model.Design{}
		e, known := byName[c.Environment]
		switch {
		case !known:
			byName[c.Environment] = &environment{c.Environment, constants, judged, []string{design}}
		case e.constants != constants || !slices.Equal(e.properties, judged):
			failed = append(failed, fmt.Errorf("%s: differs from another configuration of environment %s in more than the design; "+
				"give one of them another environment", file.Name, c.Environment))
		default:
			e.designs = append(e.designs, design)
		}
	}
	out := make([]environment, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, *byName[name])
	}
	slices.SortStableFunc(out, func(a, b environment) int { return cmp.Compare(rank(a.name), rank(b.name)) })
	return out, errors.Join(failed...)
}

// Options say what Build explores.
type Options struct {
	// Wanted selects cells; nil selects all.
	Wanted func(design, environment string) bool
	// MaxStates bounds each exploration; 0 means no bound.
	MaxStates int
	// Progress, if set, is told each cell before it is explored.
	Progress func(design, environment string)
}

// Evidence is everything that was found.
type Evidence struct {
	Cells        []Cell
	Costs        []Cost
	environments []environment
}

// Build explores every design in every core environment, and in the others those that have a
// configuration; and measures what each design costs. Equal inputs give equal evidence.
func Build(ctx context.Context, configurations []Configuration, o Options) (*Evidence, error) {
	envs, err := environments(configurations)
	if err != nil {
		return nil, err
	}
	e := &Evidence{environments: envs}
	repair := map[bool][]RepairTime{}
	for _, name := range model.DesignNames() {
		design, err := model.DesignNamed(name)
		if err != nil {
			return nil, err
		}
		for _, env := range envs {
			inCore := rank(env.name) < len(core) && !isVariant(name)
			if !inCore && !slices.Contains(env.designs, name) || o.Wanted != nil && !o.Wanted(name, env.name) {
				continue
			}
			if o.Progress != nil {
				o.Progress(name, env.name)
			}
			constants := env.constants
			constants.Design = design
			cell, err := exploreCell(ctx, constants, env, o.MaxStates)
			if err != nil {
				return nil, err
			}
			e.Cells = append(e.Cells, cell)
		}
		explored := len(e.Cells) > 0 && e.Cells[len(e.Cells)-1].Design == name
		if explored && !isVariant(name) {
			verifies := design.CheckpointVerifiesAWS
			if repair[verifies] == nil {
				repair[verifies] = repairTimes(verifies, seed, simulatedRuns)
			}
			cost, err := measure(design, repair[verifies])
			if err != nil {
				return nil, err
			}
			e.Costs = append(e.Costs, cost)
		}
	}
	return e, nil
}

// isVariant reports whether a design exists only to show that a part of the proposed one is needed.
func isVariant(design string) bool {
	const variant = "proposed-"
	return len(design) > len(variant) && design[:len(variant)] == variant
}

func exploreCell(ctx context.Context, c model.Constants, env environment, maxStates int) (Cell, error) {
	x, err := NewExploration(c, env.properties, "")
	if err != nil {
		return Cell{}, fmt.Errorf("%s, %s: %w", c.Design.Name, env.name, err)
	}
	r, err := explore.Run(ctx, x.explored, explore.Options{MaxStates: maxStates})
	if err != nil {
		return Cell{}, err
	}
	if r.Reason == explore.Interrupted {
		return Cell{}, fmt.Errorf("interrupted in %s, %s", c.Design.Name, env.name)
	}
	cell := Cell{
		Design: c.Design.Name, Environment: env.name, States: r.States, Transitions: r.Generated, Depth: r.Depth - 1,
		Complete: r.Reason == explore.Complete, counterexamples: map[string]Story{},
	}
	for i, p := range x.invariants {
		j := Judgment{Property: model.PublicName(p), Verdict: "holds"}
		if v, violated := r.Violation(i); violated {
			j.Verdict, j.Steps = "violated", v.Depth-1
			cell.counterexamples[j.Property] = Tell(x.system, r.Trace(v))
		} else if !cell.Complete {
			j.Verdict = "unknown"
		}
		cell.Judged = append(cell.Judged, j)
	}
	for _, p := range x.eventual {
		j := Judgment{Property: model.PublicName(p), Verdict: "holds"}
		if !cell.Complete {
			j.Verdict = "unknown"
		} else if path := x.system.EventuallyViolated(r, p); path != nil {
			j.Verdict, j.Steps = "violated", len(path)-1
			cell.counterexamples[j.Property] = Tell(x.system, path)
		}
		cell.Judged = append(cell.Judged, j)
	}
	return cell, nil
}

// cell returns the cell of a design in an environment, and whether it was explored.
func (e *Evidence) cell(design, environment string) (Cell, bool) {
	i := slices.IndexFunc(e.Cells, func(c Cell) bool { return c.Design == design && c.Environment == environment })
	if i < 0 {
		return Cell{}, false
	}
	return e.Cells[i], true
}
