package model

// Design is what a controller does: the protocol of v3.4.0 with a few switches turned. The switches
// carry the names of spec.tla's constants. Each is read in one place, next to what it changes.
type Design struct {
	Name string

	UseCache              bool // rules are kept in memory for 10 minutes
	RevokeFirst           bool // revoke, then authorize (before v2.12.0)
	RevokeFirstOnLimit    bool // after a limit error try again, revoking first (since v2.12.0)
	InvalidateOnError     bool // delete the cache entry when a call fails
	WriteThrough          bool // after a change, cache its computed result
	GuardView             bool // no revoke if by the view nothing would be left
	GuardReread           bool // the same, with a new describe just before the revoke
	ConfirmAuthorize      bool // authorize all that is wanted; Duplicate is success; then revoke
	ConfirmBeforeRevoke   bool // the same, but only when something is to be revoked
	ReadYourWrites        bool // after a change, describe until it is visible
	CheckpointVerifiesAWS bool // a binding is skipped only if its rule is seen in the group
	GroupMutex            bool // permissions are computed before the lock on the group is taken
	AllPorts              bool // one rule for all ports instead of the lowest to the highest
	GateRegister          bool // no new target is registered when the network part failed
	WaitOut               bool // nothing is begun while an earlier call may still take effect
	OwnRules              bool // a cluster revokes only rules with its own source
}
