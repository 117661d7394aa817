package awsapi_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
	"linearize.example/traces/awsapi"
)

func TestLoadWorld(t *testing.T) {
	w, err := awsapi.LoadWorld(strings.NewReader(`{
"account": "210987654321", "region": "eu-west-1",
"groups": [
 {"id": "sg-0aaa", "ipPermissions": [
  {"IpProtocol": "tcp", "FromPort": 80, "ToPort": 81, "UserIdGroupPairs": [{"GroupId": "sg-0bbb", "UserId": "210987654321", "Description": "a"}, {"GroupId": "sg-0peer", "UserId": "999999999999"}],
   "IpRanges": [{"CidrIp": "10.1.2.3/8"}], "Ipv6Ranges": [{"CidrIpv6": "2001:DB8::/32"}], "PrefixListIds": [{"PrefixListId": "pl-1"}]},
  {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]},
 {"id": "sg-0bbb", "securityGroupRules": [
  {"SecurityGroupRuleId": "sgr-01", "GroupId": "sg-0bbb", "IsEgress": false, "IpProtocol": "udp", "FromPort": 53, "ToPort": 53, "ReferencedGroupInfo": {"GroupId": "sg-0aaa"}, "Tags": [{"Key": "k", "Value": "v"}]},
  {"SecurityGroupRuleId": "sgr-02", "IsEgress": true, "IpProtocol": "-1", "FromPort": -1, "ToPort": -1, "CidrIpv4": "0.0.0.0/0"}]}
]}`))
	if err != nil {
		t.Fatal(err)
	}
	s, err := awsapi.NewSimulator(w, nil, newClock())
	if err != nil {
		t.Fatal(err)
	}
	tcp := func(source, description string) traces.Permission {
		return traces.Permission{Rule: traces.Rule{Protocol: "tcp", FromPort: 80, ToPort: 81, Source: source}, Description: description}
	}
	if diff := cmp.Diff([]traces.Permission{
		{Rule: traces.Rule{Protocol: "-1", FromPort: -1, ToPort: -1, Source: "0.0.0.0/0"}},
		tcp("10.0.0.0/8", ""), tcp("2001:db8::/32", ""), tcp("pl-1", ""), tcp("sg-0bbb", "a"), tcp("sg-0peer", ""),
	}, s.Rules("sg-0aaa")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(traces.Snapshot{Group: "sg-0bbb", Rules: []traces.IdentifiedPermission{
		{ID: "sgr-01", Permission: traces.Permission{Rule: traces.Rule{Protocol: "udp", FromPort: 53, ToPort: 53, Source: "sg-0aaa"}}}}}, s.Snapshots()[1]); diff != "" {
		t.Error(diff)
	}
}

func TestLoadWorldRefuses(t *testing.T) {
	group := func(rest string) string { return `{"groups":[{"id":"sg-0aaa"` + rest + `}]}` }
	rule := func(rest string) string { return group(`,"securityGroupRules":[{"IpProtocol":"tcp",` + rest + `}]`) }
	for text, want := range map[string]string{
		`{"grups":[]}`:                              "grups: there is no such key; here belong account, groups,",
		group(`,"vpc":5`):                           "groups[0].vpc is a number and has to be a text",
		group(`,"vpc":"vpc-9"`):                     `groups[0].vpc: "vpc-9" is not among vpcs`,
		group(`},{"id":"sg-0aaa"`):                  "groups[1].id: sg-0aaa is given twice",
		group(`},{"id":"sg-0bbb","name":"sg-0aaa"`): "groups[1].name: another group",
		`{"groups":[{}]}`:                           "groups[0] has no id",
		`{"groups":[{"id":"nodes"}]}`:               `groups[0].id: "nodes" does not have the form sg-`,
		`{"vpcs":[{"id":"subnet-1"}]}`:              "vpcs[0].id",
		`{"vpcs":[{"id":"vpc-1","default":true},{"id":"vpc-2","default":true}]}`:                                                   "vpcs[1].default: vpc-1 is the default VPC already",
		`{"vpcs":[{"id":"vpc-1"},{"id":"vpc-2"}],"groups":[{"id":"sg-0aaa"}]}`:                                                     `groups[0].vpc: "" is not among vpcs`,
		`{"subnets":[{"id":"subnet-1","zone":"x"}],"zones":["y"]}`:                                                                 "subnets[0].zone: x is not among zones",
		`{"instances":[{"id":"i-01","subnet":"subnet-9"}]}`:                                                                        "instances[0].subnet",
		`{"instances":[{"id":"i-01","state":"asleep"}]}`:                                                                           `instances[0].state: "asleep" is no state`,
		`{"instances":[{"id":"i-01","groups":["sg-9"]}]}`:                                                                          `instances[0].groups[0]: "sg-9" is not among groups`,
		`{"interfaces":[{"id":"eni-01","instance":"i-01"}]}`:                                                                       `interfaces[0].instance: "i-01" is not among instances`,
		`{"interfaces":[{"id":"eni-01","addresses":["x"]}]}`:                                                                       `interfaces[0]: "x" is no IP address`,
		group(`,"ipPermissions":[{"IpProtocol":"tcp","FromPort":1,"ToPort":1}]`):                                                   "groups[0].ipPermissions[0] names no source",
		group(`,"ipPermissions":[{"fromPort":1}]`):                                                                                 "groups[0].ipPermissions[0].fromPort: there is no such key; here belong FromPort,",
		rule(`"FromPort":2,"ToPort":1,"CidrIpv4":"10.0.0.0/8"`):                                                                    "groups[0].securityGroupRules[0]: Invalid TCP/UDP port range (2:1)",
		rule(`"FromPort":1,"ToPort":1,"ReferencedGroupInfo":{"GroupId":"sg-9"}`):                                                   "groups[0].securityGroupRules[0]: The security group 'sg-9' does not exist",
		rule(`"GroupId":"sg-9"`):                                                                                                   "groups[0].securityGroupRules[0].GroupId: the rule belongs to another group",
		rule(`"SecurityGroupRuleId":"1"`):                                                                                          "groups[0].securityGroupRules[0].SecurityGroupRuleId",
		rule(`"FromPort":1,"ToPort":1,"CidrIpv4":"10.0.0.0/8"},{"IpProtocol":"6","FromPort":1,"ToPort":1,"CidrIpv4":"10.9.0.0/8"`): "groups[0].securityGroupRules[1]: the rule tcp 1-1 from 10.0.0.0/8 is given twice",
		`{"targetGroups":[{}]}`:                                                                                                    "targetGroups[0] has neither name nor arn",
		`{"targetGroups":[{"arn":"pods"}]}`:                                                                                        "targetGroups[0] has neither name nor arn",
		`{"targetGroups":[{"name":"a","arn":"pods"}]}`:                                                                             "targetGroups[0].arn",
		`{"targetGroups":[{"name":"a","targetType":"pod"}]}`:                                                                       "targetGroups[0].targetType",
		`{"targetGroups":[{"name":"a","healthyAfter":"-1s"}]}`:                                                                     "targetGroups[0].healthyAfter",
		`{"targetGroups":[{"name":"a","targets":[{"port":1}]}]}`:                                                                   "targetGroups[0].targets[0]",
		`{"targetGroups":[{"name":"a","port":1e3},{"name":"a","port":"x"}]}`:                                                       "targetGroups[0].port: 1e3 is no number that it can have",
	} {
		_, err := awsapi.LoadWorld(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n  %v\n  not %s", text, err, want)
		}
	}
}
