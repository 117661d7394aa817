package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/aws/smithy-go"

	"linearize.example/traces"
)

// Recorder is one process's side of a recording: its calls, by way of APIOptions, and what it notes of itself. Its methods may be
// called at once by several goroutines. Notes wait for no disk (Log.Note).
type Recorder struct {
	// OnError is told why something could not be recorded. It is called at once by several goroutines, and should return
	// soon. Without one, the first error goes to standard error. It is set before the Recorder is used.
	OnError func(error)

	log     *Log
	process string
	told    sync.Once
}

// New returns a Recorder that records into l. The process names this running program, such as its pod; histories tell processes
// apart by it.
func New(l *Log, process string) *Recorder { return &Recorder{log: l, process: process} }

func (r *Recorder) failed(err error) {
	if r.OnError != nil {
		r.OnError(err)
		return
	}
	r.told.Do(func() { fmt.Fprintln(os.Stderr, err) })
}

// observe notes an observation of this process.
func (r *Recorder) observe(ob traces.Observation, extra ...traces.Field) {
	ob.Process = r.process
	ob.Extra = extra
	if err := r.log.Note(ob); err != nil {
		r.failed(err)
	}
}

// field is a field of an observation that is there for people, and for whoever reads the history's fields.
func field(name string, value any) traces.Field {
	return traces.Field{Name: name, Value: string(mustMarshal(value))}
}

// Started notes that the process has started, with its version and flags.
func (r *Recorder) Started(version string, flags ...string) {
	r.observe(traces.Observation{Kind: traces.Started}, field("version", version), field("flags", flags))
}

// LeaderElected notes that the process is the leader from now on.
func (r *Recorder) LeaderElected() { r.observe(traces.Observation{Kind: traces.LeaderElected}) }

// LeaderLost notes that it no longer is.
func (r *Recorder) LeaderLost() { r.observe(traces.Observation{Kind: traces.LeaderLost}) }

// Reconciling notes that a reconcile of the TGB ("namespace/name") begins: an id of the reconcile, as the log has it, and what
// triggered it.
func (r *Recorder) Reconciling(tgb, id, trigger string) {
	r.observe(traces.Observation{Kind: traces.Reconciling, TGB: tgb}, field("reconcileId", id), field("trigger", trigger))
}

// Reconciled notes that a reconcile of the TGB ended well.
func (r *Recorder) Reconciled(tgb string) {
	r.observe(traces.Observation{Kind: traces.Reconciled, TGB: tgb})
}

// ReconcileFailed notes that a reconcile of the TGB ended with an error.
func (r *Recorder) ReconcileFailed(tgb string, err error) {
	r.observe(traces.Observation{Kind: traces.ReconcileFailed, TGB: tgb, Error: errorText(err)})
}

// Requeued notes that the TGB is to be reconciled again after a while, and why; err may be nil.
func (r *Recorder) Requeued(tgb string, after time.Duration, err error) {
	r.observe(traces.Observation{Kind: traces.Requeued, TGB: tgb, Error: errorText(err)}, field("afterSeconds", after.Seconds()))
}

// Retrying notes that the network part of a reconcile runs once more without the cache, after an error.
func (r *Recorder) Retrying(tgb, group string, err error) {
	r.observe(traces.Observation{Kind: traces.Retrying, TGB: tgb, Group: group, Error: errorText(err)})
}

// Skipped notes that a reconcile of the TGB was skipped, its checkpoint being equal.
func (r *Recorder) Skipped(tgb string) {
	r.observe(traces.Observation{Kind: traces.Skipped, TGB: tgb})
}

// Deferred notes that the TGB was handed to the deferred queue.
func (r *Recorder) Deferred(tgb string) {
	r.observe(traces.Observation{Kind: traces.Deferred, TGB: tgb})
}

// CheckpointReset notes that the TGB's stored checkpoint was emptied.
func (r *Recorder) CheckpointReset(tgb string) {
	r.observe(traces.Observation{Kind: traces.CheckpointReset, TGB: tgb})
}

// Wanted notes the permissions that the process wants the group to have, on behalf of a TGB, or ("") of all.
func (r *Recorder) Wanted(tgb, group string, permissions []traces.Permission) {
	r.observe(traces.Observation{Kind: traces.Wanted, TGB: tgb, Group: group, Permissions: permissions})
}

// CacheHit notes that the group's rules were taken from the cache, where they have been for so long.
func (r *Recorder) CacheHit(group string, age time.Duration) {
	r.observe(traces.Observation{Kind: traces.CacheHit, Group: group}, field("ageSeconds", age.Seconds()))
}

// CacheFilled notes the rules that were put into the cache.
func (r *Recorder) CacheFilled(group string, permissions []traces.Permission) {
	r.observe(traces.Observation{Kind: traces.CacheFilled, Group: group, Permissions: permissions})
}

// Note notes anything else.
func (r *Recorder) Note(text string) { r.observe(traces.Observation{Kind: traces.Noted, Text: text}) }

// Permissions converts the SDK's []types.IpPermission of service/ec2 (or anything that is written to JSON with the same names).
func Permissions(list any) ([]traces.Permission, error) {
	text, err := json.Marshal(list)
	if err == nil {
		var permissions []traces.Permission
		if permissions, err = traces.DecodePermissions(text); err == nil {
			return permissions, nil
		}
	}
	return nil, fmt.Errorf("record: the permissions cannot be read: %w", err)
}

// errorText is AWS's code where the error has one, and the error's text otherwise.
func errorText(err error) string {
	var api smithy.APIError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &api):
		return api.ErrorCode()
	}
	return err.Error()
}

// mustMarshal writes what cannot fail to be written: strings, lists of strings, finite numbers.
func mustMarshal(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		return []byte("null")
	}
	return text
}
