package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
)

// rulesOf makes a set of managed rules from "from-to" pairs.
func rulesOf(pairs ...string) Permissions {
	var listed []types.IpPermission
	for _, pair := range pairs {
		var from, to int32
		if _, err := fmt.Sscanf(pair, "%d-%d", &from, &to); err != nil {
			panic(err)
		}
		listed = append(listed, groupRule(from, to, "sg-0ddd3333eeee4444f", ManagedDescription))
	}
	return NewPermissions(listed)
}

// settledWorld has two bindings, web on 3000 and mail on 8025, and a process that knows both.
func settledWorld(t *testing.T, design string) (*world, *Reconciler) {
	w := newWorld(t)
	w.pods("web", 3000, 1)
	w.pods("mail", 8025, 1)
	r := w.start(design)
	w.reconcile(r, "web")
	w.reconcile(r, "mail")
	w.calls = nil
	return w, r
}

// The calls of one reconcile, per design and situation.
func TestCalls(t *testing.T) {
	for _, c := range []struct {
		name, design string
		arrange      func(*world, *Reconciler)
		binding      string
		calls        []string
		rules        []string
		failed       bool
	}{
		{"a narrower rule", "v3.4.0", func(w *world, _ *Reconciler) { w.pods("mail", 8025, 0) }, "mail",
			[]string{"describe", "authorize 3000-3000", "revoke 3000-8025"}, []string{"3000-3000"}, false},
		{"a narrower rule, revoking first", "v2.7.2", func(w *world, _ *Reconciler) { w.pods("mail", 8025, 0) }, "mail",
			[]string{"describe", "revoke 3000-8025", "authorize 3000-3000"}, []string{"3000-3000"}, false},
		{"nobody wants anything: the group is cleaned", "v3.4.0", func(w *world, r *Reconciler) {
			w.pods("mail", 8025, 0)
			w.reconcile(r, "mail")
			w.pods("web", 3000, 0)
			w.calls = nil
		}, "web", []string{"describe", "revoke 3000-3000"}, nil, false},
		{"an unchanged binding is skipped", "v3.4.0", func(w *world, _ *Reconciler) { w.rules = nil }, "web", nil, nil, false},
		{"an unchanged binding whose rule is gone is not", "checkpoint-verifies-aws", func(w *world, _ *Reconciler) { w.rules = nil }, "web",
			[]string{"describe", "describe", "authorize 3000-8025"}, []string{"3000-8025"}, false},
		{"an unchanged binding whose rule is there is", "checkpoint-verifies-aws", func(*world, *Reconciler) {}, "web",
			[]string{"describe"}, []string{"3000-8025"}, false},
		{"a rule that is not too wide covers", "checkpoint-verifies-aws", func(w *world, _ *Reconciler) { w.rules = rulesOf("3001-8025") }, "mail",
			[]string{"describe"}, []string{"3001-8025"}, false},
		{"the cache masks a loss", "v3.4.0", func(w *world, r *Reconciler) {
			w.pods("web", 3000, 1)
			w.reconcile(r, "web") // fills the cache
			w.rules, w.calls = nil, nil
			w.pods("web", 3000, 1)
		}, "web", nil, nil, false},
		{"after ten minutes it does not", "v3.4.0", func(w *world, r *Reconciler) {
			w.pods("web", 3000, 1)
			w.reconcile(r, "web")
			w.rules, w.calls = nil, nil
			w.pods("web", 3000, 1)
			w.now = w.now.Add(CacheTTL)
		}, "web", []string{"describe", "authorize 3000-8025"}, []string{"3000-8025"}, false},
		{"without a cache it does not either", "no-cache", func(w *world, r *Reconciler) {
			w.pods("web", 3000, 1)
			w.reconcile(r, "web")
			w.rules, w.calls = nil, nil
			w.pods("web", 3000, 1)
		}, "web", []string{"describe", "authorize 3000-8025"}, []string{"3000-8025"}, false},
		{"a written-through change needs no describe", "write-through", func(w *world, _ *Reconciler) { w.pods("mail", 8025, 0) }, "mail",
			[]string{"authorize 3000-3000", "revoke 3000-8025"}, []string{"3000-3000"}, false},
		{"Duplicate: again without the cache", "v3.4.0", func(w *world, _ *Reconciler) {
			w.pods("mail", 8025, 0)
			w.described = once(func() { w.rules = rulesOf("3000-3000", "3000-8025") })
		}, "mail", []string{"describe", "authorize 3000-3000", "describe", "revoke 3000-8025"}, []string{"3000-3000"}, false},
		{"NotFound: again without the cache", "v3.4.0", func(w *world, _ *Reconciler) {
			w.pods("mail", 8025, 0)
			w.described = once(func() { w.rules = rulesOf("1-2") })
		}, "mail", []string{"describe", "authorize 3000-3000", "revoke 3000-8025", "describe", "revoke 1-2"}, []string{"3000-3000"}, false},
		{"a second error ends it", "v3.4.0", func(w *world, _ *Reconciler) {
			w.pods("mail", 8025, 0)
			w.described = func() { w.rules = w.rules.Minus(rulesOf("3000-8025")) }
			w.rules = rulesOf("3000-8025")
			w.fail["authorize"] = apiError("InvalidPermission.Duplicate")
		}, "mail", []string{"describe", "authorize 3000-3000", "describe", "authorize 3000-3000"}, []string{"3000-3000"}, false},
		{"throttled: no second attempt", "v3.4.0", func(w *world, _ *Reconciler) {
			w.pods("mail", 8025, 0)
			w.fail["authorize"] = apiError("RequestLimitExceeded")
		}, "mail", []string{"describe", "authorize 3000-3000"}, []string{"3000-8025"}, true},
		{"the describe fails", "v3.4.0", func(w *world, _ *Reconciler) {
			w.pods("mail", 8025, 0)
			w.fail["describe"] = errors.New("timeout")
		}, "mail", []string{"describe"}, []string{"3000-8025"}, true},
		{"a full group: revoke first", "v3.4.0", func(w *world, _ *Reconciler) {
			w.pods("mail", 8025, 0)
			w.limit = 1
		}, "mail", []string{"describe", "authorize 3000-3000", "describe", "revoke 3000-8025", "authorize 3000-3000"}, []string{"3000-3000"}, false},
		{"a full group: never revoke first", "never-revoke-first", func(w *world, _ *Reconciler) {
			w.pods("mail", 8025, 0)
			w.limit = 1
		}, "mail", []string{"describe", "authorize 3000-3000"}, []string{"3000-8025"}, true},
		{"confirm what the view shows", "confirm-authorize", func(w *world, _ *Reconciler) { w.pods("web", 3000, 1) }, "web",
			[]string{"describe", "authorize 3000-8025"}, []string{"3000-8025"}, false},
		{"confirm before a revoke only", "confirm-before-revoke", func(w *world, _ *Reconciler) { w.pods("web", 3000, 1) }, "web",
			[]string{"describe"}, []string{"3000-8025"}, false},
		{"confirm before a revoke", "confirm-before-revoke", func(w *world, _ *Reconciler) {
			w.pods("web", 3000, 1)
			w.rules = rulesOf("3000-8025", "1-2")
		}, "web", []string{"describe", "authorize 3000-8025", "revoke 1-2"}, []string{"3000-8025"}, false},
		{"an empty view, guarded", "guard-view", func(w *world, _ *Reconciler) { w.pods("mail", 8025, 0) }, "mail",
			[]string{"describe", "authorize 3000-3000", "revoke 3000-8025"}, []string{"3000-3000"}, false},
		{"describe before the revoke", "guard-reread", func(w *world, _ *Reconciler) { w.pods("mail", 8025, 0) }, "mail",
			[]string{"describe", "authorize 3000-3000", "describe", "revoke 3000-8025"}, []string{"3000-3000"}, false},
		{"describe until visible", "read-your-writes", func(w *world, _ *Reconciler) { w.pods("mail", 8025, 0) }, "mail",
			[]string{"authorize 3000-3000", "describe", "revoke 3000-8025", "describe"}, []string{"3000-3000"}, false},
		{"one rule for all ports", "all-ports", func(w *world, _ *Reconciler) { w.pods("mail", 8025, 0) }, "mail",
			nil, []string{"0-65535"}, false},
		{"a rule by hand is left alone", "v3.4.0", func(w *world, _ *Reconciler) {
			w.pods("mail", 8025, 0)
			w.rules = w.rules.Union(NewPermissions([]types.IpPermission{groupRule(22, 22, "sg-me", "by hand")}))
		}, "mail", []string{"describe", "authorize 3000-3000", "revoke 3000-8025"}, []string{"22-22", "3000-3000"}, false},
		{"a rule by hand counts", "v3.4.0", func(w *world, _ *Reconciler) {
			w.pods("mail", 8025, 0)
			w.rules = w.rules.Union(NewPermissions([]types.IpPermission{groupRule(3000, 3000, "sg-0ddd3333eeee4444f", "by hand")}))
		}, "mail", []string{"describe", "revoke 3000-8025"}, []string{"3000-3000"}, false},
		{"another cluster's rule is revoked", "v3.4.0", foreignCluster, "mail",
			[]string{"describe", "authorize 3000-3000", "revoke 22-22 3000-8025"}, []string{"3000-3000"}, false},
		{"another cluster's rule is left alone", "own-rules", foreignCluster, "mail",
			[]string{"describe", "authorize 3000-3000", "revoke 3000-8025"}, []string{"22-22", "3000-3000"}, false},
		{"after a start, only grants", "v3.4.0", func(w *world, r *Reconciler) {
			*r = *w.start("v3.4.0")
			w.pods("mail", 8025, 1)
		}, "mail", []string{"describe", "authorize 8025-8025"}, []string{"3000-8025", "8025-8025"}, false},
	} {
		w, r := settledWorld(t, c.design)
		c.arrange(w, r)
		out, err := r.Reconcile(context.Background(), c.binding)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if diff := cmp.Diff(c.calls, w.calls); diff != "" {
			t.Errorf("%s: calls (-want +got)\n%s", c.name, diff)
		}
		if diff := cmp.Diff(c.rules, ports(w.rules)); diff != "" {
			t.Errorf("%s: rules (-want +got)\n%s", c.name, diff)
		}
		if (out.Network != nil) != c.failed || (out.RequeueAfter == NetworkRequeue) != c.failed {
			t.Errorf("%s: outcome %+v, failed: %v", c.name, out, c.failed)
		}
	}
}

