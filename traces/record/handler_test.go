package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
	"linearize.example/traces/awsapi"
)

// stubBackend answers with whatever the test wants.
type stubBackend struct {
	mu    sync.Mutex
	calls []string
	do    func(ctx context.Context, c *awsapi.Call) (*awsapi.Answer, error)
}

func (s *stubBackend) Do(ctx context.Context, c *awsapi.Call) (*awsapi.Answer, error) {
	s.mu.Lock()
	s.calls = append(s.calls, c.Action)
	s.mu.Unlock()
	if s.do != nil {
		return s.do(ctx, c)
	}
	return grantedAnswer(c), nil
}

// grantedAnswer is the success of a call without a result.
func grantedAnswer(c *awsapi.Call) *awsapi.Answer {
	return &awsapi.Answer{Status: 200, RequestID: c.ID, Body: fmt.Appendf(nil,
		`<%[1]sResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>%[2]s</requestId><return>true</return></%[1]sResponse>`, c.Action, c.ID)}
}

// memory is a history in memory that fails from a size on.
type memory struct {
	mu    sync.Mutex
	b     bytes.Buffer
	limit int
}

func (f *memory) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.limit > 0 && f.b.Len()+len(p) > f.limit {
		return 0, errors.New("no space left on device")
	}
	return f.b.Write(p)
}

func (f *memory) history(t *testing.T) *traces.History {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	h := &traces.History{Inputs: make([]traces.Input, 1)}
	if err := traces.ReadHistory(bytes.NewReader(f.b.Bytes()), h, 0); err != nil {
		t.Fatal(err)
	}
	return h
}

// testEndpoint is a server that records into f.
func testEndpoint(t *testing.T, f *memory, o HandlerOptions) *httptest.Server {
	t.Helper()
	var err error
	if o.Log, err = NewLog(f, Options{Sync: true}); err != nil {
		t.Fatal(err)
	}
	if _, proxy := o.Backend.(*awsapi.Upstream); !proxy {
		var ids atomic.Int64
		o.RequestID = func() string { return fmt.Sprint("r-", ids.Add(1)) }
	}
	if o.Failed == nil {
		o.Failed = func(err error) { t.Log(err) }
	}
	server := httptest.NewServer(Handler(o))
	t.Cleanup(server.Close)
	return server
}

// authorizeForm is the form of a call that opens a port of sg-1.
func authorizeForm(port string) string {
	return url.Values{
		"Action": {traces.AuthorizeSecurityGroupIngress}, "Version": {"2016-11-15"}, "GroupId": {"sg-1"},
		"IpPermissions.1.IpProtocol": {"tcp"}, "IpPermissions.1.FromPort": {port}, "IpPermissions.1.ToPort": {port},
		"IpPermissions.1.IpRanges.1.CidrIp": {"10.0.0.0/8"},
	}.Encode()
}

func postForm(ctx context.Context, server *httptest.Server, form string, change ...func(*http.Request)) (status int, body string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(form))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("User-Agent", "elbv2.k8s.aws/v3.4.0")
	for _, f := range change {
		f(r)
	}
	answer, err := server.Client().Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(content), err
}

// recordedCall is what the tests look at of an operation.
type recordedCall struct {
	Op, Group, Process, RequestID, Error string
	Outcome                              traces.Outcome
	Ended                                bool
}

func recordedCalls(ops []traces.Operation) []recordedCall {
	var out []recordedCall
	for _, op := range ops {
		out = append(out, recordedCall{op.Op, op.Group, op.Process, op.RequestID, op.Error, op.Outcome, op.Return != traces.Forever})
	}
	return out
}

