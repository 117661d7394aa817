package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"linearize.example/checker"
	"linearize.example/checker/report"
	"linearize.example/checker/simulate"
	"linearize.example/model"
	"linearize.example/traces/awsapi"
)

type simulateFlags struct {
	plan        simulate.Plan
	seeds       int
	workers     int
	syncPeriod  time.Duration
	readLag     string
	faults      string
	script      string
	writeScript string
	writeWorld  string
	bound       time.Duration
	output      string
	format      string
	plot        string
	save        string
	endpoint    string
	speed       float64
}

// Bounds of what makes sense: beyond them memory or patience would end first.
const (
	mostSeeds   = 1000000
	mostWorkers = 1000
	mostSpeed   = 1000000
	leastSync   = time.Second
)

func newSimulateCommand() *cobra.Command {
	f := simulateFlags{}
	churn := string(simulate.Boundary)
	cmd := &cobra.Command{
		Use:   "simulate DESIGN...",
		Short: "The reference implementation, live, through the AWS SDK, against a recording endpoint",
		Long: `simulate runs the controller of a design: workers, work queue, timers, leaders, while pods come and
go by a script that is made from a seed. All calls go through the AWS SDK's clients to an endpoint
that records. Time is simulated: a run takes milliseconds, and is the same whenever it is repeated.
With --endpoint it runs in real time against "linearize record", perhaps --speed times faster.

With one design and one seed it prints the verdicts on the recorded history, which -o keeps. With
--seeds N or several designs it is a sweep: how often each design violates each property, and how
long repair took. See docs/simulate.md.

Exit status: 0 all hold; 1 something is violated; 3 nothing is violated, but something is possible
or unknown; 2 bad usage or input.`,
		Example: `  linearize simulate v3.4.0 --read-lag 1.5s --churn boundary --seed 1 -o run.ndjson
  linearize simulate v3.4.0 confirm-authorize --read-lag 1.5s --seeds 100 --plot sweep.svg`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.plan.Churn = simulate.Churn(churn)
			return f.run(cmd, args)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return model.DesignNames(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&churn, "churn", churn, "how pods come and go: "+strings.Join(simulate.Churns(), "|"))
	flags.Uint64Var(&f.plan.Seed, "seed", 1, "what decides everything that is drawn at random; the first one of a sweep")
	flags.IntVar(&f.seeds, "seeds", 1, "run with so many seeds")
	flags.DurationVar(&f.plan.Duration, "duration", time.Hour, "how long the run is, in its own time")
	flags.IntVar(&f.plan.Bindings, "bindings", 8, "TargetGroupBindings that share the group")
	flags.IntVar(&f.plan.ExternalRevokes, "external-revokes", 0, "so often somebody else removes the rules")
	flags.IntVar(&f.plan.Crashes, "crashes", 0, "so often the controller dies")
	flags.IntVar(&f.plan.Restarts, "restarts", 0, "so often the controller is replaced in order")
	flags.IntVar(&f.plan.LeaderChanges, "leader-changes", 0, "so often another process leads while the old one is at work")
	flags.IntVar(&f.workers, "workers", simulate.DefaultWorkers, "reconciles that a process does at a time")
	flags.DurationVar(&f.syncPeriod, "sync-period", model.SyncPeriod, "the controller's resync")
	flags.StringVar(&f.readLag, "read-lag", "", "how long describes may not show a change: 1.5s, uniform:0s-2s,\nexponential:500ms; by the kind of change: revoke=1.5s,authorize=0s")
	flags.StringVar(&f.faults, "faults", "", "other faults of the endpoint (JSON or YAML, see docs/record.md)")
	flags.StringVar(&f.script, "script", "", "run this script (JSON, see docs/simulate.md) instead of one made by --churn")
	flags.StringVar(&f.writeScript, "write-script", "", "write the script to this file and run nothing")
	flags.StringVar(&f.writeWorld, "write-world", "", "write the world of the script, for linearize record --simulate, to this\nfile and run nothing")
	flags.DurationVar(&f.bound, "repair-bound", checker.DefaultOptions().RepairBound, "time within which missing rules have to be back")
	flags.StringVarP(&f.output, "output", "o", "", "of one run: write its history to this file; of a sweep: the report")
	flags.StringVar(&f.format, "format", "text", "of a sweep: text|json|markdown; of one run: those of check")
	flags.StringVar(&f.plot, "plot", "", "of a sweep: draw it into this file, as SVG")
	flags.StringVar(&f.save, "save", "", "shrink every violation, and save its script and history into this folder")
	flags.StringVar(&f.endpoint, "endpoint", "", "run in real time against this endpoint, such as http://127.0.0.1:4566")
	flags.Float64Var(&f.speed, "speed", 1, "with --endpoint: let the controller's clock go so many times faster")
	fixed(cmd, "churn", simulate.Churns())
	return cmd
}

func (f *simulateFlags) run(cmd *cobra.Command, args []string) error {
	designs, err := f.designs(args)
	if err != nil {
		return err
	}
	if err := f.consistent(cmd, len(designs)); err != nil {
		return err
	}
	faults, err := f.readFaults()
	if err != nil {
		return err
	}
	if f.seeds > 1 || len(designs) > 1 {
		return f.sweep(cmd, designs, faults)
	}
	script, err := f.readScript(cmd)
	if err != nil {
		return err
	}
	opt := simulate.Options{Design: designs[0], Script: script, Workers: f.workers, SyncPeriod: f.syncPeriod, Faults: faults}
	switch {
	case f.writeScript != "" || f.writeWorld != "":
		return f.write(script)
	case f.endpoint != "":
		return f.live(cmd, opt)
	}
	return f.single(cmd, opt)
}

// designs resolves the names.
func (f *simulateFlags) designs(names []string) ([]model.Design, error) {
	var designs []model.Design
	for i, name := range names {
		d, err := model.DesignNamed(name)
		if err != nil {
			return nil, usage("%v", err)
		}
		if slices.Contains(names[:i], name) {
			return nil, usage("the design %s is named twice", name)
		}
		designs = append(designs, d)
	}
	return designs, nil
}

// consistent refuses flags that do not go together.
func (f *simulateFlags) consistent(cmd *cobra.Command, designs int) error {
	sweep := f.seeds > 1 || designs > 1
	given := cmd.Flags().Changed
	switch {
	case f.seeds < 1 || f.seeds > mostSeeds || f.plan.Seed > math.MaxUint64-uint64(f.seeds-1):
		return usage("--seeds has to be from 1 to %d, and the last seed below 2^64", mostSeeds)
	case f.workers < 1 || f.workers > mostWorkers:
		return usage("--workers has to be from 1 to %d", mostWorkers)
	case f.syncPeriod < leastSync:
		return usage("--sync-period has to be at least %s", leastSync)
	case f.bound < 0:
		return usage("--repair-bound cannot be negative")
	case f.plan.ExternalRevokes < 0 || f.plan.Crashes < 0 || f.plan.Restarts < 0 || f.plan.LeaderChanges < 0:
		return usage("nothing can happen less often than never")
	case sweep && (f.script != "" || f.writeScript != "" || f.writeWorld != "" || f.endpoint != ""):
		return usage("--script, --write-script, --write-world and --endpoint are of one run: name one design and one seed")
	case !sweep && f.plot != "":
		return usage("--plot draws a sweep: --seeds N")
	case f.endpoint == "" && given("speed"):
		return usage("without --endpoint time is simulated, and --speed has no meaning")
	case f.endpoint != "" && (given("faults") || given("read-lag")):
		return usage("the endpoint has its own faults: give --read-lag and --faults to linearize record")
	case f.endpoint != "" && (f.save != "" || given("format")):
		return usage("with --endpoint the endpoint records, and linearize check judges: --save and --format have no meaning")
	case f.endpoint != "" && !isURL(f.endpoint):
		return usage("--endpoint %q is no URL, such as http://127.0.0.1:4566", f.endpoint)
	case !(f.speed > 0 && f.speed <= mostSpeed): // nor is it NaN
		return usage("--speed has to be positive, and at most %d", mostSpeed)
	case f.script != "" && (given("churn") || given("duration") || given("bindings")):
		return usage("--script says what happens: --churn, --duration and --bindings exclude it")
	}
	if err := f.destinations(); err != nil {
		return err
	}
	if sweep {
		if f.format != "text" && f.format != "json" && f.format != "markdown" {
			return usage("--format %q of a sweep is none of text|json|markdown", f.format)
		}
		return nil
	}
	if _, ok := formats[f.format]; !ok {
		return usage("--format %q is none of %s", f.format, formatNames())
	}
	return nil
}

// destinations refuses, before hours are spent on runs, to write where nothing can be written.
func (f *simulateFlags) destinations() error {
	for _, path := range []string{f.output, f.plot, f.writeScript, f.writeWorld} {
		if path == "" {
			continue
		}
		folder := filepath.Dir(path)
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			return usage("cannot write %s: there is no folder %s", path, folder)
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return usage("cannot write %s: it is a folder", path)
		}
	}
	if info, err := os.Stat(f.save); f.save != "" && err == nil && !info.IsDir() {
		return usage("--save %s: it is no folder", f.save)
	}
	return nil
}

