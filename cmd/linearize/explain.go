package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"linearize.example/checker/conform/explain"
	"linearize.example/model"
	"linearize.example/traces"
	"linearize.example/traces/capture"
)

// usualEnvironments are tried where none is named.
var usualEnvironments = []string{"fresh-reads", "old-reads"}

type explainFlags struct {
	designs, environments, groups []string
	expect, format                string
	skew                          time.Duration
	given                         given
	opt                           explain.Options
}

func newExplainCommand() *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain [FILE|DIR|-]...",
		Short: "Which designs can have produced a capture, with the hidden steps; which cannot, and where they fail",
		Long: `explain reads a capture as check does, and searches for each design in each environment for a
behaviour of spec.tla whose visible steps are the capture's calls, with their results, in an order
that the record allows. All other steps are inferred: describes, the cache, pods that come and go,
starts. Where there is one, the shortest is told as a story.

Exit status: 0 some design explains the capture, or the one named by --expect does; 1 none does;
3 a bound was reached before that was known; 2 bad usage or input.`,
		Example: `  linearize explain testdata/captures/incident-2026-08-28
  linearize explain --expect v3.4.0 --environment old-reads run/history.ndjson`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.designs, "design", nil, "try this design; repeatable (default: every published one)")
	flags.StringSliceVar(&f.environments, "environment", nil, "allow what this environment allows; repeatable (default: "+strings.Join(usualEnvironments, ", ")+")\n"+strings.Join(explain.EnvironmentNames(), ", "))
	flags.StringVar(&f.expect, "expect", "", "exit with 0 if this design explains the capture, with 1 if it does not")
	flags.StringVar(&f.format, "format", "text", "format of the report: text|json")
	flags.StringArrayVar(&f.groups, "sg", nil, "explain this security group; repeatable (default: all with managed rules)")
	f.given.add(flags)
	flags.DurationVar(&f.skew, "clock-skew", time.Second, "how far clocks may be apart")
	flags.IntVar(&f.opt.States, "max-states", 0, "states for one design in one environment before its verdict is unknown\n(default 1000000, and 5000 more for each operation)")
	flags.DurationVar(&f.opt.Timeout, "timeout", 0, "time for one design in one environment before its verdict is unknown\n(default: no limit)")
	fixed(cmd, "format", []string{"text", "json"})
	fixed(cmd, "design", model.DesignNames())
	fixed(cmd, "expect", model.DesignNames())
	fixed(cmd, "environment", explain.EnvironmentNames())
	return cmd
}

func (f *explainFlags) run(cmd *cobra.Command, args []string) error {
	write := map[string]func(io.Writer, *explain.Report) error{"text": explain.WriteText, "json": explain.WriteJSON}[f.format]
	if write == nil {
		return usage("--format %q is none of text|json", f.format)
	}
	if f.skew < 0 || f.opt.Timeout < 0 || f.opt.States < 0 {
		return usage("--clock-skew, --timeout and --max-states cannot be negative")
	}
	designs, envs, err := f.choose()
	if err != nil {
		return err
	}
	if err := f.given.parse(); err != nil {
		return err
	}
	c, err := readCapture(cmd, args, capture.Options{Skew: f.skew})
	if err != nil {
		return err
	}
	h, sel := f.selection(c)
	report := &explain.Report{Schema: explain.Schema, Subjects: []explain.SubjectReport{}}
	note := newProgress(cmd.ErrOrStderr())
	for _, s := range explain.Subjects(h, sel) {
		results, err := explain.Judge(cmd.Context(), s, designs, envs, f.opt, func(what string) { note.show("%s", what) })
		if err != nil {
			note.clear()
			return err
		}
		if len(f.environments) == 0 && f.expect == "" {
			more, tried, err := explain.Further(cmd.Context(), s, designs, results, f.opt, func(what string) { note.show("%s", what) })
			if err != nil {
				note.clear()
				return err
			}
			results, s.Tried = explain.Insert(results, more), tried
		}
		report.Subjects = append(report.Subjects, explain.NewSubjectReport(s, results))
	}
	note.clear()
	if errors.Is(cmd.Context().Err(), context.Canceled) {
		return &exitError{exitUndecided, errors.New("interrupted; no verdict")}
	}
	if err := write(cmd.OutOrStdout(), report); err != nil {
		return err
	}
	switch report.Conforms(f.expect) {
	case explain.Explains:
		return nil
	case explain.DoesNot:
		return &exitError{status: exitViolated}
	}
	return &exitError{status: exitUndecided}
}

// selection merges the capture, cuts it to the time asked for, and says what is known besides.
func (f *explainFlags) selection(c *capture.Capture) (*traces.History, explain.Selection) {
	g := &f.given
	sel := explain.Selection{
		Groups: f.groups, Initial: append(slices.Clone(g.snapshots), c.Snapshots...),
		Bindings: append(slices.Clone(g.tgbs), c.Bindings...), HasBindings: len(g.bindings)+len(c.Bindings) > 0,
	}
	if g.pattern != nil {
		sel.Managed = g.pattern.MatchString
	}
	h := traces.Merge(c.History, f.skew)
	h.Operations = traces.Within(traces.ResolveRuleIDs(h.Operations, sel.Initial), g.from, g.to)
	h.Observations = slices.DeleteFunc(h.Observations, func(ob traces.Observation) bool { return ob.Latest < g.from || ob.Earliest > g.to })
	return h, sel
}

// choose resolves the names of designs and environments. Designs that are proposals with a part taken away are tried only
// when they are named, and so are those that differ from another in nothing that a call shows.
func (f *explainFlags) choose() ([]model.Design, []explain.Environment, error) {
	names := f.designs
	if len(names) == 0 {
		names = []string{"v3.4.0", "v2.7.2", "invalidate-on-error", "no-cache", "write-through", "guard-view", "guard-reread",
			"read-your-writes", "confirm-before-revoke", "confirm-authorize", "all-ports", "proposed"}
		if f.expect != "" {
			names = []string{f.expect}
		}
	}
	var designs []model.Design
	expected := f.expect == ""
	for _, name := range names {
		d, err := model.DesignNamed(name)
		if err != nil {
			return nil, nil, usage("--design: %v", err)
		}
		expected = expected || name == f.expect
		designs = append(designs, d)
	}
	if !expected {
		d, err := model.DesignNamed(f.expect)
		if err != nil {
			return nil, nil, usage("--expect: %v", err)
		}
		designs = append(designs, d)
	}
	names = f.environments
	if len(names) == 0 {
		names = usualEnvironments
	}
	var envs []explain.Environment
	for _, name := range names {
		e, err := explain.EnvironmentNamed(name)
		if err != nil {
			return nil, nil, usage("--environment: %v", err)
		}
		envs = append(envs, e)
	}
	return designs, envs, nil
}
