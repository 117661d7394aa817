package simulate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"linearize.example/model"
	"linearize.example/traces/record"
)

// The controller's settings of the SDK (pkg/aws/aws_config.go:45, pkg/aws/cloud_config.go:22), and the SDK's own longest
// delay between two attempts.
const (
	maxAttempts   = 10
	maxRetryDelay = 20 * time.Second
)

// callLife is how long a call may be under way; a design that waits calls out waits so long.
const callLife = 30 * time.Second

// config is the SDK's configuration of a program that calls as the given process.
func (r *run) config(ctx context.Context, process, agent string, dice *dice) aws.Config {
	id, secret := r.keys(process)
	options := []func(*middleware.Stack) error{userAgent(agent)}
	if r.live && r.log != nil {
		recorder := record.New(r.log, process)
		recorder.OnError = r.failed
		options = append(options, recorder.APIOptions()...)
	}
	return aws.Config{
		Region:      region,
		Credentials: credentials.NewStaticCredentialsProvider(id, secret, ""),
		HTTPClient:  r.transport,
		Retryer: func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.RateLimiter = ratelimit.None
				o.MaxAttempts = maxAttempts
				o.Backoff = backoff{ctx, r.clock, dice}
			})
		},
		BaseEndpoint: aws.String(r.endpoint),
		APIOptions:   options,
	}
}

// userAgent replaces the SDK's own text, as the controller does (pkg/aws/aws_config.go:86).
func userAgent(text string) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		return stack.Build.Add(middleware.BuildMiddlewareFunc("UserAgentOfTheController",
			func(ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler) (middleware.BuildOutput, middleware.Metadata, error) {
				if r, ok := in.Request.(*smithyhttp.Request); ok {
					r.Header.Set("User-Agent", text)
				}
				return next.HandleBuild(ctx, in)
			}), middleware.After)
	}
}

// backoff waits between two attempts on the clock of the run, as long as the SDK's own back-off would, and lets the SDK
// wait no more.
type backoff struct {
	ctx   context.Context
	clock Clock
	dice  *dice
}

func (b backoff) BackoffDelay(attempt int, _ error) (time.Duration, error) {
	const doublings = 5
	longest := min(time.Second<<min(attempt, doublings), maxRetryDelay)
	return 0, b.clock.Sleep(b.ctx, b.dice.below(longest, "retry"))
}

// inProcess is the HTTP client of the SDK: it hands a request to the handler as a server would, in the goroutine of the
// caller.
type inProcess struct{ handler http.Handler }

// errNoAnswer is what a client sees when the server closes the connection without an answer.
var errNoAnswer = errors.New("the connection was closed without an answer")

func (t inProcess) Do(r *http.Request) (answer *http.Response, err error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	served := r.Clone(r.Context())
	served.RequestURI, served.Host = r.URL.RequestURI(), r.URL.Host // as they are on the wire
	served.RemoteAddr = "127.0.0.1:443"
	if served.Body == nil {
		served.Body = http.NoBody
	}
	w := response{header: http.Header{}}
	defer func() {
		if reason := recover(); reason != nil {
			if reason != http.ErrAbortHandler {
				panic(reason)
			}
			answer, err = nil, errors.Join(errNoAnswer, io.ErrUnexpectedEOF, r.Context().Err())
		}
	}()
	t.handler.ServeHTTP(&w, served)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.answer(r), nil
}

// response collects what a handler writes.
type response struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *response) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

func (w *response) answer(r *http.Request) *http.Response {
	w.WriteHeader(http.StatusOK)
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}
}

// groups is model.EC2 on the SDK's client.
type groups struct {
	p      *process
	client *ec2.Client
}

func (g groups) DescribeSecurityGroups(ctx context.Context, ids []string, filters []types.Filter) ([]types.SecurityGroup, error) {
	var all []types.SecurityGroup
	in := &ec2.DescribeSecurityGroupsInput{GroupIds: ids, Filters: filters}
	for {
		out, err := g.client.DescribeSecurityGroups(ctx, in)
		if err != nil {
			return nil, err
		}
		all = append(all, out.SecurityGroups...)
		if aws.ToString(out.NextToken) == "" {
			return all, nil
		}
		in.NextToken = out.NextToken
	}
}

func (g groups) AuthorizeSecurityGroupIngress(ctx context.Context, id string, permissions []types.IpPermission) error {
	_, err := g.client.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: &id, IpPermissions: permissions})
	return g.waitOut(err)
}

func (g groups) RevokeSecurityGroupIngress(ctx context.Context, id string, permissions []types.IpPermission) error {
	_, err := g.client.RevokeSecurityGroupIngress(ctx, &ec2.RevokeSecurityGroupIngressInput{GroupId: &id, IpPermissions: permissions})
	return g.waitOut(err)
}

// waitOut lets a call without an answer come to its end, if the design does that, before anything else is begun.
func (g groups) waitOut(err error) error {
	var api smithy.APIError
	if err != nil && g.p.run.opt.Design.WaitOut && !errors.As(err, &api) {
		return errors.Join(err, g.p.run.clock.Sleep(g.p.ctx, callLife))
	}
	return err
}

// targets is model.TargetGroups on the SDK's client.
type targets struct{ client *elb.Client }

func (t targets) Targets(ctx context.Context, binding string) ([]model.Target, error) {
	out, err := t.client.DescribeTargetHealth(ctx, &elb.DescribeTargetHealthInput{TargetGroupArn: aws.String(targetGroup(binding))})
	if err != nil {
		return nil, err
	}
	var list []model.Target
	for _, d := range out.TargetHealthDescriptions {
		if d.TargetHealth != nil && d.TargetHealth.State == elbtypes.TargetHealthStateEnumDraining || d.Target == nil {
			continue
		}
		list = append(list, model.Target{Address: aws.ToString(d.Target.Id), Port: aws.ToInt32(d.Target.Port)})
	}
	slices.SortFunc(list, func(a, b model.Target) int { return strings.Compare(a.Address, b.Address) })
	return list, nil
}

func (t targets) Register(ctx context.Context, binding string, list []model.Target) error {
	_, err := t.client.RegisterTargets(ctx, &elb.RegisterTargetsInput{TargetGroupArn: aws.String(targetGroup(binding)), Targets: descriptions(list)})
	return err
}

func (t targets) Deregister(ctx context.Context, binding string, list []model.Target) error {
	_, err := t.client.DeregisterTargets(ctx, &elb.DeregisterTargetsInput{TargetGroupArn: aws.String(targetGroup(binding)), Targets: descriptions(list)})
	return err
}

func descriptions(list []model.Target) []elbtypes.TargetDescription {
	out := make([]elbtypes.TargetDescription, len(list))
	for i, t := range list {
		out[i] = elbtypes.TargetDescription{Id: aws.String(t.Address), Port: aws.Int32(t.Port)}
	}
	return out
}
