package traces_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
)

// The inputs of a capture with one source of each kind.
const (
	history = iota
	log
	trail
	otherTrail
	otherLog
)

// seen is one record of a call, at seconds after ten o'clock.
type seen struct {
	input    int
	position string
	call     float64
	ret      float64
	change   func(*traces.Operation)
}

func merged(t *testing.T, records ...seen) *traces.History {
	t.Helper()
	start := traces.At(time.Date(2026, 8, 28, 10, 0, 0, 0, time.UTC))
	h := &traces.History{Inputs: []traces.Input{{Path: "h", Format: traces.FormatHistory, Used: 9}, {Path: "l", Format: traces.FormatControllerLog, Used: 9},
		{Path: "c", Format: "S3 log file", Used: 9}, {Path: "c2", Format: "S3 log file", Used: 9}, {Path: "l2", Format: traces.FormatControllerLog, Used: 9}}}
	for i, r := range records {
		op := traces.Operation{ID: fmt.Sprint(i), Op: traces.AuthorizeSecurityGroupIngress, Group: "sg-1", After: -1, Outcome: traces.Succeeded,
			Process: []string{"lbc-1", "pod", "lbc/s", "lbc/s", "pod"}[r.input], Permissions: []traces.Permission{{Rule: traces.Rule{Protocol: "tcp", FromPort: 80, ToPort: 80, Source: "sg-lb"}}},
			Call: start.Add(time.Duration(r.call * 1e9)), Return: start.Add(time.Duration(r.ret * 1e9)), Sources: []traces.Source{{Input: r.input, Position: r.position}}}
		if r.change != nil {
			r.change(&op)
		}
		h.Operations = append(h.Operations, op)
	}
	out := traces.Merge(h, time.Second)
	for i, r := range records {
		if len(h.Operations[i].Sources) != 1 || h.Operations[i].ID != fmt.Sprint(i) {
			t.Errorf("record %d (%v) was edited in place", i, r)
		}
	}
	return out
}

// lines prints the operations: "0 pod 1s..2s ok 2 sources".
func lines(h *traces.History) []string {
	start := traces.At(time.Date(2026, 8, 28, 10, 0, 0, 0, time.UTC))
	var all []string
	for _, op := range h.Operations {
		s := fmt.Sprintf("%s %s %v..%v ", op.ID, op.Process, op.Call.Sub(start), op.Return.Sub(start))
		switch op.Outcome {
		case traces.Succeeded:
			s += "ok"
		case traces.Failed:
			s += op.Error
		default:
			s += "?"
		}
		if op.Unclear {
			s += " unclear"
		}
		if op.After >= 0 {
			s += " after " + h.Operations[op.After].ID
		}
		all = append(all, fmt.Sprintf("%s %d sources", s, len(op.Sources)))
	}
	return all
}

func fails(code string) func(*traces.Operation) {
	return func(op *traces.Operation) { op.Outcome, op.Error = traces.Failed, code }
}

func pending(op *traces.Operation) { op.Outcome = traces.Pending }

func event(id string) func(*traces.Operation) {
	return func(op *traces.Operation) { op.EventID, op.RequestID = id, "r-"+id }
}

func after(i int) func(*traces.Operation) { return func(op *traces.Operation) { op.After = i } }

func unclear(op *traces.Operation) { op.Unclear, op.Permissions = true, nil }

func ports(from, to int32) func(*traces.Operation) {
	return func(op *traces.Operation) { op.Permissions[0].FromPort, op.Permissions[0].ToPort = from, to }
}

