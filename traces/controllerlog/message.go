package controllerlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"linearize.example/traces"
)

// errIrrelevant is returned for a line that turns out to be of no interest.
var errIrrelevant = errors.New("irrelevant")

var (
	errNoGroup       = errors.New("the line names no security group")
	errNoTargetGroup = errors.New(`the line names no target group ("arn")`)
)

// message is one of the controller's messages: what it proves of its process, and what the reader does with it. do
// returns why a line cannot be used.
type message struct {
	phase    phase
	relevant func(*entry) bool
	do       func(*reader, *process, *entry) error
}

// messages are the texts that do not vary, from the source of the releases named in the package comment.
var messages map[string]*message

// prefixes are the texts that go on with a name, in lower case: client-go changed their case and end.
var prefixes []struct {
	text string
	*message
}

func init() {
	authorize, revoke := traces.AuthorizeSecurityGroupIngress, traces.RevokeSecurityGroupIngress
	register, deregister := traces.RegisterTargets, traces.DeregisterTargets
	seen := func(ph phase, kind traces.ObservationKind) *message {
		return &message{phase: ph, do: observed(kind)}
	}
	messages = map[string]*message{
		"version": {phase: starting, relevant: hasVersion, do: (*reader).version},

		// pkg/networking/security_group_manager.go
		"authorizing securityGroup ingress": {phase: leading, do: ingressStart(authorize)},
		"authorized securityGroup ingress":  {phase: leading, do: ingressEnd(authorize)},
		"revoking securityGroup ingress":    {phase: leading, do: ingressStart(revoke)},
		"revoked securityGroup ingress":     {phase: leading, do: ingressEnd(revoke)},
		// pkg/networking/security_group_reconciler.go, since v2.12.0
		"Retrying ReconcileIngress without using cache": {phase: leading, do: (*reader).retrying},
		// pkg/targetgroupbinding/targets_manager.go
		"registering targets":   {phase: leading, do: targetStart(register)},
		"registered targets":    {phase: leading, do: targetEnd(register)},
		"deRegistering targets": {phase: leading, do: targetStart(deregister)},
		"deRegistered targets":  {phase: leading, do: targetEnd(deregister)},
		// pkg/deploy/ec2/security_group_manager.go and, for the shared group, pkg/networking/backend_sg_provider.go
		"creating securityGroup": {phase: leading, do: (*reader).creating},
		"created securityGroup":  {phase: leading, do: (*reader).created},
		"created SecurityGroup":  {phase: leading, do: (*reader).created},
		"deleting securityGroup": {phase: leading, do: (*reader).deleting},
		"deleted securityGroup":  {phase: leading, do: (*reader).deleted},

		// pkg/targetgroupbinding/resource_manager.go, since v2.9.1
		"Skipping targetgroupbinding reconcile":                                      seen(leading, traces.Skipped),
		"Successful reconcile":                                                       seen(leading, traces.Reconciled),
		"Requeue for target monitor target health":                                   seen(leading, traces.Requeued),
		"Requeue for potentially ready endpoints":                                    seen(leading, traces.Requeued),
		"Requeue for networking requeue":                                             seen(leading, traces.Requeued),
		"Unable to update checkpoint before mutating change":                         seen(leading, traces.Noted),
		"Requesting network requeue due to error from ReconcileForPodEndpoints":      {phase: leading, do: (*reader).networkError},
		"Requesting network requeue due to error from ReconcileForNodePortEndpoints": {phase: leading, do: (*reader).networkError},
		// The AZ error of the first attempt is what this line stands for (since v3.2.0).
		"RegisterTargets failed with AZ validation error, retrying with pod AZs": {phase: leading, do: (*reader).registerRetried},

		// controllers/elbv2/targetgroupbinding_deferred_reconciler.go, since v2.9.1
		"enqueued new deferred TGB":           seen(leading, traces.Deferred),
		"TGB not eligible for deferral":       seen(leading, traces.Noted),
		"Processing deferred TGB":             seen(leading, traces.Noted),
		"TGB checkpoint reset":                seen(leading, traces.CheckpointReset),
		"Failed to get TGB in deferred queue": seen(leading, traces.Noted),
		"Failed to reset TGB checkpoint":      seen(leading, traces.Noted),
		"Shutting down deferred TGB queue":    seen(anytime, traces.Noted),

		// pkg/networking/networking_manager.go, since v2.13.3
		"Unable to fetch TGBs with networking during gc attempt": seen(leading, traces.Noted),
		"Unable to perform SG garbage collection":                {phase: leading, do: (*reader).otherError},
		// pkg/runtime/reconcile.go, at debug level
		"requeue after": seen(leading, traces.Requeued),
		"requeue":       seen(leading, traces.Requeued),

		// controller-runtime
		"Reconciler error":    {phase: leading, relevant: ofController, do: (*reader).reconcilerError},
		"Starting Controller": {phase: serving, relevant: ofBindings, do: (*reader).serving},
		"Starting workers":    {phase: serving, relevant: ofBindings, do: (*reader).serving},
		// main.go
		"problem running manager": {phase: losing, do: (*reader).managerEnded},
	}
	prefixes = []struct {
		text string
		*message
	}{
		// client-go, tools/leaderelection
		{"attempting to acquire leader lease", &message{phase: attempting, do: (*reader).attempting}},
		{"successfully acquired lease", &message{phase: acquiring, do: (*reader).acquired}},
		{"failed to renew lease", &message{phase: losing, do: (*reader).leaseLost}},
	}
}

