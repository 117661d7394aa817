package record_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"linearize.example/traces"
	"linearize.example/traces/capture"
	"linearize.example/traces/record"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func permission(protocol string, from, to int32, source, description string) traces.Permission {
	return traces.Permission{Rule: traces.Rule{Protocol: protocol, FromPort: from, ToPort: to, Source: source}, Description: description}
}

// changes are calls of each kind that CloudTrail has, a second apart.
func changes() []traces.Operation {
	perms := []traces.Permission{permission("tcp", 80, 81, "sg-lb", "shared"), permission("-1", -1, -1, "10.0.0.0/8", ""), permission("icmp", -1, -1, "fd00::/8", ""),
		permission("udp", 0, 65535, "pl-1", "<&>"), permission("50", -1, -1, "sg-x", "")}
	identified := []traces.IdentifiedPermission{{ID: "sgr-1", Permission: perms[0]}, {ID: "sgr-2", Permission: perms[1]}, {ID: "sgr-3", Permission: perms[2]}, {ID: "sgr-4", Permission: perms[3]}}
	role := &traces.Caller{Role: "lbc", Session: "pod-1", Account: "444455556666", AccessKeyID: "ASIAEXAMPLE", SessionStart: "2026-11-30T09:00:00Z", UserAgent: "elbv2.k8s.aws/v3.4.0", SourceAddress: "10.0.0.1"}
	ops := []traces.Operation{
		{Op: traces.CreateSecurityGroup, Group: "sg-1"},
		{Op: traces.AuthorizeSecurityGroupIngress, Group: "sg-1", Permissions: perms, Granted: identified, Caller: role},
		{Op: traces.AuthorizeSecurityGroupIngress, Group: "sg-1", Permissions: perms[:1], Outcome: traces.Failed, Error: "InvalidPermission.Duplicate", Caller: &traces.Caller{AccessKeyID: "AKIAEXAMPLE", Account: "111122223333"}},
		{Op: traces.AuthorizeSecurityGroupIngress, Group: "sg-1", Permissions: perms[:1], Outcome: traces.Failed, Error: "InternalError", Caller: &traces.Caller{Role: "ops", Account: "111122223333", InvokedBy: "cloudformation.amazonaws.com"}},
		{Op: traces.RevokeSecurityGroupIngress, Group: "sg-1", Permissions: perms[:2], Revoked: identified[:1], Unknown: perms[1:2], Caller: role},
		{Op: traces.RevokeSecurityGroupIngress, Group: "sg-1", RuleIDs: []string{"sgr-3", "sgr-4"}, Revoked: identified[2:], Caller: role},
		{Op: traces.ModifySecurityGroupRules, Group: "sg-1", Updates: []traces.RuleUpdate{{ID: "sgr-1", Permission: perms[3]}, {ID: "sgr-2", Permission: perms[0]}}},
		{Op: traces.UpdateSecurityGroupRuleDescriptionsIngress, Group: "sg-1", Updates: []traces.RuleUpdate{{ID: "sgr-1", Permission: traces.Permission{Description: "new"}}}},
		{Op: traces.UpdateSecurityGroupRuleDescriptionsIngress, Group: "sg-1", Permissions: perms[:1]},
		{Op: traces.RegisterTargets, TargetGroup: "arn:tg", Targets: []traces.Target{{ID: "10.0.0.1", Port: 80}, {ID: "i-1"}}},
		{Op: traces.DeregisterTargets, TargetGroup: "arn:tg", Targets: []traces.Target{{ID: "i-1"}}, Outcome: traces.Failed, Error: "TargetGroupNotFound"},
		{Op: traces.RevokeSecurityGroupIngress, Group: "sg-1", Unclear: true},
		{Op: traces.DeleteSecurityGroup, Group: "sg-1"},
	}
	for i := range ops {
		op := &ops[i]
		if op.Outcome != traces.Failed {
			op.Outcome = traces.Succeeded
		}
		op.RequestID, op.EventID, op.After = fmt.Sprint("r-", i), fmt.Sprint("e-", i), -1
		op.Call = traces.At(start.Add(time.Duration(i)*time.Second + 900*time.Millisecond))
		op.Return = op.Call.Add(time.Duration(i) * 20 * time.Millisecond)
	}
	return ops
}

// trailFiles returns the files below a folder and their events.
func trailFiles(t *testing.T, dir string) map[string][]string {
	t.Helper()
	files := map[string][]string{}
	must(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(name)
		must(t, err)
		defer f.Close()
		z, err := gzip.NewReader(f)
		must(t, err)
		text, err := io.ReadAll(z)
		must(t, err)
		var trail struct{ Records []json.RawMessage }
		must(t, json.Unmarshal(text, &trail))
		name, err = filepath.Rel(dir, name)
		must(t, err)
		for _, e := range trail.Records {
			files[filepath.ToSlash(name)] = append(files[filepath.ToSlash(name)], string(e))
		}
		return nil
	}))
	return files
}

func newTrail(t *testing.T, dir string, seed uint64) *record.CloudTrail {
	t.Helper()
	trail, err := record.NewCloudTrail(record.CloudTrailOptions{Dir: dir, Seed: seed})
	must(t, err)
	return trail
}

