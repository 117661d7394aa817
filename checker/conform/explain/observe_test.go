package explain

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
	"linearize.example/traces/capture"
)

// told is a subject of some ports whose operations came one after the other; with inner, the only process records what it does
// under the mutex, and its describes.
func told(ports []int32, initial []span, inner bool, ops ...operation) *Subject {
	s := &Subject{Group: "sg-1", Protocol: "tcp", Source: "sg-lb", ports: ports, initial: [][]span{initial}, only: true}
	for i, op := range ops {
		op.call = traces.Instant(i+1) * traces.Instant(time.Second)
		op.ret, op.after, op.certain, op.at = op.call, -1, true, fmt.Sprint(i+1)
		if op.outcome == traces.Pending {
			op.outcome = traces.Succeeded
		}
		if !slices.Contains(s.callers, op.caller) {
			s.callers = append(s.callers, op.caller)
		}
		s.ops = append(s.ops, op)
	}
	if inner {
		s.inner, s.describes = s.callers, true
	}
	s.live()
	return s
}

func TestObservationsDecide(t *testing.T) {
	one, both := []span{{3000, 3000}}, []span{{3000, 3008}}
	throttled := operation{kind: authorize, rules: one, outcome: traces.Failed, err: "RequestLimitExceeded"}
	granted := operation{kind: authorize, rules: one}
	wanted := operation{kind: want, rules: one}
	looked := func(rules []span) operation { return operation{kind: describe, rules: rules} }
	skipped := operation{kind: skip, port: 3000, tgb: "api"}
	by := func(op operation, caller string) operation { op.caller = caller; return op }
	for _, c := range []struct {
		name        string
		environment string
		s           *Subject
		want        Verdict
	}{
		{"a reconcile that failed is not skipped", "fresh-reads",
			told([]int32{3000}, nil, true, wanted, looked(nil), throttled, skipped), DoesNot},
		{"unless it was made again", "fresh-reads",
			told([]int32{3000}, nil, true, wanted, looked(nil), throttled, wanted, operation{kind: hit}, granted, skipped), Explains},
		{"or may have been, with nothing wanted", "fresh-reads",
			told([]int32{3000}, nil, false, throttled, skipped), Explains},
		{"a checkpoint is emptied after a skip", "fresh-reads",
			told([]int32{3000}, one, false, skipped, operation{kind: reset, port: 3000}, skipped), Explains},
		{"and the reconcile that follows is seen", "fresh-reads",
			told([]int32{3000}, one, true, wanted, looked(one), skipped, operation{kind: reset, port: 3000}, skipped), DoesNot},
		{"what is wanted is what is granted", "fresh-reads",
			told([]int32{3000, 3008}, nil, true, operation{kind: want, rules: both}, looked(nil), granted), DoesNot},
		{"what is wanted comes before", "fresh-reads",
			told([]int32{3000}, nil, true, wanted, looked(nil), granted), Explains},
		{"and is not left out", "fresh-reads",
			told([]int32{3000}, nil, true, looked(nil), granted), DoesNot},
		{"there is nothing in the cache after a change", "fresh-reads",
			told([]int32{3000}, nil, true, wanted, looked(nil), granted, wanted, operation{kind: hit}), DoesNot},
		{"but what an error left there", "fresh-reads",
			told([]int32{3000}, nil, true, wanted, looked(nil), throttled, wanted, operation{kind: hit}), Explains},
		{"one controller does not go on when another was elected", "old-reads",
			told([]int32{3000}, nil, false, by(throttled, "a"), by(operation{kind: elect}, "b"), by(granted, "a")), DoesNot},
		{"but in an environment in which it finishes what it had begun", "leader-change",
			told([]int32{3000, 3008}, both, false, by(operation{kind: authorize, rules: one}, "a"), by(operation{kind: elect}, "b"),
				by(operation{kind: revoke, rules: both}, "a")), Explains},
		{"and takes up nothing new there", "leader-change",
			told([]int32{3000}, nil, false, by(throttled, "a"), by(operation{kind: elect}, "b"), by(operation{kind: runs}, "a"), by(granted, "b")), DoesNot},
		{"the same controller does not start anew in between", "fresh-reads",
			told([]int32{3000}, one, false, by(operation{kind: runs}, "a"), by(operation{kind: elect}, "b"), by(operation{kind: runs}, "a")), DoesNot},
		{"another one does", "fresh-reads",
			told([]int32{3000}, one, false, by(operation{kind: runs}, "a"), by(operation{kind: elect}, "b"), by(operation{kind: runs}, "b")), Explains},
	} {
		if r := explained(t, c.s, "v3.4.0", c.environment, Options{}); r.Verdict != c.want {
			t.Errorf("%s: %s, want %s; %d of %d, then not %s: %q %s", c.name, r.Verdict, c.want, r.Done, r.Of, r.Stuck, r.Why, r.Bound)
		}
	}
}

// bindings are TGBs that need one port each.
func bindings(source string, ports map[string]int32) []traces.Binding {
	var out []traces.Binding
	for name, port := range ports {
		out = append(out, traces.Binding{Name: name, Needs: []traces.Need{{Protocol: "tcp", Port: port, Source: source}}})
	}
	return out
}

