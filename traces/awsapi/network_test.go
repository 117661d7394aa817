package awsapi_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

const network = `
region: eu-west-1
vpcs: [{id: vpc-1, cidr: 10.0.0.0/16, tags: {Name: main}}, {id: vpc-2, cidr: 10.1.0.0/16, default: true}]
subnets:
- {id: subnet-a, vpc: vpc-1, zone: eu-west-1a, cidr: 10.0.1.0/24, tags: {kubernetes.io/role/elb: "1"}}
- {id: subnet-b, vpc: vpc-1, zone: eu-west-1b, cidr: 10.0.2.0/24}
groups:
- {id: sg-0aaa, vpc: vpc-1, name: nodes}
- {id: sg-0bbb, vpc: vpc-1, name: more}
instances:
- {id: i-01, subnet: subnet-a, dnsName: ip-10-0-1-5.eu-west-1.compute.internal, address: 10.0.1.5, groups: [sg-0aaa], tags: {Name: one}}
- {id: i-02, subnet: subnet-b, state: stopped}
interfaces:
- {id: eni-01, subnet: subnet-a, instance: i-01, addresses: [10.0.1.5, 10.0.1.6], prefixes: [10.0.1.16/28], groups: [sg-0aaa, sg-0bbb]}
- {id: eni-02, subnet: subnet-b, addresses: [10.0.2.9], ipv6Addresses: ["2001:db8::9"], type: branch, groups: [sg-0bbb], tags: {pod: x}}
`

func filter(name string, values ...string) []types.Filter {
	return []types.Filter{{Name: &name, Values: values}}
}

// words joins the ids of what a describe shows, or gives its error's code.
func words[T any](err error, all []T, id func(T) *string) string {
	if err != nil {
		return code(err)
	}
	var ids []string
	for _, o := range all {
		ids = append(ids, aws.ToString(id(o)))
	}
	return strings.Join(ids, " ")
}

func TestNetworks(t *testing.T) {
	e := serve(t, network, nil)
	vpcs := func(in ec2.DescribeVpcsInput) string {
		out, err := e.ec2.DescribeVpcs(ctx, &in)
		if err != nil {
			return code(err)
		}
		return words(err, out.Vpcs, func(v types.Vpc) *string { return v.VpcId })
	}
	subnets := func(in ec2.DescribeSubnetsInput) string {
		out, err := e.ec2.DescribeSubnets(ctx, &in)
		if err != nil {
			return code(err)
		}
		return words(err, out.Subnets, func(v types.Subnet) *string { return v.SubnetId })
	}
	interfaces := func(in ec2.DescribeNetworkInterfacesInput) string {
		out, err := e.ec2.DescribeNetworkInterfaces(ctx, &in)
		if err != nil {
			return code(err)
		}
		return words(err, out.NetworkInterfaces, func(v types.NetworkInterface) *string { return v.NetworkInterfaceId })
	}
	instances := func(in ec2.DescribeInstancesInput) string {
		out, err := e.ec2.DescribeInstances(ctx, &in)
		if err != nil {
			return code(err)
		}
		return words(err, out.Reservations, func(v types.Reservation) *string { return v.Instances[0].InstanceId })
	}
	zones := func(in ec2.DescribeAvailabilityZonesInput) string {
		out, err := e.ec2.DescribeAvailabilityZones(ctx, &in)
		if err != nil {
			return code(err)
		}
		return words(err, out.AvailabilityZones, func(v types.AvailabilityZone) *string { return v.ZoneId })
	}
	for _, test := range []struct{ name, got, want string }{
		{"all VPCs", vpcs(ec2.DescribeVpcsInput{}), "vpc-1 vpc-2"},
		{"a VPC", vpcs(ec2.DescribeVpcsInput{VpcIds: []string{"vpc-2"}}), "vpc-2"},
		{"a VPC by tag", vpcs(ec2.DescribeVpcsInput{Filters: filter("tag:Name", "m*")}), "vpc-1"},
		{"the default VPC", vpcs(ec2.DescribeVpcsInput{Filters: filter("is-default", "true")}), "vpc-2"},
		{"no VPC", vpcs(ec2.DescribeVpcsInput{VpcIds: []string{"vpc-9"}}), "InvalidVpcID.NotFound"},
		{"a VPC by what is no filter", vpcs(ec2.DescribeVpcsInput{Filters: filter("zone", "x")}), "InvalidParameterValue"},
		{"subnets of a VPC", subnets(ec2.DescribeSubnetsInput{Filters: filter("vpc-id", "vpc-1")}), "subnet-a subnet-b"},
		{"subnets by tag", subnets(ec2.DescribeSubnetsInput{Filters: filter("tag-key", "kubernetes.io/role/elb")}), "subnet-a"},
		{"no subnet", subnets(ec2.DescribeSubnetsInput{SubnetIds: []string{"subnet-9"}}), "InvalidSubnetID.NotFound"},
		{"interfaces by instance", interfaces(ec2.DescribeNetworkInterfacesInput{Filters: filter("attachment.instance-id", "i-01")}), "eni-01"},
		{"interfaces by address", interfaces(ec2.DescribeNetworkInterfacesInput{Filters: filter("addresses.private-ip-address", "10.0.1.6", "10.0.2.9")}), "eni-01 eni-02"},
		{"interfaces by IPv6 address", interfaces(ec2.DescribeNetworkInterfacesInput{Filters: filter("ipv6-addresses.ipv6-address", "2001:db8::9")}), "eni-02"},
		{"interfaces by group", interfaces(ec2.DescribeNetworkInterfacesInput{Filters: filter("group-id", "sg-0bbb")}), "eni-01 eni-02"},
		{"no interface", interfaces(ec2.DescribeNetworkInterfacesInput{NetworkInterfaceIds: []string{"eni-9"}}), "InvalidNetworkInterfaceID.NotFound"},
		{"instances by id", instances(ec2.DescribeInstancesInput{InstanceIds: []string{"i-02"}}), "i-02"},
		{"instances by DNS name", instances(ec2.DescribeInstancesInput{Filters: filter("private-dns-name", "ip-10-0-1-5.*")}), "i-01"},
		{"instances by state", instances(ec2.DescribeInstancesInput{Filters: filter("instance-state-name", "running")}), "i-01"},
		{"no instance", instances(ec2.DescribeInstancesInput{InstanceIds: []string{"i-09"}}), "InvalidInstanceID.NotFound"},
		{"all zones", zones(ec2.DescribeAvailabilityZonesInput{}), "euw1-az1 euw1-az2"},
		{"a zone", zones(ec2.DescribeAvailabilityZonesInput{ZoneNames: []string{"eu-west-1b"}}), "euw1-az2"},
		{"a zone by id", zones(ec2.DescribeAvailabilityZonesInput{ZoneIds: []string{"euw1-az1"}}), "euw1-az1"},
		{"no zone", zones(ec2.DescribeAvailabilityZonesInput{ZoneNames: []string{"us-east-1a"}}), "InvalidParameterValue"},
	} {
		if test.got != test.want {
			t.Errorf("%s: %q, not %q", test.name, test.got, test.want)
		}
	}
}

