package snapshot_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
	"linearize.example/traces/snapshot"
)

const groups = `{"SecurityGroups":[
	{"Description":"nodes","GroupName":"n","GroupId":"sg-1","OwnerId":"123456789012","VpcId":"vpc-1",
	 "IpPermissions":[
		{"FromPort":3000,"ToPort":8025,"IpProtocol":"tcp","IpRanges":[{"CidrIp":"10.1.2.3/8","Description":"people"}],
		 "Ipv6Ranges":[{"CidrIpv6":"2001:DB8::/32"}],"PrefixListIds":[{"PrefixListId":"pl-1"}],
		 "UserIdGroupPairs":[{"GroupId":"sg-lb","UserId":"123456789012","Description":"shared"}]},
		{"IpProtocol":"-1","IpRanges":[],"Ipv6Ranges":[],"PrefixListIds":[],"UserIdGroupPairs":[{"GroupId":"sg-1"}]}],
	 "IpPermissionsEgress":[{"IpProtocol":"-1","IpRanges":[{"CidrIp":"0.0.0.0/0"}]}]},
	{"GroupId":"sg-2","IpPermissions":[],"IpPermissionsEgress":[]}]}`

const rules = `{"SecurityGroupRules":[
	{"SecurityGroupRuleId":"sgr-1","GroupId":"sg-1","GroupOwnerId":"123456789012","IsEgress":false,"IpProtocol":"tcp",
	 "FromPort":3000,"ToPort":8025,"ReferencedGroupInfo":{"GroupId":"sg-lb","UserId":"123456789012"},
	 "Description":"shared","Tags":[]},
	{"SecurityGroupRuleId":"sgr-2","GroupId":"sg-1","IsEgress":true,"IpProtocol":"-1","FromPort":-1,"ToPort":-1,"CidrIpv4":"0.0.0.0/0"},
	{"SecurityGroupRuleId":"sgr-3","GroupId":"sg-1","IsEgress":false,"IpProtocol":"-1","FromPort":-1,"ToPort":-1,"CidrIpv6":"2001:DB8::/32"},
	{"SecurityGroupRuleId":"sgr-4","GroupId":"sg-1","IsEgress":false,"IpProtocol":"udp","FromPort":53,"ToPort":53,"PrefixListId":"pl-1"},
	{"SecurityGroupRuleId":"sgr-5","GroupId":"sg-1","IsEgress":false,"IpProtocol":"6","FromPort":22,"ToPort":22,"CidrIpv4":"10.0.0.7/8"},
	{"SecurityGroupRuleId":"sgr-6","GroupId":"sg-3","IsEgress":true,"IpProtocol":"-1","FromPort":-1,"ToPort":-1,"CidrIpv4":"0.0.0.0/0"}]}`

// printed lists groups and rules, one a line.
func printed(all []traces.Snapshot) []string {
	var lines []string
	for _, s := range all {
		lines = append(lines, s.Group)
		for _, r := range s.Rules {
			lines = append(lines, strings.TrimSpace("  "+r.ID+" "+r.Rule.String()+" "+r.Description))
		}
	}
	return lines
}

