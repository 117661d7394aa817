package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"linearize.example/traces"
	"linearize.example/traces/awsapi"
)

// MaxAnswer bounds how much of an answer is kept to be read for the record, in bytes. The caller gets all of a longer one; the record
// has no result then.
const MaxAnswer = 64 << 20

// NotSent is the Error of an operation of which the client knows that it cannot have had an effect: no connection was made.
const NotSent = "NotSent"

// services are the SDK's names of the services whose calls are recorded.
var services = map[string]bool{"EC2": true, "Elastic Load Balancing v2": true}

// APIOptions returns what records the calls of a client of aws-sdk-go-v2, for aws.Config or the options of one client:
//
//	cfg.APIOptions = append(cfg.APIOptions, recorder.APIOptions()...)
//
// Each attempt of each call becomes an operation (awsapi.EveryCall), from the moment before it is handed to
// the transport until its answer was read. An attempt without an answer is pending: whether and when it takes effect, the client does
// not know. If no connection could be made it has failed, with the Error NotSent; that rests on the transport not trying twice
// by itself, which that of net/http does only if nothing was sent. A call that ended without an attempt, or after its last
// one for another reason than that one's, is noted with its error. Calls to other services pass untouched.
//
// The calls' results are never changed, and they do not fail because recording does (see Recorder.OnError).
func (r *Recorder) APIOptions() []func(*middleware.Stack) error {
	return []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
		// Equal for one Recorder, which may be given to the configuration and to a client.
		id := fmt.Sprintf("linearize.record %p", r)
		if _, added := stack.Deserialize.Get(id); added {
			return nil
		}
		whole := middleware.InitializeMiddlewareFunc(id, r.call)
		// Before the input is validated, and after the service is known: older clients have a step for that.
		const metadata = "RegisterServiceMetadata"
		var err error
		if _, ok := stack.Initialize.Get(metadata); ok {
			err = stack.Initialize.Insert(whole, metadata, middleware.After)
		} else {
			err = stack.Initialize.Add(whole, middleware.Before)
		}
		if err != nil {
			return err
		}
		return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc(id, r.attempt), middleware.After)
	}}
}

// attempts counts those of one call that were handed to the transport.
type attempts struct {
	n int
	// last is the error of the last one, nil if it was answered.
	last error
}

type attemptsKey struct{ *Recorder }

// call sees a whole call, with its retries.
func (r *Recorder) call(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	middleware.InitializeOutput, middleware.Metadata, error,
) {
	if !services[awsmiddleware.GetServiceID(ctx)] {
		return next.HandleInitialize(ctx, in)
	}
	tries := &attempts{}
	out, metadata, err := next.HandleInitialize(middleware.WithStackValue(ctx, attemptsKey{r}, tries), in)
	if err == nil {
		return out, metadata, err
	}
	name := awsmiddleware.GetOperationName(ctx)
	var response *smithyhttp.ResponseError
	switch {
	case tries.n == 0:
		r.observe(traces.Observation{Kind: traces.Noted, Error: err.Error(), Text: name + " was not sent"})
	case tries.last == nil && !errors.As(err, &response), tries.last != nil && !errors.Is(err, tries.last):
		r.observe(traces.Observation{Kind: traces.Noted, Error: err.Error(), Text: fmt.Sprintf("%s was given up after attempt %d", name, tries.n)})
	}
	return out, metadata, err
}

// attempt sees one attempt, behind everything that the SDK and the program do with the request.
func (r *Recorder) attempt(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
	middleware.DeserializeOutput, middleware.Metadata, error,
) {
	request, ok := in.Request.(*smithyhttp.Request)
	if !ok || !services[awsmiddleware.GetServiceID(ctx)] {
		return next.HandleDeserialize(ctx, in)
	}
	entry, call := r.begin(ctx, request)
	out, metadata, err := next.HandleDeserialize(ctx, in)
	if tries, ok := middleware.GetStackValue(ctx, attemptsKey{r}).(*attempts); ok {
		tries.n++
		tries.last = err
	}
	if entry != nil {
		response, _ := out.RawResponse.(*smithyhttp.Response)
		if err := entry.End(r.outcome(call, entry.begun, response, err)...); err != nil {
			r.failed(err)
		}
	}
	return out, metadata, err
}

// begin records that a request is about to be sent. It returns nil for one that is no operation, or that cannot be recorded.
func (r *Recorder) begin(ctx context.Context, request *smithyhttp.Request) (*Entry, *awsapi.Call) {
	if request.GetStream() != nil && !request.IsStreamSeekable() {
		return nil, nil // no call of EC2 or ELBv2 is sent that way
	}
	built := request.Build(ctx)
	call, err := awsapi.ReadCall(built)
	if err := request.RewindStream(); err != nil {
		r.failed(fmt.Errorf("record: a request cannot be read twice: %w", err))
		return nil, nil
	}
	if err != nil {
		r.failed(fmt.Errorf("record: a call of %s cannot be read: %w", awsmiddleware.GetOperationName(ctx), err))
		return nil, nil
	}
	call.Process = r.process
	asked := awsapi.EveryCall(call, nil)
	entry, err := r.log.Begin(asked...)
	if err != nil {
		r.failed(err)
		return nil, nil
	}
	return entry, call
}

// outcome says what became of an attempt. It reads the answer's body, and leaves an equal one in its place.
func (r *Recorder) outcome(call *awsapi.Call, asked []traces.Operation, response *smithyhttp.Response, err error) []traces.Operation {
	if response == nil || response.Response == nil || response.StatusCode == 0 {
		done := slices.Clone(asked)
		for i := range done {
			done[i].Extra = []traces.Field{field("reason", errorText(err))}
			if notConnected(err) {
				done[i].Outcome, done[i].Error = traces.Failed, NotSent
			}
		}
		return done
	}
	body := response.Body
	text, readErr := io.ReadAll(io.LimitReader(body, MaxAnswer+1))
	rest := io.Reader(body)
	if readErr != nil {
		rest = failing{readErr}
	}
	response.Body = &rereadable{io.MultiReader(bytes.NewReader(text), rest), body}
	if readErr != nil || len(text) > MaxAnswer {
		why := "is longer than " + strconv.Itoa(MaxAnswer>>20) + " MiB"
		if readErr != nil {
			why = "broke off: " + readErr.Error()
		}
		r.observe(traces.Observation{Kind: traces.Noted, Text: fmt.Sprintf("the answer to %s %s; its status is %d", call.Action, why, response.StatusCode)})
		text = nil
	}
	answer := awsapi.ReadAnswer(response.StatusCode, text)
	if answer.RequestID == "" {
		answer.RequestID = response.Header.Get("X-Amzn-Requestid")
	}
	return awsapi.EveryCall(call, answer)
}

// notConnected reports whether no connection was made: nothing else proves that the request cannot arrive.
func notConnected(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// rereadable is a body that was read already.
type rereadable struct {
	io.Reader
	body io.Closer
}

func (r *rereadable) Close() error { return r.body.Close() }

// failing is the rest of a body that broke off.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
