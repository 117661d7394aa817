package awsapi

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"linearize.example/traces"
)

const (
	permissionParams = "GroupId GroupName IpPermissions CidrIp FromPort ToPort IpProtocol " +
		"SourceSecurityGroupName SourceSecurityGroupOwnerId "
	descriptionParams = "GroupId GroupName IpPermissions SecurityGroupRuleDescription"
)

var ruleActions = map[string]action{
	traces.AuthorizeSecurityGroupIngress: {lag: "authorize", params: permissionParams + "TagSpecification",
		do: func(r *request) error { return r.authorize(false) }},
	"AuthorizeSecurityGroupEgress": {lag: "authorize", params: permissionParams + "TagSpecification",
		do: func(r *request) error { return r.authorize(true) }},
	traces.RevokeSecurityGroupIngress: {lag: "revoke", params: permissionParams + "SecurityGroupRuleId",
		do: func(r *request) error { return r.revoke(false) }},
	"RevokeSecurityGroupEgress": {lag: "revoke", params: permissionParams + "SecurityGroupRuleId",
		do: func(r *request) error { return r.revoke(true) }},
	traces.ModifySecurityGroupRules: {lag: "modify", params: "GroupId SecurityGroupRule", do: (*request).modify},
	traces.UpdateSecurityGroupRuleDescriptionsIngress: {lag: "descriptions", params: descriptionParams,
		do: func(r *request) error { return r.describeRules(false) }},
	"UpdateSecurityGroupRuleDescriptionsEgress": {lag: "descriptions", params: descriptionParams,
		do: func(r *request) error { return r.describeRules(true) }},
	traces.DescribeSecurityGroupRules: {params: "Filter SecurityGroupRuleId MaxResults NextToken", do: (*request).listRules},
}

// group finds the group that a call is about, by its id or, in the default VPC, by its name.
func (r *request) group() (*group, error) {
	id, name := r.p.text("GroupId"), r.p.text("GroupName")
	switch {
	case id != "" && name != "":
		return nil, combination("The parameters GroupId and GroupName may not be used together")
	case id == "" && name == "":
		return nil, missing("GroupName or GroupId")
	case id != "":
		return r.groupByID(id)
	}
	v := r.defaultVPC()
	if v == nil {
		return nil, invalid("Invalid value '%s' for groupName. You may not reference Amazon VPC security groups by name. "+
			"Please use the corresponding id for this operation.", name)
	}
	if g := r.groupByName(v.id, name); g != nil {
		return g, nil
	}
	return nil, &Refusal{"InvalidGroup.NotFound", fmt.Sprintf("The security group '%s' does not exist in default VPC '%s'", name, v.id)}
}

func (r *request) groupByID(id string) (*group, error) {
	if !wellFormed(id, "sg-") {
		return nil, &Refusal{"InvalidGroupId.Malformed", fmt.Sprintf("Invalid id: \"%s\" (expecting \"sg-...\")", id)}
	}
	g, ok := r.groups.current(id)
	if !ok {
		return nil, noGroup(id)
	}
	return g, nil
}

func (w *World) groupByName(vpc, name string) *group {
	for _, g := range w.groupsAt(traces.Forever) {
		if g.vpc == vpc && g.name == name {
			return g
		}
	}
	return nil
}

func noGroup(id string) *Refusal {
	return &Refusal{"InvalidGroup.NotFound", fmt.Sprintf("The security group '%s' does not exist", id)}
}

