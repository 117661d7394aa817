package tla

import (
	"os"
	"strconv"
	"strings"
)

// standard modules whose operators the tools know.
var standard = map[string]bool{
	"Naturals": true, "Integers": true, "Sequences": true, "FiniteSets": true, "TLC": true,
}

// ParseFile reads and parses the module in a file.
func ParseFile(path string) (*Module, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, string(src))
}

// Parse parses a module; file names it in errors, which are *Error values.
func Parse(file, src string) (m *Module, err error) {
	p := &parser{file: file, src: src}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			m, err = nil, e
		}
	}()
	p.scan()
	return p.module(), nil
}

// ParseExpr parses one expression, as an interactive tool needs it.
func ParseExpr(file, src string) (e Expr, err error) {
	p := &parser{file: file, src: src}
	defer func() {
		if r := recover(); r != nil {
			bad, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			e, err = nil, bad
		}
	}()
	p.scanFrom(0, 1, 1)
	e = p.expr()
	if t := p.peek(); t.kind != eof {
		p.unexpected(t, "the end of the expression")
	}
	return e, nil
}

// maxDepth bounds the nesting of expressions, so that no input exhausts the stack.
const maxDepth = 400

type parser struct {
	file   string
	src    string
	toks   []token
	at     int
	limits []int // columns of the enclosing junction lists' bullets
	depth  int
}

func (p *parser) fail(pos Pos, format string, args ...any) {
	panic(Errorf(pos, format, args...).(*Error))
}

func (p *parser) unexpected(t token, want string) {
	got := strconv.Quote(t.text)
	switch {
	case t.kind == eof && p.toks[p.at].kind != eof:
		got = strconv.Quote(t.text) + ", which ends the list item, standing at or left of its bullet"
	case t.kind == eof:
		got = "the end"
	}
	p.fail(t.pos, "expected %s, found %s", want, got)
}

// scan finds the module's header, before which any text may stand, and reads all tokens up to its end.
func (p *parser) scan() {
	off := 0
	for line := 1; ; line++ {
		end := strings.IndexByte(p.src[off:], '\n')
		text := p.src[off:]
		if end >= 0 {
			text = p.src[off : off+end]
		}
		if f := strings.Fields(text); len(f) >= 2 && strings.HasPrefix(f[0], "----") && f[1] == "MODULE" {
			p.scanFrom(off, line, 1)
			return
		}
		if end < 0 {
			p.fail(Pos{p.file, 1, 1}, "no module: expected a line ---- MODULE Name ----")
		}
		off += end + 1
	}
}

func (p *parser) scanFrom(off, line, col int) {
	l := &lexer{file: p.file, src: p.src, off: off, line: line, col: col}
	for {
		t, err := l.next()
		if err != nil {
			panic(err.(*Error))
		}
		if t.kind == rule && t.text[0] == '=' || t.kind == eof {
			p.toks = append(p.toks, token{kind: eof, pos: t.pos, start: t.start, end: t.start, text: t.text})
			return
		}
		p.toks = append(p.toks, t)
	}
}

// peek returns the next token, or an end token where the enclosing junction list's column is reached.
func (p *parser) peek() token {
	t := p.toks[p.at]
	if n := len(p.limits); n > 0 && t.pos.Col <= p.limits[n-1] {
		return token{kind: eof, pos: t.pos, start: t.start, end: t.start, text: t.text}
	}
	return t
}

func (p *parser) next() token {
	t := p.peek()
	if t.kind != eof {
		p.at++
	}
	return t
}

func (p *parser) is(sym string) bool {
	t := p.peek()
	return t.kind == symbol && t.text == sym
}

func (p *parser) accept(sym string) bool {
	if p.is(sym) {
		p.at++
		return true
	}
	return false
}

func (p *parser) expect(sym string) token {
	if !p.is(sym) {
		p.unexpected(p.peek(), strconv.Quote(sym))
	}
	return p.next()
}

func (p *parser) name(what string) token {
	t := p.peek()
	if t.kind != ident {
		p.unexpected(t, what)
	}
	return p.next()
}

