package record_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
	"linearize.example/traces/record"
)

// client is a program with a Recorder in its configuration.
type client struct {
	ec2     *ec2.Client
	elb     *elasticloadbalancingv2.Client
	log     *record.Log
	history *bytes.Buffer
}

// newClient makes one that calls url, with three attempts and no wait between them.
func newClient(t testing.TB, url string, change func(*aws.Config)) *client {
	c := &client{history: &bytes.Buffer{}}
	var err error
	c.log, err = record.NewLog(c.history, record.Options{})
	must(t, err)
	cfg := aws.Config{
		Region: "eu-west-1", BaseEndpoint: aws.String(url),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIAEXAMPLE", SecretAccessKey: "secret"}, nil
		}),
		Retryer: func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
			})
		},
	}
	recorder := record.New(c.log, "lbc-1")
	recorder.OnError = func(err error) { t.Error(err) }
	cfg.APIOptions = append(cfg.APIOptions, recorder.APIOptions()...)
	if change != nil {
		change(&cfg)
	}
	c.ec2, c.elb = ec2.NewFromConfig(cfg), elasticloadbalancingv2.NewFromConfig(cfg)
	return c
}

// read closes the log and returns the history.
func (c *client) read(t testing.TB) *traces.History {
	t.Helper()
	must(t, c.log.Close())
	h := &traces.History{Inputs: []traces.Input{{}}}
	must(t, traces.ReadHistory(bytes.NewReader(c.history.Bytes()), h, 0))
	if in := h.Inputs[0]; in.Rejected > 0 || len(in.Notes) > 0 {
		t.Errorf("%+v\n%s", in, c.history)
	}
	return h
}

func (c *client) authorize(ctx context.Context) error {
	_, err := c.ec2.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: aws.String("sg-1"), IpPermissions: []ec2types.IpPermission{
		{IpProtocol: aws.String("tcp"), FromPort: aws.Int32(80), ToPort: aws.Int32(81), UserIdGroupPairs: []ec2types.UserIdGroupPair{{GroupId: aws.String("sg-lb"), Description: aws.String("shared")}}}}})
	return err
}

const authorized = `<AuthorizeSecurityGroupIngressResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r-1</requestId><return>true</return><securityGroupRuleSet><item>` +
	`<securityGroupRuleId>sgr-1</securityGroupRuleId><groupId>sg-1</groupId><isEgress>false</isEgress><ipProtocol>tcp</ipProtocol><fromPort>80</fromPort><toPort>81</toPort>` +
	`<referencedGroupInfo><groupId>sg-lb</groupId></referencedGroupInfo><description>shared</description></item></securityGroupRuleSet></AuthorizeSecurityGroupIngressResponse>`

const twoGroups = `<DescribeSecurityGroupsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r-2</requestId><securityGroupInfo>` +
	`<item><groupId>sg-1</groupId><ipPermissions><item><ipProtocol>tcp</ipProtocol><fromPort>80</fromPort><toPort>81</toPort><groups><item><groupId>sg-lb</groupId></item></groups></item></ipPermissions></item>` +
	`<item><groupId>sg-2</groupId><ipPermissions/></item></securityGroupInfo></DescribeSecurityGroupsResponse>`

func refusal(code string) string {
	return `<Response><Errors><Error><Code>` + code + `</Code><Message>no</Message></Error></Errors><RequestID>r-9</RequestID></Response>`
}

// reply is one answer: a status and a body, or what is done instead.
type reply struct {
	status int
	body   string
	do     func(http.ResponseWriter, *http.Request)
}

// answering serves the replies in turn, the last one again and again.
func answering(t testing.TB, replies ...reply) *httptest.Server {
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		mu.Lock()
		next := replies[0]
		if len(replies) > 1 {
			replies = replies[1:]
		}
		mu.Unlock()
		if next.do != nil {
			next.do(w, r)
			return
		}
		w.WriteHeader(next.status)
		_, _ = io.WriteString(w, next.body)
	}))
	t.Cleanup(s.Close)
	return s
}

