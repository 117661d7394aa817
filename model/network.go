package model

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// reconcileGroup takes a worker through the steps from the lock to the unlock, live, for a binding or, to
// clean the group, for none. Every decision is the one that the explored System takes; only the answers
// come from EC2.
func (r *Reconciler) reconcileGroup(ctx context.Context, binding, id string, wanted Permissions, authorizeOnly bool) error {
	if r.Design.GroupMutex {
		defer r.Lock(id)()
	}
	if binding != "" && r.Watch.Wanted != nil {
		r.Watch.Wanted(binding, id, wanted)
	}
	// The groups with the cluster's tag are listed by collectGarbage, for all groups at once.
	run := groupRun{Reconciler: r, id: id, site: Site[Permissions]{Design: &r.Design, AuthorizeOnly: authorizeOnly, Tracked: true}}
	run.site.Locked(&run.worker, wanted)
	for run.worker.Step != UnlockStep {
		if err := run.step(ctx); err != nil {
			run.err = err
		}
	}
	if run.worker.Failed {
		return run.err
	}
	return nil
}

// groupRun is one reconcile of one group.
type groupRun struct {
	*Reconciler
	id     string
	site   Site[Permissions]
	worker Worker[Permissions]
	err    error // of the last call that failed
}

// step takes one step of the worker. An error is the call's; the worker has already decided what
// follows from it.
func (g *groupRun) step(ctx context.Context) error {
	w := &g.worker
	switch w.Step {
	case Fetch:
		if cached, ok := g.fromCache(g.id); ok {
			if g.Watch.CacheHit != nil {
				g.Watch.CacheHit(g.id, CacheTTL-cached.until.Sub(g.Now()))
			}
			g.site.Viewed(w, g.see(cached.Rules))
			return nil
		}
		return g.describe(ctx, g.site.Viewed)
	case ReloadStep:
		return g.describe(ctx, g.site.Viewed)
	case RereadStep:
		return g.describe(ctx, g.site.Reread)
	case SeeGrantStep:
		return g.waitFor(ctx, g.site.SeesGrant)
	case SeeRevokeStep:
		return g.waitFor(ctx, g.site.SeesRevoke)
	case Authorize:
		err := g.authorize(ctx, g.site.Missing(w))
		g.remember(func(c *Cache[Permissions]) { g.site.Authorized(w, c, CodeOf(err)) })
		return err
	case Revoke:
		err := g.EC2.RevokeSecurityGroupIngress(ctx, g.id, g.site.Extra(w).SDK())
		g.remember(func(c *Cache[Permissions]) { g.site.Revoked(w, c, CodeOf(err)) })
		return err
	}
	return fmt.Errorf("group %s: a worker at step %d has nothing to do under the mutex", g.id, w.Step)
}

// waitFor describes the group, and pauses unless the answer shows the change.
func (g *groupRun) waitFor(ctx context.Context, sees func(*Worker[Permissions], Permissions) bool) error {
	seen := false
	err := g.describe(ctx, func(w *Worker[Permissions], view Permissions) { seen = sees(w, view) })
	if err != nil || seen {
		return err
	}
	if err := g.Pause(ctx); err != nil {
		g.site.DescribeFailed(&g.worker)
		return err
	}
	return nil
}

// see splits what EC2 says into the managed rules, which are returned, and the others.
func (g *groupRun) see(rules Permissions) Permissions {
	managed := rules.Managed()
	g.site.Foreign = rules.Minus(managed)
	g.site.Own = g.own(managed)
	return managed
}

// own returns the rules whose source is one of the process's own.
func (g *groupRun) own(rules Permissions) Permissions {
	var out Permissions
	for _, p := range rules {
		if len(p.UserIdGroupPairs) == 1 && slices.Contains(g.OwnSources, value(p.UserIdGroupPairs[0].GroupId)) {
			out = append(out, p)
		}
	}
	return out
}

