package explain

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
)

// mutation is a history with one thing changed.
type mutation struct {
	what string
	at   int // the call, counted from 0, that it concerns
	h    *traces.History
}

func changesRules(op *traces.Operation) bool {
	return op.Op == traces.AuthorizeSecurityGroupIngress || op.Op == traces.RevokeSecurityGroupIngress
}

// mutations changes one thing of a history's calls on the group, in every way: it drops a call, swaps what two neighbours were,
// moves an end of a rule by one, and changes a result. Neighbours in the same second of a record that does not tell their order
// are not swapped, for the record would be the same. The last call is not dropped, for a behaviour that stops earlier is one.
func mutations(h *traces.History) []mutation {
	var calls []int
	for i := range h.Operations {
		if changesRules(&h.Operations[i]) {
			calls = append(calls, i)
		}
	}
	var out []mutation
	change := func(n int, what string, f func(ops []traces.Operation) []traces.Operation) {
		m := *h
		m.Operations = f(slices.Clone(h.Operations))
		out = append(out, mutation{what, n, &m})
	}
	for n, i := range calls {
		if n+1 < len(calls) {
			change(n, "drop", func(ops []traces.Operation) []traces.Operation {
				var kept []int
				for k := range ops {
					if k != i {
						kept = append(kept, k)
					}
				}
				return traces.Pick(ops, kept)
			})
		}
		for _, end := range []int32{0, 1} {
			change(n, []string{"raise the upper port of", "raise the lower port of"}[end], func(ops []traces.Operation) []traces.Operation {
				p := slices.Clone(ops[i].Permissions)
				p[0].FromPort += end
				p[0].ToPort += max(1-end, p[0].FromPort-p[0].ToPort)
				ops[i].Permissions = p
				return ops
			})
		}
		change(n, "change the result of", func(ops []traces.Operation) []traces.Operation {
			op := &ops[i]
			switch {
			case op.Outcome == traces.Failed:
				op.Outcome, op.Error = traces.Succeeded, ""
			case op.Op == traces.AuthorizeSecurityGroupIngress:
				op.Outcome, op.Error = traces.Failed, duplicate
			default:
				op.Outcome, op.Error = traces.Failed, notFound
			}
			return ops
		})
		if n+1 == len(calls) {
			continue
		}
		a, b := &h.Operations[i], &h.Operations[calls[n+1]]
		if a.Op == b.Op && slices.Equal(a.Permissions, b.Permissions) && a.Error == b.Error || a.Call == b.Call && a.Return == b.Return && b.After < 0 {
			continue
		}
		change(n, "swap with the next", func(ops []traces.Operation) []traces.Operation {
			a, b := &ops[i], &ops[calls[n+1]]
			a.Op, b.Op = b.Op, a.Op
			a.Permissions, b.Permissions = b.Permissions, a.Permissions
			a.Outcome, b.Outcome = b.Outcome, a.Outcome
			a.Error, b.Error = b.Error, a.Error
			a.Process, b.Process = b.Process, a.Process
			a.Caller, b.Caller = b.Caller, a.Caller
			return ops
		})
	}
	return out
}

