package awsapi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"linearize.example/traces/awsapi"
)

var ctx = context.Background()

// nodes is the group of most tests, clients the source of its rules.
const (
	nodes   = "sg-0aaa1111bbbb2222c"
	clients = "sg-0ddd3333eeee4444f"
)

const twoGroups = `
vpcs: [{id: vpc-1, tags: {Name: main}}, {id: vpc-2, default: true, cidr: 172.31.0.0/16}]
groups:
- {id: sg-0aaa1111bbbb2222c, name: nodes, description: of the nodes, vpc: vpc-1, tags: {kubernetes.io/cluster/one: owned, Name: nodes}}
- {id: sg-0ddd3333eeee4444f, name: clients, vpc: vpc-1, tags: {kubernetes.io/cluster/one: shared}}
- {id: sg-0eee, name: ordinary, vpc: vpc-2}
- {id: sg-0fff, name: friend, vpc: vpc-2}
`

func rangeOf(p types.IpPermission) string {
	if p.FromPort == nil {
		return aws.ToString(p.IpProtocol)
	}
	return fmt.Sprintf("%d-%d", *p.FromPort, *p.ToPort)
}

func (e *endpoint) authorize(group string, permissions ...types.IpPermission) error {
	_, err := e.ec2.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: &group, IpPermissions: permissions})
	return err
}

func (e *endpoint) revoke(group string, permissions ...types.IpPermission) (*ec2.RevokeSecurityGroupIngressOutput, error) {
	return e.ec2.RevokeSecurityGroupIngress(ctx, &ec2.RevokeSecurityGroupIngressInput{GroupId: &group, IpPermissions: permissions})
}

func cidr(protocol string, low, high int32, source string) types.IpPermission {
	p := types.IpPermission{IpProtocol: &protocol, FromPort: &low, ToPort: &high}
	if strings.Contains(source, ":") {
		p.Ipv6Ranges = []types.Ipv6Range{{CidrIpv6: &source}}
	} else {
		p.IpRanges = []types.IpRange{{CidrIp: &source}}
	}
	return p
}

