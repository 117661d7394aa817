package checker_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"linearize.example/checker"
	"linearize.example/traces"
)

// scenario is a situation that people brought, and what is to be said of it.
type scenario struct {
	name   string
	files  files
	change func(*checker.Options)
	want   outcome
}

const (
	holds    = "holds"
	vacuous  = "holds vacuously"
	possible = "possible"
	violated = "violated"
	unknown  = "unknown"
)

func (s scenario) run(t *testing.T) {
	r := judge(t, s.files.load(t), s.change)
	got := outcomeOf(one(t, r))
	if diff := cmp.Diff(s.want, got); diff != "" {
		t.Errorf("%s\n-want +got\n%s", r.Summary, diff)
	}
}

func given(snapshots []traces.Snapshot) func(*checker.Options) {
	return func(o *checker.Options) { o.Initial = snapshots }
}

func bound(list ...traces.Binding) func(*checker.Options) {
	return func(o *checker.Options) { o.Bindings, o.HasBindings = list, true }
}

func all(changes ...func(*checker.Options)) func(*checker.Options) {
	return func(o *checker.Options) {
		for _, change := range changes {
			change(o)
		}
	}
}

// web is a target and the rule for it.
func web(by caller) []call {
	return []call{by.authorize("09:00:00", "80"), by.register("09:00:05", "web", "10.0.0.1:80")}
}

// every is a call again and again.
func every(c call, gap time.Duration, times int) []call {
	var calls []call
	for i := range times {
		again := c
		again.from = c.from.Add(time.Duration(i) * gap)
		calls = append(calls, again)
	}
	return calls
}

