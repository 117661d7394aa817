package awsapi

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"linearize.example/traces"
)

// params is the tree that the dots in the names of a form's parameters make: IpPermissions.1.Groups.1.GroupId. A nil
// tree has no values, so that lookups chain.
type params struct {
	value    string
	children map[string]*params
}

// maxParts bounds the dots in a parameter's name.
const maxParts = 32

// parseForm builds the tree. Of a parameter that is given several times the first value counts.
func parseForm(form url.Values) *params {
	root := &params{}
	for name, values := range form {
		parts := strings.SplitN(name, ".", maxParts)
		p := root
		for _, part := range parts {
			next := p.children[part]
			if next == nil {
				if p.children == nil {
					p.children = map[string]*params{}
				}
				next = &params{}
				p.children[part] = next
			}
			p = next
		}
		if len(values) > 0 {
			p.value = values[0]
		}
	}
	return root
}

func (p *params) child(name string) *params {
	if p == nil {
		return nil
	}
	return p.children[name]
}

func (p *params) text(name string) string {
	if c := p.child(name); c != nil {
		return c.value
	}
	return ""
}

func (p *params) has(name string) bool { return p.child(name) != nil }

// list returns the elements of a list in the order of their numbers. ELBv2 puts "member" between name and number.
func (p *params) list(name string) []*params {
	c := p.child(name)
	if m := c.child("member"); m != nil {
		c = m
	}
	if c == nil {
		return nil
	}
	type numbered struct {
		n uint64
		p *params
	}
	var found []numbered
	for key, child := range c.children {
		if n, err := strconv.ParseUint(key, 10, 32); err == nil {
			found = append(found, numbered{n, child})
		}
	}
	slices.SortFunc(found, func(a, b numbered) int {
		switch {
		case a.n < b.n:
			return -1
		case a.n > b.n:
			return 1
		}
		return strings.Compare(a.p.value, b.p.value) // "1" and "01"
	})
	list := make([]*params, len(found))
	for i, f := range found {
		list[i] = f.p
	}
	return list
}

// texts returns the values of a list of strings.
func (p *params) texts(name string) []string {
	var texts []string
	for _, item := range p.list(name) {
		texts = append(texts, item.value)
	}
	return texts
}

// integer returns a number, nil where there is none.
func (p *params) integer(name string) (*int64, error) {
	if !p.has(name) {
		return nil, nil
	}
	n, err := strconv.ParseInt(p.text(name), 10, 64)
	if err != nil {
		return nil, &Refusal{"InvalidParameterValue", fmt.Sprintf("Invalid value '%s' for %s. It is not an integer.", p.text(name), name)}
	}
	return &n, nil
}

// flag reports whether a boolean is true.
func (p *params) flag(name string) bool { return strings.EqualFold(p.text(name), "true") }

// source says what kind of source a rule has.
type source uint8

const (
	sourceGroup source = iota
	sourceIPv4
	sourceIPv6
	sourcePrefixList
)

// asked is one rule as a request asks for it: one protocol, port range and source, as sent.
type asked struct {
	protocol string
	from, to *int64
	kind     source
	// source is the group's id, the CIDR or the prefix list's id; of a group that was named, the name.
	source string
	named  bool
	// user is the owner of the group that is the source, if the request says so.
	user        string
	description string
}

// rule returns the rule in EC2's canonical form.
func (a *asked) rule() (traces.Rule, error) {
	return traces.NewRule(a.protocol, a.from, a.to, a.source)
}

// ingress reads the rules that an authorize, a revoke or an update of descriptions names, in their order: the list
// IpPermissions, or else the flat form of one rule.
func (p *params) ingress() ([]asked, error) {
	if p.has("IpPermissions") {
		var all []asked
		for _, item := range p.list("IpPermissions") {
			rules, err := item.permission()
			if err != nil {
				return nil, err
			}
			if len(rules) == 0 {
				return nil, errNoSource
			}
			all = append(all, rules...)
		}
		return all, nil
	}
	if name := p.text("SourceSecurityGroupName"); name != "" {
		// Full access, from a group that is named: three rules (API_AuthorizeSecurityGroupIngress).
		low, high, all := int64(0), int64(65535), int64(-1)
		a := asked{kind: sourceGroup, source: name, named: true, user: p.text("SourceSecurityGroupOwnerId")}
		tcp, udp, icmp := a, a, a
		tcp.protocol, tcp.from, tcp.to = "tcp", &low, &high
		udp.protocol, udp.from, udp.to = "udp", &low, &high
		icmp.protocol, icmp.from, icmp.to = "icmp", &all, &all
		return []asked{tcp, udp, icmp}, nil
	}
	if !p.has("CidrIp") && !p.has("IpProtocol") {
		return nil, nil
	}
	a := asked{protocol: p.text("IpProtocol"), kind: sourceIPv4, source: p.text("CidrIp")}
	var err error
	if a.from, err = p.integer("FromPort"); err != nil {
		return nil, err
	}
	if a.to, err = p.integer("ToPort"); err != nil {
		return nil, err
	}
	if strings.Contains(a.source, ":") {
		a.kind = sourceIPv6
	}
	return []asked{a}, nil
}

// errNoSource is EC2's error for a rule without a source (boto3 #1078).
var errNoSource = &Refusal{"MissingParameter", "Missing source specification: include source security group or CIDR information"}

// permission reads one IpPermission, which is as many rules as it has sources.
func (p *params) permission() ([]asked, error) {
	base := asked{protocol: p.text("IpProtocol")}
	var err error
	if base.from, err = p.integer("FromPort"); err != nil {
		return nil, err
	}
	if base.to, err = p.integer("ToPort"); err != nil {
		return nil, err
	}
	var rules []asked
	add := func(kind source, value string, item *params) {
		a := base
		a.kind, a.source, a.description = kind, value, item.text("Description")
		rules = append(rules, a)
	}
	groups := p.list("Groups")
	if !p.has("Groups") {
		groups = p.list("UserIdGroupPairs") // the list's name in the SDKs, which some clients send
	}
	for _, g := range groups {
		id := g.text("GroupId")
		add(sourceGroup, firstText(id, g.text("GroupName")), g)
		last := &rules[len(rules)-1]
		last.named, last.user = id == "", g.text("UserId")
	}
	for _, r := range p.list("IpRanges") {
		add(sourceIPv4, r.text("CidrIp"), r)
	}
	for _, r := range p.list("Ipv6Ranges") {
		add(sourceIPv6, r.text("CidrIpv6"), r)
	}
	for _, l := range p.list("PrefixListIds") {
		add(sourcePrefixList, l.text("PrefixListId"), l)
	}
	return rules, nil
}

// oneSource reads the rule that ModifySecurityGroupRules gives to an id (SecurityGroupRuleRequest).
func (p *params) oneSource() (asked, error) {
	a := asked{protocol: p.text("IpProtocol"), description: p.text("Description")}
	var err error
	if a.from, err = p.integer("FromPort"); err != nil {
		return a, err
	}
	if a.to, err = p.integer("ToPort"); err != nil {
		return a, err
	}
	for _, s := range []struct {
		name string
		kind source
	}{{"ReferencedGroupId", sourceGroup}, {"CidrIpv4", sourceIPv4}, {"CidrIpv6", sourceIPv6}, {"PrefixListId", sourcePrefixList}} {
		if p.has(s.name) {
			a.kind, a.source = s.kind, p.text(s.name)
			return a, nil
		}
	}
	return a, errNoSource
}