// wellFormed reports whether an id has its prefix and something behind it. AWS takes hexadecimal digits only; other letters
// are let through because people replace ids by readable ones.
func wellFormed(id, prefix string) bool {
	rest, ok := strings.CutPrefix(id, prefix)
	return ok && rest != "" && !strings.ContainsFunc(rest, func(c rune) bool {
		return c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
}

// check turns a rule as asked for into one of the group, or says what is wrong with it, in EC2's words where they are known
// (aws-cli #1066, aws-sdk-go-v2 #1203, terraform-provider-aws #1793). The rule has no id.
func (w *World) check(g *group, a *asked, egress bool) (*rule, error) {
	protocol := strings.ToLower(a.protocol)
	switch n, err := strconv.Atoi(protocol); {
	case protocol == "":
		return nil, missing("ipProtocol")
	case err == nil && n >= -1 && n <= 255:
	case err != nil && slices.Contains([]string{"tcp", "udp", "icmp", "icmpv6"}, protocol):
	default:
		return nil, invalid("Invalid value '%s' for IP protocol. Unknown protocol.", a.protocol)
	}
	switch protocol {
	case "tcp", "6", "udp", "17":
		switch {
		case a.from == nil || a.to == nil:
			return nil, invalid("Invalid value 'Must specify both from and to ports with TCP/UDP.' for portRange.")
		case *a.from < 0 || *a.from > 65535:
			return nil, invalid("TCP/UDP (from) port (%d) out of range", *a.from)
		case *a.to < 0 || *a.to > 65535:
			return nil, invalid("TCP/UDP (to) port (%d) out of range", *a.to)
		case *a.from > *a.to:
			return nil, invalid("Invalid TCP/UDP port range (%d:%d)", *a.from, *a.to)
		}
	case "icmp", "1":
		if a.from == nil || a.to == nil {
			return nil, invalid("Invalid value 'Must specify both from and to ports with ICMP.' for portRange.")
		}
	}
	if err := w.checkSource(g, a); err != nil {
		return nil, err
	}
	if !validDescription(a.description) {
		return nil, invalid("Invalid rule description. Valid descriptions are strings less than 256 characters from the following set: " +
			"a-zA-Z0-9. _-:/()#,@[]+=&;{}!$*")
	}
	id, err := a.rule()
	if err != nil {
		return nil, invalid("Invalid value for portRange: %s.", err)
	}
	r := &rule{key: ruleKey{egress, id}, kind: a.kind, description: a.description}
	if a.kind == sourceGroup {
		r.user = firstText(a.user, w.account)
	}
	return r, nil
}

// checkSource checks a rule's source, and replaces the name of a group by its id.
func (w *World) checkSource(g *group, a *asked) error {
	switch a.kind {
	case sourceIPv4, sourceIPv6:
		p, err := netip.ParsePrefix(a.source)
		if err != nil || p.Addr().Is4() != (a.kind == sourceIPv4) {
			return invalid("CIDR block %s is malformed", a.source)
		}
	case sourcePrefixList:
		if !wellFormed(a.source, "pl-") {
			return &Refusal{"InvalidPrefixListId.Malformed", fmt.Sprintf("Invalid id: \"%s\" (expecting \"pl-...\")", a.source)}
		}
	case sourceGroup:
		if a.named {
			named := w.groupByName(g.vpc, a.source)
			if named == nil {
				return &Refusal{"InvalidGroup.NotFound", fmt.Sprintf("The security group '%s' does not exist in VPC '%s'", a.source, g.vpc)}
			}
			a.source, a.named = named.id, false
		}
		if !wellFormed(a.source, "sg-") {
			return &Refusal{"InvalidGroupId.Malformed", fmt.Sprintf("Invalid id: \"%s\" (expecting \"sg-...\")", a.source)}
		}
		_, exists := w.groups.current(a.source)
		if !exists && !w.foreign[a.source] && (a.user == "" || a.user == w.account) {
			return noGroup(a.source)
		}
	}
	return nil
}

func validDescription(s string) bool {
	return len(s) <= 255 && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && !strings.ContainsRune(". _-:/()#,@[]+=&;{}!$*", c)
	})
}

// rules reads and checks the rules that a request names.
func (r *request) rules(g *group, egress bool) ([]*rule, error) {
	all, err := r.p.ingress()
	if err != nil {
		return nil, err
	}
	rules := make([]*rule, len(all))
	seen := map[ruleKey]bool{}
	for i := range all {
		if rules[i], err = r.check(g, &all[i], egress); err != nil {
			return nil, err
		}
		if seen[rules[i].key] {
			return nil, invalid("The same permission must not appear multiple times")
		}
		seen[rules[i].key] = true
	}
	return rules, nil
}

// authorize adds all rules that the request names, or none.
func (r *request) authorize(egress bool) error {
	g, err := r.group()
	if err != nil {
		return err
	}
	rules, err := r.rules(g, egress)
	if err != nil {
		return err
	}
	if len(rules) == 0 {
		return missing("IpPermissions")
	}
	for _, added := range rules {
		if _, there := g.rules.current(added.key); there {
			return &Refusal{"InvalidPermission.Duplicate", fmt.Sprintf("the specified rule %q already exists", added.peer())}
		}
	}
	if g.full(rules, egress, r.conditions.ruleLimit) {
		return &Refusal{Code: "RulesPerSecurityGroupLimitExceeded"}
	}
	tags, err := r.tagSpecification("security-group-rule")
	if err != nil {
		return err
	}
	visible := r.visibleIn(g)
	for _, added := range rules {
		added.id = r.nextID("sgr-")
		added.serial = r.serial
		g.rules.set(added.key, added, r.now, visible)
		for _, t := range tags {
			r.setTag(added.id, t, r.now, visible)
		}
	}
	r.tell(g, egress)
	r.x.flag("return", true)
	r.x.list("securityGroupRuleSet", "item", len(rules), func(i int) { r.writeRule(r.x, g, rules[i], traces.Forever) })
	return nil
}

