package awsapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"linearize.example/traces"
)

// The services, named as in the credential scope of a signature.
const (
	EC2   = "ec2"
	ELBv2 = "elasticloadbalancing"
)

// The versions of the two APIs that are spoken, which are also the XML namespaces' last part.
const (
	ec2Version = "2016-11-15"
	elbVersion = "2015-12-01"
)

// Bounds of a request: its body in bytes, and its parameters. A thousand rules are some 6,000 parameters.
const (
	MaxBody       = 1 << 20
	MaxParameters = 20_000
)

// Call is one request as it is on the wire. Backends do not change it.
type Call struct {
	// Service is EC2 or ELBv2.
	Service string
	// Region is that of the signature's credential scope; empty for a call that is not signed.
	Region string
	// Action is AWS's name of the call.
	Action string
	// Form holds all parameters, Action and Version among them.
	Form   url.Values
	Caller traces.Caller
	// Process is the caller as histories name it; empty where nobody has decided.
	Process string
	// ID is the request id to answer with; empty lets the backend choose one.
	ID string

	// parsed is Form as a tree, where ReadCall has built it.
	parsed *params
}

// params is the form as a tree. Nobody changes it.
func (c *Call) params() *params {
	if c.parsed != nil {
		return c.parsed
	}
	return parseForm(c.Form)
}

// Answer is what goes back.
type Answer struct {
	// Status is the HTTP status.
	Status int
	// Code and Message are AWS's error; Code is empty on success.
	Code, Message string
	// Body is the XML document.
	Body      []byte
	RequestID string
	// Lost: the connection is to be closed without an answer, whether or not the call took effect.
	Lost bool
}

// Backend answers calls.
type Backend interface {
	// Do answers c. An error says that no answer is known: the call may have taken effect, later too, or never.
	Do(ctx context.Context, c *Call) (*Answer, error)
}

// Clock is the time that a backend lives in.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or with the context's error once that is done.
	Sleep(ctx context.Context, d time.Duration) error
}

// WallClock is the clock of this machine.
var WallClock Clock = wallClock{}

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

func (wallClock) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Refusal is the error of a request that is no call: AWS's code for it, and a message.
type Refusal struct {
	Code, Message string
}

func (r *Refusal) Error() string { return r.Code + ": " + r.Message }

// ReadCall reads a request, of a server or of a client, in the form that the SDKs and the CLI send: parameters in the
// query, in a form-encoded body, or both. The body is bounded by MaxBody and left in r to be read again. The service is
// that of the credential scope of the signature, or else the one whose API the parameter Version names. The caller gets
// access key, user agent and address. An error is a *Refusal, or what reading the body gave.
func ReadCall(r *http.Request) (*Call, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
		if err != nil {
			return nil, fmt.Errorf("the request's body cannot be read: %w", err)
		}
		if len(body) > MaxBody {
			return nil, &Refusal{"RequestEntityTooLarge", fmt.Sprintf("The request is longer than %d bytes.", MaxBody)}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if n := strings.Count(r.URL.RawQuery, "&") + bytes.Count(body, []byte("&")); n >= MaxParameters {
		return nil, &Refusal{"RequestEntityTooLarge", fmt.Sprintf("The request has more than %d parameters.", MaxParameters)}
	}
	form, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &Refusal{"MalformedQueryString", "The query string contains a syntax error."}
	}
	if r.Method == http.MethodPost {
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if len(body) > 0 && (err != nil || kind != "application/x-www-form-urlencoded") {
			return nil, &Refusal{"MalformedQueryString", "The body is not application/x-www-form-urlencoded."}
		}
		posted, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, &Refusal{"MalformedQueryString", "The body contains a syntax error."}
		}
		for name, values := range posted {
			form[name] = append(form[name], values...)
		}
	}
	c := &Call{Action: form.Get("Action"), Form: form}
	var scope string
	c.Caller.AccessKeyID, c.Region, scope = credential(r.Header.Get("Authorization"), form.Get("X-Amz-Credential"))
	c.Caller.UserAgent = r.UserAgent()
	c.Caller.SourceAddress = r.RemoteAddr
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		c.Caller.SourceAddress = host
	}
	for name := range form {
		if strings.HasPrefix(name, "X-Amz-") {
			delete(form, name)
		}
	}
	if c.Action == "" {
		return nil, &Refusal{"MissingAction", "The request must contain the parameter Action."}
	}
	version := form.Get("Version")
	switch {
	case scope == EC2 || scope == ELBv2:
		c.Service = scope
	case scope != "":
		return nil, &Refusal{"InvalidAction", fmt.Sprintf("The service %q is not one of %s and %s.", scope, EC2, ELBv2)}
	case version == ec2Version:
		c.Service = EC2
	case version == elbVersion:
		c.Service = ELBv2
	default:
		return nil, &Refusal{"InvalidParameterValue", fmt.Sprintf(
			"The request is not signed and its Version %q is neither %s (EC2) nor %s (ELBv2).", version, ec2Version, elbVersion)}
	}
	c.parsed = parseForm(form)
	return c, nil
}

