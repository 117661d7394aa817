package evidence

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"linearize.example/model"
)

// Cost is what a design costs: calls to EC2 by situation, and the time until lost rules are back.
type Cost struct {
	Design string       `json:"design"`
	Calls  []Calls      `json:"calls"`
	Repair []RepairTime `json:"repair"`
}

// Calls counts the calls of one reconcile.
type Calls struct {
	Situation string `json:"situation"`
	Describe  int    `json:"describe"`
	Authorize int    `json:"authorize"`
	Revoke    int    `json:"revoke"`
}

func (c Calls) total() int { return c.Describe + c.Authorize + c.Revoke }

// seed makes the simulated jitter the same each time.
const seed = 20260828

// measure runs the live reconciler of a design through the situations of a group that two bindings
// share, against a group in memory whose reads are never old, and counts its calls.
func measure(d model.Design, repair []RepairTime) (Cost, error) {
	w := newWorkbench()
	r := model.NewReconciler(model.Config{
		Design: d, EC2: w, Cluster: w, Targets: w, Now: func() time.Time { return w.now },
		Deferred:   model.NewDeferredQueue(model.SyncPeriod, func(time.Duration) time.Duration { return 0 }),
		Pause:      func(context.Context) error { return nil },
		ClusterTag: "kubernetes.io/cluster/bench", OwnSources: []string{"sg-lb"},
	})
	cost := Cost{Design: d.Name, Repair: repair}
	for _, step := range []struct {
		situation string
		change    func()
		binding   string
	}{
		{"first binding after a start", func() { w.pod("web", 3000) }, "web"},
		{"second binding: a wider rule, the old one goes", func() { w.pod("mail", 8025) }, "mail"},
		{"another pod, same ports, cache cold", func() { w.pod("web", 3000) }, "web"},
		{"another pod, same ports, cache warm", func() { w.pod("web", 3000) }, "web"},
		{"the last pod of a port goes: a narrower rule", func() { w.noPod("mail") }, "mail"},
		{"nothing changed: the checkpoint is equal", func() {}, "web"},
	} {
		step.change()
		w.count = Calls{Situation: step.situation}
		if _, err := r.Reconcile(context.Background(), step.binding); err != nil {
			return Cost{}, fmt.Errorf("measure %s: %w", d.Name, err)
		}
		cost.Calls = append(cost.Calls, w.count)
	}
	return cost, nil
}

// workbench is a cluster with two bindings, a load balancer and one group, in memory.
type workbench struct {
	now         time.Time
	endpoints   map[string][]model.Endpoint
	checkpoints map[string]string
	targets     map[string][]model.Target
	rules       model.Permissions
	count       Calls
}

const benchGroup = "sg-pods"

func newWorkbench() *workbench {
	return &workbench{
		now: time.Date(2026, 8, 28, 9, 0, 0, 0, time.UTC), endpoints: map[string][]model.Endpoint{"web": nil, "mail": nil},
		checkpoints: map[string]string{}, targets: map[string][]model.Target{},
	}
}

func (w *workbench) pod(binding string, port int32) {
	w.now = w.now.Add(time.Second)
	w.endpoints[binding] = append(w.endpoints[binding], model.Endpoint{
		Address: fmt.Sprintf("10.0.0.%d", w.now.Second()), Port: port, Created: w.now, Groups: []string{benchGroup},
	})
}

func (w *workbench) noPod(binding string) { w.endpoints[binding] = nil }

// Bindings implements model.Cluster, as the three methods below do.
func (w *workbench) Bindings(context.Context) ([]string, error) { return []string{"mail", "web"}, nil }

// Binding returns a binding whose pods are reached from one load balancer.
func (w *workbench) Binding(_ context.Context, name string) (model.Binding, error) {
	return model.Binding{
		Name: name, Spec: name, Endpoints: w.endpoints[name], Sources: []model.Source{{Protocol: "tcp", GroupID: "sg-lb"}},
	}, nil
}

// Checkpoint returns what was stored.
func (w *workbench) Checkpoint(_ context.Context, name string) (string, error) {
	return w.checkpoints[name], nil
}

// SaveCheckpoint stores a checkpoint.
func (w *workbench) SaveCheckpoint(_ context.Context, name, checkpoint string) error {
	w.checkpoints[name] = checkpoint
	return nil
}

// Targets implements model.TargetGroups, as the two methods below do.
func (w *workbench) Targets(_ context.Context, binding string) ([]model.Target, error) {
	return w.targets[binding], nil
}

// Register adds targets.
func (w *workbench) Register(_ context.Context, binding string, targets []model.Target) error {
	w.targets[binding] = append(w.targets[binding], targets...)
	return nil
}

// Deregister removes targets.
func (w *workbench) Deregister(_ context.Context, binding string, targets []model.Target) error {
	w.targets[binding] = slices.DeleteFunc(w.targets[binding], func(t model.Target) bool { return slices.Contains(targets, t) })
	return nil
}

// DescribeSecurityGroups implements model.EC2, as the two methods below do. No group bears the cluster's tag.
func (w *workbench) DescribeSecurityGroups(_ context.Context, ids []string, filters []types.Filter) ([]types.SecurityGroup, error) {
	w.count.Describe++
	if len(filters) > 0 {
		return nil, nil
	}
	id := benchGroup
	return []types.SecurityGroup{{GroupId: &id, IpPermissions: w.rules.SDK()}}, nil
}

// AuthorizeSecurityGroupIngress adds all rules or none.
func (w *workbench) AuthorizeSecurityGroupIngress(_ context.Context, _ string, listed []types.IpPermission) error {
	w.count.Authorize++
	p := model.NewPermissions(listed)
	if len(p.Minus(w.rules)) < len(p) {
		return codedError("InvalidPermission.Duplicate")
	}
	w.rules = w.rules.Union(p)
	return nil
}

// RevokeSecurityGroupIngress removes all rules or none.
func (w *workbench) RevokeSecurityGroupIngress(_ context.Context, _ string, listed []types.IpPermission) error {
	w.count.Revoke++
	p := model.NewPermissions(listed)
	if !p.Minus(w.rules).Empty() {
		return codedError("InvalidPermission.NotFound")
	}
	w.rules = w.rules.Minus(p)
	return nil
}

// codedError is an error with AWS's code.
type codedError string

func (e codedError) Error() string { return string(e) }

// ErrorCode is AWS's code.
func (e codedError) ErrorCode() string { return string(e) }