func TestAuthorizeRefuses(t *testing.T) {
	described := cidr("tcp", 80, 80, "10.0.0.0/8")
	described.IpRanges[0].Description = aws.String("a – dash")
	noPorts := cidr("tcp", 80, 80, "10.0.0.0/8")
	noPorts.FromPort = nil
	for _, test := range []struct {
		name        string
		group       string
		permissions []types.IpPermission
		want        string
	}{
		{"a group that is not there", "sg-0bad", []types.IpPermission{from(clients, 1, 2)}, "InvalidGroup.NotFound"},
		{"an id that is none", "nodes", []types.IpPermission{from(clients, 1, 2)}, "InvalidGroupId.Malformed"},
		{"no permission", nodes, nil, "MissingParameter"},
		{"a rule that is there", nodes, []types.IpPermission{from(clients, 3000, 3000)}, "InvalidPermission.Duplicate"},
		{"a rule that is there, among others", nodes, []types.IpPermission{from(clients, 1, 2), from(clients, 3000, 3000)}, "InvalidPermission.Duplicate"},
		{"a rule that is there under another name", nodes, []types.IpPermission{cidr("6", 443, 443, "10.1.2.3/8")}, "InvalidPermission.Duplicate"},
		{"the same rule twice", nodes, []types.IpPermission{from(clients, 1, 2), from(clients, 1, 2)}, "InvalidParameterValue"},
		{"a source that is not there", nodes, []types.IpPermission{from("sg-0bad", 1, 2)}, "InvalidGroup.NotFound"},
		{"a source that is no group", nodes, []types.IpPermission{from("nodes", 1, 2)}, "InvalidGroupId.Malformed"},
		{"a CIDR that is none", nodes, []types.IpPermission{cidr("tcp", 1, 2, "10.0.0.0/33")}, "InvalidParameterValue"},
		{"an address without its length", nodes, []types.IpPermission{cidr("tcp", 1, 2, "10.0.0.1")}, "InvalidParameterValue"},
		{"a protocol that is none", nodes, []types.IpPermission{cidr("tcq", 1, 2, "10.0.0.0/8")}, "InvalidParameterValue"},
		{"a protocol by a word of the console", nodes, []types.IpPermission{cidr("all", 1, 2, "10.0.0.0/8")}, "InvalidParameterValue"},
		{"no source", nodes, []types.IpPermission{{IpProtocol: aws.String("-1")}}, "MissingParameter"},
		{"ports the wrong way round", nodes, []types.IpPermission{cidr("tcp", 2, 1, "10.0.0.0/8")}, "InvalidParameterValue"},
		{"a port too large", nodes, []types.IpPermission{cidr("tcp", 1, 65536, "10.0.0.0/8")}, "InvalidParameterValue"},
		{"one port of two", nodes, []types.IpPermission{noPorts}, "InvalidParameterValue"},
		{"a description with a dash", nodes, []types.IpPermission{described}, "InvalidParameterValue"},
		{"more rules than fit", nodes, []types.IpPermission{from(clients, 1, 1), from(clients, 2, 2), from(clients, 3, 3)}, "RulesPerSecurityGroupLimitExceeded"},
		{"a rule that is there and too many", nodes, []types.IpPermission{from(clients, 3000, 3000), from(clients, 1, 1), from(clients, 2, 2), from(clients, 3, 3)}, "InvalidPermission.Duplicate"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := serve(t, twoGroups, &awsapi.Faults{RulesPerGroup: 4})
			if err := e.authorize(nodes, from(clients, 3000, 3000), cidr("tcp", 443, 443, "10.0.0.0/8")); err != nil {
				t.Fatal(err)
			}
			if got := code(e.authorize(test.group, test.permissions...)); got != test.want {
				t.Errorf("the code is %q, not %q", got, test.want)
			}
			if diff := cmp.Diff([]string{"3000-3000", "443-443"}, e.ports(t, nodes)); diff != "" {
				t.Errorf("a refused call changed the rules:\n%s", diff)
			}
		})
	}
}