func TestReadSnapshots(t *testing.T) {
	ofGroups := []string{"sg-1", "tcp 3000-8025 from sg-lb shared", "tcp 3000-8025 from 10.0.0.0/8 people",
		"tcp 3000-8025 from 2001:db8::/32", "tcp 3000-8025 from pl-1", "all traffic from sg-1", "sg-2"}
	ofRules := []string{"sg-1", "sgr-1 tcp 3000-8025 from sg-lb shared", "sgr-3 all traffic from 2001:db8::/32",
		"sgr-4 udp 53-53 from pl-1", "sgr-5 tcp 22-22 from 10.0.0.0/8", "sg-3"}
	inner := func(s string) string { return s[strings.IndexByte(s, '[') : strings.LastIndexByte(s, ']')+1] }
	tests := []struct {
		name, input string
		want        []string
	}{
		{"describe-security-groups", groups, ofGroups},
		{"describe-security-group-rules", rules, ofRules},
		{"--query SecurityGroups", inner(groups), ofGroups},
		{"--query SecurityGroupRules", inner(rules), ofRules},
		{"byte order mark", "\xef\xbb\xbf" + rules, ofRules},
		{"a null NextToken", strings.Replace(rules, "{", `{"NextToken":null,`, 1), ofRules},
		{"both, one after the other: the ids are kept", groups + "\n" + rules,
			[]string{"sg-1", "sgr-1 tcp 3000-8025 from sg-lb shared", "tcp 3000-8025 from 10.0.0.0/8 people",
				"tcp 3000-8025 from 2001:db8::/32", "tcp 3000-8025 from pl-1", "all traffic from sg-1",
				"sgr-3 all traffic from 2001:db8::/32", "sgr-4 udp 53-53 from pl-1", "sgr-5 tcp 22-22 from 10.0.0.0/8", "sg-2", "sg-3"}},
		{"--output yaml", "SecurityGroups:\n- GroupId: sg-1\n  IpPermissions:\n  - FromPort: 80\n    IpProtocol: tcp\n" +
			"    ToPort: 80\n    UserIdGroupPairs:\n    - GroupId: sg-lb\n      Description: shared\n",
			[]string{"sg-1", "tcp 80-80 from sg-lb shared"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := snapshot.ReadSnapshots(strings.NewReader(tt.input))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, printed(got)); diff != "" {
				t.Error(diff)
			}
			if !snapshot.SniffSnapshot([]byte(tt.input)) || !snapshot.SniffSnapshot([]byte(tt.input[:len(tt.input)*2/3])) {
				t.Error("not recognized")
			}
			if snapshot.SniffBindings([]byte(tt.input)) {
				t.Error("taken for bindings")
			}
		})
	}
}