// TestBindingsTellWhoWasSkipped: with the TGBs' ports, the new leader's skips are steps of those TGBs.
func TestBindingsTellWhoWasSkipped(t *testing.T) {
	h, _ := read(t, "incident-2026-08-28")
	sel := Selection{HasBindings: true, Bindings: bindings("sg-014f7b94f96fe2d8d", map[string]int32{
		"test/k8s-test-frontend-3208949aed": 8025, "test/k8s-app2-0000000022": 3000, "test/k8s-app3-0000000033": 3008})}
	s := Subjects(h, sel)[0]
	if !s.only || s.Operations() != 11 || s.Observations() != 5 {
		t.Fatalf("only %v, %d operations, %d observations; want true, 11 and 3 skips and 2 of unknown TGBs", s.only, s.Operations(), s.Observations())
	}
	r := explained(t, s, "v3.4.0", "old-reads", Options{})
	if r.Verdict != Explains {
		t.Fatalf("%s: %d of %d, then not %s: %s", r.Verdict, r.Done, r.Of, r.Stuck, r.Why)
	}
	var skips []string
	for _, l := range r.Story {
		if l.Seen && strings.HasSuffix(l.Text, "is skipped, for nothing has changed") {
			skips = append(skips, l.ID+": "+strings.TrimSuffix(l.Text, " is skipped, for nothing has changed"))
		}
	}
	want := []string{"controller.log:1: the TGB of port 8025 (test/k8s-test-frontend-3208949aed)",
		"controller.log:3: the TGB of port 3000 (test/k8s-app2-0000000022)", "controller.log:5: the TGB of port 3008 (test/k8s-app3-0000000033)"}
	if diff := cmp.Diff(want, skips); diff != "" {
		t.Errorf("skips (-want +got)\n%s", diff)
	}
	if r := explained(t, s, "v3.4.0", "fresh-reads", Options{}); r.Verdict != DoesNot {
		t.Errorf("fresh-reads: %s", r.Verdict)
	}
}

// TestLinesKeepTheirOrder: within one second, what a log tells comes in the order of its lines.
func TestLinesKeepTheirOrder(t *testing.T) {
	const (
		at    = `{"level":"info","ts":"2026-11-30T07:28:28Z","msg":`
		perms = `,"securityGroupID":"sg-0aaa1111bbbb2222c","permission":[{"FromPort":3000,"IpProtocol":"tcp","ToPort":3000,"UserIdGroupPairs":[{"Description":"elbv2.k8s.aws/targetGroupBinding=shared","GroupId":"sg-0ddd3333eeee4444f"}]}]}`
		end   = `,"securityGroupID":"sg-0aaa1111bbbb2222c"}`
		tgb   = `,"tgb":{"name":"api","namespace":"test"}}`
	)
	lines := []string{
		`"Skipping targetgroupbinding reconcile"` + tgb, `"authorizing securityGroup ingress"` + perms, `"authorized securityGroup ingress"` + end,
		`"Skipping targetgroupbinding reconcile"` + tgb, `"TGB checkpoint reset"` + tgb, `"revoking securityGroup ingress"` + perms,
		`"revoked securityGroup ingress"` + end, `"Skipping targetgroupbinding reconcile"` + tgb,
	}
	path := filepath.Join(t.TempDir(), "controller.log")
	if err := os.WriteFile(path, []byte(at+strings.Join(lines, "\n"+at)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := capture.Read(context.Background(), []string{path}, nil, capture.Options{Skew: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range []map[string]int32{nil, {"test/api": 3000}} {
		sel := Selection{HasBindings: known != nil, Bindings: bindings("sg-0ddd3333eeee4444f", known)}
		s := Subjects(traces.Merge(c.History, time.Second), sel)[0]
		var chain []string
		for i := range s.ops {
			n := 0
			for a := s.ops[i].after; a >= 0; a = s.ops[a].after {
				n++
			}
			chain = append(chain, fmt.Sprint(n, " ", kindWords[s.ops[i].kind]))
		}
		slices.Sort(chain)
		want := []string{"0 skip", "1 authorize", "2 skip", "3 empty the checkpoint of", "4 revoke", "5 skip"}
		if known == nil {
			want = []string{"0 lead", "1 authorize", "2 lead", "3 lead", "4 revoke", "5 lead"}
		}
		if diff := cmp.Diff(want, chain); diff != "" {
			t.Errorf("TGBs %v (-want +got)\n%s", known, diff)
		}
	}
}

func TestThin(t *testing.T) {
	lead := func(caller string) operation { return operation{kind: runs, caller: caller} }
	s := told([]int32{3000}, nil, false, lead("a"), lead("a"), lead("a"), lead("b"), lead("b"), lead("b"), operation{kind: authorize}, lead("b"))
	for i := range s.ops {
		s.ops[i].after = i - 1
	}
	s.thin()
	var got []string
	for _, op := range s.ops {
		got = append(got, fmt.Sprint(op.at, " after ", op.after))
	}
	want := []string{"1 after -1", "3 after 0", "4 after 1", "6 after 2", "7 after 3", "8 after 4"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
