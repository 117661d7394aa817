package simulate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"linearize.example/traces"
	"linearize.example/traces/awsapi"
	"linearize.example/traces/capture"
	"linearize.example/traces/record"
)

// observed is a run with all that is known of it.
type observed struct {
	*Result
	opt      Options
	history  *traces.History
	answered []traces.Operation // every change, as AWS knows it
	changes  []awsapi.Change
	samples  []sample
	external bool // somebody else changed rules
	silent   bool // some change had no answer
}

// observe makes a run.
func observe(t testing.TB, opt Options, defaultVPC bool) *observed {
	t.Helper()
	o := &observed{opt: opt}
	in := inside{answered: func(at time.Time, c *awsapi.Call, a *awsapi.Answer) {
		if a.Status == 0 {
			return // it never arrived, or takes effect later
		}
		known := *a
		known.Lost = false
		caller := c.Caller
		for _, op := range awsapi.Operations(c, &known) {
			if op.Op != traces.DescribeSecurityGroups {
				op.Caller, op.Call, op.Return = &caller, traces.At(at), traces.At(at)
				o.answered = append(o.answered, op)
			}
		}
	}}
	if defaultVPC {
		in.world = func(file []byte) []byte {
			return bytes.Replace(file, []byte(`"cidr"`), []byte(`"default": true, "cidr"`), 1)
		}
	}
	var world *endpoint
	var err error
	if o.Result, world, err = simulated(context.Background(), opt, in); err != nil {
		t.Fatal(err)
	}
	o.history = readHistory(t, o.History)
	o.changes, o.samples = world.sim.Changes(PodGroup), replacing(world.samples)
	for _, e := range opt.Script.Events {
		o.external = o.external || e.Kind == ExternalRevoke
	}
	for i := range o.history.Operations {
		op := &o.history.Operations[i]
		o.silent = o.silent || op.Outcome == traces.Pending && !isDescribe(op)
	}
	return o
}

// replacing joins the needs of targets that are all replaced: a reconcile deregisters the old ones, then registers the new ones, and in
// between counts as no end of a need.
func replacing(samples []sample) []sample {
	joined := slices.Clone(samples)
	for i := range joined {
		for k := i + 1; k < len(samples) && samples[k].at.Sub(samples[i].at) < time.Second; k++ {
			for _, n := range samples[k].called {
				if i > 0 && !slices.Contains(joined[i].called, n) && slices.Contains(joined[i-1].called, n) {
					joined[i].called = append(slices.Clip(joined[i].called), n)
				}
			}
		}
	}
	return joined
}

func isDescribe(op *traces.Operation) bool {
	return op.Op == traces.DescribeSecurityGroups || op.Op == traces.DescribeSecurityGroupRules
}

// recordings writes what others would have recorded of a run into a folder.
type recordings struct {
	t   testing.TB
	dir string
}

