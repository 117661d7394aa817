package awsapi

import (
	"fmt"
	"slices"

	"linearize.example/traces"
)

// listRules is DescribeSecurityGroupRules.
func (r *request) listRules() error {
	filters, err := r.filters("group-id", "security-group-rule-id", "tag-key", "tag:")
	if err != nil {
		return err
	}
	ids := r.p.texts("SecurityGroupRuleId")
	found := map[string]bool{}
	var all []listed
	for _, g := range r.groupsAt(r.now) {
		for _, shown := range g.rulesAt(r.now) {
			if len(ids) > 0 && !slices.Contains(ids, shown.id) {
				continue
			}
			found[shown.id] = true
			if filters.match(func(name string) []string {
				switch name {
				case "group-id":
					return []string{g.id}
				case "security-group-rule-id":
					return []string{shown.id}
				}
				return tagValues(r.tagsAt(shown.id, r.now), name)
			}) {
				all = append(all, listed{shown.serial, func(x *writer) { r.writeRule(x, g, shown, r.now) }})
			}
		}
	}
	for _, id := range ids {
		if !wellFormed(id, "sgr-") {
			return &Refusal{"InvalidSecurityGroupRuleId.Malformed", fmt.Sprintf("Invalid id: \"%s\" (expecting \"sgr-...\")", id)}
		}
		if !found[id] {
			return &Refusal{"InvalidSecurityGroupRuleId.NotFound", fmt.Sprintf("The security group rule ID '%s' does not exist", id)}
		}
	}
	slices.SortFunc(all, func(a, b listed) int { return a.key - b.key })
	return r.page("securityGroupRuleSet", all)
}

// writeRule writes a SecurityGroupRule, with the tags that a reader at an instant sees.
func (r *request) writeRule(x *writer, g *group, shown *rule, at traces.Instant) {
	x.text("securityGroupRuleId", shown.id)
	x.text("groupId", g.id)
	x.text("groupOwnerId", r.account)
	x.flag("isEgress", shown.key.egress)
	shown.writePorts(x)
	shown.writeSource(x, false)
	x.optional("description", shown.description)
	writeTags(x, r.tagsAt(shown.id, at))
	x.text("securityGroupRuleArn", r.arn("security-group-rule", shown.id))
}

func (r *rule) writePorts(x *writer) {
	x.text("ipProtocol", r.key.Protocol)
	x.number("fromPort", int64(r.key.FromPort))
	x.number("toPort", int64(r.key.ToPort))
}

// writeSource writes a rule's source; in the list of revoked rules a group is an id without its owner.
func (r *rule) writeSource(x *writer, flat bool) {
	switch {
	case r.kind == sourceIPv4:
		x.text("cidrIpv4", r.key.Source)
	case r.kind == sourceIPv6:
		x.text("cidrIpv6", r.key.Source)
	case r.kind == sourcePrefixList:
		x.text("prefixListId", r.key.Source)
	case flat:
		x.text("referencedGroupId", r.key.Source)
	default:
		x.open("referencedGroupInfo")
		x.text("groupId", r.key.Source)
		x.text("userId", r.user)
		x.close("referencedGroupInfo")
	}
}

// writePermissions writes rules as a list of IpPermission, in which those of equal protocol and ports are one, as EC2
// groups them.
func (r *request) writePermissions(name string, rules []*rule) {
	type ports struct {
		protocol string
		from, to int32
	}
	var order []ports
	byPorts := map[ports][]*rule{}
	for _, shown := range rules {
		k := ports{shown.key.Protocol, shown.key.FromPort, shown.key.ToPort}
		if byPorts[k] == nil {
			order = append(order, k)
		}
		byPorts[k] = append(byPorts[k], shown)
	}
	x := r.x
	x.list(name, "item", len(order), func(i int) {
		k := order[i]
		x.text("ipProtocol", k.protocol)
		if slices.Contains([]string{"tcp", "udp", "icmp", "icmpv6"}, k.protocol) {
			x.number("fromPort", int64(k.from))
			x.number("toPort", int64(k.to))
		}
		for kind, list := range []struct{ name, source string }{
			sourceGroup: {"groups", "groupId"}, sourceIPv4: {"ipRanges", "cidrIp"},
			sourceIPv6: {"ipv6Ranges", "cidrIpv6"}, sourcePrefixList: {"prefixListIds", "prefixListId"},
		} {
			var of []*rule
			for _, shown := range byPorts[k] {
				if shown.kind == source(kind) {
					of = append(of, shown)
				}
			}
			x.list(list.name, "item", len(of), func(i int) {
				x.optional("userId", of[i].user)
				x.text(list.source, of[i].key.Source)
				x.optional("description", of[i].description)
			})
		}
	})
}
