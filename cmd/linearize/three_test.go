package main

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/google/go-cmp/cmp"

	"linearize.example/checker"
	"linearize.example/checker/report"
	"linearize.example/traces"
	"linearize.example/traces/awsapi"
	"linearize.example/traces/capture"
	"linearize.example/traces/record"
	"linearize.example/traces/snapshot"
)

// stepping is a clock that stands still but for what the test lets pass, and a microsecond at each look.
type stepping struct {
	mu  sync.Mutex
	now time.Time
}

func (c *stepping) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Microsecond)
	return c.now
}

func (c *stepping) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return ctx.Err()
}

// threeTimes is a run that was recorded by the endpoint, in the client, and as CloudTrail would have it.
type threeTimes struct {
	clock                      *stepping
	ec2                        *ec2.Client
	elb                        *elb.Client
	endpoint, client, trail    string
	finish                     func()
	description, source, group string
	targetGroup                string
}

func newThreeTimes(t *testing.T, faults *awsapi.Faults) *threeTimes {
	t.Helper()
	r := &threeTimes{
		clock: &stepping{now: time.Date(2026, 8, 28, 9, 55, 0, 0, time.UTC)}, description: managedDescription, source: "sg-0bbb1111bbbb2222d",
		group: "sg-0aaa1111bbbb2222c", targetGroup: "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/mailpit/0123456789abcdef",
	}
	world, err := awsapi.LoadWorld(strings.NewReader(`{"vpcs":[{"id":"vpc-0aaa1111"}],
		"groups":[{"id":"sg-0aaa1111bbbb2222c","vpc":"vpc-0aaa1111","ipPermissions":[{"IpProtocol":"tcp","FromPort":3000,"ToPort":8025,
			"UserIdGroupPairs":[{"GroupId":"sg-0bbb1111bbbb2222d","Description":"` + managedDescription + `"}]}]},
			{"id":"sg-0bbb1111bbbb2222d","vpc":"vpc-0aaa1111"}],
		"targetGroups":[{"arn":"` + r.targetGroup + `","name":"mailpit","port":8025,"protocol":"TCP","targetType":"ip","vpc":"vpc-0aaa1111",
			"targets":[{"id":"10.0.1.12","port":8025}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	simulator, err := awsapi.NewSimulator(world, faults, r.clock)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r.endpoint, r.client, r.trail = filepath.Join(dir, "endpoint"), filepath.Join(dir, "client"), filepath.Join(dir, "trail")
	open := func(dir string) *record.Log {
		log, err := record.Open(record.Options{Dir: dir, Now: r.clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		return log
	}
	log, own := open(r.endpoint), open(r.client)
	trail, err := record.NewCloudTrail(record.CloudTrailOptions{Dir: r.trail, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(record.Handler(record.HandlerOptions{
		Backend: simulator, Log: log, Sinks: []record.Sink{trail}, RequestID: record.RandomRequestID, Failed: func(err error) { t.Log(err) },
	}))
	for _, dir := range []string{r.endpoint, r.client, r.trail} {
		file, err := os.Create(filepath.Join(dir, "initial.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := snapshot.Describe(simulator.Snapshots()).Write(file); err != nil {
			t.Fatal(err)
		}
		file.Close()
	}
	r.finish = func() {
		server.Close()
		for _, c := range []interface{ Close() error }{log, own, trail} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	cfg := aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL),
		Credentials: credentials.NewStaticCredentialsProvider("AKIACONTROLLER000001", "secret", ""),
		Retryer:     func() aws.Retryer { return retry.AddWithMaxBackoffDelay(retry.NewStandard(), time.Millisecond) },
	}
	cfg.APIOptions = append(cfg.APIOptions, awsmiddleware.AddUserAgentKeyValue("elbv2.k8s.aws", "v3.4.0"))
	cfg.APIOptions = append(cfg.APIOptions, record.New(own, "controller").APIOptions()...)
	r.ec2, r.elb = ec2.NewFromConfig(cfg), elb.NewFromConfig(cfg)
	return r
}

func (r *threeTimes) permission(from, to int32) []types.IpPermission {
	return []types.IpPermission{{IpProtocol: aws.String("tcp"), FromPort: &from, ToPort: &to,
		UserIdGroupPairs: []types.UserIdGroupPair{{GroupId: &r.source, Description: &r.description}}}}
}

func (r *threeTimes) authorize(ctx context.Context, from, to int32) error {
	_, err := r.ec2.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: &r.group, IpPermissions: r.permission(from, to)})
	return err
}

func (r *threeTimes) revoke(ctx context.Context, from, to int32) error {
	_, err := r.ec2.RevokeSecurityGroupIngress(ctx, &ec2.RevokeSecurityGroupIngressInput{GroupId: &r.group, IpPermissions: r.permission(from, to)})
	return err
}

func (r *threeTimes) targets() []elbtypes.TargetDescription {
	return []elbtypes.TargetDescription{{Id: aws.String("10.0.1.12"), Port: aws.Int32(8025)}}
}

// verdicts are what a report says of the group, for comparison.
func verdicts(t *testing.T, dir string) map[string]report.Verdict {
	t.Helper()
	c, err := capture.Read(t.Context(), []string{dir}, strings.NewReader(""), capture.Options{Skew: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	r := checker.Check(t.Context(), c, checker.DefaultOptions())
	out := map[string]report.Verdict{"": r.Verdict}
	for _, g := range r.Groups {
		for _, p := range g.Properties {
			out[g.GroupID+" "+p.Name] = p.Verdict
		}
	}
	return out
}

// TestThreeRecordings: one run gives the same verdict whoever recorded it. The calls are those of the incident, with and without
// the old read; calls of one reconcile are milliseconds apart, so that CloudTrail does not tell their order.
func TestThreeRecordings(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults *awsapi.Faults
		run    func(ctx context.Context, r *threeTimes) []error
		want   map[string]report.Verdict
		// together are verdicts that differ where all three are read as one.
		together map[string]report.Verdict
	}{
		{name: "the rules stay", run: func(ctx context.Context, r *threeTimes) []error {
			errs := []error{r.authorize(ctx, 3000, 3008)}
			r.clock.Sleep(ctx, 5*time.Second)
			_, err := r.elb.DeregisterTargets(ctx, &elb.DeregisterTargetsInput{TargetGroupArn: &r.targetGroup, Targets: r.targets()})
			r.clock.Sleep(ctx, 5*time.Second)
			errs = append(errs, err, r.revoke(ctx, 3000, 8025))
			r.clock.Sleep(ctx, time.Minute)
			errs = append(errs, r.authorize(ctx, 3000, 8025))
			r.clock.Sleep(ctx, 5*time.Second)
			_, err = r.elb.RegisterTargets(ctx, &elb.RegisterTargetsInput{TargetGroupArn: &r.targetGroup, Targets: r.targets()})
			return append(errs, err, r.revoke(ctx, 3000, 3008))
		}, want: map[string]report.Verdict{"": report.Holds, "never-empty": report.Holds}},
		{name: "the incident", faults: &awsapi.Faults{ReadLag: awsapi.ReadLag{"revoke": awsapi.Fixed(1500 * time.Millisecond)}}, run: func(ctx context.Context, r *threeTimes) []error {
			errs := []error{r.authorize(ctx, 3000, 3008)}
			r.clock.Sleep(ctx, 5*time.Second)
			errs = append(errs, r.revoke(ctx, 3000, 8025))
			seen, err := r.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{r.group}})
			errs = append(errs, err)
			if err == nil && len(seen.SecurityGroups[0].IpPermissions) != 2 {
				errs = append(errs, context.Canceled) // the read was not old
			}
			_ = r.revoke(ctx, 3000, 8025) // NotFound
			r.clock.Sleep(ctx, 40*time.Second)
			errs = append(errs, r.revoke(ctx, 3000, 3008))
			r.clock.Sleep(ctx, 5*time.Second)
			_, err = r.elb.RegisterTargets(ctx, &elb.RegisterTargetsInput{TargetGroupArn: &r.targetGroup, Targets: r.targets()})
			errs = append(errs, err)
			r.clock.Sleep(ctx, 40*time.Minute)
			return append(errs, r.authorize(ctx, 3000, 8025))
		}, want: map[string]report.Verdict{"": report.Violated, "never-empty": report.Violated, "repair-bound": report.Violated}},
		{name: "answers get lost and calls are throttled", faults: &awsapi.Faults{Rules: []awsapi.FaultRule{
			{Action: traces.AuthorizeSecurityGroupIngress, Nth: []uint64{1}, Lost: true},
			{Action: traces.RevokeSecurityGroupIngress, Nth: []uint64{1, 2}, Code: "RequestLimitExceeded"},
		}}, run: func(ctx context.Context, r *threeTimes) []error {
			_ = r.authorize(ctx, 3000, 3008) // its second attempt finds the rule there
			r.clock.Sleep(ctx, 5*time.Second)
			errs := []error{r.revoke(ctx, 3000, 8025)}
			r.clock.Sleep(ctx, 5*time.Second)
			errs = append(errs, r.revoke(ctx, 3000, 3008))
			r.clock.Sleep(ctx, time.Minute)
			return append(errs, r.authorize(ctx, 3000, 8025))
		}, want: map[string]report.Verdict{"": report.Violated, "never-empty": report.Violated},
			// Nothing joins the client's attempt without an answer to the endpoint's record: it may be a call that is still to come.
			together: map[string]report.Verdict{"tight": report.Possible}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newThreeTimes(t, c.faults)
			for i, err := range c.run(t.Context(), r) {
				if err != nil {
					t.Errorf("call %d: %v", i, err)
				}
			}
			r.finish()
			want := verdicts(t, r.endpoint)
			for name, verdict := range c.want {
				key := ""
				if name != "" {
					key = r.group + " " + name
				}
				if want[key] != verdict {
					t.Errorf("recorded by the endpoint: %s is %s, want %s", name, want[key], verdict)
				}
			}
			for name, dir := range map[string]string{"in the client": r.client, "as CloudTrail": r.trail} {
				if diff := cmp.Diff(want, verdicts(t, dir)); diff != "" {
					t.Errorf("recorded %s (-by the endpoint +%[1]s):\n%s", name, diff)
				}
			}
			for name, verdict := range c.together {
				want[r.group+" "+name] = verdict
			}
			if diff := cmp.Diff(want, verdicts(t, filepath.Dir(r.endpoint))); diff != "" {
				t.Errorf("all three together (-want +got):\n%s", diff)
			}
		})
	}
}