// TestHandlerRecords: what a call did, or may have done, is in the record when the client learns of it.
func TestHandlerRecords(t *testing.T) {
	const process = "elbv2.k8s.aws/v3.4.0"
	lost := func(_ context.Context, c *awsapi.Call) (*awsapi.Answer, error) {
		a := grantedAnswer(c)
		a.Lost = true
		return a, nil
	}
	never := func(context.Context, *awsapi.Call) (*awsapi.Answer, error) { return &awsapi.Answer{Lost: true}, nil }
	fails := func(context.Context, *awsapi.Call) (*awsapi.Answer, error) { return nil, errors.New("no answer came") }
	denied := func(_ context.Context, c *awsapi.Call) (*awsapi.Answer, error) {
		return awsapi.ErrorAnswer(c.Service, "RequestLimitExceeded", "").WithRequestID(c.Service, c.ID), nil
	}
	describe := "Action=DescribeSecurityGroups&Version=2016-11-15&GroupId.1=sg-1&GroupId.2=sg-2"
	for _, c := range []struct {
		name   string
		form   string
		do     func(context.Context, *awsapi.Call) (*awsapi.Answer, error)
		every  bool
		status int // 0: no answer
		want   []recordedCall
	}{
		{name: "success", form: authorizeForm("80"), status: 200, want: []recordedCall{
			{"AuthorizeSecurityGroupIngress", "sg-1", process, "r-1", "", traces.Succeeded, true}}},
		{name: "an error", form: authorizeForm("80"), do: denied, status: 503, want: []recordedCall{
			{"AuthorizeSecurityGroupIngress", "sg-1", process, "r-1", "RequestLimitExceeded", traces.Failed, true}}},
		{name: "done, and the answer is lost", form: authorizeForm("80"), do: lost, want: []recordedCall{
			{"AuthorizeSecurityGroupIngress", "sg-1", process, "r-1", "", traces.Succeeded, true}}},
		{name: "nobody knows", form: authorizeForm("80"), do: fails, want: []recordedCall{
			{"AuthorizeSecurityGroupIngress", "sg-1", process, "r-1", "", traces.Pending, false}}},
		{name: "lost on the way there", form: authorizeForm("80"), do: never, want: []recordedCall{
			{"AuthorizeSecurityGroupIngress", "sg-1", process, "r-1", "", traces.Pending, false}}},
		{name: "two groups are described", form: describe, do: denied, status: 503, want: []recordedCall{
			{"DescribeSecurityGroups", "sg-1", process, "r-1", "RequestLimitExceeded", traces.Failed, true},
			{"DescribeSecurityGroups", "sg-2", process, "r-1", "RequestLimitExceeded", traces.Failed, true}}},
		{name: "neither rules nor targets", form: "Action=DescribeVpcs&Version=2016-11-15", status: 200},
		{name: "neither, but every call is recorded", form: "Action=DescribeVpcs&Version=2016-11-15", every: true, status: 200, want: []recordedCall{
			{"DescribeVpcs", "", process, "r-1", "", traces.Succeeded, true}}},
		{name: "an unknown call, and every call is recorded", form: "Action=RunAway&Version=2016-11-15", every: true, do: denied, status: 503, want: []recordedCall{
			{"RunAway", "", process, "r-1", "RequestLimitExceeded", traces.Failed, true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var f memory
			backend := &stubBackend{do: c.do}
			server := testEndpoint(t, &f, HandlerOptions{Backend: backend, EveryCall: c.every})
			status, _, err := postForm(t.Context(), server, c.form)
			if status != c.status || (err != nil) != (c.status == 0) {
				t.Errorf("status %d, want %d (%v)", status, c.status, err)
			}
			if diff := cmp.Diff(c.want, recordedCalls(f.history(t).Operations)); diff != "" {
				t.Errorf("the record (-want +got):\n%s", diff)
			}
			if len(backend.calls) != 1 {
				t.Errorf("the backend did %v", backend.calls)
			}
		})
	}
}

// TestHandlerKeepsCallsOfTheGone: a caller that goes away does not undo its call.
func TestHandlerKeepsCallsOfTheGone(t *testing.T) {
	var f memory
	begun, gone := make(chan struct{}), make(chan struct{})
	done := make(chan struct{})
	server := testEndpoint(t, &f, HandlerOptions{Backend: &stubBackend{do: func(ctx context.Context, c *awsapi.Call) (*awsapi.Answer, error) {
		close(begun)
		<-gone
		defer close(done)
		return grantedAnswer(c), ctx.Err()
	}}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if _, _, err := postForm(ctx, server, authorizeForm("80")); err == nil {
		t.Error("the call was answered")
	}
	close(gone)
	<-done
	server.Close() // waits for the handler
	if got := f.history(t).Operations; len(got) != 1 || got[0].Outcome != traces.Succeeded {
		t.Errorf("recorded: %+v", recordedCalls(got))
	}
}

// TestHandlerFullDisk: nothing is acknowledged that is not recorded, and once the disk is full nothing is done any more.
func TestHandlerFullDisk(t *testing.T) {
	for limit := 100; limit <= 2500; limit += 48 {
		f := memory{limit: limit}
		var told []error
		backend := &stubBackend{}
		server := testEndpoint(t, &f, HandlerOptions{Backend: backend, Failed: func(err error) { told = append(told, err) }})
		acknowledged, refused := 0, 0
		for port := range 6 {
			status, body, err := postForm(t.Context(), server, authorizeForm(fmt.Sprint(port)))
			switch {
			case err != nil:
				t.Fatal(err)
			case status == 200 && refused > 0:
				t.Fatalf("limit %d: a success after a failure", limit)
			case status == 200:
				acknowledged++
			case status != 500 || !strings.Contains(body, "<Code>InternalFailure</Code>"):
				t.Fatalf("limit %d: %d %s", limit, status, body)
			default:
				refused++
			}
		}
		succeeded := 0
		for _, op := range f.history(t).Operations {
			if op.Outcome == traces.Succeeded {
				succeeded++
			}
		}
		if succeeded != acknowledged || refused != len(told) || len(backend.calls) > acknowledged+1 {
			t.Errorf("limit %d: %d acknowledged, %d recorded; %d refused, %d told; %d done", limit, acknowledged, succeeded, refused, len(told), len(backend.calls))
		}
	}
}

// TestHandlerRefuses: what is no call, or not allowed, is answered with an error and neither done nor recorded.
func TestHandlerRefuses(t *testing.T) {
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for _, c := range []struct {
		name   string
		form   string
		change func(*http.Request)
		keys   map[string]string
		status int
		code   string
	}{
		{name: "no action", form: "Version=2016-11-15", status: 400, code: "MissingAction"},
		{name: "another service", form: authorizeForm("80"), status: 400, code: "InvalidAction",
			change: header("Authorization", "AWS4-HMAC-SHA256 Credential=AKID/20261130/eu-west-1/s3/aws4_request, SignedHeaders=host, Signature=00")},
		{name: "no form", form: "{}", change: header("Content-Type", "application/json"), status: 400, code: "MalformedQueryString"},
		{name: "a torn form", form: "Action=%zz", status: 400, code: "MalformedQueryString"},
		{name: "too long", form: "Action=A&x=" + strings.Repeat("x", awsapi.MaxBody), status: 413, code: "RequestEntityTooLarge"},
		{name: "a form of a web page", form: authorizeForm("80"), change: header("Origin", "https://example.com"), status: 403, code: "UnauthorizedOperation"},
		{name: "a picture in a web page", change: func(r *http.Request) {
			r.Method, r.URL.RawQuery = http.MethodGet, authorizeForm("80")
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}, status: 403, code: "UnauthorizedOperation"},
		{name: "a name that a web page made point here", form: authorizeForm("80"), change: func(r *http.Request) { r.Host = "rebound.example:4566" }, status: 403, code: "UnauthorizedOperation"},
		{name: "not signed", form: authorizeForm("80"), keys: map[string]string{testKey: testSecret}, status: 403, code: "MissingAuthenticationToken"},
		{name: "signed of nobody", form: authorizeForm("80"), keys: map[string]string{testKey: testSecret}, status: 401, code: "AuthFailure",
			change: header("Authorization", "AWS4-HMAC-SHA256 Credential=AKID/20261130/eu-west-1/ec2/aws4_request, SignedHeaders=host, Signature="+strings.Repeat("00", 32))},
	} {
		t.Run(c.name, func(t *testing.T) {
			var f memory
			backend := &stubBackend{}
			server := testEndpoint(t, &f, HandlerOptions{Backend: backend, Keys: c.keys})
			change := []func(*http.Request){}
			if c.change != nil {
				change = append(change, c.change)
			}
			status, body, err := postForm(t.Context(), server, c.form, change...)
			if err != nil || status != c.status || !strings.Contains(body, "<Code>"+c.code+"</Code>") {
				t.Errorf("%d %s %v, want %d %s", status, body, err, c.status, c.code)
			}
			if n := len(f.history(t).Operations); n > 0 || len(backend.calls) > 0 {
				t.Errorf("%d operations were recorded, %v done", n, backend.calls)
			}
		})
	}
}

// TestProxy passes signed calls through two endpoints: the first is a proxy that signs anew, the second verifies that signature.
func TestProxy(t *testing.T) {
	var front, back memory
	behind := &stubBackend{}
	second := testEndpoint(t, &back, HandlerOptions{Backend: behind, Keys: map[string]string{"AKIDUPSTREAM": "the proxy's"}})
	first := testEndpoint(t, &front, HandlerOptions{
		Keys: map[string]string{testKey: testSecret},
		Backend: awsapi.NewUpstream(awsapi.UpstreamOptions{
			Credentials: credentials.NewStaticCredentialsProvider("AKIDUPSTREAM", "the proxy's", "a token"),
			Region:      "eu-west-1",
			Endpoint:    func(context.Context, string, string) (string, error) { return second.URL, nil },
		}),
	})
	sign := func(r *http.Request) {
		err := v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: testKey, SecretAccessKey: testSecret}, r,
			digestOf(authorizeForm("80")), "ec2", "eu-central-1", time.Now())
		if err != nil {
			t.Fatal(err)
		}
	}
	status, body, err := postForm(t.Context(), first, authorizeForm("80"), sign)
	if err != nil || status != 200 {
		t.Fatal(status, body, err)
	}
	want := []recordedCall{{"AuthorizeSecurityGroupIngress", "sg-1", "AKID…0001 elbv2.k8s.aws/v3.4.0", "r-1", "", traces.Succeeded, true}}
	if diff := cmp.Diff(want, recordedCalls(front.history(t).Operations)); diff != "" {
		t.Errorf("the proxy's record (-want +got):\n%s", diff)
	}
	want[0].Process = "AKIDUPSTREAM elbv2.k8s.aws/v3.4.0"
	if diff := cmp.Diff(want, recordedCalls(back.history(t).Operations)); diff != "" {
		t.Errorf("the other's record (-want +got):\n%s", diff)
	}
}

func TestControl(t *testing.T) {
	var f memory
	world, err := awsapi.LoadWorld(strings.NewReader(`{"groups":[{"id":"sg-0aaa1111bbbb2222c"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	backend, err := awsapi.NewSimulator(world, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	const empty = `{
    "SecurityGroups": [
        {
            "GroupId": "sg-0aaa1111bbbb2222c",
            "IpPermissions": [],
            "IpPermissionsEgress": []
        }
    ],
    "SecurityGroupRules": []
}
`
	server := testEndpoint(t, &f, HandlerOptions{Backend: backend, Keys: map[string]string{testKey: testSecret}})
	plain := testEndpoint(t, new(memory), HandlerOptions{Backend: &stubBackend{}})
	for _, c := range []struct {
		server             *httptest.Server
		method, path, body string
		host               string
		status             int
		want               string
	}{
		{server, "GET", "faults", "", "", 200, "{\n  \"seed\": 0\n}\n"},
		{server, "PUT", "faults", "[", "", 400, ""},
		{server, "PUT", "faults", `{"rulesPerGroup":-1}`, "", 400, `{"error":"the faults stay as they were: rulesPerGroup is negative"}` + "\n"},
		{server, "PUT", "faults", `{"seed":2}`, "", 200, "{\n  \"seed\": 2\n}\n"},
		{server, "GET", "faults", "", "", 200, "{\n  \"seed\": 2\n}\n"},
		{server, "GET", "world", "", "", 200, empty},
		{server, "POST", "world", "", "", 405, `{"error":"POST is not for /_linearize/world"}` + "\n"},
		{server, "GET", "nothing", "", "", 404, `{"error":"there is /_linearize/faults (GET, PUT) and /_linearize/world (GET)"}` + "\n"},
		{plain, "GET", "world", "", "", 404, `{"error":"this endpoint passes calls on; it has neither faults nor a world"}` + "\n"},
		{plain, "GET", "world", "", "rebound.example", 403, ""},
		{server, "GET", "world", "", "rebound.example", 403, ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, c.server.URL+controlPrefix+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		answer, err := c.server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != c.status || c.want != "" && string(body) != c.want {
			t.Errorf("%s %s %s: %d %q, want %d %q", c.method, c.path, c.body, answer.StatusCode, body, c.status, c.want)
		}
	}
	if n := len(f.history(t).Operations); n > 0 {
		t.Errorf("%d operations were recorded", n)
	}
}

func TestProcessName(t *testing.T) {
	for _, c := range []struct {
		caller traces.Caller
		want   string
	}{
		{traces.Caller{AccessKeyID: "AKIAIOSFODNN7EXAMPLE", UserAgent: "elbv2.k8s.aws/v3.4.0"}, "AKIA…MPLE elbv2.k8s.aws/v3.4.0"},
		{traces.Caller{AccessKeyID: "test", UserAgent: "aws-sdk-go-v2/1.30.0 ua/2.0 os/linux elbv2.k8s.aws/v2.10.0"}, "test elbv2.k8s.aws/v2.10.0"},
		{traces.Caller{UserAgent: "aws-cli/2.15.0 Python/3.11", SourceAddress: "127.0.0.1"}, "aws-cli/2.15.0"},
		{traces.Caller{SourceAddress: "10.0.0.7"}, "10.0.0.7"},
		{traces.Caller{AccessKeyID: strings.Repeat("ä", 20), UserAgent: strings.Repeat("ö", 100)}, "ääää…ääää " + strings.Repeat("ö", 64) + "…"},
	} {
		if got := ProcessName(c.caller); got != c.want {
			t.Errorf("%+v is %q, want %q", c.caller, got, c.want)
		}
	}
}

// FuzzHandler: whatever a client sends is answered, as HTTP has it, and what was answered with a success and is a call on rules is in
// the record.
func FuzzHandler(f *testing.F) {
	world := func() awsapi.Backend {
		w, err := awsapi.LoadWorld(strings.NewReader(`{"groups":[{"id":"sg-0aaa1111bbbb2222c"}]}`))
		if err != nil {
			f.Fatal(err)
		}
		s, err := awsapi.NewSimulator(w, nil, nil)
		if err != nil {
			f.Fatal(err)
		}
		return s
	}
	form := strings.Replace(authorizeForm("80"), "sg-1", "sg-0aaa1111bbbb2222c", 1)
	f.Add("POST", "/", "127.0.0.1", "application/x-www-form-urlencoded", form)
	f.Add("GET", "/?"+form, "localhost:4566", "", "")
	f.Add("PUT", "/_linearize/faults", "127.0.0.1", "application/json", `{"readLag":"1s"}`)
	f.Add("POST", "/x?Action=DescribeSecurityGroups&Version=2016-11-15", "[::1]:80", "multipart/form-data", "x")
	f.Fuzz(func(t *testing.T, method, target, host, kind, body string) {
		at, err := url.ParseRequestURI(target)
		if err != nil {
			return
		}
		var memory memory
		log, err := NewLog(&memory, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.Method, r.URL, r.Host, r.RemoteAddr = method, at, host, "127.0.0.1:1"
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		Handler(HandlerOptions{Backend: world(), Log: log, Failed: func(err error) { t.Error(err) }}).ServeHTTP(w, r)
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		recorded := memory.history(t).Operations
		for _, op := range recorded {
			if (op.Outcome == traces.Succeeded) != (w.Code == http.StatusOK) || op.RequestID != w.Header().Get("X-Amzn-Requestid") {
				t.Errorf("answered with %d %s, recorded as %+v", w.Code, w.Body, op)
			}
		}
		if w.Code == http.StatusOK && strings.Contains(w.Body.String(), "<AuthorizeSecurityGroupIngressResponse") && len(recorded) == 0 {
			t.Errorf("answered with %s, and not recorded", w.Body)
		}
	})
}
