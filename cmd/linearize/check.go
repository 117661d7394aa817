package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"linearize.example/checker"
	"linearize.example/checker/property"
	"linearize.example/checker/report"
	"linearize.example/traces"
	"linearize.example/traces/capture"
)

// formats are the report formats and how each is written.
var formats = map[string]func(w io.Writer, r *report.Report, color bool) error{
	"text": func(w io.Writer, r *report.Report, color bool) error {
		return report.WriteText(w, r, report.TextOptions{Color: color})
	},
	"json":     func(w io.Writer, r *report.Report, _ bool) error { return report.WriteJSON(w, r) },
	"html":     func(w io.Writer, r *report.Report, _ bool) error { return report.WriteHTML(w, r) },
	"markdown": func(w io.Writer, r *report.Report, _ bool) error { return report.WriteMarkdown(w, r) },
	"junit":    func(w io.Writer, r *report.Report, _ bool) error { return report.WriteJUnit(w, r) },
	"sarif":    func(w io.Writer, r *report.Report, _ bool) error { return report.WriteSARIF(w, r) },
}

func formatNames() string {
	names := make([]string, 0, len(formats))
	for name := range formats {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, "|")
}

type checkFlags struct {
	opt        checker.Options
	given      given
	format     string
	output     string
	need       string
	expansion  int64
	nonvacuous bool
	minimize   string
	redact     bool
}

func newCheckCommand() *cobra.Command {
	f := checkFlags{opt: checker.DefaultOptions()}
	cmd := &cobra.Command{
		Use:   "check [FILE|DIR|-]...",
		Short: "Verdicts on a capture, over every order of its calls",
		Long: `check reads a capture, in any mix of CloudTrail events, controller logs and histories, from files,
folders and standard input (also where no path is given and input is piped), and judges never-empty,
covered, repair-bound, tight and linearity for each security group with managed rules. Formats and
compression are detected by content.`,
		Example: `  linearize check captures/incident-2026-08-28
  linearize check --bindings tgb.json --initial rules.json cloudtrail/ controller.log
  aws cloudtrail lookup-events ... | linearize check -
  linearize check --format html -o report.html captures/incident-2026-08-28`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.format, "format", "text", "format of the report: "+formatNames())
	flags.StringVarP(&f.output, "output", "o", "", "write the report to this file instead of standard output")
	flags.DurationVar(&f.opt.RepairBound, "repair-bound", f.opt.RepairBound, "time within which missing rules have to be back")
	flags.StringArrayVar(&f.opt.Groups, "sg", nil, "judge this security group; repeatable (default: all with managed rules)")
	f.given.add(flags)
	flags.StringVar(&f.need, "need", "assumed", "what counts as needed without proof: assumed|proven")
	flags.BoolVar(&f.opt.Contract, "contract", false, "let the release's order of authorize and revoke in one reconcile decide\nwhere nothing else does")
	flags.DurationVar(&f.opt.ClockSkew, "clock-skew", f.opt.ClockSkew, "how far clocks may be apart")
	flags.DurationVar(&f.opt.Timeout, "timeout", 0, "give up after this time, with verdicts unknown (default: no limit)")
	flags.DurationVar(&f.opt.MinWindow, "min-window", 0, "do not list shorter windows; they count all the same")
	flags.DurationVar(&f.opt.Settle, "settle", f.opt.Settle, "how long after the last change a leftover rule counts against tight")
	flags.IntVar(&f.opt.Rows, "rows", f.opt.Rows, "rows of the timeline; 0 for all")
	flags.IntVar(&f.opt.Budget.Nodes, "max-states", 0, "configurations kept at once before a verdict is unknown (default 4194304)")
	flags.Int64Var(&f.expansion, "max-expansion", 0, fmt.Sprintf("refuse what grows by more than this when decompressed (default %d)", capture.DefaultMaxExpansion))
	flags.BoolVar(&f.nonvacuous, "require-nonvacuous", false, "exit with 3 where a property holds only because the capture could not have\nviolated it")
	flags.StringVar(&f.minimize, "minimize", "", "write the smallest part of the capture that still violates, as a history, to\nthis file")
	flags.BoolVar(&f.redact, "redact", false, "replace ids, addresses and names by stable pseudonyms")
	fixed(cmd, "format", strings.Split(formatNames(), "|"))
	fixed(cmd, "need", []string{"assumed", "proven"})
	return cmd
}

