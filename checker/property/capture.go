package property

import (
	"regexp"
	"strings"
	"time"

	"linearize.example/checker/orders"
	"linearize.example/traces"
)

// Need says when a port counts as needed for which nothing in the capture proves it.
type Need uint8

// The two ways to treat needs that nothing proves.
const (
	// Assumed: the lowest and the highest port of every managed rule were asked for by somebody (the controller
	// aggregates ports from the lowest to the highest, networking_manager.go line 324), from when the rule is known
	// to have existed until the controller itself narrows its rules.
	Assumed Need = iota
	// Proven: such ports count as not needed.
	Proven
)

// Capture is what is known of one group.
type Capture struct {
	Group string
	// Operations are those that concern the group, merged, with rule ids resolved, in the order of their Call.
	Operations []traces.Operation
	// Snapshot are the rules at the beginning; nil where nobody gave them.
	Snapshot *traces.Snapshot
	// Bindings are the TargetGroupBindings; HasBindings tells none from not given.
	Bindings    []traces.Binding
	HasBindings bool
	// Skips are the instants at which TGBs were skipped, by name.
	Skips []traces.Observation
	// From and To are the first and the last instant of the whole capture.
	From, To traces.Instant
	// Releases gives, for a process, the release of the controller that it is; ok is false for a process of which
	// nobody knows whether it is a controller, and Controller is false for one that is known to be something else.
	Releases map[string]Release
}

// Release is what is known of a process's program.
type Release struct {
	Controller bool
	Version    Version // zero where unknown
	Role       string  // who it acts as; empty where unknown
}

// Options say how to judge.
type Options struct {
	Need Need
	// Managed matches the descriptions of managed rules; nil means the controller's own test.
	Managed *regexp.Regexp
	// Lenient: a revoke of absent rules succeeds and changes nothing, as in a default VPC.
	Lenient bool
	// Contract also orders, in one process, an authorize before a revoke where nothing but the release says so.
	Contract bool
	// Settle is how long after the last change leftovers count against tight.
	Settle time.Duration
	Budget orders.Budget

	// anyStart: rules whose presence at the beginning is not proven are tried both ways.
	anyStart bool
	// freely: the order of calls on targets and on rules in one reconcile is not used.
	freely bool
	// fewOpen: calls of unknown outcome on few rules stay open for good.
	fewOpen bool
}

var label = regexp.MustCompile(`([^\s,=]+)=([^\s,=]+)(?:,|$)`)

// Managed reports whether a rule's description marks it as the controller's own, as the controller itself tests it:
// the description is parsed as key=value pairs, of which elbv2.k8s.aws/targetGroupBinding must be "shared"
// (pkg/networking/security_group_info.go).
func Managed(description string) bool {
	const mark = "elbv2.k8s.aws/targetGroupBinding=shared"
	if description == mark || !strings.Contains(description, mark) {
		return description == mark
	}
	for _, m := range label.FindAllStringSubmatch(description, -1) {
		if m[1] == "elbv2.k8s.aws/targetGroupBinding" && m[2] == "shared" {
			return true
		}
	}
	return false
}
