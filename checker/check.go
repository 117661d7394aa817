// Package checker turns a capture into a report: it merges what the sources saw, splits it by security group, has every
// property judged over all orders, and says who did what, what the verdict rests on, and what is missing.
package checker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"linearize.example/checker/linear"
	"linearize.example/checker/orders"
	"linearize.example/checker/property"
	"linearize.example/checker/report"
	"linearize.example/traces"
	"linearize.example/traces/capture"
)

// Options say what to judge and how.
type Options struct {
	// RepairBound is the time within which drift has to be repaired.
	RepairBound time.Duration
	// Groups are the ids of the groups to judge; none means every group with a managed rule.
	Groups []string
	// Managed matches descriptions of managed rules; nil means the controller's own test.
	Managed *regexp.Regexp
	// Need is Proven where what rests on assumed needs is at most possible.
	Need property.Need
	// Contract lets the release's order of authorize and revoke decide where nothing else does.
	Contract bool
	// ClockSkew is what the readers widened intervals by; calls of two sources may be this far apart.
	ClockSkew time.Duration
	// Since and Until bound the operations; zero values do not.
	Since, Until traces.Instant
	// Timeout bounds the time for all groups together; 0 means none.
	Timeout time.Duration
	// MinWindow hides shorter windows; they count all the same.
	MinWindow time.Duration
	// Settle is how long after the last change leftovers count against tight.
	Settle time.Duration
	// Rows bounds the timeline of a group.
	Rows   int
	Budget orders.Budget
	// Initial and Bindings were given by the user; HasBindings tells none from not given.
	Initial     []traces.Snapshot
	Bindings    []traces.Binding
	HasBindings bool
	// Progress, if not nil, is told what is being judged.
	Progress func(group string, done, of int)
}

// DefaultOptions are those of the tool.
func DefaultOptions() Options {
	return Options{RepairBound: 5 * time.Minute, ClockSkew: time.Second, Until: traces.Forever, Since: traces.Beginning,
		Settle: time.Minute, Rows: 400}
}

// Check judges a capture.
func Check(ctx context.Context, c *capture.Capture, opt Options) *report.Report {
	if opt.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, opt.Timeout)
		defer cancel()
	}
	prepared := prepare(c, opt)
	r := &report.Report{Schema: report.Schema, Verdict: report.Holds, Options: optionsOf(opt)}
	for _, in := range prepared.history.Inputs {
		r.Inputs = append(r.Inputs, report.Input{Path: in.Path, Format: in.Format, Records: in.Records, Used: in.Used,
			Duplicates: in.Duplicates, Irrelevant: in.Irrelevant, Rejected: in.Rejected, Rejections: in.Rejections})
	}
	for i, g := range prepared.groups {
		if opt.Progress != nil {
			opt.Progress(g.capture.Group, i, len(prepared.groups))
		}
		j := judgement{p: prepared, g: g, opt: opt}
		r.Groups = append(r.Groups, j.run(ctx))
	}
	summarize(r, prepared)
	return r
}

func optionsOf(opt Options) []report.Option {
	need := "assumed"
	if opt.Need == property.Proven {
		need = "proven"
	}
	list := []report.Option{
		{Name: "repair-bound", Value: opt.RepairBound.String()},
		{Name: "need", Value: need},
		{Name: "clock-skew", Value: opt.ClockSkew.String()},
	}
	add := func(name string, given bool, value string) {
		if given {
			list = append(list, report.Option{Name: name, Value: value})
		}
	}
	add("sg", len(opt.Groups) > 0, strings.Join(opt.Groups, ","))
	add("managed", opt.Managed != nil, fmt.Sprint(opt.Managed))
	add("contract", opt.Contract, "true")
	add("initial", len(opt.Initial) > 0, fmt.Sprintf("%d groups", len(opt.Initial)))
	add("bindings", opt.HasBindings, fmt.Sprintf("%d bindings", len(opt.Bindings)))
	add("since", opt.Since != traces.Beginning, opt.Since.String())
	add("until", opt.Until != traces.Forever, opt.Until.String())
	add("min-window", opt.MinWindow > 0, opt.MinWindow.String())
	add("timeout", opt.Timeout > 0, opt.Timeout.String())
	return list
}