// walked is a walk as a recorder would have written it, with the rules at the start.
func walked(t *testing.T, w walk, calls int) (*traces.History, Selection) {
	t.Helper()
	k := newWalker(t, w)
	for i := 0; i < 4000 && len(k.ops) < calls; i++ {
		k.step()
	}
	const group, source, label = "sg-1", "sg-lb", "elbv2.k8s.aws/targetGroupBinding=shared"
	permissions := func(list []span) []traces.Permission {
		out := []traces.Permission{}
		for _, r := range list {
			out = append(out, traces.Permission{Rule: traces.Rule{Protocol: "tcp", FromPort: r.lo, ToPort: r.hi, Source: source}, Description: label})
		}
		return out
	}
	h := &traces.History{Inputs: []traces.Input{{Path: "walk", Format: traces.FormatHistory}}}
	from := []traces.Source{{Input: 0, Position: "walk"}}
	for i := range k.ops {
		op := &k.ops[i]
		o := traces.Operation{ID: fmt.Sprint("seq ", i), Process: op.caller, Group: group, Outcome: op.outcome, Error: op.err, Call: op.call,
			Return: op.ret, After: -1, Sources: from}
		ob := traces.Observation{ID: o.ID, Process: op.caller, Group: group, Earliest: op.call, Latest: op.ret, Sources: from}
		switch op.kind {
		case authorize:
			o.Op, o.Permissions = traces.AuthorizeSecurityGroupIngress, permissions(op.rules)
		case revoke:
			o.Op, o.Permissions = traces.RevokeSecurityGroupIngress, permissions(op.rules)
		case describe:
			o.Op = traces.DescribeSecurityGroups
			if op.outcome == traces.Succeeded {
				o.View = permissions(op.rules)
			}
		case register, deregister:
			o.Op, o.Group, o.Targets = traces.RegisterTargets, "", []traces.Target{{ID: "10.0.0.1", Port: op.port}}
			if op.kind == deregister {
				o.Op = traces.DeregisterTargets
			}
		case elect:
			ob.Kind = traces.LeaderElected
		case want:
			ob.Kind, ob.Permissions = traces.Wanted, permissions(op.rules)
		case hit:
			ob.Kind = traces.CacheHit
		case skip:
			ob.Kind, ob.TGB = traces.Skipped, fmt.Sprint("test/port-", op.port)
		case reset:
			ob.Kind, ob.TGB = traces.CheckpointReset, fmt.Sprint("test/port-", op.port)
		}
		if op.foreign {
			o.Caller = &traces.Caller{UserAgent: "aws-cli/2.17"}
		}
		if op.observed() {
			h.Observations = append(h.Observations, ob)
		} else {
			h.Operations = append(h.Operations, o)
		}
	}
	start := traces.Snapshot{Group: group}
	for _, p := range permissions([]span{{k.ports[1], k.ports[w.tgbs]}}) {
		start.Rules = append(start.Rules, traces.IdentifiedPermission{Permission: p})
	}
	sel := Selection{Initial: []traces.Snapshot{start}, HasBindings: true}
	for _, port := range k.ports[1:] {
		sel.Bindings = append(sel.Bindings, traces.Binding{Name: fmt.Sprint("test/port-", port), Needs: []traces.Need{{Protocol: "tcp", Port: port, Source: source}}})
	}
	return h, sel
}

// changed counts what became of the changes of one recording.
type changed struct {
	name               string
	all, no, undecided int
	legal              []string // those that are explained, with what explains them
}

// judgeMutations explains every change of a recording.
func judgeMutations(t *testing.T, name, design, env string, h *traces.History, sel Selection) *changed {
	t.Helper()
	c := &changed{name: name}
	for _, m := range mutations(h) {
		list := Subjects(m.h, sel)
		if len(list) != 1 {
			t.Fatalf("%s, %s call %d: %d subjects", name, m.what, m.at+1, len(list))
		}
		r := explained(t, list[0], design, env, Options{})
		c.all++
		switch r.Verdict {
		case DoesNot:
			c.no++
		case Unknown:
			c.undecided++
		default:
			c.legal = append(c.legal, fmt.Sprintf("%s | %s call %d | %s", name, m.what, m.at+1, reason(r, m.at)))
		}
	}
	return c
}

// reason is what an explanation infers just before the changed call, and after the call before that: what must have been
// true for the change to be legal.
func reason(r *Result, at int) string {
	var why []string
	n := 0
	for _, l := range r.Story {
		call := l.Seen && (strings.HasPrefix(l.Text, "authorize") || strings.HasPrefix(l.Text, "revoke"))
		switch {
		case call && n >= at:
			return strings.Join(append(why, l.Text), "; then ")
		case call:
			n++
			why = nil
		case !l.Seen && len(why) < 4:
			why = append(why, strings.SplitN(l.Text, "; wanted is", 2)[0])
		}
	}
	return strings.Join(append(why, "the capture ends"), "; then ")
}