// longestPrefix bounds the part of a message that is compared with prefixes.
const longestPrefix = 40

func lookup(msg string) *message {
	if m := messages[msg]; m != nil {
		return m
	}
	head := strings.ToLower(msg[:min(len(msg), longestPrefix)])
	for i := range prefixes {
		if strings.HasPrefix(head, prefixes[i].text) {
			return prefixes[i].message
		}
	}
	return nil
}

func hasVersion(e *entry) bool { return e.text("GitVersion") != "" }

// ofBindings tells whether a line of controller-runtime is of the controller of TGBs. Its name is a field since
// controller-runtime v0.12 and before v0.7, and part of the logger's name in between.
func ofBindings(e *entry) bool {
	return strings.EqualFold(controllerOf(e), "targetGroupBinding")
}

// ofController tells whether the line is of one of this program's controllers, and not of another program whose log
// is mixed in.
func ofController(e *entry) bool {
	switch name := strings.ToLower(controllerOf(e)); name {
	case "targetgroupbinding", "ingress", "service", "globalaccelerator":
		return true
	default:
		return strings.HasPrefix(name, "gateway.k8s.aws")
	}
}

func controllerOf(e *entry) string {
	if name := e.text("controller"); name != "" {
		return name
	}
	name, _ := strings.CutPrefix(e.logger, "controller-runtime.")
	name, _ = strings.CutPrefix(name, "manager.")
	name, _ = strings.CutPrefix(name, "controller.")
	return name
}

// binding names the TGB of a line. The deferred queue logs names without namespace; the skip before tells it.
func (p *process) binding(e *entry) string {
	namespace, name := e.binding("tgb", "TGB", "TargetGroupBinding", "item")
	if name == "" && ofBindings(e) {
		namespace, name = e.text("namespace"), e.text("name")
		if before, after, ok := strings.Cut(name, "/"); ok && namespace == "" {
			namespace, name = before, after
		}
	}
	switch {
	case name == "":
		return ""
	case namespace == "":
		if full := p.bindings[name]; full != "" {
			return full
		}
		return name
	}
	if len(p.bindings) > maxRemembered {
		clear(p.bindings)
	}
	p.bindings[name] = namespace + "/" + name
	return p.bindings[name]
}

// maxRemembered bounds what is kept by names that the log chooses.
const maxRemembered = 100_000

func observed(kind traces.ObservationKind) func(*reader, *process, *entry) error {
	return func(r *reader, p *process, e *entry) error {
		text := e.msg
		for _, field := range []string{"calculated hash", "checkpoint", "reason"} {
			if value := e.text(field); value != "" {
				text += " (" + field + " " + value + ")"
			}
		}
		r.observe(p, e, traces.Observation{Kind: kind, TGB: p.binding(e), Error: errorCode(e.text("error")), Text: text})
		return nil
	}
}

func (r *reader) version(p *process, e *entry) error {
	p.started = true
	version := e.text("GitVersion")
	// pkg/aws/aws_config.go: every call's user agent contains this.
	p.caller = &traces.Caller{UserAgent: "elbv2.k8s.aws/" + version}
	text := "version " + version
	if commit := e.text("GitCommit"); commit != "" {
		text += " (commit " + commit + ")"
	}
	r.observe(p, e, traces.Observation{Kind: traces.Started, Text: text})
	return nil
}

func (r *reader) attempting(p *process, e *entry) error {
	p.attempted = true
	if !e.yearless {
		p.attemptedAt = e.at
	}
	kind := traces.Noted
	if !p.started {
		kind, p.started = traces.Started, true
	}
	r.observe(p, e, traces.Observation{Kind: kind})
	return nil
}

func (r *reader) acquired(p *process, e *entry) error {
	p.elected, p.lost = true, false
	r.observe(p, e, traces.Observation{Kind: traces.LeaderElected})
	return nil
}