func TestMerge(t *testing.T) {
	cases := []struct {
		name    string
		records []seen
		want    []string
	}{
		{"three observers of one call", []seen{{trail, "record 1", 0, 3, event("e")}, {log, "line 1", 1, 3, nil}, {history, "line 2", 1.2, 1.3, nil}},
			[]string{"2 lbc-1 1.2s..1.3s ok 3 sources"}},
		{"two calls, each seen twice", []seen{{log, "line 1", 1, 2, nil}, {log, "line 3", 8, 9, nil}, {trail, "record 2", 7, 10, event("f")}, {trail, "record 1", 0, 3, event("e")}},
			[]string{"0 pod 1s..2s ok 2 sources", "1 pod 8s..9s ok 2 sources"}},
		{"two records of one source are two calls", []seen{{trail, "record 1", 0, 3, event("e")}, {trail, "record 2", 0, 3, event("f")}},
			[]string{"0 lbc/s 0s..3s ok 1 sources", "1 lbc/s 0s..3s ok 1 sources"}},
		{"clocks a second apart", []seen{{trail, "record 1", 0, 3, nil}, {log, "line 1", 3.9, 4, nil}}, []string{"1 pod 3.9s..4s ok 2 sources"}},
		{"clocks further apart", []seen{{trail, "record 1", 0, 3, nil}, {log, "line 1", 4.5, 5, nil}},
			[]string{"0 lbc/s 0s..3s ok 1 sources", "1 pod 4.5s..5s ok 1 sources"}},
		{"other rules", []seen{{trail, "record 1", 0, 3, ports(80, 90)}, {log, "line 1", 1, 2, nil}},
			[]string{"0 lbc/s 0s..3s ok 1 sources", "1 pod 1s..2s ok 1 sources"}},
		{"results that contradict each other", []seen{{trail, "record 1", 0, 3, fails("InvalidPermission.Duplicate")}, {log, "line 1", 1, 2, nil}},
			[]string{"0 lbc/s 0s..3s InvalidPermission.Duplicate 1 sources", "1 pod 1s..2s ok 1 sources"}},
		{"the client timed out, AWS did not", []seen{{log, "line 1", 1, 2, fails("context deadline exceeded")}, {trail, "record 1", 0, 3, nil}},
			[]string{"0 pod 1s..2s ok 2 sources"}},
		{"the log has no result", []seen{{log, "line 1", 1, 2, pending}, {trail, "record 1", 0, 3, fails("InvalidPermission.NotFound")}},
			[]string{"0 pod 1s..2s InvalidPermission.NotFound 2 sources"}},
		{"an unknown error is the known one", []seen{{log, "line 1", 1, 2, fails("unknown")}, {trail, "record 1", 0, 3, fails("UnauthorizedOperation")}},
			[]string{"0 pod 1s..2s UnauthorizedOperation 2 sources"}},
		{"a success in the log, a client's error in the trail", []seen{{log, "line 1", 1, 2, nil}, {trail, "record 1", 0, 3, fails("unknown")}},
			[]string{"0 pod 1s..2s ok 2 sources"}},
		{"request ids that differ", []seen{{log, "line 1", 1, 2, event("")}, {trail, "record 1", 0, 3, event("e")}},
			[]string{"1 lbc/s 0s..3s ok 1 sources", "0 pod 1s..2s ok 1 sources"}},
		{"a log that was given twice", []seen{{log, "line 1", 1, 2, nil}, {otherLog, "line 1", 1, 2, nil}}, []string{"0 pod 1s..2s ok 1 sources"}},
		{"the order of the log", []seen{{log, "line 1", 1, 2, nil}, {log, "line 3", 1, 2, after(0)}, {trail, "record 1", 0, 3, event("e")}, {trail, "record 2", 0, 3, event("f")}},
			[]string{"0 pod 1s..2s ok 2 sources", "1 pod 1s..2s ok after 0 2 sources"}},
		{"an order that the intervals contradict", []seen{{log, "line 1", 5, 6, nil}, {log, "line 3", 1, 2, after(0)}},
			[]string{"1 pod 1s..2s ok 1 sources", "0 pod 5s..6s ok 1 sources"}},
		{"the trail lacks the request", []seen{{log, "line 1", 1, 2, nil}, {trail, "record 1", 0, 3, unclear}}, []string{"0 pod 1s..2s ok 2 sources"}},
		{"the log lacks the request", []seen{{log, "line 1", 1, 2, unclear}, {trail, "record 1", 0, 3, nil}}, []string{"0 pod 1s..2s ok 2 sources"}},
		{"the trail lacks one request of two", []seen{{log, "line 1", 1, 2, nil}, {log, "line 3", 1, 2, ports(80, 90)}, {trail, "record 1", 0, 3, unclear}, {trail, "record 2", 0, 3, nil}},
			[]string{"0 pod 1s..2s ok 2 sources", "1 pod 1s..2s ok 2 sources"}},
		{"a record without request and without a like", []seen{{log, "line 1", 1, 2, nil}, {trail, "record 1", 0, 3, unclear}, {trail, "record 2", 0, 3, nil}},
			[]string{"1 pod 0s..3s ok unclear 1 sources", "0 pod 1s..2s ok 2 sources"}},
		{"unknown beginnings", []seen{{log, "line 1", 1, 2, func(op *traces.Operation) { op.Call = traces.Beginning }}, {trail, "record 1", 0, 3, nil}},
			[]string{"0 pod 0s..2s ok 2 sources"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := lines(merged(t, c.records...))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error("-want +got\n" + diff)
			}
		})
	}
}

