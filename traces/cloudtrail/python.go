package cloudtrail

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// isPython reports whether an object is printed as Python prints a dict, which Lambda functions leave in their logs:
// its first name is in single quotes.
func isPython(b []byte) bool {
	b = bytes.TrimLeft(b[1:], " \t\r\n")
	return len(b) > 0 && b[0] == '\''
}

func (rd *reading) isPython() bool { return isPython(rd.s.ahead(64)) }

var errPython = errors.New("is neither JSON nor a printed Python dict")

// parsePython reads the Python literal at the start of s and returns what follows it. Dicts, lists and tuples, strings,
// numbers, True, False and None are all that the printed form of decoded JSON has.
func parsePython(s string) (any, string, error) {
	if strings.Count(s, ",")+strings.Count(s, "{")+strings.Count(s, "[") > maxValues {
		return nil, s, errTooMany
	}
	p := python{s: s}
	v, err := p.value(0)
	return v, s[p.i:], err
}

type python struct {
	s string
	i int
}

func (p *python) peek() byte {
	for p.i < len(p.s) && strings.IndexByte(" \t\r\n", p.s[p.i]) >= 0 {
		p.i++
	}
	if p.i == len(p.s) {
		return 0
	}
	return p.s[p.i]
}

func (p *python) value(depth int) (any, error) {
	if depth > maxNesting {
		return nil, errPython
	}
	switch c := p.peek(); c {
	case '{':
		return p.dict(depth)
	case '[':
		return p.list(depth, ']')
	case '(':
		return p.list(depth, ')')
	case '\'', '"':
		return p.text()
	}
	start := p.i
	for p.i < len(p.s) && strings.IndexByte(",:]})\r\n\t ", p.s[p.i]) < 0 {
		p.i++
	}
	switch word := p.s[start:p.i]; word {
	case "True":
		return true, nil
	case "False":
		return false, nil
	case "None":
		return nil, nil
	default:
		if _, err := strconv.ParseFloat(word, 64); err != nil {
			return nil, errPython
		}
		return json.Number(word), nil
	}
}

func (p *python) dict(depth int) (any, error) {
	o := map[string]any{}
	p.i++
	for {
		switch p.peek() {
		case '}':
			p.i++
			return o, nil
		case ',':
			p.i++
			continue
		case '\'', '"':
		default:
			return nil, errPython
		}
		name, err := p.text()
		if err != nil {
			return nil, err
		}
		if p.peek() != ':' {
			return nil, errPython
		}
		p.i++
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		o[name] = v
	}
}

func (p *python) list(depth int, end byte) (any, error) {
	l := []any{}
	p.i++
	for {
		switch p.peek() {
		case end:
			p.i++
			return l, nil
		case ',':
			p.i++
			continue
		case 0:
			return nil, errPython
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		l = append(l, v)
	}
}

func (p *python) text() (string, error) {
	end := p.s[p.i]
	var b strings.Builder
	for p.i++; p.i < len(p.s); p.i++ {
		c := p.s[p.i]
		if c == end {
			p.i++
			return b.String(), nil
		}
		if c != '\\' {
			b.WriteByte(c)
			continue
		}
		if p.i++; p.i == len(p.s) {
			break
		}
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[p.s[p.i]]
		switch c := p.s[p.i]; c {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'x', 'u', 'U':
			if p.i+digits >= len(p.s) {
				return "", errPython
			}
			n, err := strconv.ParseUint(p.s[p.i+1:p.i+1+digits], 16, 32)
			if err != nil || n > utf8.MaxRune {
				return "", errPython
			}
			b.WriteRune(rune(n))
			p.i += digits
		default:
			b.WriteByte(c)
		}
	}
	return "", errPython
}
