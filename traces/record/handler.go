package record

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"linearize.example/traces"
	"linearize.example/traces/awsapi"
	"linearize.example/traces/snapshot"
)

// HandlerOptions say what a Handler does with a request.
type HandlerOptions struct {
	// Backend answers the calls.
	Backend awsapi.Backend
	// Log gets the calls that a history judges (awsapi.Operations); without one nothing is recorded.
	Log *Log
	// EveryCall has the log get all others, too.
	EveryCall bool
	// Sinks get every operation of the log with its result.
	Sinks []Sink
	// Keys are the access keys that requests have to be signed with: access key id → secret. Without any, signatures are
	// not checked, and requests that a browser sends on behalf of a web page are refused.
	Keys map[string]string
	// Process names the caller; without it, ProcessName does.
	Process func(traces.Caller) string
	// RequestID makes the id of a call; without it the backend chooses. Leave that to an Upstream: the id is AWS's, and one that is
	// recorded when the call begins has to be the one with which it ends.
	RequestID func() string
	// Now is the clock for signatures; without it, this machine's.
	Now func() time.Time
	// Failed is told of errors that no caller sees the reason of: of recording, and calls without an answer. Without it they go
	// to standard error.
	Failed func(error)
}

// Controlled is a Backend whose faults and rules can be looked at, and its faults changed, while it runs: awsapi.Simulator.
type Controlled interface {
	Faults() *awsapi.Faults
	SetFaults(*awsapi.Faults) error
	Snapshots() []traces.Snapshot
}

// controlPrefix is where the endpoint itself is asked. No AWS API has such a path.
const controlPrefix = "/_linearize/"

// Handler returns an endpoint of the EC2 and ELBv2 APIs that records. Each request is read, its signature verified, its call
// begun in the log, answered by the backend, and its result brought to disk; only then the answer is sent. A request that is no
// call is refused and not recorded. Where recording fails the answer is 500 InternalFailure whatever the backend said, because
// nothing may be acknowledged that is not in the record. A call goes on when its caller goes away, as it does at AWS.
func Handler(o HandlerOptions) http.Handler {
	if o.Process == nil {
		o.Process = ProcessName
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Failed == nil {
		o.Failed = func(err error) { fmt.Fprintln(os.Stderr, "linearize record:", err) }
	}
	return &handler{o}
}

type handler struct{ o HandlerOptions }

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, awsapi.MaxBody))
	if err != nil {
		code, message := "RequestAborted", "The body cannot be read: "+err.Error()
		if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
			code, message = "RequestEntityTooLarge", fmt.Sprintf("The request is longer than %d bytes.", large.Limit)
		}
		h.refuse(w, awsapi.EC2, code, message)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	control := strings.HasPrefix(r.URL.Path, controlPrefix)
	c, err := awsapi.ReadCall(r)
	service := awsapi.EC2
	if err == nil {
		service = c.Service
	}
	if refused := h.admit(r, body, control); refused != nil {
		h.refuse(w, service, refused.code(service), refused.message)
		return
	}
	if control {
		h.control(w, r, body)
		return
	}
	if err != nil {
		refusal := &awsapi.Refusal{Code: "MalformedQueryString", Message: err.Error()}
		errors.As(err, &refusal)
		h.refuse(w, service, refusal.Code, refusal.Message)
		return
	}
	c.Process = h.o.Process(c.Caller)
	if h.o.RequestID != nil {
		c.ID = h.o.RequestID()
	}
	h.answer(w, h.call(context.WithoutCancel(r.Context()), c))
}

