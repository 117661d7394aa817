package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExplainFlags: what is known besides the capture changes what explains it.
func TestExplainFlags(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	binding := func(name, port string) string {
		return `{"kind":"TargetGroupBinding","apiVersion":"elbv2.k8s.aws/v1beta1","metadata":{"namespace":"test","name":"` + name + `"},
"spec":{"targetGroupARN":"arn:aws:elasticloadbalancing:eu-west-1:1:targetgroup/` + name + `/1","targetType":"ip","networking":{"ingress":[
{"from":[{"securityGroup":{"groupID":"sg-014f7b94f96fe2d8d"}}],"ports":[{"protocol":"TCP","port":` + port + `}]}]}}}`
	}
	bindings := write("tgb.json", `{"apiVersion":"v1","kind":"List","items":[`+strings.Join([]string{binding("k8s-test-frontend-3208949aed", "8025"),
		binding("k8s-app2-0000000022", "3000"), binding("k8s-app3-0000000033", "3008")}, ",")+`]}`)
	empty := write("rules.json", `{"SecurityGroups":[{"GroupId":"sg-053bdd55831dccd60","IpPermissions":[]}]}`)
	for _, c := range []struct {
		name   string
		args   []string
		status int
		want   []string
	}{
		{"the TGBs' ports name who was skipped", []string{"--bindings", bindings, "--environment", "old-reads"}, exitHolds,
			[]string{"11 operations, 5 observations", "the TGB of port 3000 (test/k8s-app2-0000000022) is skipped"}},
		{"with other rules at the start nothing explains it", []string{"--initial", empty}, exitViolated,
			[]string{"at the start the group held no rule, as the snapshot says", "does not explain: 2 of 13, then not 09:55:17 revoke tcp 3000-8025: ok"}},
		{"after the incident reads need not be old", []string{"--since", "2026-08-28T10:00:00Z", "--environment", "fresh-reads"}, exitHolds,
			[]string{"4 operations, 2 observations", "explains"}},
		{"nor before", []string{"--until", "2026-08-28T09:55:15Z", "--environment", "fresh-reads"}, exitHolds, []string{"explains"}},
		{"other descriptions are not the controller's", []string{"--managed", "^never$"}, exitUndecided, []string{"no group with managed rules"}},
		{"a pattern that is none", []string{"--managed", "("}, exitUsage, nil},
		{"a time that is none", []string{"--since", "yesterday"}, exitUsage, nil},
		{"no such file", []string{"--bindings", filepath.Join(dir, "none")}, exitUsage, nil},
	} {
		var stdout, stderr bytes.Buffer
		status := run(append([]string{"explain", incident, "--design", "v3.4.0"}, c.args...), strings.NewReader(""), &stdout, &stderr)
		if status != c.status {
			t.Errorf("%s: status %d, want %d: %s%s", c.name, status, c.status, stdout.String(), stderr.String())
		}
		text := strings.Join(strings.Fields(stdout.String()), " ")
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the report lacks %q:\n%s", c.name, want, stdout.String())
			}
		}
	}
}
