package awsapi_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
	"linearize.example/traces/awsapi"
)

func upstream(address string) *awsapi.Upstream {
	return awsapi.NewUpstream(awsapi.UpstreamOptions{
		Credentials: credentials.NewStaticCredentialsProvider("AKIDUPSTREAM", "secret", "token"),
		Region:      "eu-west-1",
		Endpoint:    func(context.Context, string, string) (string, error) { return address, nil },
		Now:         func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) },
	})
}

func authorizeCall() *awsapi.Call {
	return &awsapi.Call{
		Service: awsapi.EC2, Action: traces.AuthorizeSecurityGroupIngress,
		Caller: traces.Caller{UserAgent: "elbv2.k8s.aws/v3.4.0"},
		Form: url.Values{"Action": {traces.AuthorizeSecurityGroupIngress}, "Version": {"2016-11-15"}, "GroupId": {"sg-1"},
			"IpPermissions.1.IpProtocol": {"tcp"}, "X-Amz-Signature": {"the caller's"}},
	}
}

// TestUpstreamRequest: what is sent on is the call, the caller's user agent, and a signature of the region asked for.
func TestUpstreamRequest(t *testing.T) {
	type sent struct{ Method, Path, Query, UserAgent, Authorization, Token, Form string }
	var got sent
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		authorization, _, _ := strings.Cut(r.Header.Get("Authorization"), ", Signature=")
		got = sent{r.Method, r.URL.Path, r.URL.RawQuery, r.UserAgent(), authorization, r.Header.Get("X-Amz-Security-Token"), string(body)}
		io.WriteString(w, `<AuthorizeSecurityGroupIngressResponse><requestId>r-1</requestId><return>true</return></AuthorizeSecurityGroupIngressResponse>`)
	}))
	defer server.Close()
	c := authorizeCall()
	c.Region = "cn-north-1"
	a, err := upstream(server.URL).Do(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	want := sent{
		Method: "POST", Path: "/", UserAgent: "elbv2.k8s.aws/v3.4.0", Token: "token",
		Authorization: "AWS4-HMAC-SHA256 Credential=AKIDUPSTREAM/20261130/cn-north-1/ec2/aws4_request, " +
			"SignedHeaders=content-length;content-type;host;x-amz-date;x-amz-security-token",
		Form: "Action=AuthorizeSecurityGroupIngress&GroupId=sg-1&IpPermissions.1.IpProtocol=tcp&Version=2016-11-15",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the request (-want +got):\n%s", diff)
	}
	if a.RequestID != "r-1" || a.Status != 200 || a.Code != "" {
		t.Errorf("the answer is %+v", a)
	}
}

// TestUpstreamAnswers: what is known of a call's effect when AWS answers with an error, badly, or not at all.
func TestUpstreamAnswers(t *testing.T) {
	abort := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc // nil: nobody listens
		region string
		status int // 0: no answer is known
		code   string
	}{
		{name: "an error of EC2", status: 503, code: "RequestLimitExceeded", answer: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(503)
			io.WriteString(w, `<Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>Request limit exceeded.</Message></Error></Errors><RequestID>r-2</RequestID></Response>`)
		}},
		{name: "a page of something between", status: 502, answer: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(502)
			io.WriteString(w, `<html><body>Bad gateway</html>`)
		}},
		{name: "nobody listens", status: 503, code: "ServiceUnavailable"},
		{name: "no answer", answer: abort},
		{name: "half an answer", answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, "<AuthorizeSecurityGroupIngressResponse>")
			abort(w, r)
		}},
		{name: "a redirect", status: 307, answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}},
		{name: "a region that would be another host", region: "example.com/", status: 400, code: "InvalidParameterValue", answer: func(http.ResponseWriter, *http.Request) {
			t.Error("the call was sent")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			address := "http://127.0.0.1:1"
			if c.answer != nil {
				server := httptest.NewServer(c.answer)
				defer server.Close()
				address = server.URL
			}
			call := authorizeCall()
			call.Region = c.region
			a, err := upstream(address).Do(t.Context(), call)
			if err != nil {
				if c.status != 0 {
					t.Error(err)
				}
				return
			}
			if a.Status != c.status || a.Code != c.code {
				t.Errorf("%d %q, want %d %q", a.Status, a.Code, c.status, c.code)
			}
		})
	}
}
