package awsapi_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
)

// TestCLI runs the AWS CLI, where there is one, through one group's life. It is another client than the SDK for Go: it is
// built on botocore.
func TestCLI(t *testing.T) {
	cli, err := exec.LookPath("aws")
	if err != nil {
		t.Log("there is no AWS CLI here; the SDK's clients alone were tried")
		return
	}
	t.Parallel() // each run of it takes a while to start
	e := serve(t, twoGroups+targetGroups2, nil)
	run := func(arguments ...string) (string, string) {
		t.Helper()
		command := exec.Command(cli, append([]string{"--endpoint-url", e.url, "--region", "us-east-1", "--output", "json"}, arguments...)...)
		command.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "AWS_") }),
			"AWS_ACCESS_KEY_ID=AKIDTEST", "AWS_SECRET_ACCESS_KEY=secret", "AWS_MAX_ATTEMPTS=1", "AWS_PAGER=", "AWS_EC2_METADATA_DISABLED=true",
			"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null")
		var out, failure bytes.Buffer
		command.Stdout, command.Stderr = &out, &failure
		if err := command.Run(); err != nil && failure.Len() == 0 {
			t.Fatal(err)
		}
		return out.String(), failure.String()
	}
	permission := `[{"IpProtocol":"tcp","FromPort":3000,"ToPort":3008,"UserIdGroupPairs":[{"GroupId":"` + clients + `","Description":"` + managed + `"}]}]`
	out, failure := run("ec2", "authorize-security-group-ingress", "--group-id", nodes, "--ip-permissions", permission)
	var authorized struct {
		Return             bool
		SecurityGroupRules []struct{ SecurityGroupRuleId, IpProtocol string }
	}
	if err := json.Unmarshal([]byte(out), &authorized); err != nil || !authorized.Return || len(authorized.SecurityGroupRules) != 1 {
		t.Fatalf("%v: %s%s", err, out, failure)
	}
	if _, failure := run("ec2", "authorize-security-group-ingress", "--group-id", nodes, "--ip-permissions", permission); !strings.Contains(failure, "(InvalidPermission.Duplicate)") {
		t.Errorf("authorize again: %s", failure)
	}
	out, failure = run("ec2", "describe-security-groups", "--filters", "Name=group-name,Values=no*")
	var described struct {
		SecurityGroups []struct {
			GroupId       string
			IpPermissions json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(out), &described); err != nil || len(described.SecurityGroups) != 1 {
		t.Fatalf("%v: %s%s", err, out, failure)
	}
	got, err := traces.DecodePermissions(described.SecurityGroups[0].IpPermissions)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]traces.Permission{{Rule: traces.Rule{Protocol: "tcp", FromPort: 3000, ToPort: 3008, Source: clients}, Description: managed}}, got); diff != "" {
		t.Error(diff)
	}
	if _, failure := run("ec2", "revoke-security-group-ingress", "--group-id", nodes, "--security-group-rule-ids", authorized.SecurityGroupRules[0].SecurityGroupRuleId); failure != "" {
		t.Error(failure)
	}
	if rules := e.Rules(nodes); len(rules) != 0 {
		t.Errorf("the rules are %v", rules)
	}
	if _, failure := run("elbv2", "register-targets", "--target-group-arn", pods, "--targets", "Id=10.0.0.1,Port=80"); failure != "" {
		t.Error(failure)
	}
	if out, failure := run("elbv2", "describe-target-health", "--target-group-arn", pods); !strings.Contains(out, `"State": "healthy"`) {
		t.Errorf("%s%s", out, failure)
	}
	if _, failure := run("elbv2", "describe-target-health", "--target-group-arn", strings.Replace(pods, "pods", "other", 1)); !strings.Contains(failure, "(TargetGroupNotFound)") {
		t.Error(failure)
	}
}