func TestAuthorizeAnswers(t *testing.T) {
	e := serve(t, twoGroups, nil)
	out, err := e.ec2.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{
		GroupId: aws.String(nodes),
		IpPermissions: []types.IpPermission{
			from(clients, 80, 81), cidr("-1", -1, -1, "10.9.9.9/8"), cidr("icmpv6", -1, -1, "2001:DB8::1/32"),
			{IpProtocol: aws.String("udp"), FromPort: aws.Int32(53), ToPort: aws.Int32(53), PrefixListIds: []types.PrefixListId{{PrefixListId: aws.String("pl-0a")}}},
		},
		TagSpecifications: []types.TagSpecification{{ResourceType: "security-group-rule", Tags: []types.Tag{{Key: aws.String("by"), Value: aws.String("test")}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range out.SecurityGroupRules {
		source := aws.ToString(r.CidrIpv4) + aws.ToString(r.CidrIpv6) + aws.ToString(r.PrefixListId)
		if r.ReferencedGroupInfo != nil {
			source = aws.ToString(r.ReferencedGroupInfo.GroupId) + " of " + aws.ToString(r.ReferencedGroupInfo.UserId)
		}
		if !strings.HasPrefix(*r.SecurityGroupRuleId, "sgr-") || *r.GroupId != nodes || *r.GroupOwnerId != "123456789012" || *r.IsEgress ||
			len(r.Tags) != 1 || *r.SecurityGroupRuleArn != "arn:aws:ec2:us-east-1:123456789012:security-group-rule/"+*r.SecurityGroupRuleId {
			t.Errorf("the rule lacks something: %+v", r)
		}
		got = append(got, fmt.Sprintf("%s %d-%d %s %q", *r.IpProtocol, *r.FromPort, *r.ToPort, source, aws.ToString(r.Description)))
	}
	if diff := cmp.Diff([]string{
		`tcp 80-81 ` + clients + ` of 123456789012 "` + managed + `"`, `-1 -1--1 10.0.0.0/8 ""`, `icmpv6 -1--1 2001:db8::/32 ""`, `udp 53-53 pl-0a ""`,
	}, got); diff != "" {
		t.Error(diff)
	}
	if !aws.ToBool(out.Return) {
		t.Error("the answer does not say true")
	}
	if diff := cmp.Diff([]string{"80-81", "-1", "-1--1", "53-53"}, e.ports(t, nodes)); diff != "" {
		t.Error(diff)
	}
}

// A describe shows rules of equal protocol and ports as one permission with several sources.
func TestDescribeGroupsPermissions(t *testing.T) {
	e := serve(t, twoGroups, nil)
	if err := e.authorize(nodes, from(clients, 80, 80), cidr("tcp", 80, 80, "10.0.0.0/8"), cidr("tcp", 80, 80, "::/0"), from(nodes, 80, 80)); err != nil {
		t.Fatal(err)
	}
	out, err := e.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{nodes}})
	if err != nil {
		t.Fatal(err)
	}
	g := out.SecurityGroups[0]
	p := g.IpPermissions
	if len(p) != 1 || len(p[0].UserIdGroupPairs) != 2 || len(p[0].IpRanges) != 1 || len(p[0].Ipv6Ranges) != 1 {
		t.Errorf("the permissions are %+v", p)
	}
	if *g.GroupName != "nodes" || *g.VpcId != "vpc-1" || *g.OwnerId != "123456789012" || *g.Description != "of the nodes" || len(g.Tags) != 2 {
		t.Errorf("the group is %+v", g)
	}
}

func TestRevoke(t *testing.T) {
	e := serve(t, twoGroups, nil)
	if err := e.authorize(nodes, from(clients, 1, 1), from(clients, 2, 2), from(clients, 3, 3)); err != nil {
		t.Fatal(err)
	}
	if _, err := e.revoke(nodes, from(clients, 1, 1), from(clients, 9, 9)); code(err) != "InvalidPermission.NotFound" {
		t.Errorf("a revoke of an absent rule: %v", err)
	}
	if diff := cmp.Diff([]string{"1-1", "2-2", "3-3"}, e.ports(t, nodes)); diff != "" {
		t.Errorf("a refused revoke took rules away:\n%s", diff)
	}
	// The controller revokes what a describe showed, which names the owner; the description does not count.
	asShown := from(clients, 1, 1)
	asShown.UserIdGroupPairs[0].UserId, asShown.UserIdGroupPairs[0].Description = aws.String("123456789012"), nil
	out, err := e.revoke(nodes, asShown)
	if err != nil {
		t.Fatal(err)
	}
	if r := out.RevokedSecurityGroupRules; len(r) != 1 || *r[0].ReferencedGroupId != clients || *r[0].FromPort != 1 || *r[0].Description != managed {
		t.Errorf("the answer is %+v", r)
	}
	rules, err := e.ec2.DescribeSecurityGroupRules(ctx, &ec2.DescribeSecurityGroupRulesInput{
		Filters: []types.Filter{{Name: aws.String("group-id"), Values: []string{nodes}}}})
	if err != nil || len(rules.SecurityGroupRules) != 2 {
		t.Fatalf("%v %+v", err, rules)
	}
	id := *rules.SecurityGroupRules[0].SecurityGroupRuleId
	for _, test := range []struct {
		ids  []string
		want string
	}{
		{[]string{id, "sgr-0bad"}, "InvalidSecurityGroupRuleId.NotFound"},
		{[]string{"rule"}, "InvalidSecurityGroupRuleId.Malformed"},
		{[]string{id}, ""},
		{[]string{id}, "InvalidSecurityGroupRuleId.NotFound"},
	} {
		_, err := e.ec2.RevokeSecurityGroupIngress(ctx, &ec2.RevokeSecurityGroupIngressInput{GroupId: aws.String(nodes), SecurityGroupRuleIds: test.ids})
		if code(err) != test.want {
			t.Errorf("revoke of %v: %v, not %q", test.ids, err, test.want)
		}
	}
	if diff := cmp.Diff([]string{"3-3"}, e.ports(t, nodes)); diff != "" {
		t.Error(diff)
	}
	_, err = e.ec2.RevokeSecurityGroupIngress(ctx, &ec2.RevokeSecurityGroupIngressInput{
		GroupId: aws.String(nodes), SecurityGroupRuleIds: []string{id}, IpPermissions: []types.IpPermission{from(clients, 3, 3)}})
	if code(err) != "InvalidParameterCombination" {
		t.Errorf("ids and permissions at once: %v", err)
	}
}

// In the default VPC a revoke takes away what is there and reports the rest; groups go by name.
func TestDefaultVPC(t *testing.T) {
	e := serve(t, twoGroups, nil)
	_, err := e.ec2.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{
		GroupName: aws.String("ordinary"), SourceSecurityGroupName: aws.String("friend")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"0-65535", "0-65535", "-1--1"}, e.ports(t, "sg-0eee")); diff != "" {
		t.Error(diff)
	}
	flat := &ec2.AuthorizeSecurityGroupIngressInput{GroupName: aws.String("ordinary"), CidrIp: aws.String("10.0.0.0/8"),
		IpProtocol: aws.String("tcp"), FromPort: aws.Int32(22), ToPort: aws.Int32(22)}
	if _, err := e.ec2.AuthorizeSecurityGroupIngress(ctx, flat); err != nil {
		t.Fatal(err)
	}
	out, err := e.revoke("sg-0eee", cidr("tcp", 22, 22, "10.0.0.0/8"), cidr("tcp", 23, 23, "10.0.0.0/8"))
	if err != nil {
		t.Fatal(err)
	}
	if len(out.UnknownIpPermissions) != 1 || rangeOf(out.UnknownIpPermissions[0]) != "23-23" || len(out.RevokedSecurityGroupRules) != 1 {
		t.Errorf("the answer is %+v", out)
	}
	_, err = e.ec2.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupName: aws.String("nodes"), CidrIp: aws.String("10.0.0.0/8")})
	if code(err) != "InvalidGroup.NotFound" {
		t.Errorf("a name outside of the default VPC: %v", err)
	}
}

