package traces

import (
	"io"
	"maps"
	"strconv"
	"strings"
	"unicode/utf8"
)

// WriteHistory writes h in the form that ReadHistory reads, with sequence numbers from 1 in the order of h.Operations,
// observations behind the operations. Reading it again gives the same operations and observations.
func WriteHistory(w io.Writer, h *History) error {
	b := AppendHeader(nil, h.Header)
	for i := range h.Operations {
		b = AppendOperation(b, &h.Operations[i], int64(i)+1)
		if len(b) > 1<<16 {
			if _, err := w.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	for i := range h.Observations {
		b = AppendObservation(b, &h.Observations[i])
	}
	_, err := w.Write(b)
	return err
}

// AppendHeader appends the first line of a history, with what it says of itself besides its version.
func AppendHeader(b []byte, header map[string]string) []byte {
	rest := maps.Clone(header)
	delete(rest, "history")
	// encoding/json sorts the keys of a map; the version comes first for people who look at the file.
	b = append(b, `{"history":"v1"`...)
	if len(rest) > 0 {
		fields := mustMarshal(rest)
		b = append(append(b, ','), fields[1:len(fields)-1]...)
	}
	return append(b, "}\n"...)
}

// appendText appends a field that is left out where it is empty.
func appendText(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendJSONString(appendName(b, name), value)
}

func appendRaw(b []byte, name, value string) []byte { return append(appendName(b, name), value...) }

func appendNumber(b []byte, name string, value int64) []byte {
	return strconv.AppendInt(appendName(b, name), value, 10)
}

// appendName appends a field's name to an object that is not closed yet.
func appendName(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(appendJSONString(b, name), ':')
}

// appendJSONString appends a string as json.Marshal writes it.
func appendJSONString(b []byte, s string) []byte {
	ascii := true
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c == 0x7f, c == '"', c == '\\', c == '<', c == '>', c == '&':
			return append(b, mustMarshal(s)...)
		case c > 0x7f:
			ascii = false
		}
	}
	if !ascii && (!utf8.ValidString(s) || strings.ContainsAny(s, "\u2028\u2029")) {
		return append(b, mustMarshal(s)...)
	}
	return append(append(append(b, '"'), s...), '"')
}

// AppendOperation appends the line of an operation with the sequence number seq. Its After, where it is not -1, is written as the
// number of the operation at that index when the first one has number 1.
func AppendOperation(b []byte, op *Operation, seq int64) []byte {
	b = appendNumber(append(b, '{'), "seq", seq)
	if number, ok := strings.CutPrefix(op.ID, "seq "); !ok || number != strconv.FormatInt(seq, 10) {
		b = appendText(b, "id", op.ID)
	}
	b = appendText(b, "process", op.Process)
	b = appendText(b, "op", op.Op)
	b = appendText(b, "groupId", op.Group)
	if op.Call != Beginning || op.Return == Forever {
		b = appendText(b, "call", op.Call.String())
	}
	if op.Return != Forever {
		b = appendText(b, "return", op.Return.String())
		if op.Outcome == Pending {
			b = appendRaw(b, "pending", "true")
		}
	}
	if op.After >= 0 {
		b = appendNumber(b, "after", int64(op.After)+1)
	}
	if len(op.Permissions) > 0 {
		b = appendPermissions(appendName(b, "ipPermissions"), op.Permissions)
	}
	if len(op.RuleIDs) > 0 {
		b = append(appendName(b, "securityGroupRuleIds"), mustMarshal(op.RuleIDs)...)
	}
	if len(op.Updates) > 0 {
		rules := make([]IdentifiedPermission, len(op.Updates))
		for i, u := range op.Updates {
			rules[i] = IdentifiedPermission(u)
		}
		b = appendIdentified(appendName(b, "securityGroupRules"), rules)
	}
	b = appendText(b, "targetGroupArn", op.TargetGroup)
	if len(op.Targets) > 0 {
		items := make([]target, len(op.Targets))
		for i, t := range op.Targets {
			items[i] = target{t.ID, int64(t.Port)}
		}
		b = append(appendName(b, "targets"), mustMarshal(items)...)
	}
	b = appendResult(b, op)
	if op.Outcome == Failed {
		b = appendText(b, "error", op.Error)
	}
	if op.Unclear {
		b = appendRaw(b, "unclear", "true")
	}
	b = appendText(b, "eventId", op.EventID)
	b = appendText(b, "requestId", op.RequestID)
	if op.Caller != nil {
		b = appendCaller(appendName(b, "caller"), op.Caller)
	}
	for _, f := range op.Extra {
		if !strings.HasPrefix(f.Name, "result.") {
			b = appendRaw(b, f.Name, f.Value)
		}
	}
	return append(b, '}', '\n')
}

// appendResult appends what the call answered, if the operation has any of it.
func appendResult(b []byte, op *Operation) []byte {
	before := len(b)
	b = append(appendName(b, "result"), '{')
	empty := len(b)
	if op.View != nil {
		b = appendPermissions(appendName(b, "ipPermissions"), op.View)
	}
	if len(op.Unknown) > 0 {
		b = appendPermissions(appendName(b, "unknownIpPermissions"), op.Unknown)
	}
	if len(op.Granted) > 0 {
		b = appendIdentified(appendName(b, "securityGroupRules"), op.Granted)
	}
	if len(op.Revoked) > 0 {
		b = appendIdentified(appendName(b, "revokedSecurityGroupRules"), op.Revoked)
	}
	for _, f := range op.Extra {
		if name, ok := strings.CutPrefix(f.Name, "result."); ok {
			b = appendRaw(b, name, f.Value)
		}
	}
	if len(b) == empty {
		return b[:before]
	}
	return append(b, '}')
}

func appendCaller(b []byte, c *Caller) []byte {
	b = append(b, '{')
	b = appendText(b, "role", c.Role)
	b = appendText(b, "session", c.Session)
	b = appendText(b, "account", c.Account)
	b = appendText(b, "accessKeyId", c.AccessKeyID)
	b = appendText(b, "sessionStart", c.SessionStart)
	b = appendText(b, "userAgent", c.UserAgent)
	b = appendText(b, "sourceAddress", c.SourceAddress)
	b = appendText(b, "invokedBy", c.InvokedBy)
	return append(b, '}')
}

// AppendObservation appends the line of an observation.
func AppendObservation(b []byte, ob *Observation) []byte {
	b = append(b, '{')
	b = appendText(b, "observation", string(ob.Kind))
	b = appendText(b, "id", ob.ID)
	b = appendText(b, "process", ob.Process)
	b = appendText(b, "tgb", ob.TGB)
	b = appendText(b, "groupId", ob.Group)
	if ob.Earliest == ob.Latest {
		b = appendText(b, "at", ob.Earliest.String())
	} else {
		b = appendText(b, "earliest", ob.Earliest.String())
		b = appendText(b, "latest", ob.Latest.String())
	}
	if len(ob.Permissions) > 0 {
		b = appendPermissions(appendName(b, "ipPermissions"), ob.Permissions)
	}
	b = appendText(b, "error", ob.Error)
	b = appendText(b, "text", ob.Text)
	for _, f := range ob.Extra {
		b = appendRaw(b, f.Name, f.Value)
	}
	return append(b, '}', '\n')
}
