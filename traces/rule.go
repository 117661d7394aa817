package traces

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Rule is the identity of an ingress rule: protocol, port range and source. The description is no part of it
// (AWS: API_RevokeSecurityGroupIngress; the controller: pkg/networking/security_group_info.go, HashCode).
type Rule struct {
	// Protocol is "tcp", "udp", "icmp", "icmpv6", "-1" for all, or another protocol's number.
	Protocol string
	// FromPort and ToPort are ports, or ICMP type and code; -1 and -1 mean all.
	FromPort, ToPort int32
	// Source is a group id, a CIDR in canonical form, or a prefix list's id.
	Source string
}

// Permission is a rule with its description. Two permissions with the same Rule are the same rule to EC2.
type Permission struct {
	Rule
	Description string
}

// IdentifiedPermission is a permission with the id that EC2 gave to the rule.
type IdentifiedPermission struct {
	ID string
	Permission
}

// RuleUpdate is one change of ModifySecurityGroupRules: the rule with the id ID becomes Permission.
type RuleUpdate struct {
	ID string
	Permission
}

var protocolNames = map[string]string{"1": "icmp", "6": "tcp", "17": "udp", "58": "icmpv6", "all": "-1"}

// NewRule returns the canonical form of a rule as EC2 stores it: protocol numbers become names, "-1" and protocols
// without ports cover all ports, CIDRs lose their host bits (AWS: API_AuthorizeSecurityGroupIngress). A missing
// port is nil. It fails for ports that no rule can have.
func NewRule(protocol string, from, to *int64, source string) (Rule, error) {
	p := strings.ToLower(strings.TrimSpace(protocol))
	if name, ok := protocolNames[p]; ok {
		p = name
	}
	if p == "" {
		return Rule{}, fmt.Errorf("the permission has no protocol")
	}
	if n, err := strconv.Atoi(p); err == nil && (n < -1 || n > 255) {
		return Rule{}, fmt.Errorf("protocol %q is no IP protocol", protocol)
	}
	r := Rule{Protocol: p, FromPort: -1, ToPort: -1, Source: CanonicalSource(source)}
	if r.Source == "" {
		return Rule{}, fmt.Errorf("the permission has no source")
	}
	switch p {
	case "tcp", "udp", "icmp", "icmpv6":
	default:
		return r, nil
	}
	for _, port := range []*int64{from, to} {
		if port != nil && (*port < -1 || *port > 65535) {
			return Rule{}, fmt.Errorf("port %d is outside of -1..65535", *port)
		}
	}
	if from != nil {
		r.FromPort = int32(*from)
	}
	if to != nil {
		r.ToPort = int32(*to)
	}
	if p == "tcp" || p == "udp" {
		if r.FromPort == -1 && r.ToPort == -1 {
			r.FromPort, r.ToPort = 0, 65535
		}
		if r.FromPort < 0 || r.ToPort < 0 {
			return Rule{}, fmt.Errorf("the port range %d-%d is incomplete", r.FromPort, r.ToPort)
		}
		if r.FromPort > r.ToPort {
			return Rule{}, fmt.Errorf("the port range %d-%d runs backwards", r.FromPort, r.ToPort)
		}
	}
	return r, nil
}

// CanonicalSource returns a source as EC2 stores it: a CIDR without host bits, IPv6 compressed and in lower case.
// What is no CIDR is returned with surrounding space removed.
func CanonicalSource(s string) string {
	s = strings.TrimSpace(s)
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Masked().String()
	}
	return s
}

// Covers reports whether traffic of the protocol to the port may pass, from the rule's source.
func (r Rule) Covers(protocol string, port int32) bool {
	if r.Protocol == "-1" {
		return true
	}
	return r.Protocol == protocol && r.FromPort <= port && port <= r.ToPort
}

// Contains reports whether the rule lets in, from the same source, all that o lets in by ports of the same protocol.
func (r Rule) Contains(o Rule) bool {
	return r.Protocol == o.Protocol && r.Source == o.Source && r.FromPort <= o.FromPort && o.ToPort <= r.ToPort
}

// Ports prints the rule's protocol and ports: "tcp 3000-3008", "all traffic".
func (r Rule) Ports() string {
	switch {
	case r.Protocol == "-1":
		return "all traffic"
	case r.FromPort == -1 && r.ToPort == -1:
		return r.Protocol
	}
	return fmt.Sprintf("%s %d-%d", r.Protocol, r.FromPort, r.ToPort)
}

// String prints ports and source: "tcp 3000-3008 from sg-0ddd".
func (r Rule) String() string { return r.Ports() + " from " + r.Source }

// Compare orders rules by protocol, ports and source.
func (r Rule) Compare(o Rule) int {
	if c := strings.Compare(r.Protocol, o.Protocol); c != 0 {
		return c
	}
	if r.FromPort != o.FromPort {
		return int(r.FromPort) - int(o.FromPort)
	}
	if r.ToPort != o.ToPort {
		return int(r.ToPort) - int(o.ToPort)
	}
	return strings.Compare(r.Source, o.Source)
}
