package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"linearize.example/checker/evidence"
)

type evidenceFlags struct {
	out, designs, only string
	maxStates          int
	check              bool
}

func newEvidenceCommand() *cobra.Command {
	var f evidenceFlags
	cmd := &cobra.Command{
		Use:   "evidence",
		Short: "Explore every design in every environment, and write down what holds",
		Long: `evidence explores every design of the controller in the environments that the TLC configurations
describe. It writes the matrix of designs, environments and properties, every counterexample as a
drawing and as text, what each design costs, and an answer to the report's suggestions.

The same sources give the same files. Exit status: 0 written, or with --check up to date; 1 with
--check, a file differs; 2 bad usage or input.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.out, "out", "docs/evidence", "the folder to write to")
	flags.StringVar(&f.designs, "designs", "designs", "the folder with the TLC configurations")
	flags.StringVar(&f.only, "only", "", "only what matches this regular expression, as in '^v3.4.0/old-reads$'")
	flags.IntVar(&f.maxStates, "max-states", 0, "explore no more than this number of states each (default: no bound)")
	flags.BoolVar(&f.check, "check", false, "write nothing; fail if a file is not up to date")
	return cmd
}

func (f *evidenceFlags) run(cmd *cobra.Command) error {
	configurations, err := readConfigurations(f.designs)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	only, err := regexp.Compile(f.only)
	if err != nil {
		return usage("--only: %v", err)
	}
	p := newProgress(cmd.ErrOrStderr())
	e, err := evidence.Build(cmd.Context(), configurations, evidence.Options{
		Wanted:    func(design, environment string) bool { return only.MatchString(design + "/" + environment) },
		MaxStates: f.maxStates,
		Progress:  func(design, environment string) { p.show("%s in %s", design, environment) },
	})
	p.clear()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	files, err := e.Files()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := f.deliver(filepath.Join(f.out, filepath.FromSlash(name)), files[name]); err != nil {
			return err
		}
	}
	if f.only == "" {
		if err := f.removeStale(files); err != nil {
			return err
		}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%d explorations, %d files in %s\n", len(e.Cells), len(files), f.out)
	return nil
}

// deliver writes a file, or compares it.
func (f *evidenceFlags) deliver(path string, text []byte) error {
	if f.check {
		old, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(old, text) {
			return &exitError{exitViolated, fmt.Errorf("%s is not up to date; run linearize evidence", path)}
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// removeStale removes, or reports, stories of an earlier run that are not told any more.
func (f *evidenceFlags) removeStale(files map[string][]byte) error {
	for _, ending := range []string{"svg", "txt"} {
		paths, err := filepath.Glob(filepath.Join(f.out, "stories", "*."+ending))
		if err != nil {
			return err
		}
		for _, path := range paths {
			if _, told := files["stories/"+filepath.Base(path)]; told {
				continue
			}
			if f.check {
				return &exitError{exitViolated, fmt.Errorf("%s is a story of an earlier run; run linearize evidence", path)}
			}
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

func readConfigurations(dir string) ([]evidence.Configuration, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.cfg"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s holds no configurations (*.cfg); run this in the project's folder, or give --designs", dir)
	}
	var out []evidence.Configuration
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		out = append(out, evidence.Configuration{Name: path, Text: text})
	}
	return out, nil
}
