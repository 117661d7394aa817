package awsapi

import (
	"bytes"
	"encoding/xml"
	"strconv"
)

// writer builds an XML document.
type writer struct{ b []byte }

func newXML() *writer {
	return &writer{append(make([]byte, 0, 1024), `<?xml version="1.0" encoding="UTF-8"?>`+"\n"...)}
}

// open begins an element; name may carry attributes.
func (x *writer) open(name string) {
	x.b = append(append(append(x.b, '<'), name...), '>')
}

func (x *writer) close(name string) {
	x.b = append(append(append(x.b, '<', '/'), name...), '>')
}

// empty writes an element without content, as EC2 writes empty lists.
func (x *writer) empty(name string) {
	x.b = append(append(append(x.b, '<'), name...), '/', '>')
}

// text writes an element that holds text.
func (x *writer) text(name, value string) {
	x.open(name)
	x.content(value)
	x.close(name)
}

// content writes text. Characters that XML cannot hold are replaced.
func (x *writer) content(value string) {
	if plain(value) {
		x.b = append(x.b, value...)
		return
	}
	buffer := bytes.NewBuffer(x.b)
	// Writing to a buffer does not fail.
	_ = xml.EscapeText(buffer, []byte(value))
	x.b = buffer.Bytes()
}

// optional writes text unless it is empty.
func (x *writer) optional(name, value string) {
	if value != "" {
		x.text(name, value)
	}
}

func (x *writer) number(name string, n int64) { x.text(name, strconv.FormatInt(n, 10)) }

func (x *writer) flag(name string, v bool) { x.text(name, strconv.FormatBool(v)) }

// list writes n elements called item within one element, or an empty element for none.
func (x *writer) list(name, item string, n int, each func(i int)) {
	if n == 0 {
		x.empty(name)
		return
	}
	x.open(name)
	for i := range n {
		x.open(item)
		each(i)
		x.close(item)
	}
	x.close(name)
}

// plain reports whether text needs no escaping.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '&' || c == '<' || c == '>' || c == '"' || c == '\'' {
			return false
		}
	}
	return true
}