func foreignCluster(w *world, _ *Reconciler) {
	w.pods("mail", 8025, 0)
	w.rules = w.rules.Union(NewPermissions([]types.IpPermission{groupRule(22, 22, "sg-other", ManagedDescription)}))
}

func once(f func()) func() {
	done := false
	return func() {
		if !done {
			done = true
			f()
		}
	}
}

// What a failed call leaves in the cache decides the next reconcile.
func TestCacheAfterErrors(t *testing.T) {
	for design, want := range map[string][]string{
		"v3.4.0":              {"authorize 3000-3000", "revoke 3000-8025"},
		"invalidate-on-error": {"describe", "authorize 3000-3000", "revoke 3000-8025"},
	} {
		w, r := settledWorld(t, design)
		w.pods("mail", 8025, 0)
		w.fail["authorize"] = apiError("RequestLimitExceeded")
		w.reconcile(r, "mail")
		w.calls = nil
		w.reconcile(r, "mail")
		if diff := cmp.Diff(want, w.calls); diff != "" {
			t.Errorf("%s (-want +got)\n%s", design, diff)
		}
	}
}

// Targets are registered although their port could not be opened, unless the design says no; the
// checkpoint is empty until the network part succeeds.
func TestRegistrationAfterAFailure(t *testing.T) {
	for design, registered := range map[string]int{"v3.4.0": 2, "gate-register": 1} {
		w, r := settledWorld(t, design)
		w.pods("web", 4000, 2)
		w.targets["web"] = []Target{{w.bindings["web"].Endpoints[0].Address, 4000}}
		w.pods("mail", 9000, 1)
		w.fail["describe"] = errors.New("timeout")
		out := w.reconcile(r, "web")
		if out.Network == nil || w.checkpoints["web"] != "" {
			t.Errorf("%s: %+v, checkpoint %q", design, out, w.checkpoints["web"])
		}
		if len(w.targets["web"]) != registered {
			t.Errorf("%s: %d targets, want %d", design, len(w.targets["web"]), registered)
		}
		w.reconcile(r, "web")
		if len(w.targets["web"]) != 2 || w.checkpoints["web"] == "" {
			t.Errorf("%s: after the second attempt %d targets, checkpoint %q", design, len(w.targets["web"]), w.checkpoints["web"])
		}
	}
}