func TestInterfaceContents(t *testing.T) {
	e := serve(t, network, nil)
	out, err := e.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{"i-01"}})
	if err != nil {
		t.Fatal(err)
	}
	i := out.Reservations[0].Instances[0]
	n := i.NetworkInterfaces[0]
	if i.State.Name != "running" || *i.VpcId != "vpc-1" || *i.Placement.AvailabilityZone != "eu-west-1a" || len(i.SecurityGroups) != 1 ||
		*n.NetworkInterfaceId != "eni-01" || len(n.Groups) != 2 || *n.Groups[1].GroupName != "more" || *n.PrivateIpAddress != "10.0.1.5" {
		t.Errorf("the instance is %+v", i)
	}
	all, err := e.ec2.DescribeNetworkInterfaces(ctx, &ec2.DescribeNetworkInterfacesInput{})
	if err != nil {
		t.Fatal(err)
	}
	first, second := all.NetworkInterfaces[0], all.NetworkInterfaces[1]
	if *first.Attachment.InstanceId != "i-01" || len(first.PrivateIpAddresses) != 2 || *first.Ipv4Prefixes[0].Ipv4Prefix != "10.0.1.16/28" ||
		second.Attachment != nil || *second.Ipv6Addresses[0].Ipv6Address != "2001:db8::9" || second.InterfaceType != "branch" || len(second.TagSet) != 1 {
		t.Errorf("the interfaces are %+v", all.NetworkInterfaces)
	}
	_, err = e.ec2.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: aws.String("sg-0bbb")})
	if code(err) != "DependencyViolation" {
		t.Errorf("delete of a group that an interface has: %v", err)
	}
	attributes, err := e.ec2.DescribeAccountAttributes(ctx, &ec2.DescribeAccountAttributesInput{AttributeNames: []types.AccountAttributeName{"default-vpc"}})
	if err != nil || *attributes.AccountAttributes[0].AttributeValues[0].AttributeValue != "vpc-2" {
		t.Errorf("%v %+v", err, attributes)
	}
	routes, err := e.ec2.DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{Filters: filter("vpc-id", "vpc-1")})
	if err != nil || len(routes.RouteTables) != 0 {
		t.Errorf("%v %+v", err, routes)
	}
}
