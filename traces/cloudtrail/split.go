package cloudtrail

import (
	"bytes"
	"errors"
	"io"
)

// What can go wrong with one value; the input goes on behind it.
var (
	errTooLong = errors.New("the record is longer than allowed")
	errTorn    = errors.New("the record is cut off at the end of the input")
	errSyntax  = errors.New("is no JSON")
)

// splitter finds where JSON values begin and end, without decoding them. It holds one value at most, and of a value
// that is longer than max nothing but the place at which it ends; the memory it takes does not depend on the input.
type splitter struct {
	src io.Reader
	max int

	buf []byte // buf[pos:] is what was read and not yet consumed
	pos int
	// keep is the start of the bytes in buf that a refill must not drop, -1 for none.
	keep int
	// lines counts the line feeds before buf[counted].
	lines, counted int
	// again is how many bytes may still be looked at a second time by resync.
	again int
	err   error // why src gave no more
}

const (
	readSize = 256 << 10
	// maxAgain bounds the time that broken values cost: lines that each swallow all others would otherwise be read as
	// often as there are lines.
	maxAgain = 128 << 20
)

func newSplitter(src io.Reader, max int) *splitter {
	return &splitter{src: src, max: max, keep: -1, again: maxAgain, buf: make([]byte, 0, 2*readSize)}
}

// more reads on. What lies before pos is dropped, unless keep holds it; where that would be more than max, keep is
// given up. It fails with what ended the input, and with errSyntax where a value of more than max seems to consist of
// several.
func (s *splitter) more() error {
	if s.err != nil {
		return s.err
	}
	if s.keep >= 0 && len(s.buf)-s.keep > s.max {
		if bytes.Contains(s.buf[s.keep:], []byte("\n{")) {
			return errSyntax // of many lines one was never closed, and swallows the others
		}
		s.keep = -1
	}
	from := s.pos
	if s.keep >= 0 {
		from = min(s.keep, s.pos)
	}
	if cap(s.buf)-len(s.buf) < readSize {
		s.line(from)
		rest := s.buf[from:]
		if len(rest)+readSize > cap(s.buf) {
			s.buf = append(make([]byte, 0, 2*(len(rest)+readSize)), rest...)
		} else {
			s.buf = s.buf[:copy(s.buf[:cap(s.buf)], rest)]
		}
		s.pos -= from
		s.counted -= from
		if s.keep >= 0 {
			s.keep -= from
		}
	}
	for range 100 {
		n, err := s.src.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+n]
		s.err = err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	s.err = io.ErrNoProgress
	return s.err
}

// line returns the number, from 1, of the line that holds buf[at].
func (s *splitter) line(at int) int {
	if at < s.counted {
		return s.lines + 1 - bytes.Count(s.buf[at:s.counted], []byte{'\n'})
	}
	s.lines += bytes.Count(s.buf[s.counted:at], []byte{'\n'})
	s.counted = at
	return s.lines + 1
}

// peek returns the next byte that is no white space, without consuming it.
func (s *splitter) peek() (byte, error) {
	for {
		for ; s.pos < len(s.buf); s.pos++ {
			if c := s.buf[s.pos]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
				return c, nil
			}
		}
		if err := s.more(); err != nil {
			return 0, err
		}
	}
}

// ahead returns at least n of the bytes from pos on, fewer only at the end of the input.
func (s *splitter) ahead(n int) []byte {
	for len(s.buf)-s.pos < n && s.more() == nil {
	}
	return s.buf[s.pos:]
}

// take consumes the value that begins at pos and returns its bytes, valid until the next call. After an error the bytes
// stay held, so that resync can go back.
func (s *splitter) take() ([]byte, error) {
	outermost := s.keep < 0
	if outermost {
		s.keep = s.pos
	}
	offset := s.pos - s.keep
	err := s.skip()
	if s.keep < 0 || s.pos-s.keep > s.max {
		s.keep = -1
		if err == nil {
			err = errTooLong
		}
		return nil, err
	}
	b := s.buf[s.keep+offset : s.pos]
	if outermost && err == nil {
		s.keep = -1
	}
	return b, err
}

// The classes of bytes that matter to skip.
const (
	other = iota
	quote
	open
	shut
	space // and what else ends a number or a word
)

var class = func() (t [256]uint8) {
	t['"'] = quote
	t['{'], t['['] = open, open
	t['}'], t[']'] = shut, shut
	for _, c := range " \t\n\r,:" {
		t[c] = space
	}
	return
}()

