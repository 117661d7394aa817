package capture

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"linearize.example/traces"
	"linearize.example/traces/cloudtrail"
	"linearize.example/traces/controllerlog"
	"linearize.example/traces/internal/stream"
	"linearize.example/traces/snapshot"
)

const (
	// sniffSize is how much of a stream is looked at to find what it holds.
	sniffSize = 64 << 10
	// maxLayers bounds compression inside of compression.
	maxLayers = 4
)

// stream reads one stream, which may be compressed, and an archive. skipped takes what is no capture; where it is nil
// that is an error.
func (r *reader) stream(path string, src io.Reader, skipped *skips) error {
	b := bufio.NewReaderSize(cancellable{r.ctx, src}, sniffSize)
	var finish []func() []traces.Note
	for layer := 0; ; layer++ {
		head, err := b.Peek(512)
		if err != nil && !errors.Is(err, io.EOF) {
			return r.failed(path, err)
		}
		if !stream.IsGzip(head) {
			break
		}
		if layer == maxLayers {
			return fmt.Errorf("%s: it is compressed more than %d times", path, maxLayers)
		}
		inner, done := r.gunzip(b)
		finish = append(finish, done)
		b = bufio.NewReaderSize(inner, sniffSize)
	}
	notes := func() (all []traces.Note) {
		for _, done := range slices.Backward(finish) {
			all = append(all, done()...)
		}
		return all
	}
	head, _ := b.Peek(512)
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		notes()
		return r.none(path, "a zip archive inside of a stream; unpack it, or name the archive itself", skipped)
	case len(head) > 262 && string(head[257:262]) == "ustar":
		err := r.tar(path, b, skipped)
		for _, n := range notes() {
			r.History.Inputs = append(r.History.Inputs, traces.Input{Path: path, Format: "archive", Notes: []traces.Note{n}})
		}
		return err
	}
	return r.content(path, b, notes, skipped)
}

// content reads a decompressed stream, each part of it if files were concatenated. What notes tell is of its end.
func (r *reader) content(path string, src io.Reader, notes func() []traces.Note, skipped *skips) error {
	p := &parts{b: bufio.NewReaderSize(stream.UTF8(src), sniffSize)}
	before, parts := len(r.History.Inputs), &skips{path: path, format: "concatenation"}
	name := path
	p.next()
	for {
		input := len(r.History.Inputs)
		reason, err := r.part(name, p, skipped != nil || name != path)
		more := err == nil && p.next()
		var ended []traces.Note
		if !more {
			ended = notes()
		}
		if err != nil {
			return r.failed(name, err)
		}
		in := &r.History.Inputs[input]
		in.Notes = append(in.Notes, ended...)
		if reason != "" {
			if len(in.Notes) > 0 {
				reason += " (" + in.Notes[0].Text + ")"
			}
			r.History.Inputs = r.History.Inputs[:input]
			parts.skip(name, reason)
		}
		if more {
			name = fmt.Sprintf("%s, from line %d", path, p.line+1)
			continue
		}
		if len(r.History.Inputs) == before {
			return r.none(path, strings.TrimPrefix(parts.notes[0].Text, path+": "), skipped)
		}
		r.finish(parts)
		return nil
	}
}

// part finds what a part of a stream holds and reads it as a new input. A part that is no capture has a reason. An unusable
// snapshot is such a part where it may be skipped.
func (r *reader) part(name string, src io.Reader, maySkip bool) (reason string, err error) {
	input := len(r.History.Inputs)
	r.History.Inputs = append(r.History.Inputs, traces.Input{Path: name})
	b := bufio.NewReaderSize(src, sniffSize)
	prefix, err := b.Peek(sniffSize)
	for err == nil && len(bytes.TrimSpace(prefix)) == 0 {
		_, _ = b.Discard(len(prefix)) // they are in the buffer
		prefix, err = b.Peek(sniffSize)
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return "", err
	}
	text := bytes.TrimSpace(prefix)
	f := sniff(prefix)
	switch {
	case len(text) == 0:
		return "it is empty", nil
	case f == nil:
		return fmt.Sprintf("it begins with %.40q", text[:min(len(text), 120)]), nil
	}
	err = f.read(r, b, input)
	if in := &r.History.Inputs[input]; in.Format == "" {
		in.Format = f.name
	}
	var unusable *unusableError
	if errors.Is(err, cloudtrail.ErrNoEvents) || errors.Is(err, traces.ErrNoHistory) || errors.As(err, &unusable) && maySkip {
		return err.Error(), nil
	}
	return "", err
}

// none deals with a stream that holds no capture.
func (r *reader) none(path, reason string, skipped *skips) error {
	if skipped != nil {
		skipped.skip(path, reason)
		return nil
	}
	return fmt.Errorf("%s: %w: %s; expected %s", path, ErrNoCapture, reason, Expected)
}

func (r *reader) failed(path string, err error) error {
	if r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	return fmt.Errorf("%s: %w", path, err)
}