func TestModifyRules(t *testing.T) {
	e := serve(t, twoGroups, nil)
	out, err := e.ec2.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: aws.String(nodes),
		IpPermissions: []types.IpPermission{from(clients, 1, 1), from(clients, 2, 2)}})
	if err != nil {
		t.Fatal(err)
	}
	first, second := out.SecurityGroupRules[0].SecurityGroupRuleId, out.SecurityGroupRules[1].SecurityGroupRuleId
	update := func(id *string, port int32) types.SecurityGroupRuleUpdate {
		return types.SecurityGroupRuleUpdate{SecurityGroupRuleId: id, SecurityGroupRule: &types.SecurityGroupRuleRequest{
			IpProtocol: aws.String("tcp"), FromPort: &port, ToPort: &port, ReferencedGroupId: aws.String(clients)}}
	}
	other := update(first, 5)
	other.SecurityGroupRule.ReferencedGroupId, other.SecurityGroupRule.CidrIpv4 = nil, aws.String("10.0.0.0/8")
	for _, test := range []struct {
		name    string
		updates []types.SecurityGroupRuleUpdate
		want    string
		ports   []string
	}{
		{"onto another rule", []types.SecurityGroupRuleUpdate{update(first, 2)}, "InvalidPermission.Duplicate", []string{"1-1", "2-2"}},
		{"of no rule", []types.SecurityGroupRuleUpdate{update(first, 3), update(aws.String("sgr-0bad"), 4)}, "InvalidSecurityGroupRuleId.NotFound", []string{"1-1", "2-2"}},
		{"of a rule twice", []types.SecurityGroupRuleUpdate{update(first, 3), update(first, 4)}, "InvalidParameterValue", []string{"1-1", "2-2"}},
		{"to another kind of source", []types.SecurityGroupRuleUpdate{other}, "InvalidParameterValue", []string{"1-1", "2-2"}},
		{"both onto one", []types.SecurityGroupRuleUpdate{update(first, 7), update(second, 7)}, "InvalidPermission.Duplicate", []string{"1-1", "2-2"}},
		{"an exchange", []types.SecurityGroupRuleUpdate{update(first, 2), update(second, 1)}, "", []string{"2-2", "1-1"}},
		{"of one", []types.SecurityGroupRuleUpdate{update(first, 8)}, "", []string{"8-8", "1-1"}},
	} {
		_, err := e.ec2.ModifySecurityGroupRules(ctx, &ec2.ModifySecurityGroupRulesInput{GroupId: aws.String(nodes), SecurityGroupRules: test.updates})
		if code(err) != test.want {
			t.Errorf("%s: %v, not %q", test.name, err, test.want)
		}
		if diff := cmp.Diff(test.ports, e.ports(t, nodes)); diff != "" {
			t.Errorf("%s:\n%s", test.name, diff)
		}
	}
}

