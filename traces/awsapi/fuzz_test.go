package awsapi_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"linearize.example/traces"
	"linearize.example/traces/awsapi"
)

var forms = []string{
	"Action=AuthorizeSecurityGroupIngress&Version=2016-11-15&" + permitted(80),
	"Action=RevokeSecurityGroupIngress&Version=2016-11-15&" + permitted(80),
	"Action=RevokeSecurityGroupIngress&Version=2016-11-15&GroupId=" + nodes + "&SecurityGroupRuleId.1=sgr-1",
	"Action=ModifySecurityGroupRules&Version=2016-11-15&GroupId=" + nodes + "&SecurityGroupRule.1.SecurityGroupRuleId=sgr-1&SecurityGroupRule.1.SecurityGroupRule.CidrIpv4=10.0.0.0/8",
	"Action=UpdateSecurityGroupRuleDescriptionsIngress&Version=2016-11-15&GroupId=" + nodes + "&SecurityGroupRuleDescription.1.SecurityGroupRuleId=sgr-1",
	"Action=CreateSecurityGroup&Version=2016-11-15&GroupName=a&GroupDescription=b&VpcId=vpc-1&TagSpecification.1.ResourceType=security-group&TagSpecification.1.Tag.1.Key=a",
	"Action=DeleteSecurityGroup&Version=2016-11-15&GroupId=" + clients,
	"Action=DescribeSecurityGroups&Version=2016-11-15&Filter.1.Name=tag:a&Filter.1.Value.1=*&MaxResults=5&NextToken=YWZ0ZXI6MQ==",
	"Action=DescribeSecurityGroupRules&Version=2016-11-15&Filter.1.Name=group-id&Filter.1.Value.1=" + nodes,
	"Action=CreateTags&Version=2016-11-15&ResourceId.1=" + nodes + "&Tag.1.Key=a&Tag.1.Value=<&>",
	"Action=RegisterTargets&Version=2015-12-01&TargetGroupArn=" + pods + "&Targets.member.1.Id=10.0.0.1&Targets.member.1.Port=1",
	"Action=DescribeTargetHealth&Version=2015-12-01&TargetGroupArn=" + pods,
	"Action=DescribeTargetGroups&Version=2015-12-01&PageSize=1&Marker=YWZ0ZXI6MQ==",
}

// FuzzCalls: whatever is posted is refused or answered with well-formed XML, and never changes the rules behind an error.
func FuzzCalls(f *testing.F) {
	for _, form := range forms {
		f.Add(form, "AKID/20261130/us-east-1/ec2/aws4_request")
	}
	f.Fuzz(func(t *testing.T, form, scope string) {
		r := httptest.NewRequest("POST", "/", strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+scope)
		c, err := awsapi.ReadCall(r)
		if err != nil {
			return
		}
		s, err := awsapi.NewSimulator(load(t, twoGroups+targetGroups2), nil, newClock())
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			before := len(s.Rules(nodes))
			a, err := s.Do(ctx, c)
			if err != nil {
				t.Fatal(err)
			}
			if after := len(s.Rules(nodes)); a.Code != "" && after != before || after > before+1000 {
				t.Errorf("%s: %d rules became %d", a.Code, before, after)
			}
			wellFormed(t, a.Body)
			if (a.Code == "") != (a.Status < 300) || a.RequestID == "" {
				t.Errorf("the answer is %d %q, request %q", a.Status, a.Code, a.RequestID)
			}
			if read := awsapi.ReadAnswer(a.Status, a.Body); read.Code != a.Code || read.RequestID != a.RequestID {
				t.Errorf("%q %q is read as %q %q", a.Code, a.RequestID, read.Code, read.RequestID)
			}
			awsapi.Operations(c, a)
			awsapi.Operations(c, nil)
		}
	})
}

const targetGroups2 = `
targetGroups: [{arn: "` + pods + `", vpc: vpc-1}, {name: other, vpc: vpc-1}]
`

func wellFormed(t *testing.T, body []byte) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(body)); ; {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("%v: %s", err, body)
		}
	}
}

// FuzzOperations: whatever a service, or what stands between, answers is read without a panic, and a call without AWS's
// answer stays pending.
func FuzzOperations(f *testing.F) {
	for _, form := range forms {
		values, err := url.ParseQuery(form)
		if err != nil {
			f.Fatal(err)
		}
		action := values.Get("Action")
		f.Add(form, 200, []byte("<"+action+`Response><groupId>sg-1</groupId><securityGroupInfo><item><groupId>sg-1</groupId><ipPermissions><item><ipProtocol>tcp</ipProtocol></item></ipPermissions></item></securityGroupInfo></`+action+"Response>"))
		f.Add(form, 503, []byte(`<Response><Errors><Error><Code>RequestLimitExceeded</Code></Error></Errors></Response>`))
		f.Add(form, 502, []byte(`<html>`))
	}
	f.Fuzz(func(t *testing.T, form string, status int, body []byte) {
		values, err := url.ParseQuery(form)
		if err != nil {
			return
		}
		for _, service := range []string{awsapi.EC2, awsapi.ELBv2} {
			c := &awsapi.Call{Service: service, Action: values.Get("Action"), Form: values}
			a := awsapi.ReadAnswer(status, body)
			for _, op := range awsapi.Operations(c, a) {
				switch {
				case op.Outcome == traces.Pending && a.Code != "", op.Outcome == traces.Failed && op.Error == "",
					op.Outcome == traces.Succeeded && (status >= 300 || len(body) > 0 && !bytes.Contains(body, []byte(c.Action+"Response"))):
					t.Errorf("status %d, code %q: %+v", status, a.Code, op)
				}
			}
		}
	})
}
