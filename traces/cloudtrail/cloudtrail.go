// Package cloudtrail reads CloudTrail events about security groups and their rules, and about targets, in the shapes
// in which people hold them: log files from S3, lookup-events, EventBridge (through SNS, SQS and Lambda too),
// CloudWatch Logs, CloudTrail Lake, Athena, and what SIEMs export. The shape is found from the content.
//
// The input is split into records without decoding them, and a record that names none of the calls in question is
// only counted. Nothing is dropped without being counted: Records is the sum of Used, Duplicates, Irrelevant and
// Rejected.
package cloudtrail

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"linearize.example/traces"
	"linearize.example/traces/internal/stream"
)

// MaxRecord bounds one record, in bytes. CloudTrail's own limit is 1 MiB for an event (and less through EventBridge and
// CloudWatch Logs); escapes and indentation add to it.
const MaxRecord = 4 << 20

// ErrNoEvents says that the input holds nothing that CloudTrail wrote.
var ErrNoEvents = errors.New("no CloudTrail event found")

// Options say how events become operations.
type Options struct {
	// Skew widens the second in which an event happened, on both sides. It has no default here: zero is zero.
	Skew time.Duration
}

// Reader reads any number of inputs into one history. It remembers the events that it has seen, so that an event that
// several files hold is one operation.
type Reader struct {
	h       *traces.History
	options Options

	byEvent   map[string]int // index of the operation, by eventID
	byShared  map[string]int // by sharedEventID
	byRequest map[string]int // by requestID and name of the call
	callers   map[traces.Caller]*traces.Caller
	strings   map[string]string
	// names holds the ids of groups by name, learned from CreateSecurityGroup; "" for a name given twice.
	names map[string]string
	named map[int]bool // operations whose group is a name
	// decodeAll turns off what passes over records undecoded, for the test that this changes nothing.
	decodeAll bool
}

// NewReader returns a Reader that appends to h.
func NewReader(h *traces.History, options Options) *Reader {
	return &Reader{
		h: h, options: options,
		byEvent: map[string]int{}, byShared: map[string]int{}, byRequest: map[string]int{},
		callers: map[traces.Caller]*traces.Caller{}, strings: map[string]string{},
		names: map[string]string{}, named: map[int]bool{},
	}
}

// Read reads one input and appends its operations to h; counts, rejected records and notes go to h.Inputs[input]. It is
// NewReader, Read and Finish in one.
func Read(src io.Reader, h *traces.History, input int, options Options) error {
	r := NewReader(h, options)
	if err := r.Read(src, input); err != nil {
		return err
	}
	r.Finish()
	return nil
}

// Read reads one input; h.Inputs[input] must exist. It fails with ErrNoEvents, and the reason, where nothing in the
// input is CloudTrail's, and with what src returns. Operations read before an error stay in the history.
func (r *Reader) Read(src io.Reader, input int) error {
	rd := &reading{Reader: r, input: input, in: &r.h.Inputs[input]}
	err := rd.run(stream.UTF8(src))
	rd.notes()
	switch {
	case err != nil:
		return err
	case !rd.recognized && rd.counts.notifications > 0:
		return fmt.Errorf("%w: notifications of S3 or SNS; give the log files that they name", ErrNoEvents)
	case !rd.recognized && len(rd.in.Rejections) > 0:
		return fmt.Errorf("%w: %s", ErrNoEvents, rd.in.Rejections[0])
	case !rd.recognized:
		return ErrNoEvents
	}
	if rd.in.Format == "" {
		rd.in.Format = "cloudtrail"
	}
	return nil
}

// Finish names the callers' processes, and gives calls that name their group by its name the group's id, where the
// history shows it. Call it once, after the last input.
func (r *Reader) Finish() {
	for i := range r.named {
		if id := r.names[r.h.Operations[i].Group]; id != "" {
			r.h.Operations[i].Group = id
		}
	}
	type appearance struct {
		caller *traces.Caller
		first  traces.Instant
	}
	first := map[*traces.Caller]traces.Instant{}
	for _, c := range r.callers {
		first[c] = traces.Forever
	}
	for i := range r.h.Operations {
		op := &r.h.Operations[i]
		if t, ok := first[op.Caller]; ok {
			first[op.Caller] = min(t, op.Call)
		}
	}
	order := make([]appearance, 0, len(first))
	for c, t := range first {
		order = append(order, appearance{c, t})
	}
	slices.SortFunc(order, func(a, b appearance) int {
		return cmp.Or(cmp.Compare(a.first, b.first), compareCallers(a.caller, b.caller))
	})
	taken := map[string]int{}
	names := map[*traces.Caller]string{}
	for _, a := range order {
		name := processName(a.caller)
		if taken[name]++; taken[name] > 1 {
			name += "#" + strconv.Itoa(taken[name])
		}
		names[a.caller] = name
	}
	for i := range r.h.Operations {
		if name, ok := names[r.h.Operations[i].Caller]; ok {
			r.h.Operations[i].Process = name
		}
	}
}

// intern returns one copy of equal strings.
func (r *Reader) intern(s string) string {
	if t, ok := r.strings[s]; ok {
		return t
	}
	if len(r.strings) < 1<<16 {
		r.strings[s] = s
	}
	return s
}

// Sniff reports whether an input that begins with prefix may hold CloudTrail events: whether words that only their
// shapes have occur in it. The prefix should be some kilobytes of text in UTF-8.
func Sniff(prefix []byte) bool {
	for _, word := range [][]byte{
		[]byte("eventVersion"), []byte("eventversion"), []byte("CloudTrail"), []byte("cloudtrail"),
		[]byte("QueryResultRows"), []byte("digestStartTime"), []byte("AwsApiCall"), []byte("eventSource"),
		[]byte("eventsource"), []byte("Event source"),
	} {
		if bytes.Contains(prefix, word) {
			return true
		}
	}
	head := bytes.TrimLeft(prefix, " \t\r\n")
	for _, key := range containerKeys {
		if len(head) > 0 && head[0] == '{' && bytes.HasPrefix(bytes.TrimLeft(head[1:], " \t\r\n"), []byte(key)) {
			return true
		}
	}
	return false
}
