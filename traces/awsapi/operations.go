package awsapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"linearize.example/traces"
)

// Operations returns what a call asked for and what its answer says, as operations of a history: one for a call that
// changes one group or target group, one for each group that a describe shows or was asked for. They share the request
// id. Without an answer (nil, or a lost one) they are Pending. Calls that concern neither ingress rules nor targets give
// none, dry runs neither, and describes of which nobody knows a group.
//
// The answer may be of AWS itself: what cannot be read of it is left out, and an operation whose request cannot be read
// is Unclear. An error without AWS's code is Failed with the Error "unknown" if it is the client's (status 4xx), else
// it comes from something between and the operation stays Pending.
//
// Call and Return are left to the caller, and so are ID and Sources.
func Operations(c *Call, a *Answer) []traces.Operation {
	decode, known := decoders[c.Action]
	if !known || decode.service != c.Service {
		return nil
	}
	p := c.params()
	if p.flag("DryRun") {
		return nil
	}
	base, answer := bare(c, a)
	return decode.operations(base, p, answer)
}

// EveryCall returns the operations of a call, and the call by itself, without what it asks for, where Operations has none.
func EveryCall(c *Call, a *Answer) []traces.Operation {
	ops := Operations(c, a)
	if len(ops) == 0 {
		op, _ := bare(c, a)
		ops = []traces.Operation{op}
	}
	return ops
}

// bare is an operation with what all calls have, and the answer of one that succeeded, if it can be read.
func bare(c *Call, a *Answer) (traces.Operation, *element) {
	base := traces.Operation{RequestID: c.ID, Process: c.Process, Op: c.Action, After: -1}
	if c.Caller != (traces.Caller{}) {
		caller := c.Caller
		base.Caller = &caller
	}
	var answer *element
	if a != nil && !a.Lost {
		base.RequestID = firstText(a.RequestID, c.ID)
		switch {
		case a.Code != "":
			base.Outcome, base.Error = traces.Failed, a.Code
		case a.Status >= http.StatusInternalServerError:
		case a.Status >= http.StatusMultipleChoices:
			base.Outcome, base.Error = traces.Failed, "unknown"
		case len(a.Body) > 0 && rootName(a.Body) != c.Action+"Response":
			// A proxy's page with the status 200 says nothing of the call: it stays pending.
		default:
			base.Outcome = traces.Succeeded
			// What cannot be parsed is no answer to read from; a nil element reads as empty.
			answer, _ = parseXML(a.Body)
		}
	}
	return base, answer
}

// A decoder completes an operation of one action. answer is nil unless the call succeeded and its answer can be read.
type decoder struct {
	service    string
	operations func(base traces.Operation, p *params, answer *element) []traces.Operation
}

var decoders = map[string]decoder{
	traces.AuthorizeSecurityGroupIngress:              {EC2, one(authorized)},
	traces.RevokeSecurityGroupIngress:                 {EC2, one(revoked)},
	traces.ModifySecurityGroupRules:                   {EC2, one(modified)},
	traces.UpdateSecurityGroupRuleDescriptionsIngress: {EC2, one(described)},
	traces.CreateSecurityGroup:                        {EC2, one(created)},
	traces.DeleteSecurityGroup:                        {EC2, one(named)},
	traces.DescribeSecurityGroups:                     {EC2, shownGroups},
	traces.DescribeSecurityGroupRules:                 {EC2, shownRules},
	traces.RegisterTargets:                            {ELBv2, one(targets)},
	traces.DeregisterTargets:                          {ELBv2, one(targets)},
}

// one makes a decoder of a function that completes the only operation of a call. It reports whether all of the request
// could be read.
func one(
	complete func(op *traces.Operation, p *params, answer *element) bool,
) func(traces.Operation, *params, *element) []traces.Operation {
	return func(op traces.Operation, p *params, answer *element) []traces.Operation {
		op.Unclear = !complete(&op, p, answer) || strings.EqualFold(answer.text("return"), "false")
		return []traces.Operation{op}
	}
}

