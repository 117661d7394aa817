package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// progress shows one line on a terminal, and nothing elsewhere.
type progress struct {
	w     io.Writer
	shown bool
}

func newProgress(w io.Writer) *progress {
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return &progress{w: w}
	}
	return &progress{}
}

func (p *progress) show(format string, args ...any) {
	if p.w == nil {
		return
	}
	p.shown = true
	fmt.Fprintf(p.w, "\r\x1b[K%q", fmt.Sprintf(format, args...))
}

func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}