// fixed completes a flag from a list of values.
func fixed(cmd *cobra.Command, flag string, values []string) {
	// The error would say that the flag does not exist or is completed twice; neither depends on input.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// usage is an error in how the tool was called.
func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

func (f *checkFlags) run(cmd *cobra.Command, args []string) error {
	write, ok := formats[f.format]
	if !ok {
		return usage("--format %q is none of %s", f.format, formatNames())
	}
	if err := f.parse(); err != nil {
		return err
	}
	c, err := readCapture(cmd, args, capture.Options{Skew: f.opt.ClockSkew, MaxExpansion: f.expansion})
	if err != nil {
		return err
	}
	if err := f.known(c); err != nil {
		return err
	}
	note := newProgress(cmd.ErrOrStderr())
	f.opt.Progress = func(group string, done, of int) { note.show("judging %s (%d of %d)", group, done+1, of) }
	r := checker.Check(cmd.Context(), c, f.opt)
	switch {
	case f.minimize == "":
	case r.Verdict != report.Violated:
		fmt.Fprintln(cmd.ErrOrStderr(), "linearize: nothing is violated, so that --minimize writes nothing")
	default:
		note.show("minimizing")
		if err := f.writeMinimal(cmd.Context(), c, r); err != nil {
			return err
		}
	}
	note.clear()
	if err := cmd.Context().Err(); err != nil {
		return &exitError{exitUndecided, errors.New("interrupted; no verdict")}
	}
	if f.redact {
		r = f.redactor(c).Report(r)
	}
	if err := f.writeReport(cmd, r, write); err != nil {
		return err
	}
	return f.status(r)
}

// parse reads the flags that are more than plain values.
func (f *checkFlags) parse() error {
	if err := f.given.parse(); err != nil {
		return err
	}
	f.opt.Managed, f.opt.Since, f.opt.Until = f.given.pattern, f.given.from, f.given.to
	f.opt.Initial, f.opt.Bindings, f.opt.HasBindings = f.given.snapshots, f.given.tgbs, len(f.given.bindings) > 0
	switch f.need {
	case "assumed":
	case "proven":
		f.opt.Need = property.Proven
	default:
		return usage("--need %q is neither assumed nor proven", f.need)
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"repair-bound", f.opt.RepairBound}, {"clock-skew", f.opt.ClockSkew}, {"timeout", f.opt.Timeout}, {"min-window", f.opt.MinWindow}, {"settle", f.opt.Settle}} {
		if d.value < 0 {
			return usage("--%s %s is negative", d.flag, d.value)
		}
	}
	for _, n := range []struct {
		flag  string
		value int64
	}{{"rows", int64(f.opt.Rows)}, {"max-states", int64(f.opt.Budget.Nodes)}, {"max-expansion", f.expansion}} {
		if n.value < 0 {
			return usage("--%s %d is negative", n.flag, n.value)
		}
	}
	return nil
}

// known refuses a group to judge that neither the capture nor --initial has: of what nobody recorded there is no verdict.
func (f *checkFlags) known(c *capture.Capture) error {
	groups := map[string]bool{}
	for i := range c.History.Operations {
		groups[c.History.Operations[i].Group] = true
	}
	for _, s := range append(slices.Clone(c.Snapshots), f.opt.Initial...) {
		groups[s.Group] = true
	}
	delete(groups, "")
	for _, id := range f.opt.Groups {
		if !groups[id] {
			const most = 5
			list := slices.Sorted(maps.Keys(groups))
			others := strings.Join(list[:min(most, len(list))], ", ")
			if len(list) > most {
				others += fmt.Sprintf(" and %d more", len(list)-most)
			}
			return usage("--sg %s: nothing recorded is of this group, but of %s", id, cmp.Or(others, "no group at all"))
		}
	}
	return nil
}