// TestController has the cases of the AWS Load Balancer Controller, by their numbers in the list of cases.
func TestController(t *testing.T) {
	const ms = time.Millisecond
	cases := []scenario{
		{
			name: "B01 M0: an old describe is saved by the reload after NotFound",
			files: files{"history.ndjson": recorded(
				cur.authorize("10:00:00", "3000-8025"),
				cur.describe("10:00:10", "3000-8025"),
				cur.authorize("10:00:10.1", "3000-3008"),
				cur.revoke("10:00:10.2", "3000-8025"),
				cur.describe("10:00:10.3", "3000-8025", "3000-3008"),
				cur.revoke("10:00:10.4", "3000-8025").fails("InvalidPermission.NotFound"),
				cur.describe("10:00:10.5", "3000-8025", "3000-3008"),
				cur.revoke("10:00:10.6", "3000-8025").fails("InvalidPermission.NotFound"),
				cur.revoke("10:00:53", "3000-3008"),
				cur.describe("10:05:00"))},
			want: outcome{violated, violated, possible, holds, []string{
				"never-empty violated 10:00:53.025 to … by revoke tcp 3000-3008",
				"covered violated tcp 3000 10:00:53.025 to … by revoke tcp 3000-3008",
				"covered violated tcp 3008 10:00:53.025 to … by revoke tcp 3000-3008",
			}, []string{"old-read"}},
		},
		{
			name: "B01 M1: the describe was not old; its answer was saved after the revoke",
			files: files{"history.ndjson": recorded(
				cur.authorize("10:00:00", "3000-8025"),
				cur.authorize("10:00:10", "3000-3008"),
				cur.describe("10:00:10.1", "3000-8025", "3000-3008"),
				cur.revoke("10:00:10.2", "3000-8025"),
				cur.revoke("10:00:53", "3000-3008"),
				cur.authorize("10:10:53", "3000-8025"))},
			want: outcome{violated, violated, violated, holds, []string{
				"never-empty violated 10:00:53.025 to 10:10:53.025 by revoke tcp 3000-3008",
				"covered violated tcp 3000 10:00:53.025 to 10:10:53.025 by revoke tcp 3000-3008",
				"covered violated tcp 3008 10:00:53.025 to 10:10:53.025 by revoke tcp 3000-3008",
			}, nil},
		},
		{
			name: "B01 M2: the first describe after the revoke is old, in the reconcile that wants the rule back",
			files: files{"history.ndjson": recorded(
				cur.authorize("10:00:00", "3000-8025"),
				cur.authorize("10:00:10", "3000-3008"),
				cur.revoke("10:00:10.1", "3000-8025"),
				cur.describe("10:00:11", "3000-8025", "3000-3008"),
				cur.revoke("10:00:11.1", "3000-3008"),
				cur.describe("10:01:00"))},
			want: outcome{violated, violated, possible, holds, []string{
				"never-empty violated 10:00:11.125 to … by revoke tcp 3000-3008",
				"covered violated tcp 3000 10:00:11.125 to … by revoke tcp 3000-3008",
				"covered violated tcp 3008 10:00:11.125 to … by revoke tcp 3000-3008",
			}, []string{"old-read"}},
		},
		{
			name: "B03: the authorize after the revoke fails",
			files: files{"cloudtrail.json": trail(
				old.revoke("10:00:00", "31000-32000"),
				old.authorize("10:00:05", "31000-32500").fails("RequestLimitExceeded"),
				old.authorize("10:06:40", "31000-32500"))},
			want: outcome{violated, violated, violated, holds, []string{
				"never-empty violated 10:00:00 to 10:06:40 by revoke tcp 31000-32000",
				"covered violated tcp 31000 10:00:00 to 10:06:40 by revoke tcp 31000-32000",
				"covered violated tcp 32000 10:00:00 to 10:06:40 by revoke tcp 31000-32000",
			}, nil},
		},
		{
			name:  "B03: the authorize never comes",
			files: files{"history.ndjson": recorded(old.revoke("10:00:00", "31000-32000"), old.describe("10:06:00"))},
			want: outcome{violated, violated, violated, holds, []string{
				"never-empty violated 10:00:00.025 to … by revoke tcp 31000-32000",
				"covered violated tcp 31000 10:00:00.025 to … by revoke tcp 31000-32000",
				"covered violated tcp 32000 10:00:00.025 to … by revoke tcp 31000-32000",
			}, nil},
		},
		{
			name: "B03: nobody saw the answer to the authorize",
			files: files{"history.ndjson": recorded(old.authorize("09:00:00", "31000-32000"), old.revoke("10:00:00", "31000-32000"),
				old.authorize("10:00:05", "31000-32500").unanswered(), old.describe("10:06:00"), old.revoke("10:30:00", "31000-32500").fails("InvalidPermission.NotFound"))},
			want: outcome{violated, violated, violated, holds, []string{
				"never-empty violated 10:00:00.025 to 10:30:00.025 by revoke tcp 31000-32000",
				"covered violated tcp 31000 10:00:00.025 to 10:30:00.025 by revoke tcp 31000-32000",
				"covered violated tcp 32000 10:00:00.025 to 10:30:00.025 by revoke tcp 31000-32000",
			}, nil},
		},
		{
			name: "B03: the happy path is empty for 150 ms",
			files: files{"history.ndjson": recorded(
				old.authorize("10:00:00", "31000-32000"),
				old.revoke("10:01:00", "31000-32000"),
				old.authorize("10:01:00.150", "31000-32500"))},
			want: outcome{violated, violated, holds, holds, []string{
				"never-empty violated 10:01:00.025 to 10:01:00.175 by revoke tcp 31000-32000",
				"covered violated tcp 31000 10:01:00.025 to 10:01:00.175 by revoke tcp 31000-32000",
				"covered violated tcp 32000 10:01:00.025 to 10:01:00.175 by revoke tcp 31000-32000",
			}, nil},
		},
		{
			name: "B04: one bad peer poisons the batch, after the revoke",
			files: files{"cloudtrail.json": trail(slices.Concat(
				[]call{old.authorize("09:00:00", "80"), old.register("09:00:05", "web", "10.0.0.1:80"), old.revoke("10:00:00", "80")},
				every(old.authorize("10:00:05", "80-9000", "9003<sg-0bad").fails("InvalidGroup.NotFound"), 16*time.Minute, 4))...)},
			want: outcome{violated, violated, violated, holds, []string{
				"never-empty violated 10:00:00 to … by revoke tcp 80-80",
				"covered violated tcp 80 10:00:00 to … by revoke tcp 80-80",
			}, []string{"poisoned-batch", "failing-loop"}},
		},
		{
			name: "B04: since v2.12.0 the rules stay, and the new port is never opened",
			files: files{"cloudtrail.json": trail(slices.Concat(
				[]call{cur.authorize("09:00:00", "80"), cur.register("09:00:05", "web", "10.0.0.1:80")},
				every(cur.authorize("10:00:00", "80-9000", "9003<sg-0bad").fails("InvalidGroup.NotFound"), 16*time.Minute, 4),
				[]call{cur.register("10:00:03", "api", "10.0.0.1:9000")})...)},
			want: outcome{vacuous, violated, violated, holds, []string{
				"covered violated tcp 9000 10:00:03 to … by register 10.0.0.1:9000 of api",
			}, []string{"poisoned-batch", "failing-loop"}},
		},
		{
			name: "B06: targets are registered though the group's reconcile fails",
			files: files{
				"controller.log": logged(cur.authorize("09:00:00", "80"), cur.register("10:00:00", "web", "10.0.0.1:8080")) +
					said("10:00:01", "Reconciler error", "controller", "targetGroupBinding", "namespace", "test", "name", "web",
						"error", "[InvalidGroup.NotFound: sg-0gone does not exist]") +
					said("10:20:00", "Reconciler error", "controller", "targetGroupBinding", "namespace", "test", "name", "web",
						"error", "[InvalidGroup.NotFound: sg-0gone does not exist]")},
			want: outcome{vacuous, violated, violated, holds, []string{
				"covered violated tcp 8080 10:00:00 to … by register 10.0.0.1:8080 of web",
			}, nil},
		},
		{
			name: "B07: a denied revoke comes before the authorize; a restart grants without revoking",
			files: files{"cloudtrail.json": trail(slices.Concat(
				[]call{old.authorize("09:00:00", "21"), old.register("09:00:05", "ftp", "10.0.0.1:21")},
				every(old.revoke("10:00:00", "21").fails("UnauthorizedOperation"), 10*time.Minute, 5),
				[]call{old.register("10:00:02", "ftp", "10.0.0.1:3000"), old.authorize("11:00:00", "21-3000")})...)},
			want: outcome{vacuous, violated, violated, possible, []string{
				"covered violated tcp 3000 10:00:02 to 11:00:00 by register 10.0.0.1:3000 of ftp",
			}, []string{"failing-loop"}},
		},
		{
			name: "B09: two clusters share the group",
			files: files{"cloudtrail.json": trail(
				lbc("v3.4.0", "lbc-a").authorize("10:00:00", "8080"),
				lbc("v3.4.0", "lbc-b").authorize("11:00:00", "9090"),
				lbc("v3.4.0", "lbc-b").revoke("11:00:05", "8080"),
				lbc("v3.4.0", "lbc-a").authorize("18:00:00", "8080"),
				lbc("v3.4.0", "lbc-a").revoke("18:00:05", "9090"))},
			want: outcome{holds, violated, violated, holds, []string{
				"covered violated tcp 8080 11:00:05 to 18:00:00 by revoke tcp 8080-8080",
				"covered violated tcp 9090 18:00:05 to … by revoke tcp 9090-9090",
			}, []string{"second-writer"}},
		},
		{
			name: "B12: the range is not extended to new node ports",
			files: files{"cloudtrail.json": trail(
				lbc("v2.4.6").authorize("10:00:00", "30090-32050"),
				lbc("v2.4.6").register("10:00:05", "web", "i-0a:30090"),
				lbc("v2.4.6").register("10:30:00", "new", "i-0a:32100"),
				lbc("v2.4.6").register("11:30:00", "web", "i-0b:30090"))},
			want: outcome{vacuous, violated, violated, holds, []string{
				"covered violated tcp 32100 10:30:00 to … by register i-0a:32100 of new",
			}, nil},
		},
		{
			name: "B14: a rule deleted by somebody else is masked by the cache",
			files: files{
				"cloudtrail.json": trail(cur.authorize("09:00:00", "8080"), alice.revoke("10:00:00", "8080"), cur.authorize("12:00:00", "8080")),
				"controller.log":  said("10:05:00", "Successful reconcile", "tgb", "web"),
			},
			want: outcome{violated, violated, violated, holds, []string{
				"never-empty violated 10:00:00 to 12:00:00 by revoke tcp 8080-8080",
				"covered violated tcp 8080 10:00:00 to 12:00:00 by revoke tcp 8080-8080",
			}, []string{"second-writer", "masked-by-cache", "outside-removal"}},
		},
		{
			name: "B15: the checkpoint is kept over a clean-up, so that the restored port is skipped",
			files: files{
				"cloudtrail.json": trail(
					lbc("v2.13.4").deregister("10:00:00", "web", "10.0.0.1:8080"), lbc("v2.13.4").revoke("10:00:05", "8080"),
					lbc("v2.13.4").authorize("11:10:00", "8080"), lbc("v2.13.4").register("11:10:05", "web", "10.0.0.1:8080")),
				"controller.log": skipped("10:30:00", "web"),
			},
			change: all(bound(binding("web", "8080")), given(initial("8080"))),
			want: outcome{violated, violated, violated, holds, []string{
				"never-empty violated … to 11:10:00",
				"covered violated tcp 8080 from sg-0lb … to 11:10:00",
			}, []string{"skipped-while-empty", "legal-gap"}},
		},
		{
			name: "B17: a TGB without its target group keeps the controller from revoking",
			files: files{"cloudtrail.json": trail(cur.authorize("10:00:00", "80-8000"), cur.authorize("10:10:00", "80-8080"),
				cur.authorize("10:20:00", "80-9090"), cur.register("10:40:00", "web", "10.0.0.1:80"))},
			want: outcome{vacuous, holds, vacuous, violated, nil, []string{"authorize-only-forever"}},
		},
		{
			name: "B19: the group is full",
			files: files{"cloudtrail.json": trail(slices.Concat(
				[]call{cur.authorize("09:00:00", "80"), cur.register("09:00:05", "web", "10.0.0.1:80")},
				every(cur.authorize("10:00:00", "443<10.0.0.0/8").fails("RulesPerSecurityGroupLimitExceeded"), 2*time.Minute, 10),
				[]call{cur.register("10:00:03", "api", "10.0.0.1:443")})...)},
			want: outcome{vacuous, violated, violated, holds, []string{
				"covered violated tcp 443 10:00:03 to … by register 10.0.0.1:443 of api",
			}, []string{"failing-loop", "rule-limit"}},
		},
		{
			name: "B20: the peers change from a group to a range of addresses",
			files: files{"cloudtrail.json": trail(
				old.authorize("09:00:00", "8080"), old.register("09:00:05", "web", "10.0.0.1:8080"),
				old.revoke("10:00:00", "8080"), old.authorize("10:00:45", "8080<10.0.0.0/16"))},
			want: outcome{violated, violated, holds, holds, []string{
				"never-empty violated 10:00:00 to 10:00:45 by revoke tcp 8080-8080",
				"covered violated tcp 8080 10:00:00 to 10:00:45 by revoke tcp 8080-8080",
			}, nil},
		},
		{
			name:   "B22: the health check's peer is not let in",
			files:  files{"cloudtrail.json": trail(cur.authorize("10:00:00", "9090<192.168.0.0/16"), cur.register("11:00:00", "web", "10.0.0.1:8080"))},
			change: all(bound(binding("web", "8080<192.168.0.0/16", "8080<10.0.1.0/24")), given(initial("8080<192.168.0.0/16"))),
			want: outcome{vacuous, violated, violated, violated, []string{
				"covered violated tcp 8080 from 10.0.1.0/24 … to …",
			}, nil},
		},
		{
			name:   "B22: the spec asks for the backend group alone",
			files:  files{"cloudtrail.json": trail(cur.authorize("10:00:00", "8080"), cur.register("10:00:02", "web", "10.0.0.1:8080"), cur.revoke("11:00:00", "8080-9090"))},
			change: all(bound(binding("web", "8080")), given(initial("8080-9090"))),
			want:   outcome{holds, holds, vacuous, holds, nil, nil},
		},
		{
			name:   "B25: a TGB without networking asks for nothing",
			files:  files{"cloudtrail.json": trail(cur.revoke("10:00:00", "8080"), cur.register("10:00:05", "web", "10.0.0.1:9000"))},
			change: bound(binding("web")),
			want:   outcome{vacuous, vacuous, vacuous, holds, nil, []string{"registered-outside", "legal-gap"}},
		},
		{
			name: "B25: the spec has the service's port, and the node port is registered",
			files: files{"cloudtrail.json": trail(cur.register("10:00:05", "web", "i-0a:31252"), cur.revoke("10:00:10", "8080"),
				cur.register("10:30:05", "web", "i-0b:31252"))},
			change: all(bound(binding("web", "80")), given(initial("80", "8080"))),
			want:   outcome{holds, holds, vacuous, holds, nil, []string{"registered-outside"}},
		},
		{
			name: "B28: two tagged groups on one interface keep one TGB from its rule",
			files: files{
				"cloudtrail.json": trail(cur.authorize("09:00:00", "80"), cur.register("09:00:05", "web", "10.0.0.1:80"),
					cur.register("10:00:00", "api", "10.0.0.2:9090"), cur.authorize("12:00:00", "80-9090"), cur.revoke("12:00:05", "80")),
				"controller.log": said("10:00:05", "Reconciler error", "controller", "targetGroupBinding", "namespace", "test", "name", "api",
					"error", "expected exactly one securityGroup tagged with kubernetes.io/cluster/c for eni eni-1, got: [sg-1 sg-2]"),
			},
			want: outcome{holds, violated, violated, holds, []string{
				"covered violated tcp 9090 10:00:00 to 12:00:00 by register 10.0.0.2:9090 of api",
			}, nil},
		},
		{
			name: "B29: the last TGB is gone, and its rule stays",
			files: files{"cloudtrail.json": trail(cur.authorize("09:00:00", "80"), cur.register("09:00:05", "web", "10.0.0.1:80"),
				cur.deregister("10:00:00", "web", "10.0.0.1:80"), alice.authorize("10:40:00", "22#ssh"))},
			want: outcome{vacuous, holds, vacuous, violated, nil, nil},
		},
		{
			name: "B29: the last TGB is gone, and so is its rule",
			files: files{"cloudtrail.json": trail(cur.authorize("09:00:00", "80"), cur.register("09:00:05", "web", "10.0.0.1:80"),
				cur.deregister("10:00:00", "web", "10.0.0.1:80"), cur.revoke("10:00:05", "80"))},
			want: outcome{holds, holds, vacuous, holds, nil, []string{"legal-gap"}},
		},
		{
			name: "B34: the nodes are not ready, and come back",
			files: files{"cloudtrail.json": trail(cur.authorize("09:00:00", "30080"), cur.register("09:00:05", "web", "i-0a:30080", "i-0b:30080"),
				cur.deregister("10:00:00", "web", "i-0a:30080", "i-0b:30080"), cur.revoke("10:00:05", "30080"),
				cur.authorize("10:30:00", "30080"), cur.register("10:30:05", "web", "i-0a:30080"))},
			want: outcome{holds, holds, vacuous, holds, nil, []string{"legal-gap"}},
		},
		{
			name: "B35: a Duplicate, then a describe and the right call",
			files: files{"history.ndjson": recorded(
				cur.describe("10:00:00"), cur.authorize("10:00:00.1", "80"), alice.authorize("10:00:09", "80-8080"),
				cur.authorize("10:00:10", "80-8080").fails("InvalidPermission.Duplicate"),
				cur.describe("10:00:10.2", "80", "80-8080"), cur.revoke("10:00:10.4", "80").within(60*ms),
				cur.describe("10:01:00", "80-8080"))},
			want: outcome{holds, holds, vacuous, holds, nil, []string{"second-writer", "begins-empty"}},
		},
		{
			name: "B38: the same Duplicate twelve times, on a group without managed rules",
			files: files{"cloudtrail.json": trail(slices.Concat([]call{cur.authorize("09:00:00", "443<10.0.0.0/8#")},
				every(cur.authorize("10:00:00", "443<10.0.0.0/8#").fails("InvalidPermission.Duplicate"), 50*time.Second, 12))...)},
			want: outcome{vacuous, vacuous, vacuous, vacuous, nil, []string{"failing-loop"}},
		},
	}
	for _, c := range cases {
		t.Run(c.name, c.run)
	}
}