func (r recordings) write(name string, content []byte) string {
	path := filepath.Join(r.dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// history writes the operations that keep leaves, and the observations.
func (r recordings) history(o *observed, name string, keep func(op *traces.Operation) bool) string {
	h := &traces.History{Observations: o.history.Observations}
	for _, op := range o.history.Operations {
		if keep(&op) {
			h.Operations = append(h.Operations, op)
		}
	}
	return r.written(h, name)
}

func (r recordings) written(h *traces.History, name string) string {
	var b bytes.Buffer
	if err := traces.WriteHistory(&b, h); err != nil {
		r.t.Fatal(err)
	}
	return r.write(name, b.Bytes())
}

// cloudTrail writes what CloudTrail would have of the run.
func (r recordings) cloudTrail(o *observed, requestIDs bool) string {
	dir := filepath.Join(r.dir, fmt.Sprintf("trail-%t", requestIDs))
	trail, err := record.NewCloudTrail(record.CloudTrailOptions{Dir: dir, Seed: o.opt.Script.Seed})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, op := range o.answered {
		if !requestIDs {
			op.RequestID = ""
		}
		trail.Record(op)
	}
	if err := trail.Close(); err != nil {
		r.t.Fatal(err)
	}
	return dir
}

// window is a history that somebody recorded from one instant to another. What was under way at the end has no answer.
func (r recordings) window(o *observed, name string, from, to traces.Instant) string {
	h := &traces.History{}
	for _, op := range o.history.Operations {
		if op.Call < from || op.Call > to {
			continue
		}
		if op.Return > to {
			op = unanswered(op)
		}
		h.Operations = append(h.Operations, op)
	}
	for _, ob := range o.history.Observations {
		if from <= ob.Earliest && ob.Latest <= to {
			h.Observations = append(h.Observations, ob)
		}
	}
	for _, at := range []traces.Instant{from, to} {
		h.Observations = append(h.Observations, traces.Observation{Kind: traces.Noted, Earliest: at, Latest: at, Text: "here it is cut"})
	}
	return r.written(h, name)
}

// unanswered is the operation without its answer.
func unanswered(op traces.Operation) traces.Operation {
	op.Outcome, op.Error, op.Return, op.RequestID = traces.Pending, "", traces.Forever, ""
	op.Granted, op.Revoked, op.Unknown, op.View = nil, nil, nil, nil
	return op
}

// forgotten writes the history with one answer of ten forgotten.
func (r recordings) forgotten(o *observed) string {
	dice := rand.New(rand.NewPCG(o.opt.Script.Seed, 3))
	h := &traces.History{Observations: o.history.Observations}
	for _, op := range o.history.Operations {
		if !isDescribe(&op) && dice.Float64() < 0.1 {
			op = unanswered(op)
		}
		h.Operations = append(h.Operations, op)
	}
	return r.written(h, "forgotten.ndjson")
}

// quiet is an instant near at at which no call is under way.
func (o *observed) quiet(at traces.Instant) traces.Instant {
	for i := range o.history.Operations {
		op := &o.history.Operations[i]
		if op.Call <= at && at <= op.Return && op.Return != traces.Forever {
			at = op.Return + 1
		}
	}
	return at
}

// rulesAt are the rules at an instant, as --initial takes them.
func (o *observed) rulesAt(at traces.Instant) []traces.Snapshot {
	s := traces.Snapshot{Group: PodGroup}
	for _, c := range o.changes {
		if c.At <= at {
			s.Rules = c.Rules
		}
	}
	return []traces.Snapshot{s}
}

// bindings are the TargetGroupBindings as kubectl prints them.
func (o *observed) bindings() []byte {
	type object map[string]any
	var items []object
	for _, b := range o.opt.Script.Bindings {
		namespace, name, _ := strings.Cut(b.Name, "/")
		source := cmp.Or(b.Source, BalancerGroup)
		items = append(items, object{"apiVersion": "elbv2.k8s.aws/v1beta1", "kind": "TargetGroupBinding",
			"metadata": object{"name": name, "namespace": namespace, "creationTimestamp": Beginning.Add(-time.Hour).Format(time.RFC3339)},
			"spec": object{"targetGroupARN": targetGroup(b.Name), "targetType": "ip", "networking": object{"ingress": []object{{
				"from":  []object{{"securityGroup": object{"groupID": source}}},
				"ports": []object{{"port": b.Port, "protocol": strings.ToUpper(b.protocol())}}}}}}})
	}
	text, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		panic(err)
	}
	return text
}

// read reads files as the tool does.
func (r recordings) read(skew time.Duration, paths ...string) *capture.Capture {
	c, err := capture.Read(context.Background(), paths, nil, capture.Options{Skew: skew})
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// logs writes the log of every process of the controller, in the format of v3.4.0, from its calls and observations.
func (r recordings) logs(o *observed) []string {
	var paths []string
	byProcess := map[string]*logger{}
	lane := func(process string) *logger {
		if !strings.HasPrefix(process, "lbc-") {
			return &logger{}
		}
		if byProcess[process] == nil {
			byProcess[process] = &logger{release: strings.TrimPrefix(userAgentOf(o.opt.Design), "elbv2.k8s.aws/"), open: map[string]*attempts{}}
		}
		return byProcess[process]
	}
	// In the order in which a process came to know of things: a call's start and end, and what it noted.
	type step struct {
		at   traces.Instant
		does func()
	}
	var steps []step
	for i := range o.history.Operations {
		op := &o.history.Operations[i]
		if isDescribe(op) || !strings.HasPrefix(op.Process, "lbc-") {
			continue
		}
		l := lane(op.Process)
		steps = append(steps, step{op.Call, func() { l.begin(op) }})
		if op.Outcome != traces.Pending {
			steps = append(steps, step{op.Return, func() { l.end(op) }})
		}
	}
	for i := range o.history.Observations {
		ob := &o.history.Observations[i]
		l := lane(ob.Process)
		steps = append(steps, step{ob.Earliest, func() { l.observation(ob) }})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	for _, s := range steps {
		s.does()
	}
	for process, l := range byProcess {
		paths = append(paths, r.write(process+".log", l.text.Bytes()))
	}
	slices.Sort(paths)
	return paths
}

// attempts are those of one call of the SDK's.
type attempts struct {
	last  *traces.Operation
	again bool // the SDK tries once more
}

// logger writes the log of one process.
type logger struct {
	release  string
	text     bytes.Buffer
	open     map[string]*attempts
	retrying bool   // the network part's second run is under way
	tgb      string // whose network part it is
}

func (l *logger) line(at traces.Instant, level, msg string, fields ...any) {
	fmt.Fprintf(&l.text, `{"level":%q,"ts":%q,"msg":%q`, level, at.Time().Format("2006-01-02T15:04:05Z"), msg)
	for i := 0; i < len(fields); i += 2 {
		value, err := json.Marshal(fields[i+1])
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&l.text, `,%q:%s`, fields[i], value)
	}
	l.text.WriteString("}\n")
}

// words are what the controller logs of a call, before and after.
var words = map[string][2]string{
	traces.AuthorizeSecurityGroupIngress: {"authorizing securityGroup ingress", "authorized securityGroup ingress"},
	traces.RevokeSecurityGroupIngress:    {"revoking securityGroup ingress", "revoked securityGroup ingress"},
	traces.RegisterTargets:               {"registering targets", "registered targets"},
	traces.DeregisterTargets:             {"deRegistering targets", "deRegistered targets"},
}

// logKey tells the calls of a process apart that are under way at once.
func logKey(op *traces.Operation) string { return op.Op + op.Group + op.TargetGroup }

func (l *logger) begin(op *traces.Operation) {
	if a := l.open[logKey(op)]; a != nil && (a.again || a.last.Outcome == traces.Pending) {
		a.last, a.again = op, false
		return
	}
	l.open[logKey(op)] = &attempts{last: op}
	fields := l.subject(op)
	if op.TargetGroup == "" {
		fields = append(fields, "permission", logged(op.Permissions))
	} else {
		fields = append(fields, "targets", logTargets(op))
	}
	l.line(op.Call, "info", words[op.Op][0], fields...)
}

func (l *logger) subject(op *traces.Operation) []any {
	if op.TargetGroup != "" {
		return []any{"arn", op.TargetGroup}
	}
	return []any{"securityGroupID", op.Group}
}

func logTargets(op *traces.Operation) (list []map[string]any) {
	for _, t := range op.Targets {
		list = append(list, map[string]any{"AvailabilityZone": nil, "Id": t.ID, "Port": t.Port, "QuicServerId": nil})
	}
	return list
}

func logged(permissions []traces.Permission) (list []map[string]any) {
	for _, p := range permissions {
		list = append(list, map[string]any{"FromPort": p.FromPort, "IpProtocol": p.Protocol, "IpRanges": nil, "Ipv6Ranges": nil, "PrefixListIds": nil, "ToPort": p.ToPort,
			"UserIdGroupPairs": []map[string]any{{"Description": p.Description, "GroupId": p.Source, "GroupName": nil, "PeeringStatus": nil,
				"UserId": nil, "VpcId": nil, "VpcPeeringConnectionId": nil}}})
	}
	return list
}

// again lists the codes that the SDK tries again.
var again = []string{"RequestLimitExceeded", "Throttling", "ThrottlingException", "InternalError", "InternalFailure", "ServiceUnavailable", "Unavailable"}

func (l *logger) end(op *traces.Operation) {
	a := l.open[logKey(op)]
	if a == nil || a.last != op {
		return
	}
	if op.Outcome == traces.Failed && slices.Contains(again, op.Error) {
		a.again = true
		return
	}
	delete(l.open, logKey(op))
	if op.Outcome == traces.Succeeded {
		fields := l.subject(op)
		if op.TargetGroup != "" {
			fields = append(fields, "targets", logTargets(op))
		}
		l.line(op.Return, "info", words[op.Op][1], fields...)
		return
	}
	service := "EC2"
	if op.TargetGroup != "" {
		service = "Elastic Load Balancing v2"
	}
	text := fmt.Sprintf("operation error %s: %s, https response error StatusCode: 400, RequestID: %s, api error %s: it was refused", service, op.Op, op.RequestID, op.Error)
	reloads := []string{"InvalidPermission.Duplicate", "InvalidPermission.NotFound", "RulesPerSecurityGroupLimitExceeded"}
	switch {
	case op.TargetGroup != "":
		l.line(op.Return, "error", "Reconciler error", "controller", "targetGroupBinding", "namespace", "test", "name", strings.Split(op.TargetGroup, "/")[1], "error", text)
	case !l.retrying && slices.Contains(reloads, op.Error):
		l.retrying = true
		l.line(op.Return, "info", "Retrying ReconcileIngress without using cache", "revokeFirst", op.Error == reloads[2])
	default:
		l.line(op.Return, "error", "Requesting network requeue due to error from ReconcileForPodEndpoints", "tgb", logName(l.tgb), "error", text)
	}
}

func logName(tgb string) map[string]string {
	namespace, name, _ := strings.Cut(tgb, "/")
	return map[string]string{"name": name, "namespace": namespace}
}

func (l *logger) observation(ob *traces.Observation) {
	at := ob.Earliest
	switch ob.Kind {
	case traces.Started:
		l.line(at, "info", "version", "GitVersion", l.release, "GitCommit", "abc", "BuildDate", "2026")
	case traces.LeaderElected:
		l.line(at, "info", "successfully acquired lease kube-system/aws-load-balancer-controller-leader\n")
	case traces.Wanted:
		l.retrying, l.tgb = false, ob.TGB
	case traces.Skipped:
		_, hash, _ := strings.Cut(ob.Text, "calculated hash ")
		l.line(at, "info", "Skipping targetgroupbinding reconcile", "tgb", logName(ob.TGB), "calculated hash", hash)
	case traces.Deferred:
		_, name, _ := strings.Cut(ob.TGB, "/")
		l.line(at, "info", "enqueued new deferred TGB", "logger", "deferredTGBQueue", "tgb", name)
	case traces.CheckpointReset:
		_, name, _ := strings.Cut(ob.TGB, "/")
		l.line(at, "info", "TGB checkpoint reset", "tgb", name)
	case traces.Reconciled:
		l.line(at, "info", "Successful reconcile", "tgb", logName(ob.TGB))
	}
}