// inString marks the bytes that a string simply contains.
var inString = func() (t [256]bool) {
	for c := range t {
		t[c] = c != '"' && c != '\\' && c != '\n'
	}
	return
}()

// skip consumes the value that begins at pos.
func (s *splitter) skip() error {
	depth := 0
	for {
		b, i := s.buf, s.pos
		for i < len(b) {
			c := class[b[i]]
			if c == other {
				i++
				continue
			}
			switch c {
			case quote:
				s.pos = i
				if err := s.skipString(); err != nil {
					return err
				}
				b, i = s.buf, s.pos
				if depth == 0 {
					return nil
				}
				continue
			case open:
				if depth > 0 && !mayOpen(b[:i]) {
					s.pos = i
					return errSyntax
				}
				depth++
			case shut:
				if depth--; depth <= 0 {
					s.pos = i + depth + 1 // a bracket that closes nothing ends the word before it, and is not its part
					return nil
				}
			case space:
				if depth == 0 {
					s.pos = i
					return nil
				}
			}
			i++
		}
		s.pos = i
		if err := s.more(); err != nil {
			if err != io.EOF {
				return err
			}
			if depth == 0 {
				return nil
			}
			return errTorn
		}
	}
}

// mayOpen reports whether a bracket may open behind b, inside of a value. It may not behind another value, which is what
// the next line looks like from inside a value that was cut off.
func mayOpen(b []byte) bool {
	for i := len(b) - 1; i >= 0; i-- {
		switch b[i] {
		case ' ', '\t', '\n', '\r':
		case ',', ':', '[', '{':
			return true
		default:
			return false
		}
	}
	return true
}

// plain returns how many bytes at the start of b, in steps of a block, a string simply contains. It is faster than
// looking at each byte where strings are long.
func plain(b []byte) (n int) {
	const block = 512
	for len(b)-n >= block {
		part := b[n : n+block]
		if bytes.IndexByte(part, '"') >= 0 || bytes.IndexByte(part, '\\') >= 0 || bytes.IndexByte(part, '\n') >= 0 {
			break
		}
		n += block
	}
	return n
}

// skipString consumes the string that begins at pos. A line feed in it is an error: the string was never closed.
func (s *splitter) skipString() error {
	s.pos++
	escaped := false
	for {
		b, i := s.buf, s.pos
		if escaped && i < len(b) {
			i++
			escaped = false
		}
		for start := i; i < len(b); {
			if inString[b[i]] {
				if i++; i-start > 64 {
					i += plain(b[i:])
					start = i
				}
				continue
			}
			switch b[i] {
			case '"':
				s.pos = i + 1
				return nil
			case '\n':
				s.pos = i
				return errSyntax
			}
			i += 2
		}
		escaped = i > len(b)
		s.pos = len(b)
		if err := s.more(); err != nil {
			if err != io.EOF {
				return err
			}
			return errTorn
		}
	}
}

// resync moves to where the next value may begin after a broken one: a line that starts with a bracket or a quote.
// Broken values that are still held are searched from their beginning.
func (s *splitter) resync() {
	if s.keep >= 0 && s.again > 0 {
		s.again -= s.pos - s.keep
		s.pos = min(s.keep+1, len(s.buf))
	}
	s.keep = -1
	for {
		for {
			i := bytes.IndexByte(s.buf[s.pos:], '\n')
			if i < 0 {
				break
			}
			s.pos += i + 1
			if rest := s.ahead(1); len(rest) == 0 || rest[0] == '{' || rest[0] == '[' || rest[0] == '"' {
				return
			}
		}
		s.pos = len(s.buf)
		if s.more() != nil {
			return
		}
	}
}

// restOfLine consumes the bytes up to the end of the line and returns them, cut to max.
func (s *splitter) restOfLine() []byte {
	s.keep = s.pos
	for {
		if i := bytes.IndexByte(s.buf[s.pos:], '\n'); i >= 0 {
			s.pos += i
			break
		}
		s.pos = len(s.buf)
		if s.keep >= 0 && s.pos-s.keep > s.max {
			s.keep = -1
		}
		if s.more() != nil {
			break
		}
	}
	if s.keep < 0 {
		return nil
	}
	line := s.buf[s.keep:s.pos]
	s.keep = -1
	return line
}
