// Package tlccfg reads the configuration files of TLC, the TLA+ model checker: the constants, the
// invariants and the temporal properties of one model, and the verdict that its first comments expect.
package tlccfg

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Config is one configuration file.
type Config struct {
	Constants     map[string]Value
	Specification string // empty when Init and Next are given
	Init, Next    string
	Invariants    []string
	Properties    []string
	Constraints   []string
	CheckDeadlock bool // TLC's default is true

	// From comment lines of the form `\* key: value` before the first statement.
	Design      string // `\* design: v3.4.0`
	Environment string // `\* environment: old-reads`
	Expect      string // `\* expect: holds` or `\* expect: never-empty violated`
	Probe       string // `\* probe: what it shows`; a probe must be violated
}

// Value is the value of a constant: an int, a bool, a string, a ModelValue or a []Value (a set).
type Value any

// ModelValue is a name that is equal only to itself.
type ModelValue string

// Parse reads the text of a configuration. Errors name the file and the line.
func Parse(name string, text []byte) (*Config, error) {
	p := &parser{name: name, line: 1}
	if err := p.scan(string(text)); err != nil {
		return nil, err
	}
	c := &Config{Constants: map[string]Value{}, CheckDeadlock: true}
	for key, value := range p.header {
		switch key {
		case "design":
			c.Design = value
		case "environment":
			c.Environment = value
		case "expect":
			c.Expect = value
		case "probe":
			c.Probe = value
		}
	}
	for p.peek().text != "" {
		if err := p.section(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

type token struct {
	text string
	line int
}

type parser struct {
	name   string
	line   int
	header map[string]string
	tokens []token
	next   int
}

func (p *parser) fail(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", p.name, line, fmt.Sprintf(format, args...))
}

// scan splits the text into tokens and collects the header.
func (p *parser) scan(text string) error {
	p.header = map[string]string{}
	for len(text) > 0 {
		switch {
		case text[0] == '\n':
			p.line++
			text = text[1:]
		case unicode.IsSpace(rune(text[0])):
			text = text[1:]
		case strings.HasPrefix(text, `\*`):
			comment, _, _ := strings.Cut(text, "\n")
			if key, value, found := strings.Cut(comment[2:], ":"); found && len(p.tokens) == 0 {
				if key = strings.TrimSpace(key); p.header[key] == "" {
					p.header[key] = strings.TrimSpace(value)
				}
			}
			text = strings.TrimPrefix(text, comment)
		case strings.HasPrefix(text, "(*"):
			comment, rest, found := strings.Cut(text[2:], "*)")
			if !found {
				return p.fail(p.line, "the comment that begins here does not end; close it with *)")
			}
			p.line += strings.Count(comment, "\n")
			text = rest
		case strings.HasPrefix(text, "<-"):
			return p.fail(p.line, "a substitution (<-); only constants with values are read")
		case strings.ContainsRune("={},", rune(text[0])):
			p.tokens = append(p.tokens, token{text[:1], p.line})
			text = text[1:]
		case text[0] == '"':
			end := strings.IndexAny(text[1:], "\"\n")
			if end < 0 || text[1+end] != '"' {
				return p.fail(p.line, "the string that begins here does not end on its line")
			}
			p.tokens = append(p.tokens, token{text[:end+2], p.line})
			text = text[end+2:]
		default:
			end := strings.IndexFunc(text, func(r rune) bool {
				return r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
			})
			if end < 0 {
				end = len(text)
			}
			if end == 0 {
				return p.fail(p.line, "%q is not expected in a configuration", text[:1])
			}
			p.tokens = append(p.tokens, token{text[:end], p.line})
			text = text[end:]
		}
	}
	return nil
}

func (p *parser) peek() token {
	if p.next < len(p.tokens) {
		return p.tokens[p.next]
	}
	return token{"", p.line}
}

func (p *parser) take() token {
	t := p.peek()
	p.next++
	return t
}

var keywords = []string{
	"CONSTANT", "CONSTANTS", "SPECIFICATION", "INIT", "NEXT", "INVARIANT", "INVARIANTS",
	"PROPERTY", "PROPERTIES", "CONSTRAINT", "CONSTRAINTS", "CHECK_DEADLOCK",
}

// unread are TLC's other keywords. They change what is explored, so they are refused, not skipped.
var unread = []string{"ACTION_CONSTRAINT", "ACTION_CONSTRAINTS", "ALIAS", "POSTCONDITION", "SYMMETRY", "VIEW"}

// section reads one keyword and what belongs to it.
func (p *parser) section(c *Config) error {
	keyword := p.take()
	var into *[]string
	switch keyword.text {
	case "CONSTANT", "CONSTANTS":
		return p.constants(c)
	case "SPECIFICATION":
		return p.name1(&c.Specification)
	case "INIT":
		return p.name1(&c.Init)
	case "NEXT":
		return p.name1(&c.Next)
	case "CHECK_DEADLOCK":
		v, err := p.value()
		if err != nil {
			return err
		}
		b, isBool := v.(bool)
		if !isBool {
			return p.fail(keyword.line, "CHECK_DEADLOCK wants TRUE or FALSE")
		}
		c.CheckDeadlock = b
		return nil
	case "INVARIANT", "INVARIANTS":
		into = &c.Invariants
	case "PROPERTY", "PROPERTIES":
		into = &c.Properties
	case "CONSTRAINT", "CONSTRAINTS":
		into = &c.Constraints
	default:
		return p.fail(keyword.line, "%q is not a section that is read; sections are %s", keyword.text, strings.Join(keywords, ", "))
	}
	for p.isName() {
		*into = append(*into, p.take().text)
	}
	return nil
}

func (p *parser) isName() bool {
	t := p.peek().text
	return t != "" && !slices.Contains(keywords, t) && !slices.Contains(unread, t) &&
		(unicode.IsLetter(rune(t[0])) || t[0] == '_')
}

func (p *parser) name1(into *string) error {
	if !p.isName() {
		return p.fail(p.peek().line, "a name is missing before %q", p.peek().text)
	}
	*into = p.take().text
	return nil
}

func (p *parser) constants(c *Config) error {
	for p.isName() {
		name := p.take()
		if eq := p.take(); eq.text != "=" {
			return p.fail(eq.line, "%q after constant %s, where = is expected", eq.text, name.text)
		}
		v, err := p.value()
		if err != nil {
			return err
		}
		if _, twice := c.Constants[name.text]; twice {
			return p.fail(name.line, "constant %s has a value already", name.text)
		}
		c.Constants[name.text] = v
	}
	return nil
}

func (p *parser) value() (Value, error) {
	t := p.take()
	switch {
	case t.text == "":
		return nil, p.fail(t.line, "the file ends where a value is expected")
	case t.text == "TRUE", t.text == "FALSE":
		return t.text == "TRUE", nil
	case t.text[0] == '"':
		return t.text[1 : len(t.text)-1], nil
	case t.text == "{":
		set := []Value{}
		for p.peek().text != "}" {
			v, err := p.value()
			if err != nil {
				return nil, err
			}
			set = append(set, v)
			if p.peek().text == "," {
				p.take()
			} else if p.peek().text != "}" {
				return nil, p.fail(p.peek().line, "%q in a set, where , or } is expected", p.peek().text)
			}
		}
		p.take()
		return set, nil
	}
	if n, err := strconv.Atoi(t.text); err == nil {
		return n, nil
	}
	if slices.Contains(keywords, t.text) || !unicode.IsLetter(rune(t.text[0])) {
		return nil, p.fail(t.line, "%q is not a value", t.text)
	}
	return ModelValue(t.text), nil
}

// Int returns a constant that is a number.
func (c *Config) Int(name string) (int, error) { return constant[int](c, name, "a number") }

// Bool returns a constant that is TRUE or FALSE.
func (c *Config) Bool(name string) (bool, error) { return constant[bool](c, name, "TRUE or FALSE") }

// String returns a constant that is a string.
func (c *Config) String(name string) (string, error) { return constant[string](c, name, "a string") }

// Set returns a constant that is a set.
func (c *Config) Set(name string) ([]Value, error) { return constant[[]Value](c, name, "a set") }

func constant[T any](c *Config, name, what string) (T, error) {
	v, found := c.Constants[name]
	t, ok := v.(T)
	switch {
	case !found:
		return t, fmt.Errorf("constant %s has no value", name)
	case !ok:
		return t, fmt.Errorf("constant %s is %v; it must be %s", name, v, what)
	}
	return t, nil
}