// closes ends the connection without an answer; breaksOff after half of one; hangs waits until the client gives up.
func closes(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func breaksOff(body string) func(w http.ResponseWriter, _ *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.Header().Set("X-Amzn-Requestid", "r-header")
		_, _ = io.WriteString(w, body[:len(body)/2])
	}
}

func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// recorded prints operations and observations: "AuthorizeSecurityGroupIngress sg-1 ok r-1", "noted: …".
func recorded(h *traces.History) (lines []string) {
	for _, op := range h.Operations {
		result := map[traces.Outcome]string{traces.Pending: "pending", traces.Succeeded: "ok", traces.Failed: op.Error}[op.Outcome]
		s := strings.TrimSpace(strings.Join([]string{op.Op, op.Group, result, op.RequestID}, " "))
		if op.View != nil {
			s += fmt.Sprintf(" shows %d", len(op.View))
		}
		if len(op.Granted) > 0 {
			s += fmt.Sprintf(" granted %s", op.Granted[0].ID)
		}
		if op.Unclear {
			s += " unclear"
		}
		lines = append(lines, s)
	}
	for _, ob := range h.Observations {
		lines = append(lines, fmt.Sprintf("%s: %s", ob.Kind, ob.Text))
	}
	return lines
}

func TestMiddleware(t *testing.T) {
	describe := func(c *client) error {
		out, err := c.ec2.DescribeSecurityGroups(context.Background(), &ec2.DescribeSecurityGroupsInput{GroupIds: []string{"sg-1", "sg-2"}})
		if err == nil && len(out.SecurityGroups) != 2 {
			return fmt.Errorf("the caller got %d groups", len(out.SecurityGroups))
		}
		return err
	}
	authorize := func(c *client) error { return c.authorize(context.Background()) }
	for _, c := range []struct {
		name    string
		replies []reply
		call    func(*client) error
		fails   string // part of the error that the caller gets
		want    []string
	}{
		{"an answer", []reply{{200, authorized, nil}}, authorize, "", []string{"AuthorizeSecurityGroupIngress sg-1 ok r-1 granted sgr-1"}},
		{"an error", []reply{{400, refusal("InvalidPermission.Duplicate"), nil}}, authorize, "InvalidPermission.Duplicate", []string{"AuthorizeSecurityGroupIngress sg-1 InvalidPermission.Duplicate r-9"}},
		{"throttled at first", []reply{{503, refusal("RequestLimitExceeded"), nil}, {200, authorized, nil}}, authorize, "",
			[]string{"AuthorizeSecurityGroupIngress sg-1 RequestLimitExceeded r-9", "AuthorizeSecurityGroupIngress sg-1 ok r-1 granted sgr-1"}},
		{"an answer lost at first", []reply{{do: closes}, {400, refusal("InvalidPermission.Duplicate"), nil}}, authorize, "InvalidPermission.Duplicate",
			[]string{"AuthorizeSecurityGroupIngress sg-1 pending", "AuthorizeSecurityGroupIngress sg-1 InvalidPermission.Duplicate r-9"}},
		{"never an answer", []reply{{do: closes}}, authorize, "EOF",
			[]string{"AuthorizeSecurityGroupIngress sg-1 pending", "AuthorizeSecurityGroupIngress sg-1 pending", "AuthorizeSecurityGroupIngress sg-1 pending"}},
		{"a time-out", []reply{{do: hangs}}, func(c *client) error {
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			return c.authorize(ctx)
		}, "deadline exceeded", []string{"AuthorizeSecurityGroupIngress sg-1 pending"}},
		{"given up between attempts", []reply{{503, refusal("RequestLimitExceeded"), nil}}, func(c *client) error {
			ctx, cancel := context.WithCancel(context.Background())
			cancelling := retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { cancel(); return time.Hour, nil })
			_, err := c.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{"sg-1"}}, func(o *ec2.Options) {
				o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) { o.Backoff = cancelling })
			})
			return err
		}, "canceled", []string{"DescribeSecurityGroups sg-1 RequestLimitExceeded r-9", "noted: DescribeSecurityGroups was given up after attempt 1"}},
		{"a proxy's error", []reply{{502, "<html>", nil}, {200, authorized, nil}}, authorize, "",
			[]string{"AuthorizeSecurityGroupIngress sg-1 pending", "AuthorizeSecurityGroupIngress sg-1 ok r-1 granted sgr-1"}},
		{"a describe of two groups", []reply{{200, twoGroups, nil}}, describe, "", []string{"DescribeSecurityGroups sg-1 ok r-2 shows 1", "DescribeSecurityGroups sg-2 ok r-2 shows 0"}},
		{"a describe that breaks off", []reply{{do: breaksOff(twoGroups)}}, describe, "EOF",
			[]string{"DescribeSecurityGroups sg-1 ok r-header", "DescribeSecurityGroups sg-2 ok r-header", "noted: the answer to DescribeSecurityGroups broke off: unexpected EOF; its status is 200"}},
		{"an authorize that breaks off", []reply{{do: breaksOff(authorized)}}, authorize, "EOF",
			[]string{"AuthorizeSecurityGroupIngress sg-1 ok r-header", "noted: the answer to AuthorizeSecurityGroupIngress broke off: unexpected EOF; its status is 200"}},
		{"no credentials", nil, func(c *client) error {
			_, err := c.ec2.RevokeSecurityGroupIngress(context.Background(), &ec2.RevokeSecurityGroupIngressInput{GroupId: aws.String("sg-1")}, func(o *ec2.Options) {
				o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, errors.New("no role") })
			})
			return err
		}, "no role", []string{"noted: RevokeSecurityGroupIngress was not sent"}},
		{"an invalid call", nil, func(c *client) error {
			_, err := c.elb.RegisterTargets(context.Background(), &elasticloadbalancingv2.RegisterTargetsInput{})
			return err
		}, "missing required field", []string{"noted: RegisterTargets was not sent"}},
		{"targets", []reply{{200, `<RegisterTargetsResponse xmlns="http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/"><RegisterTargetsResult/><ResponseMetadata><RequestId>r-3</RequestId></ResponseMetadata></RegisterTargetsResponse>`, nil}}, func(c *client) error {
			_, err := c.elb.RegisterTargets(context.Background(), &elasticloadbalancingv2.RegisterTargetsInput{TargetGroupArn: aws.String("arn:tg"), Targets: []elbtypes.TargetDescription{{Id: aws.String("10.0.0.1"), Port: aws.Int32(80)}}})
			return err
		}, "", []string{"RegisterTargets  ok r-3"}},
		{"a call on neither rules nor targets", []reply{{200, `<DescribeVpcsResponse><requestId>r</requestId></DescribeVpcsResponse>`, nil}}, func(c *client) error {
			_, err := c.ec2.DescribeVpcs(context.Background(), &ec2.DescribeVpcsInput{})
			return err
		}, "", []string{"DescribeVpcs  ok r"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			program := newClient(t, answering(t, append(c.replies, reply{500, "", nil})[:max(1, len(c.replies))]...).URL, nil)
			err := c.call(program)
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("the caller gets %v", err)
			}
			h := program.read(t)
			if diff := cmp.Diff(c.want, recorded(h)); diff != "" {
				t.Errorf("-want +got\n%s\n%s", diff, program.history)
			}
			for _, op := range h.Operations {
				if op.Process != "lbc-1" || op.Caller == nil || op.Caller.AccessKeyID != "AKIAEXAMPLE" || op.Call >= op.Return {
					t.Errorf("%+v", op)
				}
			}
		})
	}
}

