// Command tlcrun runs TLC, the TLA+ model checker, on the configurations in designs/, compares each
// verdict with the one that the configuration expects, and records verdicts, counts and the lengths
// of counterexamples. `make tlc` calls it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"linearize.example/model/tlccfg"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "tlcrun:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	out := flag.String("o", "", "write the record to this file; needs all configurations")
	workers := flag.Int("workers", 1, "workers of each TLC; with more than one, the depth and the "+
		"counterexamples need not be the shortest")
	jobs := flag.Int("jobs", 2, "how many TLCs at a time")
	heap := flag.String("heap", "2g", "heap of each TLC")
	flag.Parse()

	files := flag.Args()
	if len(files) == 0 {
		var err error
		if files, err = filepath.Glob("designs/*.cfg"); err != nil || len(files) == 0 {
			return errors.New("no designs/*.cfg here; run it in the project's root")
		}
	}
	jar, err := findJar(ctx)
	if err != nil {
		return err
	}
	tlc := checker{jar: jar, heap: *heap, workers: *workers}
	slices.Sort(files)
	results, err := checkAll(ctx, tlc, files, *jobs)
	if *out != "" {
		err = errors.Join(err, writeRecord(*out, results))
	}
	return err
}

// checkAll checks every file, prints a line for each, and returns the results in the order of files.
// The error names the files whose verdict is not the expected one.
func checkAll(ctx context.Context, tlc checker, files []string, jobs int) ([]Result, error) {
	results := make([]Result, len(files))
	failed := make([]error, len(files))
	queue := make(chan int)
	var wait sync.WaitGroup
	for range jobs {
		wait.Go(func() {
			for i := range queue {
				results[i], failed[i] = tlc.check(ctx, files[i])
				if results[i].Verdict != "" {
					fmt.Println(results[i])
				}
			}
		})
	}
	for i := range files {
		queue <- i
	}
	close(queue)
	wait.Wait()
	return results, errors.Join(failed...)
}

// Record is what docs/evidence/tlc.json holds.
type Record struct {
	Schema         string   `json:"schema"`
	TLC            string   `json:"tlc"`
	Date           string   `json:"date"`
	Counts         string   `json:"counts"`
	Configurations []Result `json:"configurations"`
}

const countsNote = "distinct, generated, depth and actions are of the complete reachable graph, explored with " +
	"one worker and without the properties; generated counts the initial states and every step from every state, " +
	"each choice of a step on its own; depth counts the states on the longest of the shortest paths; " +
	"counterexample_steps is the length of the shortest counterexample of each property, found with one worker, " +
	"the initial state not counted; probes have no counts."