// TestCloudTrailRoundTrip: what is read of the files is what was recorded, but for the interval, which is a second.
func TestCloudTrailRoundTrip(t *testing.T) {
	for seed := range uint64(20) {
		dir := t.TempDir()
		trail := newTrail(t, dir, seed)
		want := changes()
		for _, op := range want {
			trail.Record(op)
		}
		never := traces.Operation{Op: traces.AuthorizeSecurityGroupIngress, Group: "sg-1", Return: want[0].Return, Outcome: traces.Failed, Error: record.NotSent}
		for _, op := range []traces.Operation{describe("sg-1"), succeeded(describe("sg-1")), authorize("sg-1", 80), never} {
			trail.Record(op)
		}
		must(t, trail.Close())
		c, err := capture.Read(context.Background(), []string{dir}, nil, capture.Options{})
		must(t, err)
		got := c.History.Operations
		number := func(op traces.Operation) (n int) {
			_, err := fmt.Sscanf(op.EventID, "e-%d", &n)
			must(t, err)
			return n
		}
		sort.Slice(got, func(i, j int) bool { return number(got[i]) < number(got[j]) })
		diff := cmp.Diff(want, got, cmpopts.IgnoreFields(traces.Operation{}, "ID", "Process", "Call", "Return", "Sources", "Caller"), cmpopts.EquateEmpty())
		if diff != "" {
			t.Fatalf("-recorded +read\n%s", diff)
		}
		for i := range got {
			at := traces.At(want[i].Return.Time().Truncate(time.Second))
			if got[i].Call != at || got[i].Return != at.Add(time.Second-1) {
				t.Errorf("%s: %v to %v for %v", got[i].EventID, got[i].Call, got[i].Return, want[i].Return)
			}
			if want[i].Caller != nil {
				if diff := cmp.Diff(want[i].Caller, got[i].Caller); diff != "" {
					t.Errorf("%s: %s", got[i].EventID, diff)
				}
			}
		}
		for _, in := range c.History.Inputs {
			if in.Rejected > 0 {
				t.Errorf("%+v", in)
			}
		}
	}
}

// TestCloudTrailDelivery: events come minutes later, in any order, some twice, the same of a seed; and files are written while it goes
// on.
func TestCloudTrailDelivery(t *testing.T) {
	const calls = 5000
	write := func(seed uint64) (map[string][]string, int) {
		dir := t.TempDir()
		trail := newTrail(t, dir, seed)
		rng := rand.New(rand.NewPCG(1, 2))
		at := start
		for i := range calls {
			at = at.Add(time.Duration(rng.IntN(1000)) * time.Millisecond)
			op := succeeded(authorize("sg-1", 80))
			op.RequestID, op.Return = fmt.Sprint("r-", i), traces.At(at)
			trail.Record(op)
		}
		before := len(trailFiles(t, dir))
		must(t, trail.Close())
		return trailFiles(t, dir), before
	}
	files, before := write(1)
	if before < len(files)/2 {
		t.Errorf("%d of %d files were written before the end", before, len(files))
	}
	again, _ := write(1)
	if !reflect.DeepEqual(files, again) {
		t.Error("one seed gives different files")
	}
	other, _ := write(2)
	if reflect.DeepEqual(files, other) {
		t.Error("another seed gives the same files")
	}
	ids := map[string]int{}
	unsorted := 0
	for name, events := range files {
		var times []string
		for _, e := range events {
			var event struct{ EventID, EventTime string }
			must(t, json.Unmarshal([]byte(e), &event))
			ids[event.EventID]++
			times = append(times, event.EventTime)
			at, err := time.Parse(time.RFC3339, event.EventTime)
			must(t, err)
			delivered, err := time.Parse("20060102T1504Z", strings.Split(filepath.Base(name), "_")[3])
			must(t, err)
			if late := delivered.Sub(at); late < -time.Minute || late > 7*time.Minute {
				t.Fatalf("%s has an event of %s", name, event.EventTime)
			}
		}
		if !slices.IsSorted(times) {
			unsorted++
		}
	}
	twice := 0
	for _, n := range ids {
		if n == 2 {
			twice++
		}
	}
	if len(ids) != calls || twice < calls/32 || twice > calls/8 || unsorted < len(files)/2 {
		t.Errorf("%d events, %d of them twice, in %d files, %d of them out of order", len(ids), twice, len(files), unsorted)
	}
}

// TestCloudTrailGolden: what the events look like.
func TestCloudTrailGolden(t *testing.T) {
	dir := t.TempDir()
	trail := newTrail(t, dir, 3)
	for _, op := range changes() {
		op.EventID = ""
		trail.Record(op)
	}
	must(t, trail.Close())
	var b strings.Builder
	files := trailFiles(t, dir)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintln(&b, name)
		for _, e := range files[name] {
			fmt.Fprintf(&b, "  %s\n", e)
		}
	}
	const golden = "testdata/cloudtrail.golden"
	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("-want +got (go test -update rewrites it)\n%s", diff)
	}
}

// TestCloudTrailFails: a folder that cannot be written to is an error at once, or when the sink is closed.
func TestCloudTrailFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o644))
	if _, err := record.NewCloudTrail(record.CloudTrailOptions{Dir: file}); err == nil {
		t.Error("a file is no folder")
	}
	dir := t.TempDir()
	trail := newTrail(t, dir, 1)
	must(t, os.WriteFile(filepath.Join(dir, "AWSLogs"), nil, 0o644))
	trail.Record(changes()[0])
	if err := trail.Close(); err == nil {
		t.Error("nothing was written, and nobody heard of it")
	}
}