// TestNeighbours has the cases of other programs, by their numbers in the list of cases.
func TestNeighbours(t *testing.T) {
	kube := caller{"masters", "ccm", "kubernetes/v1.10.2"}
	inTree := func(o *checker.Options) { o.Managed = regexp.MustCompile(`^kubernetes\.io/rule`) }
	mark := "#kubernetes.io/rule/nlb/client=a"
	cases := []scenario{
		{
			name: "B50: an update of the nodes removes all rules, and says that it was successful",
			files: files{"cloudtrail.json": trail(kube.authorize("09:00:00", "30080"+mark, "30443"+mark),
				kube.revoke("12:43:27", "30080"+mark, "30443"+mark), kube.register("13:30:00", "other", "i-0a:30080"))},
			change: inTree,
			want: outcome{violated, violated, violated, holds, []string{
				"never-empty violated 12:43:27 to … by revoke tcp 30080-30080, tcp 30443-30443",
				"covered violated tcp 30080 12:43:27 to … by revoke tcp 30080-30080, tcp 30443-30443",
				"covered violated tcp 30443 12:43:27 to … by revoke tcp 30080-30080, tcp 30443-30443",
			}, nil},
		},
		{
			name: "B52: a clean-up revokes somebody else's rule",
			files: files{"cloudtrail.json": trail(cur.authorize("09:00:00", "80"), alice.authorize("09:10:00", "all<sg-0node#nodes"),
				cur.register("09:30:00", "web", "10.0.0.1:80"), cur.revoke("10:00:00", "all<sg-0node#nodes"))},
			want: outcome{holds, holds, vacuous, holds, nil, []string{"ownership-breach"}},
		},
		{
			name: "B52: the same, with a revoke that does not repeat the description",
			files: files{"cloudtrail.json": trail(cur.authorize("09:00:00", "80"), alice.authorize("09:10:00", "all<sg-0node#nodes"),
				cur.register("09:30:00", "web", "10.0.0.1:80"), cur.revoke("10:00:00", "all<sg-0node#"))},
			want: outcome{holds, holds, vacuous, holds, nil, []string{"ownership-breach"}},
		},
		{
			name: "B55: the authorize never left the client: a revoke and nothing more",
			files: files{"cloudtrail.json": trail(old.authorize("09:00:00", "80"), old.register("09:00:05", "web", "10.0.0.1:80"),
				old.revoke("10:00:00", "80"), old.authorize("10:02:30", "80-8080"))},
			want: outcome{violated, violated, holds, holds, []string{
				"never-empty violated 10:00:00 to 10:02:30 by revoke tcp 80-80",
				"covered violated tcp 80 10:00:00 to 10:02:30 by revoke tcp 80-80",
			}, nil},
		},
		{
			name:   "B58: a rule that is equal but for its description is revoked in vain, again and again",
			files:  files{"cloudtrail.json": trail(slices.Concat(web(cur), every(cur.revoke("10:00:00", "81").fails("InvalidPermission.NotFound"), time.Minute, 9))...)},
			change: given(initial("22#ssh")),
			want:   outcome{vacuous, holds, vacuous, holds, nil, []string{"failing-loop"}},
		},
		{
			name:  "B58: a rule that never compares equal is revoked and granted in each reconcile",
			files: files{"cloudtrail.json": trail(slices.Concat(web(old), every(old.revoke("10:00:00", "80"), 5*time.Minute, 4), every(old.authorize("10:00:04", "80"), 5*time.Minute, 4))...)},
			want:  outcome{violated, violated, holds, holds, slices.Concat(rewrites("never-empty violated"), rewrites("covered violated tcp 80")), []string{"periodic"}},
		},
		{
			name: "B60: the rules vanish once an hour",
			files: files{"cloudtrail.json": trail(slices.Concat([]call{cur.authorize("09:00:00", "80"), cur.register("09:00:05", "web", "10.0.0.1:80")},
				every(alice.revoke("10:00:00", "80"), time.Hour, 5), every(cur.authorize("10:04:00", "80"), time.Hour, 5))...)},
			want: outcome{violated, violated, holds, holds, slices.Concat(hourly("never-empty violated", "revoke tcp 80-80"), hourly("covered violated tcp 80", "revoke tcp 80-80")),
				[]string{"second-writer", "outside-removal", "periodic"}},
		},
		{
			name: "B63: two writers undo each other's work",
			files: files{"cloudtrail.json": trail(slices.Concat([]call{cur.authorize("09:00:00", "80")},
				every(alice.revoke("10:00:00", "80"), time.Minute, 3), every(cur.authorize("10:00:30", "80"), time.Minute, 3))...)},
			want: outcome{violated, violated, holds, holds, []string{
				"never-empty violated 10:00:00 to 10:00:30 by revoke tcp 80-80",
				"never-empty violated 10:01:00 to 10:01:30 by revoke tcp 80-80",
				"never-empty violated 10:02:00 to 10:02:30 by revoke tcp 80-80",
				"covered violated tcp 80 10:00:00 to 10:00:30 by revoke tcp 80-80",
				"covered violated tcp 80 10:01:00 to 10:01:30 by revoke tcp 80-80",
				"covered violated tcp 80 10:02:00 to 10:02:30 by revoke tcp 80-80",
			}, []string{"second-writer", "outside-removal"}},
		},
		{
			name: "B64: redundant authorizes",
			files: files{"cloudtrail.json": trail(slices.Concat([]call{cur.authorize("09:00:00", "80"), cur.register("09:00:05", "web", "10.0.0.1:80")},
				every(cur.authorize("10:00:00", "80").fails("InvalidPermission.Duplicate"), time.Minute, 20))...)},
			want: outcome{vacuous, holds, vacuous, holds, nil, []string{"failing-loop"}},
		},
	}
	for _, c := range cases {
		t.Run(c.name, c.run)
	}
}

