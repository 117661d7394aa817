// Command tlcrun runs TLC, the TLA+ model checker, on the configurations in designs/, compares each
// verdict with the one that the configuration expects, and records verdicts, counts and the lengths
// of counterexamples. `make tlc` calls it.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	out := flag.String("o", "", "write the record to this file, after each configuration")
	resume := flag.Bool("resume", false, "keep the results in that file whose specification and "+
		"configuration have not changed")
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
	record, err := newRecord(*out, *resume)
	if err != nil {
		return err
	}
	return checkAll(ctx, tlc, files, *jobs, record)
}

// checkAll checks every file that the record does not know yet, and prints a line for each. The error
// names the files whose verdict is not the expected one.
func checkAll(ctx context.Context, tlc checker, files []string, jobs int, record *Record) error {
	failed := make([]error, len(files))
	queue := make(chan int)
	var wait sync.WaitGroup
	for range jobs {
		wait.Go(func() {
			for i := range queue {
				failed[i] = checkOne(ctx, tlc, files[i], record)
			}
		})
	}
	for i := range files {
		queue <- i
	}
	close(queue)
	wait.Wait()
	return errors.Join(failed...)
}

func checkOne(ctx context.Context, tlc checker, file string, record *Record) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", file, ctx.Err())
	}
	m, err := readModel(file)
	if err != nil {
		return err
	}
	result, known := record.find(m)
	if !known {
		if result, err = tlc.check(ctx, m); err != nil {
			return err
		}
		fmt.Println(result)
		if err := record.add(result); err != nil {
			return err
		}
	}
	if result.Verdict != m.config.Expect {
		return fmt.Errorf("%s: TLC says %q, but the configuration expects %q: look at the "+
			"counterexample, and correct one of them", file, result.Verdict, m.config.Expect)
	}
	return nil
}

// model is a configuration, read.
type model struct {
	file, text string
	config     *tlccfg.Config
	sum        string // SHA-256 of the specification and the configuration
}

func readModel(file string) (model, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return model{}, err
	}
	spec, err := os.ReadFile("spec.tla")
	if err != nil {
		return model{}, err
	}
	config, err := tlccfg.Parse(file, text)
	if err != nil {
		return model{}, err
	}
	sum := sha256.Sum256(append(spec, text...))
	return model{filepath.ToSlash(file), string(text), config, hex.EncodeToString(sum[:])}, nil
}

// check runs TLC on one configuration, as often as it takes to judge every property of it.
func (tlc checker) check(ctx context.Context, m model) (Result, error) {
	start := time.Now()
	config := m.config
	result := Result{File: m.file, SHA256: m.sum, Design: config.Design,
		Environment: config.Environment, Probe: config.Probe}
	var properties, sanity []string
	for _, name := range config.Invariants {
		if name == "TypeOK" || name == "Sane" {
			sanity = append(sanity, name)
		} else {
			properties = append(properties, name)
		}
	}
	if err := tlc.checkInvariants(ctx, &result, m.file, m.text, sanity, properties); err != nil {
		return Result{}, err
	}
	if err := tlc.checkTemporal(ctx, &result, m.file, m.text, config.Properties); err != nil {
		return Result{}, err
	}
	result.Verdict = verdict(result.Properties)
	result.spent = time.Since(start)
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
