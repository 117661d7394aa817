package awsapi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"linearize.example/traces"
)

var groupActions = map[string]action{
	traces.CreateSecurityGroup: {lag: "create", params: "GroupName GroupDescription VpcId TagSpecification",
		do: (*request).createGroup},
	traces.DeleteSecurityGroup: {lag: "delete", params: "GroupId GroupName", do: (*request).deleteGroup},
	traces.DescribeSecurityGroups: {params: "GroupId GroupName Filter MaxResults NextToken",
		do: (*request).listGroups},
}

func (r *request) createGroup() error {
	name, description, network := r.p.text("GroupName"), r.p.text("GroupDescription"), r.p.text("VpcId")
	switch {
	case name == "":
		return missing("GroupName")
	case description == "":
		return missing("GroupDescription")
	case len(name) > 255 || strings.HasPrefix(name, "sg-"):
		return invalid("Value (%s) for parameter groupName is invalid. It is longer than 255 characters, or begins with sg-.", name)
	case name == "default":
		return &Refusal{"InvalidGroup.Reserved", "The specified group name is a reserved name."}
	}
	v := r.vpc(network)
	if network == "" {
		if v = r.defaultVPC(); v == nil {
			return &Refusal{"VPCIdNotSpecified", "No default VPC for this user"}
		}
	}
	if v == nil {
		return &Refusal{"InvalidVpcID.NotFound", fmt.Sprintf("The vpc ID '%s' does not exist", network)}
	}
	if r.groupByName(v.id, name) != nil {
		return &Refusal{"InvalidGroup.Duplicate", fmt.Sprintf("The security group '%s' already exists for VPC '%s'", name, v.id)}
	}
	tags, err := r.tagSpecification("security-group")
	if err != nil {
		return err
	}
	g := r.newGroup(r.nextID("sg-"), name, description, v.id, r.now, r.visible)
	for _, t := range tags {
		r.setTag(g.id, t, r.now, r.visible)
	}
	anywhere := traces.Rule{Protocol: "-1", FromPort: -1, ToPort: -1, Source: "0.0.0.0/0"}
	all := &rule{id: r.nextID("sgr-"), key: ruleKey{true, anywhere}, kind: sourceIPv4}
	all.serial = r.serial
	g.rules.set(all.key, all, r.now, r.now)
	r.tell(g, false)
	r.x.flag("return", true)
	r.x.text("groupId", g.id)
	writeTags(r.x, tags)
	r.x.text("securityGroupArn", r.arn("security-group", g.id))
	return nil
}

func (w *World) newGroup(id, name, description, vpc string, now, visible traces.Instant) *group {
	w.serial++
	g := &group{serial: w.serial, id: id, name: name, description: description, vpc: vpc, visible: traces.Beginning}
	w.groups.set(id, g, now, visible)
	return g
}

// deleteGroup deletes a group that nothing uses: no network interface, and no rule of another group.
func (r *request) deleteGroup() error {
	g, err := r.group()
	if err != nil {
		return err
	}
	if g.name == "default" {
		return &Refusal{"CannotDelete", fmt.Sprintf("the specified group: \"%s\" name: \"default\" cannot be deleted by a user", g.id)}
	}
	used := slices.ContainsFunc(r.interfaces, func(n *networkInterface) bool { return slices.Contains(n.groups, g.id) }) ||
		slices.ContainsFunc(r.instances, func(i *instance) bool { return slices.Contains(i.groups, g.id) })
	for _, other := range r.groupsAt(traces.Forever) {
		for _, of := range other.rulesAt(traces.Forever) {
			used = used || other != g && of.kind == sourceGroup && of.key.Source == g.id
		}
	}
	if used {
		return &Refusal{"DependencyViolation", fmt.Sprintf("resource %s has a dependent object", g.id)}
	}
	for _, old := range g.rulesAt(traces.Forever) {
		g.rules.remove(old.key, r.now, r.visible)
		r.removeTags(old.id, r.now, r.visible)
	}
	r.groups.remove(g.id, r.now, r.visible)
	r.removeTags(g.id, r.now, r.visible)
	r.tell(g, false)
	r.x.flag("return", true)
	r.x.text("groupId", g.id)
	return nil
}

