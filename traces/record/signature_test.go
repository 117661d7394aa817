package record

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/google/go-cmp/cmp"
)

const (
	testKey    = "AKIDENDPOINTTEST0001"
	testSecret = "not a secret of anybody/+="
	testBody   = "Action=RevokeSecurityGroupIngress&GroupId=sg-1&Version=2016-11-15"
)

var signedAt = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// digestOf is what the signer wants of a body.
func digestOf(body string) string {
	digest := sha256.Sum256([]byte(body))
	return hex.EncodeToString(digest[:])
}

// signed is a request as the SDK's own signer signs it.
func signed(t testing.TB, target, body string, change func(*http.Request)) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Amz-Meta-Spaces", "  two  words ")
	if change != nil {
		change(r)
	}
	err = v4.NewSigner().SignHTTP(context.Background(), aws.Credentials{AccessKeyID: testKey, SecretAccessKey: testSecret, SessionToken: "a token"},
		r, digestOf(body), "ec2", "eu-central-1", signedAt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// presigned is one with the signature in its query.
func presigned(t testing.TB, target string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	address, _, err := v4.NewSigner().PresignHTTP(context.Background(), aws.Credentials{AccessKeyID: testKey, SecretAccessKey: testSecret},
		r, digestOf(""), "elasticloadbalancing", "eu-central-1", signedAt)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = http.NewRequest(http.MethodGet, address, nil); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestVerifyOverTheWire sends what the SDK's signer signed through a real connection and looks at what the server makes of it.
func TestVerifyOverTheWire(t *testing.T) {
	keys := map[string]string{testKey: testSecret, "AKIDOTHER": "another"}
	setQuery := func(name, value string) func(*http.Request) {
		return func(r *http.Request) {
			q := r.URL.Query()
			q.Set(name, value)
			r.URL.RawQuery = q.Encode()
		}
	}
	none := func(*http.Request) {}
	for _, c := range []struct {
		name      string
		path      string
		body      string
		presigned bool
		tamper    func(*http.Request)
		now       time.Time
		keys      map[string]string
		ec2, elb  string // the codes; empty: accepted
	}{
		{name: "as signed", body: testBody, tamper: none},
		{name: "an odd path and query", path: "/a%20b/c+d//e?z=1&a=%2F+x&a=%20&a-b=~&a=", body: testBody, tamper: none},
		{name: "an empty body", tamper: none},
		{name: "presigned", presigned: true, path: "/?Action=DescribeTargetHealth&Version=2015-12-01&X-Amz-Expires=900", tamper: none},
		{name: "presigned without an expiry", presigned: true, path: "/?Action=DescribeTargetHealth", tamper: none},
		{name: "14 minutes ago", body: testBody, tamper: none, now: signedAt.Add(14 * time.Minute)},
		{name: "14 minutes ahead", body: testBody, tamper: none, now: signedAt.Add(-14 * time.Minute)},
		{name: "16 minutes ago", body: testBody, tamper: none, now: signedAt.Add(16 * time.Minute), ec2: "AuthFailure", elb: "SignatureDoesNotMatch"},
		{name: "16 minutes ahead", body: testBody, tamper: none, now: signedAt.Add(-16 * time.Minute), ec2: "AuthFailure", elb: "SignatureDoesNotMatch"},
		{name: "presigned for longer", presigned: true, path: "/?X-Amz-Expires=3600", tamper: none, now: signedAt.Add(50 * time.Minute)},
		{name: "presigned and over", presigned: true, path: "/?X-Amz-Expires=60", tamper: none, now: signedAt.Add(61 * time.Second), ec2: "RequestExpired", elb: "RequestExpired"},
		{name: "presigned for eight days", presigned: true, path: "/?X-Amz-Expires=691200", tamper: none, ec2: "IncompleteSignature", elb: "IncompleteSignature"},
		{name: "presigned for another action", presigned: true, path: "/?Action=DescribeTargetHealth", tamper: setQuery("Action", "DeregisterTargets"), ec2: "AuthFailure", elb: "SignatureDoesNotMatch"},
		{name: "another key's secret", body: testBody, tamper: none, keys: map[string]string{testKey: "other"}, ec2: "AuthFailure", elb: "SignatureDoesNotMatch"},
		{name: "a key that is not known", body: testBody, tamper: none, keys: map[string]string{"AKIDOTHER": testSecret}, ec2: "AuthFailure", elb: "InvalidClientTokenId"},
		{name: "a changed header", body: testBody, tamper: func(r *http.Request) { r.Header.Set("X-Amz-Meta-Spaces", "three words") }, ec2: "AuthFailure", elb: "SignatureDoesNotMatch"},
		{name: "an added query", body: testBody, tamper: setQuery("Action", "DeleteSecurityGroup"), ec2: "AuthFailure", elb: "SignatureDoesNotMatch"},
		{name: "another host", body: testBody, tamper: func(r *http.Request) { r.Host = "ec2.example" }, ec2: "AuthFailure", elb: "SignatureDoesNotMatch"},
		{name: "another method", body: testBody, tamper: func(r *http.Request) { r.Method = http.MethodPut }, ec2: "AuthFailure", elb: "SignatureDoesNotMatch"},
		{name: "another date", body: testBody, tamper: func(r *http.Request) { r.Header.Set("X-Amz-Date", "20261130T120001Z") }, ec2: "AuthFailure", elb: "SignatureDoesNotMatch"},
		{name: "a date of another day", body: testBody, tamper: func(r *http.Request) { r.Header.Set("X-Amz-Date", "20261201T120000Z") }, ec2: "IncompleteSignature", elb: "IncompleteSignature"},
		{name: "another body", body: testBody, tamper: func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Replace(testBody, "sg-1", "sg-2", 1))), int64(len(testBody))
		}, ec2: "AuthFailure", elb: "SignatureDoesNotMatch"},
		{name: "a body that claims to be unsigned", body: testBody, tamper: func(r *http.Request) { r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD") }},
		{name: "no signature", body: testBody, tamper: func(r *http.Request) { r.Header.Del("Authorization") }, ec2: "MissingAuthenticationToken", elb: "MissingAuthenticationToken"},
		{name: "signed twice", body: testBody, tamper: setQuery("X-Amz-Signature", "00"), ec2: "IncompleteSignature", elb: "IncompleteSignature"},
		{name: "another algorithm", body: testBody, tamper: func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, ec2: "IncompleteSignature", elb: "IncompleteSignature"},
		{name: "host not signed", body: testBody, tamper: func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), ";host;", ";", 1))
		}, ec2: "IncompleteSignature", elb: "IncompleteSignature"},
		{name: "half a signature", body: testBody, tamper: func(r *http.Request) {
			r.Header.Set("Authorization", strings.TrimSuffix(r.Header.Get("Authorization"), "00")[:200])
		}, ec2: "IncompleteSignature", elb: "IncompleteSignature"},
		{name: "a query that is none", body: testBody, tamper: func(r *http.Request) { r.URL.RawQuery = "a=%zz" }, ec2: "IncompleteSignature", elb: "IncompleteSignature"},
	} {
		t.Run(c.name, func(t *testing.T) {
			now, with := c.now, c.keys
			if now.IsZero() {
				now = signedAt
			}
			if with == nil {
				with = keys
			}
			var refused *denial
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				refused = verify(r, body, with, now)
			}))
			defer server.Close()
			var r *http.Request
			if c.presigned {
				r = presigned(t, server.URL+c.path)
			} else {
				r = signed(t, server.URL+c.path, c.body, nil)
			}
			c.tamper(r)
			answer, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			got := []string{"", ""}
			if refused != nil {
				got = []string{refused.code("ec2"), refused.code("elasticloadbalancing")}
			}
			if diff := cmp.Diff([]string{c.ec2, c.elb}, got); diff != "" {
				t.Errorf("codes (-want +got): %s\n%v", diff, refused)
			}
		})
	}
}

// FuzzVerify: whatever stands in the header and the query, nothing is let in without the secret, and nothing breaks.
func FuzzVerify(f *testing.F) {
	r := signed(f, "http://127.0.0.1/", testBody, nil)
	f.Add(r.Header.Get("Authorization"), r.Header.Get("X-Amz-Date"), "", testBody)
	f.Add("", "", presigned(f, "http://127.0.0.1/?X-Amz-Expires=60").URL.RawQuery, "")
	f.Add("AWS4-HMAC-SHA256 Credential=////, SignedHeaders=;host, Signature=", "20261130T120000Z", "X-Amz-Signature", "")
	f.Fuzz(func(t *testing.T, authorization, date, query, body string) {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.URL = &url.URL{Path: "/", RawQuery: query}
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		r.Header.Set("X-Amz-Date", date)
		if refused := verify(r, []byte(body), map[string]string{testKey: "a secret that nothing here was signed with"}, signedAt); refused == nil {
			t.Errorf("let in: %q %q %q", authorization, query, body)
		}
	})
}
