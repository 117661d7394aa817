package simulate

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"

	"linearize.example/model"
	"linearize.example/traces"
	"linearize.example/traces/record"
)

// describePause is how long a design that waits for its own change to be visible pauses between two describes.
const describePause = 500 * time.Millisecond

// process is one process of the controller, from its election to its end.
type process struct {
	run  *run
	name string
	dice *dice
	// ctx ends when the process dies; leading, when it no longer leads and begins nothing new.
	ctx, leading context.Context
	die, yield   context.CancelFunc
	queue        *queue
	reconciler   *model.Reconciler
	deferred     *model.DeferredQueue
	recorder     *record.Recorder // nil: nothing is recorded on this side

	mu      sync.Mutex
	workers int  // that have not ended
	drained Gate // opens when the last one has
	count   int  // reconciles begun
}

// newProcess makes a process that has just been elected.
func (r *run) newProcess() *process {
	r.generation++
	p := &process{run: r, name: fmt.Sprintf("lbc-%d", r.generation), drained: r.clock.Gate()}
	p.dice = newDice(r.clock, r.opt.Script.Seed, p.name)
	p.ctx, p.die = context.WithCancel(r.ctx)
	p.leading, p.yield = context.WithCancel(p.ctx)
	if r.log != nil {
		p.recorder = record.New(r.log, p.name)
		p.recorder.OnError = r.failed
	}
	p.queue = newQueue(p.leading, r.clock)
	p.deferred = model.NewDeferredQueue(r.opt.SyncPeriod, func(limit time.Duration) time.Duration { return p.dice.below(limit, "deferred") })
	config := r.config(p.ctx, p.name, userAgentOf(r.opt.Design), p.dice)
	p.reconciler = model.NewReconciler(model.Config{
		Design:     r.opt.Design,
		EC2:        groups{p, ec2.NewFromConfig(config)},
		Cluster:    r.cluster,
		Targets:    targets{elb.NewFromConfig(config)},
		Deferred:   p.deferred,
		Now:        r.clock.Now,
		Pause:      func(ctx context.Context) error { return r.clock.Sleep(ctx, describePause) },
		ClusterTag: clusterTag, VPC: vpc, OwnSources: r.opt.Script.sources(),
		Lock:  (&mutexes{clock: r.clock, ctx: p.ctx, held: map[string][]Gate{}}).lock,
		Watch: p.watch(),
	})
	return p
}

// start lets the process lead.
func (p *process) start() {
	p.note(func(r *record.Recorder) { r.Started(p.run.opt.Design.Name, p.run.flags()...) })
	p.note(func(r *record.Recorder) { r.LeaderElected() })
	p.run.cluster.watch(p.leading, p.queue.add)
	p.enqueueAll("start")
	p.workers = p.run.opt.Workers
	for range p.run.opt.Workers {
		p.run.clock.Go(p.work)
	}
	p.run.clock.Go(p.resync)
}

// enqueueAll adds every binding, in any order: informers list objects so.
func (p *process) enqueueAll(trigger string) {
	names, err := p.run.cluster.Bindings(p.leading)
	if err != nil {
		return // it no longer leads
	}
	p.dice.next("list").Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		p.queue.add(name, trigger)
	}
}

// work reconciles what the queue has, until the process no longer leads.
func (p *process) work() {
	for {
		name, trigger, ok := p.queue.get(p.leading)
		if !ok {
			break
		}
		p.reconcile(name, trigger)
		p.queue.done(name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.workers--; p.workers == 0 {
		p.drained.Open()
	}
}

// reconcile reconciles a binding once and queues it again as controller-runtime does.
func (p *process) reconcile(name, trigger string) {
	p.mu.Lock()
	p.count++
	id := fmt.Sprintf("%s-%d", p.name, p.count)
	p.mu.Unlock()
	p.note(func(r *record.Recorder) { r.Reconciling(name, id, trigger) })
	out, err := p.reconciler.Reconcile(p.ctx, name)
	switch {
	case p.ctx.Err() != nil:
		return
	case err != nil:
		p.note(func(r *record.Recorder) { r.ReconcileFailed(name, err) })
		p.queue.addFailed(name)
	case out.RequeueAfter > 0:
		p.note(func(r *record.Recorder) { r.Requeued(name, out.RequeueAfter, out.Network) })
		p.queue.forget(name)
		p.queue.addAfter(name, "requeue", out.RequeueAfter)
	case out.Skipped:
		p.skipped(name)
		p.queue.forget(name)
	default:
		p.note(func(r *record.Recorder) { r.Reconciled(name) })
		p.queue.forget(name)
	}
}

// skipped notes a skip with the equal checkpoint, as the controller's log has it (resource_manager.go:193): it tells whether
// the binding has endpoints.
func (p *process) skipped(name string) {
	checkpoint, err := p.run.cluster.Checkpoint(p.ctx, name)
	if err != nil || p.run.log == nil {
		return
	}
	p.run.failed(p.run.log.Note(traces.Observation{Kind: traces.Skipped, Process: p.name, TGB: name,
		Text: "Skipping targetgroupbinding reconcile, calculated hash " + checkpoint}))
}

// resync adds every binding whenever the informers' period is over. Its jitter is drawn once.
func (p *process) resync() {
	factor := 1 - model.SyncJitter + 2*model.SyncJitter*p.dice.next("resync").Float64()
	period := time.Duration(float64(p.run.opt.SyncPeriod) * factor)
	for p.run.clock.Sleep(p.leading, period) == nil {
		p.enqueueAll("resync")
	}
}

// fireDeferred empties the checkpoints of deferred bindings when their time comes, which is a change of them and has
// them reconciled. One actor of those that wait would do; which one is first does not matter.
func (p *process) fireDeferred() {
	for {
		due, any := p.deferred.Next()
		if !any || p.run.clock.Sleep(p.leading, due.Sub(p.run.clock.Now())) != nil {
			return
		}
		names, err := p.reconciler.ProcessDeferred(p.leading)
		for _, name := range names {
			p.note(func(r *record.Recorder) { r.CheckpointReset(name) })
		}
		if err != nil {
			return // it no longer leads
		}
	}
}

// watch passes on what the reconciler tells of its inner steps.
func (p *process) watch() model.Watch {
	return model.Watch{
		Wanted: func(binding, group string, rules model.Permissions) {
			p.note(func(r *record.Recorder) { r.Wanted(binding, group, p.permissions(rules)) })
		},
		CacheHit: func(group string, age time.Duration) {
			p.note(func(r *record.Recorder) { r.CacheHit(group, age) })
		},
		CacheFilled: func(group string, rules model.Permissions) {
			p.note(func(r *record.Recorder) { r.CacheFilled(group, p.permissions(rules)) })
		},
		Deferred: func(binding string) {
			p.note(func(r *record.Recorder) { r.Deferred(binding) })
			p.run.clock.Go(p.fireDeferred)
		},
	}
}

// note makes an observation. A dead process makes none.
func (p *process) note(observe func(r *record.Recorder)) {
	if p.recorder != nil && p.ctx.Err() == nil {
		observe(p.recorder)
	}
}

// retire lets the process begin nothing new; what it has begun goes on.
func (p *process) retire() {
	p.note(func(r *record.Recorder) { r.LeaderLost() })
	p.yield()
	p.queue.close()
	p.run.clock.Interrupt()
}

// permissions turns rules of the model into those of histories.
func (p *process) permissions(rules model.Permissions) []traces.Permission {
	list, err := record.Permissions(rules.SDK())
	p.run.failed(err)
	return list
}