// prepared is a capture split by group.
type prepared struct {
	history  *traces.History
	releases map[string]property.Release
	callers  map[string]*traces.Caller
	groups   []*group
	managed  map[string]bool // groups with managed rules, judged or not
	unjudged int             // groups without managed rules that were left out
	from, to traces.Instant
}

// group is one group's part of the capture.
type group struct {
	capture      property.Capture
	observations []traces.Observation
}

// prepare merges, resolves rule ids, cuts to the time asked for, and splits by group.
func prepare(c *capture.Capture, opt Options) *prepared {
	p := &prepared{history: traces.Merge(c.History, opt.ClockSkew)}
	snapshots := append(slices.Clone(opt.Initial), c.Snapshots...) // what was given goes before what was found
	p.history.Operations = traces.Within(traces.ResolveRuleIDs(p.history.Operations, snapshots), opt.Since, opt.Until)
	p.history.Observations = inferStarts(slices.DeleteFunc(p.history.Observations, func(ob traces.Observation) bool {
		return ob.Latest < opt.Since || ob.Earliest > opt.Until
	}))
	p.bounds(opt)
	p.identify(opt)
	bindings, hasBindings := opt.Bindings, opt.HasBindings
	if len(c.Bindings) > 0 {
		bindings, hasBindings = append(slices.Clone(bindings), c.Bindings...), true
	}
	for _, id := range p.choose(opt, snapshots) {
		g := &group{capture: property.Capture{Group: id, From: p.from, To: p.to, Releases: p.releases,
			Bindings: bindings, HasBindings: hasBindings}}
		if i := slices.IndexFunc(snapshots, func(s traces.Snapshot) bool { return s.Group == id }); i >= 0 {
			g.capture.Snapshot = &snapshots[i]
		}
		p.groups = append(p.groups, g)
	}
	p.split()
	return p
}

// bounds finds the first and the last instant of the capture.
func (p *prepared) bounds(opt Options) {
	p.from, p.to = traces.Forever, traces.Beginning
	meet := func(i traces.Instant) {
		if i != traces.Beginning && i != traces.Forever {
			p.from, p.to = min(p.from, i), max(p.to, i)
		}
	}
	for i := range p.history.Operations {
		meet(p.history.Operations[i].Call)
		meet(p.history.Operations[i].Return)
	}
	for _, ob := range p.history.Observations {
		meet(ob.Earliest)
		meet(ob.Latest)
	}
	if p.from > p.to {
		p.from, p.to = 0, 0
	}
	if opt.Since != traces.Beginning {
		p.from = max(p.from, opt.Since)
	}
	if opt.Until != traces.Forever {
		p.to = min(p.to, opt.Until)
	}
}

// identify finds out which processes are controllers, and of which release. Where the user says which rules are managed,
// the controller is whoever grants such rules.
func (p *prepared) identify(opt Options) {
	grants := map[string]bool{}
	for i := range p.history.Operations {
		if opt.Managed == nil {
			break
		}
		if op := &p.history.Operations[i]; op.Op == traces.AuthorizeSecurityGroupIngress {
			grants[op.Process] = grants[op.Process] || slices.ContainsFunc(op.Permissions, func(p traces.Permission) bool { return opt.Managed.MatchString(p.Description) })
		}
	}
	p.releases, p.callers = map[string]property.Release{}, map[string]*traces.Caller{}
	for i := range p.history.Operations {
		op := &p.history.Operations[i]
		if op.Caller != nil && p.callers[op.Process] == nil {
			p.callers[op.Process] = op.Caller
		}
		if before, known := p.releases[op.Process]; known && (op.Caller == nil || before.Version != (property.Version{})) {
			continue
		}
		r := property.Release{Controller: true}
		if c := op.Caller; c != nil {
			if c.Role != "" {
				r.Role = c.Account + "/" + c.Role
			}
			if c.UserAgent != "" {
				r.Version, r.Controller = property.FromUserAgent(c.UserAgent)
				r.Controller = r.Controller || grants[op.Process]
			}
		}
		p.releases[op.Process] = r
	}
}

func isTargetCall(op *traces.Operation) bool {
	return op.Op == traces.RegisterTargets || op.Op == traces.DeregisterTargets
}