// named fills in the group. A group that was named is known by its id only where the answer has it.
func named(op *traces.Operation, p *params, answer *element) bool {
	op.Group = p.text("GroupId")
	for _, set := range []string{"securityGroupRuleSet", "revokedSecurityGroupRuleSet"} {
		for item := range answer.items(set) {
			if op.Group == "" {
				op.Group = item.text("groupId")
			}
		}
	}
	if op.Group == "" {
		op.Group = p.text("GroupName")
	}
	return op.Group != ""
}

func created(op *traces.Operation, _ *params, answer *element) bool {
	op.Group = answer.text("groupId")
	return op.Group != "" || op.Outcome != traces.Succeeded
}

// permissions fills in the rules that the request names.
func permissions(op *traces.Operation, p *params) bool {
	rules, err := p.ingress()
	clear := err == nil
	for i := range rules {
		r, err := rules[i].rule()
		if err != nil {
			clear = false
			continue
		}
		op.Permissions = append(op.Permissions, traces.Permission{Rule: r, Description: rules[i].description})
	}
	return clear
}

func authorized(op *traces.Operation, p *params, answer *element) bool {
	clear := named(op, p, answer)
	clear = permissions(op, p) && clear
	op.Granted = identified(answer, "securityGroupRuleSet")
	return clear && len(op.Permissions) > 0
}

func revoked(op *traces.Operation, p *params, answer *element) bool {
	clear := named(op, p, answer)
	clear = permissions(op, p) && clear
	op.RuleIDs = p.texts("SecurityGroupRuleId")
	op.Revoked = identified(answer, "revokedSecurityGroupRuleSet")
	for item := range answer.items("unknownIpPermissionSet") {
		op.Unknown = append(op.Unknown, shown(item)...)
	}
	return clear && len(op.Permissions)+len(op.RuleIDs) > 0
}

func modified(op *traces.Operation, p *params, answer *element) bool {
	clear := named(op, p, answer)
	for _, item := range p.list("SecurityGroupRule") {
		a, err := item.child("SecurityGroupRule").oneSource()
		id := item.text("SecurityGroupRuleId")
		r, broken := a.rule()
		if err != nil || broken != nil || id == "" {
			clear = false
			continue
		}
		op.Updates = append(op.Updates, traces.RuleUpdate{ID: id, Permission: traces.Permission{Rule: r, Description: a.description}})
	}
	return clear && len(op.Updates) > 0
}

func described(op *traces.Operation, p *params, answer *element) bool {
	clear := named(op, p, answer)
	clear = permissions(op, p) && clear
	for _, item := range p.list("SecurityGroupRuleDescription") {
		id := item.text("SecurityGroupRuleId")
		if id == "" {
			clear = false
			continue
		}
		op.Updates = append(op.Updates, traces.RuleUpdate{ID: id, Permission: traces.Permission{Description: item.text("Description")}})
	}
	return clear && len(op.Permissions)+len(op.Updates) > 0
}

func targets(op *traces.Operation, p *params, _ *element) bool {
	op.TargetGroup = p.text("TargetGroupArn")
	clear := op.TargetGroup != ""
	for _, item := range p.list("Targets") {
		port, err := item.integer("Port")
		if err != nil || port != nil && (*port < 0 || *port > 65535) || item.text("Id") == "" {
			clear = false
			continue
		}
		t := traces.Target{ID: item.text("Id")}
		if port != nil {
			t.Port = int32(*port)
		}
		op.Targets = append(op.Targets, t)
	}
	return clear && len(op.Targets) > 0
}

// shownGroups gives one operation for each group of the answer, with all its rules; without an answer one for each
// group that was asked for by its id.
func shownGroups(base traces.Operation, p *params, answer *element) []traces.Operation {
	if answer == nil {
		return asking(base, append(p.texts("GroupId"), p.filter("group-id")...))
	}
	var ops []traces.Operation
	for item := range answer.items("securityGroupInfo") {
		op := base
		op.Group = item.text("groupId")
		op.View = []traces.Permission{}
		for permission := range item.items("ipPermissions") {
			op.View = append(op.View, shown(permission)...)
		}
		if op.Group != "" {
			ops = append(ops, op)
		}
	}
	return ops
}