// A skipped binding is deferred; when its time comes its checkpoint is emptied, and its next reconcile
// is a full one.
func TestDeferredReconcile(t *testing.T) {
	w, r := settledWorld(t, "v3.4.0")
	*r = *w.start("v3.4.0")
	if out := w.reconcile(r, "web"); !out.Skipped {
		t.Fatalf("not skipped: %+v", out)
	}
	w.rules = nil
	w.now = w.now.Add(DeferDelay - time.Second)
	if due, err := r.ProcessDeferred(context.Background()); err != nil || len(due) > 0 {
		t.Fatalf("due too early: %v %v", due, err)
	}
	w.now = w.now.Add(time.Second)
	due, err := r.ProcessDeferred(context.Background())
	if err != nil || len(due) != 1 || due[0] != "web" || w.checkpoints["web"] != "" {
		t.Fatalf("due: %v %v, checkpoint %q", due, err, w.checkpoints["web"])
	}
	w.reconcile(r, "web")
	if diff := cmp.Diff([]string{"3000-3000"}, ports(w.rules)); diff != "" {
		t.Errorf("rules (-want +got)\n%s", diff)
	}
	if out := w.reconcile(r, "web"); !out.Skipped {
		t.Errorf("the checkpoint was not stored: %+v", out)
	}
}

