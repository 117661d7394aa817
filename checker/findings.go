package checker

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"linearize.example/checker/orders"
	"linearize.example/checker/property"
	"linearize.example/checker/report"
	"linearize.example/traces"
)

// The kinds of findings, besides those that readers note on their inputs.
const (
	secondWriter         = "second-writer"          // more than one party changes the managed rules
	oldRead              = "old-read"               // a describe was answered from an old version, or a call shows that one was
	poisonedBatch        = "poisoned-batch"         // one bad rule makes a whole authorize fail, again and again
	failingLoop          = "failing-loop"           // the same call fails the same way, again and again
	authorizeOnlyForever = "authorize-only-forever" // rules are granted and never revoked, and pile up
	maskedByCache        = "masked-by-cache"        // a reconcile ended well while the rules were gone
	ownershipBreach      = "ownership-breach"       // the controller revoked a rule that is not its own
	outsideRemoval       = "outside-removal"        // somebody else than the controller removed managed rules
	coveredByUnmanaged   = "covered-by-unmanaged"   // nothing managed is left, and rules of somebody else do
	registeredOutside    = "registered-outside"     // targets on a port that no rule opens and nobody asked for
	legalGap             = "legal-gap"              // no managed rule, and nobody needs one
	beginsEmpty          = "begins-empty"           // the capture begins with no rule at all
	ruleLimit            = "rule-limit"             // the group is full
	periodic             = "periodic"               // windows come at equal distances
	needBindings         = "missing-input"          // what would change the verdict
)

