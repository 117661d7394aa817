package controllerlog_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
	"linearize.example/traces/controllerlog"
)

const (
	podError  = "Requesting network requeue due to error from ReconcileForPodEndpoints"
	nodeError = "Requesting network requeue due to error from ReconcileForNodePortEndpoints"

	notFoundV2 = "operation error EC2: RevokeSecurityGroupIngress, https response error StatusCode: 400, " +
		"RequestID: 11-22, api error InvalidPermission.NotFound: The specified rule does not exist."
	notFoundV1 = "InvalidPermission.NotFound: The specified rule does not exist.\n\tstatus code: 400, request id: 11-22"
)

func retrying(ts, revokeFirst string) string {
	return info(ts, "Retrying ReconcileIngress without using cache", `"revokeFirst":`+revokeFirst)
}

func TestCalls(t *testing.T) {
	arn := `"arn":"arn:tg"`
	targets := `"targets":[{"AvailabilityZone":null,"Id":"10.0.0.1","Port":8080},{"Id":"i-1","Port":null}]`
	tests := []struct {
		name  string
		lines []string
		want  []string
	}{
		{"success, in order within a second",
			[]string{authorizing(at("10:00:00"), group, "80-90"), authorized(at("10:00:01"), group),
				revoking(at("10:00:01"), group, "80-80"), revoked(at("10:00:01"), group)},
			[]string{"1 controller Authorize sg-0aaa 80-90 10:00:00..10:00:01+ ok",
				"3 controller Revoke sg-0aaa 80-80 10:00:01..10:00:01+ ok after 1"}},
		{"the process ends during the call",
			[]string{authorizing(at("10:00:00"), group, "80-90"), authorized(at("10:00:00"), group),
				revoking(at("10:00:01"), group, "80-80")},
			[]string{"1 controller Authorize sg-0aaa 80-90 10:00:00..10:00:00+ ok",
				"3 controller Revoke sg-0aaa 80-80 10:00:01..forever ? after 1"}},
		{"an excerpt without any end proves nothing",
			[]string{authorizing(at("10:00:00"), group, "80-90"), revoking(at("10:00:01"), group, "80-80")},
			[]string{"1 controller Authorize sg-0aaa 80-90 10:00:00..forever ?",
				"2 controller Revoke sg-0aaa 80-80 10:00:01..forever ?"}},
		{"the next call on the group proves that one is over",
			[]string{authorizing(at("10:00:00"), group, "80-90"), revoking(at("10:00:02"), group, "80-80"),
				revoked(at("10:00:03"), group)},
			[]string{"1 controller Authorize sg-0aaa 80-90 10:00:00..10:00:02+ ?",
				"2 controller Revoke sg-0aaa 80-80 10:00:02..10:00:03+ ok after 1"}},
		{"so does the next managed call on another group: one mutex",
			[]string{authorizing(at("10:00:00"), group, "80-90"), authorizing(at("10:00:02"), other, "80-80"),
				authorized(at("10:00:03"), other)},
			[]string{"1 controller Authorize sg-0aaa 80-90 10:00:00..10:00:02+ ?",
				"2 controller Authorize sg-0bbb 80-80 10:00:02..10:00:03+ ok after 1"}},
		{"but not a call on a load balancer's own group, which no mutex covers",
			[]string{authorizing(at("10:00:00"), group, "80-90"),
				info(at("10:00:02"), "authorizing securityGroup ingress", sg(other), permission("80-80", "")),
				authorized(at("10:00:03"), other), authorized(at("10:00:04"), group)},
			[]string{"1 controller Authorize sg-0aaa 80-90 10:00:00..10:00:04+ ok",
				"2 controller Authorize sg-0bbb 80-80 10:00:02..10:00:03+ ok"}},
		{"NotFound twice, as in the incident",
			[]string{revoking(at("10:00:00"), group, "1-2"), retrying(at("10:00:00"), "false"),
				revoking(at("10:00:00"), group, "1-2"), failed(at("10:00:01"), podError, notFoundV2, tgb("api")),
				revoking(at("10:00:43"), group, "1-1"), revoked(at("10:00:44"), group)},
			[]string{"1 controller Revoke sg-0aaa 1-2 10:00:00..10:00:00+ InvalidPermission.NotFound",
				"3 controller Revoke sg-0aaa 1-2 10:00:00..10:00:01+ InvalidPermission.NotFound req 11-22 after 1",
				"5 controller Revoke sg-0aaa 1-1 10:00:43..10:00:44+ ok after 3"}},
		{"Duplicate, then the right call",
			[]string{authorizing(at("10:00:00"), group, "1-2"), retrying(at("10:00:00"), "false"),
				revoking(at("10:00:01"), group, "1-1"), revoked(at("10:00:02"), group)},
			[]string{"1 controller Authorize sg-0aaa 1-2 10:00:00..10:00:00+ InvalidPermission.Duplicate",
				"3 controller Revoke sg-0aaa 1-1 10:00:01..10:00:02+ ok after 1"}},
		{"a full group",
			[]string{authorizing(at("10:00:00"), group, "1-2"), retrying(at("10:00:00"), "true"),
				revoking(at("10:00:01"), group, "1-1"), revoked(at("10:00:02"), group),
				authorizing(at("10:00:02"), group, "1-2"), authorized(at("10:00:03"), group)},
			[]string{"1 controller Authorize sg-0aaa 1-2 10:00:00..10:00:00+ RulesPerSecurityGroupLimitExceeded",
				"3 controller Revoke sg-0aaa 1-1 10:00:01..10:00:02+ ok after 1",
				"5 controller Authorize sg-0aaa 1-2 10:00:02..10:00:03+ ok after 3"}},
		{"a retry while two groups are changed is nobody's",
			[]string{authorizing(at("10:00:00"), group, "1-2"),
				info(at("10:00:00"), "revoking securityGroup ingress", sg(other), permission("80-80", "")),
				retrying(at("10:00:01"), "false"), authorized(at("10:00:02"), group)},
			[]string{"1 controller Authorize sg-0aaa 1-2 10:00:00..10:00:02+ ok",
				"2 controller Revoke sg-0bbb 80-80 10:00:00..forever ?"}},
		{"unless only one of them can have met a full group",
			[]string{authorizing(at("10:00:00"), group, "1-2"),
				info(at("10:00:00"), "revoking securityGroup ingress", sg(other), permission("80-80", "")),
				retrying(at("10:00:01"), "true"), revoked(at("10:00:02"), other)},
			[]string{"1 controller Authorize sg-0aaa 1-2 10:00:00..10:00:01+ RulesPerSecurityGroupLimitExceeded",
				"2 controller Revoke sg-0bbb 80-80 10:00:00..10:00:02+ ok"}},
		{"an end that comes after the next start belongs to the call before: two replicas in one log",
			[]string{authorizing(at("10:00:00"), group, "1-2"), authorizing(at("10:00:01"), other, "1-2"),
				authorized(at("10:00:02"), group), authorized(at("10:00:03"), other)},
			[]string{"1 controller Authorize sg-0aaa 1-2 10:00:00..10:00:02+ ok",
				"2 controller Authorize sg-0bbb 1-2 10:00:01..10:00:03+ ok"}},
		{"an end too many is a call whose start is missing, not the one that failed long ago",
			[]string{revoking(at("10:00:00"), group, "1-2"), failed(at("10:00:01"), podError, notFoundV2, tgb("api")),
				revoking(at("10:00:16"), group, "1-2"), revoked(at("10:00:16"), group), revoked(at("10:00:17"), group)},
			[]string{"1 controller Revoke sg-0aaa 1-2 10:00:00..10:00:01+ InvalidPermission.NotFound req 11-22",
				"3 controller Revoke sg-0aaa 1-2 10:00:16..10:00:16+ ok after 1",
				"5 controller Revoke sg-0aaa beginning..10:00:17+ ok unclear"}},
		{"SDK v1 names no call",
			[]string{revoking(at("10:00:00"), group, "1-2"), failed(at("10:00:01"), podError, notFoundV1, tgb("api")),
				authorizing(at("10:00:02"), group, "1-2"), authorized(at("10:00:02"), group)},
			[]string{"1 controller Revoke sg-0aaa 1-2 10:00:00..10:00:01+ InvalidPermission.NotFound req 11-22",
				"3 controller Authorize sg-0aaa 1-2 10:00:02..10:00:02+ ok after 1"}},
		{"an error of another call is not blamed on this one",
			[]string{revoking(at("10:00:00"), group, "1-2"),
				failed(at("10:00:01"), "Reconciler error", "operation error Elastic Load Balancing v2: "+
					"DescribeTargetHealth, https response error StatusCode: 400, RequestID: 9, api error "+
					"TargetGroupNotFound: gone", `"controller":"targetGroupBinding"`, `"name":"x"`, `"namespace":"ns"`),
				revoked(at("10:00:02"), group)},
			[]string{"1 controller Revoke sg-0aaa 1-2 10:00:00..10:00:02+ ok"}},
		{"an error that comes late goes to the call that is over, once the open one turns out well",
			[]string{revoking(at("10:00:00"), group, "1-2"), revoking(at("10:00:01"), group, "3-4"),
				failed(at("10:00:01"), podError, notFoundV2, tgb("api")), revoked(at("10:00:02"), group)},
			[]string{"1 controller Revoke sg-0aaa 1-2 10:00:00..10:00:01+ InvalidPermission.NotFound req 11-22",
				"2 controller Revoke sg-0aaa 3-4 10:00:01..10:00:02+ ok after 1"}},
		{"the errors of two groups, joined",
			[]string{authorizing(at("10:00:00"), group, "1-2"), authorizing(at("10:00:01"), other, "3-4"),
				failed(at("10:00:02"), podError,
					"operation error EC2: AuthorizeSecurityGroupIngress, https response error StatusCode: 400, "+
						"RequestID: r1, api error InvalidGroup.NotFound: gone\n"+
						"operation error EC2: AuthorizeSecurityGroupIngress, https response error StatusCode: 503, "+
						"RequestID: r2, api error RequestLimitExceeded: slow down", tgb("api")),
				authorizing(at("10:00:17"), group, "1-2"), authorized(at("10:00:17"), group)},
			[]string{"1 controller Authorize sg-0aaa 1-2 10:00:00..10:00:01+ InvalidGroup.NotFound req r1",
				"2 controller Authorize sg-0bbb 3-4 10:00:01..10:00:02+ RequestLimitExceeded req r2 after 1",
				"4 controller Authorize sg-0aaa 1-2 10:00:17..10:00:17+ ok after 2"}},
		{"without an answer the call may still take effect, and nothing comes after it",
			[]string{revoking(at("10:00:00"), group, "1-2"),
				failed(at("10:00:30"), podError, "operation error EC2: RevokeSecurityGroupIngress, https response error "+
					"StatusCode: 0, RequestID: , request send failed, Post \\\"https://ec2\\\": context deadline exceeded", tgb("a")),
				authorizing(at("10:00:45"), group, "1-2"), authorized(at("10:00:45"), group)},
			[]string{"1 controller Revoke sg-0aaa 1-2 10:00:00..forever ?",
				"3 controller Authorize sg-0aaa 1-2 10:00:45..10:00:45+ ok"}},
		{"credentials that could not be fetched: the call never left",
			[]string{revoking(at("10:00:00"), group, "1-2"),
				failed(at("10:00:01"), podError, "operation error EC2: RevokeSecurityGroupIngress, get identity: get "+
					"credentials: failed to refresh cached credentials, operation error STS: AssumeRoleWithWebIdentity, "+
					"https response error StatusCode: 403, RequestID: s1, api error AccessDenied: Not authorized", tgb("a")),
				revoking(at("10:00:16"), group, "1-2"), revoked(at("10:00:16"), group)},
			[]string{"1 controller Revoke sg-0aaa 1-2 10:00:00..10:00:01+ AccessDenied req s1",
				"3 controller Revoke sg-0aaa 1-2 10:00:16..10:00:16+ ok after 1"}},
		{"the same error twice, of an instance target's reconcile, is one failure",
			[]string{revoking(at("10:00:00"), group, "1-2"), revoking(at("10:00:01"), group, "1-2"),
				failed(at("10:00:02"), nodeError, notFoundV1, tgb("api")),
				failed(at("10:00:02"), "Reconciler error", notFoundV1, `"controller":"targetGroupBinding"`, `"name":"api"`,
					`"namespace":"ns"`),
				revoking(at("10:00:03"), group, "5-6"), revoked(at("10:00:03"), group)},
			[]string{"1 controller Revoke sg-0aaa 1-2 10:00:00..10:00:01+ ?",
				"2 controller Revoke sg-0aaa 1-2 10:00:01..10:00:02+ InvalidPermission.NotFound req 11-22 after 1",
				"5 controller Revoke sg-0aaa 5-6 10:00:03..10:00:03+ ok after 2"}},
		{"the log begins within a call",
			[]string{authorized(at("10:00:00"), group), revoking(at("10:00:01"), group, "1-2"), revoked(at("10:00:01"), group)},
			[]string{"1 controller Authorize sg-0aaa beginning..10:00:00+ ok unclear",
				"2 controller Revoke sg-0aaa 1-2 10:00:01..10:00:01+ ok after 1"}},
		{"permissions that cannot be read",
			[]string{info(at("10:00:00"), "revoking securityGroup ingress", sg(group), `"permission":"..."`),
				revoked(at("10:00:01"), group)},
			[]string{"1 controller Revoke sg-0aaa 10:00:00..10:00:01+ ok unclear"}},
		{"the clock is set back during a call",
			[]string{revoking(at("10:00:10"), group, "1-2"), revoked(at("10:00:05"), group)},
			[]string{"1 controller Revoke sg-0aaa 1-2 10:00:05..10:00:10+ ok"}},
		{"targets, whose end repeats them since v2.9.0",
			[]string{info(at("10:00:00"), "registering targets", arn, targets), info(at("10:00:01"), "registered targets", arn, targets),
				info(at("10:00:02"), "deRegistering targets", arn, targets), info(at("10:00:02"), "deRegistered targets", arn),
				info(at("10:00:03"), "registering targets", arn, `"targets":[]`)},
			[]string{"1 controller RegisterTargets arn:tg 10.0.0.1:8080 i-1:0 10:00:00..10:00:01+ ok",
				"3 controller DeregisterTargets arn:tg 10.0.0.1:8080 i-1:0 10:00:02..10:00:02+ ok after 1",
				"5 controller RegisterTargets arn:tg 10:00:03..forever ? unclear after 3"}},
		{"targets registered although the port could not be opened",
			[]string{authorizing(at("10:00:00"), group, "1-2"),
				failed(at("10:00:00"), podError, "operation error EC2: AuthorizeSecurityGroupIngress, https response error "+
					"StatusCode: 403, RequestID: r1, api error UnauthorizedOperation: no", tgb("api")),
				info(at("10:00:00"), "registering targets", arn, targets), info(at("10:00:00"), "registered targets", arn)},
			[]string{"1 controller Authorize sg-0aaa 1-2 10:00:00..10:00:00+ UnauthorizedOperation req r1",
				"3 controller RegisterTargets arn:tg 10.0.0.1:8080 i-1:0 10:00:00..10:00:00+ ok after 1"}},
		{"two TGBs at once: the order of one group's calls is not lost for another's",
			[]string{authorizing(at("10:00:00"), group, "1-2"), info(at("10:00:00"), "registering targets", arn, targets),
				authorized(at("10:00:00"), group), info(at("10:00:00"), "registered targets", arn),
				revoking(at("10:00:00"), group, "1-1"), revoked(at("10:00:00"), group)},
			[]string{"1 controller Authorize sg-0aaa 1-2 10:00:00..10:00:00+ ok",
				"2 controller RegisterTargets arn:tg 10.0.0.1:8080 i-1:0 10:00:00..10:00:00+ ok",
				"5 controller Revoke sg-0aaa 1-1 10:00:00..10:00:00+ ok after 1"}},
		{"groups are created and deleted",
			[]string{info(at("10:00:00"), "creating securityGroup", `"resourceID":"ns/ing:SG"`),
				info(at("10:00:01"), "created securityGroup", `"resourceID":"ns/ing:SG"`, sg(group)),
				info(at("10:00:02"), "created SecurityGroup", `"name":"k8s-traffic"`, `"id":"`+other+`"`),
				info(at("10:01:00"), "deleting securityGroup", sg(group)),
				info(at("10:02:00"), "deleted securityGroup", sg(group)),
				info(at("10:03:00"), "deleted securityGroup", `"ID":"`+other+`"`)},
			[]string{"2 controller CreateSecurityGroup sg-0aaa 10:00:00..10:00:01+ ok",
				"3 controller CreateSecurityGroup sg-0bbb beginning..10:00:02+ ok",
				"4 controller DeleteSecurityGroup sg-0aaa 10:01:00..10:02:00+ ok after 2",
				"6 controller DeleteSecurityGroup sg-0bbb beginning..10:03:00+ ok after 3"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, operations(read(t, tt.lines...))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSkewWidensBothEnds(t *testing.T) {
	h := readText(t, authorizing(at("10:00:02"), group, "1-2")+"\n"+authorized(at("10:00:03"), group)+"\n",
		controllerlog.Options{Skew: time.Second})
	want := []string{"1 controller Authorize sg-0aaa 1-2 10:00:01..10:00:04+ ok"}
	if diff := cmp.Diff(want, operations(h)); diff != "" {
		t.Error(diff)
	}
}

func TestRulesOfEveryKindOfSource(t *testing.T) {
	line := info(at("10:00:00"), "authorizing securityGroup ingress", sg(group), `"permission":[
		{"FromPort":80,"ToPort":80,"IpProtocol":"tcp","IpRanges":[{"CidrIp":"10.1.2.3/16","Description":"a"},{"CidrIp":"10.2.0.0/16"}],
		 "Ipv6Ranges":[{"CidrIpv6":"2001:DB8::/32"}],"PrefixListIds":[{"PrefixListId":"pl-1"}],"UserIdGroupPairs":null},
		{"IpProtocol":"-1","FromPort":null,"ToPort":null,"UserIdGroupPairs":[{"GroupId":"sg-1","UserId":"123456789012"}]}]`)
	h := read(t, compact(line))
	tcp := func(source, description string) traces.Permission {
		rule := traces.Rule{Protocol: "tcp", FromPort: 80, ToPort: 80, Source: source}
		return traces.Permission{Rule: rule, Description: description}
	}
	want := []traces.Permission{
		tcp("10.1.0.0/16", "a"), tcp("10.2.0.0/16", ""), tcp("2001:db8::/32", ""), tcp("pl-1", ""),
		{Rule: traces.Rule{Protocol: "-1", FromPort: -1, ToPort: -1, Source: "sg-1"}},
	}
	if diff := cmp.Diff(want, h.Operations[0].Permissions); diff != "" {
		t.Error(diff)
	}
}
