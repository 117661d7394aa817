package checker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"linearize.example/checker"
	"linearize.example/checker/report"
	"linearize.example/traces"
	"linearize.example/traces/capture"
)

const (
	day    = "2026-08-28T"
	group  = "sg-0aaa"
	lb     = "sg-0lb"
	shared = "elbv2.k8s.aws/targetGroupBinding=shared"
)

// caller is who makes calls.
type caller struct{ role, session, agent string }

// lbc is a controller of the release; cluster tells its role.
func lbc(release string, cluster ...string) caller {
	role := "lbc"
	if len(cluster) > 0 {
		role = cluster[0]
	}
	return caller{role, "1", "elbv2.k8s.aws/" + release}
}

var (
	old   = lbc("v2.11.0") // revokes, then authorizes
	cur   = lbc("v3.4.0")  // authorizes, then revokes
	alice = caller{"admin", "alice", "aws-cli/2.15.0"}
)

// call is one call in the form from which every kind of recording is made.
type call struct {
	by      caller
	op      string
	group   string
	from    time.Time
	took    time.Duration
	rules   []traces.Permission
	ids     []string            // of a revoke by rule id
	granted []string            // rule ids that the answer to an authorize gives
	updates []traces.RuleUpdate // of ModifySecurityGroupRules
	unknown []traces.Permission // what a revoke reports as not there
	listed  bool                // a revoke's answer lists what it revoked
	view    []traces.Permission // what a describe saw
	arn     string
	targets []string
	err     string
	unclear bool // the record lacks the request
	pending bool // no answer was seen
}

func clock(at string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, day+at+"Z")
	if err != nil {
		panic(err)
	}
	return t
}

// rule reads "3000-3008", "80", "443<10.0.0.0/8" (the source) and "80#text" (the description, instead of the
// controller's); "all" is all traffic, "tcp" all ports of it.
func rule(s string) traces.Permission {
	p := traces.Permission{Description: shared}
	if before, text, ok := strings.Cut(s, "#"); ok {
		s, p.Description = before, text
	}
	source := lb
	if before, from, ok := strings.Cut(s, "<"); ok {
		s, source = before, from
	}
	protocol := "tcp"
	var from, to *int64
	switch s {
	case "all":
		protocol = "-1"
	case "tcp":
	default:
		low, high, some := strings.Cut(s, "-")
		if !some {
			high = low
		}
		from, to = number(low), number(high)
	}
	r, err := traces.NewRule(protocol, from, to, source)
	if err != nil {
		panic(err)
	}
	p.Rule = r
	return p
}

func number(s string) *int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return &n
}

func rules(list []string) []traces.Permission {
	permissions := make([]traces.Permission, len(list))
	for i, s := range list {
		permissions[i] = rule(s)
	}
	return permissions
}

func (c caller) call(at, op string, list []string) call {
	return call{by: c, op: op, group: group, from: clock(at), took: 50 * time.Millisecond, rules: rules(list)}
}

func (c caller) authorize(at string, list ...string) call {
	return c.call(at, traces.AuthorizeSecurityGroupIngress, list)
}

func (c caller) revoke(at string, list ...string) call {
	return c.call(at, traces.RevokeSecurityGroupIngress, list)
}

func (c caller) describe(at string, saw ...string) call {
	d := c.call(at, traces.DescribeSecurityGroups, nil)
	d.view = rules(saw)
	return d
}

// register and deregister name targets of a target group: "10.0.0.1:8080".
func (c caller) register(at, name string, targets ...string) call {
	r := c.call(at, traces.RegisterTargets, nil)
	r.group, r.arn, r.targets = "", arn(name), targets
	return r
}

func (c caller) deregister(at, name string, targets ...string) call {
	d := c.register(at, name, targets...)
	d.op = traces.DeregisterTargets
	return d
}

func arn(name string) string {
	return "arn:aws:elasticloadbalancing:us-east-1:111122223333:targetgroup/" + name + "/0123"
}