func rewrites(what string) []string {
	var list []string
	for _, m := range strings.Fields("00 05 10 15") {
		list = append(list, what+" 10:"+m+":00 to 10:"+m+":04 by revoke tcp 80-80")
	}
	return list
}

func hourly(what, by string) []string {
	var list []string
	for _, h := range strings.Fields("10 11 12 13 14") {
		list = append(list, what+" "+h+":00:00 to "+h+":04:00 by "+by)
	}
	return list
}

// TestControls has the situations that must not be called an outage, by their numbers in the list of cases.
func TestControls(t *testing.T) {
	widen := func(by caller) string {
		return trail(append(web(by), by.authorize("10:00:00", "80-8080"), by.revoke("10:00:00.2", "80"), by.register("10:00:00.4", "api", "10.0.0.2:8080"))...)
	}
	cases := []scenario{
		{
			name: "N1: a phantom, NotFound, a reload and the right state",
			files: files{"history.ndjson": recorded(
				cur.authorize("10:00:00", "3000-8025"), cur.authorize("10:00:10", "3000-3008"), cur.revoke("10:00:10.1", "3000-8025"),
				cur.describe("10:00:10.2", "3000-8025", "3000-3008"),
				cur.revoke("10:00:10.3", "3000-8025").fails("InvalidPermission.NotFound"),
				cur.describe("10:00:12", "3000-3008"))},
			want: outcome{holds, holds, vacuous, holds, nil, []string{"old-read"}},
		},
		{
			name: "N2: no endpoint, no rule, and both come back",
			files: files{"cloudtrail.json": trail(append(web(cur), cur.deregister("10:00:00", "web", "10.0.0.1:80"), cur.revoke("10:00:00.1", "80"),
				cur.authorize("10:20:00", "80"), cur.register("10:20:00.2", "web", "10.0.0.9:80"))...)},
			want: outcome{holds, holds, vacuous, holds, nil, []string{"legal-gap"}},
		},
		{
			name: "N3: a cold start grants only; the overlapping ranges are cleaned up later",
			files: files{"history.ndjson": recorded(
				cur.authorize("10:00:00", "80"), cur.authorize("10:01:00", "80-8080"), cur.authorize("10:02:00", "80-9090"),
				cur.revoke("10:10:00", "80", "80-8080"), cur.describe("10:20:00", "80-9090"))},
			want: outcome{holds, holds, vacuous, holds, nil, nil},
		},
		{
			name: "N4: nothing managed is left, and a human's rule covers the port",
			files: files{"cloudtrail.json": trail(append(web(cur), alice.authorize("09:30:00", "80-443#by hand"), cur.revoke("10:00:00", "80"),
				cur.register("11:00:00", "web", "10.0.0.2:80"))...)},
			want: outcome{violated, holds, violated, holds, []string{
				"never-empty violated 10:00:00 to … by revoke tcp 80-80",
			}, []string{"covered-by-unmanaged"}},
		},
		{
			name: "N5: default VPC: a revoke of an unknown rule succeeds and says so",
			files: files{"cloudtrail.json": trail(append(web(cur), cur.revoke("10:00:00", "80-8080").unknownTo("80-8080"),
				cur.register("10:30:00", "web", "10.0.0.2:80"))...)},
			want: outcome{holds, holds, vacuous, holds, nil, nil},
		},
		{
			name: "N5: default VPC: the answer lists what was revoked, and the rest was not there",
			files: files{"cloudtrail.json": trail(append(web(cur), cur.authorize("10:00:00", "80-8080"),
				cur.revoke("10:00:05", "80", "22").unknownTo("22").listing(), cur.register("10:30:00", "web", "10.0.0.2:80"))...)},
			want: outcome{holds, holds, vacuous, holds, nil, nil},
		},
		{
			name: "N5: default VPC without a word in the answer: two revokes of one rule",
			files: files{"cloudtrail.json": trail(append(web(cur), cur.authorize("10:00:00", "80-8080"), cur.revoke("10:00:05", "80"),
				cur.revoke("10:10:00", "80"), cur.register("10:30:00", "web", "10.0.0.2:80"))...)},
			want: outcome{holds, holds, vacuous, holds, nil, nil},
		},
		{
			name:  "N6: widened and narrowed in one second",
			files: files{"cloudtrail.json": widen(cur)},
			want: outcome{possible, possible, holds, holds, []string{
				"never-empty possible 09:59:59 to 10:00:01.999 by revoke tcp 80-80",
				"covered possible tcp 80 09:59:59 to 10:00:01.999 by revoke tcp 80-80",
			}, nil},
		},
		{
			name: "N6: widened and narrowed in one second, with the log's order",
			files: files{"cloudtrail.json": widen(cur), "controller.log": logged(cur.authorize("10:00:00", "80-8080"),
				cur.revoke("10:00:00.2", "80"), cur.register("10:00:00.4", "api", "10.0.0.2:8080"))},
			want: outcome{holds, holds, vacuous, holds, nil, nil},
		},
		{
			name:   "N6: widened and narrowed in one second, where the contract may decide",
			files:  files{"cloudtrail.json": widen(cur)},
			change: func(o *checker.Options) { o.Contract = true },
			want:   outcome{holds, holds, vacuous, holds, nil, nil},
		},
		{
			name:  "N6: before v2.12.0 the contract says that the rule was gone in between",
			files: files{"cloudtrail.json": widen(old)},
			want: outcome{violated, violated, holds, holds, []string{
				"never-empty violated 10:00:00 to 10:00:00 by revoke tcp 80-80",
				"covered violated tcp 80 10:00:00 to 10:00:00 by revoke tcp 80-80",
			}, nil},
		},
	}
	for _, c := range cases {
		t.Run(c.name, c.run)
	}
}

