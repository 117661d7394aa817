package stream

import (
	"io"
	"sync"
)

const (
	blockSize = 256 << 10
	blocks    = 4
)

// Ahead reads from another reader in a goroutine of its own, a few blocks ahead, so that decompressing and parsing take
// place at the same time. It takes 1 MiB.
type Ahead struct {
	full chan block
	free chan []byte
	stop chan struct{}
	once sync.Once

	current block
	rest    []byte
}

type block struct {
	data []byte
	err  error
}

// NewAhead begins to read src. Close ends that; src must not be used meanwhile.
func NewAhead(src io.Reader) *Ahead {
	a := &Ahead{full: make(chan block, blocks), free: make(chan []byte, blocks), stop: make(chan struct{})}
	for range blocks {
		a.free <- make([]byte, blockSize)
	}
	go a.run(src)
	return a
}

func (a *Ahead) run(src io.Reader) {
	for {
		var b []byte
		select {
		case b = <-a.free:
		case <-a.stop:
			return
		}
		n, err := io.ReadAtLeast(src, b[:blockSize], blockSize/2)
		if err == io.ErrUnexpectedEOF && n > 0 {
			err = nil // a short block; why it is short comes with the next read
		}
		select {
		case a.full <- block{b[:n], err}:
		case <-a.stop:
			return
		}
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader.
func (a *Ahead) Read(p []byte) (int, error) {
	for len(a.rest) == 0 {
		if a.current.err != nil {
			return 0, a.current.err
		}
		if a.current.data != nil {
			a.free <- a.current.data[:blockSize]
		}
		a.current = <-a.full
		a.rest = a.current.data
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// Close ends the reading ahead. A read that is under way is not waited for.
func (a *Ahead) Close() error {
	a.once.Do(func() { close(a.stop) })
	return nil
}
