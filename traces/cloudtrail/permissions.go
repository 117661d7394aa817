package cloudtrail

import (
	"strings"

	"linearize.example/traces"
)

// ingress fills in what an authorize or a revoke asked for and what was answered.
func (rd *reading) ingress(op *traces.Operation, request, response object) (problem string) {
	add := func(p string) {
		if problem == "" {
			problem = p
		}
	}
	var p string
	op.Permissions, p = rd.permissions(request.get("ipPermissions"))
	add(p)
	flat, p := rd.flat(request)
	op.Permissions = append(op.Permissions, flat...)
	add(p)
	if op.Op == traces.RevokeSecurityGroupIngress {
		op.RuleIDs = ruleIDs(request)
		op.Revoked, p = rd.identified(response.get("revokedSecurityGroupRuleSet"))
		add(p)
		op.Unknown, p = rd.permissions(response.get("unknownIpPermissionSet"))
		add(p)
	} else {
		op.Granted, p = rd.identified(response.get("securityGroupRuleSet"))
		add(p)
	}
	if len(op.Permissions) == 0 && len(op.RuleIDs) == 0 {
		add("it names no rule")
	}
	// An answer says exactly what was granted or revoked; it helps where the request was cut, or names groups by name.
	if answer := append(op.Granted, op.Revoked...); op.Outcome == traces.Succeeded && len(answer) > 0 &&
		(problem != "" || hasNamedSource(op.Permissions)) {
		op.Permissions = nil
		for _, rule := range answer {
			op.Permissions = append(op.Permissions, rule.Permission)
		}
		problem = ""
	}
	return problem
}

// hasNamedSource reports whether a source is a group's name in place of its id (default VPC).
func hasNamedSource(permissions []traces.Permission) bool {
	for _, p := range permissions {
		if !strings.HasPrefix(p.Source, "sg-") && !strings.HasPrefix(p.Source, "pl-") && !strings.Contains(p.Source, "/") {
			return true
		}
	}
	return false
}

// sourceKinds are the lists of sources of an IpPermission, with the names that EC2's XML and the API give them, and the
// member that names the source.
var sourceKinds = []struct{ lists, members []string }{
	{[]string{"groups", "userIdGroupPairs"}, []string{"groupId", "groupName"}},
	{[]string{"ipRanges"}, []string{"cidrIp"}},
	{[]string{"ipv6Ranges"}, []string{"cidrIpv6"}},
	{[]string{"prefixListIds"}, []string{"prefixListId"}},
}

// permissions reads a list of IpPermission: one permission for each source of each item. What a group's userId says is
// no part of a rule (the controller leaves it out when it grants and copies it when it revokes).
func (rd *reading) permissions(v any) (permissions []traces.Permission, problem string) {
	items, err := list(v)
	if err != nil {
		return nil, "its ipPermissions cannot be read: " + err.Error()
	}
	for _, item := range items {
		o, ok := asObject(item)
		if !ok {
			problem = "an item of its ipPermissions is no object"
			continue
		}
		sources := 0
		for _, kind := range sourceKinds {
			var of any
			for _, name := range kind.lists {
				if of == nil {
					of = o.get(name)
				}
			}
			list, err := list(of)
			if err != nil {
				problem = "its " + kind.lists[0] + " cannot be read: " + err.Error()
				continue
			}
			for _, source := range list {
				s, ok := asObject(source)
				if !ok {
					problem = "a source in its " + kind.lists[0] + " is no object"
					continue
				}
				sources++
				p, err := rd.rule(o, s.text(kind.members...), s.text("description"))
				if err != nil {
					problem = err.Error()
					continue
				}
				permissions = append(permissions, p)
			}
		}
		if sources == 0 && problem == "" {
			problem = "a permission names no source"
		}
	}
	return permissions, problem
}

