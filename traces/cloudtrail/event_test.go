package cloudtrail

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"linearize.example/traces"
)

// call returns an event of the call with the given members besides those that all events have.
func call(name, members string) string {
	source := ec2Source
	if strings.HasSuffix(name, "Targets") {
		source = elbSource
	}
	return fmt.Sprintf(`{"eventVersion":"1.11","eventTime":"2026-08-28T09:55:16Z","eventSource":"%s","eventName":"%s",`+
		`"eventType":"AwsApiCall","eventID":"e-1",%s}`, source, name, members)
}

func identified(id string, p traces.Permission) traces.IdentifiedPermission {
	return traces.IdentifiedPermission{ID: id, Permission: p}
}

// TestEffects checks what is read of each call's request and answer.
func TestEffects(t *testing.T) {
	tcp := func(from, to int32, source, description string) traces.Permission {
		return permission("tcp", from, to, source, description)
	}
	for _, test := range []struct {
		name, event string
		want        traces.Operation
	}{
		{"one item with many sources", call("AuthorizeSecurityGroupIngress", `"requestParameters":{"groupId":"sg-1","ipPermissions":{"items":[`+
			`{"ipProtocol":"6","fromPort":80,"toPort":81,"groups":{"items":[{"groupId":"sg-2","userId":"1"},{"groupId":"sg-3"}]},`+
			`"ipRanges":{"items":[{"cidrIp":"10.1.2.3/8","description":"d"}]},"ipv6Ranges":{"items":[{"cidrIpv6":"2001:DB8::1/32"}]},`+
			`"prefixListIds":{"items":[{"prefixListId":"pl-1"}]}}]}}`),
			traces.Operation{Group: "sg-1", Permissions: []traces.Permission{tcp(80, 81, "sg-2", ""), tcp(80, 81, "sg-3", ""),
				tcp(80, 81, "10.0.0.0/8", "d"), tcp(80, 81, "2001:db8::/32", ""), tcp(80, 81, "pl-1", "")}}},
		{"all traffic, however it is written", call("RevokeSecurityGroupIngress", `"requestParameters":{"groupId":"sg-1","ipPermissions":{"items":[`+
			`{"ipProtocol":"-1","groups":{"items":[{"groupId":"sg-2"}]}},{"ipProtocol":"-1","fromPort":0,"toPort":0,"groups":{"items":[{"groupId":"sg-3"}]}},`+
			`{"ipProtocol":"tcp","fromPort":-1,"toPort":-1,"groups":{"items":[{"groupId":"sg-4"}]}}]}}`),
			traces.Operation{Group: "sg-1", Permissions: []traces.Permission{permission("-1", -1, -1, "sg-2", ""), permission("-1", -1, -1, "sg-3", ""),
				tcp(0, 65535, "sg-4", "")}}},
		{"flat form", call("RevokeSecurityGroupIngress", `"requestParameters":{"groupId":"sg-1","ipPermissions":{},"cidrIp":"0.0.0.0/0","ipProtocol":"tcp","fromPort":22,"toPort":22}`),
			traces.Operation{Group: "sg-1", Permissions: []traces.Permission{tcp(22, 22, "0.0.0.0/0", "")}}},
		{"flat form with a group's name", call("AuthorizeSecurityGroupIngress", `"requestParameters":{"groupName":"default","sourceSecurityGroupName":"web","sourceSecurityGroupOwnerId":"1"}`),
			traces.Operation{Group: "default", Permissions: []traces.Permission{tcp(0, 65535, "web", ""), permission("udp", 0, 65535, "web", ""), permission("icmp", -1, -1, "web", "")}}},
		{"group by name, id in the answer", call("AuthorizeSecurityGroupIngress", `"requestParameters":{"groupName":"default","ipPermissions":{"items":[{"ipProtocol":"tcp","fromPort":1,"toPort":1,`+
			`"groups":{"items":[{"groupName":"web"}]}}]}},"responseElements":{"_return":true,"securityGroupRuleSet":{"items":[{"securityGroupRuleId":"sgr-1","groupId":"sg-1","isEgress":false,`+
			`"ipProtocol":"tcp","fromPort":1,"toPort":1,"referencedGroupInfo":{"groupId":"sg-2","userId":"1"}}]}}`),
			traces.Operation{Group: "sg-1", Permissions: []traces.Permission{tcp(1, 1, "sg-2", "")}, Granted: []traces.IdentifiedPermission{identified("sgr-1", tcp(1, 1, "sg-2", ""))}}},
		{"answer to an authorize without a request", call("AuthorizeSecurityGroupIngress", `"requestParameters":null,"responseElements":{"securityGroupRuleSet":{"items":[`+
			`{"securityGroupRuleId":"sgr-1","groupId":"sg-1","isEgress":false,"ipProtocol":"tcp","fromPort":1,"toPort":2,"cidrIpv4":"10.0.0.0/8","description":"d"},`+
			`{"securityGroupRuleId":"sgr-2","groupId":"sg-1","isEgress":"true","ipProtocol":"tcp","fromPort":1,"toPort":2,"cidrIpv4":"10.0.0.0/8"}]}}`),
			traces.Operation{Group: "", Unclear: true, Permissions: []traces.Permission{tcp(1, 2, "10.0.0.0/8", "d")},
				Granted: []traces.IdentifiedPermission{identified("sgr-1", tcp(1, 2, "10.0.0.0/8", "d"))}}},
		{"revoke by id", call("RevokeSecurityGroupIngress", `"requestParameters":{"groupId":"sg-1","securityGroupRuleIds":{"items":[{"securityGroupRuleId":"sgr-1"},"sgr-2"]}}`),
			traces.Operation{Group: "sg-1", RuleIDs: []string{"sgr-1", "sgr-2"}}},
		{"revoke by id with an answer", call("RevokeSecurityGroupIngress", `"requestParameters":{"groupId":"sg-1","securityGroupRuleIds":{"items":[{"securityGroupRuleId":"sgr-1"}]}},`+
			`"responseElements":{"_return":true,"revokedSecurityGroupRuleSet":{"items":[{"securityGroupRuleId":"sgr-1","groupId":"sg-1","isEgress":false,"ipProtocol":"tcp","fromPort":5,"toPort":5,"referencedGroupId":"sg-2"}]}}`),
			traces.Operation{Group: "sg-1", RuleIDs: []string{"sgr-1"}, Revoked: []traces.IdentifiedPermission{identified("sgr-1", tcp(5, 5, "sg-2", ""))}}},
		{"revoke that found nothing", call("RevokeSecurityGroupIngress", `"requestParameters":{"groupId":"sg-1","ipPermissions":{"items":[{"ipProtocol":"tcp","fromPort":5,"toPort":5,"groups":{"items":[{"groupId":"sg-2"}]}}]}},`+
			`"responseElements":{"_return":true,"unknownIpPermissionSet":{"items":[{"ipProtocol":"tcp","fromPort":5,"toPort":5,"groups":{"items":[{"groupId":"sg-2"}]}}]}}`),
			traces.Operation{Group: "sg-1", Permissions: []traces.Permission{tcp(5, 5, "sg-2", "")}, Unknown: []traces.Permission{tcp(5, 5, "sg-2", "")}}},
		{"one rule modified", call("ModifySecurityGroupRules", `"requestParameters":{"ModifySecurityGroupRulesRequest":{"GroupId":"sg-1","SecurityGroupRule":`+
			`{"SecurityGroupRuleId":"sgr-1","tag":1,"SecurityGroupRule":{"IpProtocol":"tcp","FromPort":1,"ToPort":2,"CidrIpv4":"10.0.0.1/8","Description":"d"}}}},`+
			`"responseElements":{"ModifySecurityGroupRulesResponse":{"return":true}}`),
			traces.Operation{Group: "sg-1", Updates: []traces.RuleUpdate{{ID: "sgr-1", Permission: tcp(1, 2, "10.0.0.0/8", "d")}}}},
		{"several rules modified", call("ModifySecurityGroupRules", `"requestParameters":{"ModifySecurityGroupRulesRequest":{"GroupId":"sg-1","SecurityGroupRule":[`+
			`{"SecurityGroupRuleId":"sgr-1","tag":1,"SecurityGroupRule":{"IpProtocol":"tcp","FromPort":1,"ToPort":2,"ReferencedGroupId":"sg-2"}},`+
			`{"SecurityGroupRuleId":"sgr-2","tag":2,"SecurityGroupRule":{"IpProtocol":"-1","FromPort":-1,"ToPort":-1,"PrefixListId":"pl-1"}}]}}`),
			traces.Operation{Group: "sg-1", Updates: []traces.RuleUpdate{{ID: "sgr-1", Permission: tcp(1, 2, "sg-2", "")}, {ID: "sgr-2", Permission: permission("-1", -1, -1, "pl-1", "")}}}},
		{"descriptions by permission", call("UpdateSecurityGroupRuleDescriptionsIngress", `"requestParameters":{"groupId":"sg-1","ipPermissions":{"items":[{"ipProtocol":"tcp","fromPort":5,"toPort":5,"groups":{"items":[{"groupId":"sg-2","description":"n"}]}}]}}`),
			traces.Operation{Group: "sg-1", Permissions: []traces.Permission{tcp(5, 5, "sg-2", "n")}}},
		{"descriptions by id", call("UpdateSecurityGroupRuleDescriptionsIngress", `"requestParameters":{"UpdateSecurityGroupRuleDescriptionsIngressRequest":{"GroupId":"sg-1","SecurityGroupRuleDescription":{"SecurityGroupRuleId":"sgr-1","Description":"n","tag":1}}}`),
			traces.Operation{Group: "sg-1", Updates: []traces.RuleUpdate{{ID: "sgr-1", Permission: traces.Permission{Description: "n"}}}}},
		{"group created", call("CreateSecurityGroup", `"requestParameters":{"groupName":"n","groupDescription":"d","vpcId":"vpc-1"},"responseElements":{"_return":true,"groupId":"sg-9"}`),
			traces.Operation{Group: "sg-9"}},
		{"group deleted", call("DeleteSecurityGroup", `"requestParameters":{"groupId":"sg-9"},"responseElements":{"_return":true}`), traces.Operation{Group: "sg-9"}},
		{"delete refused", call("DeleteSecurityGroup", `"requestParameters":{"groupId":"sg-9"},"errorCode":"Client.DependencyViolation","responseElements":null`),
			traces.Operation{Group: "sg-9", Outcome: traces.Failed, Error: "DependencyViolation"}},
		{"describe of one group", call("DescribeSecurityGroups", `"requestParameters":{"securityGroupSet":{},"securityGroupIdSet":{"items":[{"groupId":"sg-1"}]},"filterSet":{}}`),
			traces.Operation{Group: "sg-1"}},
		{"describe by filter", call("DescribeSecurityGroupRules", `"requestParameters":{"filterSet":{"items":[{"name":"group-id","valueSet":{"items":[{"value":"sg-1"}]}}]}}`),
			traces.Operation{Group: "sg-1"}},
		{"describe of all", call("DescribeSecurityGroups", `"requestParameters":{}`), traces.Operation{}},
		{"targets registered", call("RegisterTargets", `"requestParameters":{"targetGroupArn":"tg","targets":[{"id":"10.0.0.1","port":80},{"id":"i-1"}]}`),
			traces.Operation{TargetGroup: "tg", Targets: []traces.Target{{ID: "10.0.0.1", Port: 80}, {ID: "i-1"}}}},
		{"targets deregistered in vain", call("DeregisterTargets", `"requestParameters":{"targetGroupArn":"tg","targets":[{"id":"10.0.0.1","port":80}]},"errorCode":"TargetGroupNotFound"`),
			traces.Operation{TargetGroup: "tg", Targets: []traces.Target{{ID: "10.0.0.1", Port: 80}}, Outcome: traces.Failed, Error: "TargetGroupNotFound"}},
		{"dry run", call("AuthorizeSecurityGroupIngress", `"requestParameters":{"groupId":"sg-1","ipPermissions":{},"cidrIp":"0.0.0.0/0","ipProtocol":"tcp","fromPort":22,"toPort":22,"dryRun":true},"errorCode":"Client.DryRunOperation"`),
			traces.Operation{Group: "sg-1", Permissions: []traces.Permission{tcp(22, 22, "0.0.0.0/0", "")}, Outcome: traces.Failed, Error: "DryRunOperation"}},
		{"server's error", call("DeleteSecurityGroup", `"requestParameters":{"groupId":"sg-9"},"errorCode":"Server.InternalError"`), traces.Operation{Group: "sg-9", Outcome: traces.Failed, Error: "InternalError"}},
		{"message without a code", call("DeleteSecurityGroup", `"requestParameters":{"groupId":"sg-9"},"errorMessage":"no"`), traces.Operation{Group: "sg-9", Outcome: traces.Failed, Error: "unknown"}},
		{"no error", call("DeleteSecurityGroup", `"requestParameters":{"groupId":"sg-9"},"errorCode":null,"errorMessage":""`), traces.Operation{Group: "sg-9"}},
		{"no request", call("AuthorizeSecurityGroupIngress", `"requestParameters":null`), traces.Operation{Unclear: true}},
		{"empty request", call("RevokeSecurityGroupIngress", `"requestParameters":{}`), traces.Operation{Unclear: true}},
		{"a request that was cut", call("AuthorizeSecurityGroupIngress", `"requestParameters":"{groupId=sg-1, ipPermissions={ite"`), traces.Operation{Unclear: true}},
		{"a request without sources", call("AuthorizeSecurityGroupIngress", `"requestParameters":{"groupId":"sg-1","ipPermissions":{"items":[{"ipProtocol":"tcp","fromPort":1,"toPort":1}]}}`),
			traces.Operation{Group: "sg-1", Unclear: true}},
		{"a port that is none", call("AuthorizeSecurityGroupIngress", `"requestParameters":{"groupId":"sg-1","ipPermissions":{"items":[{"ipProtocol":"tcp","fromPort":1e99,"toPort":70000,"groups":{"items":[{"groupId":"sg-2"}]}},`+
			`{"ipProtocol":"tcp","fromPort":1.0,"toPort":"2","groups":{"items":[{"groupId":"sg-2"}]}}]}}`),
			traces.Operation{Group: "sg-1", Unclear: true, Permissions: []traces.Permission{tcp(1, 2, "sg-2", "")}}},
		{"huge port", call("RegisterTargets", `"requestParameters":{"targetGroupArn":"tg","targets":[{"id":"i","port":99999999999999999999999}]}`), traces.Operation{TargetGroup: "tg", Unclear: true}},
		{"wrong types everywhere", call("RevokeSecurityGroupIngress", `"requestParameters":{"groupId":["sg-1"],"ipPermissions":7,"securityGroupRuleIds":true},"userIdentity":[1],"responseElements":"x","errorCode":{}`),
			traces.Operation{Unclear: true, RuleIDs: []string{"true"}}},
		{"returned false", call("DeleteSecurityGroup", `"requestParameters":{"groupId":"sg-9"},"responseElements":{"_return":false}`), traces.Operation{Group: "sg-9", Unclear: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, err := read(t, test.event, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(h.Operations) != 1 {
				t.Fatalf("%d operations, want 1: %+v", len(h.Operations), h.Inputs[0])
			}
			want := test.want
			want.ID, want.EventID, want.After = "e-1", "e-1", -1
			want.Call, want.Return = at("2026-08-28T09:55:16Z"), at("2026-08-28T09:55:17Z")-1
			want.Sources = []traces.Source{{Input: 0, Position: "line 1"}}
			if want.Outcome == 0 {
				want.Outcome = traces.Succeeded
			}
			_, want.Op, _ = strings.Cut(test.event, `"eventName":"`)
			want.Op, _, _ = strings.Cut(want.Op, `"`)
			if diff := cmp.Diff(want, h.Operations[0], cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			unclear := false
			for _, n := range h.Inputs[0].Notes {
				unclear = unclear || n.Kind == "unclear-record"
			}
			if unclear != want.Unclear {
				t.Errorf("notes %v, want a note on an unclear record: %v", h.Inputs[0].Notes, want.Unclear)
			}
		})
	}
}

// TestSkipped checks what is recognized as no call and counted.
func TestSkipped(t *testing.T) {
	const insight = `{"eventVersion":"1.08","eventTime":"2026-08-28T09:55:00Z","eventID":"i","eventType":"AwsCloudTrailInsight","eventCategory":"Insight",` +
		`"insightDetails":{"state":"Start","eventSource":"ec2.amazonaws.com","eventName":"AuthorizeSecurityGroupIngress"}}`
	const notification = `{"eventVersion":"2.1","eventSource":"aws:s3","eventTime":"2026-08-28T09:55:00Z","eventName":"ObjectCreated:Put","userIdentity":{},"s3":{}}`
	const digest = `{"awsAccountId":"1","digestStartTime":"2026-08-28T09:00:00Z","digestEndTime":"2026-08-28T10:00:00Z","digestS3Object":"o","logFiles":[{"s3Object":"x"},{"s3Object":"SecurityGroup"}]}`
	egress := strings.ReplaceAll(call("AuthorizeSecurityGroupEgress", `"requestParameters":{"groupId":"sg-1"}`), "x", "x")
	other := strings.Replace(call("CreateSecurityGroup", `"requestParameters":{}`), ec2Source, "directory.amazonaws.com", 1)
	service := strings.Replace(authorized, "AwsApiCall", "AwsServiceEvent", 1)
	for _, test := range []struct {
		name, input string
		records     int
		note        string
	}{
		{"insight", insight, 1, "Insights"},
		{"insights in a log file", `{"Records":[` + insight + "," + insight + `]}`, 2, "2 CloudTrail Insights"},
		{"digest", digest, 1, "digest"},
		{"digest before a log file", digest + `{"Records":[` + listed + `]}`, 2, "digest"},
		{"egress", egress, 1, ""},
		{"another service", other, 1, ""},
		{"no call", service, 1, "no API calls"},
		{"notifications among events", `{"Records":[` + listed + `,` + strings.Replace(notification, `"s3":{}`, `"s3":"SecurityGroup"`, 1) + `]}`, 2, "notifications"},
		{"an empty log file", `{"Records":[]}`, 0, ""},
		{"an empty answer", `{"Events":[]}`, 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, err := read(t, test.input, Options{})
			if err != nil {
				t.Fatal(err)
			}
			in := h.Inputs[0]
			if len(h.Operations) != 0 || in.Records != test.records || in.Irrelevant != test.records {
				t.Errorf("got %+v, want %d irrelevant records", in, test.records)
			}
			if got := fmt.Sprint(in.Notes); !strings.Contains(got, test.note) || test.note == "" && len(in.Notes) > 0 {
				t.Errorf("notes %s, want %q", got, test.note)
			}
		})
	}
}

// TestRefused checks that what has lost the answer, or never had it, is refused with a reason.
func TestRefused(t *testing.T) {
	for _, test := range []struct{ name, input, reason string }{
		{"empty", "", "no CloudTrail event"},
		{"the console's CSV", "Event ID,Event time,User name,Event name,Resources\ne-1,x,y,AuthorizeSecurityGroupIngress,[]\n", "no requestParameters"},
		{"Splunk without _raw", `{"preview":false,"result":{"eventName":"AuthorizeSecurityGroupIngress","requestParameters.ipPermissions.items{}.fromPort":["1","2"]}}`, "without _raw"},
		{"lookup-events without the event", `{"EventId":"e","EventName":"AuthorizeSecurityGroupIngress","EventSource":"ec2.amazonaws.com","EventTime":"x"}`, "without its CloudTrailEvent"},
		{"selected columns", `{"eventName":"AuthorizeSecurityGroupIngress","eventTime":"2026-08-28 09:55:16.000"}`, "no eventSource"},
		{"notifications of S3", `{"Records":[{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","eventTime":"2026-08-28T09:55:16Z"}]}`, "notifications"},
		{"a pasted fragment", "{\n  \"eventName\": \"AuthorizeSecurityGroupIngress\",\n  ...\n}", "is no JSON"},
		{"a pasted comment", "{\"eventVersion\": \"1.08\", // the event\n \"eventSource\": \"ec2.amazonaws.com\"}", "is no JSON"},
		{"something else", `{"a":1}`, "no eventName"},
		{"no time", strings.Replace(authorized, "2026-08-28T09:55:16Z", "yesterday", 1), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, err := read(t, test.input, Options{})
			if test.reason == "" {
				if err != nil || h.Inputs[0].Rejected != 1 {
					t.Errorf("got %v and %+v, want a rejected record", err, h.Inputs[0])
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.reason) {
				t.Errorf("got error %v, want %q", err, test.reason)
			}
		})
	}
}

// TestBroken checks that what is broken in an input is named, and that the rest is used.
func TestBroken(t *testing.T) {
	for _, test := range []struct {
		name, input string
		used        int
		rejections  []string
		note        string
	}{
		{"torn line among others", authorized + "\n" + revoked[:100] + "\n" + revoked + "\n", 2, []string{"line 2: is no JSON: invalid character '\\n' in string literal, at byte 101 of the record"}, ""},
		{"unclosed line among others", authorized + "\n" + `{"a":{"b":1` + "\n" + revoked + "\n", 2, []string{"line 2: is no JSON: invalid character '{' after object key:value pair, at byte 13 of the record"}, ""},
		{"cut off", `{"Records":[` + authorized + `,` + revoked[:200], 1, []string{"line 1: the record is cut off at the end of the input"}, "truncated-capture"},
		{"text among lines", authorized + "\nhello\n" + revoked, 2, []string{`line 2: is no JSON: "hello"`}, ""},
		{"numbers among events", `{"Records":[1,` + authorized + `,null]}`, 1, []string{"record 1: is no object"}, ""},
		{"a year before time", authorized + "\n" + strings.Replace(revoked, "2026-08-28T09:55:18Z", "0001-08-28T09:55:18Z", 1) + "\n", 1, []string{"line 2: its eventTime is outside of the years 1678 to 2261"}, ""},
		{"closing brackets too many", authorized + "}]\n" + revoked, 2, nil, ""},
		{"NextToken", `{"NextToken":"x","Events":[` + lookup(authorized, "e-1", "x") + `]}`, 1, nil, "truncated-capture"},
		{"nextToken behind", `{"events":[{"timestamp":1,"message":` + quoted(authorized) + `}],"nextToken":"x"}`, 1, nil, "truncated-capture"},
		{"NEXTTOKEN in text", "EVENTS\t" + authorized + "\nNEXTTOKEN\tx\n", 1, nil, "truncated-capture"},
		{"query that runs", `{"QueryStatus":"RUNNING","QueryResultRows":[` + lakeCells(false) + `]}`, 1, nil, "truncated-capture"},
		{"null token", `{"Events":[` + lookup(authorized, "e-1", "x") + `],"NextToken":null}`, 1, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, err := read(t, test.input, Options{})
			if err != nil {
				t.Fatal(err)
			}
			in := h.Inputs[0]
			if in.Used != test.used {
				t.Errorf("used %d records, want %d", in.Used, test.used)
			}
			if diff := cmp.Diff(test.rejections, in.Rejections); diff != "" {
				t.Errorf("rejections (-want +got):\n%s", diff)
			}
			kind := ""
			if len(in.Notes) > 0 {
				kind = in.Notes[0].Kind
			}
			if kind != test.note {
				t.Errorf("notes %v, want %q", in.Notes, test.note)
			}
		})
	}
}

