package traces

// The names of the calls that change a group's ingress rules, its targets, or tell something about them, as AWS
// spells them.
const (
	AuthorizeSecurityGroupIngress              = "AuthorizeSecurityGroupIngress"
	RevokeSecurityGroupIngress                 = "RevokeSecurityGroupIngress"
	ModifySecurityGroupRules                   = "ModifySecurityGroupRules"
	UpdateSecurityGroupRuleDescriptionsIngress = "UpdateSecurityGroupRuleDescriptionsIngress"
	CreateSecurityGroup                        = "CreateSecurityGroup"
	DeleteSecurityGroup                        = "DeleteSecurityGroup"
	DescribeSecurityGroups                     = "DescribeSecurityGroups"
	DescribeSecurityGroupRules                 = "DescribeSecurityGroupRules"
	RegisterTargets                            = "RegisterTargets"
	DeregisterTargets                          = "DeregisterTargets"
)

// Outcome says what is known of a call's result. The zero value means that nothing is known.
type Outcome uint8

// The outcomes of a call.
const (
	// Pending: no answer was seen. The call may have taken effect, at any later time, or never.
	Pending Outcome = iota
	// Succeeded: AWS answered without an error.
	Succeeded
	// Failed: AWS answered with an error, and the call changed nothing.
	Failed
)

// Operation is one call of AWS's API, in the form in which every verdict uses it. Operations are never edited in
// place once a reader has delivered them: Merge builds new ones.
type Operation struct {
	// ID names the record for people: "seq 15" of a history, an eventID, "controller.log:12".
	ID string
	// EventID is CloudTrail's identifier of the event, RequestID AWS's of the call; empty where the source has none.
	EventID, RequestID string
	// Process is the caller: one running controller, or one session of somebody else. Readers fill it from what
	// the source has; empty means that the source does not tell.
	Process string
	// Op is AWS's own name of the call.
	Op string
	// Group is the security group's id, for calls on a group.
	Group string
	// Permissions are what was asked for, one for each protocol, port range and source.
	Permissions []Permission
	// Updates are the changes of ModifySecurityGroupRules: rule ids and the permissions they shall have.
	Updates []RuleUpdate
	// RuleIDs are the ids of a revoke by rule id, or of a describe of rules.
	RuleIDs []string
	// Granted are the rules, with ids, that the answer to an authorize lists; Revoked those of a revoke.
	Granted, Revoked []IdentifiedPermission
	// Unknown are permissions that a successful revoke reported as not present (unknownIpPermissionSet).
	Unknown []Permission
	// View is what a describe returned; nil where the answer was not recorded, empty but not nil for no rules.
	View []Permission
	// TargetGroup is the ARN of the target group, for calls on targets, and Targets what they named.
	TargetGroup string
	Targets     []Target
	// Outcome says whether the call succeeded; Error is AWS's code without a leading "Client." or "Server.", for
	// failed calls. A failed call whose code is not known has the Error "unknown".
	Outcome Outcome
	Error   string
	// Call and Return are the interval in which the call took effect, both included. Return is Forever for a call
	// without an answer.
	Call, Return Instant
	// Stamp is the time that the source itself writes for the call, where it is coarser than the interval's bounds: the
	// second of a CloudTrail event. Merge sets it; 0 where there is none.
	Stamp Instant
	// After is the index, in History.Operations, of the operation that the same caller finished before it sent this
	// one, where the source proves it (the lines of one controller log); -1 where it does not. It orders calls
	// whose intervals overlap only because the source's clock is coarse.
	After int
	// Unclear: the record lacks what was asked for (truncated or missing requestParameters), so that nobody knows what
	// the call did.
	Unclear bool
	// Caller is who made the call; nil where the source does not tell. Operations of one caller share one value.
	Caller *Caller
	// Sources lists the records that this operation was read from.
	Sources []Source
	// Extra keeps the fields of a history record that this version does not know.
	Extra []Field
}

// Field is one field of a record, its value as JSON.
type Field struct {
	Name  string
	Value string
}

// Target is one target of a target group: an address or instance, and its port (0 where the call left it out).
type Target struct {
	ID   string
	Port int32
}