// shownRules gives one operation for each group whose rules were asked for. They have a view only if the answer shows
// all rules of these groups: not if it selects among them, and not if it is one page of several.
func shownRules(base traces.Operation, p *params, answer *element) []traces.Operation {
	groups := p.filter("group-id")
	base.RuleIDs = p.texts("SecurityGroupRuleId")
	ops := asking(base, groups)
	if answer == nil || len(groups) == 0 || len(base.RuleIDs) > 0 || len(p.list("Filter")) > 1 ||
		p.text("NextToken") != "" || answer.text("nextToken") != "" {
		return ops
	}
	byGroup := map[string]*traces.Operation{}
	for i := range ops {
		ops[i].View = []traces.Permission{}
		byGroup[ops[i].Group] = &ops[i]
	}
	for item := range answer.items("securityGroupRuleSet") {
		op := byGroup[item.text("groupId")]
		if op == nil || item.text("isEgress") == "true" {
			continue
		}
		if r, ok := single(item); ok {
			op.View = append(op.View, r.Permission)
		}
	}
	return ops
}

// asking gives one operation for each group, in their order, once.
func asking(base traces.Operation, groups []string) []traces.Operation {
	var ops []traces.Operation
	for i, group := range groups {
		if group == "" || slices.Contains(groups[:i], group) {
			continue
		}
		op := base
		op.Group = group
		ops = append(ops, op)
	}
	return ops
}

// filter returns the values of the filter of a name, none if one of them is a pattern.
func (p *params) filter(name string) []string {
	for _, f := range p.list("Filter") {
		if f.text("Name") != name {
			continue
		}
		values := f.texts("Value")
		if slices.ContainsFunc(values, func(v string) bool { return strings.ContainsAny(v, "*?") }) {
			return nil
		}
		return values
	}
	return nil
}

// shown reads an IpPermission of an answer, which is as many rules as it has sources. What no rule can be is left out.
func shown(e *element) []traces.Permission {
	var all []traces.Permission
	for _, list := range []struct{ name, source string }{
		{"groups", "groupId"}, {"ipRanges", "cidrIp"}, {"ipv6Ranges", "cidrIpv6"}, {"prefixListIds", "prefixListId"},
	} {
		for item := range e.items(list.name) {
			source := item.text(list.source)
			if source == "" {
				source = item.text("groupName")
			}
			if r, err := traces.NewRule(e.text("ipProtocol"), e.integer("fromPort"), e.integer("toPort"), source); err == nil {
				all = append(all, traces.Permission{Rule: r, Description: item.text("description")})
			}
		}
	}
	return all
}

// identified reads the ingress rules with ids of an answer.
func identified(answer *element, set string) []traces.IdentifiedPermission {
	var rules []traces.IdentifiedPermission
	for item := range answer.items(set) {
		if item.text("isEgress") == "true" {
			continue
		}
		if r, ok := single(item); ok {
			rules = append(rules, r)
		}
	}
	return rules
}

// single reads a rule with one source, as answers about rules with ids have them.
func single(e *element) (traces.IdentifiedPermission, bool) {
	source := firstText(e.text("cidrIpv4"), e.text("cidrIpv6"), e.text("prefixListId"), e.text("referencedGroupId"),
		e.child("referencedGroupInfo").text("groupId"))
	r, err := traces.NewRule(e.text("ipProtocol"), e.integer("fromPort"), e.integer("toPort"), source)
	return traces.IdentifiedPermission{
		ID:         e.text("securityGroupRuleId"),
		Permission: traces.Permission{Rule: r, Description: e.text("description")},
	}, err == nil
}

// integer returns a number, nil where there is none.
func (e *element) integer(name string) *int64 {
	n, err := strconv.ParseInt(e.text(name), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}
