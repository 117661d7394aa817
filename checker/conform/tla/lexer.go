package tla

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind int

const (
	eof kind = iota
	ident
	number
	text   // a string literal
	symbol // an operator, a bracket or a keyword
	rule   // ---- or ====
)

type token struct {
	kind       kind
	text       string
	pos        Pos
	start, end int // byte offsets
}

var keywords = map[string]bool{}

// unsupported words are keywords of TLA+ that the tool refuses.
var unsupported = map[string]bool{}

func init() {
	for _, w := range strings.Fields(`MODULE EXTENDS CONSTANT CONSTANTS VARIABLE VARIABLES ASSUME ASSUMPTION AXIOM
		THEOREM LET IN IF THEN ELSE CASE OTHER CHOOSE EXCEPT DOMAIN SUBSET UNION UNCHANGED ENABLED RECURSIVE LAMBDA
		TRUE FALSE`) {
		keywords[w] = true
	}
	for _, w := range strings.Fields(`INSTANCE LOCAL WITH PROOF BY QED SUFFICES HAVE TAKE WITNESS PICK LEMMA
		PROPOSITION COROLLARY OBVIOUS OMITTED USE HIDE DEFINE DEFS STATE ACTION TEMPORAL NEW`) {
		unsupported[w] = true
	}
}

// symbols, longest first within a first character.
var symbols = strings.Fields(`<=> |-> >>_ === ==  => =< <= >= << >> ]_ -> <- :> @@ .. ~> [] <> /\ \/ /= ::
	( ) [ ] { } , : ; . ! @ ' = # < > + - * / % ^ ~ \ _ | & $ ?`)

// escaped maps the names after a backslash onto the operator they spell.
var escaped = map[string]string{
	"in": `\in`, "notin": `\notin`, "subseteq": `\subseteq`, "subset": `\subset`, "supseteq": `\supseteq`,
	"cup": `\cup`, "union": `\cup`, "cap": `\cap`, "intersect": `\cap`, "E": `\E`, "exists": `\E`, "A": `\A`,
	"forall": `\A`, "X": `\X`, "times": `\X`, "o": `\o`, "circ": `\o`, "div": `\div`, "lnot": "~", "neg": "~",
	"land": `/\`, "lor": `\/`, "leq": "<=", "geq": ">=", "equiv": "<=>",
}

type lexer struct {
	file      string
	src       string
	off       int
	line, col int
}

func (l *lexer) pos() Pos { return Pos{l.file, l.line, l.col} }

func (l *lexer) advance(n int) {
	for _, r := range l.src[l.off : l.off+n] {
		if r == '\n' {
			l.line++
			l.col = 1
		} else {
			l.col++
		}
	}
	l.off += n
}

// skip passes over white space and comments.
func (l *lexer) skip() error {
	for l.off < len(l.src) {
		rest := l.src[l.off:]
		switch {
		case rest[0] == ' ' || rest[0] == '\n' || rest[0] == '\r' || rest[0] == '\f':
			l.advance(1)
		case rest[0] == '\t':
			return Errorf(l.pos(), "a tab; columns carry meaning in TLA+, use spaces")
		case strings.HasPrefix(rest, `\*`):
			if n := strings.IndexByte(rest, '\n'); n >= 0 {
				l.advance(n)
			} else {
				l.advance(len(rest))
			}
		case strings.HasPrefix(rest, "(*"):
			start, depth := l.pos(), 0
			for {
				switch rest := l.src[l.off:]; {
				case rest == "":
					return Errorf(start, "comment is not closed")
				case strings.HasPrefix(rest, "(*"):
					depth++
					l.advance(2)
				case strings.HasPrefix(rest, "*)"):
					depth--
					l.advance(2)
				default:
					_, n := utf8.DecodeRuneInString(rest)
					l.advance(n)
				}
				if depth == 0 {
					break
				}
			}
		default:
			return nil
		}
	}
	return nil
}

func (l *lexer) next() (token, error) {
	if err := l.skip(); err != nil {
		return token{}, err
	}
	t := token{pos: l.pos(), start: l.off}
	if l.off == len(l.src) {
		t.end = l.off
		return t, nil
	}
	take := func(k kind, n int) (token, error) {
		t.kind, t.text = k, l.src[l.off:l.off+n]
		l.advance(n)
		t.end = l.off
		return t, nil
	}
	rest := l.src[l.off:]
	c := rest[0]
	switch {
	case strings.HasPrefix(rest, "----") || strings.HasPrefix(rest, "===="):
		return take(rule, len(rest)-len(strings.TrimLeft(rest, rest[:1])))
	case c >= '0' && c <= '9':
		n := span(rest, isDigit)
		if n < len(rest) && isLetter(rest[n]) {
			return t, Errorf(t.pos, "%q is neither a number nor a name", rest[:n+span(rest[n:], isWord)])
		}
		return take(number, n)
	case isWordAt(rest):
		n := span(rest, isWord)
		word := rest[:n]
		if strings.HasPrefix(word, "WF_") || strings.HasPrefix(word, "SF_") {
			return take(symbol, 3)
		}
		if unsupported[word] {
			return t, Errorf(t.pos, "%s is not supported", word)
		}
		if keywords[word] {
			return take(symbol, n)
		}
		return take(ident, n)
	case c == '"':
		for i := 1; i < len(rest) && rest[i] != '\n'; i++ {
			if rest[i] == '\\' {
				return t, Errorf(t.pos, "an escape in a string is not supported")
			}
			if rest[i] == '"' {
				t, err := take(text, i+1)
				t.text = t.text[1:i]
				return t, err
			}
		}
		return t, Errorf(t.pos, "string is not closed on its line")
	case c == '\\' && len(rest) > 1 && isLetter(rest[1]):
		n := 1 + span(rest[1:], isLetter)
		name, ok := escaped[rest[1:n]]
		if !ok {
			return t, Errorf(t.pos, "operator %s is not supported", rest[:n])
		}
		t, err := take(symbol, n)
		t.text = name
		return t, err
	}
	for _, s := range symbols {
		if strings.HasPrefix(rest, s) {
			t, err := take(symbol, len(s))
			switch s {
			case "/=":
				t.text = "#"
			case "=<":
				t.text = "<="
			}
			return t, err
		}
	}
	r, _ := utf8.DecodeRuneInString(rest)
	if unicode.IsPrint(r) {
		return t, Errorf(t.pos, "unexpected character %q", r)
	}
	return t, Errorf(t.pos, "unexpected character %U", r)
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isWord(c byte) bool   { return isDigit(c) || isLetter(c) || c == '_' }

// isWordAt says whether s starts with a name: letters, digits and underscores with at least one letter; a lone
// underscore is a symbol.
func isWordAt(s string) bool {
	n := span(s, isWord)
	return strings.IndexFunc(s[:n], unicode.IsLetter) >= 0
}

func span(s string, f func(byte) bool) int {
	n := 0
	for n < len(s) && f(s[n]) {
		n++
	}
	return n
}