func TestUpdateDescriptions(t *testing.T) {
	e := serve(t, twoGroups, nil)
	out, err := e.ec2.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: aws.String(nodes),
		IpPermissions: []types.IpPermission{from(clients, 1, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	id := out.SecurityGroupRules[0].SecurityGroupRuleId
	update := func(in *ec2.UpdateSecurityGroupRuleDescriptionsIngressInput) string {
		in.GroupId = aws.String(nodes)
		_, err := e.ec2.UpdateSecurityGroupRuleDescriptionsIngress(ctx, in)
		return code(err)
	}
	for _, test := range []struct {
		in   ec2.UpdateSecurityGroupRuleDescriptionsIngressInput
		want string
		text string
	}{
		{ec2.UpdateSecurityGroupRuleDescriptionsIngressInput{}, "MissingParameter", managed},
		{ec2.UpdateSecurityGroupRuleDescriptionsIngressInput{IpPermissions: []types.IpPermission{from(clients, 2, 2)}}, "InvalidPermission.NotFound", managed},
		{ec2.UpdateSecurityGroupRuleDescriptionsIngressInput{SecurityGroupRuleDescriptions: []types.SecurityGroupRuleDescription{
			{SecurityGroupRuleId: id, Description: aws.String("mine")}}}, "", "mine"},
		{ec2.UpdateSecurityGroupRuleDescriptionsIngressInput{SecurityGroupRuleDescriptions: []types.SecurityGroupRuleDescription{
			{SecurityGroupRuleId: aws.String("sgr-0bad"), Description: aws.String("x")}}}, "InvalidSecurityGroupRuleId.NotFound", "mine"},
		{ec2.UpdateSecurityGroupRuleDescriptionsIngressInput{IpPermissions: []types.IpPermission{from(clients, 1, 1)}}, "", managed},
	} {
		if got := update(&test.in); got != test.want {
			t.Errorf("%+v: %q, not %q", test.in, got, test.want)
		}
		if got := e.Rules(nodes); len(got) != 1 || got[0].Description != test.text {
			t.Errorf("the rules are %v, not with %q", got, test.text)
		}
	}
}

func TestCreateAndDeleteGroup(t *testing.T) {
	e := serve(t, twoGroups, nil)
	create := func(in ec2.CreateSecurityGroupInput) (string, string) {
		out, err := e.ec2.CreateSecurityGroup(ctx, &in)
		if err != nil {
			return "", code(err)
		}
		return *out.GroupId, ""
	}
	in := ec2.CreateSecurityGroupInput{GroupName: aws.String("k8s-traffic"), Description: aws.String("shared"), VpcId: aws.String("vpc-1"),
		TagSpecifications: []types.TagSpecification{{ResourceType: "security-group", Tags: []types.Tag{{Key: aws.String("elbv2.k8s.aws/resource"), Value: aws.String("backend-sg")}}}}}
	id, failure := create(in)
	if failure != "" {
		t.Fatal(failure)
	}
	for want, change := range map[string]func(in *ec2.CreateSecurityGroupInput){
		"InvalidGroup.Duplicate": func(*ec2.CreateSecurityGroupInput) {},
		"InvalidVpcID.NotFound":  func(in *ec2.CreateSecurityGroupInput) { in.VpcId = aws.String("vpc-9") },
		"InvalidParameterValue":  func(in *ec2.CreateSecurityGroupInput) { in.GroupName = aws.String("sg-x") },
		"InvalidGroup.Reserved":  func(in *ec2.CreateSecurityGroupInput) { in.GroupName = aws.String("default") },
		"MissingParameter":       func(in *ec2.CreateSecurityGroupInput) { in.GroupName = aws.String("") },
	} {
		other := in
		change(&other)
		if _, got := create(other); got != want {
			t.Errorf("create: %q, not %q", got, want)
		}
	}
	found, err := e.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{
		{Name: aws.String("vpc-id"), Values: []string{"vpc-1"}}, {Name: aws.String("tag:elbv2.k8s.aws/resource"), Values: []string{"backend-sg"}}}})
	if err != nil || len(found.SecurityGroups) != 1 || *found.SecurityGroups[0].GroupId != id || len(found.SecurityGroups[0].IpPermissionsEgress) != 1 {
		t.Errorf("%v %+v", err, found)
	}
	remove := func(id string) string {
		_, err := e.ec2.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: &id})
		return code(err)
	}
	if err := e.authorize(nodes, from(id, 80, 80)); err != nil {
		t.Fatal(err)
	}
	if err := e.authorize(id, from(id, 80, 80)); err != nil {
		t.Fatal(err)
	}
	if got := remove(id); got != "DependencyViolation" {
		t.Errorf("delete of a group that a rule names: %q", got)
	}
	if _, err := e.revoke(nodes, from(id, 80, 80)); err != nil {
		t.Fatal(err)
	}
	if got := remove(id); got != "" {
		t.Errorf("delete: %q", got)
	}
	if got := remove(id); got != "InvalidGroup.NotFound" {
		t.Errorf("delete again: %q", got)
	}
	if rules := e.Rules(id); rules != nil {
		t.Errorf("a deleted group has the rules %v", rules)
	}
}

