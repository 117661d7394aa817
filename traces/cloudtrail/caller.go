package cloudtrail

import (
	"cmp"
	"strings"

	"linearize.example/traces"
)

// caller reads who made the call, nil if the event says nothing about it. Equal callers are one value.
func (rd *reading) caller(e object) *traces.Caller {
	identity, _ := asObject(e.get("userIdentity"))
	session := identity.object("sessionContext")
	issuer := session.object("sessionIssuer")
	c := traces.Caller{
		Account:       identity.text("accountId"),
		AccessKeyID:   identity.text("accessKeyId"),
		SessionStart:  session.object("attributes").text("creationDate"),
		UserAgent:     e.text("userAgent"),
		SourceAddress: e.text("sourceIPAddress"),
		InvokedBy:     identity.text("invokedBy"),
	}
	account, role, name := splitARN(identity.text("arn"))
	if role == "" {
		_, role, _ = splitARN(issuer.text("arn"))
	}
	if c.Account == "" {
		c.Account = account
	}
	if c.Account == "" {
		c.Account = e.text("recipientAccountId")
	}
	c.Role = issuer.text("userName")
	if c.Role == "" {
		c.Role = role
	}
	if c.Role == "" {
		c.Role = identity.text("userName")
	}
	if c.Role == "" && identity.text("type") == "Root" {
		c.Role = "root"
	}
	c.Session = name
	if c.Session == "" && identity.text("type") == "AssumedRole" {
		_, c.Session, _ = strings.Cut(identity.text("principalId"), ":")
	}
	if c == (traces.Caller{Account: c.Account}) {
		return nil // an account alone is the recipient's, and no caller
	}
	if known, ok := rd.callers[c]; ok {
		return known
	}
	rd.callers[c] = &c
	return &c
}

// splitARN takes an identity's ARN apart: arn:aws:sts::<account>:assumed-role/<role>/<session>,
// arn:aws:iam::<account>:user/<path>/<name>, …:role/<path>/<name>, …:root.
func splitARN(arn string) (account, role, session string) {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 {
		return "", "", ""
	}
	account = parts[4]
	kind, rest, _ := strings.Cut(parts[5], "/")
	switch kind {
	case "assumed-role":
		role, session, _ = strings.Cut(rest, "/")
	case "root":
		role = "root"
	default:
		role = rest[strings.LastIndexByte(rest, '/')+1:]
	}
	return account, role, session
}

// processName is what people call the caller: role and session where it has them.
func processName(c *traces.Caller) string {
	switch {
	case c.Role != "" && c.Session != "":
		return c.Role + "/" + c.Session
	case c.Role != "":
		return c.Role
	case c.Session != "":
		return c.Session
	}
	return cmp.Or(c.Product(), c.InvokedBy, c.SourceAddress, c.AccessKeyID, c.SessionStart)
}

func compareCallers(a, b *traces.Caller) int {
	return cmp.Or(
		cmp.Compare(a.Account, b.Account), cmp.Compare(a.Role, b.Role), cmp.Compare(a.Session, b.Session),
		cmp.Compare(a.AccessKeyID, b.AccessKeyID), cmp.Compare(a.SessionStart, b.SessionStart),
		cmp.Compare(a.UserAgent, b.UserAgent), cmp.Compare(a.SourceAddress, b.SourceAddress), cmp.Compare(a.InvokedBy, b.InvokedBy))
}
