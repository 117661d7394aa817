package awsapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// MaxAnswer bounds what a service answers, in bytes: a page of 1,000 groups with all their rules is some 20 MiB.
const MaxAnswer = 64 << 20

// UpstreamOptions say where calls go to and who signs them.
type UpstreamOptions struct {
	// Credentials sign the calls.
	Credentials aws.CredentialsProvider
	// Region is where calls go that name none in their own signature.
	Region string
	// Endpoint returns the URL of a service in a region.
	Endpoint func(ctx context.Context, service, region string) (string, error)
	// Client sends the requests. Without one they have a minute, and redirects are not followed.
	Client *http.Client
	// Now tells the time for signatures; without it, the clock of this machine.
	Now func() time.Time
}

// Upstream is a Backend that passes calls on to the real services, signed anew. It does not repeat them: that is their
// caller's decision.
type Upstream struct {
	o      UpstreamOptions
	signer *v4.Signer
}

// NewUpstream returns a Backend that passes calls on. Credentials and Endpoint have to be given.
func NewUpstream(o UpstreamOptions) *Upstream {
	if o.Client == nil {
		o.Client = &http.Client{
			Timeout:       time.Minute,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Upstream{o, v4.NewSigner()}
}

// regionName is what a region's name looks like. It becomes part of a host's name, so that nothing else may stand there.
var regionName = regexp.MustCompile(`^[a-z]{2,8}(-[a-z]{2,16}){1,3}-[0-9]{1,2}$`)

// Do passes a call on and returns what the service answered, word by word. A call that could not be sent is answered with
// 503 ServiceUnavailable, because it had no effect; an error is a call whose answer is not known.
func (u *Upstream) Do(ctx context.Context, c *Call) (*Answer, error) {
	region := c.Region
	if region == "" {
		region = u.o.Region
	}
	if !regionName.MatchString(region) {
		return ErrorAnswer(c.Service, "InvalidParameterValue", fmt.Sprintf("The signature's region %q is none.", region)), nil
	}
	r, err := u.request(ctx, c, region)
	if err != nil {
		return ErrorAnswer(c.Service, "ServiceUnavailable", "The call was not passed on: "+err.Error()), nil
	}
	answer, err := u.o.Client.Do(r)
	if err != nil {
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			return ErrorAnswer(c.Service, "ServiceUnavailable", "The call was not passed on: "+dial.Error()), nil
		}
		return nil, fmt.Errorf("%s was sent to %s, and no answer came: %w", c.Action, r.URL.Host, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, MaxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the answer to %s of %s broke off: %w", c.Action, r.URL.Host, err)
	case len(body) > MaxAnswer:
		return nil, fmt.Errorf("the answer to %s of %s is longer than %d MiB; ask for pages", c.Action, r.URL.Host, MaxAnswer>>20)
	}
	return ReadAnswer(answer.StatusCode, body), nil
}

// request is the call as it is sent on. It keeps the caller's user agent, so that CloudTrail names the same program.
func (u *Upstream) request(ctx context.Context, c *Call, region string) (*http.Request, error) {
	address, err := u.o.Endpoint(ctx, c.Service, region)
	if err != nil {
		return nil, err
	}
	credentials, err := u.o.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("no credentials: %w", err)
	}
	form := maps.Clone(c.Form)
	maps.DeleteFunc(form, func(name string, _ []string) bool {
		return strings.HasPrefix(name, "X-Amz-") // of a presigned call
	})
	body := form.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if r.URL.Path == "" {
		r.URL.Path = "/"
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	r.Header.Set("User-Agent", c.Caller.UserAgent)
	digest := sha256.Sum256([]byte(body))
	err = u.signer.SignHTTP(ctx, credentials, r, hex.EncodeToString(digest[:]), c.Service, region, u.o.Now())
	return r, err
}