// TestMergeKeeps: a joined operation has what each source knew, and the trail's second.
func TestMergeKeeps(t *testing.T) {
	caller := &traces.Caller{Role: "lbc", UserAgent: "elbv2.k8s.aws/v3.4.0"}
	granted := []traces.IdentifiedPermission{{ID: "sgr-1"}}
	h := merged(t, seen{log, "line 1", 1, 3, func(op *traces.Operation) { op.Caller = &traces.Caller{UserAgent: "elbv2.k8s.aws/v3.4.0"} }},
		seen{trail, "record 1", 0, 2.5, func(op *traces.Operation) {
			op.EventID, op.RequestID, op.Caller, op.Granted = "e", "r", caller, granted
			op.Revoked, op.Unknown, op.View = granted, op.Permissions, op.Permissions
		}})
	op := h.Operations[0]
	if op.EventID != "e" || op.RequestID != "r" || op.Caller != caller || op.Granted == nil || op.Revoked == nil || op.Unknown == nil || op.View == nil {
		t.Errorf("%+v", op)
	}
	if want := traces.At(time.Date(2026, 8, 28, 10, 0, 1, 0, time.UTC)); op.Stamp != want {
		t.Errorf("stamped %v, want %v", op.Stamp, want)
	}
	if diff := cmp.Diff([]traces.Source{{Input: log, Position: "line 1"}, {Input: trail, Position: "record 1"}}, op.Sources); diff != "" {
		t.Error(diff)
	}
}

// TestMergeObservations: those of a file that was given twice count once, and processes are named as their calls are.
func TestMergeObservations(t *testing.T) {
	at := traces.At(time.Date(2026, 8, 28, 10, 0, 0, 0, time.UTC))
	ob := func(input int, position, process string, second int) traces.Observation {
		return traces.Observation{Kind: traces.Skipped, TGB: "ns/web", Process: process, Earliest: at.Add(time.Duration(second) * time.Second), Latest: at, Sources: []traces.Source{{Input: input, Position: position}}}
	}
	op := traces.Operation{Op: traces.DeleteSecurityGroup, Group: "sg-1", After: -1, Outcome: traces.Succeeded, Call: at, Return: at.Add(time.Second)}
	a, b := op, op
	a.Process, a.Sources = "lbc-1", []traces.Source{{Input: 0, Position: "line 2"}}
	b.Process, b.Sources = "pod", []traces.Source{{Input: 1, Position: "line 1"}}
	h := traces.Merge(&traces.History{
		Inputs:       []traces.Input{{Format: traces.FormatHistory}, {Format: traces.FormatControllerLog}, {Format: traces.FormatControllerLog}},
		Operations:   []traces.Operation{a, b},
		Observations: []traces.Observation{ob(1, "line 5", "pod", 5), ob(1, "line 3", "pod", 3), ob(2, "line 3", "pod", 3), ob(1, "line 4", "pod", 3)},
	}, time.Second)
	var got []string
	for _, o := range h.Observations {
		got = append(got, o.Process+" "+o.Sources[0].Position)
	}
	if diff := cmp.Diff([]string{"lbc-1 line 3", "lbc-1 line 4", "lbc-1 line 5"}, got); diff != "" {
		t.Error("-want +got\n" + diff)
	}
}

