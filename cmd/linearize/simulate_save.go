package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/spf13/cobra"

	"linearize.example/checker/report"
	"linearize.example/checker/simulate"
)

// violation is one to shrink.
type violation struct {
	opt      simulate.Options
	property string
	folder   string // inside of --save
}

// shrink shrinks the violations of one run.
func (f *simulateFlags) shrink(cmd *cobra.Command, opt simulate.Options, r *report.Report, folder string, out io.Writer) error {
	var all []violation
	for _, p := range r.Groups[0].Properties {
		if p.Verdict == report.Violated {
			all = append(all, violation{opt, p.Name, filepath.Join(folder, p.Name)})
		}
	}
	return f.saveViolations(cmd, all, out)
}

// saveAll shrinks the violations of a sweep: design by design, property by property, seed by seed.
func (f *simulateFlags) saveAll(cmd *cobra.Command, s *simulate.Sweep, rows []simulate.Row) error {
	var all []violation
	for d, row := range rows {
		for p, seeds := range row.Seeds {
			for _, seed := range seeds {
				opt, err := s.Options(s.Designs[d], seed)
				if err != nil {
					return err
				}
				folder := filepath.Join(row.Design, simulate.Properties[p], fmt.Sprintf("seed-%d", seed))
				all = append(all, violation{opt, simulate.Properties[p], folder})
			}
		}
	}
	return f.saveViolations(cmd, all, cmd.OutOrStdout())
}

// saveViolations shrinks violations, several at a time, saves each in its folder, and says how to run it again.
func (f *simulateFlags) saveViolations(cmd *cobra.Command, all []violation, out io.Writer) error {
	note := newProgress(cmd.ErrOrStderr())
	shrunk := make([]*simulate.Shrunk, len(all))
	errs := make([]error, len(all))
	next := make(chan int)
	var workers sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				shrunk[i], errs[i] = simulate.Shrink(cmd.Context(), all[i].opt, all[i].property, f.bound)
				mu.Lock()
				done++
				note.show("shrinking: %d of %d violations", done, len(all))
				mu.Unlock()
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	workers.Wait()
	note.clear()
	if err := cmp.Or(errs...); err != nil {
		return err
	}
	for i, v := range all {
		folder := filepath.Join(f.save, v.folder)
		if err := saveShrunk(folder, shrunk[i]); err != nil {
			return err
		}
		script := filepath.Join(folder, "script.json")
		fmt.Fprintf(out, "\n%s is violated by %d events of %d and %d bindings of %d; again:\n  linearize simulate %s%s --script %s -o %s\n",
			v.property, len(shrunk[i].Script.Events), len(v.opt.Script.Events), len(shrunk[i].Script.Bindings), len(v.opt.Script.Bindings),
			v.opt.Design.Name, f.flags(), pasted(script), pasted(filepath.Join(folder, "history.ndjson")))
	}
	return nil
}

// saveShrunk writes a script and the history that shows what it does.
func saveShrunk(folder string, s *simulate.Shrunk) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return usage("--save: %w", err)
	}
	var script bytes.Buffer
	if err := s.Script.Write(&script); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(folder, "script.json"), script.Bytes()); err != nil {
		return err
	}
	return writeFile(filepath.Join(folder, "history.ndjson"), s.History)
}
