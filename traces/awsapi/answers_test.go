package awsapi_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linearize.example/traces/awsapi"
)

var update = flag.Bool("update", false, "write what the answers are to testdata")

// TestAnswers compares the answers of one run, broken into lines, with those that were looked at: their elements are those of
// the service's API models.
func TestAnswers(t *testing.T) {
	s, err := awsapi.NewSimulator(load(t, network+`
targetGroups:
- {arn: "`+pods+`", vpc: vpc-1, tags: {a: b}, targets: [{id: 10.0.0.1}]}
`), nil, newClock())
	if err != nil {
		t.Fatal(err)
	}
	const four = "GroupId=sg-0aaa&IpPermissions.1.IpProtocol=tcp&IpPermissions.1.FromPort=1&IpPermissions.1.ToPort=2" +
		"&IpPermissions.1.Groups.1.GroupId=sg-0bbb&IpPermissions.1.Groups.1.Description=x&IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0/8" +
		"&IpPermissions.1.Ipv6Ranges.1.CidrIpv6=::/0&IpPermissions.1.PrefixListIds.1.PrefixListId=pl-1"
	var all strings.Builder
	for _, asked := range []struct{ service, action, form string }{
		{awsapi.EC2, "CreateSecurityGroup", "GroupName=a&GroupDescription=b&VpcId=vpc-1&TagSpecification.1.ResourceType=security-group&TagSpecification.1.Tag.1.Key=a&TagSpecification.1.Tag.1.Value=b"},
		{awsapi.EC2, "AuthorizeSecurityGroupIngress", four + "&TagSpecification.1.ResourceType=security-group-rule&TagSpecification.1.Tag.1.Key=a"},
		{awsapi.EC2, "AuthorizeSecurityGroupIngress", four},
		{awsapi.EC2, "AuthorizeSecurityGroupIngress", "GroupId=sg-0aaa&IpPermissions.1.IpProtocol=-1&IpPermissions.1.Groups.1.GroupId=sg-0aaa"},
		{awsapi.EC2, "DescribeSecurityGroups", "GroupId.1=sg-0aaa&GroupId.2=sg-0bbb"},
		{awsapi.EC2, "DescribeSecurityGroupRules", "Filter.1.Name=group-id&Filter.1.Value.1=sg-0aaa"},
		{awsapi.EC2, "RevokeSecurityGroupIngress", four},
		{awsapi.EC2, "UpdateSecurityGroupRuleDescriptionsIngress", "GroupId=sg-0aaa&IpPermissions.1.IpProtocol=-1&IpPermissions.1.Groups.1.GroupId=sg-0aaa"},
		{awsapi.EC2, "RevokeSecurityGroupIngress", four},
		{awsapi.EC2, "DeleteSecurityGroup", "GroupId=sg-0aaa"},
		{awsapi.EC2, "CreateTags", "ResourceId.1=sg-0bbb&Tag.1.Key=a&Tag.1.Value=b"},
		{awsapi.EC2, "DescribeTags", "Filter.1.Name=resource-id&Filter.1.Value.1=sg-0bbb"},
		{awsapi.EC2, "DeleteTags", "ResourceId.1=sg-0bbb"},
		{awsapi.EC2, "DescribeVpcs", ""}, {awsapi.EC2, "DescribeSubnets", ""}, {awsapi.EC2, "DescribeNetworkInterfaces", ""},
		{awsapi.EC2, "DescribeInstances", ""}, {awsapi.EC2, "DescribeAvailabilityZones", ""},
		{awsapi.EC2, "DescribeAccountAttributes", "AttributeName.1=default-vpc"}, {awsapi.EC2, "DescribeRouteTables", ""},
		{awsapi.EC2, "DescribeVpcs", "Colour=red"}, {awsapi.EC2, "RunInstances", ""}, {awsapi.EC2, "DescribeVpcs", "DryRun=true"},
		{awsapi.ELBv2, "RegisterTargets", "TargetGroupArn=" + pods + "&Targets.member.1.Id=10.0.0.2"},
		{awsapi.ELBv2, "DeregisterTargets", "TargetGroupArn=" + pods + "&Targets.member.1.Id=10.0.0.1"},
		{awsapi.ELBv2, "DescribeTargetHealth", "TargetGroupArn=" + pods}, {awsapi.ELBv2, "DescribeTargetGroups", ""},
		{awsapi.ELBv2, "DescribeTargetGroupAttributes", "TargetGroupArn=" + pods}, {awsapi.ELBv2, "DescribeTags", "ResourceArns.member.1=" + pods},
		{awsapi.ELBv2, "DescribeTargetHealth", "TargetGroupArn=" + unused},
	} {
		c := call(asked.action, asked.form)
		c.Service = asked.service
		a, err := s.Do(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s %s\n%d %s\n\n", asked.action, asked.form, a.Status, strings.ReplaceAll(string(a.Body), "><", ">\n<"))
	}
	const path = "testdata/answers.txt"
	if *update {
		if err := os.WriteFile(path, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), all.String()); diff != "" {
		t.Errorf("run with -update and look at the difference:\n%s", diff)
	}
}
