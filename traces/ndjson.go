package traces

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxLine bounds one line of a history, in bytes. A longer line is rejected, and the rest is read.
const MaxLine = 16 << 20

// ErrNoHistory says that the input does not begin like a history.
var ErrNoHistory = errors.New(`no history: the first line is not {"history":"v1",…}`)

// ReadHistory reads a history (docs/history.md) and appends its operations and observations to h, counting into
// h.Inputs[input]. Records that cannot be used are counted there with their reason. A torn last line is noted and
// the rest is used. It fails with ErrNoHistory where the first line is no header, and with what r returns.
func ReadHistory(r io.Reader, h *History, input int) error {
	d := historyDecoder{h: h, input: input, in: &h.Inputs[input], first: len(h.Operations)}
	lines := NewLines(r, MaxLine)
	header := true
	for lines.Next() {
		d.bytes += int64(len(lines.Bytes()))
		line := bytes.TrimSpace(lines.Bytes())
		if !utf8.Valid(line) {
			line = bytes.ToValidUTF8(line, []byte("\uFFFD")) // as encoding/json does with strings
		}
		switch {
		case lines.TooLong() && header:
			return ErrNoHistory
		case lines.TooLong():
			d.in.Records++
			d.in.Reject(d.position(lines), fmt.Sprintf("the line is longer than %d MiB", MaxLine>>20))
		case len(line) == 0:
		case header:
			if err := d.header(line); err != nil {
				return err
			}
			header = false
		case bytes.HasPrefix(line, []byte(`{"history"`)) && d.header(line) == nil:
			// Another file's header: the parts of a recording were concatenated.
		default:
			d.in.Records++
			switch err := d.record(line, lines); {
			case err == nil:
			case lines.Torn():
				d.in.Reject(d.position(lines), "the last line is torn")
				d.in.Notes = append(d.in.Notes, Note{"truncated-capture", "the history's last line is torn; the rest was used"})
			default:
				d.in.Reject(d.position(lines), err.Error())
			}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if header {
		return ErrNoHistory
	}
	d.resolveAfter()
	return nil
}

// IsHistory reports whether the line is a history's header.
func IsHistory(line []byte) bool {
	var header struct {
		History string `json:"history"`
	}
	return json.Unmarshal(line, &header) == nil && header.History != ""
}

// Recording is what the parts of one recording share: the operations that a later part may complete, and values that many
// records have.
type Recording struct {
	open        map[int64]int // the operations without an answer, by sequence number
	strings     map[string]string
	permissions map[string][]Permission
	callers     map[string]*Caller
}

type historyDecoder struct {
	*Recording
	h     *History
	input int
	in    *Input
	bytes int64   // that were read
	first int     // the index of the first operation of this input
	seqs  []int64 // the sequence numbers of its operations, or noSeq
	after []pendingAfter
}

// noSeq stands for an operation without a sequence number.
const noSeq = math.MinInt64

// pendingAfter is an "after" that names a sequence number which may come later in the file.
type pendingAfter struct {
	operation int
	seq       int64
	position  string
}

func (d *historyDecoder) position(l *Lines) string { return "line " + strconv.Itoa(l.Number()) }

func (d *historyDecoder) header(line []byte) error {
	if !IsHistory(line) {
		return ErrNoHistory
	}
	err := eachField(line, func(name, value []byte) error {
		text := string(value)
		var s string
		if json.Unmarshal(value, &s) == nil {
			text = s
		}
		if string(name) == "history" && text != "v1" {
			return fmt.Errorf("the history says version %q; this program reads \"v1\"", text)
		}
		switch string(name) {
		case "history":
			return nil
		case "recording":
			d.in.Recording = text
		case "part":
			d.in.Part, _ = strconv.Atoi(text)
		}
		if d.h.Header == nil {
			d.h.Header = map[string]string{}
		}
		d.h.Header[string(name)] = text
		return nil
	})
	if d.Recording = d.h.Recordings[d.in.Recording]; d.Recording == nil {
		d.Recording = &Recording{map[int64]int{}, map[string]string{}, map[string][]Permission{}, map[string]*Caller{}}
		if d.in.Recording != "" {
			if d.h.Recordings == nil {
				d.h.Recordings = map[string]*Recording{}
			}
			d.h.Recordings[d.in.Recording] = d.Recording
		}
	}
	return err
}

// complete puts op in the place of the operation without an answer of which it is the whole record, if there is one. It returns
// the place of op, which is the next one otherwise, and whether there was such an operation.
func (d *historyDecoder) complete(seq int64, op *Operation) (place int, completed bool) {
	next := len(d.h.Operations)
	if len(d.open) == 0 || seq == noSeq {
		return next, false
	}
	i, found := d.open[seq]
	if !found || !sameRecord(&d.h.Operations[i], op) {
		return next, false
	}
	if in := &d.h.Inputs[d.h.Operations[i].Sources[0].Input]; in != d.in {
		in.Records--
		in.Used--
		d.in.Used++
	} else {
		d.in.Records--
	}
	op.After = d.h.Operations[i].After
	d.h.Operations[i] = *op
	if !op.open() {
		delete(d.open, seq)
	}
	return i, true
}

// open reports whether the operation is one to which an answer may still come.
func (op *Operation) open() bool { return op.Outcome == Pending && op.Return == Forever }

// sameRecord reports whether two records with the same sequence number, of which the first has no answer, are of one call. Which
// group it is about, the first may not know, or by its name only.
func sameRecord(open, op *Operation) bool {
	return open.Op == op.Op && (open.Group == op.Group || !strings.HasPrefix(open.Group, "sg-")) &&
		(open.RequestID == op.RequestID || open.RequestID == "" || op.RequestID == "")
}

// record decodes one line into an operation or an observation.
func (d *historyDecoder) record(line []byte, lines *Lines) error {
	if !json.Valid(line) {
		return errors.New("the line is no JSON object")
	}
	op := Operation{Call: Beginning, Return: Forever, After: -1, Outcome: Succeeded}
	var ob Observation
	var (
		seq, after         int64
		hasSeq, hasAfter   bool
		hasCall, hasReturn bool
		pending            bool
	)
	err := eachField(line, func(name, value []byte) (err error) {
		if string(value) == "null" {
			return nil
		}
		switch string(name) {
		case "seq":
			seq, err = strconv.ParseInt(string(value), 10, 64)
			hasSeq = true
		case "id":
			op.ID, err = d.text(value)
		case "eventId":
			op.EventID, err = d.text(value)
		case "requestId":
			op.RequestID, err = d.text(value)
		case "process":
			op.Process, err = d.text(value)
		case "op":
			op.Op, err = d.text(value)
		case "groupId":
			op.Group, err = d.text(value)
		case "call":
			op.Call, err = instant(value)
			hasCall = true
		case "return":
			op.Return, err = instant(value)
			hasReturn = true
		case "pending":
			pending = string(value) == "true"
		case "unclear":
			op.Unclear = string(value) == "true"
		case "after":
			after, err = strconv.ParseInt(string(value), 10, 64)
			hasAfter = true
		case "error":
			op.Error, err = d.text(value)
			op.Outcome = Failed
			if err == nil && op.Error == "" {
				op.Outcome = Succeeded
			}
		case "ipPermissions":
			op.Permissions, err = d.permissionList(value)
		case "securityGroupRuleIds":
			err = json.Unmarshal(value, &op.RuleIDs)
		case "securityGroupRules":
			op.Updates, err = decodeUpdates(value)
		case "result":
			err = d.result(&op, value)
		case "targetGroupArn":
			op.TargetGroup, err = d.text(value)
		case "targets":
			op.Targets, err = decodeTargets(value)
		case "caller":
			op.Caller, err = d.caller(value)
		case "observation":
			var kind string
			kind, err = d.text(value)
			ob.Kind = ObservationKind(kind)
		case "tgb":
			ob.TGB, err = d.text(value)
		case "at":
			ob.Earliest, err = instant(value)
			ob.Latest = ob.Earliest
		case "earliest":
			ob.Earliest, err = instant(value)
		case "latest":
			ob.Latest, err = instant(value)
		case "text":
			ob.Text, err = d.text(value)
		default:
			op.Extra = append(op.Extra, Field{d.intern(string(name)), string(value)})
		}
		if err != nil {
			return fmt.Errorf("field %q: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	position := d.position(lines)
	source := []Source{{Input: d.input, Position: position}}
	if op.ID == "" {
		op.ID = position
		if hasSeq {
			op.ID = "seq " + strconv.FormatInt(seq, 10)
		}
	}
	if ob.Kind != "" {
		ob.ID, ob.Process, ob.Group, ob.Permissions, ob.Error, ob.Sources = op.ID, op.Process, op.Group, op.Permissions, op.Error, source
		ob.Extra = d.unknownFields(line)
		if ob.Latest < ob.Earliest {
			return errors.New("the observation's latest instant is before its earliest")
		}
		d.h.Observations = append(d.h.Observations, ob)
		d.in.Used++
		return nil
	}
	switch {
	case op.Op == "":
		return errors.New(`the record has neither "op" nor "observation"`)
	case !hasCall && !hasReturn:
		return errors.New(`the operation has neither "call" nor "return"`)
	}
	if op.Return < op.Call {
		// A clock that was set back in between: the call took effect between the two, whichever came first.
		op.Call, op.Return = op.Return, op.Call
		d.in.Notes = append(d.in.Notes, Note{"clock-set-back", position + ": the call returns before it was sent; the interval was turned around"})
	}
	if pending || !hasReturn && op.Outcome == Succeeded {
		op.Outcome = Pending
	}
	op.Sources = source
	if !hasSeq {
		seq = noSeq
	}
	place, completed := d.complete(seq, &op)
	if hasAfter {
		d.after = append(d.after, pendingAfter{place, after, position})
	}
	if completed {
		return nil
	}
	d.seqs = append(d.seqs, seq)
	if hasSeq && op.open() {
		d.open[seq] = place
	}
	d.allot()
	d.h.Operations = append(d.h.Operations, op)
	d.in.Used++
	return nil
}

// unknownFields returns the fields of an observation's record that an observation does not have.
func (d *historyDecoder) unknownFields(line []byte) (extra []Field) {
	_ = eachField(line, func(name, value []byte) error { // it was read without an error
		switch string(name) {
		case "observation", "id", "process", "tgb", "groupId", "at", "earliest", "latest", "ipPermissions", "error", "text":
		default:
			if string(value) != "null" {
				extra = append(extra, Field{d.intern(string(name)), string(value)})
			}
		}
		return nil
	})
	return extra
}

// allot makes room for as many operations as the rest of the input seems to hold: to copy a long history to a larger place takes
// the memory of both.
func (d *historyDecoder) allot() {
	n := len(d.h.Operations)
	read := n - d.first
	if n < cap(d.h.Operations) || read < 1024 || d.h.Expected <= d.bytes {
		return
	}
	rest := float64(read) * float64(d.h.Expected-d.bytes) / float64(d.bytes)
	const most = 64 // times what was read: the rest may be of another kind
	// A slice that grows by itself takes a quarter too much.
	larger := make([]Operation, n, n+int(min(rest*1.02, float64(most*n)))+64)
	copy(larger, d.h.Operations)
	d.h.Operations = larger
}

// resolveAfter turns the sequence numbers of "after" into indices.
func (d *historyDecoder) resolveAfter() {
	if len(d.after) == 0 {
		return
	}
	bySeq := map[int64]int{}
	for i, seq := range d.seqs {
		bySeq[seq] = d.first + i
	}
	var earlier map[string]int
	for _, a := range d.after {
		i, ok := bySeq[a.seq]
		if !ok && d.in.Recording != "" {
			if earlier == nil {
				earlier = d.earlierParts()
			}
			i, ok = earlier["seq "+strconv.FormatInt(a.seq, 10)]
		}
		if !ok || a.seq == noSeq || i == a.operation {
			d.in.Notes = append(d.in.Notes, Note{"unknown-predecessor", fmt.Sprintf("%s: \"after\" names seq %d, which is no other operation; it was left out", a.position, a.seq)})
			continue
		}
		d.h.Operations[a.operation].After = i
	}
	breakCycles(d.h.Operations, d.in)
}

// earlierParts returns the operations of the parts of this recording that were read before, by their names.
func (d *historyDecoder) earlierParts() map[string]int {
	byID := map[string]int{}
	for i := range d.h.Operations[:d.first] {
		op := &d.h.Operations[i]
		if len(op.Sources) > 0 && d.h.Inputs[op.Sources[0].Input].Recording == d.in.Recording {
			byID[op.ID] = i
		}
	}
	return byID
}

// breakCycles drops the "after" of operations that wait for themselves.
func breakCycles(ops []Operation, in *Input) {
	const unseen, open, done = 0, 1, 2
	mark := make([]uint8, len(ops))
	for i := range ops {
		var path []int
		j := i
		for j >= 0 && mark[j] == unseen {
			mark[j] = open
			path = append(path, j)
			j = ops[j].After
		}
		if j >= 0 && mark[j] == open {
			ops[j].After = -1
			in.Notes = append(in.Notes, Note{"unknown-predecessor", fmt.Sprintf("%s waits for itself; its \"after\" was left out", ops[j].ID)})
		}
		for _, k := range path {
			mark[k] = done
		}
	}
}

func (d *historyDecoder) intern(s string) string {
	if t, ok := d.strings[s]; ok {
		return t
	}
	if len(d.strings) < 1<<16 {
		d.strings[s] = s
	}
	return s
}

func (d *historyDecoder) text(value []byte) (string, error) {
	if len(value) >= 2 && value[0] == '"' && bytes.IndexByte(value, '\\') < 0 {
		if t, ok := d.strings[string(value[1:len(value)-1])]; ok {
			return t, nil
		}
	}
	var s string
	if err := json.Unmarshal(value, &s); err != nil {
		return "", errors.New("is no string")
	}
	return d.intern(s), nil
}

func (d *historyDecoder) permissionList(value []byte) ([]Permission, error) {
	if p, ok := d.permissions[string(value)]; ok {
		return p, nil
	}
	p, err := DecodePermissions(value)
	if err == nil && len(d.permissions) < 1<<16 {
		d.permissions[string(value)] = p
	}
	return p, err
}

func (d *historyDecoder) caller(value []byte) (*Caller, error) {
	if c, ok := d.callers[string(value)]; ok {
		return c, nil
	}
	var c Caller
	if err := json.Unmarshal(value, &c); err != nil {
		return nil, err
	}
	d.callers[string(value)] = &c
	return &c, nil
}

// result decodes what a call answered: the rules of a describe, what a revoke did not find, ids of rules.
func (d *historyDecoder) result(op *Operation, value []byte) error {
	return eachField(value, func(name, value []byte) (err error) {
		if string(value) == "null" {
			return nil
		}
		switch string(name) {
		case "ipPermissions":
			op.View, err = d.permissionList(value)
			if op.View == nil {
				op.View = []Permission{}
			}
		case "unknownIpPermissions":
			op.Unknown, err = d.permissionList(value)
		case "securityGroupRules":
			op.Granted, err = decodeIdentified(value)
		case "revokedSecurityGroupRules":
			op.Revoked, err = decodeIdentified(value)
		default:
			op.Extra = append(op.Extra, Field{d.intern("result." + string(name)), string(value)})
		}
		return err
	})
}

func instant(value []byte) (Instant, error) {
	if len(value) < 2 || value[0] != '"' {
		return 0, errors.New("is no time; write RFC 3339 in quotes")
	}
	var i Instant
	if err := i.UnmarshalText(value[1 : len(value)-1]); err != nil {
		return 0, errors.New("is no RFC 3339 time")
	}
	return i, nil
}

// eachField calls f with the name and the value of each field of a valid JSON object, in order. Names that are written
// with escapes are decoded.
func eachField(object []byte, f func(name, value []byte) error) error {
	if len(object) == 0 || object[0] != '{' {
		return errors.New("is no JSON object")
	}
	i := 1
	for {
		i = skipSpace(object, i)
		if i >= len(object) || object[i] == '}' {
			return nil
		}
		if object[i] == ',' {
			i++
			continue
		}
		start := i
		i = skipValue(object, i)
		name := object[start:i]
		if bytes.IndexByte(name, '\\') >= 0 {
			var s string
			if err := json.Unmarshal(name, &s); err != nil {
				return err
			}
			name = []byte(s)
		} else {
			name = name[1 : len(name)-1]
		}
		i = skipSpace(object, i)
		if i >= len(object) || object[i] != ':' {
			return errors.New("is no JSON object")
		}
		start = skipSpace(object, i+1)
		i = skipValue(object, start)
		if err := f(name, object[start:i]); err != nil {
			return err
		}
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns the index behind the JSON value that begins at i; b is valid JSON.
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			i++
			if depth == 0 {
				return min(i, len(b))
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			if depth == 0 {
				return i + 1
			}
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}
