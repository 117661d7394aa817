package report

import (
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"linearize.example/traces"
)

func TestRedactTexts(t *testing.T) {
	h := &traces.History{
		Operations: []traces.Operation{{Process: "lbc-irsa/1756371234567890123", Group: "sg-0ddd", TargetGroup: "arn:aws:elasticloadbalancing:us-east-1:111122223333:targetgroup/k8s-test-mailpit/0123456789abcdef",
			Caller: &traces.Caller{Role: "lbc-irsa", Session: "1756371234567890123", SourceAddress: "ec2.amazonaws.com"}}},
		Observations: []traces.Observation{{TGB: "test/mailpit", Process: "aws-load-balancer-controller-7d9f8c-abcde"}},
		Inputs:       []traces.Input{{Path: "captures/2026/cloudtrail.json.gz"}},
	}
	tests := []struct{ in, want string }{
		{"", ""},
		{"revoke tcp 3000-3008 from sg-014f7b94f96fe2d8d", "revoke tcp 3000-3008 from sg-1"},
		{"sg-0a, sg-0b; sgr-0a (sg-0b)", "sg-1, sg-2; sgr-1 (sg-2)"},
		{"tcp 80 from 10.0.0.0/8, 10.0.0.0 and 0.0.0.0/0", "tcp 80 from ip-1/8, ip-1 and 0.0.0.0/0"},
		{"from 2001:db8::/32, ::/0, fe80::1. At 09:56:01Z", "from ip-1/32, ::/0, ip-2. At 09:56:01Z"},
		{"10.0.1.10:8025", "ip-1:8025"},
		{"[2001:db8::1]:8025", "[ip-1]:8025"},
		{"999.1.1.1 and 3.4.0", "999.1.1.1 and 3.4.0"},
		{"arn:aws:sts::111122223333:assumed-role/lbc-irsa/1756371234567890123 in 111122223333", "arn:aws:sts::acct-1:assumed-role/role-1/session-1 in acct-1"},
		{"arn:aws:iam::111122223333:role/path/other", "arn:aws:iam::acct-1:role/role-1"},
		{"arn:aws-cn:elasticloadbalancing:cn-north-1:111122223333:targetgroup/k8s-test-mailpit/0123456789abcdef.",
			"arn:aws-cn:elasticloadbalancing:cn-north-1:acct-1:targetgroup/tg-1."},
		{"arn:aws:ec2:us-east-1:111122223333:security-group/sg-0ddd", "arn:aws:ec2:us-east-1:acct-1:security-group/sg-1"},
		{"arn:aws:iam::111122223333:oidc-provider/oidc.eks.us-east-1.amazonaws.com/id/ABCDEF", "arn:aws:iam::acct-1:oidc-provider/host-1/id/ABCDEF"},
		{"AKIAIOSFODNN7EXAMPLE and AROAIOSFODNN7EXAMPLE:jane@corp.example", "key-1 and key-2:session-1"},
		{"skipped test/mailpit; mailpit-7d9f again; namespace test", "skipped tgb-1; tgb-1-7d9f again; namespace ns-1"},
		{"the latest testing", "the latest testing"},
		{"cloudtrail.json.gz:12 of captures/2026/cloudtrail.json.gz record 6", "file-1.json.gz:12 of file-1.json.gz record 6"},
		{"RequestID: 1b2c3d4e-0000-4000-8000-00000000000a, api error InvalidPermission.NotFound", "RequestID: event-1, api error InvalidPermission.NotFound"},
		{"elbv2.k8s.aws/v3.4.0 aws-sdk-go-v2/1.41.0 os/linux", "elbv2.k8s.aws/v3.4.0 aws-sdk-go-v2/1.41.0 os/linux"},
		{"i-0123456789abcdef0 ip-10-0-1-2.ec2.internal my-lb-123.elb.us-east-1.amazonaws.com ec2.amazonaws.com", "i-1 host-1 host-2 ec2.amazonaws.com"},
		{"in aws-load-balancer-controller-7d9f8c-abcde by lbc-irsa/1756371234567890123", "in process-1 by role-1/session-1"},
		{"k8s-test-mailpit", "tg-1"},
	}
	for _, tt := range tests {
		d := NewRedactor(h, nil)
		if got := d.text(tt.in); got != tt.want {
			t.Errorf("%q\n got %q\nwant %q", tt.in, got, tt.want)
		}
	}
}

