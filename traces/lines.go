package traces

import (
	"bufio"
	"errors"
	"io"
)

// Lines reads lines of bounded length, and says which was too long and whether the last one had no end.
type Lines struct {
	r       *bufio.Reader
	max     int
	buffer  []byte
	number  int
	tooLong bool
	torn    bool
	err     error
}

// NewLines reads from r; lines longer than max bytes are skipped and reported by TooLong.
func NewLines(r io.Reader, max int) *Lines {
	return &Lines{r: bufio.NewReaderSize(r, 64<<10), max: max}
}

// Next advances to the next line and reports whether there is one.
func (l *Lines) Next() bool {
	if l.err != nil {
		return false
	}
	l.buffer, l.tooLong, l.torn = l.buffer[:0], false, false
	some := false
	for {
		part, err := l.r.ReadSlice('\n')
		some = some || len(part) > 0
		if !l.tooLong {
			if len(l.buffer)+len(part) > l.max {
				l.tooLong, l.buffer = true, l.buffer[:0]
			} else {
				l.buffer = append(l.buffer, part...)
			}
		}
		switch {
		case err == nil:
			l.number++
			return true
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		}
		l.err = err
		if !some {
			return false
		}
		l.number++
		l.torn = true
		return true
	}
}

// Bytes is the line with its end, valid until Next; empty where the line was too long.
func (l *Lines) Bytes() []byte { return l.buffer }

// Number counts lines from 1.
func (l *Lines) Number() int { return l.number }

// TooLong reports whether the line was longer than allowed and therefore skipped.
func (l *Lines) TooLong() bool { return l.tooLong }

// Torn reports whether the line ended without a line feed.
func (l *Lines) Torn() bool { return l.torn }

// Err is the error that ended the reading, nil at the end of the input.
func (l *Lines) Err() error {
	if errors.Is(l.err, io.EOF) {
		return nil
	}
	return l.err
}
