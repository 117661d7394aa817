package cloudtrail

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"linearize.example/traces"
)

// reading is the state of reading one input.
type reading struct {
	*Reader
	input int
	in    *traces.Input
	s     *splitter
	// recognized says that something in the input was CloudTrail's; until then every record is decoded.
	recognized bool
	// position is where the record at hand stands: its line, where it begins one, else its number. raw is its text.
	position string
	raw      []byte
	counts   counts
	// columns are the names of Athena's columns, once its first row was read.
	columns []string
	// namedNow says that the operation at hand has a group's name for an id.
	namedNow bool
}

// counts of what the notes tell.
type counts struct {
	digests, insights, notCalls, notifications int
	unclear, differing, corrected, anonymous   int
	firstUnclear, firstDiffering               string
}

// containerKeys are the members of an object whose value is a list of records: of a log file, of lookup-events, of
// CloudWatch Logs and its subscriptions, of SQS, of Logs Insights and Splunk, of Lake, of Athena's API, of Elastic, of a
// digest.
var containerKeys = []string{`"Records"`, `"records"`, `"Events"`, `"events"`, `"logEvents"`, `"Messages"`,
	`"results"`, `"QueryResultRows"`, `"Rows"`, `"hits"`, `"logFiles"`}

func isContainer(key []byte) bool {
	for _, k := range containerKeys {
		if string(key) == k {
			return true
		}
	}
	return false
}

// run walks through the values of the input.
func (rd *reading) run(src io.Reader) error {
	rd.s = newSplitter(src, MaxRecord)
	if csv := rd.csvHeader(); csv {
		return rd.csv()
	}
	for {
		c, err := rd.s.peek()
		if err != nil {
			return rd.end(err)
		}
		switch c {
		case '{':
			if rd.isPython() {
				line := rd.s.line(rd.s.pos)
				rd.record(rd.s.restOfLine(), "line "+strconv.Itoa(line))
				continue
			}
			err = rd.object(0, true)
		case '[':
			err = rd.array("", 0)
		case '"':
			line := rd.s.line(rd.s.pos)
			var raw []byte
			if raw, err = rd.s.take(); err == nil {
				rd.record(raw, "line "+strconv.Itoa(line))
			}
		case ',':
			rd.s.pos++
		default:
			rd.text()
		}
		if err != nil {
			if err := rd.broken(err); err != nil {
				return rd.end(err)
			}
		}
	}
}

// end turns what ended the input into an error, nil for its regular end.
func (rd *reading) end(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// broken counts a value whose end was not found, and moves to the next line that may begin one. Errors of the source
// are returned.
func (rd *reading) broken(err error) error {
	start := rd.s.pos
	if rd.s.keep >= 0 {
		start = rd.s.keep
	}
	position := "line " + strconv.Itoa(rd.s.line(start))
	switch {
	case errors.Is(err, errTooLong):
		rd.reject(position, fmt.Sprintf("the record is longer than %d MiB", MaxRecord>>20))
		return nil
	case errors.Is(err, errTorn) && bytes.Contains(rd.s.buf[start:], []byte("\n{")):
		// One of many lines was never closed, and swallowed the others.
		rd.reject(position, rd.syntaxReason(rd.s.buf[start:]))
		rd.s.resync()
		return nil
	case errors.Is(err, errTorn):
		rd.reject(position, errTorn.Error())
		rd.note("truncated-capture", position+": the last record is cut off; what came before it was used")
		return io.EOF
	case errors.Is(err, errSyntax):
		rd.reject(position, rd.syntaxReason(rd.s.buf[start:]))
		rd.s.resync()
		return nil
	}
	return err
}

// syntaxReason says what stands where JSON should, for the first records, whose reasons are kept.
func (rd *reading) syntaxReason(b []byte) string {
	if len(rd.in.Rejections) >= traces.MaxRejections {
		return errSyntax.Error()
	}
	var v json.RawMessage
	err := json.NewDecoder(bytes.NewReader(b[:min(len(b), MaxRecord)])).Decode(&v)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf("is no JSON: %s, at byte %d of the record", syntax, syntax.Offset)
	}
	return "is no JSON: a string is not closed"
}