// serving infers the election, where the log lacks client-go's line, from the first controller that starts afterwards.
func (r *reader) serving(p *process, e *entry) error {
	if p.elected {
		return errIrrelevant
	}
	p.elected = true
	earliest := e.at.lo
	if p.attemptedAt.lo != 0 {
		earliest = min(earliest, p.attemptedAt.lo)
	}
	r.observe(p, e, traces.Observation{
		Kind: traces.LeaderElected, Earliest: earliest, Latest: e.at.hi,
		Text: e.msg + ", which comes after the lease was won",
	})
	return nil
}

func (r *reader) leaseLost(p *process, e *entry) error {
	if p.lost {
		return errIrrelevant
	}
	p.lost = true
	r.observe(p, e, traces.Observation{Kind: traces.LeaderLost, Error: e.text("error")})
	return nil
}

func (r *reader) managerEnded(p *process, e *entry) error {
	if strings.Contains(e.text("error"), "leader election lost") && !p.lost {
		return r.leaseLost(p, e)
	}
	p.lost = true
	r.observe(p, e, traces.Observation{Kind: traces.Noted, Error: e.text("error")})
	return nil
}

func ingressStart(op string) func(*reader, *process, *entry) error {
	return func(r *reader, p *process, e *entry) error {
		sg := e.text("securityGroupID")
		if sg == "" {
			return errNoGroup
		}
		permissions, err := traces.DecodePermissions(e.fields["permission"])
		unclear := err != nil || len(permissions) == 0
		if unclear {
			r.unclear++
			permissions = nil
		}
		r.start(p, e, traces.Operation{Op: op, Group: sg, Permissions: permissions, Unclear: unclear}, sg)
		return nil
	}
}

func ingressEnd(op string) func(*reader, *process, *entry) error {
	return func(r *reader, p *process, e *entry) error {
		sg := e.text("securityGroupID")
		if sg == "" {
			return errNoGroup
		}
		r.ingressEnds = true
		if !r.succeed(p, e, sg, op) {
			r.headlessCall(p, e, traces.Operation{Op: op, Group: sg}, sg)
		}
		return nil
	}
}

func targetStart(op string) func(*reader, *process, *entry) error {
	return func(r *reader, p *process, e *entry) error {
		arn := e.text("arn")
		if arn == "" {
			return errNoTargetGroup
		}
		targets, err := decodeTargets(e.fields["targets"])
		if err != nil {
			r.unclear++
		}
		r.start(p, e, traces.Operation{Op: op, TargetGroup: arn, Targets: targets, Unclear: err != nil}, arn)
		return nil
	}
}

func targetEnd(op string) func(*reader, *process, *entry) error {
	return func(r *reader, p *process, e *entry) error {
		arn := e.text("arn")
		if arn == "" {
			return errNoTargetGroup
		}
		r.targetEnds = true
		if !r.succeed(p, e, arn, op) {
			// Since v2.9.0 the end line repeats the targets.
			targets, err := decodeTargets(e.fields["targets"])
			r.headlessCall(p, e, traces.Operation{Op: op, TargetGroup: arn, Targets: targets}, arn)
			if err == nil {
				r.h.Operations[len(r.h.Operations)-1].Unclear = false
			}
		}
		return nil
	}
}

