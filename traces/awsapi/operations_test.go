package awsapi_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"linearize.example/traces"
	"linearize.example/traces/awsapi"
)

func call(action, form string) *awsapi.Call {
	values, err := url.ParseQuery(form)
	if err != nil {
		panic(err)
	}
	service := awsapi.EC2
	if strings.HasSuffix(action, "Targets") {
		service = awsapi.ELBv2
	}
	values.Set("Action", action)
	return &awsapi.Call{Service: service, Action: action, Form: values, ID: "req-1", Process: "lbc-1", Caller: traces.Caller{AccessKeyID: "AKID"}}
}

func rule(ports int32, source string) traces.Rule {
	return traces.Rule{Protocol: "tcp", FromPort: ports, ToPort: ports, Source: source}
}

const one = "GroupId=sg-1&IpPermissions.1.IpProtocol=tcp&IpPermissions.1.FromPort=80&IpPermissions.1.ToPort=80&IpPermissions.1.Groups.1.GroupId=sg-2"

func TestOperations(t *testing.T) {
	caller := &traces.Caller{AccessKeyID: "AKID"}
	op := func(name, group string, outcome traces.Outcome, failure string) traces.Operation {
		return traces.Operation{RequestID: "req-1", Process: "lbc-1", Op: name, Group: group, Outcome: outcome, Error: failure, After: -1, Caller: caller}
	}
	with := func(op traces.Operation, change func(*traces.Operation)) traces.Operation {
		change(&op)
		return op
	}
	asked := []traces.Permission{{Rule: rule(80, "sg-2")}}
	authorize := func(outcome traces.Outcome, failure string) traces.Operation {
		return with(op(traces.AuthorizeSecurityGroupIngress, "sg-1", outcome, failure), func(op *traces.Operation) { op.Permissions = asked })
	}
	answer := func(body string) *awsapi.Answer { return &awsapi.Answer{Status: 200, Body: []byte(body)} }
	for _, test := range []struct {
		name   string
		call   *awsapi.Call
		answer *awsapi.Answer
		want   []traces.Operation
	}{
		{"no answer", call("AuthorizeSecurityGroupIngress", one), nil, []traces.Operation{authorize(traces.Pending, "")}},
		{"an answer that was lost", call("AuthorizeSecurityGroupIngress", one), &awsapi.Answer{Status: 200, Lost: true},
			[]traces.Operation{authorize(traces.Pending, "")}},
		{"an error", call("AuthorizeSecurityGroupIngress", one), awsapi.ErrorAnswer(awsapi.EC2, "InvalidPermission.Duplicate", "").WithRequestID(awsapi.EC2, "req-1"),
			[]traces.Operation{authorize(traces.Failed, "InvalidPermission.Duplicate")}},
		{"a proxy's page", call("AuthorizeSecurityGroupIngress", one), awsapi.ReadAnswer(502, []byte("<html><body>Bad gateway")),
			[]traces.Operation{authorize(traces.Pending, "")}},
		{"a page with the status of a success", call("AuthorizeSecurityGroupIngress", one), answer("<!DOCTYPE html><html><body>Please log in</body></html>"),
			[]traces.Operation{authorize(traces.Pending, "")}},
		{"another call's answer", call("AuthorizeSecurityGroupIngress", one), answer("<DescribeVpcsResponse/>"), []traces.Operation{authorize(traces.Pending, "")}},
		{"no document", call("AuthorizeSecurityGroupIngress", one), answer("OK"), []traces.Operation{authorize(traces.Pending, "")}},
		{"an error with the status of a success", call("AuthorizeSecurityGroupIngress", one),
			awsapi.ReadAnswer(200, []byte("<Response><Errors><Error><Code>RequestLimitExceeded</Code></Error></Errors></Response>")),
			[]traces.Operation{authorize(traces.Failed, "RequestLimitExceeded")}},
		{"an answer that breaks off", call("AuthorizeSecurityGroupIngress", one), answer("<AuthorizeSecurityGroupIngressResponse><return>tr"),
			[]traces.Operation{authorize(traces.Succeeded, "")}},
		{"an error of no code", call("AuthorizeSecurityGroupIngress", one), awsapi.ReadAnswer(400, []byte("no")),
			[]traces.Operation{authorize(traces.Failed, "unknown")}},
		{"success without a body", call("AuthorizeSecurityGroupIngress", one), answer(""), []traces.Operation{authorize(traces.Succeeded, "")}},
		{"success that is none", call("AuthorizeSecurityGroupIngress", one), answer("<AuthorizeSecurityGroupIngressResponse><return>false</return></AuthorizeSecurityGroupIngressResponse>"),
			[]traces.Operation{with(authorize(traces.Succeeded, ""), func(op *traces.Operation) { op.Unclear = true })}},
		{"an answer of another namespace with comments", call("AuthorizeSecurityGroupIngress", one), answer(`<?xml version="1.0"?><!-- x --><a:AuthorizeSecurityGroupIngressResponse xmlns:a="urn:x">
			<a:return>true</a:return><a:securityGroupRuleSet><a:item><a:securityGroupRuleId> sgr-1 </a:securityGroupRuleId><a:isEgress>false</a:isEgress>
			<a:ipProtocol>tcp</a:ipProtocol><a:fromPort>80</a:fromPort><a:toPort>80</a:toPort><a:referencedGroupInfo><a:groupId>sg-2</a:groupId></a:referencedGroupInfo>
			<a:description>a &amp; b</a:description></a:item></a:securityGroupRuleSet></a:AuthorizeSecurityGroupIngressResponse>`),
			[]traces.Operation{with(authorize(traces.Succeeded, ""), func(op *traces.Operation) {
				op.Granted = []traces.IdentifiedPermission{{ID: "sgr-1", Permission: traces.Permission{Rule: rule(80, "sg-2"), Description: "a & b"}}}
			})}},
		{"a dry run", call("AuthorizeSecurityGroupIngress", one+"&DryRun=true"), nil, nil},
		{"a rule that cannot be", call("AuthorizeSecurityGroupIngress", strings.Replace(one, "ToPort=80", "ToPort=8", 1)), nil,
			[]traces.Operation{with(op(traces.AuthorizeSecurityGroupIngress, "sg-1", traces.Pending, ""), func(op *traces.Operation) { op.Unclear = true })}},
		{"a group by name", call("AuthorizeSecurityGroupIngress", strings.Replace(one, "GroupId=sg-1", "GroupName=web", 1)), answer(
			"<AuthorizeSecurityGroupIngressResponse><securityGroupRuleSet><item><securityGroupRuleId>sgr-1</securityGroupRuleId><groupId>sg-1</groupId><ipProtocol>tcp</ipProtocol><fromPort>80</fromPort><toPort>80</toPort><cidrIpv4>10.0.0.0/8</cidrIpv4></item></securityGroupRuleSet></AuthorizeSecurityGroupIngressResponse>"),
			[]traces.Operation{with(authorize(traces.Succeeded, ""), func(op *traces.Operation) {
				op.Granted = []traces.IdentifiedPermission{{ID: "sgr-1", Permission: traces.Permission{Rule: rule(80, "10.0.0.0/8")}}}
			})}},
		{"a revoke by id", call("RevokeSecurityGroupIngress", "GroupId=sg-1&SecurityGroupRuleId.2=sgr-b&SecurityGroupRuleId.1=sgr-a"), nil,
			[]traces.Operation{with(op(traces.RevokeSecurityGroupIngress, "sg-1", traces.Pending, ""), func(op *traces.Operation) { op.RuleIDs = []string{"sgr-a", "sgr-b"} })}},
		{"a revoke in the default VPC", call("RevokeSecurityGroupIngress", one), answer(
			"<RevokeSecurityGroupIngressResponse><return>true</return><unknownIpPermissionSet><item><ipProtocol>tcp</ipProtocol><fromPort>80</fromPort><toPort>80</toPort><groups><item><groupId>sg-2</groupId></item></groups></item></unknownIpPermissionSet></RevokeSecurityGroupIngressResponse>"),
			[]traces.Operation{with(op(traces.RevokeSecurityGroupIngress, "sg-1", traces.Succeeded, ""), func(op *traces.Operation) { op.Permissions, op.Unknown = asked, asked })}},
		{"a change of a rule", call("ModifySecurityGroupRules", "GroupId=sg-1&SecurityGroupRule.1.SecurityGroupRuleId=sgr-a&SecurityGroupRule.1.SecurityGroupRule.IpProtocol=tcp&"+
			"SecurityGroupRule.1.SecurityGroupRule.FromPort=80&SecurityGroupRule.1.SecurityGroupRule.ToPort=80&SecurityGroupRule.1.SecurityGroupRule.ReferencedGroupId=sg-2"), nil,
			[]traces.Operation{with(op(traces.ModifySecurityGroupRules, "sg-1", traces.Pending, ""), func(op *traces.Operation) {
				op.Updates = []traces.RuleUpdate{{ID: "sgr-a", Permission: asked[0]}}
			})}},
		{"a description by id", call("UpdateSecurityGroupRuleDescriptionsIngress", "GroupId=sg-1&SecurityGroupRuleDescription.1.SecurityGroupRuleId=sgr-a&SecurityGroupRuleDescription.1.Description=x"), nil,
			[]traces.Operation{with(op(traces.UpdateSecurityGroupRuleDescriptionsIngress, "sg-1", traces.Pending, ""), func(op *traces.Operation) {
				op.Updates = []traces.RuleUpdate{{ID: "sgr-a", Permission: traces.Permission{Description: "x"}}}
			})}},
		{"a new group", call("CreateSecurityGroup", "GroupName=web"), answer("<CreateSecurityGroupResponse><groupId>sg-1</groupId></CreateSecurityGroupResponse>"),
			[]traces.Operation{op(traces.CreateSecurityGroup, "sg-1", traces.Succeeded, "")}},
		{"the end of a group", call("DeleteSecurityGroup", "GroupId=sg-1"), nil, []traces.Operation{op(traces.DeleteSecurityGroup, "sg-1", traces.Pending, "")}},
		{"a describe of two groups without an answer", call("DescribeSecurityGroups", "GroupId.1=sg-1&GroupId.2=sg-2&GroupId.3=sg-1"), nil,
			[]traces.Operation{op(traces.DescribeSecurityGroups, "sg-1", traces.Pending, ""), op(traces.DescribeSecurityGroups, "sg-2", traces.Pending, "")}},
		{"a describe by a pattern without an answer", call("DescribeSecurityGroups", "Filter.1.Name=group-id&Filter.1.Value.1=sg-*"), nil, nil},
		{"a describe that shows two groups", call("DescribeSecurityGroups", "Filter.1.Name=vpc-id&Filter.1.Value.1=vpc-1"), answer("<DescribeSecurityGroupsResponse><securityGroupInfo>" +
			"<item><groupId>sg-1</groupId><ipPermissions><item><ipProtocol>tcp</ipProtocol><fromPort>80</fromPort><toPort>80</toPort><groups><item><userId>1</userId><groupId>sg-2</groupId></item></groups><ipRanges/></item></ipPermissions><ipPermissionsEgress><item><ipProtocol>-1</ipProtocol></item></ipPermissionsEgress></item>" +
			"<item><groupId>sg-2</groupId><ipPermissions/></item></securityGroupInfo></DescribeSecurityGroupsResponse>"), []traces.Operation{
			with(op(traces.DescribeSecurityGroups, "sg-1", traces.Succeeded, ""), func(op *traces.Operation) { op.View = asked }),
			with(op(traces.DescribeSecurityGroups, "sg-2", traces.Succeeded, ""), func(op *traces.Operation) { op.View = []traces.Permission{} }),
		}},
		{"a describe that cannot be read", call("DescribeSecurityGroups", "GroupId.1=sg-1"), answer("<DescribeSecurityGroupsResponse><securityGroupInfo>"),
			[]traces.Operation{op(traces.DescribeSecurityGroups, "sg-1", traces.Succeeded, "")}},
		{"a describe of rules", call("DescribeSecurityGroupRules", "Filter.1.Name=group-id&Filter.1.Value.1=sg-1"), answer("<DescribeSecurityGroupRulesResponse><securityGroupRuleSet>" +
			"<item><securityGroupRuleId>sgr-1</securityGroupRuleId><groupId>sg-1</groupId><isEgress>false</isEgress><ipProtocol>tcp</ipProtocol><fromPort>80</fromPort><toPort>80</toPort><referencedGroupInfo><groupId>sg-2</groupId></referencedGroupInfo></item>" +
			"<item><securityGroupRuleId>sgr-2</securityGroupRuleId><groupId>sg-1</groupId><isEgress>true</isEgress><ipProtocol>-1</ipProtocol><cidrIpv4>0.0.0.0/0</cidrIpv4></item></securityGroupRuleSet></DescribeSecurityGroupRulesResponse>"),
			[]traces.Operation{with(op(traces.DescribeSecurityGroupRules, "sg-1", traces.Succeeded, ""), func(op *traces.Operation) { op.View = asked })}},
		{"a page of rules", call("DescribeSecurityGroupRules", "Filter.1.Name=group-id&Filter.1.Value.1=sg-1"), answer("<DescribeSecurityGroupRulesResponse><securityGroupRuleSet/><nextToken>x</nextToken></DescribeSecurityGroupRulesResponse>"),
			[]traces.Operation{op(traces.DescribeSecurityGroupRules, "sg-1", traces.Succeeded, "")}},
		{"some rules of a group", call("DescribeSecurityGroupRules", "Filter.1.Name=group-id&Filter.1.Value.1=sg-1&Filter.2.Name=tag-key&Filter.2.Value.1=x"), answer("<DescribeSecurityGroupRulesResponse><securityGroupRuleSet/></DescribeSecurityGroupRulesResponse>"),
			[]traces.Operation{op(traces.DescribeSecurityGroupRules, "sg-1", traces.Succeeded, "")}},
		{"targets", call("RegisterTargets", "TargetGroupArn=arn&Targets.member.1.Id=10.0.0.1&Targets.member.1.Port=80&Targets.member.2.Port=81"), nil,
			[]traces.Operation{with(op(traces.RegisterTargets, "", traces.Pending, ""), func(op *traces.Operation) {
				op.TargetGroup, op.Targets, op.Unclear = "arn", []traces.Target{{ID: "10.0.0.1", Port: 80}}, true
			})}},
		{"something else", call("DescribeVpcs", ""), nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, awsapi.Operations(test.call, test.answer)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadCall(t *testing.T) {
	const v4 = "AWS4-HMAC-SHA256 Credential=AKID/20261130/eu-west-1/ec2/aws4_request, SignedHeaders=host, Signature=00"
	for _, test := range []struct {
		name, method, target, kind, auth, body string
		service, action, key, failure          string
	}{
		{"signed", "POST", "/", "application/x-www-form-urlencoded; charset=utf-8", v4, "Action=DescribeVpcs&Version=2016-11-15", "ec2", "DescribeVpcs", "AKID", ""},
		{"presigned", "GET", "/?Action=DescribeVpcs&X-Amz-Credential=AKID%2F20261130%2Feu-west-1%2Fec2%2Faws4_request&X-Amz-Signature=00", "", "", "", "ec2", "DescribeVpcs", "AKID", ""},
		{"unsigned", "GET", "/?Action=DescribeTargetHealth&Version=2015-12-01", "", "", "", "elasticloadbalancing", "DescribeTargetHealth", "", ""},
		{"no action", "GET", "/", "", v4, "", "", "", "", "MissingAction"},
		{"of another service", "GET", "/?Action=ListBuckets", "", strings.Replace(v4, "/ec2/", "/s3/", 1), "", "", "", "", "InvalidAction"},
		{"of no service", "GET", "/?Action=DescribeVpcs", "", "", "", "", "", "", "InvalidParameterValue"},
		{"JSON", "POST", "/", "application/json", v4, "{}", "", "", "", "MalformedQueryString"},
		{"a bad escape", "POST", "/", "application/x-www-form-urlencoded", v4, "Action=%zz", "", "", "", "MalformedQueryString"},
		{"a bad query", "GET", "/?a;b", "", v4, "", "", "", "", "MalformedQueryString"},
		{"too much", "GET", "/?" + strings.Repeat("a&", awsapi.MaxParameters), "", v4, "", "", "", "", "RequestEntityTooLarge"},
		{"too long", "POST", "/", "application/x-www-form-urlencoded", v4, strings.Repeat("a", awsapi.MaxBody+1), "", "", "", "RequestEntityTooLarge"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest(test.method, test.target, strings.NewReader(test.body))
			r.Header.Set("Content-Type", test.kind)
			r.Header.Set("Authorization", test.auth)
			r.Header.Set("User-Agent", "test/1")
			c, err := awsapi.ReadCall(r)
			if err != nil {
				refusal, ok := err.(*awsapi.Refusal)
				if !ok || refusal.Code != test.failure {
					t.Errorf("the error is %v, not %q", err, test.failure)
				}
				return
			}
			if c.Service != test.service || c.Action != test.action || c.Caller != (traces.Caller{AccessKeyID: test.key, UserAgent: "test/1", SourceAddress: "192.0.2.1"}) || test.failure != "" {
				t.Errorf("the call is %+v", c)
			}
			if c.Form.Has("X-Amz-Signature") {
				t.Error("the signature is among the parameters")
			}
			if again, err := awsapi.ReadCall(r); err != nil || !cmp.Equal(again, c, cmpopts.IgnoreUnexported(awsapi.Call{})) {
				t.Errorf("the body cannot be read again: %v %+v", err, again)
			}
		})
	}
}

// What the real client sends and reads is what Operations reads.
func TestOperationsOfClient(t *testing.T) {
	e := serve(t, twoGroups, nil)
	_ = e.authorize(nodes, from(clients, 80, 80))
	_, _ = e.revoke(nodes, from(clients, 81, 81))
	_, _ = e.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{nodes, clients}})
	_, _ = e.ec2.DescribeSecurityGroupRules(ctx, &ec2.DescribeSecurityGroupRulesInput{Filters: []types.Filter{{Name: aws.String("group-id"), Values: []string{nodes}}}})
	type brief struct {
		Op, Group, Error string
		Permissions      []traces.Permission
		View             []traces.Permission
	}
	permission := func(port int32) []traces.Permission {
		return []traces.Permission{{Rule: rule(port, clients), Description: managed}}
	}
	var got []brief
	for _, op := range e.ops {
		got = append(got, brief{op.Op, op.Group, op.Error, op.Permissions, op.View})
		if op.RequestID == "" || op.Caller.AccessKeyID != "AKIDTEST" || !strings.Contains(op.Caller.UserAgent, "aws-sdk-go-v2") {
			t.Errorf("who called is %q %+v", op.RequestID, op.Caller)
		}
	}
	want := []brief{
		{"AuthorizeSecurityGroupIngress", nodes, "", permission(80), nil},
		{"RevokeSecurityGroupIngress", nodes, "InvalidPermission.NotFound", permission(81), nil},
		{"DescribeSecurityGroups", nodes, "", nil, permission(80)},
		{"DescribeSecurityGroups", clients, "", nil, []traces.Permission{}},
		{"DescribeSecurityGroupRules", nodes, "", nil, permission(80)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if e.ops[2].RequestID != e.ops[3].RequestID {
		t.Error("two groups of one describe have two request ids")
	}
}

// Error answers have the form, and the HTTP status, that the services give them.
func TestErrorAnswer(t *testing.T) {
	for _, test := range []struct {
		service, code string
		status        int
		body          string
	}{
		{awsapi.EC2, "InvalidGroup.NotFound", 400, `<Response><Errors><Error><Code>InvalidGroup.NotFound</Code><Message>a &lt; b</Message></Error></Errors><RequestID>id</RequestID></Response>`},
		{awsapi.EC2, "RequestLimitExceeded", 503, `<Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>a &lt; b</Message></Error></Errors><RequestID>id</RequestID></Response>`},
		{awsapi.EC2, "UnauthorizedOperation", 403, `<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>a &lt; b</Message></Error></Errors><RequestID>id</RequestID></Response>`},
		{awsapi.EC2, "DryRunOperation", 412, `<Response><Errors><Error><Code>DryRunOperation</Code><Message>a &lt; b</Message></Error></Errors><RequestID>id</RequestID></Response>`},
		{awsapi.ELBv2, "TargetGroupNotFound", 400, `<ErrorResponse xmlns="http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/"><Error><Type>Sender</Type><Code>TargetGroupNotFound</Code><Message>a &lt; b</Message></Error><RequestId>id</RequestId></ErrorResponse>`},
		{awsapi.ELBv2, "InternalFailure", 500, `<ErrorResponse xmlns="http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/"><Error><Type>Receiver</Type><Code>InternalFailure</Code><Message>a &lt; b</Message></Error><RequestId>id</RequestId></ErrorResponse>`},
	} {
		a := awsapi.ErrorAnswer(test.service, test.code, "a < b").WithRequestID(test.service, "id")
		if got := strings.TrimPrefix(string(a.Body), `<?xml version="1.0" encoding="UTF-8"?>`+"\n"); got != test.body || a.Status != test.status {
			t.Errorf("%s: %d %s", test.code, a.Status, got)
		}
		read := awsapi.ReadAnswer(a.Status, a.Body)
		if diff := cmp.Diff(a, read); diff != "" {
			t.Errorf("read again:\n%s", diff)
		}
	}
	if a := awsapi.ReadAnswer(http.StatusOK, []byte("<R><requestId>x</requestId></R>")); a.RequestID != "x" || a.Code != "" {
		t.Errorf("a success is read as %+v", a)
	}
}