// readCapture reads the paths, or standard input where there is none and something is piped in.
func readCapture(cmd *cobra.Command, args []string, opt capture.Options) (*capture.Capture, error) {
	if len(args) == 0 {
		if file, ok := cmd.InOrStdin().(*os.File); ok && term.IsTerminal(int(file.Fd())) {
			return nil, usage("no capture: name files or folders, or pipe one in (linearize %s --help)", cmd.Name())
		}
		args = []string{"-"}
	}
	note := newProgress(cmd.ErrOrStderr())
	note.show("reading")
	defer note.clear()
	type result struct {
		c   *capture.Capture
		err error
	}
	// A pipe on which nothing comes holds its reader, whatever the context says: an interruption does not wait for it.
	done := make(chan result, 1)
	go func() {
		c, err := capture.Read(cmd.Context(), args, cmd.InOrStdin(), opt)
		done <- result{c, err}
	}()
	var c *capture.Capture
	var err error
	select {
	case r := <-done:
		c, err = r.c, r.err
	case <-cmd.Context().Done():
		err = cmd.Context().Err()
	}
	switch {
	case errors.Is(err, context.Canceled):
		return nil, &exitError{exitUndecided, errors.New("interrupted; no verdict")}
	case err != nil:
		return nil, &exitError{exitUsage, err}
	}
	used := 0
	for _, in := range c.History.Inputs {
		used += in.Used + in.Duplicates + in.Irrelevant
	}
	if used == 0 && len(c.History.Operations) == 0 && len(c.History.Observations) == 0 {
		reasons := ""
		for _, in := range c.History.Inputs {
			if len(in.Rejections) > 0 {
				reasons += fmt.Sprintf("\n  %s: %s", in.Path, in.Rejections[0])
			}
		}
		return nil, usage("%s: no record that can be used; expected %s%s", strings.Join(args, ", "), capture.Expected, reasons)
	}
	return c, nil
}

// writeReport writes to --output or to standard output. A file appears whole or not at all.
func (f *checkFlags) writeReport(cmd *cobra.Command, r *report.Report, write func(io.Writer, *report.Report, bool) error) error {
	if f.output == "" || f.output == "-" {
		out := cmd.OutOrStdout()
		file, isFile := out.(*os.File)
		color := isFile && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		return write(out, r, color)
	}
	var b bytes.Buffer
	if err := write(&b, r, false); err != nil {
		return err
	}
	return writeFile(f.output, b.Bytes())
}

// writeFile replaces a file by way of a temporary one beside it. What is no file (a device, a pipe) is written to.
func writeFile(path string, content []byte) error {
	if err := replaceFile(path, content); err != nil {
		reason := err
		var inPath *os.PathError
		var inLink *os.LinkError
		switch {
		case errors.As(err, &inPath):
			reason = inPath.Err
		case errors.As(err, &inLink):
			reason = inLink.Err
		}
		return usage("cannot write %s: %w", path, reason)
	}
	return nil
}

func replaceFile(path string, content []byte) error {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		path = at
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return errors.New("it is a folder")
	case err == nil && !info.Mode().IsRegular():
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = file.Write(content)
		return errors.Join(err, file.Close())
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".linearize-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(content)
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Close())
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// status is the exit status for a report.
func (f *checkFlags) status(r *report.Report) error {
	switch r.Verdict {
	case report.Violated:
		return &exitError{status: exitViolated}
	case report.Possible, report.Unknown:
		return &exitError{status: exitUndecided}
	}
	if f.nonvacuous {
		for _, g := range r.Groups {
			for _, p := range g.Properties {
				if p.Vacuous {
					return &exitError{exitUndecided, fmt.Errorf("%s of %s holds, but vacuously: %s", p.Name, g.GroupID, p.Reason)}
				}
			}
		}
	}
	return nil
}

// redactor knows the names of the capture and of what else was given.
func (f *checkFlags) redactor(c *capture.Capture) *report.Redactor {
	return report.NewRedactor(c.History, append(slices.Clone(f.opt.Bindings), c.Bindings...))
}

// writeMinimal writes the smallest part that still violates.
func (f *checkFlags) writeMinimal(ctx context.Context, c *capture.Capture, r *report.Report) error {
	h, err := checker.Minimize(ctx, c, f.opt, r)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if f.redact {
		h = f.redactor(c).History(h)
	}
	var b bytes.Buffer
	if err := traces.WriteHistory(&b, h); err != nil {
		return err
	}
	return writeFile(f.minimize, b.Bytes())
}