func TestDescribeGroupsSelects(t *testing.T) {
	e := serve(t, twoGroups, nil)
	if err := e.authorize(nodes, from(clients, 3000, 3008), cidr("tcp", 22, 22, "10.0.0.0/8")); err != nil {
		t.Fatal(err)
	}
	filter := func(name string, values ...string) ec2.DescribeSecurityGroupsInput {
		return ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{{Name: &name, Values: values}}}
	}
	for _, test := range []struct {
		name string
		in   ec2.DescribeSecurityGroupsInput
		want string
	}{
		{"all", ec2.DescribeSecurityGroupsInput{}, "nodes clients ordinary friend"},
		{"ids", ec2.DescribeSecurityGroupsInput{GroupIds: []string{clients, nodes}}, "nodes clients"},
		{"names", ec2.DescribeSecurityGroupsInput{GroupNames: []string{"friend"}}, "friend"},
		{"an unknown id", ec2.DescribeSecurityGroupsInput{GroupIds: []string{"sg-0bad", nodes}}, "InvalidGroup.NotFound"},
		{"an unknown name", ec2.DescribeSecurityGroupsInput{GroupNames: []string{"nodes"}}, "InvalidGroup.NotFound"},
		{"no id", ec2.DescribeSecurityGroupsInput{GroupIds: []string{"x"}}, "InvalidGroupId.Malformed"},
		{"by VPC", filter("vpc-id", "vpc-1"), "nodes clients"},
		{"by two values", filter("group-name", "nodes", "friend"), "nodes friend"},
		{"by a pattern", filter("group-name", "*n?s"), "clients"},
		{"by another pattern", filter("group-name", "*nts", "n??es"), "nodes clients"},
		{"by a tag", filter("tag:kubernetes.io/cluster/one", "owned"), "nodes"},
		{"by a tag's key", filter("tag-key", "kubernetes.io/cluster/one"), "nodes clients"},
		{"by a tag that no group has", filter("tag:none", "*"), ""},
		{"by a source", filter("ip-permission.group-id", clients), "nodes"},
		{"by the source's name", filter("ip-permission.group-name", "clients"), "nodes"},
		{"by a CIDR", filter("ip-permission.cidr", "10.0.0.0/8"), "nodes"},
		{"by a port", filter("ip-permission.to-port", "3008"), "nodes"},
		{"by owner", filter("owner-id", "123456789012"), "nodes clients ordinary friend"},
		{"by what is no filter", filter("colour", "red"), "InvalidParameterValue"},
		{"by no tag", filter("tag:", "red"), "InvalidParameterValue"},
		{"small pages", ec2.DescribeSecurityGroupsInput{MaxResults: aws.Int32(4)}, "InvalidParameterValue"},
		{"a token that is none", ec2.DescribeSecurityGroupsInput{NextToken: aws.String("x")}, "InvalidNextToken"},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, err := e.ec2.DescribeSecurityGroups(ctx, &test.in)
			got := code(err)
			if err == nil {
				var names []string
				for _, g := range out.SecurityGroups {
					names = append(names, *g.GroupName)
				}
				got = strings.Join(names, " ")
			}
			if got != test.want {
				t.Errorf("%q, not %q", got, test.want)
			}
		})
	}
}