func (c call) fails(code string) call          { c.err = code; return c }
func (c call) on(group string) call            { c.group = group; return c }
func (c call) within(took time.Duration) call  { c.took = took; return c }
func (c call) unanswered() call                { c.pending = true; return c }
func (c call) unknownTo(list ...string) call   { c.unknown = rules(list); return c }
func (c call) answeredWith(ids ...string) call { c.granted = ids; return c }
func (c call) byID(ids ...string) call         { c.ids = ids; return c }
func (c call) withoutRequest() call            { c.unclear = true; return c }
func (c call) listing() call                   { c.listed = true; return c }
func (c call) to(id, s string) call {
	c.updates = append(slices.Clip(c.updates), traces.RuleUpdate{ID: id, Permission: rule(s)})
	return c
}

// object is JSON in the making.
type object = map[string]any

// trail writes the calls as CloudTrail shows them: whole seconds, describes left out, newest first.
func trail(calls ...call) string {
	records := []any{}
	for i, c := range calls {
		if c.view != nil {
			continue
		}
		at := c.from.Add(c.took).Truncate(time.Second)
		source := "ec2.amazonaws.com"
		request, response := object{"groupId": c.group, "ipPermissions": items(c.rules)}, object{"_return": true}
		switch c.op {
		case traces.RegisterTargets, traces.DeregisterTargets:
			source = "elasticloadbalancing.amazonaws.com"
			targets := []any{}
			for _, t := range c.targets {
				id, port, _ := strings.Cut(t, ":")
				targets = append(targets, object{"id": id, "port": *number(port)})
			}
			request, response = object{"targetGroupArn": c.arn, "targets": targets}, nil
		case traces.ModifySecurityGroupRules:
			list := []any{}
			for n, u := range c.updates {
				list = append(list, object{"SecurityGroupRuleId": u.ID, "tag": n + 1, "SecurityGroupRule": object{"IpProtocol": u.Protocol,
					"FromPort": u.FromPort, "ToPort": u.ToPort, "ReferencedGroupId": u.Source, "Description": u.Description}})
			}
			request = object{"ModifySecurityGroupRulesRequest": object{"GroupId": c.group, "SecurityGroupRule": list}}
		case traces.CreateSecurityGroup:
			request, response = object{"groupName": "web", "groupDescription": "web", "vpcId": "vpc-1"}, object{"_return": true, "groupId": c.group}
		}
		if c.ids != nil {
			request = object{"groupId": c.group, "securityGroupRuleIds": object{"items": c.ids}}
		}
		if len(c.unknown) > 0 {
			response["unknownIpPermissionSet"] = items(c.unknown)
		}
		if c.listed {
			var revoked []any
			for _, p := range c.rules {
				if !slices.Contains(c.unknown, p) {
					revoked = append(revoked, ruleItem("sgr-x", c.group, p))
				}
			}
			response["revokedSecurityGroupRuleSet"] = object{"items": revoked}
		}
		if len(c.granted) > 0 {
			var granted []any
			for n, id := range c.granted {
				granted = append(granted, ruleItem(id, c.group, c.rules[n]))
			}
			response["securityGroupRuleSet"] = object{"items": granted}
		}
		record := object{"eventVersion": "1.11", "eventTime": at.Format(time.RFC3339), "eventSource": source, "eventName": c.op,
			"awsRegion": "us-east-1", "userAgent": c.by.agent, "requestParameters": request, "responseElements": response,
			"eventID": fmt.Sprintf("e-%02d", i+1), "eventType": "AwsApiCall", "readOnly": false, "recipientAccountId": "111122223333",
			"userIdentity": object{"type": "AssumedRole", "arn": "arn:aws:sts::111122223333:assumed-role/" + c.by.role + "/" + c.by.session}}
		if c.err != "" {
			record["errorCode"], record["responseElements"] = "Client."+c.err, nil
		}
		if c.unclear {
			record["requestParameters"] = object{"groupId": c.group}
		}
		records = append(records, record)
	}
	slices.Reverse(records)
	return text(object{"Records": records})
}

func items(permissions []traces.Permission) object {
	if len(permissions) == 0 {
		return object{}
	}
	list := []any{}
	for _, p := range permissions {
		item := object{"ipProtocol": p.Protocol, "fromPort": p.FromPort, "toPort": p.ToPort}
		source := object{"description": p.Description}
		kind := "groups"
		if strings.Contains(p.Source, "/") {
			kind, source["cidrIp"] = "ipRanges", p.Source
		} else {
			source["groupId"] = p.Source
		}
		item[kind] = object{"items": []any{source}}
		list = append(list, item)
	}
	return object{"items": list}
}