// describe asks EC2 for the group, saves the answer and lets the worker go on with it.
func (g *groupRun) describe(ctx context.Context, next func(*Worker[Permissions], Permissions)) error {
	groups, err := g.EC2.DescribeSecurityGroups(ctx, []string{g.id}, nil)
	if err == nil && len(groups) != 1 {
		err = fmt.Errorf("EC2 described %d groups for the id %s", len(groups), g.id)
	}
	if err != nil {
		g.site.DescribeFailed(&g.worker)
		return err
	}
	g.save(groups[0])
	next(&g.worker, g.see(NewPermissions(groups[0].IpPermissions)))
	return nil
}

// authorize grants all rules in one call. To confirm each of several, where one that is there must not
// keep the others out, each has a call of its own, and Duplicate is no error.
func (g *groupRun) authorize(ctx context.Context, rules Permissions) error {
	if !g.site.confirms(&g.worker) {
		return g.EC2.AuthorizeSecurityGroupIngress(ctx, g.id, rules.SDK())
	}
	for i := range rules {
		err := g.EC2.AuthorizeSecurityGroupIngress(ctx, g.id, rules[i:i+1].SDK())
		if err != nil && CodeOf(err) != Duplicate {
			return err
		}
	}
	return nil
}

// remember lets change alter what is remembered of the group.
func (g *groupRun) remember(change func(*Cache[Permissions])) {
	g.memory.Lock()
	defer g.memory.Unlock()
	e := g.cache[g.id]
	change(&e.Cache)
	g.cache[g.id] = e
}

// lookUp returns the tags of groups, from the cache where it holds them, else from EC2, in one call
// (security_group_manager.go:87).
func (r *Reconciler) lookUp(ctx context.Context, ids []string) (map[string][]types.Tag, error) {
	tags := map[string][]types.Tag{}
	var missing []string
	for _, id := range ids {
		if e, ok := r.fromCache(id); ok {
			tags[id] = e.tags
		} else {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return tags, nil
	}
	slices.Sort(missing)
	groups, err := r.EC2.DescribeSecurityGroups(ctx, missing, nil)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		r.save(g)
		tags[value(g.GroupId)] = g.Tags
	}
	for _, id := range missing {
		if _, found := tags[id]; !found {
			return nil, fmt.Errorf("EC2 did not describe group %s", id)
		}
	}
	return tags, nil
}

// fromCache returns what is remembered of a group, and whether it may still be used.
func (r *Reconciler) fromCache(id string) (entry, bool) {
	r.memory.Lock()
	defer r.memory.Unlock()
	e := r.cache[id]
	return e, e.Valid && r.Now().Before(e.until)
}

// save remembers what EC2 says of a group, if the design keeps a cache.
func (r *Reconciler) save(g types.SecurityGroup) {
	rules := NewPermissions(g.IpPermissions)
	e := entry{tags: g.Tags, until: r.Now().Add(CacheTTL)}
	e.Save(&r.Design, rules)
	r.memory.Lock()
	r.cache[value(g.GroupId)] = e
	r.memory.Unlock()
	if e.Valid && r.Watch.CacheFilled != nil {
		r.Watch.CacheFilled(value(g.GroupId), rules)
	}
}

// maySkip reports whether a binding with an equal checkpoint is skipped: always in v3.4.0; only if its
// rules are seen in the group when the checkpoint verifies AWS.
func (r *Reconciler) maySkip(ctx context.Context, b Binding) (bool, error) {
	if !r.Design.CheckpointVerifiesAWS {
		return true, nil
	}
	wanted, err := r.resolveGroups(ctx, b)
	if err != nil {
		return false, err
	}
	for id, needed := range wanted {
		groups, err := r.EC2.DescribeSecurityGroups(ctx, []string{id}, nil)
		if err != nil {
			return false, fmt.Errorf("verify group %s: %w", id, err)
		}
		if len(groups) != 1 || !covers(NewPermissions(groups[0].IpPermissions).Managed(), needed) {
			return false, nil
		}
	}
	return true, nil
}

// locks are the mutexes of a process by name.
type locks struct {
	mu   sync.Mutex
	held map[string]*sync.Mutex
}

// lock takes the named mutex and returns the function that releases it.
func (l *locks) lock(name string) func() {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[string]*sync.Mutex{}
	}
	m, found := l.held[name]
	if !found {
		m = &sync.Mutex{}
		l.held[name] = m
	}
	l.mu.Unlock()
	m.Lock()
	return m.Unlock
}