// object walks through an object that may hold lists of records, which are read record by record. Without such a list
// it is a record itself, if isRecord; else it is only a part of an answer. depth counts what it lies in.
func (rd *reading) object(depth int, isRecord bool) error {
	s := rd.s
	line := s.line(s.pos)
	if isRecord {
		s.keep = s.pos
	}
	s.pos++
	container := false
	var tokens []string
	for {
		c, err := s.peek()
		if err != nil {
			return torn(err)
		}
		switch c {
		case '}':
			s.pos++
			if container || !isRecord {
				rd.incomplete(tokens)
				return nil
			}
			if s.keep < 0 || s.pos-s.keep > s.max {
				s.keep = -1
				return errTooLong
			}
			raw := s.buf[s.keep:s.pos]
			s.keep = -1
			rd.record(raw, "line "+strconv.Itoa(line))
			return nil
		case ',':
			s.pos++
			continue
		case '"':
		default:
			return errSyntax
		}
		key, err := s.take()
		if err != nil && !errors.Is(err, errTooLong) {
			return err
		}
		name := string(key[:min(len(key), 64)])
		if c, err = s.peek(); err != nil {
			return torn(err)
		}
		if c != ':' {
			return errSyntax
		}
		s.pos++
		if c, err = s.peek(); err != nil {
			return torn(err)
		}
		switch {
		case c == '[' && depth < maxWraps && isContainer(key):
			container = true
			s.keep = -1
			if err := rd.array(name, depth+1); err != nil {
				return err
			}
		case c == '{' && depth < maxWraps && (name == `"hits"` || name == `"ResultSet"`):
			container = true
			s.keep = -1
			if err := rd.object(depth+1, false); err != nil {
				return err
			}
		default:
			if c == ',' || c == '}' || c == ']' || c == ':' {
				return errSyntax
			}
			value, err := s.take()
			if err != nil && !errors.Is(err, errTooLong) {
				return err
			}
			if len(tokens) < 8 {
				if t := pagingToken(name, value); t != "" {
					tokens = append(tokens, t)
				}
			}
		}
	}
}

func torn(err error) error {
	if errors.Is(err, io.EOF) {
		return errTorn
	}
	return err
}

// pagingToken returns what the member of an answer says about its being incomplete, "" if nothing.
func pagingToken(name string, value []byte) string {
	switch name {
	case `"NextToken"`, `"nextToken"`: // get-log-events always gives a nextForwardToken; it says nothing
		if len(value) > 2 && value[0] == '"' {
			return strings.Trim(name, `"`) + " says that more pages exist"
		}
	case `"QueryStatus"`:
		if s := string(value); s != `"FINISHED"` {
			return "the query had not finished: QueryStatus is " + strings.Trim(s, `"`)
		}
	case `"status"`:
		switch s := string(value); s {
		case `"Running"`, `"Scheduled"`, `"Failed"`, `"Cancelled"`, `"Timeout"`:
			return "the query had not finished: status is " + strings.Trim(s, `"`)
		}
	}
	return ""
}

func (rd *reading) incomplete(tokens []string) {
	for _, t := range tokens {
		rd.note("truncated-capture", t+": events are missing from this input")
	}
}

// array reads the records of a list; key is the member that holds it, "" for a list at the top.
func (rd *reading) array(key string, depth int) error {
	s := rd.s
	digest := key == `"logFiles"`
	before := rd.in.Records
	s.pos++
	for {
		c, err := s.peek()
		if err != nil {
			return torn(err)
		}
		switch {
		case c == ']':
			s.pos++
			switch key {
			case `"Records"`, `"Events"`, `"QueryResultRows"`:
				rd.recognized = rd.recognized || rd.in.Records == before // an empty answer is one
			}
			if digest {
				rd.recognized = true
				rd.counts.digests++
				rd.in.Records++
				rd.in.Irrelevant++
			}
			return nil
		case c == ',':
			s.pos++
		case c == '}' || c == ':':
			return errSyntax
		case digest:
			if err := s.skip(); err != nil {
				return err
			}
		case c == '{' && depth < maxWraps && startsContainer(s.ahead(256)):
			if err := rd.object(depth+1, true); err != nil {
				return err
			}
		default:
			raw, err := s.take()
			switch {
			case errors.Is(err, errTooLong):
				rd.reject("record "+strconv.Itoa(rd.in.Records+1), fmt.Sprintf("the record is longer than %d MiB", MaxRecord>>20))
			case err != nil:
				return err
			default:
				rd.record(raw, "")
			}
		}
	}
}

// startsContainer reports whether an object's first member is a list of records, as where log files were put into a list.
func startsContainer(b []byte) bool {
	b = bytes.TrimLeft(b[1:], " \t\r\n")
	if len(b) == 0 || b[0] != '"' {
		return false
	}
	end := bytes.IndexByte(b[1:], '"')
	if end < 0 || !isContainer(b[:end+2]) {
		return false
	}
	b = bytes.TrimLeft(b[end+2:], " \t\r\n")
	return len(b) > 0 && b[0] == ':' && bytes.HasPrefix(bytes.TrimLeft(b[1:], " \t\r\n"), []byte{'['})
}

// text passes over what is no JSON: the columns of `--output text`, and what loggers put before an event.
func (rd *reading) text() {
	s := rd.s
	before := bytes.TrimRight(s.buf[:s.pos], " \t\r")
	atStart := len(before) == 0 || before[len(before)-1] == '\n'
	line := s.line(s.pos)
	rest := s.ahead(64 << 10)
	end := bytes.IndexAny(rest, "{\n")
	if end >= 0 && rest[end] == '{' {
		s.pos += end
		return
	}
	if end < 0 {
		end = len(rest)
	}
	words := string(rest[:min(end, 40)])
	s.restOfLine()
	switch column, token, _ := strings.Cut(strings.TrimSpace(words), "\t"); {
	case column == "NEXTTOKEN":
		rd.note("truncated-capture", "NEXTTOKEN "+strings.TrimSpace(token)+": events are missing from this input")
	case !atStart, column == "RESOURCES":
	case len(rd.in.Rejections) >= traces.MaxRejections:
		rd.reject("", "")
	default:
		rd.reject("line "+strconv.Itoa(line), fmt.Sprintf("is no JSON: %q", words))
	}
}

