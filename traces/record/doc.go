// Package record records the calls of a controller, or of any program, as a history (docs/history.md) while they happen.
//
// A Log writes the history, so that nothing that was acknowledged is lost. A Recorder is the client's side: middleware for
// aws-sdk-go-v2 that records each attempt of each call to EC2 and ELBv2, and a few methods to note what else a controller sees. The
// other side, an endpoint that records, is Handler. A Sink takes what was recorded besides the log: NewCloudTrail writes what
// CloudTrail would have written.
package record