// choose lists the groups to judge: those asked for, else those with a managed rule, else all that were changed, else those
// whose snapshot has a managed rule. It notes in p.managed which groups calls on targets may concern.
func (p *prepared) choose(opt Options, snapshots []traces.Snapshot) []string {
	managed, others, given := map[string]bool{}, map[string]bool{}, map[string]bool{}
	isManaged := property.Managed
	if opt.Managed != nil {
		isManaged = opt.Managed.MatchString
	}
	for _, s := range snapshots {
		given[s.Group] = given[s.Group] || slices.ContainsFunc(s.Rules, func(r traces.IdentifiedPermission) bool { return isManaged(r.Description) })
	}
	for i := range p.history.Operations {
		op := &p.history.Operations[i]
		if op.Group == "" || isTargetCall(op) || managed[op.Group] {
			continue
		}
		// The controller revokes nothing but managed rules, and need not repeat their description.
		some := given[op.Group] || op.Op == traces.RevokeSecurityGroupIngress && p.releases[op.Process].Version != property.Version{} ||
			slices.ContainsFunc(op.Permissions, func(p traces.Permission) bool { return isManaged(p.Description) }) ||
			slices.ContainsFunc(op.Revoked, func(r traces.IdentifiedPermission) bool { return isManaged(r.Description) }) ||
			slices.ContainsFunc(op.View, func(p traces.Permission) bool { return isManaged(p.Description) })
		switch {
		case some:
			managed[op.Group] = true
		case op.Op != traces.DescribeSecurityGroups && op.Op != traces.DescribeSecurityGroupRules:
			others[op.Group] = true
		}
	}
	if len(managed) == 0 {
		managed, others = others, nil
	}
	if len(managed) == 0 {
		maps.DeleteFunc(given, func(_ string, some bool) bool { return !some })
		managed = given
	}
	p.managed = managed
	if len(opt.Groups) > 0 {
		return slices.Compact(slices.Sorted(slices.Values(opt.Groups)))
	}
	for id := range others {
		if !managed[id] {
			p.unjudged++
		}
	}
	return slices.Sorted(maps.Keys(managed))
}

// alone reports whether all operations are on the one group that is judged.
func (p *prepared) alone() bool {
	for i := range p.history.Operations {
		if op := &p.history.Operations[i]; len(p.groups) != 1 || op.Group != p.groups[0].capture.Group || isTargetCall(op) {
			return false
		}
	}
	return len(p.groups) == 1
}

// split hands every operation to the groups that it concerns.
func (p *prepared) split() {
	ops := p.history.Operations
	byID := map[string]*group{}
	for _, g := range p.groups {
		byID[g.capture.Group] = g
	}
	if p.alone() {
		p.groups[0].capture.Operations = ops
		p.observe()
		return
	}
	owners := p.owners(byID)
	groupsOf := p.targetsTo(byID, owners)
	kept := map[*group][]int{}
	for i := range ops {
		op := &ops[i]
		var to []*group
		switch {
		case isTargetCall(op):
			to = groupsOf(op)
		case byID[op.Group] != nil:
			to = []*group{byID[op.Group]}
		case op.Group == "" && op.Unclear && op.Outcome != traces.Failed:
			to = p.mayConcern(op, owners)
		}
		for _, g := range to {
			kept[g] = append(kept[g], i)
		}
	}
	for _, g := range p.groups {
		g.capture.Operations = traces.Pick(ops, kept[g])
	}
	p.observe()
}

// observe hands every observation to the groups that it concerns.
func (p *prepared) observe() {
	for _, ob := range p.history.Observations {
		for _, g := range p.groups {
			if ob.Group != "" && ob.Group != g.capture.Group {
				continue
			}
			g.observations = append(g.observations, ob)
			if ob.Kind == traces.Skipped {
				g.capture.Skips = append(g.capture.Skips, ob)
			}
		}
	}
}

// owners tells which of the groups with managed rules, or that are judged, a process has called on.
func (p *prepared) owners(byID map[string]*group) map[string][]string {
	owners := map[string][]string{}
	for i := range p.history.Operations {
		op := &p.history.Operations[i]
		if op.Group == "" || isTargetCall(op) || !p.managed[op.Group] && byID[op.Group] == nil {
			continue
		}
		if !slices.Contains(owners[op.Process], op.Group) {
			owners[op.Process] = append(owners[op.Process], op.Group)
		}
	}
	return owners
}

