package controllerlog

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// wrapped is what programs that carry a log put around a line of it.
type wrapped struct {
	pod string
	// at is the carrier's own time stamp, a little later than the controller's.
	at    span
	timed bool
	// exact is set for time stamps of nanoseconds: two equal lines with equal stamps are one line, delivered twice.
	exact bool
	// partial lines go on in the next line of the same stream.
	partial bool
	stream  string
}

var (
	ansi  = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")
	podOf = regexp.MustCompile(`^\[pod/([^/\]]+)/[^\]]*\]$`)
)

const (
	maxPrefix = 512
	// dockerChunk is the size at which docker's json-file driver cuts a line.
	dockerChunk = 16 << 10
)

// peel removes what kubectl (--timestamps, --prefix), stern, docker, containerd and fluent-bit put around a line.
func peel(line []byte) ([]byte, wrapped) {
	var w wrapped
	if bytes.IndexByte(line, 0x1b) >= 0 {
		line = ansi.ReplaceAll(line, nil)
	}
	line = bytes.TrimRight(line, "\r\n")
	if text, ok := unwrapCRI(line, &w); ok {
		return text, w
	}
	line = bytes.TrimSpace(line)
	if text, ok := unwrapJSON(line, &w); ok {
		return text, w
	}
	start := textStart(line)
	if start <= 0 {
		return line, w
	}
	w.readPrefix(string(line[:start]))
	if text, ok := unwrapJSON(line[start:], &w); ok {
		return text, w
	}
	return line[start:], w
}

// unwrapCRI takes a line out of the format of containers' logs on a node: time, stream, P for a part or F for the rest.
func unwrapCRI(line []byte, w *wrapped) ([]byte, bool) {
	if len(line) == 0 || line[0] < '0' || line[0] > '9' {
		return nil, false
	}
	clock, rest, _ := bytes.Cut(line, []byte(" "))
	stream, rest, _ := bytes.Cut(rest, []byte(" "))
	if string(stream) != "stdout" && string(stream) != "stderr" || len(rest) < 2 || rest[1] != ' ' || rest[0] != 'F' && rest[0] != 'P' {
		return nil, false
	}
	w.setTime(string(clock))
	w.stream, w.partial = string(stream), rest[0] == 'P'
	return rest[2:], true
}

// textStart finds where the controller's own text begins, or -1: at a brace, at zap's console columns, or at klog's header.
func textStart(line []byte) int {
	head := line
	if len(head) > maxPrefix {
		head = head[:maxPrefix]
	}
	if len(head) == 0 || head[0] == '{' {
		return 0
	}
	if tab := bytes.IndexByte(head, '\t'); tab >= 0 {
		if space := bytes.LastIndexByte(head[:tab], ' '); space >= 0 {
			if _, ok := stamp(head[space+1 : tab]); ok {
				return space + 1
			}
		}
		return 0
	}
	if brace := bytes.Index(head, []byte(" {")); brace >= 0 {
		return brace + 1
	}
	for i := 0; i < len(head); i++ {
		if (i == 0 || head[i-1] == ' ') && strings.IndexByte("IWEF", head[i]) >= 0 && klogLine.Match(line[i:]) {
			return i
		}
	}
	return -1
}

func (w *wrapped) setTime(s string) {
	if at, ok := stamp([]byte(s)); ok {
		w.at, w.timed, w.exact = at, true, at.hi-at.lo < 1000
	}
}

// readPrefix takes what stands in front of the text: time stamps, "[pod/NAME/CONTAINER]" of kubectl, "NAME CONTAINER"
// or "NAMESPACE NAME CONTAINER" of stern, "NAMESPACE/NAME[CONTAINER]:" of kail.
func (w *wrapped) readPrefix(prefix string) {
	var names []string
	for _, token := range strings.Fields(prefix) {
		if m := podOf.FindStringSubmatch(token); m != nil {
			w.pod = m[1]
			continue
		}
		if _, ok := stamp([]byte(token)); ok {
			w.setTime(token)
			continue
		}
		switch token {
		case "|", ">", "›", "stdout", "stderr", "F":
			continue
		}
		names = append(names, token)
	}
	if w.pod != "" {
		return
	}
	switch len(names) {
	case 1, 2:
		w.pod = names[0]
	case 3:
		w.pod = names[1]
	default:
		return
	}
	w.pod = strings.TrimRight(w.pod, ":|>")
	if pod, _, ok := strings.Cut(w.pod, "["); ok && pod != "" {
		w.pod = pod
	}
	if i := strings.LastIndexByte(w.pod, '/'); i >= 0 {
		w.pod = w.pod[i+1:]
	}
	w.pod = strings.ToValidUTF8(w.pod, "�")
}

// unwrapJSON takes a line out of the JSON that docker's json-file driver, fluent-bit or `stern -o json` put around it.
func unwrapJSON(line []byte, w *wrapped) ([]byte, bool) {
	if len(line) == 0 || line[0] != '{' || bytes.Contains(line, []byte(`"msg"`)) {
		return nil, false
	}
	if !bytes.Contains(line, []byte(`"log"`)) && !bytes.Contains(line, []byte(`"message"`)) {
		return nil, false
	}
	if msg, ok := escapedMessage(line); ok && lookup(msg) == nil {
		return nil, false
	}
	var outer struct {
		Log, Message, Stream, Time, LogTag string
		PodName                            string
		Kubernetes                         struct {
			PodName string `json:"pod_name"`
		}
	}
	if json.Unmarshal(line, &outer) != nil {
		return nil, false
	}
	text := outer.Log
	if text == "" {
		text = outer.Message
	}
	if text == "" {
		return nil, false
	}
	w.setTime(outer.Time)
	w.stream = outer.Stream
	w.partial = outer.LogTag == "P" ||
		outer.LogTag == "" && outer.Log != "" && len(text) >= dockerChunk && !strings.HasSuffix(text, "\n")
	for _, pod := range []string{outer.PodName, outer.Kubernetes.PodName} {
		if pod != "" {
			w.pod = strings.ToValidUTF8(pod, "�")
		}
	}
	inner := []byte(text)
	if bytes.IndexByte(inner, 0x1b) >= 0 {
		inner = ansi.ReplaceAll(inner, nil)
	}
	return bytes.TrimRight(inner, "\r\n"), true
}

// escapedMessage finds the value of "msg" in a line that is inside of a JSON string, as topMessage does, so that lines
// of no interest need not be decoded.
func escapedMessage(line []byte) (string, bool) {
	const key = `\"msg\":\"`
	i := bytes.Index(line, []byte(key))
	if i < 0 {
		return "", false
	}
	rest := line[i+len(key):]
	end := bytes.IndexByte(rest, '\\')
	if end < 0 {
		return "", false
	}
	return strings.TrimSpace(string(rest[:end])), true
}
