package awsapi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"linearize.example/traces"
)

// World is a region of AWS: security groups with their rules, networks, instances and target groups. It answers calls
// one after another; Simulator adds time and faults, and makes it safe for concurrent use.
type World struct {
	account, region string
	zones           []string
	groups          lagged[string, *group]
	tags            map[string]*lagged[string, string] // by resource
	vpcs            []*vpc
	subnets         []*subnet
	interfaces      []*networkInterface
	instances       []*instance
	targetGroups    []*targetGroup
	// now is the latest instant of a call: time does not run backwards.
	now traces.Instant
	// serial numbers everything that gets an id.
	serial int
	// foreign are groups of other accounts or networks that rules name as their source.
	foreign map[string]bool
	// changed, if set, is told of every group whose ingress rules a call has changed.
	changed func(g *group)
}

type group struct {
	serial                     int
	id, name, description, vpc string
	rules                      lagged[ruleKey, *rule]
	// visible is when the latest change of the rules becomes visible.
	visible traces.Instant
}

// ruleKey is a rule's identity.
type ruleKey struct {
	egress bool
	traces.Rule
}

type rule struct {
	serial int
	id     string
	key    ruleKey
	kind   source
	// user is the owner of the group that is the source.
	user        string
	description string
}

type vpc struct {
	id, cidr string
	// byDefault: it is the default VPC, in which a revoke of absent rules succeeds.
	byDefault bool
}

type subnet struct {
	id, vpc, zone, cidr string
}

type networkInterface struct {
	id, subnet, instance, description, kind, status string
	addresses, ipv6, prefixes                       []string
	groups                                          []string
}

type instance struct {
	id, subnet, state, kind, dnsName, address string
	groups                                    []string
}

// The numbers of AWS where a request does not say otherwise.
const (
	// DefaultRuleLimit is AWS's default quota of inbound rules per group, for IPv4 and IPv6 each (Amazon VPC quotas).
	DefaultRuleLimit = 60
	// tagLimit is AWS's number of tags that a resource may have.
	tagLimit = 50
)

// conditions are what faults decide of one call.
type conditions struct {
	// lag is how long after the call its change becomes visible to describes.
	lag time.Duration
	// inOrder: changes of a group's rules become visible in the order in which they were made.
	inOrder bool
	// ruleLimit bounds the rules of a group.
	ruleLimit int
}

// nextID returns an id that no other thing of the world has. It depends only on how many came before.
func (w *World) nextID(prefix string) string {
	w.serial++
	return fmt.Sprintf("%s0%016x", prefix, mix(uint64(w.serial)))
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection whose values look random.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (w *World) arn(kind, id string) string {
	return "arn:" + w.partition() + ":ec2:" + w.region + ":" + w.account + ":" + kind + "/" + id
}

func (w *World) partition() string {
	switch {
	case strings.HasPrefix(w.region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(w.region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

func (w *World) vpc(id string) *vpc {
	for _, v := range w.vpcs {
		if v.id == id {
			return v
		}
	}
	return nil
}

func (w *World) defaultVPC() *vpc {
	for _, v := range w.vpcs {
		if v.byDefault {
			return v
		}
	}
	return nil
}

func (w *World) subnet(id string) *subnet {
	for _, s := range w.subnets {
		if s.id == id {
			return s
		}
	}
	return nil
}

// groupsAt returns the groups that a reader at an instant sees, oldest first; Forever stands for writers.
func (w *World) groupsAt(at traces.Instant) []*group {
	var all []*group
	w.groups.each(at, func(_ string, g *group) { all = append(all, g) })
	slices.SortFunc(all, func(a, b *group) int { return cmp.Compare(a.serial, b.serial) })
	return all
}

// rulesAt returns the group's rules that a reader at an instant sees, oldest first; Forever stands for writers.
func (g *group) rulesAt(at traces.Instant) []*rule {
	var all []*rule
	g.rules.each(at, func(_ ruleKey, r *rule) { all = append(all, r) })
	slices.SortFunc(all, func(a, b *rule) int { return cmp.Compare(a.serial, b.serial) })
	return all
}

// ingress returns the group's ingress rules that writers see, oldest first.
func (g *group) ingress() []traces.IdentifiedPermission {
	rules := []traces.IdentifiedPermission{}
	for _, r := range g.rulesAt(traces.Forever) {
		if !r.key.egress {
			rules = append(rules, traces.IdentifiedPermission{ID: r.id, Permission: r.permission()})
		}
	}
	return rules
}

func (r *rule) permission() traces.Permission {
	return traces.Permission{Rule: r.key.Rule, Description: r.description}
}

// byID returns the group's rule of an id, nil where there is none.
func (g *group) byID(id string) *rule {
	for _, r := range g.rulesAt(traces.Forever) {
		if r.id == id {
			return r
		}
	}
	return nil
}

// tag is one tag of a resource.
type tag struct{ key, value string }

// tagsAt returns a resource's tags that a reader at an instant sees, in the order of their keys.
func (w *World) tagsAt(resource string, at traces.Instant) []tag {
	var all []tag
	if l := w.tags[resource]; l != nil {
		l.each(at, func(k, v string) { all = append(all, tag{k, v}) })
		slices.SortFunc(all, func(a, b tag) int { return strings.Compare(a.key, b.key) })
	}
	return all
}

func (w *World) setTag(resource string, t tag, now, visible traces.Instant) {
	if w.tags[resource] == nil {
		w.tags[resource] = &lagged[string, string]{}
	}
	w.tags[resource].set(t.key, t.value, now, visible)
}

// removeTags takes all tags off a resource that ends.
func (w *World) removeTags(resource string, now, visible traces.Instant) {
	l := w.tags[resource]
	if l == nil {
		return
	}
	for _, t := range w.tagsAt(resource, traces.Forever) {
		l.remove(t.key, now, visible)
	}
	if len(l.changes) == 0 {
		delete(w.tags, resource)
	}
}