// mayConcern lists the groups that a call may be on whose record names none: those that its caller has called on, or any where it
// has called on none.
func (p *prepared) mayConcern(op *traces.Operation, owners map[string][]string) []*group {
	mine := owners[op.Process]
	if len(mine) == 0 {
		return p.groups
	}
	var groups []*group
	for _, g := range p.groups {
		if slices.Contains(mine, g.capture.Group) {
			groups = append(groups, g)
		}
	}
	return groups
}

// nameless counts the calls whose record does not tell on which group they are.
func (p *prepared) nameless() int {
	n := 0
	for i := range p.history.Operations {
		if op := &p.history.Operations[i]; op.Group == "" && op.Unclear && !isTargetCall(op) {
			n++
		}
	}
	return n
}

// mostRanges bounds the rules of a group that calls on targets are compared with.
const mostRanges = 1000

// targetsTo tells which of the groups a call on targets concerns, since it names none: those whose rules its caller manages,
// and of several of them those that have a rule for its port.
func (p *prepared) targetsTo(byID map[string]*group, owners map[string][]string) func(op *traces.Operation) []*group {
	ranges := map[string][]traces.Rule{} // group → rules
	for i := range p.history.Operations {
		op := &p.history.Operations[i]
		if op.Group == "" || isTargetCall(op) || !p.managed[op.Group] && byID[op.Group] == nil {
			continue
		}
		for _, perm := range op.Permissions {
			if !slices.Contains(ranges[op.Group], perm.Rule) && len(ranges[op.Group]) < mostRanges {
				ranges[op.Group] = append(ranges[op.Group], perm.Rule)
			}
		}
	}
	return func(op *traces.Operation) []*group {
		if len(p.groups) == 1 && len(p.managed) <= 1 {
			if !p.releases[op.Process].Controller {
				return nil
			}
			return p.groups
		}
		mine := owners[op.Process]
		fitting := slices.DeleteFunc(slices.Clone(mine), func(id string) bool {
			return !slices.ContainsFunc(op.Targets, func(t traces.Target) bool {
				return slices.ContainsFunc(ranges[id], func(r traces.Rule) bool {
					return r.Protocol == "-1" || r.FromPort <= t.Port && t.Port <= r.ToPort
				})
			})
		})
		if len(fitting) == 0 {
			fitting = mine
		}
		var groups []*group
		for _, id := range fitting {
			if g := byID[id]; g != nil {
				groups = append(groups, g)
			}
		}
		return groups
	}
}

// judgement is the work on one group.
type judgement struct {
	p   *prepared
	g   *group
	opt Options
	ctx context.Context
	r   *property.Result
	out report.Group
	// readCount is what reads counted.
	readCount int
	counted   bool
}

func (j *judgement) run(ctx context.Context) report.Group {
	j.ctx = ctx
	c := &j.g.capture
	opt := property.Options{Managed: j.opt.Managed, Contract: j.opt.Contract, Settle: j.opt.Settle, Budget: j.opt.Budget}
	j.r = property.Judge(ctx, c, opt)
	from, to := c.From, c.To
	j.out = report.Group{GroupID: c.Group, Operations: len(c.Operations), From: &from, To: &to}
	segments := j.segments()
	var asked []segment
	porcupine := make(chan linear.Result)
	go func() {
		asked = j.asked(segments)
		porcupine <- j.porcupine(ctx, asked)
	}()
	j.properties()
	j.timeline()
	j.processes()
	j.restsOn()
	result := <-porcupine
	j.linearity(ctx, segments, asked, result)
	j.findings()
	return j.out
}

// ruleTexts prints permissions, one text each.
func ruleTexts(permissions []traces.Permission) []string {
	texts := make([]string, len(permissions))
	for i, p := range permissions {
		texts[i] = p.Rule.String()
	}
	return texts
}

// processes lists the callers.
func (j *judgement) processes() {
	count := map[string]int{}
	for i := range j.g.capture.Operations {
		count[j.g.capture.Operations[i].Process]++
	}
	ids := make([]string, 0, len(count))
	for id := range count {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), strings.Compare(a, b))
	})
	for _, id := range ids {
		rel := j.p.releases[id]
		out := report.Process{ID: id, Operations: count[id], Controller: rel.Controller && rel.Version != property.Version{}}
		if out.Controller {
			out.Release = rel.Version.String()
		}
		if c := j.p.callers[id]; c != nil {
			out.Role, out.Session, out.SessionStart = c.Role, c.Session, c.SessionStart
			out.AccessKeyID, out.UserAgent, out.SourceAddress = c.AccessKeyID, c.UserAgent, c.SourceAddress
		}
		j.out.Processes = append(j.out.Processes, out)
	}
}