func writeRecord(path string, results []Result) error {
	record := Record{
		Schema: "linearize.tlc/v1",
		Date:   time.Now().UTC().Format(time.DateOnly),
		Counts: countsNote, Configurations: results,
	}
	for _, r := range results {
		if r.Verdict == "" {
			return fmt.Errorf("%s is not written: %s has no verdict", path, r.File)
		}
		record.TLC = r.version
	}
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Result is what TLC said about one configuration.
type Result struct {
	File        string           `json:"file"`
	Design      string           `json:"design"`
	Environment string           `json:"environment"`
	Probe       string           `json:"probe,omitempty"`
	Verdict     string           `json:"verdict"` // as in the configuration's first line
	Properties  []Property       `json:"properties"`
	Distinct    int64            `json:"distinct,omitempty"`
	Generated   int64            `json:"generated,omitempty"`
	Depth       int              `json:"depth,omitempty"`
	Actions     map[string]int64 `json:"actions,omitempty"` // steps generated, by action
	version     string
	spent       time.Duration
}

// Property is one property's verdict.
type Property struct {
	Name    string `json:"name"`
	Formula string `json:"formula"` // its name in spec.tla
	Verdict string `json:"verdict"` // holds or violated
	Steps   int    `json:"counterexample_steps,omitempty"`
}

func (r Result) String() string {
	return fmt.Sprintf("%-60s %-45s %9d %9d %4d %6.1fs",
		strings.TrimSuffix(filepath.Base(r.File), ".cfg"), r.Verdict, r.Distinct, r.Generated, r.Depth,
		r.spent.Seconds())
}

// check runs TLC on one configuration, as often as it takes to judge every property of it.
func (tlc checker) check(ctx context.Context, file string) (Result, error) {
	start := time.Now()
	text, err := os.ReadFile(file)
	if err != nil {
		return Result{}, err
	}
	config, err := tlccfg.Parse(file, text)
	if err != nil {
		return Result{}, err
	}
	result := Result{File: filepath.ToSlash(file), Design: config.Design,
		Environment: config.Environment, Probe: config.Probe}
	var properties, sanity []string
	for _, name := range config.Invariants {
		if name == "TypeOK" || name == "Sane" {
			sanity = append(sanity, name)
		} else {
			properties = append(properties, name)
		}
	}
	if err := tlc.checkInvariants(ctx, &result, file, string(text), sanity, properties); err != nil {
		return Result{}, err
	}
	if err := tlc.checkTemporal(ctx, &result, file, string(text), config.Properties); err != nil {
		return Result{}, err
	}
	result.Verdict = verdict(result.Properties)
	result.spent = time.Since(start)
	if result.Verdict != config.Expect {
		return result, fmt.Errorf("%s: TLC says %q, but the configuration expects %q: look at "+
			"the counterexample, and correct one of them", file, result.Verdict, config.Expect)
	}
	return result, nil
}

// checkInvariants runs TLC with the invariants that are not violated yet until none is violated: each run
// but the last finds the shortest counterexample of one, the last explores the complete graph.
func (tlc checker) checkInvariants(ctx context.Context, result *Result, file, text string,
	sanity, properties []string) error {
	violated := map[string]int{}
	left := slices.Clone(properties)
	for len(left) > 0 || result.Probe == "" {
		one, err := tlc.run(ctx, file, withoutProperties(text)+
			"INVARIANTS "+strings.Join(append(slices.Clone(sanity), left...), " ")+"\n")
		if err != nil {
			return err
		}
		result.count(one)
		if one.violated == "" {
			break
		}
		i := slices.Index(left, one.violated)
		if i < 0 {
			return fmt.Errorf("%s: the model itself is wrong: %s is violated", file, one.violated)
		}
		violated[one.violated] = one.trace - 1
		left = slices.Delete(left, i, i+1)
	}
	if len(left) == 0 && result.Probe != "" {
		result.count(outcome{version: result.version})
	}
	for _, name := range properties {
		p := Property{Name: kebab(name), Formula: name, Verdict: "holds"}
		if steps, ok := violated[name]; ok {
			p.Verdict, p.Steps = "violated", steps
		}
		result.Properties = append(result.Properties, p)
	}
	return nil
}

// checkTemporal runs TLC for each temporal property: TLC does not say which of several is violated.
func (tlc checker) checkTemporal(ctx context.Context, result *Result, file, text string,
	properties []string) error {
	for _, name := range properties {
		one, err := tlc.run(ctx, file, withoutProperties(text)+"PROPERTIES "+name+"\n")
		if err != nil {
			return err
		}
		p := Property{Name: kebab(name), Formula: name, Verdict: "holds"}
		if one.violated != "" {
			p.Verdict = "violated"
		}
		result.Properties = append(result.Properties, p)
	}
	return nil
}

func (r *Result) count(o outcome) {
	r.version = o.version
	r.Distinct, r.Generated, r.Depth, r.Actions = o.distinct, o.generated, o.depth, o.actions
}

// withoutProperties leaves the constants, Init and Next.
func withoutProperties(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "INVARIANTS") && !strings.HasPrefix(line, "PROPERTIES") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func verdict(properties []Property) string {
	var violated []string
	for _, p := range properties {
		if p.Verdict == "violated" {
			violated = append(violated, p.Name+" violated")
		}
	}
	if len(violated) == 0 {
		return "holds"
	}
	return strings.Join(violated, ", ")
}

// kebab is the public name of a property: NeverEmpty is never-empty.
func kebab(name string) string {
	if name == "RepairedInTime" {
		return "repair-bound"
	}
	var b strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('-')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}