// TestSettledBy: what narrowed the orders down is named, and so is what the verdict assumes.
func TestSettledBy(t *testing.T) {
	calls := func(by caller) []call {
		return append(web(by), by.authorize("10:00:00", "80-8080"), by.revoke("10:00:00.2", "80"))
	}
	for _, c := range []struct {
		name             string
		files            files
		change           func(*checker.Options)
		settled, assumed string
	}{
		{name: "the log", files: files{"t.json": trail(calls(cur)...), "c.log": logged(calls(cur)[2:]...)},
			settled: "the controller log's order orders 1 pair of calls"},
		{name: "the contract of an old release", files: files{"t.json": trail(calls(old)...)},
			settled: "the contract of v2.11.0 (revoke, then authorize) orders 1 pair of calls"},
		{name: "the contract, where asked for", files: files{"t.json": trail(calls(cur)...)}, change: func(o *checker.Options) { o.Contract = true },
			settled: "the contract of v3.4.0 (authorize, then revoke) orders 1 pair of calls"},
		{name: "a snapshot", files: files{"t.json": trail(calls(cur)...)}, change: given(initial()),
			assumed: "the rules at the beginning are those of --initial (0)"},
		{name: "no snapshot", files: files{"t.json": trail(cur.revoke("10:00:00", "80"))},
			assumed: "rules at the beginning, proven by what came later: tcp 80-80"},
		{name: "bindings", files: files{"t.json": trail(calls(cur)...)}, change: bound(binding("web", "80")),
			assumed: "the bindings given need 1 ports, each from its creation on while it has targets"},
		{name: "a default VPC", files: files{"t.json": trail(append(web(cur), cur.revoke("10:00:00", "22"), cur.revoke("10:10:00", "22"))...)},
			assumed: "the group is in a default VPC: a revoke of absent rules succeeds, or the results cannot be explained"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := one(t, judge(t, c.files.load(t), c.change))
			if c.settled != "" && !slices.Contains(g.SettledBy, c.settled) {
				t.Errorf("settled by %q", g.SettledBy)
			}
			if c.assumed != "" && !slices.Contains(g.Assumptions, c.assumed) {
				t.Errorf("assumed: %q", g.Assumptions)
			}
		})
	}
}

