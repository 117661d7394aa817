package model

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
)

// world is a cluster, a load balancer and an EC2 in memory. Its EC2 answers from a recording if it has
// one; else it holds the rules itself, and its reads are never old.
type world struct {
	t           *testing.T
	bindings    map[string]*Binding
	checkpoints map[string]string
	targets     map[string][]Target
	now         time.Time

	tags      []types.Tag
	rules     Permissions
	limit     int              // how many rules the group can hold; 0: no limit
	fail      map[string]error // by call name: what the next such call answers, once
	described func()           // runs after each describe
	recording []recorded       // answers to give
	calls     []string         // what was called, one line each
}

type recorded struct {
	Op     string
	Perms  []types.IpPermission `json:"ipPermissions"`
	Result struct {
		Perms []types.IpPermission `json:"ipPermissions"`
	}
	Error   string
	GroupID string `json:"groupId"`
}

const group = "sg-0aaa1111bbbb2222c"

func newWorld(t *testing.T) *world {
	return &world{
		t: t, bindings: map[string]*Binding{}, checkpoints: map[string]string{}, targets: map[string][]Target{},
		now: time.Date(2026, 8, 28, 9, 0, 0, 0, time.UTC), fail: map[string]error{},
	}
}

// pods gives a binding one pod on a port, or none. Each pod is a new one.
func (w *world) pods(name string, port int32, n int) {
	b := w.bindings[name]
	if b == nil {
		b = &Binding{Name: name, Spec: name, Sources: []Source{{Protocol: "tcp", GroupID: "sg-0ddd3333eeee4444f"}}}
		w.bindings[name] = b
	}
	b.Endpoints = nil
	for i := range n {
		w.now = w.now.Add(time.Second)
		b.Endpoints = append(b.Endpoints, Endpoint{fmt.Sprintf("10.0.0.%d", w.now.Second()+i), port, w.now, []string{group}})
	}
}

func (w *world) Bindings(context.Context) ([]string, error) {
	var names []string
	for name := range w.bindings {
		names = append(names, name)
	}
	return names, nil
}

func (w *world) Binding(_ context.Context, name string) (Binding, error) {
	return *w.bindings[name], nil
}

func (w *world) Checkpoint(_ context.Context, name string) (string, error) {
	return w.checkpoints[name], nil
}

func (w *world) SaveCheckpoint(_ context.Context, name, checkpoint string) error {
	w.checkpoints[name] = checkpoint
	return nil
}

func (w *world) Targets(_ context.Context, name string) ([]Target, error) {
	return w.targets[name], nil
}

func (w *world) Register(_ context.Context, name string, targets []Target) error {
	w.targets[name] = append(w.targets[name], targets...)
	return nil
}

func (w *world) Deregister(_ context.Context, name string, targets []Target) error {
	w.targets[name] = slices.DeleteFunc(w.targets[name], func(t Target) bool { return slices.Contains(targets, t) })
	return nil
}

// call notes a call and returns the recorded answer, if there is a recording.
func (w *world) call(op string, perms []types.IpPermission) (recorded, error) {
	line := op
	for _, p := range NewPermissions(perms) {
		line += fmt.Sprintf(" %d-%d", *p.FromPort, *p.ToPort)
	}
	w.calls = append(w.calls, line)
	if err := w.fail[op]; err != nil {
		delete(w.fail, op)
		return recorded{}, err
	}
	if w.recording == nil {
		return recorded{}, nil
	}
	if len(w.recording) == 0 {
		w.t.Fatalf("a call more than was recorded: %s", line)
	}
	next := w.recording[0]
	w.recording = w.recording[1:]
	if next.Op != longNames[op] || next.GroupID != group {
		w.t.Fatalf("called %s; recorded was %s on %s", line, next.Op, next.GroupID)
	}
	if diff := cmp.Diff(next.Perms, perms, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		w.t.Fatalf("%s: arguments (-recorded +called)\n%s", line, diff)
	}
	if next.Error != "" {
		return next, apiError(next.Error)
	}
	return next, nil
}