// admit decides who may call: with keys, who has signed with one of them (or is on this host and asks the endpoint itself);
// without keys, every program, but no web page. A page that a browser on this host shows could otherwise send requests, blindly
// to this address, or, by a name that it lets point here, like any client.
func (h *handler) admit(r *http.Request, body []byte, control bool) *denial {
	if page := r.Header.Get("Origin") + r.Header.Get("Sec-Fetch-Site"); page != "" {
		return refuse(fromPage, "the request comes from a web page (%s)", page)
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	literal := host == "localhost" || net.ParseIP(host) != nil
	from, _, _ := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(from)
	switch here := ip != nil && ip.IsLoopback() && literal; {
	case control && here:
		return nil
	case len(h.o.Keys) > 0:
		return verify(r, body, h.o.Keys, h.o.Now())
	case control:
		return refuse(notSigned, "from another host, only signed requests can ask for this")
	case !literal:
		return refuse(fromPage, "the request is for the host %q; without keys this endpoint is only asked by address, or as localhost", r.Host)
	}
	return nil
}

// call does one call and records it.
func (h *handler) call(ctx context.Context, c *awsapi.Call) *awsapi.Answer {
	operations := awsapi.Operations
	if h.o.EveryCall {
		operations = awsapi.EveryCall
	}
	var asked []traces.Operation
	var entry *Entry
	if h.o.Log != nil {
		asked = operations(c, nil)
	}
	if h.o.Log != nil && (len(asked) > 0 || showsGroups(c)) {
		var err error
		if entry, err = h.o.Log.Begin(asked...); err != nil {
			h.o.Failed(fmt.Errorf("%s of %s was refused, because it cannot be recorded: %w", c.Action, c.Process, err))
			return unrecorded(c)
		}
	}
	answer, err := h.o.Backend.Do(ctx, c)
	if err != nil {
		h.o.Failed(err)
		answer = &awsapi.Answer{Lost: true}
	}
	if entry == nil {
		return answer
	}
	done := asked
	if answer.Status != 0 {
		// The endpoint knows what a call did, even if its answer gets lost.
		known := *answer
		known.Lost = false
		done = operations(c, &known)
	}
	if err := entry.End(done...); err != nil {
		h.o.Failed(fmt.Errorf("%s of %s was done, but its result is not in the record: %w", c.Action, c.Process, err))
		return unrecorded(c)
	}
	for _, sink := range h.o.Sinks {
		for _, op := range entry.Operations() {
			sink.Record(op)
		}
	}
	return answer
}

// showsGroups reports whether the answer tells of groups' rules, also where the request names no group: of those that a filter finds
// the answer alone tells.
func showsGroups(c *awsapi.Call) bool {
	return c.Service == awsapi.EC2 && (c.Action == traces.DescribeSecurityGroups || c.Action == traces.DescribeSecurityGroupRules)
}

// unrecorded is the answer to a call that could not be recorded.
func unrecorded(c *awsapi.Call) *awsapi.Answer {
	return awsapi.ErrorAnswer(c.Service, "InternalFailure", "The call could not be recorded.").WithRequestID(c.Service, c.ID)
}

// answer sends an answer, or closes the connection without one.
func (h *handler) answer(w http.ResponseWriter, a *awsapi.Answer) {
	if a.Lost {
		panic(http.ErrAbortHandler) // net/http's way to close a connection without an answer
	}
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(a.Body)))
	if a.RequestID != "" {
		w.Header().Set("X-Amzn-Requestid", a.RequestID)
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // the caller is gone; the call is done all the same
}

// refuse answers a request that was not done.
func (h *handler) refuse(w http.ResponseWriter, service, code, message string) {
	id := RandomRequestID
	if h.o.RequestID != nil {
		id = h.o.RequestID
	}
	h.answer(w, awsapi.ErrorAnswer(service, code, message).WithRequestID(service, id()))
}

// control answers questions about the endpoint itself.
func (h *handler) control(w http.ResponseWriter, r *http.Request, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	fail := func(status int, format string, args ...any) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": fmt.Sprintf(format, args...)}) // the caller is gone
	}
	backend, ok := h.o.Backend.(Controlled)
	if !ok {
		fail(http.StatusNotFound, "this endpoint passes calls on; it has neither faults nor a world")
		return
	}
	switch what := strings.TrimPrefix(r.URL.Path, controlPrefix); {
	case what == "world" && r.Method == http.MethodGet:
		_ = snapshot.Describe(backend.Snapshots()).Write(w)
	case what == "faults" && (r.Method == http.MethodGet || r.Method == http.MethodPut):
		if r.Method == http.MethodPut {
			faults, err := awsapi.LoadFaults(bytes.NewReader(body))
			if err == nil {
				err = backend.SetFaults(faults)
			}
			if err != nil {
				fail(http.StatusBadRequest, "the faults stay as they were: %v", err)
				return
			}
		}
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		_ = e.Encode(backend.Faults())
	case what == "faults" || what == "world":
		fail(http.StatusMethodNotAllowed, "%s is not for %s%s", r.Method, controlPrefix, what)
	default:
		fail(http.StatusNotFound, "there is %[1]sfaults (GET, PUT) and %[1]sworld (GET)", controlPrefix)
	}
}

// ProcessName names a caller for people: its access key, shortened, and its program, such as
// "AKIA…Q3ZX elbv2.k8s.aws/v3.4.0". Sessions of one role have keys of their own, so that this tells them apart; two programs that
// use one key with one release are one process to whoever only sees their calls.
func ProcessName(c traces.Caller) string {
	key := []rune(c.AccessKeyID)
	if n := len(key); n > 12 {
		key = slices.Concat(key[:4], []rune{'…'}, key[n-4:])
	}
	program := []rune(c.Product())
	const most = 64 // a user agent may be anything
	if len(program) > most {
		program = append(program[:most], '…')
	}
	return cmp.Or(strings.TrimSpace(string(key)+" "+string(program)), c.SourceAddress)
}

// RandomRequestID is a request id as AWS has them: a random UUID.
func RandomRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails: crypto/rand
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