// rule reads protocol and ports of o.
func (rd *reading) rule(o object, source, description string) (traces.Permission, error) {
	from, err := integer(o.get("fromPort"))
	if err != nil {
		return traces.Permission{}, err
	}
	to, err := integer(o.get("toPort"))
	if err != nil {
		return traces.Permission{}, err
	}
	r, err := traces.NewRule(o.text("ipProtocol"), from, to, rd.intern(source))
	if err != nil {
		return traces.Permission{}, err
	}
	r.Protocol, r.Source = rd.intern(r.Protocol), rd.intern(r.Source)
	return traces.Permission{Rule: r, Description: rd.intern(description)}, nil
}

// flat reads the form without ipPermissions: one CIDR, or one group by name, which stands for all of tcp, udp and icmp
// (AWS: API_AuthorizeSecurityGroupIngress, SourceSecurityGroupName).
func (rd *reading) flat(request object) (permissions []traces.Permission, problem string) {
	for _, name := range []string{"cidrIp", "cidrIpv6"} {
		cidr := request.text(name)
		if cidr == "" {
			continue
		}
		p, err := rd.rule(request, cidr, request.text("description"))
		if err != nil {
			problem = err.Error()
			continue
		}
		permissions = append(permissions, p)
	}
	if group := request.text("sourceSecurityGroupId", "sourceSecurityGroupName"); group != "" {
		for _, protocol := range []string{"tcp", "udp", "icmp"} {
			p, err := rd.rule(object{"ipProtocol": protocol}, group, "")
			if err != nil {
				return permissions, err.Error()
			}
			permissions = append(permissions, p)
		}
	}
	return permissions, problem
}

// ruleIDs collects the ids of rules that a request names. How CloudTrail spells that list was never seen; whatever
// member is called like it is searched.
func ruleIDs(request object) []string {
	var ids []string
	for _, name := range []string{"securityGroupRuleIds", "securityGroupRuleIdSet", "securityGroupRuleId"} {
		items, err := list(request.get(name))
		if err != nil {
			items = []any{request.get(name)}
		}
		for _, item := range items {
			if o, ok := asObject(item); ok {
				item = first(o, "securityGroupRuleId", "content", "value")
			}
			if id := text(item); id != "" {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// identified reads the rules of an answer, which have ids. Egress rules are left out.
func (rd *reading) identified(v any) (rules []traces.IdentifiedPermission, problem string) {
	items, err := list(v)
	if err != nil {
		return nil, "the rules of its answer cannot be read: " + err.Error()
	}
	for _, item := range items {
		o, ok := asObject(item)
		if !ok {
			problem = "a rule of its answer is no object"
			continue
		}
		if isTrue(o.get("isEgress")) {
			continue
		}
		p, err := rd.oneSource(o)
		if err != nil {
			problem = "a rule of its answer: " + err.Error()
			continue
		}
		rules = append(rules, traces.IdentifiedPermission{ID: o.text("securityGroupRuleId"), Permission: p})
	}
	return rules, problem
}

// oneSource reads a rule that has one source, as answers and ModifySecurityGroupRules name it.
func (rd *reading) oneSource(o object) (traces.Permission, error) {
	source := o.text("cidrIpv4", "cidrIpv6", "prefixListId", "referencedGroupId")
	if source == "" {
		source = o.object("referencedGroupInfo").text("groupId")
	}
	return rd.rule(o, source, o.text("description"))
}

// updates fills in the changes of rules by id. Of changes of the description alone the rule is empty.
func (rd *reading) updates(op *traces.Operation, v any, rules bool) (problem string) {
	items, err := list(v)
	if err != nil {
		return "the rules that it changes cannot be read: " + err.Error()
	}
	for _, item := range items {
		o, ok := asObject(item)
		id := o.text("securityGroupRuleId")
		if !ok || id == "" {
			problem = "a rule that it changes has no id"
			continue
		}
		u := traces.RuleUpdate{ID: id, Permission: traces.Permission{Description: o.text("description")}}
		if rules {
			u.Permission, err = rd.oneSource(o.object("securityGroupRule"))
			if err != nil {
				problem = "the rule that " + id + " becomes: " + err.Error()
				continue
			}
		}
		op.Updates = append(op.Updates, u)
	}
	if len(items) == 0 {
		problem = "it names no rule"
	}
	return problem
}
