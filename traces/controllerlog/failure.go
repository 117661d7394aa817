package controllerlog

import (
	"regexp"
	"slices"
	"strings"

	"linearize.example/traces"
)

// failure is what an error text tells of one call.
type failure struct {
	// op is the call; empty where the text names none (SDK v1), then ops are the calls that give such a code.
	op  string
	ops []string
	// code is AWS's error code; empty when AWS did not answer, so that the call may have taken effect.
	code, requestID string
	from            traces.Source
}

func (f *failure) matches(op string) bool {
	if f.op != "" {
		return f.op == op
	}
	return slices.Contains(f.ops, op)
}

var (
	// SDK v2 (since v2.9.0): "operation error EC2: RevokeSecurityGroupIngress, https response error StatusCode: 400,
	// RequestID: 1b2c, api error InvalidPermission.NotFound: The specified rule does not exist".
	operationError = regexp.MustCompile(`operation error [^:\n]{1,64}: (\w+)`)
	apiError       = regexp.MustCompile(`api error ([A-Za-z0-9._]+)`)
	requestIDv2    = regexp.MustCompile(`RequestID: ([0-9A-Za-z-]+)`)
	// SDK v1: "InvalidPermission.NotFound: The specified rule does not exist\n\tstatus code: 400, request id: 1b2c".
	errorV1  = regexp.MustCompile(`([A-Z]\w*(?:\.\w+)*): [^\n]*\n\tstatus code: \d+, request id: ([0-9A-Za-z-]*)`)
	clientV1 = regexp.MustCompile(`RequestError: send request failed|RequestCanceled: |context deadline exceeded|context canceled`)
)

var (
	ingressOps = []string{traces.AuthorizeSecurityGroupIngress, traces.RevokeSecurityGroupIngress}
	targetOps  = []string{traces.RegisterTargets, traces.DeregisterTargets}
	ownOps     = slices.Concat(ingressOps, targetOps, []string{traces.DeleteSecurityGroup, traces.CreateSecurityGroup})
)

// codeOps tells which of the controller's calls give a code. EC2's codes and ELB's differ (AWS: errors-overview of the
// EC2 API, CommonErrors of the ELB API).
var codeOps = map[string][]string{
	"InvalidPermission.NotFound":         {traces.RevokeSecurityGroupIngress},
	"InvalidPermission.Duplicate":        {traces.AuthorizeSecurityGroupIngress},
	"RulesPerSecurityGroupLimitExceeded": {traces.AuthorizeSecurityGroupIngress},
	"InvalidPermission.Malformed":        ingressOps,
	"InvalidGroup.NotFound":              ingressOps,
	"InvalidGroupId.Malformed":           ingressOps,
	"InvalidParameterValue":              ingressOps,
	"RequestLimitExceeded":               ingressOps,
	"UnauthorizedOperation":              ingressOps,
	"InternalError":                      ingressOps,
	"Unavailable":                        ingressOps,
	"DependencyViolation":                {traces.DeleteSecurityGroup},
	"TargetGroupNotFound":                targetOps,
	"InvalidTarget":                      targetOps,
	"TooManyTargets":                     targetOps,
	"TooManyRegistrationsForTargetId":    targetOps,
	"ValidationError":                    targetOps,
	"Throttling":                         targetOps,
	"ThrottlingException":                targetOps,
	"AccessDenied":                       targetOps,
}

// parseFailures lists the calls that an error text says failed, in the order of the text: the controller joins the
// errors of several groups with line breaks. network is set for the error of a TGB's network part.
func parseFailures(text string, network bool) []failure {
	var all []failure
	if found := operationError.FindAllStringSubmatchIndex(text, -1); found != nil {
		for i, m := range found {
			op := text[m[2]:m[3]]
			if !slices.Contains(ownOps, op) {
				continue
			}
			// Fetching credentials is an operation inside of this one's text; another own call begins the next error.
			end := len(text)
			for _, next := range found[i+1:] {
				if slices.Contains(ownOps, text[next[2]:next[3]]) || strings.Contains(text[m[1]:next[0]], "\n") {
					end = next[0]
					break
				}
			}
			part := text[m[1]:end]
			all = append(all, failure{op: op, code: group(apiError, part), requestID: group(requestIDv2, part)})
		}
		return all
	}
	for _, m := range errorV1.FindAllStringSubmatch(text, -1) {
		if ops := codeOps[m[1]]; ops != nil {
			all = append(all, failure{ops: ops, code: m[1], requestID: m[2]})
		}
	}
	for _, m := range apiError.FindAllStringSubmatch(text, -1) {
		if ops := codeOps[strings.TrimRight(m[1], ".")]; ops != nil {
			all = append(all, failure{ops: ops, code: strings.TrimRight(m[1], ".")})
		}
	}
	if all == nil && network && clientV1.MatchString(text) {
		all = append(all, failure{ops: ingressOps})
	}
	return all
}

// errorCode returns AWS's code in an error text, or the text itself.
func errorCode(text string) string {
	if m := errorV1.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	if code := group(apiError, text); code != "" {
		return code
	}
	return text
}

func group(re *regexp.Regexp, s string) string {
	if m := re.FindStringSubmatch(s); m != nil {
		return strings.TrimRight(m[1], ".")
	}
	return ""
}