// readScript reads --script, or makes the script of the plan. A seed that is given counts for both.
func (f *simulateFlags) readScript(cmd *cobra.Command) (*simulate.Script, error) {
	if f.script == "" {
		script, err := simulate.NewScript(f.plan)
		if err != nil {
			return nil, usage("%v", err)
		}
		return script, nil
	}
	script, err := load(f.script, simulate.ReadScript)
	if err != nil {
		return nil, usage("--script %w", err)
	}
	if cmd.Flags().Changed("seed") {
		script.Seed = f.plan.Seed
	}
	return script, nil
}

// write writes what was asked for, and runs nothing.
func (f *simulateFlags) write(script *simulate.Script) error {
	for _, w := range []struct {
		path  string
		write func(io.Writer) error
	}{{f.writeScript, script.Write}, {f.writeWorld, script.WriteWorld}} {
		if w.path == "" {
			continue
		}
		var b bytes.Buffer
		if err := w.write(&b); err != nil {
			return err
		}
		if err := writeFile(w.path, b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// conditions says in words what the plan's churn does not.
func (f *simulateFlags) conditions() string {
	var parts []string
	if f.readLag != "" {
		parts = append(parts, "read lag "+f.readLag)
	}
	if f.faults != "" {
		parts = append(parts, "faults of "+filepath.Base(f.faults))
	}
	for _, e := range []struct {
		n    int
		what string
	}{{f.plan.ExternalRevokes, "removal by somebody else"}, {f.plan.Crashes, "crash"}, {f.plan.Restarts, "restart"}, {f.plan.LeaderChanges, "leader change"}} {
		switch {
		case e.n == 1:
			parts = append(parts, "1 "+e.what)
		case e.n > 1:
			what := strings.Replace(e.what+"s", "removal by somebody elses", "removals by somebody else", 1)
			parts = append(parts, fmt.Sprintf("%d %s", e.n, strings.Replace(what, "crashs", "crashes", 1)))
		}
	}
	return strings.Join(parts, ", ")
}

// flags repeats the flags that decide a run besides its script.
func (f *simulateFlags) flags() string {
	text := ""
	if f.readLag != "" {
		text += " --read-lag " + pasted(f.readLag)
	}
	if f.faults != "" {
		text += " --faults " + pasted(f.faults)
	}
	if f.workers != simulate.DefaultWorkers {
		text += fmt.Sprintf(" --workers %d", f.workers)
	}
	if f.syncPeriod != model.SyncPeriod {
		text += fmt.Sprintf(" --sync-period %s", f.syncPeriod)
	}
	if f.bound != checker.DefaultOptions().RepairBound {
		text += fmt.Sprintf(" --repair-bound %s", f.bound)
	}
	return text
}

// single runs one design through one script.
func (f *simulateFlags) single(cmd *cobra.Command, opt simulate.Options) error {
	run, err := simulate.Run(cmd.Context(), opt)
	if err != nil {
		return f.interrupted(cmd, err)
	}
	if f.output != "" {
		if err := writeFile(f.output, run.History); err != nil {
			return err
		}
	}
	r, err := simulate.Judge(cmd.Context(), run.History, f.bound)
	if err != nil {
		return f.interrupted(cmd, err)
	}
	out := cmd.OutOrStdout()
	if f.format != "text" {
		err = formats[f.format](out, r, false)
	} else {
		fmt.Fprintf(out, "%s: %d calls, %d reconciles, %s in %s of simulated time\n\n", opt.Design.Name, run.Calls, run.Reconciles,
			processes(run.Processes), report.Duration(time.Duration(opt.Script.Duration).Seconds()))
		err = simulate.WriteShort(out, r)
	}
	if err != nil {
		return err
	}
	if f.save != "" {
		if err := f.shrink(cmd, opt, r, opt.Design.Name, out); err != nil {
			return f.interrupted(cmd, err)
		}
	}
	return verdictStatus(r.Verdict)
}

// verdictStatus is the exit status for a verdict.
func verdictStatus(v report.Verdict) error {
	switch v {
	case report.Holds:
		return nil
	case report.Violated:
		return &exitError{status: exitViolated}
	}
	return &exitError{status: exitUndecided}
}

// interrupted turns the end of the context into the tool's own words.
func (f *simulateFlags) interrupted(cmd *cobra.Command, err error) error {
	if errors.Is(cmd.Context().Err(), context.Canceled) {
		return &exitError{exitUndecided, errors.New("interrupted; no verdict")}
	}
	return usage("%w", err)
}

// live runs the controller in real time.
func (f *simulateFlags) live(cmd *cobra.Command, opt simulate.Options) error {
	var history bytes.Buffer
	var to io.Writer
	if f.output != "" {
		to = &history
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "linearize simulate: %s runs for %s against %s\n", opt.Design.Name,
		(time.Duration(float64(opt.Script.Duration) / f.speed)).Round(time.Second), f.endpoint)
	run, err := simulate.RunLive(cmd.Context(), opt, simulate.LiveOptions{Endpoint: f.endpoint, Speed: f.speed, History: to})
	if err != nil {
		return usage("%w", err)
	}
	if f.output != "" {
		if err := writeFile(f.output, history.Bytes()); err != nil {
			return err
		}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %d reconciles, %s\n", opt.Design.Name, run.Reconciles, processes(run.Processes))
	return nil
}

// sweep runs every design with every seed.
func (f *simulateFlags) sweep(cmd *cobra.Command, designs []model.Design, faults *awsapi.Faults) error {
	note := newProgress(cmd.ErrOrStderr())
	s := simulate.Sweep{
		Designs: designs, First: f.plan.Seed, Seeds: f.seeds, Plan: f.plan, Workers: f.workers, SyncPeriod: f.syncPeriod, Faults: faults,
		RepairBound: f.bound, Parallel: runtime.GOMAXPROCS(0),
		Progress: func(done, of int) { note.show("%d of %d runs", done, of) },
	}
	rows, err := s.Run(cmd.Context())
	note.clear()
	if err != nil {
		return f.interrupted(cmd, err)
	}
	r := simulate.NewSweepReport(&s, rows, f.conditions())
	var b bytes.Buffer
	write := map[string]func(io.Writer) error{"text": r.WriteText, "json": r.WriteJSON, "markdown": r.WriteMarkdown}[f.format]
	if err := write(&b); err != nil {
		return err
	}
	if f.output == "" || f.output == "-" {
		if _, err := cmd.OutOrStdout().Write(b.Bytes()); err != nil {
			return err
		}
	} else if err := writeFile(f.output, b.Bytes()); err != nil {
		return err
	}
	if f.plot != "" {
		var picture bytes.Buffer
		if err := r.WritePlot(&picture); err != nil {
			return err
		}
		if err := writeFile(f.plot, picture.Bytes()); err != nil {
			return err
		}
	}
	if f.save != "" {
		if err := f.saveAll(cmd, &s, rows); err != nil {
			return f.interrupted(cmd, err)
		}
	}
	return verdictStatus(r.Verdict())
}

// readFaults reads --faults and --read-lag, which counts for more. Their seed is the script's.
func (f *simulateFlags) readFaults() (*awsapi.Faults, error) {
	faults := &awsapi.Faults{}
	if f.faults != "" {
		var err error
		if faults, err = load(f.faults, awsapi.LoadFaults); err != nil {
			return nil, usage("--faults %w", err)
		}
	}
	if f.readLag != "" {
		if err := faults.ReadLag.UnmarshalText([]byte(f.readLag)); err != nil {
			return nil, usage("--read-lag: %w", err)
		}
	}
	return faults, nil
}

func processes(n int) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprintf("%d processes", n)
}
