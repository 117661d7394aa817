package awsapi

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
)

// element is one element of an answer. A nil element has no children and no text, so that lookups chain.
type element struct {
	name     string
	content  string
	children []*element
}

// maxDepth bounds the nesting of an answer; those of the two services have less than ten levels.
const maxDepth = 64

// parseXML reads a document. Namespaces, attributes and comments are dropped. What stands behind the first element is
// not looked at.
func parseXML(body []byte) (*element, error) {
	d := xml.NewDecoder(bytes.NewReader(body))
	// The services write UTF-8, but a proxy's error page may claim anything.
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	var open []*element
	for {
		t, err := d.RawToken()
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		switch t := t.(type) {
		case xml.StartElement:
			e := &element{name: t.Name.Local}
			if len(open) > 0 {
				parent := open[len(open)-1]
				parent.children = append(parent.children, e)
			}
			if len(open) == maxDepth {
				return nil, errDepth
			}
			open = append(open, e)
		case xml.EndElement:
			if len(open) == 0 || open[len(open)-1].name != t.Name.Local {
				return nil, errors.New("the XML document ends an element that is not open: " + t.Name.Local)
			}
			if len(open) == 1 {
				return open[0], nil
			}
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 {
				e := open[len(open)-1]
				if e.content == "" {
					e.content = string(t)
				} else {
					e.content += string(t)
				}
			}
		}
	}
}

// child returns the first child of a name, nil where there is none.
func (e *element) child(name string) *element {
	if e == nil {
		return nil
	}
	for _, c := range e.children {
		if c.name == name {
			return c
		}
	}
	return nil
}

// text returns the text of the first child of a name, without surrounding space.
func (e *element) text(name string) string {
	if c := e.child(name); c != nil {
		return strings.TrimSpace(c.content)
	}
	return ""
}

// items returns the elements of a list, which EC2 calls item and ELBv2 member.
func (e *element) items(name string) []*element {
	c := e.child(name)
	if c == nil {
		return nil
	}
	var items []*element
	for _, i := range c.children {
		if i.name == "item" || i.name == "member" {
			items = append(items, i)
		}
	}
	return items
}

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
