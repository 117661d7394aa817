package traces

import (
	"io"
	"maps"
	"strconv"
	"strings"
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

func appendText(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendRaw(b, name, mustMarshal(value))
}

func appendRaw(b []byte, name string, value []byte) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(b, mustMarshal(name)...)
	return append(append(b, ':'), value...)
}

// AppendOperation appends the line of an operation with the sequence number seq. Its After, where it is not -1, is written as the
// number of the operation at that index when the first one has number 1.
func AppendOperation(b []byte, op *Operation, seq int64) []byte {
	number := strconv.FormatInt(seq, 10)
	b = append(b, '{')
	b = appendRaw(b, "seq", []byte(number))
	if op.ID != "seq "+number {
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
			b = appendRaw(b, "pending", []byte("true"))
		}
	}
	if op.After >= 0 {
		b = appendRaw(b, "after", []byte(strconv.Itoa(op.After+1)))
	}
	if len(op.Permissions) > 0 {
		b = appendRaw(b, "ipPermissions", EncodePermissions(op.Permissions))
	}
	if len(op.RuleIDs) > 0 {
		b = appendRaw(b, "securityGroupRuleIds", mustMarshal(op.RuleIDs))
	}
	if len(op.Updates) > 0 {
		rules := make([]IdentifiedPermission, len(op.Updates))
		for i, u := range op.Updates {
			rules[i] = IdentifiedPermission(u)
		}
		b = appendRaw(b, "securityGroupRules", encodeIdentified(rules))
	}
	b = appendText(b, "targetGroupArn", op.TargetGroup)
	if len(op.Targets) > 0 {
		items := make([]target, len(op.Targets))
		for i, t := range op.Targets {
			items[i] = target{t.ID, int64(t.Port)}
		}
		b = appendRaw(b, "targets", mustMarshal(items))
	}
	result := []byte{'{'}
	if op.View != nil {
		result = appendRaw(result, "ipPermissions", EncodePermissions(op.View))
	}
	if len(op.Unknown) > 0 {
		result = appendRaw(result, "unknownIpPermissions", EncodePermissions(op.Unknown))
	}
	if len(op.Granted) > 0 {
		result = appendRaw(result, "securityGroupRules", encodeIdentified(op.Granted))
	}
	if len(op.Revoked) > 0 {
		result = appendRaw(result, "revokedSecurityGroupRules", encodeIdentified(op.Revoked))
	}
	for _, f := range op.Extra {
		if name, ok := strings.CutPrefix(f.Name, "result."); ok {
			result = appendRaw(result, name, []byte(f.Value))
		}
	}
	if len(result) > 1 {
		b = appendRaw(b, "result", append(result, '}'))
	}
	if op.Outcome == Failed {
		b = appendText(b, "error", op.Error)
	}
	if op.Unclear {
		b = appendRaw(b, "unclear", []byte("true"))
	}
	b = appendText(b, "eventId", op.EventID)
	b = appendText(b, "requestId", op.RequestID)
	if op.Caller != nil {
		b = appendRaw(b, "caller", mustMarshal(op.Caller))
	}
	for _, f := range op.Extra {
		if !strings.HasPrefix(f.Name, "result.") {
			b = appendRaw(b, f.Name, []byte(f.Value))
		}
	}
	return append(b, '}', '\n')
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
		b = appendRaw(b, "ipPermissions", EncodePermissions(ob.Permissions))
	}
	b = appendText(b, "error", ob.Error)
	b = appendText(b, "text", ob.Text)
	for _, f := range ob.Extra {
		b = appendRaw(b, f.Name, []byte(f.Value))
	}
	return append(b, '}', '\n')
}
