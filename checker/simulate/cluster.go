package simulate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"linearize.example/model"
)

// Delays of the cluster: a write to its API, and the notice of a change.
const (
	writeDelay  = 5 * time.Millisecond
	noticeDelay = 50 * time.Millisecond // at most
)

// cluster is what the controller sees of Kubernetes: bindings with their pods and their stored checkpoints.
type cluster struct {
	clock Clock
	dice  *dice
	group string // the security group of every pod's interface

	mu       sync.Mutex
	bindings []*bound // in the order of the script
	address  uint32   // of the last pod
	watchers []watcher
	pods     func() // told of every change of pods
}

// bound is a binding in the cluster.
type bound struct {
	model.Binding
	port       int32
	checkpoint string
}

// watcher is told that a binding changed, until its context ends.
type watcher struct {
	ctx  context.Context
	tell func(binding, what string)
}

func newCluster(clock Clock, group string, s *Script) *cluster {
	c := &cluster{clock: clock, dice: newDice(clock, s.Seed, "cluster"), group: group}
	for _, b := range s.Bindings {
		source := model.Source{Protocol: b.protocol(), GroupID: b.Source}
		if b.Source == "" {
			source.GroupID = BalancerGroup
		}
		at := &bound{Binding: model.Binding{Name: b.Name, Spec: b.Name, Sources: []model.Source{source}}, port: b.Port}
		for range b.Pods {
			at.Endpoints = append(at.Endpoints, c.pod(at))
		}
		c.bindings = append(c.bindings, at)
	}
	return c
}

// pod makes a new pod of a binding.
func (c *cluster) pod(b *bound) model.Endpoint {
	c.address++
	return model.Endpoint{
		Address: fmt.Sprintf("10.%d.%d.%d", c.address>>16&255, c.address>>8&255, c.address&255),
		Port:    b.port, Created: c.clock.Now(), Groups: []string{c.group},
	}
}

// change alters a binding and tells the watchers.
func (c *cluster) change(name, what string, alter func(b *bound)) {
	c.mu.Lock()
	if b := c.find(name); b != nil {
		alter(b)
	}
	if c.pods != nil {
		c.pods()
	}
	c.watchers = slices.DeleteFunc(c.watchers, func(w watcher) bool { return w.ctx.Err() != nil })
	watchers := slices.Clone(c.watchers)
	c.mu.Unlock()
	for _, w := range watchers {
		delay := c.dice.below(noticeDelay, name)
		c.clock.Go(func() {
			if c.clock.Sleep(w.ctx, delay) == nil {
				w.tell(name, what)
			}
		})
	}
}

func (c *cluster) find(name string) *bound {
	for _, b := range c.bindings {
		if b.Name == name {
			return b
		}
	}
	return nil
}

// watch tells of changes until the context ends.
func (c *cluster) watch(ctx context.Context, tell func(binding, what string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchers = append(c.watchers, watcher{ctx, tell})
}

// Bindings lists the names of all bindings.
func (c *cluster) Bindings(ctx context.Context) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := make([]string, len(c.bindings))
	for i, b := range c.bindings {
		names[i] = b.Name
	}
	return names, ctx.Err()
}

// Binding returns a binding with its pods of now.
func (c *cluster) Binding(ctx context.Context, name string) (model.Binding, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.find(name)
	if b == nil {
		return model.Binding{}, fmt.Errorf("there is no binding %s", name)
	}
	out := b.Binding
	out.Endpoints = slices.Clone(b.Endpoints)
	return out, ctx.Err()
}

// Checkpoint returns the stored checkpoint.
func (c *cluster) Checkpoint(ctx context.Context, name string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.find(name)
	if b == nil {
		return "", fmt.Errorf("there is no binding %s", name)
	}
	return b.checkpoint, ctx.Err()
}

// SaveCheckpoint stores a checkpoint, which is a change of the binding like any other: it comes back as a notice.
func (c *cluster) SaveCheckpoint(ctx context.Context, name, checkpoint string) error {
	if err := c.clock.Sleep(ctx, writeDelay); err != nil {
		return err
	}
	c.change(name, "checkpoint", func(b *bound) { b.checkpoint = checkpoint })
	return nil
}
