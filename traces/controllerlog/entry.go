package controllerlog

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"

	"linearize.example/traces"
)

// span is an instant as exactly as a time stamp tells it: both ends are possible.
type span struct{ lo, hi traces.Instant }

// entry is one line of the log, decoded.
type entry struct {
	msg, logger string
	fields      map[string]json.RawMessage
	at          span
	timed       bool
	// klog has month and day but no year; at is then in the year 2000 (a leap year, so that every date exists).
	yearless bool
}

// decode reads the text of a line, after everything that other programs put in front of it: zap's JSON, zap's console
// encoding, or klog's header. ok is false for anything else, and for a message that the reader does not know.
func decode(text []byte) (e entry, ok bool, err error) {
	switch {
	case len(text) == 0:
		return e, false, nil
	case text[0] == '{':
		msg, found := topMessage(text)
		if !found || lookup(msg) == nil {
			return e, false, nil
		}
		err := json.Unmarshal(text, &e.fields)
		if err != nil {
			return e, false, err
		}
		e.msg, e.logger = e.text("msg"), e.text("logger")
		if lookup(e.msg) == nil {
			return e, false, nil
		}
		e.at, e.timed = stamp(e.fields["ts"])
		return e, true, nil
	}
	if header := klogLine.FindSubmatch(text); header != nil {
		e.msg = strings.TrimSpace(string(header[3]))
		if lookup(e.msg) == nil {
			return e, false, nil
		}
		t, err := time.Parse("2006 0102 15:04:05.000000", "2000 "+string(header[1])+" "+string(header[2]))
		if err == nil {
			e.at, e.timed, e.yearless = span{traces.At(t), traces.At(t.Add(time.Microsecond - 1))}, true, true
		}
		return e, true, nil
	}
	return decodeConsole(text)
}

// klogLine is the header of k8s.io/klog: severity, month and day, time, thread, file and line, message. client-go logs
// leader election in this form in releases that did not yet give klog the controller's logger.
var klogLine = regexp.MustCompile(`^[IWEF](\d{4}) (\d\d:\d\d:\d\d\.\d{6}) +\d+ [^ \]]+:\d+\] (.*)$`)

// decodeConsole reads zap's console encoding: time, level, optionally logger and caller, message, fields, with tabs
// between them.
func decodeConsole(text []byte) (e entry, ok bool, err error) {
	columns := bytes.Split(text, []byte("\t"))
	if len(columns) < 3 || !isLevel(columns[1]) {
		return e, false, nil
	}
	at, timed := stamp(columns[0])
	if !timed {
		return e, false, nil
	}
	columns = columns[2:]
	if last := columns[len(columns)-1]; len(columns) > 1 && len(last) > 0 && last[0] == '{' {
		if err := json.Unmarshal(last, &e.fields); err != nil {
			if lookup(string(columns[len(columns)-2])) == nil {
				return e, false, nil
			}
			return e, false, err
		}
		columns = columns[:len(columns)-1]
	}
	e.msg = strings.TrimSpace(string(columns[len(columns)-1]))
	if len(columns) > 1 {
		e.logger = string(columns[0])
	}
	e.at, e.timed = at, timed
	return e, lookup(e.msg) != nil, nil
}

// isConsole reports whether a line is any program's, in zap's console encoding.
func isConsole(text []byte) bool {
	columns := bytes.SplitN(text, []byte("\t"), 4)
	if len(columns) < 3 || !isLevel(columns[1]) {
		return false
	}
	_, timed := stamp(columns[0])
	return timed
}

func isLevel(b []byte) bool {
	switch strings.ToUpper(string(b)) {
	case "DEBUG", "INFO", "WARN", "ERROR", "DPANIC", "PANIC", "FATAL":
		return true
	}
	return false
}