// peer describes a rule as EC2 does in the error of a duplicate.
func (r *rule) peer() string {
	ports := ""
	if r.key.FromPort != -1 {
		ports = fmt.Sprintf(", from port: %d, to port: %d", r.key.FromPort, r.key.ToPort)
	}
	protocol := strings.ToUpper(r.key.Protocol)
	if protocol == "-1" {
		protocol = "ALL"
	}
	return fmt.Sprintf("peer: %s, %s%s, ALLOW", r.key.Source, protocol, ports)
}

// full reports whether the group has no room for more rules. The quota is enforced for IPv4 and IPv6 each; a rule whose
// source is a group or a prefix list counts for both (Amazon VPC quotas). Of prefix lists AWS counts the entries, of
// which the world knows nothing: they count as one.
func (g *group) full(more []*rule, egress bool, limit int) bool {
	v4, v6 := 0, 0
	for _, r := range append(g.rulesAt(traces.Forever), more...) {
		if r.key.egress != egress {
			continue
		}
		if r.kind != sourceIPv6 {
			v4++
		}
		if r.kind != sourceIPv4 {
			v6++
		}
	}
	return max(v4, v6) > limit
}

// visibleIn returns when a change of the group's rules becomes visible to describes.
func (r *request) visibleIn(g *group) traces.Instant {
	visible := r.visible
	if r.conditions.inOrder {
		visible = max(visible, g.visible)
	}
	g.visible = max(g.visible, visible)
	return visible
}

func (r *request) tell(g *group, egress bool) {
	if r.changed != nil && !egress {
		r.changed(g)
	}
}

// revoke removes all rules that the request names, or none; but in the default VPC those that are there, and it reports the
// others (API_RevokeSecurityGroupIngress).
func (r *request) revoke(egress bool) error {
	g, err := r.group()
	if err != nil {
		return err
	}
	gone, unknown, err := r.toRevoke(g, egress)
	if err != nil {
		return err
	}
	visible := r.visibleIn(g)
	for _, old := range gone {
		g.rules.remove(old.key, r.now, visible)
		r.removeTags(old.id, r.now, visible)
	}
	if len(gone) > 0 {
		r.tell(g, egress)
	}
	r.x.flag("return", true)
	if len(unknown) > 0 {
		r.writePermissions("unknownIpPermissionSet", unknown)
	}
	r.x.list("revokedSecurityGroupRuleSet", "item", len(gone), func(i int) {
		old := gone[i]
		r.x.text("securityGroupRuleId", old.id)
		r.x.text("groupId", g.id)
		r.x.flag("isEgress", egress)
		old.writePorts(r.x)
		old.writeSource(r.x, true)
		r.x.optional("description", old.description)
	})
	return nil
}

// toRevoke finds the rules to be removed, and those that are not there.
func (r *request) toRevoke(g *group, egress bool) (gone, unknown []*rule, err error) {
	ids := r.p.texts("SecurityGroupRuleId")
	if len(ids) > 0 && (r.p.has("IpPermissions") || r.p.has("CidrIp") || r.p.has("SourceSecurityGroupName")) {
		return nil, nil, combination("The parameters SecurityGroupRuleIds and IpPermissions may not be used together")
	}
	for i, id := range ids {
		old, err := r.ruleByID(g, id, egress)
		if err != nil {
			return nil, nil, err
		}
		if !slices.Contains(ids[:i], id) {
			gone = append(gone, old)
		}
	}
	if len(ids) > 0 {
		return gone, nil, nil
	}
	rules, err := r.rules(g, egress)
	if err != nil {
		return nil, nil, err
	}
	if len(rules) == 0 {
		return nil, nil, missing("IpPermissions or SecurityGroupRuleIds")
	}
	for _, named := range rules {
		if old, there := g.rules.current(named.key); there {
			gone = append(gone, old)
		} else {
			unknown = append(unknown, named)
		}
	}
	if v := r.vpc(g.vpc); len(unknown) > 0 && !v.byDefault {
		return nil, nil, &Refusal{Code: "InvalidPermission.NotFound"}
	}
	return gone, unknown, nil
}