// credential returns the access key id, the region and the service of a signature: of the header, or of a presigned query.
func credential(header, query string) (key, region, service string) {
	if _, rest, ok := strings.Cut(header, "Credential="); ok {
		query, _, _ = strings.Cut(rest, ",")
	}
	// AKID/20261130/eu-west-1/ec2/aws4_request
	parts := strings.Split(strings.TrimSpace(query), "/")
	if len(parts) < 5 {
		return "", "", ""
	}
	return strings.Join(parts[:len(parts)-4], "/"), parts[len(parts)-3], parts[len(parts)-2]
}

// ReadAnswer reads what a service answered: the HTTP status and the body. It finds the request id and, for an error,
// AWS's code and message; an error without AWS's code leaves Code empty. A document that is an error is one with the status
// of a success, too.
func ReadAnswer(status int, body []byte) *Answer {
	a := &Answer{Status: status, Body: body}
	root, err := parseXML(body)
	if err != nil {
		return a
	}
	a.RequestID = firstText(root.text("requestId"), root.text("RequestID"), root.text("RequestId"),
		root.child("ResponseMetadata").text("RequestId"))
	if status < http.StatusMultipleChoices && root.name != "Response" && root.name != "ErrorResponse" {
		return a
	}
	e := root.child("Errors").child("Error")
	if e == nil {
		e = root.child("Error")
	}
	a.Code, a.Message = e.text("Code"), e.text("Message")
	return a
}

func firstText(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// statuses are the HTTP statuses of errors that are not the client's, or that AWS documents with another one than 400
// (EC2 API reference, "Error codes"; Elastic Load Balancing, "Common Errors").
var statuses = map[string]int{
	"AuthFailure":                 http.StatusUnauthorized,
	"UnauthorizedOperation":       http.StatusForbidden,
	"AccessDenied":                http.StatusForbidden,
	"AccessDeniedException":       http.StatusForbidden,
	"IncompleteSignature":         http.StatusBadRequest,
	"InvalidClientTokenId":        http.StatusForbidden,
	"MissingAuthenticationToken":  http.StatusForbidden,
	"SignatureDoesNotMatch":       http.StatusForbidden,
	"RequestExpired":              http.StatusBadRequest,
	"OptInRequired":               http.StatusForbidden,
	"DryRunOperation":             http.StatusPreconditionFailed,
	"RequestLimitExceeded":        http.StatusServiceUnavailable,
	"Unavailable":                 http.StatusServiceUnavailable,
	"ServiceUnavailable":          http.StatusServiceUnavailable,
	"ServiceUnavailableException": http.StatusServiceUnavailable,
	"InternalError":               http.StatusInternalServerError,
	"InternalFailure":             http.StatusInternalServerError,
	"RequestEntityTooLarge":       http.StatusRequestEntityTooLarge,
}

// ErrorAnswer is the answer of a service with an error. Without a message AWS's usual one is given, where there is one.
func ErrorAnswer(service, code, message string) *Answer {
	a := &Answer{Status: http.StatusBadRequest, Code: code, Message: message}
	if status, ok := statuses[code]; ok {
		a.Status = status
	}
	if a.Message == "" {
		a.Message = messages[code]
	}
	a.identify(service, "")
	return a
}

var messages = map[string]string{
	"AuthFailure":                        "AWS was not able to validate the provided access credentials",
	"UnauthorizedOperation":              "You are not authorized to perform this operation.",
	"AccessDenied":                       "User is not authorized to perform this operation.",
	"DryRunOperation":                    "Request would have succeeded, but DryRun flag is set.",
	"RequestLimitExceeded":               "Request limit exceeded.",
	"Throttling":                         "Rate exceeded",
	"ThrottlingException":                "Rate exceeded",
	"Unavailable":                        "The service is unavailable. Please try again shortly.",
	"ServiceUnavailable":                 "The service is unavailable. Please try again shortly.",
	"InternalError":                      "An internal error has occurred",
	"InternalFailure":                    "An internal error has occurred",
	"InvalidPermission.NotFound":         "The specified rule does not exist in this security group.",
	"RulesPerSecurityGroupLimitExceeded": "The maximum number of rules per security group has been reached.",
}

// identify writes an error's body with the request id.
func (a *Answer) identify(service, id string) {
	a.RequestID = id
	if id == "" {
		id = "00000000-0000-0000-0000-000000000000"
		a.RequestID = id
	}
	x := newXML()
	if service == ELBv2 {
		kind := "Sender"
		if a.Status >= 500 {
			kind = "Receiver"
		}
		x.open(`ErrorResponse xmlns="http://elasticloadbalancing.amazonaws.com/doc/` + elbVersion + `/"`)
		x.open("Error")
		x.text("Type", kind)
		x.text("Code", a.Code)
		x.text("Message", a.Message)
		x.close("Error")
		x.text("RequestId", id)
		x.close("ErrorResponse")
	} else {
		x.open("Response")
		x.open("Errors")
		x.open("Error")
		x.text("Code", a.Code)
		x.text("Message", a.Message)
		x.close("Error")
		x.close("Errors")
		x.text("RequestID", id)
		x.close("Response")
	}
	a.Body = x.b
}

// WithRequestID returns a copy of an error answer with another request id in its body.
func (a *Answer) WithRequestID(service, id string) *Answer {
	b := *a
	b.identify(service, id)
	return &b
}
