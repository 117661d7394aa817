package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
)

func ptr[T any](v T) *T { return &v }

// rule is a managed rule from one group.
func rule(from, to int32) types.IpPermission {
	return groupRule(from, to, "sg-lb", ManagedDescription)
}

func groupRule(from, to int32, source, description string) types.IpPermission {
	return types.IpPermission{IpProtocol: ptr("tcp"), FromPort: &from, ToPort: &to,
		UserIdGroupPairs: []types.UserIdGroupPair{{GroupId: &source, Description: &description}}}
}

// ports lists a set's rules as "from-to".
func ports(s Permissions) []string {
	var out []string
	for _, p := range s {
		out = append(out, fmt.Sprintf("%d-%d", *p.FromPort, *p.ToPort))
	}
	return out
}

func TestPermissionsAreSplitAndSorted(t *testing.T) {
	listed := types.IpPermission{IpProtocol: ptr("tcp"), FromPort: ptr(int32(80)), ToPort: ptr(int32(81)),
		IpRanges:         []types.IpRange{{CidrIp: ptr("10.0.0.0/8")}},
		Ipv6Ranges:       []types.Ipv6Range{{CidrIpv6: ptr("::/0")}},
		PrefixListIds:    []types.PrefixListId{{PrefixListId: ptr("pl-1")}},
		UserIdGroupPairs: []types.UserIdGroupPair{{GroupId: ptr("sg-2")}, {GroupId: ptr("sg-1")}},
	}
	all := types.IpPermission{IpProtocol: ptr("-1")}
	var got []string
	for _, p := range NewPermissions([]types.IpPermission{rule(3000, 30000), rule(3000, 3008), listed, all}) {
		got = append(got, p.Key())
	}
	// The order of "3000, …" before "30000" and of a rule of all protocols first is the controller's.
	want := []string{
		"-1,0,0,",
		"tcp,3000,30000,s sg-lb", "tcp,3000,3008,s sg-lb",
		"tcp,80,81,4 10.0.0.0/8", "tcp,80,81,6 ::/0", "tcp,80,81,p pl-1", "tcp,80,81,s sg-1", "tcp,80,81,s sg-2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestManaged(t *testing.T) {
	for description, want := range map[string]bool{
		ManagedDescription:                               true,
		"x=y," + ManagedDescription:                      true,
		"by hand " + ManagedDescription:                  true,
		ManagedDescription + ",x=y":                      true,
		ManagedDescription + "d":                         false,
		"x" + ManagedDescription:                         false,
		ManagedDescription + "," + managedKey + "=other": false,
		"":        false,
		"by hand": false,
	} {
		got := NewPermissions([]types.IpPermission{groupRule(1, 2, "sg-lb", description)})
		if got[0].Managed() != want || got.Managed().Empty() == want {
			t.Errorf("%q: managed %v, want %v", description, got[0].Managed(), want)
		}
	}
}

// The set operations against maps of keys.
func TestPermissionsAreSets(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() (Permissions, map[string]bool) {
		var listed []types.IpPermission
		for range r.IntN(8) {
			listed = append(listed, rule(int32(r.IntN(4)), int32(4+r.IntN(4))))
		}
		s, m := NewPermissions(listed), map[string]bool{}
		for _, p := range s {
			m[p.Key()] = true
		}
		return s, m
	}
	check := func(name string, got Permissions, want func(key string) bool) {
		t.Helper()
		if !slices.IsSortedFunc(got, compareKeys) {
			t.Fatalf("%s is not sorted: %v", name, ports(got))
		}
		for from := range int32(4) {
			for to := int32(4); to < 8; to++ {
				p := NewPermissions([]types.IpPermission{rule(from, to)})[0]
				if got.has(p) != want(p.Key()) {
					t.Fatalf("%s: %s is there: %v", name, p.Key(), got.has(p))
				}
			}
		}
	}
	for range 500 {
		a, inA := random()
		b, inB := random()
		check("minus", a.Minus(b), func(k string) bool { return inA[k] && !inB[k] })
		check("union", a.Union(b), func(k string) bool { return inA[k] || inB[k] })
		check("a after both", a, func(k string) bool { return inA[k] })
	}
}

func TestDescriptionDoesNotCount(t *testing.T) {
	mine := NewPermissions([]types.IpPermission{rule(1, 2)})
	theirs := NewPermissions([]types.IpPermission{groupRule(1, 2, "sg-lb", "by hand")})
	if !mine.Minus(theirs).Empty() {
		t.Error("two rules that differ only in their description are taken for two")
	}
}

func TestAggregate(t *testing.T) {
	cidr := types.IpPermission{IpProtocol: ptr("tcp"), FromPort: ptr(int32(80)), ToPort: ptr(int32(80)),
		IpRanges: []types.IpRange{{CidrIp: ptr("10.0.0.0/8"), Description: ptr(ManagedDescription)}}}
	set := func(p ...types.IpPermission) Permissions { return NewPermissions(p) }
	for _, c := range []struct {
		name        string
		wanted      []Permissions
		hull, every []string
	}{
		{"nothing", nil, nil, nil},
		{"nothing from one", []Permissions{nil}, nil, nil},
		{"lowest to highest", []Permissions{set(rule(3008, 3008)), set(rule(3000, 3000)), set(rule(8025, 8025))}, []string{"3000-8025"}, []string{"0-65535"}},
		{"0 means all", []Permissions{set(rule(3008, 3008)), set(rule(0, 0))}, []string{"0-65535"}, []string{"0-65535"}},
		{"a hull a source", []Permissions{set(rule(1, 2), groupRule(5, 6, "sg-2", ManagedDescription)), set(rule(3, 4))}, []string{"1-4", "5-6"}, []string{"0-65535", "0-65535"}},
		{"ranges stay apart", []Permissions{set(cidr, rule(1, 2)), set(cidr)}, []string{"1-2", "80-80"}, []string{"0-65535", "0-65535"}},
	} {
		if diff := cmp.Diff(c.hull, ports(Hull(c.wanted))); diff != "" {
			t.Errorf("%s: hull (-want +got)\n%s", c.name, diff)
		}
		if diff := cmp.Diff(c.every, ports(AllPorts(c.wanted))); diff != "" {
			t.Errorf("%s: all ports (-want +got)\n%s", c.name, diff)
		}
		for _, p := range Hull(c.wanted) {
			if !p.Managed() {
				t.Errorf("%s: %s is not managed", c.name, p.Key())
			}
		}
	}
}

type apiError string

func (e apiError) Error() string     { return string(e) }
func (e apiError) ErrorCode() string { return string(e) }

func TestCodeOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Code
	}{
		{nil, OK},
		{fmt.Errorf("timeout"), Failed},
		{apiError("RequestLimitExceeded"), Failed},
		{fmt.Errorf("call: %w", apiError("InvalidPermission.Duplicate")), Duplicate},
		{apiError("InvalidPermission.NotFound"), NotFound},
		{apiError("RulesPerSecurityGroupLimitExceeded"), LimitExceeded},
	} {
		if got := CodeOf(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}
