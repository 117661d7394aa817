package simulate

import (
	"context"
	"fmt"
	"math/rand/v2"
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

// dice are seeded random numbers that several actors may draw.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

// newDice returns the stream of a purpose: each has its own, so that a change of one does not shift the others.
func newDice(seed uint64, purpose string) *dice {
	var h uint64 = 14695981039346656037 // FNV-1a
	for _, b := range []byte(purpose) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return &dice{r: rand.New(rand.NewPCG(seed, h))}
}

// below draws a duration from [0, limit).
func (d *dice) below(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(d.r.Int64N(int64(limit)))
}

// between draws a duration from [low, high).
func (d *dice) between(low, high time.Duration) time.Duration { return low + d.below(high-low) }

// share draws from [0, 1).
func (d *dice) share() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.Float64()
}

// shuffle puts n things into a random order.
func (d *dice) shuffle(n int, swap func(i, j int)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.r.Shuffle(n, swap)
}

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
	c := &cluster{clock: clock, dice: newDice(s.Seed, "cluster"), group: group}
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
		delay := c.dice.below(noticeDelay)
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
