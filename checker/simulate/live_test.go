package simulate

import (
	"bytes"
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"linearize.example/traces"
	"linearize.example/traces/awsapi"
	"linearize.example/traces/record"
)

// TestRunLive runs the controller in real time over HTTP: the endpoint and the controller's own side record the same calls, and the
// group ends with the rule that the script's pods want.
func TestRunLive(t *testing.T) {
	s := &Script{Seed: 1, Duration: Duration(40 * time.Second),
		Bindings: []ScriptBinding{{Name: "test/web", Port: 3000, Pods: 1}, {Name: "test/mail", Port: 8025, Pods: 1}},
		Events: []Event{{At: Duration(10 * time.Second), Kind: PodGoes, Binding: "test/mail"}, {At: Duration(15 * time.Second), Kind: ExternalRevoke},
			{At: Duration(20 * time.Second), Kind: PodComes, Binding: "test/mail"}, {At: Duration(30 * time.Second), Kind: LeaderChange}}}
	var world bytes.Buffer
	if err := s.WriteWorld(&world); err != nil {
		t.Fatal(err)
	}
	w, err := awsapi.LoadWorld(&world)
	if err != nil {
		t.Fatal(err)
	}
	sim, err := awsapi.NewSimulator(w, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var theirs, ours bytes.Buffer
	log, err := record.NewLog(&theirs, record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(record.Handler(record.HandlerOptions{Backend: sim, Log: log, Process: func(c traces.Caller) string { return c.AccessKeyID }}))
	defer server.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	opt := Options{Design: design(t, "v3.4.0"), Script: s}
	run, err := RunLive(context.Background(), opt, LiveOptions{Endpoint: server.URL, Speed: 20, History: &ours})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if run.Processes != 2 || run.Reconciles < 5 {
		t.Errorf("%d processes, %d reconciles", run.Processes, run.Reconciles)
	}
	if rules := sim.Rules(PodGroup); len(rules) != 1 || rules[0].Ports() != "tcp 3000-8025" {
		t.Errorf("at the end the group has %v", rules)
	}
	count := func(h *traces.History) map[string]int {
		n := map[string]int{}
		for _, op := range h.Operations {
			if op.Process != "linearize" { // the first look, before anything is recorded on this side
				n[op.Process+" "+op.Op]++
			}
		}
		return n
	}
	mine, endpoint := readHistory(t, ours.Bytes()), readHistory(t, theirs.Bytes())
	for call, n := range count(endpoint) {
		if count(mine)[call] != n {
			t.Errorf("%s: the endpoint recorded %d, the controller's side %d", call, n, count(mine)[call])
		}
	}
	if clock := mine.Header["clock"]; !strings.Contains(clock, "wall clock") || !strings.Contains(clock, "20 times faster") {
		t.Errorf("the history's clock is %q", clock)
	}
}

// TestRunLiveRefuses: an endpoint that is not there, or does not have the world, is an error at once.
func TestRunLiveRefuses(t *testing.T) {
	s := script(t, Plan{Churn: Steady, Duration: 10 * time.Minute, Bindings: 2})
	w, err := awsapi.LoadWorld(strings.NewReader(`{"groups":[{"id":"sg-0123456789abcdef0"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	sim, err := awsapi.NewSimulator(w, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(record.Handler(record.HandlerOptions{Backend: sim}))
	other := server.URL
	_, err = RunLive(context.Background(), Options{Design: design(t, "v3.4.0"), Script: s}, LiveOptions{Endpoint: other, Speed: 1})
	if err == nil || !strings.Contains(err.Error(), "InvalidGroup.NotFound") || !strings.Contains(err.Error(), "--write-world") {
		t.Errorf("another world: %v", err)
	}
	server.Close()
	_, err = RunLive(context.Background(), Options{Design: design(t, "v3.4.0"), Script: s}, LiveOptions{Endpoint: other, Speed: 1})
	if err == nil || !strings.Contains(err.Error(), other) {
		t.Errorf("nobody there: %v", err)
	}
}
