package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/smithy-go"
)

// awsConfig is how to reach AWS: the SDK's default configuration and credentials. With an endpoint on this host neither need
// exist: the region is then us-east-1, and the credentials are a placeholder that such an endpoint takes unless it was given
// keys.
func awsConfig(ctx context.Context, endpoint string) (aws.Config, error) {
	local := endpoint != "" && isLoopbackURL(endpoint)
	var opts []func(*config.LoadOptions) error
	if local {
		opts = append(opts, config.WithEC2IMDSClientEnableState(imds.ClientDisabled), config.WithDefaultRegion("us-east-1"))
	}
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return cfg, fmt.Errorf("AWS's configuration cannot be read: %w", err)
	}
	if endpoint != "" {
		cfg.BaseEndpoint = aws.String(endpoint)
	}
	if cfg.Region == "" {
		return cfg, errors.New("no region: set AWS_REGION, or AWS_PROFILE to a profile that has one")
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		if !local {
			return cfg, fmt.Errorf("no credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or log in with the AWS CLI: %w", err)
		}
		cfg.Credentials = credentials.NewStaticCredentialsProvider("LINEARIZE", "placeholder", "")
	}
	return cfg, nil
}

// isLoopbackURL reports whether the URL's host is this one.
func isLoopbackURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && isLoopback(u.Hostname())
}

// isURL reports whether text is a URL that requests can be sent to.
func isURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

// leadsTo reports whether a URL is of the address that this program listens on.
func leadsTo(text string, listening net.Addr) bool {
	u, err := url.Parse(text)
	at, ok := listening.(*net.TCPAddr)
	if err != nil || !ok || u.Port() != strconv.Itoa(at.Port) || !isLoopback(u.Hostname()) {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return ip == nil || at.IP.IsUnspecified() || at.IP.Equal(ip)
}

// isLoopback reports whether a name or address is this host's own: localhost or a loopback address.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// awsError says what to do about a call that failed. where is the endpoint, or empty for AWS's own.
func awsError(action, where string, err error) error {
	var api smithy.APIError
	var dial *net.OpError
	if where == "" {
		where = "AWS"
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &dial) && dial.Op == "dial":
		return fmt.Errorf("%s: cannot connect to %s: is it running, and is the address right? %w", action, where, err)
	case !errors.As(err, &api):
		return fmt.Errorf("%s: %w", action, err)
	}
	advice := ""
	switch api.ErrorCode() {
	case "UnauthorizedOperation", "AccessDenied", "AccessDeniedException":
		advice = "; the credentials lack the permission ec2:" + action
	case "AuthFailure", "InvalidClientTokenId", "SignatureDoesNotMatch", "RequestExpired", "ExpiredToken", "MissingAuthenticationToken":
		advice = "; the credentials are not those of " + where + ", or have expired, or this host's clock is wrong"
	case "InvalidGroup.NotFound":
		advice = "; is it the right region and account?"
	}
	return fmt.Errorf("%s: %s says %s: %s%s", action, where, api.ErrorCode(), api.ErrorMessage(), advice)
}
