package model

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Config is what a Reconciler is told when it is made.
type Config struct {
	Design  Design
	EC2     EC2
	Cluster Cluster
	Targets TargetGroups
	// Deferred receives the bindings that were skipped.
	Deferred *DeferredQueue
	// Now is the clock.
	Now func() time.Time
	// Pause is called between the describes of a design that waits for its own change to be visible.
	Pause func(ctx context.Context) error
	// ClusterTag is the tag kubernetes.io/cluster/NAME by which groups belong to the cluster; VPC limits
	// the search for them.
	ClusterTag, VPC string
	// OwnSources are the load balancers' groups of this cluster, for designs that revoke only rules with
	// their own source.
	OwnSources []string
	// Lock, if not nil, takes the named mutex ("" for the one of the whole process) and returns the
	// function that releases it; nil: the process has mutexes of its own.
	Lock func(name string) (unlock func())
	// Watch is told what calls do not show.
	Watch Watch
}

// Watch is told of a reconcile's inner steps; functions that are nil are not.
type Watch struct {
	Wanted      func(binding, group string, rules Permissions) // what all want of a group, whose mutex is taken for one
	CacheHit    func(group string, age time.Duration)          // the group's rules are in the cache
	CacheFilled func(group string, rules Permissions)          // an answer was saved to the cache
	Deferred    func(binding string)                           // a skipped binding was queued
}

// Reconciler is one process of the controller: what it keeps in memory, and its reconciles. It may be
// used by several workers at once, each with another binding.
type Reconciler struct {
	Config

	memory     sync.Mutex // guards what follows
	computed   map[string]map[string]Permissions
	cache      map[string]entry
	tracked    map[string]bool // groups that may hold managed rules
	discovered bool            // whether the groups with the cluster's tag are tracked
}

// entry is what is remembered of one group.
type entry struct {
	Cache[Permissions]
	tags  []types.Tag
	until time.Time
}

// Outcome says how a reconcile without error ended.
type Outcome struct {
	Skipped bool // the checkpoint was equal; the binding was handed to the deferred queue
	// RequeueAfter is when to try again because the network could not be reconciled; zero: no need.
	RequeueAfter time.Duration
	Network      error // why the network could not be reconciled
}

// NewReconciler returns a process that has just started: nothing in memory. WaitOut is not its
// business: the caller elects leaders, and bounds the life of calls.
func NewReconciler(c Config) *Reconciler {
	if c.Lock == nil {
		c.Lock = new(locks).lock
	}
	return &Reconciler{
		Config: c, computed: map[string]map[string]Permissions{}, cache: map[string]entry{}, tracked: map[string]bool{},
	}
}

// Reconcile brings one binding's group rules and targets up to date (resource_manager.go:165).
func (r *Reconciler) Reconcile(ctx context.Context, name string) (Outcome, error) {
	b, err := r.Cluster.Binding(ctx, name)
	if err != nil {
		return Outcome{}, fmt.Errorf("resolve the endpoints of %s: %w", name, err)
	}
	stored, err := r.Cluster.Checkpoint(ctx, name)
	if err != nil {
		return Outcome{}, fmt.Errorf("read the checkpoint of %s: %w", name, err)
	}
	fresh := b.checkpoint()
	if stored == fresh {
		skip, err := r.maySkip(ctx, b)
		if err != nil {
			return Outcome{}, err
		}
		if skip {
			if r.Deferred.Enqueue(name, r.Now()) && r.Watch.Deferred != nil {
				r.Watch.Deferred(name)
			}
			return Outcome{Skipped: true}, nil
		}
	}
	registered, err := r.Targets.Targets(ctx, name)
	if err != nil {
		return Outcome{}, fmt.Errorf("list the targets of %s: %w", name, err)
	}
	gone, added := b.changes(registered)
	network := r.reconcileNetwork(ctx, b)
	save := func(checkpoint string) error {
		if checkpoint == stored {
			return nil
		}
		stored = checkpoint
		if err := r.Cluster.SaveCheckpoint(ctx, name, checkpoint); err != nil {
			return fmt.Errorf("save the checkpoint of %s: %w", name, err)
		}
		return nil
	}
	if len(gone) > 0 || len(added) > 0 || network != nil {
		if err := save(""); err != nil {
			return Outcome{}, err
		}
	}
	if len(gone) > 0 {
		if err := r.Targets.Deregister(ctx, name, gone); err != nil {
			return Outcome{}, fmt.Errorf("deregister targets of %s: %w", name, err)
		}
	}
	if len(added) > 0 && r.Design.MayRegister(network != nil) {
		if err := r.Targets.Register(ctx, name, added); err != nil {
			return Outcome{}, fmt.Errorf("register targets of %s: %w", name, err)
		}
	}
	if network != nil {
		return Outcome{RequeueAfter: NetworkRequeue, Network: network}, nil
	}
	if err := save(fresh); err != nil {
		return Outcome{}, err
	}
	r.Deferred.MarkProcessed(name, r.Now())
	return Outcome{}, nil
}