// groupFilters are the names of filters that DescribeSecurityGroups knows.
var groupFilters = []string{
	"description", "group-id", "group-name", "owner-id", "vpc-id", "tag:", "tag-key",
	"ip-permission.cidr", "ip-permission.from-port", "ip-permission.group-id", "ip-permission.group-name",
	"ip-permission.ipv6-cidr", "ip-permission.prefix-list-id", "ip-permission.protocol", "ip-permission.to-port",
	"ip-permission.user-id", "egress.ip-permission.cidr", "egress.ip-permission.from-port",
	"egress.ip-permission.group-id", "egress.ip-permission.group-name", "egress.ip-permission.ipv6-cidr",
	"egress.ip-permission.prefix-list-id", "egress.ip-permission.protocol", "egress.ip-permission.to-port",
	"egress.ip-permission.user-id",
}

func (r *request) listGroups() error {
	filters, err := r.filters(groupFilters...)
	if err != nil {
		return err
	}
	ids, names := r.p.texts("GroupId"), r.p.texts("GroupName")
	found := map[string]bool{}
	var all []listed
	for _, g := range r.candidates(ids, names) {
		byName := slices.Contains(names, g.name) && r.vpc(g.vpc).byDefault
		if len(ids)+len(names) > 0 && !slices.Contains(ids, g.id) && !byName {
			continue
		}
		found[g.id] = true
		if byName {
			found["name "+g.name] = true
		}
		if filters.match(func(name string) []string { return r.groupValues(g, name) }) {
			all = append(all, listed{g.serial, func(*writer) { r.writeGroup(g) }})
		}
	}
	for _, id := range ids {
		if !wellFormed(id, "sg-") {
			return &Refusal{"InvalidGroupId.Malformed", fmt.Sprintf("Invalid id: \"%s\" (expecting \"sg-...\")", id)}
		}
		if !found[id] {
			return noGroup(id)
		}
	}
	for _, name := range names {
		if !found["name "+name] {
			return &Refusal{"InvalidGroup.NotFound", fmt.Sprintf("The security group '%s' does not exist", name)}
		}
	}
	return r.page("securityGroupInfo", all)
}

// candidates are the groups that a describe may show: those of the ids, which need no search, or all.
func (r *request) candidates(ids, names []string) []*group {
	if len(ids) == 0 || len(names) > 0 {
		return r.groupsAt(r.now)
	}
	var all []*group
	for i, id := range ids {
		if g, ok := r.groups.at(id, r.now); ok && !slices.Contains(ids[:i], id) {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, func(a, b *group) int { return cmp.Compare(a.serial, b.serial) })
	return all
}

// groupValues gives what a group has for a filter's name.
func (r *request) groupValues(g *group, name string) []string {
	switch name {
	case "description":
		return []string{g.description}
	case "group-id":
		return []string{g.id}
	case "group-name":
		return []string{g.name}
	case "owner-id":
		return []string{r.account}
	case "vpc-id":
		return []string{g.vpc}
	}
	of, egress := strings.CutPrefix(name, "egress.")
	field, isRule := strings.CutPrefix(of, "ip-permission.")
	if !isRule {
		return tagValues(r.tagsAt(g.id, r.now), name)
	}
	var values []string
	for _, shown := range g.rulesAt(r.now) {
		if shown.key.egress == egress {
			values = append(values, r.ruleValues(shown, field)...)
		}
	}
	return values
}

func (r *request) ruleValues(shown *rule, field string) []string {
	source := func(kind source) []string {
		if shown.kind == kind {
			return []string{shown.key.Source}
		}
		return nil
	}
	switch field {
	case "cidr":
		return source(sourceIPv4)
	case "ipv6-cidr":
		return source(sourceIPv6)
	case "prefix-list-id":
		return source(sourcePrefixList)
	case "group-id":
		return source(sourceGroup)
	case "group-name":
		if named, ok := r.groups.current(shown.key.Source); ok && shown.kind == sourceGroup {
			return []string{named.name}
		}
	case "user-id":
		if shown.kind == sourceGroup {
			return []string{shown.user}
		}
	case "from-port":
		return []string{fmt.Sprint(shown.key.FromPort)}
	case "to-port":
		return []string{fmt.Sprint(shown.key.ToPort)}
	case "protocol":
		return []string{shown.key.Protocol}
	}
	return nil
}

func (r *request) writeGroup(g *group) {
	x := r.x
	x.text("ownerId", r.account)
	x.text("groupId", g.id)
	x.text("groupName", g.name)
	x.text("groupDescription", g.description)
	x.text("vpcId", g.vpc)
	x.text("securityGroupArn", r.arn("security-group", g.id))
	var in, out []*rule
	for _, shown := range g.rulesAt(r.now) {
		if shown.key.egress {
			out = append(out, shown)
		} else {
			in = append(in, shown)
		}
	}
	r.writePermissions("ipPermissions", in)
	r.writePermissions("ipPermissionsEgress", out)
	writeTags(x, r.tagsAt(g.id, r.now))
}