func (p *parser) module() *Module {
	m := &Module{File: p.file, Source: p.src}
	p.next() // the rule before MODULE
	p.expect("MODULE")
	m.Name = p.name("the module's name").text
	if t := p.next(); t.kind != rule {
		p.unexpected(t, `"----" after the module's name`)
	}
	if p.accept("EXTENDS") {
		for {
			t := p.name("a module's name")
			if !standard[t.text] {
				p.fail(t.pos, "module %s is not supported; of other modules only Naturals, Integers, Sequences, "+
					"FiniteSets and TLC are", t.text)
			}
			m.Extends = append(m.Extends, t.text)
			if !p.accept(",") {
				break
			}
		}
	}
	seen := map[string]Pos{}
	declare := func(name string, pos Pos) {
		if old, ok := seen[name]; ok {
			p.fail(pos, "%s is already declared at %s", name, old)
		}
		seen[name] = pos
	}
	recursive := map[string]bool{}
	for {
		t := p.peek()
		switch {
		case t.kind == eof:
			for _, d := range m.Defs {
				d.Recursive = recursive[d.Name]
			}
			return m
		case t.kind == rule:
			p.next()
		case p.accept("CONSTANT") || p.accept("CONSTANTS"):
			for _, d := range p.decls() {
				declare(d.Name, d.Pos)
				m.Constants = append(m.Constants, d)
			}
		case p.accept("VARIABLE") || p.accept("VARIABLES"):
			for _, d := range p.decls() {
				declare(d.Name, d.Pos)
				m.Variables = append(m.Variables, d)
			}
		case p.accept("ASSUME") || p.accept("ASSUMPTION") || p.accept("AXIOM"):
			if p.peek().kind == ident && p.toks[p.at+1].text == "==" {
				p.at += 2
			}
			first := p.peek()
			m.Assumes = append(m.Assumes, p.expr())
			m.AssumeTexts = append(m.AssumeTexts,
				strings.Repeat(" ", first.pos.Col-1)+p.src[first.start:p.toks[p.at-1].end])
		case p.accept("THEOREM"): // a claim for provers; nothing to execute
			if p.peek().kind == ident && p.toks[p.at+1].text == "==" {
				p.at += 2
			}
			p.expr()
		case p.accept("RECURSIVE"):
			for _, prm := range p.params() {
				recursive[prm.Name] = true
			}
		case t.kind == ident:
			d := p.def()
			declare(d.Name, d.Pos)
			m.Defs = append(m.Defs, d)
		default:
			p.unexpected(t, "a definition or a declaration")
		}
	}
}

func (p *parser) decls() []Decl {
	var ds []Decl
	for {
		t := p.name("a name")
		if p.is("(") {
			p.fail(t.pos, "constant operator %s is not supported", t.text)
		}
		ds = append(ds, Decl{t.text, t.pos})
		if !p.accept(",") {
			return ds
		}
	}
}

// params reads a, F(_, _), b.
func (p *parser) params() []Param {
	var ps []Param
	for {
		prm := Param{Name: p.name("a parameter").text}
		if p.accept("(") {
			for {
				p.expect("_")
				prm.Arity++
				if !p.accept(",") {
					break
				}
			}
			p.expect(")")
		}
		ps = append(ps, prm)
		if !p.accept(",") {
			return ps
		}
	}
}

func (p *parser) def() *Def {
	t := p.name("a name")
	d := &Def{Name: t.text, Pos: t.pos}
	switch {
	case p.accept("("):
		d.Params = p.params()
		p.expect(")")
	case p.accept("["):
		d.Bounds = p.bounds()
		p.expect("]")
	}
	if !p.is("==") {
		p.unexpected(p.peek(), `"==" (infix, prefix and postfix operators cannot be defined)`)
	}
	p.next()
	d.Body = p.expr()
	d.Text = p.src[t.start:p.toks[p.at-1].end]
	return d
}

// bounds reads x, y \in S, <<a, b>> \in T.
func (p *parser) bounds() []Bound {
	var bs []Bound
	for {
		bs = append(bs, p.bound())
		if !p.accept(",") {
			return bs
		}
	}
}

func (p *parser) bound() Bound {
	b := Bound{Pos: p.peek().pos}
	if p.accept("<<") {
		b.Tuple = true
		b.Names = p.names()
		p.expect(">>")
	} else {
		b.Names = p.names()
	}
	if !p.is(`\in`) {
		p.fail(b.Pos, `%s is unbounded; only "x \in S" is supported`, strings.Join(b.Names, ", "))
	}
	p.next()
	b.Set = p.expr()
	return b
}

func (p *parser) names() []string {
	names := []string{p.name("a name").text}
	for p.accept(",") {
		names = append(names, p.name("a name").text)
	}
	return names
}
