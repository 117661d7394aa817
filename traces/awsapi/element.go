package awsapi

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// element is one element of an answer. A nil element has no children and no text, so that lookups chain.
type element struct {
	name    string
	content string
	// first is the first child, next the next one of the same parent.
	first, next *element
}

// maxDepth bounds the nesting of an answer; those of the two services have less than ten levels.
const maxDepth = 64

// maxProlog is how far into a document its first element is looked for, in bytes.
const maxProlog = 4096

// maxJoined bounds a text whose pieces comments or CDATA sections separate, in bytes; what would come behind is dropped.
const maxJoined = 1024

var (
	errTorn  = errors.New("the XML document ends within an element")
	errDepth = errors.New("the XML document is nested too deeply")
	errMark  = errors.New("the XML document has markup that is none")
	errName  = errors.New("the XML document ends an element that is not open")
)

// parser reads the part of XML that services write: elements and text. Namespace prefixes, attributes, comments,
// declarations and processing instructions are skipped. It is several times as fast as encoding/xml, and every call that is
// recorded goes through it.
type parser struct {
	s string
	// block is where elements come from: many small allocations cost more than few large ones.
	block []element
	stack [maxDepth]struct{ element, last *element }
	depth int
}

// parseXML reads a document. What stands behind the first element is not looked at.
func parseXML(body []byte) (*element, error) {
	p := &parser{s: string(body)}
	for {
		i := strings.IndexByte(p.s, '<')
		if i < 0 {
			return nil, errTorn
		}
		p.text(p.s[:i], true)
		p.s = p.s[i+1:]
		root, err := p.markup()
		if root != nil || err != nil {
			return root, err
		}
	}
}

// rootName is the name of a document's first element, though it may not end; "" if there is none.
func rootName(body []byte) string {
	head := string(body[:min(len(body), maxProlog)])
	p := &parser{s: head}
	for p.depth == 0 {
		i := strings.IndexByte(p.s, '<')
		if i < 0 {
			return ""
		}
		p.s = p.s[i+1:]
		if root, err := p.markup(); root != nil {
			return root.name
		} else if err != nil {
			return ""
		}
	}
	return p.stack[0].element.name
}

// markup reads what stands behind a "<". It returns the document's element when that ends.
func (p *parser) markup() (*element, error) {
	if p.s != "" && (p.s[0] == '!' || p.s[0] == '?') {
		return nil, p.skip()
	}
	end := tagEnd(p.s)
	if end < 0 {
		return nil, errTorn
	}
	tag := p.s[:end]
	p.s = p.s[end+1:]
	if name, closing := strings.CutPrefix(tag, "/"); closing {
		return p.close(local(name))
	}
	tag, empty := strings.CutSuffix(tag, "/")
	if err := p.open(local(tag)); err != nil {
		return nil, err
	}
	if empty {
		return p.close(local(tag))
	}
	return nil, nil
}

// skip passes over what is no tag, but takes the text of a CDATA section.
func (p *parser) skip() error {
	for _, skipped := range []struct{ from, to string }{{"!--", "-->"}, {"![CDATA[", "]]>"}, {"?", "?>"}, {"!", ">"}} {
		rest, ok := strings.CutPrefix(p.s, skipped.from)
		if !ok {
			continue
		}
		i := strings.Index(rest, skipped.to)
		if i < 0 {
			return errTorn
		}
		if skipped.to == "]]>" {
			p.text(rest[:i], false)
		}
		p.s = rest[i+len(skipped.to):]
		return nil
	}
	return errMark
}

// tagEnd returns the place of the ">" that ends a tag: attributes may hold others, in quotes.
func tagEnd(s string) int {
	quote := byte(0)
	for i := range len(s) {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			return i
		}
	}
	return -1
}

// local returns the name of a tag without prefix and attributes, "" if it can be no name.
func local(tag string) string {
	from := 0
	for i := range len(tag) {
		switch tag[i] {
		case ':':
			from = i + 1
		case '<', '&':
			return ""
		case ' ', '\t', '\r', '\n':
			return tag[from:i]
		}
	}
	return tag[from:]
}

func (p *parser) open(name string) error {
	switch {
	case name == "":
		return errMark
	case p.depth == maxDepth:
		return errDepth
	}
	if len(p.block) == 0 {
		p.block = make([]element, 64)
	}
	e := &p.block[0]
	p.block = p.block[1:]
	e.name = name
	if p.depth > 0 {
		parent := &p.stack[p.depth-1]
		if parent.last == nil {
			parent.element.first = e
		} else {
			parent.last.next = e
		}
		parent.last = e
	}
	p.stack[p.depth].element, p.stack[p.depth].last = e, nil
	p.depth++
	return nil
}

func (p *parser) close(name string) (*element, error) {
	if p.depth == 0 || p.stack[p.depth-1].element.name != name {
		return nil, errName
	}
	p.depth--
	if p.depth == 0 {
		return p.stack[0].element, nil
	}
	return nil, nil
}

// text adds text to the element that is open. Elements with children have none that anybody reads.
func (p *parser) text(s string, entities bool) {
	if p.depth == 0 || p.stack[p.depth-1].last != nil {
		return
	}
	e := p.stack[p.depth-1].element
	if len(e.content) > maxJoined || strings.TrimSpace(s) == "" && e.content == "" {
		return
	}
	if entities {
		s = unescape(s)
	}
	e.content += s
}

// unescape replaces the entities that XML has by itself. Others stay as they are.
func unescape(s string) string {
	if strings.IndexByte(s, '&') < 0 {
		return s
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '&')
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		s = s[i:]
		end := strings.IndexByte(s[:min(len(s), 12)], ';')
		c, known := rune(0), false
		if end > 0 {
			c, known = entity(s[1:end])
		}
		if !known {
			b.WriteByte('&')
			s = s[1:]
			continue
		}
		b.WriteRune(c)
		s = s[end+1:]
	}
}

func entity(name string) (rune, bool) {
	switch name {
	case "lt":
		return '<', true
	case "gt":
		return '>', true
	case "amp":
		return '&', true
	case "quot":
		return '"', true
	case "apos":
		return '\'', true
	}
	number, ok := strings.CutPrefix(name, "#")
	if !ok {
		return 0, false
	}
	base := 10
	if hex, ok := strings.CutPrefix(number, "x"); ok {
		number, base = hex, 16
	}
	n, err := strconv.ParseUint(number, base, 32)
	return rune(n), err == nil && n <= utf8.MaxRune
}

// child returns the first child of a name, nil where there is none.
func (e *element) child(name string) *element {
	if e == nil {
		return nil
	}
	for c := e.first; c != nil; c = c.next {
		if c.name == name {
			return c
		}
	}
	return nil
}

// text returns the text of the first child of a name, without surrounding space. It does not keep the document in
// memory.
func (e *element) text(name string) string {
	if c := e.child(name); c != nil {
		return strings.Clone(strings.TrimSpace(c.content))
	}
	return ""
}

// items goes through the elements of a list, which EC2 calls item and ELBv2 member.
func (e *element) items(name string) func(func(*element) bool) {
	return func(yield func(*element) bool) {
		list := e.child(name)
		if list == nil {
			return
		}
		for c := list.first; c != nil; c = c.next {
			if (c.name == "item" || c.name == "member") && !yield(c) {
				return
			}
		}
	}
}