func ruleItem(id, group string, p traces.Permission) object {
	return object{"securityGroupRuleId": id, "groupId": group, "isEgress": false, "ipProtocol": p.Protocol, "fromPort": p.FromPort,
		"toPort": p.ToPort, "referencedGroupInfo": object{"groupId": p.Source}, "description": p.Description}
}

// recorded writes the calls as a history, each with the instants at which it was sent and answered.
func recorded(calls ...call) string {
	h := traces.History{}
	for i, c := range calls {
		op := traces.Operation{ID: fmt.Sprintf("seq %d", i+1), Process: c.by.role + "/" + c.by.session, Op: c.op, Group: c.group, Permissions: c.rules,
			View: c.view, Unknown: c.unknown, RuleIDs: c.ids, Updates: c.updates, TargetGroup: c.arn, Unclear: c.unclear, After: -1,
			Call: traces.At(c.from), Return: traces.At(c.from.Add(c.took)), Outcome: traces.Succeeded,
			Caller: &traces.Caller{Role: c.by.role, Session: c.by.session, UserAgent: c.by.agent, Account: "111122223333"}}
		for n, id := range c.granted {
			op.Granted = append(op.Granted, traces.IdentifiedPermission{ID: id, Permission: c.rules[n]})
		}
		for _, t := range c.targets {
			id, port, _ := strings.Cut(t, ":")
			op.Targets = append(op.Targets, traces.Target{ID: id, Port: int32(*number(port))})
		}
		switch {
		case c.pending:
			op.Outcome, op.Return = traces.Pending, traces.Forever
		case c.err != "":
			op.Outcome, op.Error = traces.Failed, c.err
		}
		h.Operations = append(h.Operations, op)
	}
	var b strings.Builder
	if err := traces.WriteHistory(&b, &h); err != nil {
		panic(err)
	}
	return b.String()
}

