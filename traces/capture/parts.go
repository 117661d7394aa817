package capture

import (
	"bufio"
	"bytes"
	"io"

	"linearize.example/traces"
)

// parts reads a stream into which files of several formats were concatenated (`cat *`) one after the other. A part ends where
// a line begins another format for certain, or an object right behind one, where a file had no line feed at its end. What is
// less clear is left to the reader of the part.
type parts struct {
	b      *bufio.Reader
	kind   string // what the first line of this part shows for certain, or ""
	inLine bool   // nothing can begin at the next byte
	ended  bool   // the next line begins another part
	line   int    // lines read so far
}

// signatureSize is how much of a line must be seen to know what it begins.
const signatureSize = 256

// next passes over what is left of the current part, moves to the next one and reports whether there is one.
func (p *parts) next() bool {
	if p.line > 0 || p.inLine {
		_, _ = io.Copy(io.Discard, p)
	}
	head, _ := p.b.Peek(signatureSize)
	p.kind, p.inLine, p.ended = signature(bytes.TrimLeft(head, " \t\r\n")), len(head) > 0, false
	return len(head) > 0
}

// Read reads from the current part; it returns io.EOF at its end.
func (p *parts) Read(dst []byte) (int, error) {
	if p.ended || len(dst) == 0 {
		return 0, io.EOF
	}
	// Enough for a signature, so that most of what is buffered can be handed over.
	if _, err := p.b.Peek(signatureSize); p.b.Buffered() == 0 {
		return 0, err
	}
	window, _ := p.b.Peek(min(len(dst), p.b.Buffered()))
	n := 0
	for n < len(window) {
		if !p.inLine {
			head := window[n:]
			if len(head) < signatureSize && n > 0 {
				break // more of it is seen the next time
			}
			if len(head) < signatureSize {
				head, _ = p.b.Peek(signatureSize)
			}
			kind := signature(head)
			if p.ended = kind != "" && kind != p.kind && (p.kind != "" || kind != traces.FormatControllerLog); p.ended {
				break
			}
			if p.kind == "" {
				p.kind = kind // lines of other programs came before the first of a log
			}
		}
		passed := p.pass(window[n:], n == 0 && len(window) < signatureSize)
		if n += passed; passed == 0 {
			break
		}
	}
	copy(dst, window[:n])
	_, _ = p.b.Discard(n) // it is in the buffer
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// pass returns how many bytes it is up to where something may begin, 0 where the end of the window hides it. whole says that the
// window shows all that there is.
func (p *parts) pass(window []byte, whole bool) int {
	line, _, found := bytes.Cut(window, []byte{'\n'})
	// No object of JSON holds this outside of a string, and no string has a quote in it.
	if i := bytes.Index(line, []byte(`}{"`)); i >= 0 {
		p.inLine = false
		return i + 1
	}
	if p.inLine = !found; found {
		p.line++
		return len(line) + 1
	}
	if kept := bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("{")), []byte("}")); len(kept) < len(line) && !whole {
		return len(kept) // what comes next is seen the next time
	}
	return len(line)
}

// signature names the format that a line begins for certain, or "".
func signature(head []byte) string {
	if len(head) == 0 || head[0] != '{' {
		return ""
	}
	name, after, found := bytes.Cut(bytes.TrimLeft(head[1:], " \t\r\n"), []byte(`":`))
	if !found {
		name, after, _ = bytes.Cut(bytes.TrimLeft(head[1:], " \t\r\n"), []byte(`" :`))
	}
	switch string(name) {
	case `"history`:
		return traces.FormatHistory
	case `"Records`, `"Events`:
		if list := bytes.TrimLeft(after, " \t\r\n"); len(list) > 0 && list[0] == '[' {
			return traces.FormatCloudTrail
		}
	case `"eventVersion`:
		return traces.FormatCloudTrail
	case `"level`:
		if bytes.Contains(after, []byte(`"ts":`)) {
			return traces.FormatControllerLog
		}
	}
	return ""
}
