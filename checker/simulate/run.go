package simulate

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"linearize.example/model"
	"linearize.example/traces"
	"linearize.example/traces/awsapi"
	"linearize.example/traces/record"
)

// The controller's default of --targetgroupbinding-max-concurrent-reconciles (pkg/config/controller_config.go).
const DefaultWorkers = 3

// Beginning is the instant at which a simulated run begins.
var Beginning = time.Date(2026, 8, 28, 9, 0, 0, 0, time.UTC)

// Options say how a run is made.
type Options struct {
	Design model.Design
	Script *Script
	// Workers is how many reconciles one process does at a time; 0 means the controller's default.
	Workers int
	// SyncPeriod is the controller's --sync-period; 0 means its default.
	SyncPeriod time.Duration
	// Faults are those of the endpoint; nil means none. Their seed is the script's.
	Faults *awsapi.Faults
}

func (o Options) withDefaults() Options {
	o.Workers = cmp.Or(o.Workers, DefaultWorkers)
	o.SyncPeriod = cmp.Or(o.SyncPeriod, model.SyncPeriod)
	return o
}

// Result is what a run leaves behind.
type Result struct {
	// History is the recorded history, as on disk.
	History []byte
	// Truth is what was so, whatever was recorded.
	Truth Truth
	// Calls counts the calls that the endpoint was asked, Reconciles the reconciles, Processes those that led.
	Calls, Reconciles, Processes int
}

// run is a run in progress.
type run struct {
	opt       Options
	clock     Clock
	ctx       context.Context
	start     time.Time
	cluster   *cluster
	transport transport
	endpoint  string
	log       *record.Log // nil: nobody records here
	live      bool        // calls are recorded on this side, if at all
	keys      func(process string) (id, secret string)

	mu         sync.Mutex
	err        error // the first that is no answer of AWS, and spoils the run
	leader     *process
	processes  []*process
	generation int
}

// transport is the SDK's HTTP client.
type transport interface {
	Do(*http.Request) (*http.Response, error)
}

// failed keeps the first error that spoils the run.
func (r *run) failed(err error) {
	if err == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

// Run runs a design through a script on a virtual clock. The result depends on the options alone. An error says that the
// options cannot be used, or that recording failed.
func Run(ctx context.Context, opt Options) (*Result, error) {
	out, _, err := simulated(ctx, opt, inside{})
	return out, err
}

// inside is what only this package's tests change and look at; nil fields are left out.
type inside struct {
	// world alters the world's file.
	world func(file []byte) []byte
	// answered is told of every call as AWS knows it, whether or not the answer arrives.
	answered func(at time.Time, c *awsapi.Call, a *awsapi.Answer)
}

// simulated is Run, and returns the simulated AWS, too.
func simulated(ctx context.Context, opt Options, in inside) (*Result, *endpoint, error) {
	opt = opt.withDefaults()
	if err := opt.Script.validate(); err != nil {
		return nil, nil, err
	}
	clock := NewVirtual(Beginning)
	var history bytes.Buffer
	log, err := record.NewLog(&history, record.Options{
		Now: clock.Now, Clock: "simulated; one clock, without error", Header: header(opt),
	})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{opt: opt, clock: clock, ctx: ctx, start: clock.Now(), log: log, endpoint: "http://127.0.0.1"}
	r.keys = func(process string) (string, string) { return process, "simulated" }
	r.cluster = newCluster(clock, PodGroup, opt.Script)
	world, err := newEndpoint(r, in)
	if err != nil {
		return nil, nil, err
	}
	r.transport = inProcess{record.Handler(record.HandlerOptions{Backend: world, Log: log,
		Process: func(c traces.Caller) string { return c.AccessKeyID }})}
	r.cluster.pods = world.look
	clock.Go(func() { r.lead(0) })
	clock.Go(func() { opt.Script.play(r) })
	clock.Run(r.start.Add(time.Duration(opt.Script.Duration)))
	cancel()
	clock.Interrupt()
	clock.Drain()
	// A capture ends with its last record: without this one nobody knew how long what is still open has lasted.
	r.failed(log.Note(traces.Observation{Kind: traces.Noted, Text: "the run ends"}))
	r.failed(log.Close())
	out := &Result{History: history.Bytes(), Truth: world.truth(clock.Now()), Calls: world.calls, Processes: len(r.processes)}
	for _, p := range r.processes {
		out.Reconciles += p.count
	}
	return out, world, r.err
}

// header is what the history says of the run that it is of.
func header(opt Options) map[string]string {
	return map[string]string{"design": opt.Design.Name, "seed": fmt.Sprint(opt.Script.Seed)}
}

// flags describes how the controller was started.
func (r *run) flags() []string {
	return []string{fmt.Sprintf("--targetgroupbinding-max-concurrent-reconciles=%d", r.opt.Workers), fmt.Sprintf("--sync-period=%s", r.opt.SyncPeriod)}
}

// userAgentOf is what the controller of a design calls itself: by its release where the design is one, else as a change of v3.4.0.
func userAgentOf(d model.Design) string {
	const product = "elbv2.k8s.aws/"
	if strings.HasPrefix(d.Name, "v") {
		return product + d.Name
	}
	return product + "v3.4.0 design/" + d.Name
}

// lead lets a new process lead after a while. A design that waits calls out has its leaders wait for what the one before may
// still do.
func (r *run) lead(after time.Duration) {
	if r.clock.Sleep(r.ctx, after) != nil {
		return
	}
	p := r.newProcess()
	r.mu.Lock()
	r.leader = p
	r.processes = append(r.processes, p)
	r.mu.Unlock()
	p.start()
}

// deposed returns the leader, which is none any more; nil where nobody leads.
func (r *run) deposed() *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.leader
	r.leader = nil
	return p
}

