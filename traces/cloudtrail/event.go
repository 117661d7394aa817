package cloudtrail

import (
	"reflect"
	"slices"
	"strings"
	"unicode"

	"linearize.example/traces"
)

const (
	ec2Source = "ec2.amazonaws.com"
	elbSource = "elasticloadbalancing.amazonaws.com"
)

// calls are the calls that become operations, and the service that they belong to.
var calls = map[string]string{
	traces.AuthorizeSecurityGroupIngress:              ec2Source,
	traces.RevokeSecurityGroupIngress:                 ec2Source,
	traces.ModifySecurityGroupRules:                   ec2Source,
	traces.UpdateSecurityGroupRuleDescriptionsIngress: ec2Source,
	traces.CreateSecurityGroup:                        ec2Source,
	traces.DeleteSecurityGroup:                        ec2Source,
	traces.DescribeSecurityGroups:                     ec2Source,
	traces.DescribeSecurityGroupRules:                 ec2Source,
	traces.RegisterTargets:                            elbSource,
	traces.DeregisterTargets:                          elbSource,
}

// event counts one event and uses it. It returns "", because an event is what was looked for; an event that cannot be
// used was rejected.
func (rd *reading) event(e object, format string) (reason string) {
	if !rd.recognized || rd.in.Format == "" {
		rd.recognized = true
		rd.in.Format = format
	}
	name := e.text("eventName")
	service, ok := calls[name]
	switch kind := e.text("eventType"); {
	case kind != "" && kind != "AwsApiCall":
		rd.counts.notCalls++
		ok = false
	case strings.TrimSuffix(e.text("eventSource"), ".cn") != service:
		ok = false
	}
	if !ok {
		rd.in.Records++
		rd.in.Irrelevant++
		return ""
	}
	at, resolution, err := parseTime(e.get("eventTime"))
	if err != nil && e.get("eventTime") == nil {
		at, resolution, err = parseTime(e.get("@timestamp")) // Logstash's codec moves it there
	}
	if err != nil {
		rd.reject(rd.position, "its eventTime "+err.Error())
		return ""
	}
	if t := traces.At(at); t == traces.Beginning || t == traces.Forever {
		rd.reject(rd.position, "its eventTime is outside of the years 1678 to 2261")
		return ""
	}
	op, problem := rd.operation(name, e)
	op.Call = traces.At(at).Add(-rd.options.Skew)
	// Bounds are included, and the next second is not.
	op.Return = traces.At(at).Add(resolution + rd.options.Skew - 1)
	if problem != "" {
		op.Unclear = true
		if op.Outcome == traces.Succeeded {
			if rd.counts.unclear++; rd.counts.firstUnclear == "" {
				rd.counts.firstUnclear = rd.position + ": " + problem
			}
		}
	}
	rd.add(op, e)
	return ""
}

// operation builds the operation of one event, but for its interval. problem says what of the request is missing or
// odd, so that the effect is unknown; "" if nothing.
func (rd *reading) operation(name string, e object) (op traces.Operation, problem string) {
	op = traces.Operation{
		EventID: identifier(e.text("eventID")), RequestID: identifier(e.text("requestID")), Op: name, After: -1, Outcome: traces.Succeeded,
		Caller:  rd.caller(e),
		Sources: []traces.Source{{Input: rd.input, Position: rd.position}},
	}
	op.ID = op.EventID
	if op.ID == "" {
		op.ID = rd.in.Path + ": " + rd.position
		rd.counts.anonymous++
	}
	if code := e.text("errorCode"); code != "" {
		op.Outcome, op.Error = traces.Failed, stripCode(code)
	} else if e.text("errorMessage") != "" {
		op.Outcome, op.Error = traces.Failed, "unknown"
	}
	request, isObject := asObject(e.get("requestParameters"))
	if !isObject || len(request) == 0 {
		problem = "it has no requestParameters"
	}
	// Some calls are wrapped in an object of the call's own name, in the spelling of EC2's XML.
	if inner, ok := asObject(request.get(name + "Request")); ok {
		request = inner
	}
	response, _ := asObject(e.get("responseElements"))
	if inner, ok := asObject(response.get(name + "Response")); ok {
		response = inner
	}
	op.Group = rd.intern(request.text("groupId", "securityGroupId"))
	named := ""
	if op.Group == "" {
		named = request.text("groupName")
	}
	add := func(p string) {
		if problem == "" {
			problem = p
		}
	}
	switch name {
	case traces.AuthorizeSecurityGroupIngress, traces.RevokeSecurityGroupIngress:
		add(rd.ingress(&op, request, response))
	case traces.ModifySecurityGroupRules:
		add(rd.updates(&op, request.get("SecurityGroupRule"), true))
	case traces.UpdateSecurityGroupRuleDescriptionsIngress:
		var p string
		op.Permissions, p = rd.permissions(request.get("ipPermissions"))
		add(p)
		if v := first(request, "SecurityGroupRuleDescription", "SecurityGroupRuleDescriptions", "securityGroupRuleDescriptionSet"); v != nil {
			add(rd.updates(&op, v, false))
		}
		if len(op.Permissions) == 0 && len(op.Updates) == 0 {
			add("it names no rule")
		}
	case traces.CreateSecurityGroup:
		op.Group = rd.intern(response.text("groupId"))
		if op.Group == "" && op.Outcome == traces.Succeeded {
			add("its answer has no groupId")
		}
		if op.Outcome == traces.Succeeded && named != "" {
			rd.learnName(named, op.Group)
		}
		named = ""
	case traces.DescribeSecurityGroups, traces.DescribeSecurityGroupRules:
		problem = ""
		rd.describe(&op, request)
		named = ""
	case traces.RegisterTargets, traces.DeregisterTargets:
		add(targets(&op, request))
		named = ""
	}
	if op.Group == "" && named != "" {
		op.Group = rd.groupInAnswer(response)
		if op.Group == "" {
			op.Group = named
			rd.namedNow = true
		}
	}
	if op.Group == "" && needsGroup(name) {
		add("it names no group")
	}
	if op.Outcome == traces.Succeeded && strings.EqualFold(response.text("_return", "return"), "false") {
		add("its answer says _return false without an error")
	}
	return op, problem
}

