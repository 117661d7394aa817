package controllerlog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
	"linearize.example/traces/controllerlog"
)

func version(ts, v string) string {
	return info(ts, "version", `"GitVersion":"`+v+`"`, `"GitCommit":"abc"`, `"BuildDate":"2026"`)
}

func waiting(ts string) string {
	return info(ts, `attempting to acquire leader lease kube-system/aws-load-balancer-controller-leader...\n`)
}

func acquired(ts string) string {
	return info(ts, `successfully acquired lease kube-system/aws-load-balancer-controller-leader\n`)
}

// callers prints which process made each call, and by which release.
func callers(h *traces.History) []string {
	var all []string
	for _, op := range h.Operations {
		s := strings.TrimPrefix(op.ID, "c.log:") + " " + op.Process
		if op.Caller != nil {
			s += " " + op.Caller.UserAgent
		}
		all = append(all, s)
	}
	return all
}

func TestProcesses(t *testing.T) {
	call := func(clock string) string { return authorizing(at(clock), group, "1-2") }
	done := func(clock string) string { return authorized(at(clock), group) }
	prefix := func(pod string, lines ...string) (all []string) {
		for _, line := range lines {
			all = append(all, "[pod/"+pod+"/controller] "+line)
		}
		return all
	}
	tests := []struct {
		name         string
		lines        []string
		calls, tells []string
	}{
		{"one process from its start",
			[]string{version(at("09:00:00"), "v3.4.0"), waiting(at("09:00:01")), acquired(at("09:00:20")), call("10:00:00"), done("10:00:00")},
			[]string{"4 controller elbv2.k8s.aws/v3.4.0"},
			[]string{"1 controller started 09:00:00..09:00:00+", "2 controller noted 09:00:01..09:00:01+",
				"3 controller leader-elected 09:00:20..09:00:20+"}},
		{"a successor waits while the leader still works",
			[]string{call("08:00:00"), done("08:00:00"), version(at("09:00:00"), "v3.4.0"), waiting(at("09:00:01")),
				call("09:30:00"), done("09:30:01"), acquired(at("09:40:00")), call("10:00:00"), done("10:00:00")},
			[]string{"1 controller", "5 controller", "8 controller-2 elbv2.k8s.aws/v3.4.0"},
			[]string{"3 controller-2 started 09:00:00..09:00:00+", "4 controller-2 noted 09:00:01..09:00:01+",
				"7 controller-2 leader-elected 09:40:00..09:40:00+"}},
		{"the container is started again",
			[]string{call("08:00:00"), done("08:00:00"),
				info(at("08:59:00"), "Failed to renew lease", `"lock":"kube-system/x"`, `"error":"context deadline exceeded"`),
				failed(at("08:59:00"), "problem running manager", "leader election lost"),
				version(at("09:00:00"), "v3.4.0"), call("10:00:00"), done("10:00:00")},
			[]string{"1 controller", "6 controller-2 elbv2.k8s.aws/v3.4.0"},
			[]string{"3 controller leader-lost 08:59:00..08:59:00+ context deadline exceeded",
				"4 controller noted 08:59:00..08:59:00+ leader election lost",
				"5 controller-2 started 09:00:00..09:00:00+"}},
		{"without client-go's lines, the controllers' start tells of the election",
			[]string{call("08:00:00"), done("08:00:00"), waiting(at("09:00:00")),
				info(at("09:00:16"), "Starting workers", `"controller":"ingress"`, `"worker count":3`),
				info(at("09:00:17"), "Starting workers", `"controller":"targetGroupBinding"`, `"worker count":3`),
				call("10:00:00"), done("10:00:00")},
			[]string{"1 controller", "6 controller-2"},
			[]string{"3 controller-2 started 09:00:00..09:00:00+", "5 controller-2 leader-elected 09:00:00..09:00:17+"}},
		{"who waits takes over when the leader lost the lease, whatever the log lacks",
			[]string{call("08:00:00"), done("08:00:00"), waiting(at("09:00:00")),
				info(at("09:10:00"), `failed to renew lease kube-system/x: timed out waiting for the condition\n`),
				call("10:00:00"), done("10:00:00")},
			[]string{"1 controller", "5 controller-2"},
			[]string{"3 controller-2 started 09:00:00..09:00:00+", "4 controller leader-lost 09:10:00..09:10:00+"}},
		{"a call that a dead process left open is not ended by its successor",
			[]string{call("08:00:00"), version(at("08:00:05"), "v3.4.0"), acquired(at("08:00:20")), call("08:00:21"), done("08:00:21")},
			[]string{"1 controller", "4 controller-2 elbv2.k8s.aws/v3.4.0"},
			[]string{"2 controller-2 started 08:00:05..08:00:05+", "3 controller-2 leader-elected 08:00:20..08:00:20+"}},
		{"klog, before the year is known and after",
			[]string{"I0828 07:00:01.000500       1 leaderelection.go:248] attempting to acquire leader lease  kube-system/x...",
				version(at("07:00:02"), "v2.4.1"),
				"I0828 07:00:20.000500       1 leaderelection.go:258] successfully acquired lease kube-system/x",
				call("08:00:00"), done("08:00:00")},
			[]string{"4 controller-2 elbv2.k8s.aws/v2.4.1"},
			[]string{"1 controller started 07:00:01.0005..07:00:01.000500999", "2 controller-2 started 07:00:02..07:00:02+",
				"3 controller-2 leader-elected 07:00:20.0005..07:00:20.000500999"}},
		{"several pods, and one of them twice",
			append(append(prefix("a", call("08:00:00")), prefix("b", call("08:00:00"), done("08:00:01"))...),
				prefix("a", done("08:00:02"), version(at("09:00:00"), "v2.7.2"), call("09:01:00"), done("09:01:00"))...),
			[]string{"1 a", "2 b", "6 a-2 elbv2.k8s.aws/v2.7.2"},
			[]string{"5 a-2 started 09:00:00..09:00:00+"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := read(t, tt.lines...)
			if diff := cmp.Diff(tt.calls, callers(h)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.tells, observations(h)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCallsDoNotCrossProcesses(t *testing.T) {
	h := read(t, authorizing(at("08:00:00"), group, "1-2"), version(at("08:00:05"), "v3.4.0"), acquired(at("08:00:20")),
		authorizing(at("08:00:21"), group, "1-2"), authorized(at("08:00:21"), group))
	want := []string{"1 controller Authorize sg-0aaa 1-2 08:00:00..forever ?",
		"4 controller-2 Authorize sg-0aaa 1-2 08:00:21..08:00:21+ ok"}
	if diff := cmp.Diff(want, operations(h)); diff != "" {
		t.Error(diff)
	}
}

// Two files without pod names are two processes; a pod's name means the same process in both.
func TestSeveralFiles(t *testing.T) {
	h := &traces.History{Inputs: []traces.Input{{Path: "a/c.log"}, {Path: "b/c.log"}, {Path: "p1.log"}, {Path: "p2.log"}}}
	call := authorizing(at("08:00:00"), group, "1-2") + "\n" + authorized(at("08:00:00"), group) + "\n"
	another := authorizing(at("08:00:00"), group, "1-2") + "\n" + authorized(at("08:00:01"), group) + "\n"
	pod := "p1 controller " + strings.ReplaceAll(strings.TrimSpace(call), "\n", "\np1 controller ") + "\n"
	for i, text := range []string{call, another, pod, pod} {
		if err := controllerlog.Read(strings.NewReader(text), h, i, controllerlog.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, op := range h.Operations {
		got = append(got, fmt.Sprint(op.Process, " ", op.ID, " ", op.After))
	}
	want := []string{"controller c.log:1 -1", "controller-2 c.log:1 -1", "p1 p1.log:1 -1", "p1 p2.log:1 -1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A file that is given twice must not make two processes of one: Merge knows copies by equal records.
func TestCopy(t *testing.T) {
	text := strings.Join([]string{version(at("07:00:00"), "v3.4.0"), authorizing(at("08:00:00"), group, "1-2"),
		authorized(at("08:00:00"), group), version(at("09:00:00"), "v3.5.0"), acquired(at("09:00:01")),
		revoking(at("09:00:02"), group, "1-2")}, "\n")
	h := &traces.History{Inputs: []traces.Input{{Path: "c.log"}, {Path: "d.log"}, {Path: "e.log"}}}
	other := strings.Replace(text, "v3.5.0", "v3.5.1", 1)
	for i, text := range []string{text, other, text} {
		if err := controllerlog.Read(strings.NewReader(text), h, i, controllerlog.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, op := range h.Operations {
		got = append(got, op.ID+" "+op.Process)
	}
	want := []string{"c.log:2 controller", "c.log:6 controller-2", "d.log:2 controller-3", "d.log:6 controller-4",
		"e.log:2 controller", "e.log:6 controller-2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if merged := traces.Merge(h, 0); len(merged.Operations) != 4 || len(merged.Observations) != 6 {
		t.Errorf("%d operations and %d observations are left", len(merged.Operations), len(merged.Observations))
	}
}

// The lines of every family of releases, with the fields that its source gives them.
func TestReleases(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		want  []string
	}{
		{"v2.0 to v2.3: epoch, controller-runtime v0.6",
			[]string{
				`{"level":"error","ts":1627681599.25,"logger":"controller","msg":"Reconciler error","controller":"targetGroupBinding","name":"t1","namespace":"ns","error":"InvalidGroup.NotFound: The security group 'sg-1' does not exist\n\tstatus code: 400, request id: 5-6"}`,
				`{"level":"error","ts":1627681599.5,"logger":"controller","msg":"Reconciler error","controller":"ingress","name":"i1","namespace":"ns","error":"no subnets"}`,
				`{"level":"error","ts":1627681599.5,"logger":"controller","msg":"Reconciler error","controller":"somebody-else","name":"t1","namespace":"ns","error":"x"}`},
			[]string{"1 controller reconcile-failed ns/t1 2021-07-30T21:46:39.2499995..2021-07-30T21:46:39.2500005 InvalidGroup.NotFound"}},
		{"v2.4: epoch, controller-runtime v0.9",
			[]string{
				`{"level":"info","ts":1627681598.5,"logger":"controller.targetGroupBinding","msg":"Starting workers","reconciler group":"elbv2.k8s.aws","reconciler kind":"TargetGroupBinding","worker count":3}`,
				`{"level":"error","ts":1627681599.25,"logger":"controller.targetGroupBinding","msg":"Reconciler error","reconciler group":"elbv2.k8s.aws","reconciler kind":"TargetGroupBinding","name":"t1","namespace":"ns","error":"expect exactly one securityGroup tagged with kubernetes.io/cluster/c for eni eni-1, got: [sg-1 sg-2]"}`},
			[]string{"1 controller leader-elected 2021-07-30T21:46:38.4999995..2021-07-30T21:46:38.5000005",
				"2 controller reconcile-failed ns/t1 2021-07-30T21:46:39.2499995..2021-07-30T21:46:39.2500005 expect exactly one securityGroup tagged with kubernetes.io/cluster/c for eni eni-1, got: [sg-1 sg-2]"}},
		{"v2.9.1 to v2.12: the deferred queue says TGB",
			[]string{
				info(at("10:00:00"), "Skipping targetgroupbinding reconcile", `"tgb":{"name":"t1","namespace":"ns"}`, `"calculated hash":"a/b"`),
				info(at("10:00:00"), "enqueued new deferred TGB", `"TGB":"t1"`),
				info(at("10:31:00"), "Processing deferred TGB", `"item":{"name":"t1","namespace":"ns"}`),
				info(at("10:31:00"), "TGB not eligible for deferral", `"TGB":{"name":"t1","namespace":"ns"}`),
				info(at("10:32:00"), "TGB checkpoint reset", `"TGB":"ns/t2"`)},
			[]string{"1 controller skipped ns/t1 10:00:00..10:00:00+", "2 controller deferred ns/t1 10:00:00..10:00:00+",
				"3 controller noted ns/t1 10:31:00..10:31:00+", "4 controller noted ns/t1 10:31:00..10:31:00+",
				"5 controller checkpoint-reset ns/t2 10:32:00..10:32:00+"}},
		{"v2.13 and later: tgb",
			[]string{
				info(at("10:00:00"), "enqueued new deferred TGB", `"logger":"deferredTGBQueue"`, `"tgb":"t9"`),
				info(at("10:00:01"), "TGB checkpoint reset", tgb("t1")),
				info(at("10:00:02"), "Requeue for target monitor target health", tgb("t1")),
				info(at("10:00:03"), "Requeue for networking requeue", tgb("t1")),
				info(at("10:00:04"), "Successful reconcile", tgb("t1"), `"checkpoint":"a/b"`),
				failed(at("10:00:05"), podError, notFoundV2, tgb("t1")),
				info(at("10:00:06"), "Retrying ReconcileIngress without using cache", `"revokeFirst":false`)},
			[]string{"1 controller deferred t9 10:00:00..10:00:00+", "2 controller checkpoint-reset ns/t1 10:00:01..10:00:01+",
				"3 controller requeued ns/t1 10:00:02..10:00:02+", "4 controller requeued ns/t1 10:00:03..10:00:03+",
				"5 controller reconciled ns/t1 10:00:04..10:00:04+", "6 controller requeued ns/t1 10:00:05..10:00:05+ InvalidPermission.NotFound",
				"7 controller retrying 10:00:06..10:00:06+"}},
		{"v3: controller-runtime v0.23",
			[]string{`{"level":"error","ts":"2026-08-28T10:00:00Z","msg":"Reconciler error","controller":"targetGroupBinding","controllerGroup":"elbv2.k8s.aws","controllerKind":"TargetGroupBinding","TargetGroupBinding":{"name":"t1","namespace":"ns"},"namespace":"ns","name":"t1","reconcileID":"1","error":"operation error Elastic Load Balancing v2: DescribeTargetHealth, https response error StatusCode: 400, RequestID: 2, api error TargetGroupNotFound: One or more target groups not found"}`},
			[]string{"1 controller reconcile-failed ns/t1 10:00:00..10:00:00+ TargetGroupNotFound"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, observations(read(t, tt.lines...))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNotesSayWhatTheLogShowsToBeMissing(t *testing.T) {
	kinds := func(h *traces.History) (all []string) {
		for _, n := range h.Inputs[0].Notes {
			all = append(all, n.Kind)
		}
		return all
	}
	torn := revoked(at("10:00:00"), group) + "\n" + revoking(at("10:00:00"), group, "1-2")
	tests := []struct {
		name, text string
		want       []string
		rejected   int
	}{
		{"whole", revoking(at("10:00:00"), group, "1-2") + "\n" + revoked(at("10:00:00"), group), nil, 0},
		{"excerpt", revoking(at("10:00:00"), group, "1-2") + "\n", []string{"truncated-capture"}, 0},
		{"torn", torn[:len(torn)-30], []string{"truncated-capture", "truncated-capture"}, 1},
		{"clock", revoking(at("10:00:10"), group, "1-2") + "\n" + revoked(at("10:00:00"), group), []string{"clock-backwards"}, 0},
		{"mixed", authorizing(at("10:00:00"), group, "1-2") + "\n" + authorizing(at("10:00:01"), other, "1-2") + "\n" +
			authorized(at("10:00:02"), group) + "\n" + authorized(at("10:00:02"), other) + "\n", []string{"mixed-processes"}, 0},
		{"unclear", info(at("10:00:00"), "revoking securityGroup ingress", sg(group)) + "\n" + revoked(at("10:00:00"), group),
			[]string{"unclear-call"}, 0},
	}
	for _, tt := range tests {
		h := readText(t, tt.text, controllerlog.Options{})
		if diff := cmp.Diff(tt.want, kinds(h)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		if h.Inputs[0].Rejected != tt.rejected {
			t.Errorf("%s: %+v", tt.name, h.Inputs[0])
		}
	}
}
