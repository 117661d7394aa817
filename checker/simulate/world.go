package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"linearize.example/traces"
	"linearize.example/traces/awsapi"
)

// The world of a script: the pods' group, the balancer's, and a target group for each binding.
const (
	region  = "us-east-1"
	account = "123456789012"
	vpc     = "vpc-0aaa1111bbbb2222c"
	// PodGroup is the group on the pods' interfaces, whose rules are at stake.
	PodGroup = "sg-0aaa1111bbbb2222c"
	// BalancerGroup is the load balancer's group, the source of the rules.
	BalancerGroup = "sg-0ddd3333eeee4444f"
	clusterTag    = "kubernetes.io/cluster/test"
)

// targetGroup is the ARN of a binding's target group.
func targetGroup(binding string) string {
	h := fnv.New64a()
	h.Write([]byte(binding))
	return fmt.Sprintf("arn:aws:elasticloadbalancing:%s:%s:targetgroup/%s/%016x", region, account, targetGroupName(binding), h.Sum64())
}

// targetGroupName is the binding's name in the letters and the length that a target group's name may have.
func targetGroupName(binding string) string {
	const most = 32
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, binding)
	return name[:min(len(name), most)]
}

// WriteWorld writes the world of a script in the form that `linearize record --simulate` takes.
func (s *Script) WriteWorld(w io.Writer) error {
	type object map[string]any
	groups := []object{{"id": PodGroup, "name": "pods", "tags": object{clusterTag: "owned"}}}
	for i, id := range s.sources() {
		groups = append(groups, object{"id": id, "name": fmt.Sprintf("balancer-%d", i+1)})
	}
	var targetGroups []object
	for _, b := range s.Bindings {
		targetGroups = append(targetGroups, object{"arn": targetGroup(b.Name), "protocol": strings.ToUpper(b.protocol()), "port": b.Port, "targetType": "ip"})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(object{"account": account, "region": region, "vpcs": []object{{"id": vpc, "cidr": "10.0.0.0/8"}},
		"groups": groups, "targetGroups": targetGroups})
}

// How long a request and its answer are under way, each: calls of EC2 take some tenths of a second.
const (
	leastTransit = 20 * time.Millisecond
	mostTransit  = 200 * time.Millisecond
)

// endpoint is the simulated AWS at the end of a network. It follows the truth of the run.
type endpoint struct {
	run  *run
	sim  *awsapi.Simulator
	dice *dice

	mu         sync.Mutex
	calls      int
	registered map[string][]string // target group → addresses
	samples    []sample
	answered   func(at time.Time, c *awsapi.Call, a *awsapi.Answer)
}

func newEndpoint(r *run, in inside) (*endpoint, error) {
	var file bytes.Buffer
	if err := r.opt.Script.WriteWorld(&file); err != nil {
		return nil, err
	}
	text := file.Bytes()
	if in.world != nil {
		text = in.world(text)
	}
	world, err := awsapi.LoadWorld(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	faults := awsapi.Faults{}
	if r.opt.Faults != nil {
		faults = *r.opt.Faults
	}
	faults.Seed = r.opt.Script.Seed
	e := &endpoint{run: r, dice: newDice(r.clock, r.opt.Script.Seed, "network"), registered: map[string][]string{}, answered: in.answered}
	if e.sim, err = awsapi.NewSimulator(world, &faults, r.clock); err != nil {
		return nil, err
	}
	e.sim.KeepChanges()
	e.look()
	return e, nil
}

// Do lets a call travel, take effect, and its answer travel back.
func (e *endpoint) Do(ctx context.Context, c *awsapi.Call) (*awsapi.Answer, error) {
	e.mu.Lock()
	e.calls++
	e.mu.Unlock()
	if err := e.run.clock.Sleep(ctx, e.dice.between(leastTransit, mostTransit, c.Process+c.Action)); err != nil {
		return nil, err
	}
	a, err := e.sim.Do(ctx, c)
	if err != nil {
		return nil, err
	}
	e.follow(c, a)
	if e.answered != nil {
		e.answered(e.run.clock.Now(), c, a)
	}
	e.look()
	if err := e.run.clock.Sleep(ctx, e.dice.between(leastTransit, mostTransit, c.Process+c.Action)); err != nil {
		return nil, err
	}
	return a, nil
}

// follow keeps account of the registered targets. A call whose answer is lost has one all the same.
func (e *endpoint) follow(c *awsapi.Call, a *awsapi.Answer) {
	if a.Status != http.StatusOK {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, op := range awsapi.Operations(c, nil) {
		for _, t := range op.Targets {
			list := e.registered[op.TargetGroup]
			switch i := slices.Index(list, t.ID); {
			case op.Op == traces.RegisterTargets && i < 0:
				e.registered[op.TargetGroup] = append(list, t.ID)
			case op.Op == traces.DeregisterTargets && i >= 0:
				e.registered[op.TargetGroup] = slices.Delete(list, i, i+1)
			}
		}
	}
}

// look takes note of what is needed from this instant on.
func (e *endpoint) look() {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := sample{at: e.run.clock.Now()}
	for _, b := range e.run.cluster.bindings {
		n := need{b.Sources[0].Protocol, b.port, b.Sources[0].GroupID}
		if len(b.Endpoints) > 0 {
			now.wanted = append(now.wanted, n)
		}
		registered := e.registered[targetGroup(b.Name)]
		if len(registered) > 0 {
			now.called = append(now.called, n)
		}
		if slices.ContainsFunc(registered, b.has) {
			now.needs = append(now.needs, n)
		}
	}
	e.samples = append(e.samples, now)
}

// truth tells what was so until the end.
func (e *endpoint) truth(end time.Time) Truth {
	return truthOf(e.sim.Changes(PodGroup), e.samples, end)
}

// has reports whether a pod of the binding has the address.
func (b *bound) has(address string) bool {
	for _, p := range b.Endpoints {
		if p.Address == address {
			return true
		}
	}
	return false
}