// lease is how long it takes until somebody else leads after the leader stopped renewing.
func (r *run) lease(old *process) time.Duration {
	return leaseDuration + old.dice.below(retryPeriod, "lease")
}

// leaderChange: the leader loses its lease while it is at work.
func (r *run) leaderChange() {
	old := r.deposed()
	if old == nil {
		return
	}
	old.retire()
	if !r.opt.Design.WaitOut {
		r.clock.Go(func() { r.lead(0) })
		return
	}
	r.clock.Go(func() {
		if old.drained.Wait(r.ctx) == nil {
			r.lead(0)
		}
	})
}

// crash: the leader dies.
func (r *run) crash() {
	old := r.deposed()
	if old == nil {
		return
	}
	old.note(func(l *record.Recorder) { l.Note("the process dies") })
	old.die()
	r.clock.Interrupt()
	wait := r.lease(old)
	if r.opt.Design.WaitOut {
		wait += callLife
	}
	r.clock.Go(func() { r.lead(wait) })
}

// restart: the leader ends in order, and the next one waits for the lease.
func (r *run) restart() {
	old := r.deposed()
	if old == nil {
		return
	}
	old.retire()
	r.clock.Go(func() {
		if old.drained.Wait(r.ctx) == nil {
			r.lead(r.lease(old))
		}
	})
}

// How a leader is replaced: its lease has to run out, and the next one looks for that every two seconds (the defaults of
// controller-runtime, which does not release a lease when a process ends).
const (
	leaseDuration = 15 * time.Second
	retryPeriod   = 2 * time.Second
)

// externalRevoke removes the managed rules as somebody else's program would: it looks, and revokes what it sees.
func (r *run) externalRevoke() {
	const name = "terraform"
	client := groups{&process{run: r, ctx: r.ctx}, ec2.NewFromConfig(r.config(r.ctx, name, "APN/1.0 HashiCorp/1.0 Terraform/1.9.0", newDice(r.clock, r.opt.Script.Seed, name)))}
	seen, err := client.DescribeSecurityGroups(r.ctx, []string{PodGroup}, nil)
	if err != nil || len(seen) != 1 {
		return // it would be tried again another day
	}
	if managed := model.NewPermissions(seen[0].IpPermissions).Managed(); !managed.Empty() {
		// An error is in the history; somebody else need not care.
		_ = client.RevokeSecurityGroupIngress(r.ctx, PodGroup, managed.SDK())
	}
}
