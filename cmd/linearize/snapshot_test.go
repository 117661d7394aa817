package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linearize.example/traces/awsapi"
	"linearize.example/traces/record"
	"linearize.example/traces/snapshot"
)

// snapshotWorld has a group with every kind of source, an egress rule and a tag; one with more rules than a page; one with none.
func snapshotWorld() string {
	many := make([]string, 1100)
	for i := range many {
		many[i] = fmt.Sprintf(`{"CidrIp":"10.%d.%d.0/24"}`, i/256, i%256)
	}
	return `{"groups":[
		{"id":"sg-0aaa1111bbbb2222c","securityGroupRules":[
			{"SecurityGroupRuleId":"sgr-0aaa1111","IpProtocol":"tcp","FromPort":3000,"ToPort":8025,
				"ReferencedGroupInfo":{"GroupId":"sg-0bbb1111bbbb2222d","UserId":"123456789012"},
				"Description":"` + managedDescription + `","Tags":[{"Key":"a <b>","Value":""}]},
			{"SecurityGroupRuleId":"sgr-0aaa1112","IpProtocol":"-1","FromPort":-1,"ToPort":-1,"CidrIpv6":"2001:db8::/32"},
			{"SecurityGroupRuleId":"sgr-0aaa1113","IsEgress":true,"IpProtocol":"-1","FromPort":-1,"ToPort":-1,"CidrIpv4":"0.0.0.0/0"}]},
		{"id":"sg-0bbb1111bbbb2222d"},
		{"id":"sg-0ccc1111bbbb2222e","ipPermissions":[{"IpProtocol":"tcp","FromPort":80,"ToPort":80,"IpRanges":[` + strings.Join(many, ",") + `]}]}]}`
}

func snapshotEndpoint(t *testing.T, keys map[string]string) string {
	t.Helper()
	world, err := awsapi.LoadWorld(strings.NewReader(snapshotWorld()))
	if err != nil {
		t.Fatal(err)
	}
	simulator, err := awsapi.NewSimulator(world, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(record.Handler(record.HandlerOptions{Backend: simulator, Keys: keys}))
	t.Cleanup(server.Close)
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDTEST")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	return server.URL
}

func TestSnapshot(t *testing.T) {
	endpoint := snapshotEndpoint(t, nil)
	for _, c := range []struct {
		groups []string
		rules  map[string]int // of ingress, by group
	}{
		{[]string{"sg-0aaa1111bbbb2222c"}, map[string]int{"sg-0aaa1111bbbb2222c": 2}},
		{[]string{"sg-0ccc1111bbbb2222e"}, map[string]int{"sg-0ccc1111bbbb2222e": 1100}},
		{[]string{"sg-0bbb1111bbbb2222d"}, map[string]int{"sg-0bbb1111bbbb2222d": 0}},
		{[]string{"sg-0aaa1111bbbb2222c", "sg-0bbb1111bbbb2222d"}, map[string]int{"sg-0aaa1111bbbb2222c": 2, "sg-0bbb1111bbbb2222d": 0}},
	} {
		args := []string{"snapshot", "--endpoint", endpoint}
		for _, g := range c.groups {
			args = append(args, "--sg", g)
		}
		var stdout, stderr bytes.Buffer
		if status := run(args, strings.NewReader(""), &stdout, &stderr); status != exitHolds || stderr.Len() > 0 {
			t.Fatalf("%v: status %d: %s", c.groups, status, stderr.String())
		}
		all, err := snapshot.ReadSnapshots(bytes.NewReader(stdout.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, s := range all {
			got[s.Group] = len(s.Rules)
		}
		if diff := cmp.Diff(c.rules, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.groups, diff)
		}
	}
}

// TestSnapshotAsTheCLI: the output is the AWS CLI's, where that is installed, and always the one that is kept here.
func TestSnapshotAsTheCLI(t *testing.T) {
	endpoint := snapshotEndpoint(t, nil)
	const group = "sg-0aaa1111bbbb2222c"
	file := filepath.Join(t.TempDir(), "rules.json")
	var stdout, stderr bytes.Buffer
	if status := run([]string{"snapshot", "--endpoint", endpoint, "--sg", group, "-o", file}, strings.NewReader(""), &stdout, &stderr); status != exitHolds || stdout.Len() > 0 {
		t.Fatalf("status %d: %s", status, stderr.String())
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("testdata", "snapshot.json"), got)
	if _, err := exec.LookPath("aws"); err != nil {
		t.Log("the AWS CLI is not installed")
		return
	}
	cli := exec.Command("aws", "ec2", "describe-security-group-rules", "--filters", "Name=group-id,Values="+group, "--endpoint-url", endpoint, "--region", "us-east-1",
		"--output", "json")
	cli.Env = append(os.Environ(), "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "AWS_PAGER=")
	want, err := cli.Output()
	if err != nil {
		t.Fatalf("aws: %v", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("-aws +linearize snapshot:\n%s", diff)
	}
}

// golden compares with a file, or writes it with -update.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got, see -update):\n%s", path, diff)
	}
}

// TestSnapshotErrors: what cannot be had says what to do.
func TestSnapshotErrors(t *testing.T) {
	open := snapshotEndpoint(t, nil)
	locked := snapshotEndpoint(t, map[string]string{"AKIDTEST": "another secret"})
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--endpoint", open}, "--sg sg-…"},
		{[]string{"--endpoint", open, "--sg", "sg-0fff1111bbbb2222f"}, "InvalidGroup.NotFound"},
		{[]string{"--endpoint", locked, "--sg", "sg-0aaa1111bbbb2222c"}, "AuthFailure"},
		{[]string{"--endpoint", "http://127.0.0.1:1", "--sg", "sg-0aaa1111bbbb2222c"}, "cannot connect to http://127.0.0.1:1"},
	} {
		var stdout, stderr bytes.Buffer
		status := run(append([]string{"snapshot"}, c.args...), strings.NewReader(""), &stdout, &stderr)
		if status != exitUsage || !strings.Contains(stderr.String(), c.want) || stdout.Len() > 0 {
			t.Errorf("%q: status %d, %q, want %q", c.args, status, stderr.String(), c.want)
		}
	}
}

// TestSnapshotIsInitial: check takes the snapshot for the rules at the start.
func TestSnapshotIsInitial(t *testing.T) {
	endpoint := snapshotEndpoint(t, nil)
	dir := t.TempDir()
	initial, history := filepath.Join(dir, "rules.json"), filepath.Join(dir, "history.ndjson")
	var stdout, stderr bytes.Buffer
	if status := run([]string{"snapshot", "--endpoint", endpoint, "--sg", "sg-0aaa1111bbbb2222c", "-o", initial}, strings.NewReader(""), &stdout, &stderr); status != exitHolds {
		t.Fatalf("status %d: %s", status, stderr.String())
	}
	const revoke = `{"history":"v1"}
{"seq":1,"op":"RevokeSecurityGroupIngress","groupId":"sg-0aaa1111bbbb2222c","call":"2026-11-30T12:00:00Z","return":"2026-11-30T12:00:00.1Z","securityGroupRuleIds":["sgr-0aaa1111"]}
`
	if err := os.WriteFile(history, []byte(revoke), 0o644); err != nil {
		t.Fatal(err)
	}
	status := run([]string{"check", "--format", "json", "--initial", initial, history}, strings.NewReader(""), &stdout, &stderr)
	var r struct{ Verdict string }
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil || status != exitViolated || r.Verdict != "violated" {
		t.Errorf("status %d, %q, %v: %s", status, r.Verdict, err, stderr.String())
	}
}