// TestMutationsAreRejected changes recorded runs and walks in every way. More than 95 of 100 changes must be noticed; those that
// are not are listed in docs/explain.md, each with what explains it, for each is a behaviour of the specification.
func TestMutationsAreRejected(t *testing.T) {
	var all []*changed
	for _, c := range []struct{ capture, environment string }{
		{"incident-2026-08-28", "old-reads"},
		{"real-run-incident", "old-reads"},
		{"real-run-incident/history.ndjson", "old-reads"},
		{"real-run-incident/controller.log", "old-reads"},
		{"real-run-control", "fresh-reads"},
		{"real-run-control/history.ndjson", "fresh-reads"},
		{"real-run-control/controller.log", "fresh-reads"},
		{"real-run-restart", "fresh-reads"},
		{"real-run-restart/history.ndjson", "fresh-reads"},
		{"real-run-restart/controller.log", "fresh-reads"},
		{"real-run-restart/cloudtrail.json", "fresh-reads"},
	} {
		if sampled && c.capture != "real-run-incident/history.ndjson" {
			continue
		}
		h, _ := read(t, c.capture)
		all = append(all, judgeMutations(t, c.capture, "v3.4.0", c.environment, h, Selection{}))
	}
	for i, w := range []walk{
		{design: "v3.4.0", env: "fresh-reads"}, {design: "v3.4.0", env: "old-reads", targets: true}, {design: "v2.7.2", env: "old-reads"},
		{design: "confirm-authorize", env: "old-reads", targets: true}, {design: "read-your-writes", env: "old-reads"},
		{design: "no-cache", env: "older-reads"}, {design: "v3.4.0", env: "crash"}, {design: "v3.4.0", env: "two-workers-old-reads"},
		{design: "v3.4.0", env: "default-vpc"}, {design: "v3.4.0", env: "external-revokes", names: true},
		{design: "v3.4.0", env: "old-reads", names: true, told: true},
	} {
		if sampled && i > 0 {
			break
		}
		w.looks, w.seed = true, uint64(i+1)
		if w.tgbs = 3; w.env == "two-workers-old-reads" {
			w.tgbs = 2
		}
		h, sel := walked(t, w, 30)
		name := fmt.Sprintf("walk %d of %s in %s", w.seed, w.design, w.env)
		if s := Subjects(h, sel); len(s) != 1 || explained(t, s[0], w.design, w.env, Options{}).Verdict != Explains {
			t.Fatalf("%s is not explained as it is", name)
		}
		all = append(all, judgeMutations(t, name, w.design, w.env, h, sel))
	}
	total := &changed{name: "all"}
	for _, c := range all {
		total.all, total.no, total.undecided = total.all+c.all, total.no+c.no, total.undecided+c.undecided
	}
	if total.no*100 <= total.all*95 {
		t.Errorf("%d of %d changes are noticed", total.no, total.all)
	}
	if total.undecided > 0 {
		t.Errorf("%d changes are not decided", total.undecided)
	}
	if !sampled {
		writeMutations(t, append(all, total))
	}
}

// writeMutations compares the section of docs/explain.md with what became of the changes.
func writeMutations(t *testing.T, all []*changed) {
	t.Helper()
	var b strings.Builder
	b.WriteString("\n| recording | changes | rejected |\n|---|---:|---:|\n")
	for _, c := range all {
		fmt.Fprintf(&b, "| %s | %d | %d |\n", c.name, c.all, c.no)
	}
	b.WriteString("\n| recording | change | what explains it |\n|---|---|---|\n")
	for _, c := range all {
		for _, l := range c.legal {
			fmt.Fprintf(&b, "| %s |\n", l)
		}
	}
	path := filepath.Join("..", "..", "..", "docs", "explain.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- mutations: written by go test ./checker/conform/explain -run Mutations -update -->\n", "<!-- end of mutations -->\n"
	from, to := bytes.Index(text, []byte(begin)), bytes.Index(text, []byte(end))
	if from < 0 || to < from {
		t.Fatalf("%s lacks the section of mutations", path)
	}
	from += len(begin)
	if *update {
		text = slices.Concat(text[:from], []byte(b.String()), text[to:])
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(text[from:to]), b.String()); diff != "" {
		t.Errorf("%s (-want +got, see -update):\n%s", path, diff)
	}
}