func TestReadSnapshotsErrors(t *testing.T) {
	one := func(fields string) string { return `{"SecurityGroupRules":[{` + fields + `}]}` }
	tests := []struct{ name, input, want string }{
		{"empty", " \n", "it is empty"},
		{"no rules at all", `{"SecurityGroupRules":[]}`, "it names no group"},
		{"another answer", `{"Vpcs":[]}`, "document 1: it has neither SecurityGroupRules nor SecurityGroups"},
		{"second document", groups + `{"x":1}`, "document 2: it has neither"},
		{"a page", `{"SecurityGroupRules":[],"NextToken":"abc"}`, "document 1: it is only a part of the answer: NextToken is set"},
		{"torn", rules[:200], "document 1, at byte"},
		{"text", "SECURITYGROUPRULES\tsg-1", "document 1"},
		{"wrong type", `{"SecurityGroupRules":5}`, "document 1.SecurityGroupRules: is a JSON number"},
		{"wrong type inside", one(`"GroupId":"sg-1","IsEgress":"false"`), "document 1, SecurityGroupRules[0].IsEgress: is a JSON string"},
		{"no group", one(`"IsEgress":false`), "document 1, SecurityGroupRules[0].GroupId: is missing"},
		{"no direction", one(`"GroupId":"sg-1"`), "document 1, SecurityGroupRules[0].IsEgress: is missing"},
		{"no source", one(`"GroupId":"sg-1","IsEgress":false,"IpProtocol":"-1"`), "document 1, SecurityGroupRules[0]: the permission has no source"},
		{"two sources", one(`"GroupId":"sg-1","IsEgress":false,"IpProtocol":"-1","CidrIpv4":"1.0.0.0/8","PrefixListId":"pl-1"`),
			"document 1, SecurityGroupRules[0]: it has two sources, 1.0.0.0/8 and pl-1"},
		{"huge port", one(`"GroupId":"sg-1","IsEgress":false,"IpProtocol":"tcp","FromPort":99999,"ToPort":99999,"CidrIpv4":"1.0.0.0/8"`),
			"document 1, SecurityGroupRules[0]: port 99999 is outside of"},
		{"overflowing port", one(`"GroupId":"sg-1","FromPort":99999999999999999999`), "document 1, SecurityGroupRules[0].FromPort: is a JSON number"},
		{"group without permissions", `{"SecurityGroups":[{"GroupId":"sg-1"}]}`, "document 1, SecurityGroups[0].IpPermissions: is missing"},
		{"group without id", `{"SecurityGroups":[{"IpPermissions":[]}]}`, "document 1, SecurityGroups[0].GroupId: is missing"},
		{"broken permission", `{"SecurityGroups":[{"GroupId":"sg-1","IpPermissions":[{"IpProtocol":"tcp"}]}]}`, "document 1, SecurityGroups[0].IpPermissions: "},
		{"deep nesting", strings.Repeat("[", 200_000), "document 1"},
		{"deep YAML", "a: " + strings.Repeat("[", 200_000), "document 1"},
	}
	for _, tt := range tests {
		_, err := snapshot.ReadSnapshots(strings.NewReader(tt.input))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: the error is %v, want %q", tt.name, err, tt.want)
		}
	}
	if _, err := snapshot.ReadSnapshots(strings.NewReader(`{"SecurityGroups":[],"NextToken":"a"}`)); !errors.Is(err, snapshot.ErrIncomplete) {
		t.Errorf("a page: %v", err)
	}
	broken := errors.New("broken")
	if _, err := snapshot.ReadSnapshots(io.MultiReader(strings.NewReader("{"), failing{broken})); !errors.Is(err, broken) {
		t.Errorf("a broken stream: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestTooLong(t *testing.T) {
	spaces := io.LimitReader(repeat(' '), snapshot.MaxSize+1)
	if _, err := snapshot.ReadSnapshots(spaces); err == nil || !strings.Contains(err.Error(), "longer than 64 MiB") {
		t.Errorf("the error is %v", err)
	}
}

type repeat byte

func (r repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

func TestSniffRefusesOtherFormats(t *testing.T) {
	for _, s := range []string{
		"", "{", "[", "[]", "[[]]", `["GroupId"]`, `{"x":{"SecurityGroupRules":[]}}`, `{"x":["SecurityGroups"]}`, `{"x":"SecurityGroups"}`,
		`{"Records":[{"eventName":"DescribeSecurityGroups"}]}`, `{"history":"v1"}`, `{"level":"info","ts":1,"msg":"apiVersion"}`,
		`{"apiVersion":"v1","items":[{"kind":"Pod"}],"kind":"List"}`, "apiVersion: v1\nkind: Pod\n", "hello: world\n", "SecurityGroups\n",
		`{"kind":"TargetGroupBinding"}`,
	} {
		if snapshot.SniffSnapshot([]byte(s)) {
			t.Errorf("%q is taken for a snapshot", s)
		}
		if snapshot.SniffBindings([]byte(s)) {
			t.Errorf("%q is taken for bindings", s)
		}
	}
}

func FuzzReadSnapshots(f *testing.F) {
	f.Add([]byte(groups))
	f.Add([]byte(rules))
	f.Add([]byte("SecurityGroups:\n- GroupId: sg-1\n  IpPermissions: []\n---\nSecurityGroupRules: []\n"))
	f.Add([]byte("a: &a [x,x]\nb: &b [*a,*a]\nSecurityGroups: [*b]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		snapshot.SniffSnapshot(data)
		all, err := snapshot.ReadSnapshots(strings.NewReader(string(data)))
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, s := range all {
			if s.Group == "" || seen[s.Group] {
				t.Errorf("group %q twice or without id", s.Group)
			}
			seen[s.Group] = true
			for _, r := range s.Rules {
				if r.Protocol == "" || r.Source == "" {
					t.Errorf("%+v", r)
				}
			}
		}
	})
}