// logged writes the calls as the controller's log does: a line before each and one after each that succeeded.
func logged(calls ...call) string {
	var lines []string
	line := func(at time.Time, level, msg string, fields object) {
		all := object{"level": level, "ts": at.Truncate(time.Second).Format(time.RFC3339), "msg": msg}
		for k, v := range fields {
			all[k] = v
		}
		lines = append(lines, text(all))
	}
	for _, c := range calls {
		verb := map[string][2]string{
			traces.AuthorizeSecurityGroupIngress: {"authorizing securityGroup ingress", "authorized securityGroup ingress"},
			traces.RevokeSecurityGroupIngress:    {"revoking securityGroup ingress", "revoked securityGroup ingress"},
			traces.RegisterTargets:               {"registering targets", "registered targets"},
			traces.DeregisterTargets:             {"deRegistering targets", "deRegistered targets"},
		}[c.op]
		if verb[0] == "" {
			continue
		}
		name := object{"securityGroupID": c.group}
		what := object{"securityGroupID": c.group, "permission": json.RawMessage(traces.EncodePermissions(c.rules))}
		if c.arn != "" {
			var targets []any
			for _, t := range c.targets {
				id, port, _ := strings.Cut(t, ":")
				targets = append(targets, object{"Id": id, "Port": *number(port)})
			}
			name, what = object{"arn": c.arn}, object{"arn": c.arn, "targets": targets}
		}
		line(c.from, "info", verb[0], what)
		if c.err != "" {
			line(c.from.Add(c.took), "error", "Reconciler error", object{"controller": "targetGroupBinding", "namespace": "test", "name": "web",
				"error": "operation error EC2: " + c.op + ", https response error StatusCode: 400, RequestID: r-1, api error " + c.err + ": refused"})
		} else {
			line(c.from.Add(c.took), "info", verb[1], name)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// said is one more line of the controller's log.
func said(at, msg string, fields ...string) string {
	all := object{"level": "info", "ts": day + at + "Z", "msg": msg}
	for i := 0; i+1 < len(fields); i += 2 {
		all[fields[i]] = fields[i+1]
	}
	return text(all) + "\n"
}

// skipped is the line of a TGB whose checkpoint was equal.
func skipped(at, tgb string) string {
	return text(object{"level": "info", "ts": day + at + "Z", "msg": "Skipping targetgroupbinding reconcile",
		"tgb": object{"name": tgb, "namespace": "test"}, "calculated hash": "endpoints/spec"}) + "\n"
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// binding is a TGB in namespace test with the needs, in the notation of rule.
func binding(name string, needs ...string) traces.Binding {
	b := traces.Binding{Name: "test/" + name, TargetGroup: arn(name), TargetType: "ip", Created: traces.At(clock("00:00:00")), Deleted: traces.Forever}
	for _, s := range needs {
		r := rule(s)
		b.Needs = append(b.Needs, traces.Need{Protocol: r.Protocol, Port: r.FromPort, Source: r.Source})
	}
	return b
}

// initial are the rules before the capture.
func initial(list ...string) []traces.Snapshot {
	s := traces.Snapshot{Group: group}
	for i, p := range rules(list) {
		s.Rules = append(s.Rules, traces.IdentifiedPermission{ID: fmt.Sprintf("sgr-%d", i+1), Permission: p})
	}
	return []traces.Snapshot{s}
}

// files is a capture: what each file of it holds.
type files map[string]string

// load reads the files as the tool does.
func (f files) load(t *testing.T) *capture.Capture {
	t.Helper()
	dir := t.TempDir()
	for name, content := range f {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := capture.Read(context.Background(), []string{dir}, nil, capture.Options{Skew: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// judge checks a capture with the tool's defaults, changed by change.
func judge(t *testing.T, c *capture.Capture, change func(*checker.Options)) *report.Report {
	t.Helper()
	opt := checker.DefaultOptions()
	if change != nil {
		change(&opt)
	}
	return checker.Check(context.Background(), c, opt)
}

// outcome is what tests compare of a group.
type outcome struct {
	NeverEmpty, Covered, RepairBound, Tight string
	// Windows are "never-empty violated 09:56:01 to 10:35:48 by revoke tcp 3000-3008"; "…" is where the capture ends, or begins.
	Windows []string
	// Findings are the kinds of findings, but for those that only ask for more input.
	Findings []string
}

func outcomeOf(g *report.Group) outcome {
	var o outcome
	for _, p := range g.Properties {
		verdict := p.Verdict.String()
		if p.Vacuous {
			verdict += " vacuously"
		}
		switch p.Name {
		case "never-empty":
			o.NeverEmpty = verdict
		case "covered":
			o.Covered = verdict
		case "repair-bound":
			o.RepairBound = verdict
		case "tight":
			o.Tight = verdict
		}
		for i := range p.Windows {
			o.Windows = append(o.Windows, windowText(p.Name, &p.Windows[i]))
		}
	}
	for _, f := range g.Findings {
		if f.Kind != "missing-input" && f.Kind != "skipped-file" && !slices.Contains(o.Findings, f.Kind) {
			o.Findings = append(o.Findings, f.Kind)
		}
	}
	return o
}

func windowText(name string, w *report.Window) string {
	s := name + " " + w.Verdict.String()
	if w.Subject != "" {
		s += " " + w.Subject
	}
	from, to := "…", "…"
	if w.OpenedBy != nil {
		from = hour(w.From)
	}
	if w.End != nil {
		to = hour(w.To)
	}
	s += " " + from + " to " + to
	if w.OpenedBy != nil {
		s += " by " + w.OpenedBy.Summary
	}
	return s
}

func hour(i traces.Instant) string { return i.Time().Format("15:04:05.999") }

// one returns the only group of a report.
func one(t *testing.T, r *report.Report) *report.Group {
	t.Helper()
	if len(r.Groups) != 1 {
		t.Fatalf("the report has %d groups: %s", len(r.Groups), r.Summary)
	}
	return &r.Groups[0]
}

// property returns a property of a group by name.
func property(t *testing.T, g *report.Group, name string) *report.Property {
	t.Helper()
	i := slices.IndexFunc(g.Properties, func(p report.Property) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("no property %s", name)
	}
	return &g.Properties[i]
}

// finding returns the text of the first finding of a kind.
func finding(g *report.Group, kind string) string {
	for _, f := range g.Findings {
		if f.Kind == kind {
			return f.Text
		}
	}
	return ""
}
