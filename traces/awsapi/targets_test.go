package awsapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
	"linearize.example/traces/awsapi"
)

const (
	pods    = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/pods/0123456789abcdef"
	unused  = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/unused/0123456789abcdef"
	balance = "arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/app/main/0123456789abcdef"
)

const targetGroups = `
targetGroups:
- arn: ` + pods + `
  port: 8080
  healthyAfter: 10s
  loadBalancers: [` + balance + `]
  attributes: {deregistration_delay.timeout_seconds: "30"}
  tags: {elbv2.k8s.aws/cluster: one}
  targets: [{id: 10.0.0.1}]
- {arn: ` + unused + `, targetType: instance, loadBalancers: []}
`

func (e *endpoint) register(arn string, targets ...elbtypes.TargetDescription) error {
	_, err := e.elb.RegisterTargets(ctx, &elb.RegisterTargetsInput{TargetGroupArn: &arn, Targets: targets})
	return err
}

func (e *endpoint) deregister(arn string, targets ...elbtypes.TargetDescription) error {
	_, err := e.elb.DeregisterTargets(ctx, &elb.DeregisterTargetsInput{TargetGroupArn: &arn, Targets: targets})
	return err
}

func pod(id string, port int32) elbtypes.TargetDescription {
	t := elbtypes.TargetDescription{Id: &id}
	if port != 0 {
		t.Port = &port
	}
	return t
}

// health lists what DescribeTargetHealth shows: "10.0.0.1:8080 healthy".
func (e *endpoint) health(t *testing.T, arn string, targets ...elbtypes.TargetDescription) []string {
	t.Helper()
	out, err := e.elb.DescribeTargetHealth(ctx, &elb.DescribeTargetHealthInput{TargetGroupArn: &arn, Targets: targets})
	if err != nil {
		t.Fatal(err)
	}
	all := []string{}
	for _, d := range out.TargetHealthDescriptions {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s:%d %s %s", *d.Target.Id, *d.Target.Port, d.TargetHealth.State, d.TargetHealth.Reason)))
	}
	return all
}

func TestTargets(t *testing.T) {
	e := serve(t, targetGroups, nil)
	want := func(step string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(append([]string{}, want...), e.health(t, pods)); diff != "" {
			t.Errorf("%s:\n%s", step, diff)
		}
	}
	want("at the start", "10.0.0.1:8080 healthy")
	if err := e.register(pods, pod("10.0.0.2", 0), pod("10.0.0.2", 9090), pod("10.0.0.1", 8080)); err != nil {
		t.Fatal(err)
	}
	want("after a register", "10.0.0.1:8080 healthy", "10.0.0.2:8080 initial Elb.RegistrationInProgress", "10.0.0.2:9090 initial Elb.RegistrationInProgress")
	e.clock.advance(10 * time.Second)
	want("after ten seconds", "10.0.0.1:8080 healthy", "10.0.0.2:8080 healthy", "10.0.0.2:9090 healthy")
	if err := e.deregister(pods, pod("10.0.0.2", 0), pod("10.0.0.9", 0)); err != nil {
		t.Fatal(err)
	}
	want("after a deregister without a port", "10.0.0.1:8080 healthy", "10.0.0.2:8080 draining Target.DeregistrationInProgress",
		"10.0.0.2:9090 draining Target.DeregistrationInProgress")
	if err := e.register(pods, pod("10.0.0.2", 9090)); err != nil {
		t.Fatal(err)
	}
	e.clock.advance(30 * time.Second)
	want("after the delay, one target being back", "10.0.0.1:8080 healthy", "10.0.0.2:9090 healthy")
	if diff := cmp.Diff([]string{"10.0.0.1:8080 healthy", "10.0.0.2:8080 unused Target.NotRegistered"},
		e.health(t, pods, pod("10.0.0.1", 8080), pod("10.0.0.2", 8080))); diff != "" {
		t.Error(diff)
	}
	if err := e.register(unused, pod("i-0123", 80)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"i-0123:80 unused Target.NotInUse"}, e.health(t, unused)); diff != "" {
		t.Error(diff)
	}
	if err := e.deregister(unused, pod("i-0123", 80)); err != nil {
		t.Fatal(err)
	}
	if got := e.health(t, unused); len(got) != 0 {
		t.Errorf("a group that no load balancer uses drains: %v", got)
	}
}

func TestTargetsRefuses(t *testing.T) {
	e := serve(t, targetGroups, nil)
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"a group that is not there", e.register(strings.Replace(pods, "pods", "other", 1), pod("10.0.0.1", 1)), "TargetGroupNotFound"},
		{"no ARN", e.register("pods", pod("10.0.0.1", 1)), "ValidationError"},
		{"no target", e.register(pods, []elbtypes.TargetDescription{}...), "ValidationError"},
		{"a name for an address", e.register(pods, pod("pod", 1)), "ValidationError"},
		{"an address for an instance", e.register(unused, pod("10.0.0.1", 1)), "InvalidTarget"},
		{"a port too large", e.register(pods, pod("10.0.0.1", 65536)), "ValidationError"},
		{"deregister from nowhere", e.deregister(strings.Replace(pods, "pods", "other", 1), pod("10.0.0.1", 1)), "TargetGroupNotFound"},
	} {
		if got := code(test.err); got != test.want {
			t.Errorf("%s: %v, not %q", test.name, test.err, test.want)
		}
	}
	if diff := cmp.Diff([]string{"10.0.0.1:8080 healthy"}, e.health(t, pods)); diff != "" {
		t.Error(diff)
	}
}

