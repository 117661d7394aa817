package stream

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
)

// IsGzip reports whether data begins like a gzip stream.
func IsGzip(head []byte) bool {
	return len(head) >= 3 && head[0] == 0x1f && head[1] == 0x8b && head[2] == 8
}

// BombError says that a stream decompresses to more than a log ever does.
type BombError struct{ Expansion, Limit int64 }

func (e *BombError) Error() string {
	return fmt.Sprintf("it decompresses to %d times its size, over the limit of %d: no log does", e.Expansion, e.Limit)
}

// bombFloor is the output from which on the expansion is looked at: a short stream does no harm.
const bombFloor = 64 << 20

// Gunzip decompresses a gzip stream of any number of members. A stream that is cut off or damaged ends early, like a
// shorter one, and Damage tells; one that expands more than limit times fails with a BombError.
type Gunzip struct {
	src    *counter
	buffer *bufio.Reader // the decompressor is fastest on this very type
	z      *gzip.Reader
	limit  int64
	out    int64
	damage error
}

// NewGunzip begins to decompress src.
func NewGunzip(src io.Reader, limit int64) *Gunzip {
	c := &counter{r: src}
	return &Gunzip{src: c, buffer: bufio.NewReaderSize(c, 64<<10), limit: limit}
}

// Damage says, once the stream has ended, why it ended early: io.ErrUnexpectedEOF for a stream that was cut off; nil
// for a whole one.
func (g *Gunzip) Damage() error { return g.damage }

// Read implements io.Reader.
func (g *Gunzip) Read(p []byte) (int, error) {
	if g.damage != nil {
		return 0, io.EOF
	}
	if g.z == nil {
		z, err := gzip.NewReader(g.buffer)
		if err != nil {
			return 0, g.end(err)
		}
		g.z = z
	}
	n, err := g.z.Read(p)
	g.out += int64(n)
	if in := g.src.n; g.out > bombFloor && g.out/g.limit > in {
		return 0, &BombError{Expansion: g.out / max(in, 1), Limit: g.limit}
	}
	if err != nil && err != io.EOF {
		err = g.end(err)
	}
	return n, err
}

// end tells damage, which ends the stream, from errors of the source.
func (g *Gunzip) end(err error) error {
	var corrupt flate.CorruptInputError
	if g.src.err != nil && g.src.err != io.EOF {
		return g.src.err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		g.damage = io.ErrUnexpectedEOF
		return io.EOF
	}
	if errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.As(err, &corrupt) {
		g.damage = err
		return io.EOF
	}
	return err
}

// counter counts the bytes that were taken, and keeps the error that ended them.
type counter struct {
	r   io.Reader
	n   int64
	err error
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil {
		c.err = err
	}
	return n, err
}