func TestPaging(t *testing.T) {
	world := "groups:\n"
	for i := range 23 {
		world += fmt.Sprintf("- {id: sg-%02d}\n", i)
	}
	e := serve(t, world, nil)
	for i := range 12 {
		if err := e.authorize("sg-00", from("sg-01", int32(i+1), int32(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	var groups []string
	pages := ec2.NewDescribeSecurityGroupsPaginator(e.ec2, &ec2.DescribeSecurityGroupsInput{MaxResults: aws.Int32(5)})
	count := 0
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		count++
		for _, g := range out.SecurityGroups {
			groups = append(groups, *g.GroupId)
		}
	}
	if len(groups) != 23 || count != 5 || groups[22] != "sg-22" {
		t.Errorf("%d pages show %v", count, groups)
	}
	rules := map[string]bool{}
	of := ec2.NewDescribeSecurityGroupRulesPaginator(e.ec2, &ec2.DescribeSecurityGroupRulesInput{MaxResults: aws.Int32(5),
		Filters: []types.Filter{{Name: aws.String("group-id"), Values: []string{"sg-00"}}}})
	for of.HasMorePages() {
		out, err := of.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range out.SecurityGroupRules {
			rules[*r.SecurityGroupRuleId] = true
		}
	}
	if len(rules) != 12 {
		t.Errorf("%d rules on all pages", len(rules))
	}
}

func TestTags(t *testing.T) {
	e := serve(t, twoGroups, nil)
	tag := func(key, value string) types.Tag { return types.Tag{Key: &key, Value: &value} }
	create := func(id string, tags ...types.Tag) string {
		_, err := e.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: tags})
		return code(err)
	}
	var many []types.Tag
	for i := range 49 {
		many = append(many, tag(fmt.Sprint("k", i), "v"))
	}
	for _, test := range []struct {
		id   string
		tags []types.Tag
		want string
	}{
		{nodes, []types.Tag{tag("a", "1"), tag("Name", "other")}, ""},
		{"vpc-1", []types.Tag{tag("a", "2")}, ""},
		{"sg-0bad", []types.Tag{tag("a", "1")}, "InvalidGroup.NotFound"},
		{"subnet-1", []types.Tag{tag("a", "1")}, "InvalidSubnetID.NotFound"},
		{"nothing", []types.Tag{tag("a", "1")}, "InvalidID"},
		{nodes, []types.Tag{tag("aws:x", "1")}, "InvalidParameterValue"},
		{nodes, many, "TagLimitExceeded"},
		{nodes, []types.Tag{}, "MissingParameter"},
	} {
		if got := create(test.id, test.tags...); got != test.want {
			t.Errorf("tags of %s: %q, not %q", test.id, got, test.want)
		}
	}
	list := func(name string, values ...string) string {
		out, err := e.ec2.DescribeTags(ctx, &ec2.DescribeTagsInput{Filters: []types.Filter{{Name: &name, Values: values}}})
		if err != nil {
			return code(err)
		}
		var all []string
		for _, d := range out.Tags {
			all = append(all, fmt.Sprintf("%s %s %s=%s", d.ResourceType, *d.ResourceId, *d.Key, *d.Value))
		}
		return strings.Join(all, ", ")
	}
	if got, want := list("key", "a"), "security-group "+nodes+" a=1, vpc vpc-1 a=2"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	if got := list("colour"); got != "InvalidParameterValue" {
		t.Error(got)
	}
	remove := func(tags ...types.Tag) {
		t.Helper()
		if _, err := e.ec2.DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{nodes}, Tags: tags}); err != nil {
			t.Error(err)
		}
	}
	remove(tag("a", "not 1"), tag("absent", ""), types.Tag{Key: aws.String("Name")})
	if got, want := list("resource-id", nodes), fmt.Sprintf("security-group %[1]s a=1, security-group %[1]s kubernetes.io/cluster/one=owned", nodes); got != want {
		t.Errorf("%s, not %s", got, want)
	}
	remove()
	if got := list("resource-id", nodes); got != "" {
		t.Error(got)
	}
}

