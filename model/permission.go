package model

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// ManagedDescription marks the rules that the controller owns. A rule with any other description is
// never revoked (networking_manager.go:30-31, 284).
const ManagedDescription = managedKey + "=" + managedValue

const (
	managedKey   = "elbv2.k8s.aws/targetGroupBinding"
	managedValue = "shared"
)

// Permission is one ingress rule with exactly one source.
type Permission struct {
	types.IpPermission
	key     string
	managed bool
}

// Key identifies a rule by protocol, ports and source; the description does not count. Keys sort as
// the controller sorts the permissions of one call (security_group_info.go:39, sorted in
// security_group_reconciler.go:169).
func (p Permission) Key() string { return p.key }

// Managed reports whether the description says that the controller owns the rule.
func (p Permission) Managed() bool { return p.managed }

// Permissions is a set of rules, sorted by key. The zero value is the empty set.
type Permissions []Permission

// NewPermissions returns the set of rules that EC2 or a caller lists, each split into its sources as
// security_group_info.go:210 does. When one rule is listed twice, the last one is kept.
func NewPermissions(listed []types.IpPermission) Permissions {
	var set Permissions
	for _, p := range listed {
		set = set.insertAll(split(p))
	}
	return set
}

// SDK returns the rules as the AWS SDK wants them in a call.
func (s Permissions) SDK() []types.IpPermission {
	out := make([]types.IpPermission, len(s))
	for i, p := range s {
		out[i] = p.IpPermission
	}
	return out
}

// Minus returns the rules of s that are not in o.
func (s Permissions) Minus(o Permissions) Permissions {
	var out Permissions
	for _, p := range s {
		if !o.has(p) {
			out = append(out, p)
		}
	}
	return out
}

// Union returns the rules that are in s or in o.
func (s Permissions) Union(o Permissions) Permissions { return slices.Clone(s).insertAll(o) }

// Managed returns the rules that the controller owns.
func (s Permissions) Managed() Permissions {
	var out Permissions
	for _, p := range s {
		if p.managed {
			out = append(out, p)
		}
	}
	return out
}

// Empty reports whether there is no rule.
func (s Permissions) Empty() bool { return len(s) == 0 }

func compareKeys(a, b Permission) int { return cmp.Compare(a.key, b.key) }

func (s Permissions) has(p Permission) bool {
	_, found := slices.BinarySearchFunc(s, p, compareKeys)
	return found
}

func (s Permissions) insertAll(more []Permission) Permissions {
	for _, p := range more {
		i, found := slices.BinarySearchFunc(s, p, compareKeys)
		if found {
			s[i] = p
		} else {
			s = slices.Insert(s, i, p)
		}
	}
	return s
}

// split gives every source of a permission a rule of its own.
func split(p types.IpPermission) []Permission {
	base := types.IpPermission{IpProtocol: p.IpProtocol, FromPort: p.FromPort, ToPort: p.ToPort}
	ports := fmt.Sprintf("%s,%d,%d", value(p.IpProtocol), value(p.FromPort), value(p.ToPort))
	var out []Permission
	add := func(with types.IpPermission, source string, description *string) {
		out = append(out, Permission{with, ports + "," + source, isManaged(value(description))})
	}
	// The prefixes keep the order of the controller's hash codes: IPv4, IPv6, prefix list, group.
	for _, r := range p.IpRanges {
		with := base
		with.IpRanges = []types.IpRange{r}
		add(with, "4 "+value(r.CidrIp), r.Description)
	}
	for _, r := range p.Ipv6Ranges {
		with := base
		with.Ipv6Ranges = []types.Ipv6Range{r}
		add(with, "6 "+value(r.CidrIpv6), r.Description)
	}
	for _, l := range p.PrefixListIds {
		with := base
		with.PrefixListIds = []types.PrefixListId{l}
		add(with, "p "+value(l.PrefixListId), l.Description)
	}
	for _, g := range p.UserIdGroupPairs {
		with := base
		with.UserIdGroupPairs = []types.UserIdGroupPair{g}
		add(with, "s "+value(g.GroupId), g.Description)
	}
	if len(out) == 0 {
		add(base, "", nil)
	}
	return out
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// pairs are the key=value pairs of a description (security_group_info.go:242).
var pairs = regexp.MustCompile(`([^\s,=]+)=([^\s,=]+)(?:,|$)`)

func isManaged(description string) bool {
	managed := false
	for _, m := range pairs.FindAllStringSubmatch(description, -1) {
		if m[1] == managedKey {
			managed = m[2] == managedValue
		}
	}
	return managed
}

// Ports of a rule that opens every port of its protocol (networking_manager.go:32-33).
const (
	minPort int32 = 0
	maxPort int32 = 65535
)

// Hull aggregates what all bindings want from one group: per protocol and source one rule from the
// lowest to the highest port (networking_manager.go:324). Rules from address ranges are not aggregated.
func Hull(wanted []Permissions) Permissions {
	type sourceKey struct{ protocol, source string }
	hulls := map[sourceKey]Permission{}
	var out Permissions
	for _, set := range wanted {
		for _, p := range set {
			if len(p.UserIdGroupPairs) == 0 && len(p.IpRanges)+len(p.Ipv6Ranges) > 0 {
				out = out.insertAll([]Permission{p})
				continue
			}
			k := sourceKey{protocol: value(p.IpProtocol)}
			if len(p.UserIdGroupPairs) == 1 {
				k.source = value(p.UserIdGroupPairs[0].GroupId)
			}
			hull, found := hulls[k]
			if !found {
				hull = p
			}
			from, to := value(p.FromPort), value(p.ToPort)
			if from == 0 && to == 0 {
				from, to = minPort, maxPort
			}
			if found {
				from, to = min(from, value(hull.FromPort)), max(to, value(hull.ToPort))
			}
			hull.FromPort, hull.ToPort = &from, &to
			hulls[k] = hull
		}
	}
	for _, p := range hulls {
		out = out.insertAll(split(p.IpPermission))
	}
	return out
}

// covers reports whether every needed rule lies inside some rule of the same protocol and source.
func covers(rules, needed Permissions) bool {
	for _, n := range needed {
		if !slices.ContainsFunc(rules, func(p Permission) bool { return p.contains(n) }) {
			return false
		}
	}
	return true
}

func (p Permission) contains(n Permission) bool {
	samePorts := n
	samePorts.FromPort, samePorts.ToPort = p.FromPort, p.ToPort
	return split(samePorts.IpPermission)[0].key == p.key &&
		value(p.FromPort) <= value(n.FromPort) && value(n.ToPort) <= value(p.ToPort)
}

// AllPorts is what --disable-restricted-sg-rules makes of the wanted rules: every port from every
// source that any binding names, so that no change of ports ever changes a rule
// (networking_manager.go:373, with the whole range as the only port).
func AllPorts(wanted []Permissions) Permissions {
	var out Permissions
	for _, set := range wanted {
		for _, p := range set {
			from, to := minPort, maxPort
			p.FromPort, p.ToPort = &from, &to
			out = out.insertAll(split(p.IpPermission))
		}
	}
	return out
}
