package controllerlog_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
	"linearize.example/traces/controllerlog"
)

func readCapture(t *testing.T, name string) *traces.History {
	t.Helper()
	f, err := os.Open("../../testdata/captures/" + name + "/controller.log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := &traces.History{Inputs: []traces.Input{{Path: "c.log"}}}
	if err := controllerlog.Read(f, h, 0, controllerlog.Options{}); err != nil {
		t.Fatal(err)
	}
	checkInput(t, h)
	return h
}

// The incident's log is an excerpt: eight skips, four calls, no ends.
func TestIncident(t *testing.T) {
	h := readCapture(t, "incident-2026-08-28")
	want := []string{
		"17 controller Authorize sg-053bdd55831dccd60 3000-3000 10:35:48..forever ?",
		"18 controller Authorize sg-053bdd55831dccd60 3000-3008 10:37:35..forever ?",
		"19 controller Authorize sg-053bdd55831dccd60 3000-8025 10:39:00..forever ?",
		"20 controller Revoke sg-053bdd55831dccd60 3000-3000 3000-3008 10:48:21..forever ?",
	}
	if diff := cmp.Diff(want, operations(h)); diff != "" {
		t.Error(diff)
	}
	count := map[traces.ObservationKind]int{}
	for _, ob := range h.Observations {
		count[ob.Kind]++
	}
	if diff := cmp.Diff(map[traces.ObservationKind]int{traces.Skipped: 8, traces.Deferred: 8}, count); diff != "" {
		t.Error(diff)
	}
	if got := h.Observations[1].TGB; got != "test/k8s-test-frontend-3208949aed" {
		t.Errorf("the deferral is of %s", got)
	}
}

// The real runs' logs and histories are records of the same calls: every call of the history lies in the log's
// interval, with the same rules and result, in the same order.
func TestRealRunsAgreeWithTheirHistories(t *testing.T) {
	for _, name := range []string{"real-run-incident", "real-run-control", "real-run-restart"} {
		h := readCapture(t, name)
		f, err := os.Open("../../testdata/captures/" + name + "/history.ndjson")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		truth := &traces.History{Inputs: []traces.Input{{Path: "history.ndjson"}}}
		if err := traces.ReadHistory(f, truth, 0); err != nil {
			t.Fatal(err)
		}
		i := 0
		for _, want := range truth.Operations {
			if want.Op == traces.DescribeSecurityGroups {
				continue
			}
			if i == len(h.Operations) {
				t.Fatalf("%s: the log has only %d calls", name, i)
			}
			got := h.Operations[i]
			if got.Call > want.Call || got.Return < want.Return {
				t.Errorf("%s: %s took effect in %v..%v, the log says %v..%v", name, got.ID, want.Call, want.Return, got.Call, got.Return)
			}
			type facts struct {
				Op, Group, Error string
				Outcome          traces.Outcome
				Permissions      []traces.Permission
			}
			if diff := cmp.Diff(facts{want.Op, want.Group, want.Error, want.Outcome, want.Permissions},
				facts{got.Op, got.Group, got.Error, got.Outcome, got.Permissions}); diff != "" {
				t.Errorf("%s: %s: %s", name, got.ID, diff)
			}
			if got.After != i-1 {
				t.Errorf("%s: %s comes after operation %d", name, got.ID, got.After)
			}
			i++
		}
		if i != len(h.Operations) {
			t.Errorf("%s: the log has %d calls, the history %d", name, len(h.Operations), i)
		}
	}
}