// Caller is who made a call, from CloudTrail's userIdentity or a log's own fields.
type Caller struct {
	// Role is the role's or user's name, Session the session's name, Account the account's id.
	Role        string `json:"role,omitempty"`
	Session     string `json:"session,omitempty"`
	Account     string `json:"account,omitempty"`
	AccessKeyID string `json:"accessKeyId,omitempty"`
	// SessionStart is sessionContext.attributes.creationDate, as written.
	SessionStart  string `json:"sessionStart,omitempty"`
	UserAgent     string `json:"userAgent,omitempty"`
	SourceAddress string `json:"sourceAddress,omitempty"`
	// InvokedBy is the AWS service that made the call on somebody's behalf.
	InvokedBy string `json:"invokedBy,omitempty"`
}

// Source is one record of a capture.
type Source struct {
	// Input indexes History.Inputs; Position is the record's place in it: "line 12", "record 3".
	Input    int
	Position string
}

// ObservationKind says what was observed.
type ObservationKind string

// The kinds of observations.
const (
	Started         ObservationKind = "started"          // a controller process started
	LeaderElected   ObservationKind = "leader-elected"   // a controller process became leader
	LeaderLost      ObservationKind = "leader-lost"      // it lost the lease
	Skipped         ObservationKind = "skipped"          // a TGB's reconcile was skipped, its checkpoint being equal
	Deferred        ObservationKind = "deferred"         // a TGB was handed to the deferred queue
	CheckpointReset ObservationKind = "checkpoint-reset" // a TGB's checkpoint was emptied
	Reconciled      ObservationKind = "reconciled"       // a TGB's reconcile ended well
	Requeued        ObservationKind = "requeued"         // a TGB's reconcile was queued again, after an error or a wait
	ReconcileFailed ObservationKind = "reconcile-failed" // a reconcile ended with an error
	Retrying        ObservationKind = "retrying"         // the network part runs once more without the cache
	Wanted          ObservationKind = "wanted"           // the permissions that a process wanted, in Permissions
	Reconciling     ObservationKind = "reconciling"      // a TGB's reconcile began
	CacheHit        ObservationKind = "cache-hit"        // a process took a group's rules from its cache
	CacheFilled     ObservationKind = "cache-filled"     // a process put a group's rules, in Permissions, into its cache
	Noted           ObservationKind = "noted"            // anything else that a recorder noted
)

// Observation is what a source tells besides calls.
type Observation struct {
	ID      string
	Kind    ObservationKind
	Process string
	// TGB is the TargetGroupBinding, "namespace/name", or the name alone where the source has no namespace.
	TGB string
	// Group is the security group concerned, where the source tells.
	Group string
	// Earliest and Latest bound the instant.
	Earliest, Latest Instant
	Permissions      []Permission
	// Error is AWS's error code, or the whole error text where it has no code.
	Error string
	// Text is what the source said, for people.
	Text    string
	Sources []Source
	// Extra keeps the fields of a history record that this version does not know.
	Extra []Field
}

// Input is one file, stream or archive member that was read.
type Input struct {
	Path   string
	Format string
	// Recording is the id of the recording that the file is a part of, and Part its place in it from 1; empty and 0 where the
	// file does not say.
	Recording string
	Part      int
	// Records counts what looked like a record; each is used, a duplicate, irrelevant (a call that neither changes
	// nor shows rules or targets), or rejected.
	Records, Used, Duplicates, Irrelevant, Rejected int
	// Rejections are the first of the rejected records, with position and reason, at most MaxRejections.
	Rejections []string
	// Notes say what the input itself shows to be missing: a NextToken, a torn last line, a truncated archive.
	Notes []Note
}

// MaxRejections bounds Input.Rejections; the count goes on.
const MaxRejections = 20

// Reject counts a record that cannot be used and keeps the reason of the first ones.
func (in *Input) Reject(position, reason string) {
	in.Rejected++
	if len(in.Rejections) < MaxRejections {
		in.Rejections = append(in.Rejections, position+": "+reason)
	}
}

// Note is a remark on an input. Kind is a finding's kind, such as "truncated-capture".
type Note struct {
	Kind, Text string
}

// History is everything that was read, in the order in which it was read until Sort or Merge orders it.
type History struct {
	Operations   []Operation
	Observations []Observation
	Inputs       []Input
	// Header keeps what a history file said of itself besides its version.
	Header map[string]string
	// Expected is how many bytes the input has that is being read, with those of its kind that come after it; 0 where nobody knows.
	// It is a hint for readers.
	Expected int64
	// Recordings are, by their ids, what the parts of a recording share while they are read; whoever reads the last part may drop
	// them.
	Recordings map[string]*Recording
}