func (j *judgement) find(kind, format string, args ...any) {
	j.out.Findings = append(j.out.Findings, report.Finding{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// findings says what else is worth knowing, in a fixed order.
func (j *judgement) findings() {
	j.writers()
	j.oldReads()
	j.failures()
	j.masked()
	j.breaches()
	j.outside()
	j.pilesUp()
	j.gaps()
	j.begins()
	j.period()
	j.missing()
	for _, in := range j.p.history.Inputs {
		for _, n := range in.Notes {
			j.find(n.Kind, "%s: %s", in.Path, n.Text)
		}
	}
	j.limits()
}

// changesManaged reports whether the operation changed managed rules.
func (j *judgement) changesManaged(op *traces.Operation) bool {
	if op.Outcome != traces.Succeeded || op.View != nil || isTargetCall(op) {
		return false
	}
	managed := property.Managed
	if j.opt.Managed != nil {
		managed = j.opt.Managed.MatchString
	}
	some := func(p traces.Permission) bool { return managed(p.Description) }
	return slices.ContainsFunc(op.Permissions, some) ||
		slices.ContainsFunc(op.Revoked, func(p traces.IdentifiedPermission) bool { return managed(p.Description) }) ||
		slices.ContainsFunc(op.Updates, func(p traces.RuleUpdate) bool { return managed(p.Description) })
}

// writers names everybody who changed managed rules, where that is more than one party.
func (j *judgement) writers() {
	var order []string
	count := map[string]int{}
	last, alternate := "", false
	for i := range j.g.capture.Operations {
		op := &j.g.capture.Operations[i]
		if op.Process == "" || !j.changesManaged(op) {
			continue
		}
		if count[op.Process] == 0 {
			order = append(order, op.Process)
		} else if op.Process != last {
			alternate = true // rather than follow one another
		}
		count[op.Process]++
		last = op.Process
	}
	if len(order) < 2 {
		return
	}
	roles := map[string]bool{}
	var names []string
	var strangers []string
	for _, id := range order {
		// A caller of unknown role, as in logs, is not told apart from others by it.
		if c := j.p.callers[id]; c != nil && c.Role != "" {
			roles[c.Account+"/"+c.Role] = true
		}
		names = append(names, fmt.Sprintf("%s (%s)", id, countOf(count[id], "change")))
		if !j.p.releases[id].Controller {
			strangers = append(strangers, id)
		}
	}
	const most = 6
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("and %d more", len(order)-most))
	}
	list := strings.Join(names, ", ")
	switch {
	case len(strangers) > 0:
		j.find(secondWriter, "managed rules are changed by %s; %s is no AWS Load Balancer Controller, by its user agent", list, strings.Join(strangers, ", "))
	case len(roles) > 1:
		j.find(secondWriter, "managed rules are changed by %s, under different roles: two controllers share the group, and each takes the other's rules for its own", list)
	case alternate:
		j.find(secondWriter, "managed rules are changed by %s: same role, other session, and their calls alternate, as those of two clusters or of an old and a new leader at once do", list)
	default:
		j.find("successive-writers", "managed rules are changed by %s: same role, other session, one after the other: a change of leader, or fresh credentials of one process", list)
	}
}

// oldReads tells of describes that were old, and of calls that show one where none was recorded.
func (j *judgement) oldReads() {
	l := &j.out.Linearity
	for i, read := range l.ReadLags {
		if i == 4 {
			j.find(oldRead, "%d more describes were old", len(l.ReadLags)-i)
			break
		}
		j.find(oldRead, "%s was answered from a version that was at least %s old", read.ID, report.Duration(read.Seconds))
	}
	if l.Reads > 0 {
		return
	}
	// A revoke that is told NotFound, of a rule whose revoke by the same process succeeded before, acted on an old view.
	last := map[traces.Rule]int{}
	told := map[traces.Rule]int{}
	var rules []traces.Rule
	for i := range j.g.capture.Operations {
		op := &j.g.capture.Operations[i]
		switch {
		case op.Op == traces.RevokeSecurityGroupIngress && op.Outcome == traces.Succeeded:
			for _, p := range op.Permissions {
				last[p.Rule] = i + 1
			}
		case op.Op == traces.AuthorizeSecurityGroupIngress && op.Outcome == traces.Succeeded:
			for _, p := range op.Permissions {
				delete(last, p.Rule)
			}
		case op.Op == traces.RevokeSecurityGroupIngress && op.Error == "InvalidPermission.NotFound" && len(op.Permissions) == 1:
			r := op.Permissions[0].Rule
			if before := last[r]; before > 0 && j.g.capture.Operations[before-1].Process == op.Process {
				if told[r] == 0 {
					rules = append(rules, r)
				}
				told[r]++
			}
		}
	}
	for _, r := range rules {
		j.find(oldRead, "%s on %s after its revoke had succeeded: the view that was acted on was older than that revoke, from the cache or from an old describe", "NotFound "+times(told[r]), r.Ports())
	}
}

// failures tells of calls that fail again and again.
func (j *judgement) failures() {
	type loop struct {
		op           *traces.Operation // the first one
		count, rules int
		last         traces.Instant
	}
	var order []*loop
	loops := map[string]*loop{}
	limited := 0
	var key []byte
	for i := range j.g.capture.Operations {
		op := &j.g.capture.Operations[i]
		if op.Outcome != traces.Failed || isTargetCall(op) {
			continue
		}
		if op.Error == "RulesPerSecurityGroupLimitExceeded" {
			limited++
		}
		key = appendCall(key[:0], op)
		l := loops[string(key)]
		if l == nil {
			l = &loop{op: op}
			loops[string(key)] = l
			order = append(order, l)
		}
		l.count++
		l.last, l.rules = op.Call, len(op.Permissions)
	}
	for _, l := range order {
		code := l.op.Error
		batch := l.op.Op == traces.AuthorizeSecurityGroupIngress && l.rules > 1 && !strings.HasPrefix(code, "InvalidPermission.") &&
			code != "RequestLimitExceeded" && code != "UnauthorizedOperation" && code != "RulesPerSecurityGroupLimitExceeded"
		if batch {
			j.find(poisonedBatch, "%s failed %s with %s: one bad rule keeps all %d of the batch from being granted", callSummary(l.op), times(l.count), code, l.rules)
		}
		if l.count >= 3 {
			j.find(failingLoop, "%s failed with %s %s in %s", callSummary(l.op), code, times(l.count), report.Duration(l.last.Sub(l.op.Call).Seconds()))
		}
	}
	if limited > 0 {
		j.find(ruleLimit, "the group was full %s (RulesPerSecurityGroupLimitExceeded): nothing was granted by these calls", times(limited))
	}
}

// appendCall appends what tells calls that fail apart: what was asked for, and the error.
func appendCall(key []byte, op *traces.Operation) []byte {
	text := func(s string) { key = append(append(key, s...), 0) }
	rule := func(r traces.Rule) {
		text(r.Protocol)
		text(r.Source)
		key = binary.LittleEndian.AppendUint32(key, uint32(r.FromPort))
		key = binary.LittleEndian.AppendUint32(key, uint32(r.ToPort))
	}
	text(op.Op)
	text(op.Error)
	for i := range op.Permissions {
		rule(op.Permissions[i].Rule)
	}
	for i := range op.Updates {
		text(op.Updates[i].ID)
		rule(op.Updates[i].Rule)
	}
	for _, id := range op.RuleIDs {
		text(id)
	}
	return key
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// masked tells of reconciles that ended well, or were skipped, while the rules were gone.
func (j *judgement) masked() {
	for i := range j.r.Windows {
		w := &j.r.Windows[i]
		if w.Property != property.NeverEmpty {
			continue
		}
		reconciled, skipped := 0, 0
		for _, ob := range j.g.observations {
			inside := ob.Earliest
			if w.Opener < 0 {
				inside = ob.Latest // the rules were gone before; the window began when a need did, perhaps this one
			}
			if inside < w.Start.Latest || ob.Latest > w.End.Earliest {
				continue
			}
			switch ob.Kind {
			case traces.Reconciled:
				reconciled++
			case traces.Skipped:
				skipped++
			}
		}
		if reconciled > 0 {
			j.find(maskedByCache, "%s ended well while no managed rule was there: the view came from the cache, and the checkpoint was stored", countOf(reconciled, "reconcile"))
		}
		if skipped > 0 {
			j.find("skipped-while-empty", "%s skipped with an equal checkpoint while no managed rule was there: the checkpoint holds nothing of AWS's state, so that only the deferred queue repairs", countOf(skipped, "reconcile was", "reconciles were"))
		}
		if w.Opener >= 0 && !j.p.releases[j.g.capture.Operations[w.Opener].Process].Controller {
			j.find(outsideRemoval, "the last managed rule was removed from outside: %s", who(j.g.capture.Operations[w.Opener].Caller))
		}
		if w.CoveredByOthers {
			j.find(coveredByUnmanaged, "no rule was managed from %s on, but rules of somebody else let the traffic in all the time: not an outage", nominal(w.Start))
		}
	}
}

// breaches tells of rules of somebody else that the controller revoked.
func (j *judgement) breaches() {
	j.r.Replay(func(k int, before, after orders.State) {
		i := j.r.Order[k].Op
		if i < 0 || j.g.capture.Operations[i].Op != traces.RevokeSecurityGroupIngress {
			return
		}
		op := &j.g.capture.Operations[i]
		r := j.p.releases[op.Process]
		if !r.Controller || r.Version == (property.Version{}) && j.opt.Managed == nil {
			return
		}
		_, gone := j.r.Changed(before, after)
		for _, p := range gone {
			if p.Description == "" {
				j.find(ownershipBreach, "%s of %s revoked %s, which is not the controller's own (its description: %q)", op.ID, op.Process, p.Rule, j.description(p.Rule))
				break
			}
		}
	})
}

// description is what the capture says of a rule's description.
func (j *judgement) description(r traces.Rule) string {
	var all []traces.Permission
	if s := j.g.capture.Snapshot; s != nil {
		for _, p := range s.Rules {
			all = append(all, p.Permission)
		}
	}
	for i := range j.g.capture.Operations {
		op := &j.g.capture.Operations[i]
		all = append(append(all, op.View...), op.Permissions...)
	}
	for _, p := range all {
		if p.Rule == r && p.Description != "" {
			return p.Description
		}
	}
	return ""
}

// outside tells of targets on ports that no rule opens and no binding asks for.
func (j *judgement) outside() {
	if !j.g.capture.HasBindings {
		return
	}
	var rules []traces.Permission
	if s := j.r.Start(); s != nil {
		rules = j.r.Rules(s, false)
	}
	for i := range j.g.capture.Operations {
		if op := &j.g.capture.Operations[i]; op.Op == traces.AuthorizeSecurityGroupIngress && op.Outcome != traces.Failed {
			rules = append(rules, op.Permissions...)
		}
	}
	var ports []string
	for i := range j.g.capture.Operations {
		op := &j.g.capture.Operations[i]
		if op.Op != traces.RegisterTargets || op.Outcome != traces.Succeeded {
			continue
		}
		for _, t := range op.Targets {
			open := slices.ContainsFunc(rules, func(p traces.Permission) bool { return p.Covers("tcp", t.Port) || p.Covers("udp", t.Port) })
			asked := slices.ContainsFunc(j.g.capture.Bindings, func(b traces.Binding) bool {
				return b.TargetGroup == op.TargetGroup && slices.ContainsFunc(b.Needs, func(n traces.Need) bool { return n.Port == t.Port || n.Port <= 0 })
			})
			if text := strconv.Itoa(int(t.Port)); t.Port > 0 && !open && !asked && !slices.Contains(ports, text) {
				ports = append(ports, text)
			}
		}
	}
	if len(ports) > 0 {
		j.find(registeredOutside, "targets are registered on port %s, which is inside of no rule; the bindings do not ask for it", strings.Join(ports, ", "))
	}
}

// pilesUp tells of a controller that grants a wider range, leaves the one that it replaces, and never even tries to revoke.
func (j *judgement) pilesUp() {
	grants := 0
	var granted []traces.Permission
	for i := range j.g.capture.Operations {
		op := &j.g.capture.Operations[i]
		switch {
		case op.Op == traces.RevokeSecurityGroupIngress && j.p.releases[op.Process].Controller:
			return
		case op.Op == traces.AuthorizeSecurityGroupIngress && j.changesManaged(op):
			grants++
			granted = append(granted, op.Permissions...)
		}
	}
	replaced := slices.DeleteFunc(slices.Clone(j.r.Leftovers), func(p traces.Permission) bool {
		return !slices.ContainsFunc(granted, func(o traces.Permission) bool { return o.Rule != p.Rule && o.Contains(p.Rule) })
	})
	if j.r.Tight != report.Violated || grants < 2 || len(replaced) == 0 {
		return
	}
	j.find(authorizeOnlyForever, "%s, no revoke, and %s left inside of a wider one: a controller revokes nothing until it has computed every TGB since its start, and one broken TGB keeps it there", countOf(grants, "authorize"), countOf(len(replaced), "rule"))
}

// gaps tells of times without a managed rule in which nobody needed one.
func (j *judgement) gaps() {
	opened := map[int]bool{}
	for i := range j.r.Windows {
		w := &j.r.Windows[i]
		opened[w.Opener] = true
		for _, o := range w.Others {
			opened[o] = true
		}
	}
	count := 0
	var first string
	j.r.Replay(func(k int, before, after orders.State) {
		p := j.r.Order[k]
		if p.Op < 0 || opened[p.Op] || !j.r.HasManaged(before) || j.r.HasManaged(after) {
			return
		}
		count++
		if count == 1 {
			op := &j.g.capture.Operations[p.Op]
			first = fmt.Sprintf("%s at %s", callSummary(op), nominal(report.Range{Earliest: p.Earliest, Latest: p.Latest}))
		}
	})
	if count > 0 {
		j.find(legalGap, "the last managed rule went %s, first by %s, when nobody is known to have needed one", times(count), first)
	}
}

// begins tells of a capture that begins without a rule.
func (j *judgement) begins() {
	if j.r.Viewed && j.r.ViewedRules == 0 {
		text := "the first describe shows no rule at all"
		if !j.g.capture.HasBindings {
			text += "; whether that was drift or a new group the capture does not tell: --bindings (were there live TGBs?) or a longer capture would"
		}
		j.find(beginsEmpty, "%s", text)
	}
}

// period tells of windows at equal distances, as a resync makes them.
func (j *judgement) period() {
	var starts []traces.Instant
	for i := range j.r.Windows {
		if w := &j.r.Windows[i]; w.Property == property.NeverEmpty && w.Certain {
			starts = append(starts, nominal(w.Start))
		}
	}
	if len(starts) < 4 {
		return
	}
	shortest, longest := time.Duration(1<<62), time.Duration(0)
	for i := 1; i < len(starts); i++ {
		d := starts[i].Sub(starts[i-1])
		shortest, longest = min(shortest, d), max(longest, d)
	}
	if shortest > time.Minute && longest < shortest+shortest/5 {
		j.find(periodic, "%d windows, one every %s to %s: as often as something resyncs", len(starts), report.Duration(shortest.Seconds()), report.Duration(longest.Seconds()))
	}
}

// missing says what would change the verdict.
func (j *judgement) missing() {
	bad := j.r.NeverEmpty != report.Holds || j.r.Covered != report.Holds
	if bad && !j.g.capture.HasBindings {
		j.find(needBindings, "give --bindings (kubectl get targetgroupbindings -A -o json): if nobody needed the rules, this is a legal gap")
	}
	if j.g.capture.Snapshot == nil && (j.r.Stuck != nil || !j.r.CertainStart()) {
		j.find(needBindings, "give --initial (aws ec2 describe-security-group-rules): the rules at the beginning are not certain")
	}
	if j.r.Stuck != nil && len(j.p.history.Inputs) > 1 {
		j.find(needBindings, "if the sources' clocks are more than %s apart, say so with --clock-skew: one call would count as two", report.Duration(j.opt.ClockSkew.Seconds()))
	}
	possible := j.r.NeverEmpty == report.Possible || j.r.Covered == report.Possible
	if possible && !j.hasFormat(traces.FormatControllerLog) && !j.hasFormat(traces.FormatHistory) {
		j.find(needBindings, "give the controller's log: its order would decide between the orders that CloudTrail's seconds leave open")
	}
}

func (j *judgement) hasFormat(format string) bool {
	return slices.ContainsFunc(j.p.history.Inputs, func(in traces.Input) bool { return in.Format == format && in.Used > 0 })
}

// limits states what the sources cannot show.
func (j *judgement) limits() {
	if !j.hasFormat(traces.FormatControllerLog) && !j.hasFormat(traces.FormatHistory) {
		j.out.Assumptions = append(j.out.Assumptions,
			"CloudTrail shows whole seconds, in no order, no answer of a describe, no call that never left the client, and its last 15 minutes may be incomplete")
	}
	j.out.Assumptions = append(j.out.Assumptions, "an authorize of several rules takes effect as a whole or not at all (AWS documents that of revokes only)")
}