// TestWriters: who changes managed rules is told apart by program, role and session.
func TestWriters(t *testing.T) {
	next := caller{"lbc", "2", cur.agent}
	for _, c := range []struct {
		name, kind, text string
		calls            []call
	}{
		{"one controller", "", "", []call{cur.authorize("10:00:00", "80"), cur.authorize("10:10:00", "81")}},
		{"a human", "second-writer", "admin/alice is no AWS Load Balancer Controller", []call{cur.authorize("10:00:00", "80"), alice.authorize("10:10:00", "81")}},
		{"a human's own rules", "", "", []call{cur.authorize("10:00:00", "80"), alice.authorize("10:10:00", "22#ssh")}},
		{"two roles", "second-writer", "two controllers share the group", []call{cur.authorize("10:00:00", "80"), lbc("v3.4.0", "lbc-b").authorize("10:10:00", "81")}},
		{"a new leader", "successive-writers", "lbc/1 (1 change), lbc/2 (1 change)", []call{cur.authorize("10:00:00", "80"), next.authorize("10:10:00", "81")}},
		{"an old leader that goes on", "second-writer", "their calls alternate", []call{cur.authorize("10:00:00", "80"), next.authorize("10:10:00", "81"), cur.authorize("10:20:00", "82")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := one(t, judge(t, files{"t.json": trail(c.calls...)}.load(t), nil))
			for _, kind := range []string{"second-writer", "successive-writers"} {
				text := finding(g, kind)
				if (text != "") != (kind == c.kind) || !strings.Contains(text, c.text) && kind == c.kind {
					t.Errorf("%s: %q", kind, text)
				}
			}
		})
	}
}