// identifier returns id unless it was blanked out: an identifier has a letter or a digit.
func identifier(id string) string {
	if strings.ContainsFunc(id, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }) {
		return id
	}
	return ""
}

func needsGroup(name string) bool {
	switch name {
	case traces.AuthorizeSecurityGroupIngress, traces.RevokeSecurityGroupIngress, traces.ModifySecurityGroupRules,
		traces.UpdateSecurityGroupRuleDescriptionsIngress, traces.DeleteSecurityGroup:
		return true
	}
	return false
}

// learnName remembers the id of a group by its name. A name that two groups had is of no use.
func (rd *reading) learnName(name, id string) {
	if known, ok := rd.names[name]; ok && known != id {
		id = ""
	}
	rd.names[name] = id
}

// groupInAnswer returns the id of the group that an answer's rules belong to.
func (rd *reading) groupInAnswer(response object) string {
	for _, set := range []string{"securityGroupRuleSet", "revokedSecurityGroupRuleSet"} {
		rules, _ := list(response.get(set))
		for _, rule := range rules {
			if r, ok := asObject(rule); ok && r.text("groupId") != "" {
				return rd.intern(r.text("groupId"))
			}
		}
	}
	return ""
}

func first(o object, names ...string) any {
	for _, name := range names {
		if v := o.get(name); v != nil {
			return v
		}
	}
	return nil
}

// stripCode removes the prefix that EC2's codes have in CloudTrail and not in the SDKs.
func stripCode(code string) string {
	if s, ok := strings.CutPrefix(code, "Client."); ok {
		return s
	}
	s, _ := strings.CutPrefix(code, "Server.")
	return s
}

// describe fills in what a describe asked for. Its answer is never recorded, so that it marks an instant and no more.
func (rd *reading) describe(op *traces.Operation, request object) {
	ids, _ := list(request.get("securityGroupIdSet"))
	for _, rule := range ids {
		if o, ok := asObject(rule); ok && len(ids) == 1 {
			op.Group = rd.intern(o.text("groupId"))
		}
	}
	filters, _ := list(request.get("filterSet"))
	for _, filter := range filters {
		o, _ := asObject(filter)
		values, _ := list(o.get("valueSet"))
		if o.text("name") == "group-id" && len(values) == 1 {
			v, _ := asObject(values[0])
			op.Group = rd.intern(v.text("value"))
		}
	}
	op.RuleIDs = ruleIDs(request)
}

// targets fills in the targets of a call to ELBv2.
func targets(op *traces.Operation, request object) (problem string) {
	op.TargetGroup = request.text("targetGroupArn")
	items, err := list(request.get("targets"))
	if err != nil {
		return "its targets cannot be read: " + err.Error()
	}
	for _, item := range items {
		o, ok := asObject(item)
		port, err := integer(o.get("port"))
		switch {
		case !ok || o.text("id") == "":
			problem = "a target has no id"
			continue
		case err != nil:
			problem = "the port of target " + o.text("id") + ": " + err.Error()
			continue
		case port != nil && (*port < 0 || *port > 65535):
			problem = "the port of target " + o.text("id") + " is outside of 0..65535"
			continue
		}
		t := traces.Target{ID: o.text("id")}
		if port != nil {
			t.Port = int32(*port)
		}
		op.Targets = append(op.Targets, t)
	}
	switch {
	case problem != "":
	case op.TargetGroup == "":
		problem = "it names no target group"
	case len(op.Targets) == 0:
		problem = "it names no target"
	}
	return problem
}