// A network error empties the checkpoint, also when no target changes: the pod was replaced on its address.
func TestNetworkErrorEmptiesTheCheckpoint(t *testing.T) {
	w, r := settledWorld(t, "v3.4.0")
	w.bindings["web"].Endpoints[0].Created = w.now.Add(time.Minute)
	w.fail["describe"] = errors.New("timeout")
	if out := w.reconcile(r, "web"); out.Network == nil || w.checkpoints["web"] != "" {
		t.Errorf("%+v, checkpoint %q", out, w.checkpoints["web"])
	}
}

// Several wanted rules are confirmed one by one: one that is there does not keep the others out.
func TestConfirmEach(t *testing.T) {
	w, r := settledWorld(t, "confirm-authorize")
	b := w.bindings["mail"]
	b.Spec = "with a range"
	b.Sources = append(b.Sources, Source{Protocol: "tcp", Port: 53, CIDR: "10.0.0.0/8"}, Source{Protocol: "udp", Port: 53, CIDRv6: "::/0"})
	w.reconcile(r, "mail")
	want := []string{"describe", "authorize 3000-8025", "authorize 53-53", "authorize 53-53"}
	if diff := cmp.Diff(want, w.calls); diff != "" {
		t.Errorf("calls (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"3000-8025", "53-53", "53-53"}, ports(w.rules)); diff != "" {
		t.Errorf("rules (-want +got)\n%s", diff)
	}
}

// The group of an interface with several groups is the one with the cluster's tag; the look-up goes
// through the cache.
func TestSeveralGroups(t *testing.T) {
	w, r := settledWorld(t, "v3.4.0")
	w.tags = []types.Tag{{Key: ptr("kubernetes.io/cluster/test"), Value: ptr("owned")}}
	w.pods("web", 3000, 1)
	w.bindings["web"].Endpoints[0].Groups = []string{"sg-z", group}
	w.reconcile(r, "web")
	if diff := cmp.Diff([]string{"describe"}, w.calls); diff != "" {
		t.Errorf("one describe for both uses (-want +got)\n%s", diff)
	}
	w.tags = nil
	w.now = w.now.Add(CacheTTL)
	w.pods("web", 3000, 1)
	w.bindings["web"].Endpoints[0].Groups = []string{"sg-z", group}
	if out := w.reconcile(r, "web"); out.Network == nil || !strings.Contains(out.Network.Error(), "tag exactly one") {
		t.Errorf("no group is tagged: %+v", out)
	}
}

// A pod that is replaced changes the checkpoint, even on the same address.
func TestCheckpoint(t *testing.T) {
	b := Binding{Spec: "s", Endpoints: []Endpoint{{Address: "10.0.0.1", Port: 80}, {Address: "10.0.0.2", Port: 80}}}
	swapped := Binding{Spec: "s", Endpoints: []Endpoint{b.Endpoints[1], b.Endpoints[0]}}
	if b.checkpoint() != swapped.checkpoint() {
		t.Error("the order of endpoints changes the checkpoint")
	}
	for name, change := range map[string]func(*Binding){
		"address": func(b *Binding) { b.Endpoints[0].Address = "10.0.0.3" },
		"port":    func(b *Binding) { b.Endpoints[0].Port = 81 },
		"created": func(b *Binding) { b.Endpoints[0].Created = time.Unix(1, 0) },
		"spec":    func(b *Binding) { b.Spec = "t" },
		"gone":    func(b *Binding) { b.Endpoints = b.Endpoints[:1] },
	} {
		other := Binding{Spec: "s", Endpoints: append([]Endpoint(nil), b.Endpoints...)}
		change(&other)
		if other.checkpoint() == b.checkpoint() {
			t.Errorf("%s does not change the checkpoint", name)
		}
	}
	if (Binding{}).checkpoint() == "" {
		t.Error("the checkpoint of a binding without endpoints is the empty one")
	}
}

// lockedWorld makes a world safe for several workers.
type lockedWorld struct {
	*world
	mu sync.Mutex
}

func (w *lockedWorld) DescribeSecurityGroups(ctx context.Context, ids []string, f []types.Filter) ([]types.SecurityGroup, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.world.DescribeSecurityGroups(ctx, ids, f)
}

func (w *lockedWorld) AuthorizeSecurityGroupIngress(ctx context.Context, id string, p []types.IpPermission) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.world.AuthorizeSecurityGroupIngress(ctx, id, p)
}