// record counts one record and uses it. Until the input was recognized every record is decoded, later only those that
// may be about the calls in question.
func (rd *reading) record(raw []byte, position string) {
	if rd.recognized && !rd.decodeAll && !mayMatter(raw) {
		rd.in.Records++
		rd.in.Irrelevant++
		return
	}
	if position == "" {
		position = "record " + strconv.Itoa(rd.in.Records+1)
	}
	rd.position, rd.raw = position, raw
	if len(raw) > 1 && raw[0] == '{' && isPython(raw) {
		v, _, err := parsePython(string(raw))
		rd.value(v, err)
		return
	}
	v, err := decode(raw)
	if err != nil {
		rd.reject(position, "is no JSON: "+err.Error())
		return
	}
	rd.value(v, nil)
}

// value uses one decoded record.
func (rd *reading) value(v any, err error) {
	if err != nil {
		rd.reject(rd.position, err.Error())
		return
	}
	rd.use(v, "", 0)
}

// use uses one decoded value, which is one record unless it holds several events.
func (rd *reading) use(v any, format string, depth int) {
	before := rd.in.Records
	reason := rd.open(v, format, depth)
	switch {
	case rd.in.Records > before: // events were found in it, and counted
	case reason == "" || rd.recognized && !mayMatter(rd.raw):
		rd.in.Records++
		rd.in.Irrelevant++
	default:
		rd.reject(rd.position, reason)
	}
}

func (rd *reading) reject(position, reason string) {
	rd.in.Records++
	rd.in.Reject(position, reason)
}

func (rd *reading) note(kind, text string) {
	if len(rd.in.Notes) < traces.MaxRejections {
		rd.in.Notes = append(rd.in.Notes, traces.Note{Kind: kind, Text: text})
	}
}

// notes tells what was counted.
func (rd *reading) notes() {
	c := rd.counts
	for _, n := range []struct {
		count      int
		kind, text string
	}{
		{c.digests, "skipped-records", "digest files of CloudTrail, which hold no events, were skipped"},
		{c.insights, "skipped-records", "CloudTrail Insights events, which are statistics and no calls, were skipped"},
		{c.notCalls, "skipped-records", "events that are no API calls were skipped"},
		{c.notifications, "skipped-records", "notifications of S3 or SNS, which are no CloudTrail events, were skipped"},
		{c.unclear, "unclear-record", "records lack what was asked for, so that their effect is unknown; the first: " + c.firstUnclear},
		{c.differing, "differing-duplicates", "records repeat an eventID with other contents (of one call the fuller record was used, different calls were all used); the first: " + c.firstDiffering},
		{c.corrected, "corrected-records", "records correct an earlier one (addendum UPDATED_DATA), which they replace"},
		{c.anonymous, "no-event-id", "records have no eventID, so that duplicates among them cannot be told"},
	} {
		if n.count > 0 {
			rd.note(n.kind, strconv.Itoa(n.count)+" "+n.text)
		}
	}
}

// maxValues bounds the values in one record. They cost far more memory than their text; CloudTrail's own limit for
// parameters, 100 KB, leaves room for a fraction.
const maxValues = 100_000

var errTooMany = fmt.Errorf("it holds more than %d values", maxValues)

// decode reads one JSON value; numbers keep their text.
func decode(raw []byte) (any, error) {
	v, rest, err := decodePrefix(raw)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("something follows the value")
	}
	return v, nil
}

// decodePrefix reads the JSON value at the start of raw and returns what follows it.
func decodePrefix(raw []byte) (v any, rest []byte, err error) {
	if bytes.Count(raw, []byte{','})+bytes.Count(raw, []byte{'{'})+bytes.Count(raw, []byte{'['}) > maxValues {
		return nil, nil, errTooMany
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return nil, nil, errors.New("it ends too early")
		}
		return nil, nil, err
	}
	return v, raw[d.InputOffset():], nil
}

var (
	groupStem  = []byte("SecurityGroup")
	targetStem = []byte("egisterTargets")
	escapeStem = []byte(`\u00`)
)

// mayMatter reports whether a record can be about one of the calls in question. Their names contain "SecurityGroup" or
// "egisterTargets"; letters of them may be written as escapes.
func mayMatter(raw []byte) bool {
	if bytes.Contains(raw, groupStem) || bytes.Contains(raw, targetStem) {
		return true
	}
	for {
		i := bytes.Index(raw, escapeStem)
		if i < 0 || i+len(escapeStem) >= len(raw) {
			return false
		}
		raw = raw[i+len(escapeStem):]
		if raw[0] >= '4' && raw[0] <= '7' {
			return true
		}
	}
}
