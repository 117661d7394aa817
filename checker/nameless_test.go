package checker_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linearize.example/checker/report"
)

// withoutRequests is a real run's CloudTrail in which the records that which chooses lost their requestParameters.
func withoutRequests(t *testing.T, which func(event map[string]any) bool) files {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "testdata", "captures", "real-run-restart", "cloudtrail.json"))
	if err != nil {
		t.Fatal(err)
	}
	var log struct{ Records []map[string]any }
	if err := json.Unmarshal(text, &log); err != nil {
		t.Fatal(err)
	}
	for _, event := range log.Records {
		if which(event) {
			event["requestParameters"] = nil
		}
	}
	text, err = json.Marshal(log)
	if err != nil {
		t.Fatal(err)
	}
	return files{"cloudtrail.json": string(text)}
}

// A revoke whose record does not tell on which group it was may have been on the one that is judged.
func TestNamelessCalls(t *testing.T) {
	r := judge(t, withoutRequests(t, func(event map[string]any) bool { return event["eventName"] == "RevokeSecurityGroupIngress" }).load(t), nil)
	got := map[string]string{}
	for _, p := range one(t, r).Properties {
		got[p.Name] = p.Verdict.String()
	}
	want := map[string]string{"never-empty": "unknown", "covered": "unknown", "repair-bound": "unknown", "tight": "unknown"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a revoke without its parameters: verdicts (-want +got)\n%s", diff)
	}

	r = judge(t, withoutRequests(t, func(event map[string]any) bool { return event["eventName"] == "AuthorizeSecurityGroupIngress" }).load(t), nil)
	if r.Verdict != report.Unknown {
		t.Errorf("no grant's parameters: %v", r.Verdict)
	}

	r = judge(t, withoutRequests(t, func(map[string]any) bool { return true }).load(t), nil)
	if want := "4 calls that the capture has on security groups' rules do not tell on which group (their requestParameters are missing)"; r.Summary != want {
		t.Errorf("no parameters at all: %q; want %q", r.Summary, want)
	}
}

// What holds by the records that can be used is said to hold by those alone.
func TestRejectedRecords(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "testdata", "captures", "real-run-control", "history.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	r := judge(t, files{"history.ndjson": string(text) + "{\"seq\":1,\"op\":\n"}.load(t), nil)
	if want := "; but 1 record could not be used and may tell otherwise"; r.Verdict != report.Holds || !strings.HasSuffix(r.Summary, want) {
		t.Errorf("a record that is no JSON: %v, %q; want it to hold, but %q", r.Verdict, r.Summary, want)
	}
}