// decodeTargets reads ELB's TargetDescription as the SDKs print it.
func decodeTargets(raw json.RawMessage) ([]traces.Target, error) {
	var list []struct {
		Id   string
		Port *int64
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	targets := make([]traces.Target, len(list))
	for i, t := range list {
		targets[i].ID = t.Id
		if t.Port != nil {
			if *t.Port < 0 || *t.Port > 65535 {
				return nil, fmt.Errorf("port %d is outside of 0..65535", *t.Port)
			}
			targets[i].Port = int32(*t.Port)
		}
		if t.Id == "" {
			return nil, fmt.Errorf("target %d has no Id", i)
		}
	}
	if len(targets) == 0 {
		return nil, fmt.Errorf("the list is empty")
	}
	return targets, nil
}

// headlessCall adds a call of which only the end is in the log: it was sent before the log begins, or its first line
// was filtered out.
func (r *reader) headlessCall(p *process, e *entry, op traces.Operation, key string) {
	r.headless++
	op.Unclear = true
	i := r.append(p, e, op, key)
	o := &r.h.Operations[i]
	o.Call, o.Return, o.Outcome, o.After = traces.Beginning, e.at.hi.Add(r.opts.Skew), traces.Succeeded, -1
	r.over(p, &call{index: i, key: key, op: op.Op})
}

func (r *reader) retrying(p *process, e *entry) error {
	var revokeFirst bool
	_ = json.Unmarshal(e.fields["revokeFirst"], &revokeFirst)
	r.retried(p, e, revokeFirst)
	text := e.msg
	if revokeFirst {
		text += ", revoking first"
	}
	r.observe(p, e, traces.Observation{Kind: traces.Retrying, Text: text})
	return nil
}

func (r *reader) networkError(p *process, e *entry) error {
	text, tgb := e.text("error"), p.binding(e)
	r.blameAll(p, e, text, true)
	if strings.HasSuffix(e.msg, "NodePortEndpoints") {
		// The reconcile of instance targets ends here, and controller-runtime reports the same error once more.
		if len(p.reported) > maxRemembered {
			clear(p.reported)
		}
		p.reported[tgb] = text
	}
	r.observe(p, e, traces.Observation{Kind: traces.Requeued, TGB: tgb, Error: errorCode(text)})
	return nil
}

func (r *reader) reconcilerError(p *process, e *entry) error {
	text, tgb := e.text("error"), p.binding(e)
	blamed := false
	if before, ok := p.reported[tgb]; ok && tgb != "" && text == before {
		delete(p.reported, tgb)
	} else {
		blamed = r.blameAll(p, e, text, false)
	}
	if !ofBindings(e) && !blamed {
		return errIrrelevant
	}
	r.observe(p, e, traces.Observation{
		Kind: traces.ReconcileFailed, TGB: tgb, Error: errorCode(text), Text: e.msg + " of controller " + controllerOf(e),
	})
	return nil
}

func (r *reader) otherError(p *process, e *entry) error {
	text := e.text("error")
	r.blameAll(p, e, text, true)
	r.observe(p, e, traces.Observation{Kind: traces.Noted, Error: errorCode(text)})
	return nil
}

// blameAll attributes what an error text tells to calls, the last error to the newest call.
func (r *reader) blameAll(p *process, e *entry, text string, network bool) (any bool) {
	failures := parseFailures(text, network)
	for i := len(failures) - 1; i >= 0; i-- {
		failures[i].from = r.source()
		any = r.blame(p, e, failures[i]) || any
	}
	return any
}

func (r *reader) registerRetried(p *process, e *entry) error {
	r.blame(p, e, failure{op: traces.RegisterTargets, code: "ValidationError", from: r.source()})
	r.observe(p, e, traces.Observation{Kind: traces.Noted, TGB: p.binding(e)})
	return nil
}

func resourceOf(e *entry) string {
	if s := e.text("resourceID"); s != "" {
		return s
	}
	return e.text("name")
}

func (r *reader) creating(p *process, e *entry) error {
	if len(p.creating) > maxRemembered {
		clear(p.creating)
	}
	p.creating[resourceOf(e)] = creation{e.at, r.source()}
	return nil
}

func (r *reader) created(p *process, e *entry) error {
	sg := e.text("securityGroupID")
	if sg == "" {
		sg = e.text("id")
	}
	if sg == "" {
		return errNoGroup
	}
	i := r.append(p, e, traces.Operation{Op: traces.CreateSecurityGroup, Group: sg}, sg)
	o := &r.h.Operations[i]
	o.Outcome, o.Call, o.Return = traces.Succeeded, traces.Beginning, e.at.hi.Add(r.opts.Skew)
	if begun, ok := p.creating[resourceOf(e)]; ok {
		delete(p.creating, resourceOf(e))
		o.Call = min(begun.at.lo, e.at.lo).Add(-r.opts.Skew)
		o.Return = max(begun.at.hi, e.at.hi).Add(r.opts.Skew)
		o.Sources = []traces.Source{begun.from, r.source()}
	}
	// Other calls of this process may have ended between the two lines.
	o.After = -1
	r.over(p, &call{index: i, key: sg, op: o.Op})
	return nil
}

func (r *reader) deleting(p *process, e *entry) error {
	sg := e.text("securityGroupID")
	if sg == "" {
		return errNoGroup
	}
	r.start(p, e, traces.Operation{Op: traces.DeleteSecurityGroup, Group: sg}, sg)
	return nil
}

func (r *reader) deleted(p *process, e *entry) error {
	sg := e.text("securityGroupID")
	if sg == "" {
		sg = e.text("ID")
	}
	if sg == "" {
		return errNoGroup
	}
	if r.succeed(p, e, sg, traces.DeleteSecurityGroup) {
		return nil
	}
	// The shared group's deletion has no first line at the usual level.
	i := r.append(p, e, traces.Operation{Op: traces.DeleteSecurityGroup, Group: sg}, sg)
	o := &r.h.Operations[i]
	o.Outcome, o.Call, o.Return, o.After = traces.Succeeded, traces.Beginning, e.at.hi.Add(r.opts.Skew), -1
	if before, ok := p.lastEnded[sg]; ok && r.h.Operations[before].Return != traces.Forever {
		o.Call, o.After = min(r.h.Operations[before].Call, o.Return), before
	}
	r.over(p, &call{index: i, key: sg, op: o.Op})
	return nil
}
