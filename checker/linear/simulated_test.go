package linear

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"linearize.example/traces"
	"linearize.example/traces/awsapi"
)

// stepping is a clock that only sleep moves.
type stepping struct{ now time.Time }

func (c *stepping) Now() time.Time { return c.now }

func (c *stepping) Sleep(_ context.Context, d time.Duration) error {
	c.now = c.now.Add(d)
	return nil
}

// simulated runs random calls on a simulated group, and returns the operations of both groups, the resolved ids included,
// that the wire shows.
func simulated(t *testing.T, seed uint64, network string, faults *awsapi.Faults) ([]traces.Operation, *awsapi.Simulator) {
	t.Helper()
	w, err := awsapi.LoadWorld(strings.NewReader(`{"vpcs":[` + network + `],"groups":[{"id":"sg-1"},{"id":"sg-2"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	clock := &stepping{time.Date(2026, 11, 30, 7, 0, 0, 0, time.UTC)}
	s, err := awsapi.NewSimulator(w, faults, clock)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(seed, 5))
	ids := []string{"sgr-none"}
	var ops []traces.Operation
	do := func(action string, form url.Values) {
		clock.now = clock.now.Add(time.Duration(rnd.IntN(400)) * time.Millisecond)
		asked := &awsapi.Call{Service: awsapi.EC2, Action: action, Form: form}
		call := traces.At(clock.now)
		a, err := s.Do(context.Background(), asked)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range awsapi.Operations(asked, a) {
			op.ID = fmt.Sprint("call ", len(ops))
			if op.Call, op.Return = call, traces.At(clock.now); op.Outcome == traces.Pending {
				op.Return = traces.Forever
			}
			for _, g := range op.Granted {
				ids = append(ids, g.ID)
			}
			ops = append(ops, op)
		}
	}
	put := func(form url.Values, prefix, source string) {
		port := fmt.Sprint(1 + rnd.IntN(4))
		form[prefix+"IpProtocol"], form[prefix+"FromPort"], form[prefix+"ToPort"], form[prefix+source] = []string{"tcp"}, []string{port}, []string{port}, []string{"sg-2"}
	}
	for range 120 {
		form := url.Values{"GroupId": {"sg-1"}}
		switch rnd.IntN(6) {
		case 0, 1:
			put(form, "IpPermissions.1.", "Groups.1.GroupId")
			do(traces.AuthorizeSecurityGroupIngress, form)
		case 2:
			put(form, "IpPermissions.1.", "Groups.1.GroupId")
			do(traces.RevokeSecurityGroupIngress, form)
		case 3:
			form.Set("SecurityGroupRuleId.1", ids[rnd.IntN(len(ids))])
			do(traces.RevokeSecurityGroupIngress, form)
		case 4:
			form.Set("SecurityGroupRule.1.SecurityGroupRuleId", ids[rnd.IntN(len(ids))])
			put(form, "SecurityGroupRule.1.SecurityGroupRule.", "ReferencedGroupId")
			do(traces.ModifySecurityGroupRules, form)
		case 5:
			do(traces.DescribeSecurityGroups, url.Values{"GroupId.1": {"sg-1"}})
		}
	}
	return traces.ResolveRuleIDs(ops, nil), s
}

// final is a describe, long after everything, that shows the rules as the simulator knows them.
func final(s *awsapi.Simulator, ops []traces.Operation) traces.Operation {
	at := ops[len(ops)-1].Call.Add(time.Hour)
	return traces.Operation{ID: "the end", Op: traces.DescribeSecurityGroups, Group: "sg-1", Outcome: traces.Succeeded, View: s.Rules("sg-1"), Call: at, Return: at, After: -1}
}

// What the wire shows of a simulated group is linearizable, and ends with the rules that the group has; with other rules at
// the end it is not.
func TestSimulatedIsLinearizable(t *testing.T) {
	for _, world := range []struct {
		network string
		opts    Options
	}{{`{"id":"vpc-1"}`, Options{}}, {`{"id":"vpc-1","default":true}`, Options{Lenient: true}}} {
		for seed := range uint64(12) {
			ops, s := simulated(t, seed, world.network, &awsapi.Faults{Seed: seed, RulesPerGroup: 3, Latency: awsapi.Uniform(0, 50*time.Millisecond),
				Rules: []awsapi.FaultRule{{Action: "*", Share: 0.1, Code: "RequestLimitExceeded"}}})
			empty := Initial{Others: Absent}
			end := final(s, ops)
			if got := Check(context.Background(), append(ops, end), empty, world.opts); got.All != Linearizable {
				t.Fatalf("%s, seed %d: %v %s", world.network, seed, got.All, got.Failed.Text)
			}
			end.View = append(end.View, traces.Permission{Rule: traces.Rule{Protocol: "tcp", FromPort: 9, ToPort: 9, Source: "sg-2"}})
			if got := Check(context.Background(), append(ops, end), empty, world.opts); got.All != NotLinearizable {
				t.Fatalf("%s, seed %d: with another rule in the end it is %v", world.network, seed, got.All)
			}
		}
	}
}

// Answers that were lost leave it open what the calls did, and the rules in the end are among what is possible.
func TestSimulatedLostAnswers(t *testing.T) {
	for seed := range uint64(8) {
		ops, s := simulated(t, seed, `{"id":"vpc-1"}`, &awsapi.Faults{Seed: seed,
			Rules: []awsapi.FaultRule{{Action: traces.AuthorizeSecurityGroupIngress, Share: 0.1, Lost: true}, {Action: traces.RevokeSecurityGroupIngress, Share: 0.1, Dropped: true}}})
		if got := Check(context.Background(), append(ops, final(s, ops)), Initial{Others: Absent}, Options{}); got.All != Linearizable {
			t.Fatalf("seed %d: %v", seed, got.All)
		}
	}
}

// The read lag that is measured is at most the one that was simulated, and zero without one.
func TestSimulatedReadLag(t *testing.T) {
	old := 0
	for seed := range uint64(12) {
		for _, lag := range []time.Duration{0, 1500 * time.Millisecond} {
			ops, _ := simulated(t, seed, `{"id":"vpc-1"}`, &awsapi.Faults{Seed: seed, ReadLag: awsapi.ReadLag{"*": awsapi.Fixed(lag)}})
			got := ReadLag(context.Background(), ops, Initial{Others: Absent}, Options{})
			if got.Mutations != Linearizable || got.Max > lag || got.Unexplained > 0 {
				t.Fatalf("seed %d: of a lag of %v %v is measured, %d reads are unexplained: %s", seed, lag, got.Max, got.Unexplained, got.Detail)
			}
			old += got.Stale
		}
	}
	if old == 0 {
		t.Error("no read was old")
	}
}
