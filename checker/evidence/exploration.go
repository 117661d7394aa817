package evidence

import (
	"context"
	"fmt"
	"strings"

	"linearize.example/model"
	"linearize.example/model/explore"
)

// Exploration is a design in an environment with the properties to be judged.
type Exploration struct {
	system     *model.System
	invariants []string
	eventual   []string // temporal properties
	explored   explore.Model
	through    string
}

// Outcome is what an exploration found.
type Outcome struct {
	Schema     string         `json:"schema"`
	Design     string         `json:"design"`
	Verdict    string         `json:"verdict"` // holds, violated, or unknown when a bound was reached
	Properties []string       `json:"properties"`
	Violated   string         `json:"violated,omitempty"`
	Steps      int            `json:"steps,omitempty"` // of the shortest counterexample
	States     int            `json:"states"`
	Generated  uint64         `json:"transitions"`
	Depth      int            `json:"depth"`
	Covered    string         `json:"covered"` // why the exploration ended
	Story      *Story         `json:"counterexample,omitempty"`
	Reason     explore.Reason `json:"-"`
}

// NewExploration prepares one. Properties are named as in spec.tla; through restricts the runs to those
// that make exactly the calls that it lists, "incident" standing for model.Incident; empty, it
// restricts nothing.
func NewExploration(c model.Constants, properties []string, through string) (*Exploration, error) {
	s, err := model.NewSystem(c)
	if err != nil {
		return nil, err
	}
	e := &Exploration{system: s, through: through}
	for _, p := range properties {
		if model.Eventual(p) {
			e.eventual = append(e.eventual, p)
		} else {
			e.invariants = append(e.invariants, p)
		}
	}
	m, err := s.Judge(e.invariants)
	if err != nil {
		return nil, err
	}
	e.explored = m
	if through == "" {
		return e, nil
	}
	if through == "incident" {
		through = model.Incident
	}
	calls, err := s.ParseCalls(through)
	if err != nil {
		return nil, err
	}
	e.explored, err = m.Through(calls)
	return e, err
}

// Run explores within the bounds.
func (e *Exploration) Run(ctx context.Context, bounds explore.Options) (Outcome, error) {
	r, err := explore.Run(ctx, e.explored, bounds)
	if err != nil {
		return Outcome{}, err
	}
	o := Outcome{
		Schema: "linearize.exploration/v1", Design: e.system.Design.Name, Verdict: "holds",
		States: r.States, Generated: r.Generated, Depth: r.Depth - 1, Covered: r.Reason.String(), Reason: r.Reason,
	}
	for _, p := range append(e.invariants, e.eventual...) {
		o.Properties = append(o.Properties, model.PublicName(p))
	}
	if len(r.Violations) > 0 {
		v := r.Violations[0]
		path := r.Trace(v)
		story := Tell(e.system, path)
		o.Verdict, o.Violated = "violated", model.PublicName(e.invariants[v.Invariant])
		o.Steps, o.Story = len(path)-1, &story
		return o, nil
	}
	if r.Reason != explore.Complete {
		o.Verdict = "unknown"
		return o, nil
	}
	for _, p := range e.eventual {
		if e.through != "" {
			break // the runs that end with the calls stay where they are
		}
		if path := e.system.EventuallyViolated(r, p); path != nil {
			story := Tell(e.system, path)
			o.Verdict, o.Violated, o.Steps, o.Story = "violated", model.PublicName(p), len(path)-1, &story
			return o, nil
		}
	}
	return o, nil
}

// meanings say in a sentence what a violated property means.
var meanings = map[string]string{
	"never-empty":         "no managed rule is left while a binding has a live, registered target",
	"covered":             "the port of a live, registered target is inside no managed rule",
	"reachable":           "the port of a live, registered target is inside no rule at all",
	"tight":               "everything has settled, and a managed rule is left that nobody wants",
	"repair-bound":        "the rules were not repaired within the bound",
	"eventually-repaired": "from here on, a fair run can leave the rules broken for ever",
	"eventually-tight":    "from here on, a fair run can leave a rule for ever that nobody wants",
}

// Text tells the outcome to people.
func (o Outcome) Text() string {
	var b strings.Builder
	judged := strings.Join(o.Properties, ", ")
	switch o.Verdict {
	case "violated":
		fmt.Fprintf(&b, "%s: %s is violated:\n%s.\n", o.Design, o.Violated, meanings[o.Violated])
		if o.Story != nil {
			what := "The shortest counterexample"
			if strings.HasPrefix(o.Violated, "eventually-") {
				what = "The way there"
			}
			fmt.Fprintf(&b, "%s has %d steps:\n\n%s\n", what, o.Steps, o.Story.Text())
		}
	case "holds":
		fmt.Fprintf(&b, "%s: holds in every state: %s.\n", o.Design, judged)
	default:
		fmt.Fprintf(&b, "%s: no violation found so far, and not everything was explored: %s.\n", o.Design, judged)
	}
	fmt.Fprintf(&b, "%d states, %d transitions, up to %d steps from the start; %s.\n", o.States, o.Generated, o.Depth, o.Covered)
	return b.String()
}