// TestNotConnected: what could not even be sent has failed, and says why.
func TestNotConnected(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, listener.Close())
	for name, url := range map[string]string{"refused": "http://" + listener.Addr().String(), "no such host": "http://nowhere.invalid"} {
		c := newClient(t, url, nil)
		if err := c.authorize(context.Background()); err == nil {
			t.Errorf("%s: no error", name)
		}
		h := c.read(t)
		if len(h.Operations) == 0 || len(h.Observations) > 0 {
			t.Errorf("%s: %v", name, recorded(h))
		}
		for _, op := range h.Operations {
			if op.Outcome != traces.Failed || op.Error != record.NotSent || !strings.Contains(op.Extra[0].Value, "dial tcp") {
				t.Errorf("%s: %+v", name, op)
			}
		}
	}
}

// TestRecordingFails: a program does not suffer from a recording that fails, and hears of it.
func TestRecordingFails(t *testing.T) {
	s := answering(t, reply{200, authorized, nil})
	log, err := record.NewLog(&limited{left: 60}, record.Options{})
	must(t, err)
	var told []error
	recorder := record.New(log, "lbc-1")
	recorder.OnError = func(err error) { told = append(told, err) }
	c := newClient(t, s.URL, func(cfg *aws.Config) { cfg.APIOptions = recorder.APIOptions() })
	for range 3 {
		must(t, c.authorize(context.Background()))
	}
	if len(told) != 3 || !errors.Is(told[0], errFull) {
		t.Errorf("%v", told)
	}
}