// TestLogShapes: epoch times behind a pod's prefix and a second time stamp, and RFC 3339 times, tell the same (B40).
func TestLogShapes(t *testing.T) {
	calls := []call{cur.authorize("10:00:00", "80"), cur.authorize("10:00:10", "80-443"), cur.revoke("10:00:11", "80"), cur.revoke("10:10:00", "80-443"), cur.authorize("10:10:30", "80")}
	plain := logged(calls...)
	var epoch strings.Builder
	for line := range strings.Lines(plain) {
		at := line[strings.Index(line, `"ts":"`)+6:][:20]
		seconds := fmt.Sprintf("%d.039", clock(at[11:19]).Unix())
		fmt.Fprintf(&epoch, "alb-controller-5d7f-jvm97 %s %s", strings.Replace(at, "Z", ".039Z", 1), strings.Replace(line, `"ts":"`+at+`"`, `"ts":`+seconds, 1))
	}
	want := outcomeOf(one(t, judge(t, files{"plain.log": plain}.load(t), nil)))
	got := outcomeOf(one(t, judge(t, files{"epoch.log": epoch.String()}.load(t), nil)))
	if want.NeverEmpty != violated || got.NeverEmpty != violated || len(got.Windows) != len(want.Windows) {
		t.Errorf("RFC 3339: %v\nepoch: %v", want, got)
	}
	for i, w := range got.Windows {
		if strings.ReplaceAll(w, ".039", "") != strings.ReplaceAll(want.Windows[i], ".525", "") {
			t.Errorf("%q, want %q", w, want.Windows[i])
		}
	}
}

// TestOldForMinutes: a describe that does not show a change two minutes later has a lag of as much (B57).
func TestOldForMinutes(t *testing.T) {
	g := one(t, judge(t, files{"h.ndjson": recorded(cur.authorize("10:00:00", "80"), cur.authorize("10:00:10", "80-81"),
		cur.describe("10:02:20", "80"), cur.describe("10:02:30", "80", "80-81"))}.load(t), nil))
	if l := g.Linearity; l.StaleReads != 1 || l.MaxReadLagSeconds != 129.95 || l.Result != "not-linearizable" || l.Mutations != "linearizable" {
		t.Errorf("%+v", l)
	}
	if text := finding(g, "old-read"); text != "seq 3 was answered from a version that was at least 2 m 10 s old" {
		t.Error(text)
	}
}