// add appends an operation to the history, unless the event was seen before: then the operation is the same one, and
// of two that differ the fuller one is kept.
func (rd *reading) add(op traces.Operation, e object) {
	named := rd.namedNow
	rd.namedNow = false
	rd.in.Records++
	addendum := e.object("addendum")
	original := ""
	if addendum.text("reason") == "UPDATED_DATA" {
		original = addendum.text("originalEventID")
		rd.counts.corrected++
	}
	shared := e.text("sharedEventID")
	request := ""
	if op.RequestID != "" {
		request = op.RequestID + " " + op.Op
	}
	i, seen := rd.find(&op, shared, request, original)
	if !seen {
		i = len(rd.h.Operations)
		rd.h.Operations = append(rd.h.Operations, op)
		rd.in.Used++
		if named {
			rd.named[i] = true
		}
	} else {
		rd.in.Duplicates++
		rd.merge(&rd.h.Operations[i], op, original != "")
	}
	for _, key := range []struct {
		index map[string]int
		key   string
	}{{rd.byEvent, op.EventID}, {rd.byEvent, original}, {rd.byShared, shared}, {rd.byRequest, request}} {
		if _, ok := key.index[key.key]; !ok && key.key != "" {
			key.index[key.key] = i
		}
	}
}

// find returns the operation that another record of the same call gave. Equal eventIDs are the same event, unless the
// call, its group or its time differ, as where ids were blanked out; one call in two accounts has two eventIDs and one
// sharedEventID; and equal request ids are the same call if nothing else differs.
func (rd *reading) find(op *traces.Operation, shared, request, original string) (int, bool) {
	if i, ok := rd.byEvent[op.EventID]; ok && op.EventID != "" {
		if was := &rd.h.Operations[i]; was.Op == op.Op && overlap(was, op) && (was.Group == op.Group || was.Group == "" || op.Group == "") {
			return i, true
		}
		rd.differs("an event of the same eventID is another call")
	}
	if i, ok := rd.byEvent[original]; ok && original != "" {
		return i, true
	}
	if i, ok := rd.byShared[shared]; ok && shared != "" {
		return i, true
	}
	if i, ok := rd.byRequest[request]; ok && request != "" && sameCall(&rd.h.Operations[i], op) {
		return i, true
	}
	return 0, false
}

func overlap(a, b *traces.Operation) bool { return a.Call <= b.Return && b.Call <= a.Return }

func (rd *reading) differs(what string) {
	if rd.counts.differing++; rd.counts.firstDiffering == "" {
		rd.counts.firstDiffering = rd.position + ": " + what
	}
}

// merge joins another record of the same event into an operation of this reader's.
func (rd *reading) merge(was *traces.Operation, op traces.Operation, correction bool) {
	sources := append(slices.Clip(was.Sources), op.Sources...)
	switch {
	case correction:
		op.ID, op.EventID = was.ID, was.EventID
		*was = op
	case !sameCall(was, &op):
		rd.differs("its contents differ from those of " + was.Sources[0].Position)
		if fuller(&op, was) {
			*was = op
		}
	case was.Caller == nil:
		was.Caller = op.Caller
	}
	was.Sources = sources
}

// sameCall reports whether two records tell the same of a call. Who made it does not count: exports shorten that most.
func sameCall(a, b *traces.Operation) bool {
	return a.Op == b.Op && a.Group == b.Group && a.Outcome == b.Outcome && a.Error == b.Error && a.Unclear == b.Unclear &&
		a.Call == b.Call && a.Return == b.Return && a.TargetGroup == b.TargetGroup && slices.Equal(a.RuleIDs, b.RuleIDs) &&
		slices.Equal(a.Permissions, b.Permissions) && slices.Equal(a.Targets, b.Targets) && reflect.DeepEqual(a.Updates, b.Updates) &&
		slices.Equal(a.Granted, b.Granted) && slices.Equal(a.Revoked, b.Revoked) && slices.Equal(a.Unknown, b.Unknown)
}

// fuller reports whether a tells more than b.
func fuller(a, b *traces.Operation) bool {
	if a.Unclear != b.Unclear {
		return b.Unclear
	}
	if a.Outcome != b.Outcome {
		return a.Outcome == traces.Failed // an export without the errorCode makes a success of every failure
	}
	weight := func(o *traces.Operation) int {
		return len(o.Permissions) + len(o.Granted) + len(o.Revoked) + len(o.Unknown) + len(o.Updates) + len(o.Targets) + len(o.RuleIDs)
	}
	return weight(a) > weight(b)
}