// tar reads the members of an archive, as far as it goes.
func (r *reader) tar(path string, src io.Reader, outer *skips) error {
	skipped := &skips{path: path, format: "archive"}
	before := len(r.History.Inputs)
	t := tar.NewReader(src)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if r.ctx.Err() != nil {
				return r.ctx.Err()
			}
			skipped.skip(path, "the archive cannot be read further: "+err.Error())
			break
		}
		switch name := path + "!" + h.Name; h.Typeflag {
		case tar.TypeReg:
			if err := r.stream(name, t, skipped); err != nil {
				return err
			}
		case tar.TypeDir, tar.TypeXGlobalHeader:
		default:
			skipped.skip(name, "no regular file")
		}
	}
	return r.archived(path, before, skipped, outer)
}

// zip reads the members of an archive in the order of their names.
func (r *reader) zip(path string, f io.ReaderAt, size int64, outer *skips) error {
	archive, err := zip.NewReader(f, size)
	if err != nil {
		return r.none(path, "a damaged zip archive: "+err.Error(), outer)
	}
	skipped := &skips{path: path, format: "archive"}
	before := len(r.History.Inputs)
	members := slices.Clone(archive.File)
	slices.SortStableFunc(members, func(a, b *zip.File) int { return strings.Compare(a.Name, b.Name) })
	for _, m := range members {
		name := path + "!" + m.Name
		if !m.Mode().IsRegular() {
			continue
		}
		if m.UncompressedSize64 > 64<<20 && m.UncompressedSize64/uint64(r.options.MaxExpansion) > m.CompressedSize64 {
			return fmt.Errorf("%s: %w", name, &stream.BombError{
				Expansion: int64(m.UncompressedSize64 / max(m.CompressedSize64, 1)), Limit: r.options.MaxExpansion})
		}
		// The reader stops at the size that the archive states.
		content, err := m.Open()
		if err != nil {
			skipped.skip(name, "cannot be unpacked: "+err.Error())
			continue
		}
		err = r.stream(name, content, skipped)
		content.Close()
		if err != nil {
			return err
		}
	}
	return r.archived(path, before, skipped, outer)
}

// archived ends the reading of an archive. One without any capture is no capture.
func (r *reader) archived(path string, before int, skipped, outer *skips) error {
	if len(r.History.Inputs) == before {
		reason := "an empty archive"
		if skipped.count > 0 {
			reason = "an archive without a capture in it; the first of its members is " + skipped.notes[0].Text
		}
		return r.none(path, reason, outer)
	}
	r.finish(skipped)
	return nil
}

// format is one of the formats that a stream may have.
type format struct {
	name  string
	sniff func(prefix []byte) bool
	read  func(r *reader, src io.Reader, input int) error
}

// unusableError is what is wrong with the content of a snapshot or of bindings, which are used as a whole or not at all.
type unusableError struct{ error }

func (e *unusableError) Unwrap() error { return e.error }

// whole reads a snapshot or bindings, and tells errors of the source from errors in what it holds.
func whole[T any](src io.Reader, in *traces.Input, read func(io.Reader) ([]T, error)) ([]T, error) {
	s := &sourceError{r: src}
	all, err := read(s)
	if s.err != nil {
		return nil, s.err
	}
	if err != nil {
		return nil, &unusableError{err}
	}
	in.Records, in.Used = len(all), len(all)
	return all, nil
}

// sourceError keeps the error of a source.
type sourceError struct {
	r   io.Reader
	err error
}

func (s *sourceError) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// formats are asked in turn; the last one takes any JSON.
var formats = []format{
	{traces.FormatHistory, isHistory, func(r *reader, src io.Reader, input int) error {
		return traces.ReadHistory(src, r.History, input)
	}},
	{"snapshot", snapshot.SniffSnapshot, func(r *reader, src io.Reader, input int) error {
		found, err := whole(src, &r.History.Inputs[input], snapshot.ReadSnapshots)
		r.Snapshots = append(r.Snapshots, found...)
		return err
	}},
	{"bindings", snapshot.SniffBindings, func(r *reader, src io.Reader, input int) error {
		found, err := whole(src, &r.History.Inputs[input], snapshot.ReadBindings)
		r.Bindings = append(r.Bindings, found...)
		return err
	}},
	{traces.FormatControllerLog, controllerlog.Sniff, func(r *reader, src io.Reader, input int) error {
		return controllerlog.Read(src, r.History, input, controllerlog.Options{Skew: r.options.LogSkew})
	}},
	{traces.FormatCloudTrail, mayBeCloudTrail, func(r *reader, src io.Reader, input int) error {
		return r.trail.Read(src, input)
	}},
}

func sniff(prefix []byte) *format {
	for i := range formats {
		if formats[i].sniff(prefix) {
			return &formats[i]
		}
	}
	return nil
}

func isHistory(prefix []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimLeft(prefix, " \t\r\n"), []byte{'\n'})
	return traces.IsHistory(line)
}

// mayBeCloudTrail takes any JSON besides what is sure: its reader says best why it is none.
func mayBeCloudTrail(prefix []byte) bool {
	head := bytes.TrimLeft(prefix, " \t\r\n")
	return cloudtrail.Sniff(prefix) || len(head) > 0 && (head[0] == '{' || head[0] == '[')
}
