package record

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"linearize.example/traces"
)

const (
	// minDelay and maxDelay bound how long CloudTrail takes from a call to the file that has it; seen were 0 to 10 minutes, and AWS
	// says 5 on average (AWS CloudTrail user guide, "How CloudTrail works").
	minDelay = 20 * time.Second
	maxDelay = 6 * time.Minute
	// deliveredTwice is the share of events that come again in another file, with their eventID ("Finding your CloudTrail log
	// files": "you may receive log files that contain one or more duplicate events").
	deliveredTwice = 1.0 / 16
	// maxEvents is how many events a file has at most.
	maxEvents = 500
)

// CloudTrailOptions say what CloudTrail's files shall look like.
type CloudTrailOptions struct {
	// Dir gets the folders AWSLogs/ACCOUNT/CloudTrail/REGION/YEAR/MONTH/DAY that a trail has in S3.
	Dir string
	// Seed decides on delays, orders and duplicates.
	Seed uint64
	// Account and Region stand in the events; "" is 111122223333 and us-east-1.
	Account, Region string

	_ struct{}
}

// CloudTrail is a Sink that writes what CloudTrail would have written of the calls: whole seconds, no describes, in gzipped files with
// events of several minutes in any order, some of them twice. As with CloudTrail an event comes minutes after its call: what is not
// delivered yet is lost with the process, and written by Close.
type CloudTrail struct {
	o CloudTrailOptions

	mu     sync.Mutex
	events uint64
	files  uint64
	// waiting are the events to be delivered, by the minute since 1970 in which they are.
	waiting map[int64][]json.RawMessage
	err     error
}

// NewCloudTrail makes the folder.
func NewCloudTrail(o CloudTrailOptions) (*CloudTrail, error) {
	o.Account, o.Region = cmp.Or(o.Account, "111122223333"), cmp.Or(o.Region, "us-east-1")
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("record: CloudTrail's files: %w", err)
	}
	return &CloudTrail{o: o, waiting: map[int64][]json.RawMessage{}}, nil
}

// Record takes an operation. Describes, calls without an answer and those that were never sent leave no event.
func (c *CloudTrail) Record(op traces.Operation) {
	if isRead(op.Op) || op.Outcome == traces.Pending || op.Error == NotSent {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events++
	rng := rand.New(rand.NewPCG(c.o.Seed, c.events))
	event := mustMarshal(c.event(&op, rng))
	at := op.Return.Time()
	deliveries := 1
	if rng.Float64() < deliveredTwice {
		deliveries = 2
	}
	for range deliveries {
		delay := minDelay + time.Duration(rng.Int64N(int64(maxDelay-minDelay)))
		minute := at.Add(delay).Unix() / 60
		c.waiting[minute] = append(c.waiting[minute], event)
	}
	// Calls do not end exactly in order: a minute that is just over waits for one more.
	c.deliver(at.Unix()/60 - 1)
}

// Close writes the events that were not delivered yet. It returns the first error of all writing.
func (c *CloudTrail) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deliver(math.MaxInt64)
	return c.err
}

// deliver writes the files of the minutes up to one.
func (c *CloudTrail) deliver(until int64) {
	for _, minute := range slices.Sorted(maps.Keys(c.waiting)) {
		if minute > until {
			return
		}
		events := c.waiting[minute]
		delete(c.waiting, minute)
		rng := rand.New(rand.NewPCG(c.o.Seed, 1<<63|uint64(minute)))
		rng.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		for some := range slices.Chunk(events, maxEvents) {
			if err := c.file(time.Unix(minute*60, 0).UTC(), some); err != nil && c.err == nil {
				c.err = fmt.Errorf("record: CloudTrail's files: %w", err)
			}
		}
	}
}