// ProcessDeferred empties the checkpoints of the bindings whose time in the deferred queue has come and
// returns their names: each is to be reconciled (targetgroupbinding_deferred_reconciler.go:106).
func (r *Reconciler) ProcessDeferred(ctx context.Context) ([]string, error) {
	due := r.Deferred.Due(r.Now())
	for _, name := range due {
		if err := r.Cluster.SaveCheckpoint(ctx, name, ""); err != nil {
			return nil, fmt.Errorf("empty the checkpoint of %s: %w", name, err)
		}
	}
	return due, nil
}

// reconcileNetwork stores what a binding wants, aggregates what all want, and reconciles every group
// that any of them names (networking_manager.go:216).
func (r *Reconciler) reconcileNetwork(ctx context.Context, b Binding) error {
	wanted, err := r.resolveGroups(ctx, b)
	if err != nil {
		return err
	}
	// Under a mutex per group, permissions are computed before the lock is taken.
	if !r.Design.GroupMutex {
		defer r.Lock("")()
	}
	groups, all, err := r.compute(ctx, b.Name, wanted)
	if err != nil {
		return err
	}
	var failed []error
	for _, id := range slices.Sorted(maps.Keys(groups)) {
		if err := r.reconcileGroup(ctx, b.Name, id, groups[id], !all); err != nil {
			failed = append(failed, fmt.Errorf("group %s: %w", id, err))
		}
	}
	if all {
		if err := r.collectGarbage(ctx, groups); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

// compute remembers what a binding wants and returns the wanted rules of every group, and whether
// every binding's have been computed since the start (networking_manager.go:256).
func (r *Reconciler) compute(ctx context.Context, name string, wanted map[string]Permissions) (map[string]Permissions, bool, error) {
	bindings, err := r.Cluster.Bindings(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("list the bindings: %w", err)
	}
	r.memory.Lock()
	defer r.memory.Unlock()
	r.computed[name] = wanted
	for group := range wanted {
		r.tracked[group] = true
	}
	maps.DeleteFunc(r.computed, func(known string, _ map[string]Permissions) bool { return !slices.Contains(bindings, known) })
	perGroup := map[string][]Permissions{}
	for _, known := range slices.Sorted(maps.Keys(r.computed)) {
		for group, set := range r.computed[known] {
			perGroup[group] = append(perGroup[group], set)
		}
	}
	groups := map[string]Permissions{}
	for group, sets := range perGroup {
		groups[group] = r.Design.aggregate(sets)
	}
	return groups, len(r.computed) == len(bindings), nil
}

// collectGarbage removes the managed rules of every group that no binding wants any more
// (networking_manager.go:517).
func (r *Reconciler) collectGarbage(ctx context.Context, used map[string]Permissions) error {
	r.memory.Lock()
	discovered := r.discovered
	r.memory.Unlock()
	if !discovered {
		tag, vpc := "tag:"+r.ClusterTag, "vpc-id"
		groups, err := r.EC2.DescribeSecurityGroups(ctx, nil, []types.Filter{
			{Name: &tag, Values: []string{"owned", "shared"}}, {Name: &vpc, Values: []string{r.VPC}},
		})
		if err != nil {
			return fmt.Errorf("find the cluster's groups: %w", err)
		}
		for _, g := range groups {
			r.save(g)
		}
		r.memory.Lock()
		for _, g := range groups {
			r.tracked[value(g.GroupId)] = true
		}
		r.discovered = true
		r.memory.Unlock()
	}
	r.memory.Lock()
	tracked := slices.Sorted(maps.Keys(r.tracked))
	r.memory.Unlock()
	for _, id := range tracked {
		if _, isUsed := used[id]; !isUsed {
			if err := r.reconcileGroup(ctx, "", id, nil, false); err != nil {
				return fmt.Errorf("clean group %s: %w", id, err)
			}
		}
	}
	return nil
}

// resolveGroups returns what a binding wants of each group. The describe that tells the groups of one
// interface apart happens here, outside the mutex (networking_manager.go:561).
func (r *Reconciler) resolveGroups(ctx context.Context, b Binding) (map[string]Permissions, error) {
	byGroup := map[string][]Endpoint{}
	for _, e := range b.Endpoints {
		id, err := r.resolveGroup(ctx, e.Groups)
		if err != nil {
			return nil, fmt.Errorf("endpoint %s: %w", e.Address, err)
		}
		byGroup[id] = append(byGroup[id], e)
	}
	wanted := map[string]Permissions{}
	for id, endpoints := range byGroup {
		wanted[id] = b.permissions(endpoints)
	}
	return wanted, nil
}

func (r *Reconciler) resolveGroup(ctx context.Context, ids []string) (string, error) {
	if len(ids) == 1 {
		return ids[0], nil
	}
	tags, err := r.lookUp(ctx, ids)
	if err != nil {
		return "", err
	}
	var tagged []string
	for _, id := range ids {
		if slices.ContainsFunc(tags[id], func(t types.Tag) bool { return value(t.Key) == r.ClusterTag }) {
			tagged = append(tagged, id)
		}
	}
	if len(tagged) != 1 {
		return "", fmt.Errorf("%d groups %v carry the tag %s; tag exactly one", len(tagged), tagged, r.ClusterTag)
	}
	return tagged[0], nil
}
