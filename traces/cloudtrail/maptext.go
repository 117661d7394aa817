package cloudtrail

import (
	"errors"
	"io"
	"strings"
)

// maxNesting bounds the nesting of everything that is parsed here; encoding/json has its own bound.
const maxNesting = 100

var errMapText = errors.New("is neither JSON nor a printed map")

// parseMapText reads a map as Presto, Athena and Lake print it, and Java: {groupId=sg-1, ipPermissions={items=[…]}}.
// A value may also be JSON. Plain text ends at a closing bracket, or at a comma that another "name=" follows, so that
// text which itself looks like that is misread; JSON is tried first everywhere.
func parseMapText(s string) (any, error) {
	if strings.Count(s, ",")+strings.Count(s, "{")+strings.Count(s, "[") > maxValues {
		return nil, errTooMany
	}
	p := mapText{s: s}
	v, err := p.value(0, false)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(p.s[p.i:]) != "" {
		return nil, errMapText
	}
	return v, nil
}

type mapText struct {
	s string
	i int
	// tried counts the attempts at JSON. Each reads the rest of the text at worst, so that they are bounded.
	tried int
}

func (p *mapText) space() {
	for p.i < len(p.s) && (p.s[p.i] == ' ' || p.s[p.i] == '\n' || p.s[p.i] == '\t' || p.s[p.i] == '\r') {
		p.i++
	}
}

func (p *mapText) value(depth int, inList bool) (any, error) {
	if depth > maxNesting {
		return nil, errMapText
	}
	p.space()
	if p.i >= len(p.s) {
		return nil, errMapText
	}
	switch p.s[p.i] {
	case '{':
		if v, ok := p.json(); ok {
			return v, nil
		}
		return p.object(depth)
	case '[':
		if v, ok := p.json(); ok {
			return v, nil
		}
		return p.list(depth)
	}
	return p.plain(inList), nil
}

// json reads a JSON value at this place, if there is one.
func (p *mapText) json() (any, bool) {
	rest := strings.TrimLeft(p.s[p.i+1:], " \t\r\n")
	if rest == "" || rest[0] != '"' && rest[0] != '{' && rest[0] != '[' && rest[0] != '}' && rest[0] != ']' {
		return nil, false
	}
	if p.tried++; p.tried > maxNesting {
		return nil, false
	}
	v, left, err := decodePrefix([]byte(p.s[p.i:]))
	if err != nil {
		return nil, false
	}
	end := len(p.s) - len(left)
	after := strings.TrimLeft(p.s[end:], " \t\r\n")
	if after != "" && after[0] != ',' && after[0] != '}' && after[0] != ']' {
		return nil, false
	}
	p.i = end
	return v, true
}

func (p *mapText) object(depth int) (any, error) {
	o := map[string]any{}
	p.i++
	for {
		p.space()
		if p.i >= len(p.s) {
			return nil, io.ErrUnexpectedEOF
		}
		switch p.s[p.i] {
		case '}':
			p.i++
			return o, nil
		case ',':
			p.i++
			continue
		}
		equals := strings.IndexByte(p.s[p.i:], '=')
		if equals <= 0 || !isName(p.s[p.i:p.i+equals]) {
			return nil, errMapText
		}
		name := p.s[p.i : p.i+equals]
		p.i += equals + 1
		if p.i < len(p.s) && (p.s[p.i] == ',' || p.s[p.i] == '}') {
			o[name] = ""
			continue
		}
		v, err := p.value(depth+1, false)
		if err != nil {
			return nil, err
		}
		o[name] = v
	}
}

func (p *mapText) list(depth int) (any, error) {
	l := []any{}
	p.i++
	for {
		p.space()
		if p.i >= len(p.s) {
			return nil, io.ErrUnexpectedEOF
		}
		switch p.s[p.i] {
		case ']':
			p.i++
			return l, nil
		case ',':
			p.i++
			continue
		case '}', '=':
			return nil, errMapText
		}
		v, err := p.value(depth+1, true)
		if err != nil {
			return nil, err
		}
		l = append(l, v)
	}
}

// plain reads text up to a closing bracket, or to a comma before the next element of a list or member of an object.
func (p *mapText) plain(inList bool) string {
	start := p.i
	for ; p.i < len(p.s); p.i++ {
		switch p.s[p.i] {
		case '}', ']':
			return strings.TrimSpace(p.s[start:p.i])
		case ',':
			rest := strings.TrimLeft(p.s[p.i+1:], " ")
			equals := strings.IndexAny(rest, "=,}]")
			if inList || equals > 0 && rest[equals] == '=' && isName(rest[:equals]) {
				return strings.TrimSpace(p.s[start:p.i])
			}
		}
	}
	return strings.TrimSpace(p.s[start:])
}

func isName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("_-.:@", c) >= 0) {
			return false
		}
	}
	return s != ""
}