// TestDuplicates checks that a call which was recorded several times is one operation.
func TestDuplicates(t *testing.T) {
	replace := func(event string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(event) }
	corrected := replace(authorized, `"e-1"`, `"e-9"`, `3008`, `4000`, `{"eventVersion"`, `{"addendum":{"reason":"UPDATED_DATA","updatedFields":"requestParameters","originalEventID":"e-1"},"eventVersion"`)
	late := replace(authorized, `{"eventVersion"`, `{"addendum":{"reason":"DELIVERY_DELAY"},"eventVersion"`)
	blank := replace(authorized, `"e-1"`, `"..."`, `"r-1"`, `"..."`)
	for _, test := range []struct {
		name, input       string
		used, duplicates  int
		ids, ports, notes string
	}{
		{"same record", authorized + authorized, 1, 1, "e-1", "3008", ""},
		{"late record", late, 1, 0, "e-1", "3008", ""},
		{"other contents", authorized + replace(authorized, "3008", "3009"), 1, 1, "e-1", "3008", "differing-duplicates"},
		{"a fuller one", replace(authorized, `"requestParameters":`, `"x":`) + authorized, 1, 1, "e-1", "3008", "unclear-record differing-duplicates"},
		{"an error that the other lost", replace(revoked, `"errorCode"`, `"x"`, `"errorMessage"`, `"y"`) + revoked, 1, 1, "e-2", "80", "differing-duplicates"},
		{"another call with the same id", authorized + replace(revoked, "e-2", "e-1"), 2, 0, "e-1 e-1", "3008 80", "differing-duplicates"},
		{"corrected", authorized + corrected, 1, 1, "e-1", "4000", "corrected-records"},
		{"corrected before", corrected + authorized, 1, 1, "e-9", "4000", "differing-duplicates corrected-records"},
		{"the original is missing", corrected, 1, 0, "e-9", "4000", "corrected-records"},
		{"in two accounts", replace(authorized, `"eventID"`, `"sharedEventID":"s","eventID"`) + replace(authorized, `"eventID":"e-1"`, `"sharedEventID":"s","eventID":"e-5"`, "r-1", "r-5"), 1, 1, "e-1", "3008", ""},
		{"same request", authorized + replace(authorized, `"e-1"`, `"e-5"`), 1, 1, "e-1", "3008", ""},
		{"same request id of another call", authorized + replace(authorized, `"e-1"`, `"e-5"`, "3008", "3009"), 2, 0, "e-1 e-5", "3008 3009", ""},
		{"ids blanked out", blank + replace(blank, "3008", "3009"), 2, 0, "input: line 1 input: line 1", "3008 3009", "no-event-id"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, err := read(t, test.input, Options{})
			if err != nil {
				t.Fatal(err)
			}
			var ids, ports, notes []string
			for _, op := range h.Operations {
				ids = append(ids, op.ID)
				for _, p := range op.Permissions {
					ports = append(ports, fmt.Sprint(p.ToPort))
				}
			}
			for _, n := range h.Inputs[0].Notes {
				notes = append(notes, n.Kind)
			}
			in := h.Inputs[0]
			got := []any{in.Used, in.Duplicates, strings.Join(ids, " "), strings.Join(ports, " "), strings.Join(notes, " ")}
			if diff := cmp.Diff([]any{test.used, test.duplicates, test.ids, test.ports, test.notes}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSeveralInputs checks that duplicates are found across inputs, that groups are found by a name which an earlier
// file explains, and how processes are named.
func TestSeveralInputs(t *testing.T) {
	h := &traces.History{Inputs: []traces.Input{{Path: "a"}, {Path: "b"}}}
	r := NewReader(h, Options{Skew: time.Second})
	other := strings.NewReplacer("AROA:one", "AROA:one", "ASIA1", "ASIA2", "09:55:16", "09:50:00", `"e-1"`, `"e-7"`, `"r-1"`, `"r-7"`, `"groupId":"sg-1"`, `"groupName":"web"`).Replace(authorized)
	created := strings.Replace(call("CreateSecurityGroup", `"requestParameters":{"groupName":"web"},"responseElements":{"groupId":"sg-9"},"userAgent":"console.ec2.amazonaws.com"`), `"e-1"`, `"e-8"`, 1)
	for i, input := range []string{authorized + other, authorized + created} {
		if err := r.Read(strings.NewReader(input), i); err != nil {
			t.Fatal(err)
		}
	}
	r.Finish()
	var got []string
	for _, op := range h.Operations {
		got = append(got, fmt.Sprintf("%s %s %s %d", op.ID, op.Process, op.Group, len(op.Sources)))
	}
	want := []string{"e-1 lbc/one#2 sg-1 2", "e-7 lbc/one sg-9 1", "e-8 console.ec2.amazonaws.com sg-9 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if op := h.Operations[0]; op.Call != at("2026-08-28T09:55:15Z") || op.Return != at("2026-08-28T09:55:18Z")-1 {
		t.Errorf("the interval is %s to %s", op.Call, op.Return)
	}
}

func TestTimes(t *testing.T) {
	for _, test := range []struct{ in, at, resolution string }{
		{"2026-08-28T09:55:16Z", "2026-08-28T09:55:16Z", "1s"},
		{"2026-08-28T09:55:16.000Z", "2026-08-28T09:55:16Z", "1s"},
		{"2026-08-28T09:55:16.120Z", "2026-08-28T09:55:16.12Z", "1ms"},
		{"2026-08-28T09:55:16.123456789Z", "2026-08-28T09:55:16.123456789Z", "1ns"},
		{"2026-08-28 09:55:16.000", "2026-08-28T09:55:16Z", "1s"},
		{"2026-08-28 09:55:16", "2026-08-28T09:55:16Z", "1s"},
		{"2026-08-28 09:55:16.000 UTC", "2026-08-28T09:55:16Z", "1s"},
		{"2026-08-28 20:55:16+11:00", "2026-08-28T09:55:16Z", "1s"},
		{"2026-08-28T20:55:16+1100", "2026-08-28T09:55:16Z", "1s"},
		{"1787910916", "2026-08-28T09:55:16Z", "1s"},
		{"1787910916.0", "2026-08-28T09:55:16Z", "1s"},
		{"1787910916.25", "2026-08-28T09:55:16.25Z", "10ms"},
		{"1787910916000", "2026-08-28T09:55:16Z", "1s"},
		{"1787910916001", "2026-08-28T09:55:16.001Z", "1ms"},
		{"1.787910916e9", "2026-08-28T09:55:16Z", "1s"},
		{"99999999999999999999", "", ""},
		{"", "", ""},
		{"08/28/2026", "", ""},
		{"NaN", "", ""},
		{"1e400", "", ""},
	} {
		got, resolution, err := parseTime(test.in)
		if err != nil {
			if test.at != "" {
				t.Errorf("%q: %v", test.in, err)
			}
			continue
		}
		if s := got.UTC().Format(time.RFC3339Nano); s != test.at || resolution.String() != test.resolution {
			t.Errorf("%q is %s, exact to %s; want %s and %s", test.in, s, resolution, test.at, test.resolution)
		}
	}
}
