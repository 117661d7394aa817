// Package stream prepares byte streams for the readers of captures: their encoding, their compression, and reading
// ahead of whoever uses them.
package stream

import (
	"bufio"
	"io"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// UTF8 returns the text of r without a byte order mark, and in UTF-8 if it begins with a mark of UTF-16 or looks like
// UTF-16 without one, as a redirection by PowerShell leaves it.
func UTF8(r io.Reader) io.Reader {
	b := bufio.NewReaderSize(r, 64)
	head, _ := b.Peek(4)
	switch {
	case len(head) >= 3 && head[0] == 0xef && head[1] == 0xbb && head[2] == 0xbf:
		if _, err := b.Discard(3); err != nil {
			return b
		}
	case len(head) >= 2 && (head[0] == 0xff && head[1] == 0xfe || head[0] != 0 && head[1] == 0):
		return transform.NewReader(b, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder())
	case len(head) >= 2 && (head[0] == 0xfe && head[1] == 0xff || head[0] == 0 && head[1] != 0):
		return transform.NewReader(b, unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewDecoder())
	}
	return b
}
