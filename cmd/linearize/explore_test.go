package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// runCommand runs one subcommand and returns its exit status and what it printed.
func runCommand(t *testing.T, cmd *cobra.Command, args ...string) (int, string) {
	t.Helper()
	root := &cobra.Command{Use: "linearize", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(cmd)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append([]string{cmd.Name()}, args...))
	err := root.Execute()
	var exit *exitError
	switch {
	case err == nil:
		return exitHolds, out.String()
	case errors.As(err, &exit):
		return exit.status, out.String() + err.Error()
	}
	return exitUsage, out.String() + err.Error()
}

func TestExplore(t *testing.T) {
	for _, c := range []struct {
		args   string
		status int
		says   []string
	}{
		{"v3.4.0", exitHolds, []string{"holds in every state: never-empty, covered, tight", "complete"}},
		{"v3.4.0 --old-reads 1", exitViolated, []string{"never-empty is violated", "13 steps", "which is old"}},
		{"confirm-authorize --old-reads 1", exitHolds, []string{"complete"}},
		{"confirm-authorize --crash --workers 2 --old-reads 1", exitHolds, []string{"complete"}},
		{"v2.7.2", exitViolated, []string{"5 steps"}},
		{"v2.7.2 --max-depth 4", exitUndecided, []string{"bound on depth"}},
		{"v3.4.0 --old-reads 1 --max-states 10", exitUndecided, []string{"10 states", "bound on states"}},
		{"v3.4.0 --old-reads 1 --properties Tight", exitHolds, nil},
		{"--config ../../designs/v3.4.0.old-reads.cfg", exitViolated, []string{"13 steps"}},
		{"", exitUsage, []string{"which design", "v3.4.0"}},
		{"v9", exitUsage, []string{`no design is called "v9"`}},
		{"v3.4.0 --config x.cfg", exitUsage, []string{"give one of them"}},
		{"v3.4.0 --properties Nothing", exitUsage, []string{"Nothing is not known"}},
		{"v3.4.0 --format html", exitUsage, []string{"text or json"}},
		{"v3.4.0 --old-reads 9", exitUsage, []string{"MaxLag is 9; it must be 0 to 4"}},
		{"--config nothing.cfg", exitUsage, []string{"nothing.cfg"}},
		{"v3.4.0 --through grant", exitUsage, []string{`call "grant"`}},
	} {
		status, out := runCommand(t, newExploreCommand(), strings.Fields(c.args)...)
		if status != c.status {
			t.Errorf("explore %s: status %d, want %d\n%s", c.args, status, c.status, out)
		}
		for _, s := range c.says {
			if !strings.Contains(out, s) {
				t.Errorf("explore %s: %q is missing in\n%s", c.args, s, out)
			}
		}
		for _, line := range strings.Split(out, "\n") {
			if c.status != exitUsage && len(line) > 100 {
				t.Errorf("explore %s: a line of %d characters: %s", c.args, len(line), line)
			}
		}
	}
}

// v3.4.0 with old reads can make the calls of the incident, in their order, and so empty the group.
func TestExploreTheIncident(t *testing.T) {
	status, out := runCommand(t, newExploreCommand(), "v3.4.0", "--old-reads", "1", "--through", "incident", "--format", "json")
	if status != exitViolated {
		t.Fatalf("status %d\n%s", status, out)
	}
	var o struct {
		Violated       string
		Counterexample struct {
			Steps []struct {
				Action string
				Does   string
				Rules  []string
			}
		}
	}
	if err := json.Unmarshal([]byte(strings.TrimSuffix(out, "exit status 1")), &o); err != nil {
		t.Fatal(err)
	}
	var calls []string
	for _, s := range o.Counterexample.Steps {
		if strings.HasPrefix(s.Action, "Authorize") || strings.HasPrefix(s.Action, "Revoke") {
			calls = append(calls, s.Does)
		}
	}
	want := "authorize {1-1}: ok; revoke {1-2}: ok; revoke {1-2}: NotFound; revoke {1-2}: NotFound; revoke {1-1}: ok"
	if got := strings.Join(calls, "; "); got != want || o.Violated != "never-empty" {
		t.Errorf("%s violated by\n%s; want\n%s", o.Violated, got, want)
	}
	if status, out := runCommand(t, newExploreCommand(), "v3.4.0", "--through", "incident"); status != exitHolds {
		t.Errorf("with reads that are never old, the incident is possible: %d\n%s", status, out)
	}
}