func TestResolveRuleIDs(t *testing.T) {
	perm := func(from int32, text string) traces.Permission {
		return traces.Permission{Rule: traces.Rule{Protocol: "tcp", FromPort: from, ToPort: from, Source: "sg-lb"}, Description: text}
	}
	snapshot := []traces.Snapshot{{Group: "sg-1", Rules: []traces.IdentifiedPermission{{ID: "sgr-1", Permission: perm(1, "one")}, {Permission: perm(9, "no id")}}}}
	revoke := func(ids ...string) traces.Operation {
		return traces.Operation{Op: traces.RevokeSecurityGroupIngress, RuleIDs: ids, Outcome: traces.Succeeded}
	}
	// effect prints what an operation is resolved to.
	type effect struct {
		Permissions, Before, Unknown []traces.Permission
		Unclear                      bool
	}
	grant := traces.Operation{Op: traces.AuthorizeSecurityGroupIngress, Outcome: traces.Succeeded, Granted: []traces.IdentifiedPermission{{ID: "sgr-2", Permission: perm(2, "two")}}}
	move := traces.Operation{Op: traces.ModifySecurityGroupRules, Outcome: traces.Succeeded, Updates: []traces.RuleUpdate{{ID: "sgr-2", Permission: perm(3, "three")}}}
	refused := move
	refused.Outcome, refused.Error = traces.Failed, "UnauthorizedOperation"
	listed := traces.Operation{Op: traces.RevokeSecurityGroupIngress, Outcome: traces.Succeeded, Permissions: []traces.Permission{perm(2, ""), perm(5, "")},
		Revoked: []traces.IdentifiedPermission{{ID: "sgr-2", Permission: perm(2, "two")}}}
	bare := traces.Operation{Op: traces.RevokeSecurityGroupIngress, Outcome: traces.Succeeded}
	byAnswer := revoke("sgr-7")
	byAnswer.Revoked = []traces.IdentifiedPermission{{ID: "sgr-7", Permission: perm(7, "seven")}}
	failed := revoke("sgr-8")
	failed.Outcome, failed.Error = traces.Failed, "InvalidSecurityGroupRuleId.NotFound"
	describe := traces.Operation{Op: traces.UpdateSecurityGroupRuleDescriptionsIngress, Outcome: traces.Succeeded,
		Updates: []traces.RuleUpdate{{ID: "sgr-1", Permission: traces.Permission{Description: "new"}}}}
	lost := describe
	lost.Updates = []traces.RuleUpdate{{ID: "sgr-8"}}
	lostMove := move
	lostMove.Updates = []traces.RuleUpdate{{ID: "sgr-8", Permission: perm(8, "")}}
	for name, c := range map[string]struct {
		ops  []traces.Operation
		want effect // of the last one
	}{
		"an id of the snapshot":                       {[]traces.Operation{revoke("sgr-1")}, effect{Permissions: []traces.Permission{perm(1, "one")}}},
		"an id of an earlier answer":                  {[]traces.Operation{grant, revoke("sgr-1", "sgr-2")}, effect{Permissions: []traces.Permission{perm(1, "one"), perm(2, "two")}}},
		"an authorize with an answer alone":           {[]traces.Operation{grant}, effect{Permissions: []traces.Permission{perm(2, "two")}}},
		"an id of a later answer":                     {[]traces.Operation{revoke("sgr-2"), grant, revoke("sgr-9")}, effect{Unclear: true}},
		"an id that the revoke's own answer explains": {[]traces.Operation{byAnswer}, effect{Permissions: []traces.Permission{perm(7, "seven")}, Before: []traces.Permission{perm(7, "seven")}}},
		"a failed revoke by id":                       {[]traces.Operation{failed}, effect{}},
		"a changed rule":                              {[]traces.Operation{grant, move, revoke("sgr-2")}, effect{Permissions: []traces.Permission{perm(3, "three")}}},
		"what a change replaces":                      {[]traces.Operation{grant, move}, effect{Before: []traces.Permission{perm(2, "two")}}},
		"a refused change":                            {[]traces.Operation{grant, refused, revoke("sgr-2")}, effect{Permissions: []traces.Permission{perm(2, "two")}}},
		"a change of nobody knows what":               {[]traces.Operation{lostMove}, effect{Unclear: true}},
		"a description by id":                         {[]traces.Operation{describe}, effect{Permissions: []traces.Permission{perm(1, "new")}}},
		"a description of nobody knows what":          {[]traces.Operation{lost}, effect{Unclear: true}},
		"an answer that lists what was revoked": {[]traces.Operation{listed}, effect{Permissions: []traces.Permission{perm(2, ""), perm(5, "")},
			Before: []traces.Permission{perm(2, "two")}, Unknown: []traces.Permission{perm(5, "")}}},
		"a revoke of nothing": {[]traces.Operation{bare}, effect{Unclear: true}},
	} {
		t.Run(name, func(t *testing.T) {
			out := traces.ResolveRuleIDs(c.ops, snapshot)
			last := out[len(out)-1]
			got := effect{Permissions: last.Permissions, Unknown: last.Unknown, Unclear: last.Unclear}
			for _, r := range last.Revoked {
				got.Before = append(got.Before, r.Permission)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error("-want +got\n" + diff)
			}
		})
	}
}
