package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"linearize.example/checker/evidence"
	"linearize.example/model"
	"linearize.example/model/explore"
	"linearize.example/model/tlccfg"
)

type exploreFlags struct {
	config     string
	constants  model.Constants
	oldReads   int
	crash      bool
	failures   int
	lost       int
	delayed    int
	external   int
	leader     bool
	clusters   bool
	ruleLimit  int
	through    string
	properties []string
	bounds     explore.Options
	format     string
}

func newExploreCommand() *cobra.Command {
	f := exploreFlags{constants: model.DefaultConstants(model.Design{})}
	cmd := &cobra.Command{
		Use:   "explore DESIGN | --config FILE",
		Short: "Explore a design exhaustively, and print the shortest counterexample",
		Long: `explore visits every state that a design of the controller can reach in an environment, and judges
each. If a property is violated, it tells the shortest run that violates it, step by step.

Designs: ` + wrapNames(model.DesignNames(), 90, "  ") + `

Exit status: 0 every property holds in every state; 1 one is violated; 3 a bound ended the
exploration before anything was violated; 2 bad usage or input.`,
		Example: `  linearize explore v3.4.0 --old-reads 1
  linearize explore v3.4.0 --old-reads 1 --through incident
  linearize explore confirm-authorize --old-reads 1 --crash --workers 2
  linearize explore --config designs/v3.4.0.old-reads.cfg`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", "", "take the design, the environment and the properties from a TLC\nconfiguration")
	flags.IntVar(&f.oldReads, "old-reads", 0, "a describe may be old by up to N changes")
	flags.BoolVar(&f.crash, "crash", false, "the process may die once, at any step")
	flags.IntVar(&f.failures, "failures", 0, "up to N calls fail without effect")
	flags.IntVar(&f.lost, "lost-answers", 0, "up to N changes take effect and lose their answer")
	flags.IntVar(&f.delayed, "delayed-revokes", 0, "up to N revokes lose their answer and take effect later, or never")
	flags.IntVar(&f.external, "external-revokes", 0, "somebody else removes a rule up to N times")
	flags.BoolVar(&f.leader, "leader-change", false, "a second process may take over, while the first finishes what it\nhad begun")
	flags.BoolVar(&f.clusters, "two-clusters", false, "a second cluster's controller writes to the same group")
	flags.IntVar(&f.constants.Workers, "workers", 1, "reconciles in flight in one process")
	flags.IntVar(&f.constants.TGBs, "bindings", 2, "target group bindings")
	flags.IntVar(&f.constants.MaxPods, "pods", 0, "pods get the identities 1 to N, so that N-1 new ones may come\n(default 3, and 2 with faults)")
	flags.IntVar(&f.ruleLimit, "rule-limit", 99, "rules that the group can hold")
	flags.BoolVar(&f.constants.Denied, "denied", false, "every authorize is denied")
	flags.BoolVar(&f.constants.DefaultVPC, "default-vpc", false, "a revoke of absent rules succeeds")
	flags.BoolVar(&f.constants.SeveralGroups, "several-groups", false, "interfaces have several groups: a describe outside the mutex")
	flags.BoolVar(&f.constants.LagOutlivesCache, "slow-reads", false, "reads may still be old when a cache entry has expired")
	flags.StringSliceVar(&f.properties, "properties", []string{"NeverEmpty", "Covered", "Tight"}, "what to judge, by the names in spec.tla")
	flags.StringVar(&f.through, "through", "", "only runs that make exactly these calls, as in\n\""+model.Incident+"\";\n\"incident\" stands for that one")
	flags.IntVar(&f.bounds.Workers, "threads", 0, "goroutines that explore (default: one a core)")
	flags.IntVar(&f.bounds.MaxStates, "max-states", 0, "stop after this number of states (default: no bound)")
	flags.IntVar(&f.bounds.MaxDepth, "max-depth", 0, "stop at this number of steps from the start (default: no bound)")
	flags.DurationVar(&f.bounds.MaxTime, "timeout", 0, "stop after this time (default: no bound)")
	flags.StringVar(&f.format, "format", "text", "text or json")
	return cmd
}

func wrapNames(names []string, width int, indent string) string {
	line, out := indent, "\n"
	for i, name := range names {
		if i < len(names)-1 {
			name += ", "
		}
		if len(line)+len(name) > width {
			out += strings.TrimRight(line, " ") + "\n"
			line = indent
		}
		line += name
	}
	return out + line
}

func (f *exploreFlags) run(cmd *cobra.Command, args []string) error {
	if f.format != "text" && f.format != "json" {
		return usage("--format %s: it must be text or json", f.format)
	}
	constants, properties, err := f.model(args)
	if err != nil {
		return err
	}
	e, err := evidence.NewExploration(constants, properties, f.through)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	bounds := f.bounds
	bounds.StopAtViolation = true
	if bounds.MaxDepth > 0 {
		bounds.MaxDepth++ // the explorer counts states, people count steps
	}
	p, last := newProgress(cmd.ErrOrStderr()), time.Time{}
	bounds.Progress = func(now explore.Progress) {
		if time.Since(last) > time.Second/2 {
			last = time.Now()
			p.show("%d states, %d of them to be expanded, depth %d, %s", now.States, now.Queued, now.Depth, now.Elapsed.Round(time.Second))
		}
	}
	outcome, err := e.Run(cmd.Context(), bounds)
	p.clear()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if err := write(cmd.OutOrStdout(), outcome, f.format); err != nil {
		return err
	}
	switch {
	case outcome.Violated != "":
		return &exitError{status: exitViolated}
	case outcome.Reason != explore.Complete:
		return &exitError{status: exitUndecided}
	}
	return nil
}

// model returns the constants and the properties that the flags ask for.
func (f *exploreFlags) model(args []string) (model.Constants, []string, error) {
	if f.config != "" {
		if len(args) > 0 {
			return model.Constants{}, nil, usage("a design and --config; give one of them")
		}
		return readConfig(f.config)
	}
	if len(args) == 0 {
		return model.Constants{}, nil, usage("which design? There are %s", strings.Join(model.DesignNames(), ", "))
	}
	d, err := model.DesignNamed(args[0])
	if err != nil {
		return model.Constants{}, nil, &exitError{exitUsage, err}
	}
	c := f.constants
	c.Design, c.MaxLag, c.RuleLimit = d, f.oldReads, f.ruleLimit
	c.Crashes, c.Failures, c.LostAnswers = f.crash, f.failures > 0, f.lost > 0
	c.DelayedRevokes, c.ExternalRevokes = f.delayed > 0, f.external > 0
	c.LeaderChanges, c.TwoClusters = f.leader, f.clusters
	if f.leader || f.clusters {
		c.Procs = 2
	}
	c.MaxFaults = f.failures + f.lost + f.delayed + f.external
	for _, once := range []bool{f.crash, f.leader} {
		if once {
			c.MaxFaults++
		}
	}
	if c.MaxPods == 0 {
		c.MaxPods = 3
		if c.MaxFaults > 0 {
			c.MaxPods = 2
		}
	}
	return c, f.properties, nil
}

// readConfig reads a TLC configuration.
func readConfig(path string) (model.Constants, []string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return model.Constants{}, nil, &exitError{exitUsage, err}
	}
	c, err := tlccfg.Parse(path, text)
	if err != nil {
		return model.Constants{}, nil, &exitError{exitUsage, err}
	}
	constants, err := model.ConstantsOf(c)
	if err != nil {
		return model.Constants{}, nil, &exitError{exitUsage, fmt.Errorf("%s: %w", path, err)}
	}
	return constants, append(c.Invariants, c.Properties...), nil
}

func write(w io.Writer, o evidence.Outcome, format string) error {
	if format == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(o)
	}
	_, err := io.WriteString(w, o.Text())
	return err
}