// restsOn lists what the verdict rests on, and what narrowed the orders down.
func (j *judgement) restsOn() {
	j.out.Assumptions = append(j.out.Assumptions, j.r.Assumptions...)
	if j.r.Lenient {
		j.out.Assumptions = append(j.out.Assumptions, "the group is in a default VPC: a revoke of absent rules succeeds, or the results cannot be explained")
	}
	whys := make([]string, 0, len(j.r.Settled))
	for why := range j.r.Settled {
		whys = append(whys, why)
	}
	slices.Sort(whys)
	for _, why := range whys {
		n := j.r.Settled[why]
		pairs := "pairs of calls"
		if n == 1 {
			pairs = "pair of calls"
		}
		j.out.SettledBy = append(j.out.SettledBy, fmt.Sprintf("%s orders %d %s", why, n, pairs))
	}
}

// ref names an operation of the group.
func (j *judgement) ref(i int) report.Ref {
	op := &j.g.capture.Operations[i]
	return report.Ref{ID: op.ID, Process: op.Process, Summary: callSummary(op), Who: who(op.Caller), Sources: j.sources(op.Sources)}
}

func (j *judgement) refOrNil(i int) *report.Ref {
	if i < 0 {
		return nil
	}
	r := j.ref(i)
	return &r
}

func (j *judgement) sources(sources []traces.Source) []string {
	var list []string
	for _, s := range sources {
		list = append(list, j.p.history.Inputs[s.Input].Path+" "+s.Position)
	}
	return list
}

// who describes a caller in words.
func who(c *traces.Caller) string {
	if c == nil {
		return ""
	}
	var parts []string
	add := func(label, value string) {
		if value != "" {
			parts = append(parts, strings.TrimSpace(label+" "+value))
		}
	}
	add("role", c.Role)
	add("session", c.Session)
	add("since", c.SessionStart)
	add("key", c.AccessKeyID)
	add("agent", c.UserAgent)
	add("from", c.SourceAddress)
	add("invoked by", c.InvokedBy)
	return strings.Join(parts, ", ")
}

// callSummary says what a call asked for: "revoke tcp 3000-3008".
func callSummary(op *traces.Operation) string {
	verb := map[string]string{
		traces.AuthorizeSecurityGroupIngress: "authorize", traces.RevokeSecurityGroupIngress: "revoke",
		traces.ModifySecurityGroupRules: "modify", traces.UpdateSecurityGroupRuleDescriptionsIngress: "describe anew",
		traces.CreateSecurityGroup: "create the group", traces.DeleteSecurityGroup: "delete the group",
		traces.DescribeSecurityGroups: "describe", traces.DescribeSecurityGroupRules: "describe rules",
		traces.RegisterTargets: "register", traces.DeregisterTargets: "deregister",
	}[op.Op]
	if verb == "" {
		verb = op.Op
	}
	var what []string
	sources := map[string]bool{}
	for _, p := range op.Permissions {
		sources[p.Source] = true
	}
	for _, p := range op.Permissions {
		if len(sources) > 1 {
			what = append(what, p.Rule.String())
		} else {
			what = append(what, p.Ports())
		}
	}
	for _, u := range op.Updates {
		what = append(what, u.ID+" to "+u.Rule.String())
	}
	for _, t := range op.Targets {
		what = append(what, fmt.Sprintf("%s:%d", t.ID, t.Port))
	}
	if len(what) == 0 {
		what = op.RuleIDs
	}
	const most = 8
	if len(what) > most {
		what = append(slices.Clone(what[:most]), fmt.Sprintf("and %d more", len(what)-most))
	}
	text := verb
	if len(what) > 0 {
		text += " " + strings.Join(what, ", ")
	}
	if op.TargetGroup != "" {
		text += " of " + targetGroupName(op.TargetGroup)
	}
	return text
}

// targetGroupName is the name inside of a target group's ARN.
func targetGroupName(arn string) string {
	if parts := strings.Split(arn, "/"); len(parts) >= 3 {
		return parts[len(parts)-2]
	}
	return arn
}