func TestTargetGroups(t *testing.T) {
	e := serve(t, targetGroups, nil)
	for _, test := range []struct {
		name string
		in   elb.DescribeTargetGroupsInput
		want string
	}{
		{"all", elb.DescribeTargetGroupsInput{}, "pods unused"},
		{"by name", elb.DescribeTargetGroupsInput{Names: []string{"unused"}}, "unused"},
		{"by ARN", elb.DescribeTargetGroupsInput{TargetGroupArns: []string{pods}}, "pods"},
		{"by load balancer", elb.DescribeTargetGroupsInput{LoadBalancerArn: aws.String(balance)}, "pods"},
		{"by a name that none has", elb.DescribeTargetGroupsInput{Names: []string{"other"}}, "TargetGroupNotFound"},
		{"no page", elb.DescribeTargetGroupsInput{PageSize: aws.Int32(0)}, "ValidationError"},
	} {
		out, err := e.elb.DescribeTargetGroups(ctx, &test.in)
		got := code(err)
		if err == nil {
			var names []string
			for _, g := range out.TargetGroups {
				names = append(names, *g.TargetGroupName)
			}
			got = strings.Join(names, " ")
		}
		if got != test.want {
			t.Errorf("%s: %q, not %q", test.name, got, test.want)
		}
	}
	pages := elb.NewDescribeTargetGroupsPaginator(e.elb, &elb.DescribeTargetGroupsInput{PageSize: aws.Int32(1)})
	count := 0
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		if err != nil || len(out.TargetGroups) != 1 {
			t.Fatalf("%v %+v", err, out)
		}
		count++
	}
	if count != 2 {
		t.Errorf("%d pages", count)
	}
	attributes, err := e.elb.DescribeTargetGroupAttributes(ctx, &elb.DescribeTargetGroupAttributesInput{TargetGroupArn: aws.String(pods)})
	if err != nil || !slices.ContainsFunc(attributes.Attributes, func(a elbtypes.TargetGroupAttribute) bool {
		return *a.Key == "deregistration_delay.timeout_seconds" && *a.Value == "30"
	}) {
		t.Errorf("%v %+v", err, attributes)
	}
	if _, err := e.elb.ModifyTargetGroupAttributes(ctx, &elb.ModifyTargetGroupAttributesInput{TargetGroupArn: aws.String(pods), Attributes: []elbtypes.TargetGroupAttribute{
		{Key: aws.String("deregistration_delay.timeout_seconds"), Value: aws.String("0")}}}); err != nil {
		t.Fatal(err)
	}
	if err := e.deregister(pods, pod("10.0.0.1", 0)); err != nil {
		t.Fatal(err)
	}
	if got := e.health(t, pods); len(got) != 0 {
		t.Errorf("without a delay a target drains: %v", got)
	}
}

func TestTargetGroupTags(t *testing.T) {
	e := serve(t, targetGroups, nil)
	list := func() string {
		out, err := e.elb.DescribeTags(ctx, &elb.DescribeTagsInput{ResourceArns: []string{pods, unused}})
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, d := range out.TagDescriptions {
			for _, tag := range d.Tags {
				all = append(all, *tag.Key+"="+*tag.Value)
			}
		}
		return strings.Join(all, " ")
	}
	if _, err := e.elb.AddTags(ctx, &elb.AddTagsInput{ResourceArns: []string{unused}, Tags: []elbtypes.Tag{{Key: aws.String("a"), Value: aws.String("1")}}}); err != nil {
		t.Fatal(err)
	}
	if got := list(); got != "elbv2.k8s.aws/cluster=one a=1" {
		t.Error(got)
	}
	if _, err := e.elb.RemoveTags(ctx, &elb.RemoveTagsInput{ResourceArns: []string{pods}, TagKeys: []string{"elbv2.k8s.aws/cluster"}}); err != nil {
		t.Fatal(err)
	}
	if got := list(); got != "a=1" {
		t.Error(got)
	}
	if _, err := e.elb.DescribeTags(ctx, &elb.DescribeTagsInput{ResourceArns: []string{balance}}); code(err) != "TargetGroupNotFound" {
		t.Error(err)
	}
}

func TestTargetOperations(t *testing.T) {
	e := serve(t, targetGroups, nil)
	_ = e.register(pods, pod("10.0.0.2", 0), pod("10.0.0.3", 9090))
	_ = e.deregister(strings.Replace(pods, "pods", "other", 1), pod("10.0.0.2", 8080))
	var got []traces.Operation
	for _, op := range e.ops {
		got = append(got, traces.Operation{Op: op.Op, TargetGroup: op.TargetGroup, Targets: op.Targets, Outcome: op.Outcome, Error: op.Error, Unclear: op.Unclear})
	}
	want := []traces.Operation{
		{Op: traces.RegisterTargets, TargetGroup: pods, Targets: []traces.Target{{ID: "10.0.0.2"}, {ID: "10.0.0.3", Port: 9090}}, Outcome: traces.Succeeded},
		{Op: traces.DeregisterTargets, TargetGroup: strings.Replace(pods, "pods", "other", 1), Targets: []traces.Target{{ID: "10.0.0.2", Port: 8080}},
			Outcome: traces.Failed, Error: "TargetGroupNotFound"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTargetReadLag(t *testing.T) {
	e := serve(t, targetGroups, &awsapi.Faults{ReadLag: awsapi.ReadLag{"targets": awsapi.Fixed(2 * time.Second)}})
	if err := e.register(pods, pod("10.0.0.2", 0)); err != nil {
		t.Fatal(err)
	}
	e.clock.advance(1999 * time.Millisecond)
	if got := e.health(t, pods); len(got) != 1 {
		t.Errorf("a register is visible too early: %v", got)
	}
	e.clock.advance(time.Millisecond)
	if got := e.health(t, pods); len(got) != 2 {
		t.Errorf("a register is visible too late: %v", got)
	}
}
