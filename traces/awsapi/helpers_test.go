package awsapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/smithy-go"

	"linearize.example/traces"
	"linearize.example/traces/awsapi"
)

// clock is a clock that stands still, but for those who sleep.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

var start = time.Date(2026, 11, 30, 7, 0, 0, 0, time.UTC)

func newClock() *clock { return &clock{now: start} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return ctx.Err()
}

func (c *clock) advance(d time.Duration) { _ = c.Sleep(context.Background(), d) }

// endpoint is a simulator behind HTTP, and everything that was asked and answered.
type endpoint struct {
	*awsapi.Simulator
	clock *clock
	url   string
	ec2   *ec2.Client
	elb   *elb.Client

	mu  sync.Mutex
	ops []traces.Operation
}

func load(t testing.TB, world string) *awsapi.World {
	t.Helper()
	w, err := awsapi.LoadWorld(strings.NewReader(world))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// serve starts an endpoint. Retries of the clients are off, so that each call is one request.
func serve(t testing.TB, world string, faults *awsapi.Faults) *endpoint {
	t.Helper()
	e := &endpoint{clock: newClock()}
	var err error
	if e.Simulator, err = awsapi.NewSimulator(load(t, world), faults, e.clock); err != nil {
		t.Fatal(err)
	}
	e.KeepChanges()
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	e.url = server.URL
	config := aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("AKIDTEST", "secret", ""),
		BaseEndpoint: aws.String(server.URL), Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		HTTPClient: server.Client(),
	}
	e.ec2, e.elb = ec2.NewFromConfig(config), elb.NewFromConfig(config)
	return e
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := awsapi.ReadCall(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a, err := e.Do(r.Context(), c)
	if err != nil || a.Lost {
		e.record(awsapi.Operations(c, nil))
		panic(http.ErrAbortHandler)
	}
	e.record(awsapi.Operations(c, a))
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body)
}

func (e *endpoint) record(ops []traces.Operation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ops = append(e.ops, ops...)
}

// code is AWS's error code as the SDK reports it, "" for success, "?" for any other error.
func code(err error) string {
	var api smithy.APIError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &api):
		return api.ErrorCode()
	}
	return "?"
}

const managed = "elbv2.k8s.aws/targetGroupBinding=shared"

// from is a permission with a group as its source.
func from(group string, low, high int32) types.IpPermission {
	return types.IpPermission{
		IpProtocol: aws.String("tcp"), FromPort: aws.Int32(low), ToPort: aws.Int32(high),
		UserIdGroupPairs: []types.UserIdGroupPair{{GroupId: aws.String(group), Description: aws.String(managed)}},
	}
}

// ports lists the group's ingress rules as a describe shows them: "3000-3008".
func (e *endpoint) ports(t testing.TB, group string) []string {
	t.Helper()
	out, err := e.ec2.DescribeSecurityGroups(context.Background(), &ec2.DescribeSecurityGroupsInput{GroupIds: []string{group}})
	if err != nil {
		t.Fatal(err)
	}
	ports := []string{}
	for _, p := range out.SecurityGroups[0].IpPermissions {
		ports = append(ports, rangeOf(p))
	}
	return ports
}

// contextDone is a context that is done.
func contextDone() (context.Context, context.CancelFunc) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	return gone, cancel
}