// file writes one file, as S3 would show it: whole or not at all.
func (c *CloudTrail) file(at time.Time, events []json.RawMessage) error {
	c.files++
	rng := rand.New(rand.NewPCG(c.o.Seed, 1<<62|c.files))
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	unique := make([]byte, 16)
	for i := range unique {
		unique[i] = letters[rng.IntN(len(letters))]
	}
	dir := filepath.Join(c.o.Dir, "AWSLogs", c.o.Account, "CloudTrail", c.o.Region, at.Format("2006/01/02"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(mustMarshal(map[string]any{"Records": events}))
	if err = errors.Join(err, z.Close()); err != nil {
		return err
	}
	name := filepath.Join(dir, fmt.Sprintf("%s_CloudTrail_%s_%s_%s.json.gz", c.o.Account, c.o.Region, at.Format("20060102T1504Z"), unique))
	if err := os.WriteFile(name+newSuffix, b.Bytes(), 0o644); err != nil {
		return errors.Join(err, os.Remove(name+newSuffix))
	}
	return os.Rename(name+newSuffix, name)
}

// event is a CloudTrail record in the order of its fields (AWS CloudTrail user guide, "CloudTrail record contents").
type event struct {
	EventVersion       string         `json:"eventVersion"`
	UserIdentity       map[string]any `json:"userIdentity"`
	EventTime          string         `json:"eventTime"`
	EventSource        string         `json:"eventSource"`
	EventName          string         `json:"eventName"`
	AWSRegion          string         `json:"awsRegion"`
	SourceIPAddress    string         `json:"sourceIPAddress,omitempty"`
	UserAgent          string         `json:"userAgent,omitempty"`
	ErrorCode          string         `json:"errorCode,omitempty"`
	RequestParameters  map[string]any `json:"requestParameters"`
	ResponseElements   map[string]any `json:"responseElements"`
	RequestID          string         `json:"requestID,omitempty"`
	EventID            string         `json:"eventID"`
	ReadOnly           bool           `json:"readOnly"`
	EventType          string         `json:"eventType"`
	APIVersion         string         `json:"apiVersion,omitempty"`
	ManagementEvent    bool           `json:"managementEvent"`
	RecipientAccountID string         `json:"recipientAccountId"`
	EventCategory      string         `json:"eventCategory"`
}

func (c *CloudTrail) event(op *traces.Operation, rng *rand.Rand) *event {
	var caller traces.Caller
	if op.Caller != nil {
		caller = *op.Caller
	}
	e := &event{
		EventVersion: "1.11", UserIdentity: c.identity(&caller), EventTime: op.Return.Time().Format("2006-01-02T15:04:05Z"),
		EventSource: "ec2.amazonaws.com", EventName: op.Op, AWSRegion: c.o.Region, SourceIPAddress: caller.SourceAddress, UserAgent: caller.UserAgent,
		ErrorCode: op.Error, RequestParameters: request(op), RequestID: op.RequestID, EventID: cmp.Or(op.EventID, uuid(rng)), EventType: "AwsApiCall", ManagementEvent: true,
		RecipientAccountID: cmp.Or(caller.Account, c.o.Account), EventCategory: "Management",
	}
	elb := op.Op == traces.RegisterTargets || op.Op == traces.DeregisterTargets
	switch {
	case elb:
		e.EventSource, e.APIVersion = "elasticloadbalancing.amazonaws.com", "2015-12-01"
	case op.Outcome == traces.Failed:
		e.ErrorCode = faultOf(op.Error) + op.Error
	}
	if op.Outcome == traces.Succeeded && !elb {
		e.ResponseElements = c.response(op)
	}
	return e
}

// faultOf is the prefix that EC2's codes have in CloudTrail: who is to blame.
func faultOf(code string) string {
	switch code {
	case "InternalError", "InternalFailure", "Unavailable", "ServiceUnavailable":
		return "Server."
	}
	return "Client."
}

func uuid(rng *rand.Rand) string {
	a, b := rng.Uint64(), rng.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0x3fff|0x8000, b&0xffffffffffff)
}

func (c *CloudTrail) identity(caller *traces.Caller) map[string]any {
	account := cmp.Or(caller.Account, c.o.Account)
	id := map[string]any{"type": "IAMUser", "accountId": account}
	set := func(name, value string) {
		if value != "" {
			id[name] = value
		}
	}
	set("accessKeyId", caller.AccessKeyID)
	set("invokedBy", caller.InvokedBy)
	switch {
	case caller.Role != "" && caller.Session != "":
		id["type"] = "AssumedRole"
		id["principalId"] = "AROAEXAMPLE:" + caller.Session
		id["arn"] = fmt.Sprintf("arn:aws:sts::%s:assumed-role/%s/%s", account, caller.Role, caller.Session)
		session := map[string]any{"sessionIssuer": map[string]any{"type": "Role", "principalId": "AROAEXAMPLE", "accountId": account,
			"arn": fmt.Sprintf("arn:aws:iam::%s:role/%s", account, caller.Role), "userName": caller.Role}}
		if caller.SessionStart != "" {
			session["attributes"] = map[string]any{"creationDate": caller.SessionStart, "mfaAuthenticated": "false"}
		}
		id["sessionContext"] = session
	case caller.Role != "":
		id["arn"] = fmt.Sprintf("arn:aws:iam::%s:user/%s", account, caller.Role)
		id["userName"] = caller.Role
	}
	return id
}

// items is a list as CloudTrail makes it of EC2's XML: an empty one has no items.
func items(list []any) map[string]any {
	if len(list) == 0 {
		return map[string]any{}
	}
	return map[string]any{"items": list}
}

// request is what was asked for. CloudTrail has it as the client sent it; one item for each rule stands for that.
func request(op *traces.Operation) map[string]any {
	r := map[string]any{}
	switch {
	case op.TargetGroup != "":
		r["targetGroupArn"] = op.TargetGroup
	case op.Op == traces.CreateSecurityGroup:
		r["groupName"] = "recorded" // which the history does not know, nor any verdict needs
	case strings.HasPrefix(op.Group, "sg-"):
		r["groupId"] = op.Group
	case op.Group != "":
		r["groupName"] = op.Group
	}
	if op.Unclear {
		return r // whoever recorded the call could not read the rest
	}
	if len(op.Permissions) > 0 {
		r["ipPermissions"] = items(ipPermissions(op.Permissions))
	}
	if len(op.RuleIDs) > 0 {
		var ids []any
		for _, id := range op.RuleIDs {
			ids = append(ids, map[string]any{"securityGroupRuleId": id})
		}
		r["securityGroupRuleIds"] = items(ids)
	}
	if len(op.Targets) > 0 {
		var targets []any
		for _, t := range op.Targets {
			target := map[string]any{"id": t.ID}
			if t.Port != 0 {
				target["port"] = t.Port
			}
			targets = append(targets, target)
		}
		r["targets"] = targets
	}
	if op.Op == traces.ModifySecurityGroupRules {
		var rules []any
		for i, u := range op.Updates {
			rule := map[string]any{"IpProtocol": u.Protocol, "Description": u.Description, sourceNames(u.Source).modify: u.Source}
			addPorts(rule, "FromPort", "ToPort", u.Rule)
			rules = append(rules, map[string]any{"SecurityGroupRuleId": u.ID, "SecurityGroupRule": rule, "tag": i + 1})
		}
		// The only call that keeps the XML's own names.
		return map[string]any{"ModifySecurityGroupRulesRequest": map[string]any{"GroupId": op.Group, "SecurityGroupRule": rules}}
	}
	if len(op.Updates) > 0 {
		var descriptions []any
		for _, u := range op.Updates {
			descriptions = append(descriptions, map[string]any{"SecurityGroupRuleId": u.ID, "Description": u.Description})
		}
		r["SecurityGroupRuleDescription"] = descriptions
	}
	return r
}

// response is what a call of EC2 that succeeded answered.
func (c *CloudTrail) response(op *traces.Operation) map[string]any {
	r := map[string]any{"_return": true}
	if op.RequestID != "" {
		r["requestId"] = op.RequestID
	}
	switch op.Op {
	case traces.ModifySecurityGroupRules:
		return map[string]any{op.Op + "Response": map[string]any{"requestId": op.RequestID, "return": true}}
	case traces.CreateSecurityGroup:
		r["groupId"] = op.Group
	}
	if len(op.Granted) > 0 {
		r["securityGroupRuleSet"] = items(c.rules(op.Group, op.Granted, false))
	}
	if len(op.Revoked) > 0 {
		r["revokedSecurityGroupRuleSet"] = items(c.rules(op.Group, op.Revoked, true))
	}
	if len(op.Unknown) > 0 {
		r["unknownIpPermissionSet"] = items(ipPermissions(op.Unknown))
	}
	return r
}

// rules are those of an answer.
func (c *CloudTrail) rules(group string, list []traces.IdentifiedPermission, revoked bool) (rules []any) {
	for _, p := range list {
		rule := map[string]any{"groupId": group, "isEgress": false, "ipProtocol": p.Protocol, "fromPort": p.FromPort, "toPort": p.ToPort}
		if p.ID != "" {
			rule["securityGroupRuleId"] = p.ID
		}
		if p.Description != "" {
			rule["description"] = p.Description
		}
		if !revoked {
			rule["groupOwnerId"] = c.o.Account
		}
		if names := sourceNames(p.Source); names.answer == "referencedGroupId" && !revoked {
			rule["referencedGroupInfo"] = map[string]any{"groupId": p.Source, "userId": c.o.Account}
		} else {
			rule[names.answer] = p.Source
		}
		rules = append(rules, rule)
	}
	return rules
}

// sourceName is how the three forms of a rule name its source.
type sourceName struct{ list, member, answer, modify string }

func sourceNames(source string) sourceName {
	switch {
	case strings.HasPrefix(source, "pl-"):
		return sourceName{"prefixListIds", "prefixListId", "prefixListId", "PrefixListId"}
	case strings.Contains(source, "/") && strings.Contains(source, ":"):
		return sourceName{"ipv6Ranges", "cidrIpv6", "cidrIpv6", "CidrIpv6"}
	case strings.Contains(source, "/"):
		return sourceName{"ipRanges", "cidrIp", "cidrIpv4", "CidrIpv4"}
	case strings.HasPrefix(source, "sg-"):
		return sourceName{"groups", "groupId", "referencedGroupId", "ReferencedGroupId"}
	}
	return sourceName{"groups", "groupName", "referencedGroupId", "ReferencedGroupId"}
}

func ipPermissions(permissions []traces.Permission) (list []any) {
	for _, p := range permissions {
		item := map[string]any{"ipProtocol": p.Protocol, "groups": items(nil), "ipRanges": items(nil), "ipv6Ranges": items(nil), "prefixListIds": items(nil)}
		addPorts(item, "fromPort", "toPort", p.Rule)
		names := sourceNames(p.Source)
		source := map[string]any{names.member: p.Source}
		if p.Description != "" {
			source["description"] = p.Description
		}
		item[names.list] = items([]any{source})
		list = append(list, item)
	}
	return list
}

// addPorts adds the ports of a protocol that has some.
func addPorts(to map[string]any, from, until string, r traces.Rule) {
	switch r.Protocol {
	case "tcp", "udp", "icmp", "icmpv6":
		to[from], to[until] = r.FromPort, r.ToPort
	}
}