func TestRedactedNamesDoNotCollide(t *testing.T) {
	r := &Report{Summary: "sg-1 and sg-0abc and sg-2"}
	if got, want := NewRedactor(nil, nil).Report(r).Summary, "sg-3 and sg-4 and sg-5"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// originals are names of every class that a report or history can hold, made by chance.
type originals struct {
	*rand.Rand
	all []string
}

func (o *originals) digits(alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[o.Intn(len(alphabet))]
	}
	return string(b)
}

func (o *originals) keep(s string) string {
	o.all = append(o.all, s)
	return s
}

const hexDigits, letters, decimal = "0123456789abcdef", "abcdefghijklmnopqrstuvwxyz", "0123456789"

func (o *originals) id(prefix string) string { return o.keep(prefix + "-0" + o.digits(hexDigits, 16)) }
func (o *originals) word() string            { return o.keep("x" + o.digits(letters, 9)) }
func (o *originals) account() string         { return o.keep("7" + o.digits(decimal, 11)) }
func (o *originals) address() string {
	return o.keep(fmt.Sprintf("10.%d.%d.%d", 100+o.Intn(100), 100+o.Intn(100), 100+o.Intn(100)))
}
func (o *originals) address6() string {
	return o.keep("2001:db8:" + "1" + o.digits(hexDigits, 3) + "::5")
}

// history is a history that holds one name of each class.
func (o *originals) history() *traces.History {
	role, session, account, tgb := o.word(), o.word(), o.account(), "ns"+o.digits(letters, 6)+"/"+o.word()
	c := &traces.Caller{Role: role, Session: session, Account: account, AccessKeyID: o.keep("ASIA" + strings.ToUpper(o.digits(letters, 16))),
		UserAgent: "elbv2.k8s.aws/v3.4.0", SourceAddress: o.address()}
	rule := traces.Rule{Protocol: "tcp", FromPort: 80, ToPort: 90, Source: o.address() + "/24"}
	event := o.keep(o.digits(hexDigits, 8) + "-1111-4111-8111-" + o.digits(hexDigits, 12))
	tg := "arn:aws:elasticloadbalancing:us-east-1:" + account + ":targetgroup/" + o.word() + "/" + o.keep(o.digits(hexDigits, 16))
	return &traces.History{
		Operations: []traces.Operation{{ID: event, EventID: event, RequestID: o.keep(o.digits(hexDigits, 8) + "-2222-4111-8111-" + o.digits(hexDigits, 12)),
			Process: role + "/" + session, Op: traces.AuthorizeSecurityGroupIngress, Group: o.id("sg"),
			Permissions: []traces.Permission{{Rule: rule, Description: o.keep("laptop " + o.digits(letters, 9))},
				{Rule: traces.Rule{Protocol: "tcp", Source: o.id("sg")}, Description: "elbv2.k8s.aws/targetGroupBinding=shared"}},
			RuleIDs: []string{o.id("sgr")}, Granted: []traces.IdentifiedPermission{{ID: o.id("sgr")}},
			TargetGroup: tg, Targets: []traces.Target{{ID: o.address(), Port: 8025}, {ID: o.id("i")}}, Caller: c,
			Error: "", Outcome: traces.Succeeded},
			{Process: role + "/" + session, Op: traces.RevokeSecurityGroupIngress, Outcome: traces.Failed, Error: "InvalidPermission.NotFound", Caller: c}},
		Observations: []traces.Observation{{Kind: traces.Skipped, TGB: tgb, Process: o.keep("pod-" + o.digits(letters, 9)),
			Text: "skipped " + tgb + ": " + o.address6() + " in " + o.id("vpc")}},
		Inputs: []traces.Input{{Path: o.keep("home/" + o.digits(letters, 9) + "/" + o.digits(letters, 9) + ".json"), Format: "history", Rejections: []string{"line 1: " + o.id("subnet")},
			Notes: []traces.Note{{Kind: "truncated-capture", Text: "account " + o.account()}}}},
		Header: map[string]string{"recorder": o.address()},
	}
}