// topMessage finds the value of "msg" without decoding the line, which may be a model of many kilobytes. It may find
// the field of a nested object; decode looks again. Quotes inside of JSON strings are escaped and do not match.
func topMessage(text []byte) (string, bool) {
	i := bytes.Index(text, []byte(`"msg"`))
	if i < 0 {
		return "", false
	}
	rest := bytes.TrimLeft(text[i+len(`"msg"`):], " \t")
	if len(rest) == 0 || rest[0] != ':' {
		return "", false
	}
	rest = bytes.TrimLeft(rest[1:], " \t")
	if len(rest) == 0 || rest[0] != '"' {
		return "", false
	}
	end := bytes.IndexAny(rest[1:], `"\`)
	if end < 0 {
		return "", false
	}
	return strings.TrimSpace(string(rest[1 : end+1])), true
}

// text returns a field that is a string, or "".
func (e *entry) text(name string) string {
	var s string
	if raw, ok := e.fields[name]; !ok || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return strings.TrimSpace(s)
}

// binding returns the TargetGroupBinding that a field names: an object with name and namespace, "namespace/name", or
// the name alone. The field is "TGB" before v2.13.0 and "tgb" since.
func (e *entry) binding(names ...string) (namespace, name string) {
	for _, field := range names {
		raw, ok := e.fields[field]
		if !ok {
			continue
		}
		var object struct{ Namespace, Name string }
		if json.Unmarshal(raw, &object) == nil && object.Name != "" {
			return object.Namespace, object.Name
		}
		if s := e.text(field); s != "" {
			if namespace, name, ok := strings.Cut(s, "/"); ok {
				return namespace, name
			}
			return "", s
		}
	}
	return "", ""
}

// stamp reads a time stamp, quoted or not: RFC 3339 and ISO 8601 with any number of decimals, or seconds since the
// epoch (zap's default, used up to v2.4.x), also in milliseconds or nanoseconds. Years that no instant can express are
// no time stamps.
func stamp(raw []byte) (span, bool) {
	at, ok := parseStamp(raw)
	return at, ok && at.lo != traces.Beginning && at.hi != traces.Forever
}

func parseStamp(raw []byte) (span, bool) {
	s := strings.Trim(strings.TrimSpace(string(raw)), `"`)
	if len(s) < 10 || len(s) > 40 {
		return span{}, false
	}
	if strings.IndexByte(s, 'T') == 10 || strings.IndexByte(s, ' ') == 10 {
		return stampISO(s)
	}
	seconds, err := strconv.ParseFloat(s, 64)
	if err != nil || !(seconds > 0) {
		return span{}, false
	}
	whole, fraction, _ := strings.Cut(s, ".")
	if strings.ContainsAny(s, "eE") {
		// zap writes 1.6276815990271826e+09.
		whole, fraction, _ = strings.Cut(strconv.FormatFloat(seconds, 'f', 9, 64), ".")
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return span{}, false
	}
	fraction = (fraction + "000000000")[:9]
	nanos, err := strconv.ParseInt(fraction, 10, 64)
	if err != nil {
		return span{}, false
	}
	var at traces.Instant
	switch {
	case n >= 1e17:
		at = traces.Instant(n)
	case n >= 1e11:
		at = traces.At(time.UnixMilli(n).Add(time.Duration(nanos / 1000)))
	default:
		at = traces.At(time.Unix(n, nanos))
	}
	// zap divides nanoseconds by 1e9 in a float64, which is exact to 120 ns in this century.
	return span{at.Add(-500), at.Add(500)}, true
}

var isoLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700", "2006-01-02 15:04:05.999999999Z07:00"}

func stampISO(s string) (span, bool) {
	for _, layout := range isoLayouts {
		t, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		unit := time.Second
		if _, fraction, ok := strings.Cut(s, "."); ok {
			for i := 0; i < len(fraction) && '0' <= fraction[i] && fraction[i] <= '9' && unit > 1; i++ {
				unit /= 10
			}
		}
		lo := traces.At(t)
		return span{lo, lo.Add(unit - 1)}, true
	}
	return span{}, false
}