var longNames = map[string]string{
	"describe": "DescribeSecurityGroups", "authorize": "AuthorizeSecurityGroupIngress", "revoke": "RevokeSecurityGroupIngress",
}

func (w *world) DescribeSecurityGroups(_ context.Context, ids []string, filters []types.Filter) ([]types.SecurityGroup, error) {
	if len(filters) > 0 {
		return nil, nil // no group bears the cluster's tag
	}
	answer, err := w.call("describe", nil)
	if err != nil {
		return nil, err
	}
	if w.recording == nil {
		answer.Result.Perms = w.rules.SDK()
	}
	if w.described != nil {
		w.described()
	}
	var out []types.SecurityGroup
	for _, id := range ids {
		g := types.SecurityGroup{GroupId: &id}
		if id == group {
			g.IpPermissions, g.Tags = answer.Result.Perms, w.tags
		}
		out = append(out, g)
	}
	return out, nil
}

func (w *world) AuthorizeSecurityGroupIngress(_ context.Context, id string, perms []types.IpPermission) error {
	if _, err := w.call("authorize", perms); err != nil || w.recording != nil {
		return err
	}
	p := NewPermissions(perms)
	switch {
	case overlap(w.rules, p):
		return apiError("InvalidPermission.Duplicate")
	case w.limit > 0 && len(w.rules)+len(p) > w.limit:
		return apiError("RulesPerSecurityGroupLimitExceeded")
	}
	w.rules = w.rules.Union(p)
	return nil
}

func (w *world) RevokeSecurityGroupIngress(_ context.Context, id string, perms []types.IpPermission) error {
	if _, err := w.call("revoke", perms); err != nil || w.recording != nil {
		return err
	}
	p := NewPermissions(perms)
	if !p.Minus(w.rules).Empty() {
		return apiError("InvalidPermission.NotFound")
	}
	w.rules = w.rules.Minus(p)
	return nil
}

func (w *world) start(design string) *Reconciler {
	d, err := DesignNamed(design)
	if err != nil {
		w.t.Fatal(err)
	}
	return NewReconciler(Config{
		Design: d, EC2: w, Cluster: w, Targets: w, Now: func() time.Time { return w.now },
		Deferred:   NewDeferredQueue(SyncPeriod, func(time.Duration) time.Duration { return 0 }),
		Pause:      func(context.Context) error { return nil },
		ClusterTag: "kubernetes.io/cluster/test", OwnSources: []string{"sg-0ddd3333eeee4444f"},
	})
}

func (w *world) reconcile(r *Reconciler, name string) Outcome {
	w.t.Helper()
	out, err := r.Reconcile(context.Background(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// Given the answers that the controller's own packages got, the reference implementation makes the
// same calls in the same order with the same arguments. What happened in the cluster is seen from the
// registrations in the capture: three bindings start, another pod of web comes, mail's pod goes, api's
// pod is replaced, and 43 s later mail's pod is back.
func TestRealRuns(t *testing.T) {
	start := []change{{"web", 3000, 1}, {"api", 3008, 1}, {"mail", 8025, 1}, {"web", 3000, 2}}
	incident := append(slices.Clone(start), change{"mail", 8025, 0}, change{"api", 3008, 1}, change{"mail", 8025, 1})
	for name, changes := range map[string][]change{
		"real-run-incident": incident, "real-run-control": incident, "real-run-restart": start,
	} {
		w := newWorld(t)
		w.recording = readRecording(t, filepath.Join("..", "testdata", "captures", name, "history.ndjson"))
		for _, c := range start[:3] {
			w.pods(c.binding, c.port, 0) // all bindings exist from the start: nothing is revoked before all are computed
		}
		r := w.start("v3.4.0")
		for _, c := range changes {
			w.pods(c.binding, c.port, c.pods)
			w.reconcile(r, c.binding)
		}
		if len(w.recording) > 0 {
			t.Errorf("%s: %d recorded calls were not made, first %s", name, len(w.recording), w.recording[0].Op)
		}
	}
}

type change struct {
	binding string
	port    int32
	pods    int
}

func readRecording(t *testing.T, path string) []recorded {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := []recorded{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		var r recorded
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}