// TestRecorderTwice: a Recorder that is in the configuration and in the client's options records once.
func TestRecorderTwice(t *testing.T) {
	s := answering(t, reply{200, authorized, nil})
	c := newClient(t, s.URL, func(cfg *aws.Config) { cfg.APIOptions = append(cfg.APIOptions, cfg.APIOptions...) })
	must(t, c.authorize(context.Background()))
	if h := c.read(t); len(h.Operations) != 1 {
		t.Errorf("%v", recorded(h))
	}
}

// TestOtherServices: neither request nor answer of another service is touched, nor is a long answer lost.
func TestOtherServices(t *testing.T) {
	var history bytes.Buffer
	log, err := record.NewLog(&history, record.Options{})
	must(t, err)
	stack := middleware.NewStack("call", smithyhttp.NewStackRequest)
	for _, option := range record.New(log, "p").APIOptions() {
		must(t, option(stack))
	}
	call := func(service string, form string, body io.Reader) (int, error) {
		var read int64
		must(t, stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("reads", func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
			request := in.Request.(*smithyhttp.Request)
			request.Method = http.MethodPost
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			var err error
			in.Request, err = request.SetStream(strings.NewReader(form))
			must(t, err)
			out, metadata, err := next.HandleDeserialize(ctx, in)
			if err == nil {
				read, err = io.Copy(io.Discard, out.RawResponse.(*smithyhttp.Response).Body)
			}
			return out, metadata, err
		}), middleware.Before))
		defer func() {
			_, err := stack.Deserialize.Remove("reads")
			must(t, err)
		}()
		handler := middleware.DecorateHandler(middleware.HandlerFunc(func(_ context.Context, in any) (any, middleware.Metadata, error) {
			sent, err := io.ReadAll(in.(*smithyhttp.Request).GetStream())
			if err != nil || string(sent) != form {
				t.Errorf("%q was sent (%v)", sent, err)
			}
			return &smithyhttp.Response{Response: &http.Response{StatusCode: 200, Body: io.NopCloser(body)}}, middleware.Metadata{}, nil
		}), stack)
		_, _, err := handler.Handle(awsmiddleware.SetServiceID(context.Background(), service), nil)
		return int(read), err
	}
	const form = "Action=DescribeSecurityGroups&Version=2016-11-15&GroupId.1=sg-1"
	if n, err := call("S3", form, strings.NewReader("hello")); n != 5 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := call("S3", form, failingReader{}); n != 0 || !errors.Is(err, errFull) {
		t.Errorf("%d bytes, %v", n, err)
	}
	const long = record.MaxAnswer + 1000
	if n, err := call("EC2", form, io.LimitReader(spaces{}, long)); n != long || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := call("EC2", "nothing", strings.NewReader("")); n != 0 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	must(t, log.Close())
	h := &traces.History{Inputs: []traces.Input{{}}}
	must(t, traces.ReadHistory(&history, h, 0))
	want := []string{"DescribeSecurityGroups sg-1 ok", "noted: the answer to DescribeSecurityGroups is longer than 64 MiB; its status is 200"}
	if diff := cmp.Diff(want, recorded(h)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errFull }

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// TestObservations: what the Recorder's methods note.
func TestObservations(t *testing.T) {
	permissions, err := record.Permissions([]ec2types.IpPermission{{IpProtocol: aws.String("tcp"), FromPort: aws.Int32(80), ToPort: aws.Int32(81),
		IpRanges: []ec2types.IpRange{{CidrIp: aws.String("10.0.0.0/8"), Description: aws.String("shared")}}, Ipv6Ranges: []ec2types.Ipv6Range{{CidrIpv6: aws.String("fd00::/8")}}}})
	must(t, err)
	if _, err := record.Permissions([]ec2types.IpPermission{{}}); err == nil {
		t.Error("a permission of nothing")
	}
	var b bytes.Buffer
	log, err := record.NewLog(&b, record.Options{Now: ticking()})
	must(t, err)
	r := record.New(log, "lbc-1")
	r.Started("v3.4.0", "--sync-period=10h")
	r.LeaderElected()
	r.Reconciling("ns/web", "42", "endpoints")
	r.CacheHit("sg-1", 1500*time.Millisecond)
	r.CacheFilled("sg-1", permissions[:1])
	r.Wanted("ns/web", "sg-1", permissions)
	r.Retrying("ns/web", "sg-1", &smithy.GenericAPIError{Code: "InvalidPermission.NotFound", Message: "no"})
	r.ReconcileFailed("ns/web", errors.New("no"))
	r.Requeued("ns/web", 15*time.Second, nil)
	r.CheckpointReset("ns/web")
	r.Reconciled("ns/web")
	r.Skipped("ns/web")
	r.Deferred("ns/web")
	r.Note("hello")
	r.LeaderLost()
	must(t, log.Close())
	_, lines, _ := strings.Cut(b.String(), "\n")
	got := strings.NewReplacer(`"process":"lbc-1",`, "", `2026-11-30T10:00:00.`, "").Replace(lines)
	want := `{"observation":"started","at":"001Z","version":"v3.4.0","flags":["--sync-period=10h"]}
{"observation":"leader-elected","at":"002Z"}
{"observation":"reconciling","tgb":"ns/web","at":"003Z","reconcileId":"42","trigger":"endpoints"}
{"observation":"cache-hit","groupId":"sg-1","at":"004Z","ageSeconds":1.5}
{"observation":"cache-filled","groupId":"sg-1","at":"005Z","ipPermissions":[{"IpProtocol":"tcp","FromPort":80,"ToPort":81,"IpRanges":[{"CidrIp":"10.0.0.0/8","Description":"shared"}]}]}
{"observation":"wanted","tgb":"ns/web","groupId":"sg-1","at":"006Z","ipPermissions":[{"IpProtocol":"tcp","FromPort":80,"ToPort":81,"IpRanges":[{"CidrIp":"10.0.0.0/8","Description":"shared"}]},{"IpProtocol":"tcp","FromPort":80,"ToPort":81,"Ipv6Ranges":[{"CidrIpv6":"fd00::/8"}]}]}
{"observation":"retrying","tgb":"ns/web","groupId":"sg-1","at":"007Z","error":"InvalidPermission.NotFound"}
{"observation":"reconcile-failed","tgb":"ns/web","at":"008Z","error":"no"}
{"observation":"requeued","tgb":"ns/web","at":"009Z","afterSeconds":15}
{"observation":"checkpoint-reset","tgb":"ns/web","at":"01Z"}
{"observation":"reconciled","tgb":"ns/web","at":"011Z"}
{"observation":"skipped","tgb":"ns/web","at":"012Z"}
{"observation":"deferred","tgb":"ns/web","at":"013Z"}
{"observation":"noted","at":"014Z","text":"hello"}
{"observation":"leader-lost","at":"015Z"}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