func TestDryRunAndUnknown(t *testing.T) {
	e := serve(t, twoGroups, nil)
	_, err := e.ec2.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: aws.String(nodes),
		DryRun: aws.Bool(true), IpPermissions: []types.IpPermission{from(clients, 1, 1)}})
	if code(err) != "DryRunOperation" {
		t.Errorf("dry run: %v", err)
	}
	if len(e.Rules(nodes)) != 0 || len(e.ops) != 0 {
		t.Errorf("a dry run changed %v or was recorded: %v", e.Rules(nodes), e.ops)
	}
	if _, err := e.ec2.DescribeRegions(ctx, &ec2.DescribeRegionsInput{}); code(err) != "InvalidAction" {
		t.Errorf("an unknown action: %v", err)
	}
}

func TestEgress(t *testing.T) {
	e := serve(t, twoGroups, nil)
	permissions := []types.IpPermission{cidr("tcp", 443, 443, "0.0.0.0/0")}
	for _, want := range []string{"", "InvalidPermission.Duplicate"} {
		_, err := e.ec2.AuthorizeSecurityGroupEgress(ctx, &ec2.AuthorizeSecurityGroupEgressInput{GroupId: aws.String(nodes), IpPermissions: permissions})
		if code(err) != want {
			t.Errorf("authorize: %v, not %q", err, want)
		}
	}
	if len(e.Rules(nodes)) != 0 || len(e.Changes(nodes)) != 1 || len(e.ops) != 0 {
		t.Error("an egress rule counts as an ingress rule")
	}
	for _, want := range []string{"", "InvalidPermission.NotFound"} {
		_, err := e.ec2.RevokeSecurityGroupEgress(ctx, &ec2.RevokeSecurityGroupEgressInput{GroupId: aws.String(nodes), IpPermissions: permissions})
		if code(err) != want {
			t.Errorf("revoke: %v, not %q", err, want)
		}
	}
}