func (w *lockedWorld) RevokeSecurityGroupIngress(ctx context.Context, id string, p []types.IpPermission) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.world.RevokeSecurityGroupIngress(ctx, id, p)
}

// Several workers of one process may reconcile at once; the rules end up as all bindings want them.
func TestSeveralWorkers(t *testing.T) {
	for _, design := range DesignNames() {
		w := newWorld(t)
		for i := range 8 {
			w.pods(fmt.Sprint("b", i), int32(3000+i), 1)
		}
		d, err := DesignNamed(design)
		if err != nil {
			t.Fatal(err)
		}
		shared := &lockedWorld{world: w}
		now := w.now
		r := NewReconciler(Config{
			Design: d, EC2: shared, Cluster: quiet{w}, Targets: quiet{w}, Now: func() time.Time { return now },
			Deferred: NewDeferredQueue(SyncPeriod, func(time.Duration) time.Duration { return 0 }),
			Pause:    func(context.Context) error { return nil }, ClusterTag: "kubernetes.io/cluster/test",
			OwnSources: []string{"sg-0ddd3333eeee4444f"},
		})
		for range 2 {
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					if _, err := r.Reconcile(context.Background(), fmt.Sprint("b", i)); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		want := []string{"3000-3007"}
		if d.AllPorts {
			want = []string{"0-65535"}
		}
		if diff := cmp.Diff(want, ports(w.rules)); diff != "" && !d.GroupMutex {
			t.Errorf("%s: rules (-want +got)\n%s", design, diff)
		}
	}
}

// quiet is a world whose checkpoints and targets are never stored: every reconcile is a full one.
type quiet struct{ *world }

func (quiet) Checkpoint(context.Context, string) (string, error)   { return "", nil }
func (quiet) SaveCheckpoint(context.Context, string, string) error { return nil }
func (quiet) Targets(context.Context, string) ([]Target, error)    { return nil, nil }
func (quiet) Register(context.Context, string, []Target) error     { return nil }
func (quiet) Deregister(context.Context, string, []Target) error   { return nil }

// Who runs a reconciler can bring its own mutexes and is told what calls do not show.
func TestHooks(t *testing.T) {
	for design, lock := range map[string]string{"v3.4.0": "", "group-mutex": group} {
		w := newWorld(t)
		w.pods("web", 3000, 1)
		r := w.start(design)
		var told []string
		tell := func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
		r.Lock = func(name string) func() {
			tell("lock %q", name)
			return func() { tell("unlock %q", name) }
		}
		r.Watch = Watch{
			Wanted:      func(binding, id string, rules Permissions) { tell("%s wants %v of %s", binding, ports(rules), id) },
			CacheHit:    func(id string, age time.Duration) { tell("hit %s after %s", id, age) },
			CacheFilled: func(id string, rules Permissions) { tell("filled %s with %v", id, ports(rules)) },
			Deferred:    func(binding string) { tell("deferred %s", binding) },
		}
		w.pods("web", 3000, 1)
		w.reconcile(r, "web")
		w.pods("web", 3000, 2)
		w.reconcile(r, "web")
		w.now = w.now.Add(time.Second)
		w.pods("web", 3000, 1)
		w.reconcile(r, "web")
		w.now = w.now.Add(SyncPeriod)
		w.reconcile(r, "web")
		wants := "web wants [3000-3000] of " + group
		enter, leave := fmt.Sprintf("lock %q", lock), fmt.Sprintf("unlock %q", lock)
		filled, hit := "filled "+group+" with ", "hit "+group+" after "
		reconcile := func(view string) []string { return []string{enter, wants, view, leave} }
		want := slices.Concat(reconcile(filled+"[]"), reconcile(filled+"[3000-3000]"), reconcile(hit+"2s"), []string{"deferred web"})
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("%s (-want +got)\n%s", design, diff)
		}
	}
}
