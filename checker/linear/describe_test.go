package linear

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linearize.example/internal/histories"
	"linearize.example/traces"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// at builds operations, one a second.
type at struct{ ops []traces.Operation }

func (a *at) add(op traces.Operation, rules ...int) *traces.Operation {
	second := traces.Instant(len(a.ops)) * 1e9
	op.ID, op.Process, op.After = fmt.Sprint("seq ", len(a.ops)+1), "lbc-1", -1
	op.Call, op.Return = second, second+5e8
	for _, r := range rules {
		op.Permissions = append(op.Permissions, rule(r))
	}
	if op.Outcome == traces.Pending && op.Error == "" {
		op.Outcome = traces.Succeeded
	}
	if op.Error != "" {
		op.Outcome = traces.Failed
	}
	a.ops = append(a.ops, op)
	return &a.ops[len(a.ops)-1]
}

var (
	authorize = traces.Operation{Op: traces.AuthorizeSecurityGroupIngress}
	revoke    = traces.Operation{Op: traces.RevokeSecurityGroupIngress}
	describe  = traces.Operation{Op: traces.DescribeSecurityGroups, View: []traces.Permission{}}
)

func failed(op traces.Operation, code string) traces.Operation {
	op.Error = code
	return op
}

func TestDescriptions(t *testing.T) {
	var a at
	a.add(authorize, 3000)
	a.add(failed(authorize, duplicate), 3000, 3001)
	a.add(failed(revoke, notFound), 3008)
	a.add(revoke, 3000, 3001).Unknown = []traces.Permission{rule(3001)}
	a.add(describe).View = []traces.Permission{rule(3001), rule(80)}
	a.add(describe)
	pending := a.add(authorize, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	pending.Outcome, pending.Return = traces.Pending, traces.Forever
	modify := a.add(traces.Operation{Op: traces.ModifySecurityGroupRules})
	modify.Revoked = []traces.IdentifiedPermission{{ID: "sgr-1", Permission: rule(1)}}
	modify.Updates = []traces.RuleUpdate{{ID: "sgr-1", Permission: rule(2)}}
	a.add(revoke).Unclear = true
	a.add(traces.Operation{Op: traces.DeleteSecurityGroup})
	a.add(failed(authorize, "RequestLimitExceeded"), 1) // says nothing
	other := rule(443)
	other.Source = "sg-2"

	var b strings.Builder
	for _, source := range []string{"one source", "two sources"} {
		if source == "two sources" {
			a.add(authorize).Permissions = []traces.Permission{other}
		}
		fmt.Fprintf(&b, "# %s\n", source)
		model, history, err := OnePiece(a.ops, Initial{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		state := model.Init()
		for _, o := range history {
			fmt.Fprintln(&b, model.DescribeOperation(o.Input, nil))
			if ok, next := model.Step(state, o.Input, nil); ok {
				state = next
				fmt.Fprintln(&b, "   ", model.DescribeState(state))
			} else {
				fmt.Fprintln(&b, "    refused")
			}
		}
	}
	golden(t, "descriptions.txt", b.String())
}

// What a failure says: of the incident's reads, of each kind of refusal, and of concurrent calls.
func TestFailures(t *testing.T) {
	tests := []struct {
		name string
		ops  []traces.Operation
	}{{name: "the real run", ops: capture(t, "real-run-incident")}}
	test := func(name string, f func(a *at)) {
		var a at
		f(&a)
		tests = append(tests, struct {
			name string
			ops  []traces.Operation
		}{name, a.ops})
	}
	test("authorized twice", func(a *at) {
		a.add(authorize, 1)
		a.add(authorize, 1, 2)
	})
	test("first call", func(a *at) { a.add(revoke, 1) })
	test("not found", func(a *at) {
		a.add(authorize, 1, 2)
		a.add(failed(revoke, notFound), 1, 2)
	})
	test("duplicate", func(a *at) { a.add(failed(authorize, duplicate), 1) })
	test("concurrent", func(a *at) {
		a.add(authorize, 1)
		for range 3 {
			op := a.add(revoke, 1)
			op.Call, op.Return = 2e9, 3e9
		}
	})
	test("process order", func(a *at) {
		a.add(authorize, 1)
		first := a.add(authorize, 1)
		first.Call, first.Return = 2e9, 3e9
		second := a.add(revoke, 1)
		second.Call, second.Return, second.After = 2e9, 3e9, 1
	})
	test("a second revoke without an answer to the first", func(a *at) {
		a.add(authorize, 1)
		p := a.add(revoke, 1)
		p.Outcome, p.Return = traces.Pending, traces.Forever
		a.add(revoke, 1)
		a.add(revoke, 1)
	})
	tests = append(tests, struct {
		name string
		ops  []traces.Operation
	}{"a long history", histories.Random(5, 500, 5, histories.Options{Concurrency: 3, ViolationAt: 250, Reads: 0.2})})
	var b strings.Builder
	for _, c := range tests {
		r := Check(context.Background(), c.ops, closedWorld, Options{})
		if r.All != NotLinearizable || r.Failed == nil {
			t.Errorf("%s: %s %s", c.name, r.All, r.Detail)
			continue
		}
		f := r.Failed
		fmt.Fprintf(&b, "# %s: %s, with reads %s\n%s to %s\noperations %v\nordered %v\nnext %v\n%s\n\n", c.name, r.Mutations, r.All, f.From, f.To,
			f.Operations, f.Ordered, f.Next, f.Text)
		if !strings.HasPrefix(f.Visualization, "<!doctype html>") && !strings.HasPrefix(f.Visualization, "<!DOCTYPE html>") {
			t.Errorf("%s: the picture begins with %.40q", c.name, f.Visualization)
		}
		again := Check(context.Background(), slices.Clone(c.ops), closedWorld, Options{})
		if again.Failed.Visualization != f.Visualization || again.Failed.Text != f.Text {
			t.Errorf("%s: two checks give different pictures or texts", c.name)
		}
	}
	golden(t, "failures.txt", b.String())
}