func (r *request) ruleByID(g *group, id string, egress bool) (*rule, error) {
	if !wellFormed(id, "sgr-") {
		return nil, &Refusal{"InvalidSecurityGroupRuleId.Malformed", fmt.Sprintf("Invalid id: \"%s\" (expecting \"sgr-...\")", id)}
	}
	old := g.byID(id)
	if old == nil || old.key.egress != egress {
		return nil, &Refusal{"InvalidSecurityGroupRuleId.NotFound", fmt.Sprintf("The security group rule ID '%s' does not exist", id)}
	}
	return old, nil
}

// modify gives new contents to rules that keep their ids, all or none. A rule keeps its kind of source
// (API_SecurityGroupRuleRequest), and its description is the new one, if only an empty one.
func (r *request) modify() error {
	g, err := r.group()
	if err != nil {
		return err
	}
	updates := r.p.list("SecurityGroupRule")
	if len(updates) == 0 {
		return missing("SecurityGroupRules")
	}
	var before, after []*rule
	seen := map[string]bool{}
	for _, u := range updates {
		id := u.text("SecurityGroupRuleId")
		if id == "" {
			return missing("SecurityGroupRuleId")
		}
		if seen[id] {
			return invalid("The security group rule ID '%s' appears multiple times", id)
		}
		seen[id] = true
		old := g.byID(id)
		if old == nil {
			if _, err := r.ruleByID(g, id, false); err != nil {
				return err
			}
		}
		a, err := u.child("SecurityGroupRule").oneSource()
		if err != nil {
			return err
		}
		replacement, err := r.check(g, &a, old.key.egress)
		if err != nil {
			return err
		}
		if replacement.kind != old.kind {
			return invalid("You may not change the type of the security group rule '%s'", id)
		}
		replacement.id, replacement.serial = old.id, old.serial
		before, after = append(before, old), append(after, replacement)
	}
	kept := map[ruleKey]bool{}
	for _, old := range g.rulesAt(traces.Forever) {
		kept[old.key] = !seen[old.id]
	}
	for _, replacement := range after {
		if kept[replacement.key] {
			return &Refusal{"InvalidPermission.Duplicate", fmt.Sprintf("the specified rule %q already exists", replacement.peer())}
		}
		kept[replacement.key] = true
	}
	visible := r.visibleIn(g)
	ingress := false
	for _, old := range before {
		g.rules.remove(old.key, r.now, visible)
		ingress = ingress || !old.key.egress
	}
	for _, replacement := range after {
		g.rules.set(replacement.key, replacement, r.now, visible)
	}
	r.tell(g, !ingress)
	r.x.flag("return", true)
	return nil
}

// describeRules gives new descriptions to rules, all or none.
func (r *request) describeRules(egress bool) error {
	g, err := r.group()
	if err != nil {
		return err
	}
	byID := r.p.list("SecurityGroupRuleDescription")
	if len(byID) > 0 && r.p.has("IpPermissions") {
		return combination("The parameters SecurityGroupRuleDescriptions and IpPermissions may not be used together")
	}
	var after []*rule
	describe := func(old *rule, description string) error {
		if !validDescription(description) {
			return invalid("Invalid rule description.")
		}
		described := *old
		described.description = description
		after = append(after, &described)
		return nil
	}
	for _, u := range byID {
		old, err := r.ruleByID(g, u.text("SecurityGroupRuleId"), egress)
		if err != nil {
			return err
		}
		if err := describe(old, u.text("Description")); err != nil {
			return err
		}
	}
	rules, err := r.rules(g, egress)
	if err != nil {
		return err
	}
	for _, named := range rules {
		old, there := g.rules.current(named.key)
		if !there {
			return &Refusal{Code: "InvalidPermission.NotFound"}
		}
		if err := describe(old, named.description); err != nil {
			return err
		}
	}
	if len(after) == 0 {
		return missing("IpPermissions or SecurityGroupRuleDescriptions")
	}
	visible := r.visibleIn(g)
	for _, described := range after {
		g.rules.set(described.key, described, r.now, visible)
	}
	r.tell(g, egress)
	r.x.flag("return", true)
	return nil
}
