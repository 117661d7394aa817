package simulate

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"linearize.example/traces/record"
)

// LiveOptions say how a run in real time is made.
type LiveOptions struct {
	// Endpoint is the URL of a running `linearize record` whose world is that of the script (Script.WriteWorld).
	Endpoint string
	// Speed is how many times faster than real time the controller's clock goes.
	Speed float64
	// History gets what the controller's side recorded, in real time; nil: nothing is recorded here.
	History io.Writer
}

// RunLive runs a design through a script in real time. Two runs are never the same. The result has no truth, and no history
// but the one that was written. Access keys are those of the environment, else each process has one of its own name, so
// that the endpoint can tell them apart.
func RunLive(ctx context.Context, opt Options, live LiveOptions) (*Result, error) {
	opt = opt.withDefaults()
	if err := opt.Script.validate(); err != nil {
		return nil, err
	}
	clock := NewWall(live.Speed)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{opt: opt, clock: clock, ctx: ctx, start: clock.Now(), endpoint: live.Endpoint, live: true,
		transport: &http.Client{Timeout: callLife}, keys: environmentKeys}
	if live.History != nil {
		header := header(opt)
		var err error
		r.log, err = record.NewLog(live.History, record.Options{Header: header, Clock: "wall clock; " + timesFaster(live.Speed)})
		if err != nil {
			return nil, err
		}
	}
	r.cluster = newCluster(clock, PodGroup, opt.Script)
	if err := r.reachable(); err != nil {
		return nil, err
	}
	clock.Go(func() { r.lead(0) })
	clock.Go(func() { opt.Script.play(r) })
	err := clock.Sleep(ctx, time.Duration(opt.Script.Duration))
	cancel()
	clock.Wait()
	if r.log != nil {
		r.failed(r.log.Close())
	}
	r.failed(err)
	out := &Result{Processes: len(r.processes)}
	for _, p := range r.processes {
		out.Reconciles += p.count
	}
	return out, r.err
}

func timesFaster(speed float64) string {
	if speed == 1 {
		return "the controller's own"
	}
	return "the controller's goes " + strconv.FormatFloat(speed, 'g', -1, 64) + " times faster"
}

// environmentKeys are the access key of the environment, or one of the process's name.
func environmentKeys(process string) (id, secret string) {
	id, secret = os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")
	if id == "" {
		return process, "simulated"
	}
	return id, secret
}

// reachable asks the endpoint for the pods' group once, before anything depends on it.
func (r *run) reachable() error {
	client := ec2.NewFromConfig(r.config(r.ctx, "linearize", "linearize", newDice(r.clock, 0, "")))
	_, err := client.DescribeSecurityGroups(r.ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{PodGroup}},
		func(o *ec2.Options) { o.RetryMaxAttempts = 1 })
	if err != nil {
		return fmt.Errorf("%s: %w; it has to be a `linearize record --simulate` of the world that --write-world writes", r.endpoint, err)
	}
	return nil
}