// report puts each name of a history into each string of a report that comes from a capture.
func (o *originals) report(h *traces.History) *Report {
	c, ob := h.Operations[0].Caller, h.Observations[0]
	group := h.Operations[0].Group
	all := strings.Join(o.all, ", ") + "; arn:aws:sts::" + c.Account + ":assumed-role/" + c.Role + "/" + c.Session
	r := hostileReport(all)
	r.Inputs[0].Path, r.Inputs[0].Format = h.Inputs[0].Path, "history"
	g := &r.Groups[0]
	g.GroupID = group
	g.Linearity.Result, g.Linearity.Mutations = "not-linearizable", "linearizable"
	g.Properties[2].Name = "tight"
	g.Properties[0].Meaning = "never-empty"
	g.Properties[1].Promise.Release = "v3.4.0"
	g.Findings[0].Kind = "second-writer"
	g.Timeline[1].Kind = "observation"
	g.Timeline[1].Process = ob.Process
	g.Processes = []Process{{ID: h.Operations[0].Process, Role: c.Role, Session: c.Session, AccessKeyID: c.AccessKeyID,
		SourceAddress: c.SourceAddress, UserAgent: c.UserAgent, Release: "v3.4.0"}}
	g.Visualization = "<script>\nconst data = {\"a\":[\"" + all + "\"]}\n</script>"
	r.Options[0].Name, r.Options[0].Value = "--bindings", o.keep("etc/"+o.digits(letters, 9)+".yaml")
	return r
}

func TestRedactionLeavesNoOriginal(t *testing.T) {
	for seed := range int64(40) {
		o := &originals{Rand: rand.New(rand.NewSource(seed))}
		h := o.history()
		before := fmt.Sprintf("%#v", h)
		r := o.report(h)
		d := NewRedactor(h, nil)
		redacted, history := d.Report(r), d.History(h)
		outputs := map[string]string{"history": fmt.Sprintf("%#v %#v", history, *history.Operations[0].Caller)}
		for name, write := range writers {
			outputs[name] = string(render(t, write, redacted))
		}
		for name, out := range outputs {
			for _, original := range o.all {
				if strings.Contains(out, original) {
					t.Fatalf("seed %d: %s holds %q", seed, name, original)
				}
			}
		}
		if after := fmt.Sprintf("%#v", h); after != before {
			t.Fatal("the history was changed in place")
		}
		if diff := cmp.Diff(redacted, NewRedactor(h, nil).Report(r)); diff != "" {
			t.Fatalf("not deterministic: %s", diff)
		}
		if a, b := history.Operations[0].Process, redacted.Groups[0].Processes[0].ID; a != b {
			t.Fatalf("the process is %q in the history and %q in the report", a, b)
		}
		if history.Operations[0].Caller != history.Operations[1].Caller {
			t.Fatal("one caller became two")
		}
	}
}

// What says what happened, and not to whom, stays.
func TestRedactionKeepsTheStory(t *testing.T) {
	r := violatedReport()
	got := string(render(t, writers["txt"], NewRedactor(nil, nil).Report(r)))
	for _, s := range []string{"violated", "39 m 47 s", "tcp 3000-3008", "InvalidPermission.NotFound", "09:56:00–03", "v3.4.0",
		"elbv2.k8s.aws/v3.4.0", "lbc-1", "record", "8025", "sg-1"} {
		if !strings.Contains(got, s) {
			t.Errorf("%q is gone:\n%s", s, got)
		}
	}
	if want := violatedReport(); !reflect.DeepEqual(r, want) {
		t.Error("the report was changed in place")
	}
}
