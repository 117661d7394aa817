package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Record is what docs/evidence/tlc.json holds: the results in the order of their files.
type Record struct {
	Schema         string   `json:"schema"`
	TLC            string   `json:"tlc"`
	Date           string   `json:"date"`
	Counts         string   `json:"counts"`
	Configurations []Result `json:"configurations"`

	mutex sync.Mutex
	path  string
}

const countsNote = "distinct, generated, depth and actions are of the complete reachable graph, explored with " +
	"one worker and without the properties; generated counts the initial states and every step from every state, " +
	"each choice of a step on its own; depth counts the states on the longest of the shortest paths; " +
	"counterexample_steps is the length of the shortest counterexample of each property, found with one worker, " +
	"the initial state not counted; probes have no counts."

// newRecord returns a record that is written to path after each result, or nowhere if path is empty;
// with resume it starts with what is there.
func newRecord(path string, resume bool) (*Record, error) {
	r := &Record{path: path}
	if resume {
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, r)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("resuming %s: %w", path, err)
		}
		r.Configurations = slices.DeleteFunc(r.Configurations, func(c Result) bool {
			_, err := os.Stat(c.File)
			return err != nil
		})
	}
	r.Schema, r.Counts = "linearize.tlc/v1", countsNote
	return r, nil
}

// find returns the result for a model that has not changed since.
func (r *Record) find(m model) (Result, bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, c := range r.Configurations {
		if c.File == m.file && c.SHA256 == m.sum {
			return c, true
		}
	}
	return Result{}, false
}

// add adds or replaces a result and writes the record.
func (r *Record) add(result Result) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.TLC, r.Date = result.version, time.Now().UTC().Format(time.DateOnly)
	i, found := slices.BinarySearchFunc(r.Configurations, result.File,
		func(c Result, file string) int { return cmp.Compare(c.File, file) })
	if found {
		r.Configurations[i] = result
	} else {
		r.Configurations = slices.Insert(r.Configurations, i, result)
	}
	if r.path == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(r.path, append(text, '\n'), 0o644)
}

// Result is what TLC said about one configuration.
type Result struct {
	File        string           `json:"file"`
	SHA256      string           `json:"sha256"` // of spec.tla and the configuration, one after the other
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

// String returns two lines for people.
func (r Result) String() string {
	return fmt.Sprintf("%s\n    %s; %d states, %d steps, %.1f s",
		strings.TrimSuffix(filepath.Base(r.File), ".cfg"), r.Verdict, r.Distinct, r.Generated,
		r.spent.Seconds())
}
