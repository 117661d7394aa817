// Package capture reads whatever people hand in as evidence: files, folders, archives and standard input, compressed
// or not, in any mix of the formats that the packages below know. What a file holds is found from its content.
package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"linearize.example/traces"
	"linearize.example/traces/cloudtrail"
	"linearize.example/traces/internal/stream"
)

// ErrNoCapture says that a file which was asked for holds nothing that a capture consists of.
var ErrNoCapture = errors.New("no capture")

// Expected names what a capture may consist of, for messages.
const Expected = "CloudTrail events, the controller's log, a history, or the JSON of describe-security-groups, " +
	"describe-security-group-rules or targetgroupbindings"

// DefaultMaxExpansion is far above what logs reach (10 to 30 times, some 300 for records that are all alike) and below
// what a gzip bomb does (1000 times).
const DefaultMaxExpansion = 500

// Options say how to read.
type Options struct {
	// Skew is how far AWS's clock may be off; it widens the second of a CloudTrail event on both sides.
	Skew time.Duration
	// LogSkew is how far the clock of the controller's host may be off; it widens what its log tells.
	LogSkew time.Duration
	// MaxExpansion is the ratio of decompressed to compressed size over which a stream is refused as a bomb;
	// 0 is DefaultMaxExpansion.
	MaxExpansion int64
}

// Capture is what was read.
type Capture struct {
	History *traces.History
	// Snapshots and Bindings are those that were found among the files. One that cannot be used is an error if it was
	// named, and skipped in a folder.
	Snapshots []traces.Snapshot
	Bindings  []traces.Binding
}

// Read reads every path in turn: a file, a folder with everything below it in the order of names, or "-" for stdin. In
// a folder or an archive what is no capture is skipped, and a note says so; a path that was named and is none is an
// error that wraps ErrNoCapture. Links inside a folder are not followed: what they lead to inside is read anyway.
func Read(ctx context.Context, paths []string, stdin io.Reader, options Options) (*Capture, error) {
	if options.MaxExpansion <= 0 {
		options.MaxExpansion = DefaultMaxExpansion
	}
	c := &Capture{History: &traces.History{}}
	r := &reader{
		ctx: ctx, options: options, Capture: c, seen: map[string]string{}, ahead: map[string]int64{},
		trail: cloudtrail.NewReader(c.History, cloudtrail.Options{Skew: options.Skew}),
	}
	for _, path := range paths {
		if err := r.path(path, stdin); err != nil {
			return nil, err
		}
	}
	r.trail.Finish()
	c.History.Recordings = nil
	return c, nil
}

type reader struct {
	*Capture
	ctx     context.Context
	options Options
	trail   *cloudtrail.Reader
	seen    map[string]string // the paths that were read, by the file's real name
	ahead   map[string]int64  // the bytes of a folder's files that are still to be read, by the ending of their names
}

func (r *reader) path(path string, stdin io.Reader) error {
	if path == "-" {
		if r.seen["-"] != "" {
			return errors.New("standard input was named twice")
		}
		r.seen["-"] = "-"
		return r.stream("standard input", stdin, nil)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return r.folder(path)
	}
	if r.again(path, path) {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return r.file(path, f, info, nil)
}

// again reports whether the file was read before, under whatever name, and notes it.
func (r *reader) again(path, name string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return false // the file itself will say why
	}
	if first, ok := r.seen[real]; ok {
		r.History.Inputs = append(r.History.Inputs, traces.Input{Path: name, Format: "named twice",
			Notes: []traces.Note{{Kind: "skipped-file", Text: "the same file as " + first + ", which was read"}}})
		return true
	}
	r.seen[real] = name
	return false
}

// skips collects what was left out of a folder or an archive.
type skips struct {
	path, format string
	count        int
	notes        []traces.Note
}

func (s *skips) skip(name, reason string) {
	if s.count++; len(s.notes) < traces.MaxRejections {
		s.notes = append(s.notes, traces.Note{Kind: "skipped-file", Text: name + ": " + reason})
	}
}

// finish leaves an input behind that tells of the folder itself what was skipped.
func (r *reader) finish(s *skips) {
	if s.count == 0 {
		return
	}
	if more := s.count - len(s.notes); more > 0 {
		s.notes = append(s.notes, traces.Note{Kind: "skipped-file", Text: fmt.Sprintf("and %d more", more)})
	}
	r.History.Inputs = append(r.History.Inputs, traces.Input{Path: s.path, Format: s.format, Notes: s.notes})
}

// folder reads everything below a folder. A folder without any capture is an error.
func (r *reader) folder(path string) error {
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer root.Close()
	r.ahead = sizes(root.FS())
	defer clear(r.ahead)
	skipped := &skips{path: path, format: "folder"}
	before := len(r.History.Inputs)
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(path, name), err)
		}
		full := filepath.Join(path, filepath.FromSlash(name))
		switch {
		case r.ctx.Err() != nil:
			return r.ctx.Err()
		case entry.IsDir():
			return nil
		case entry.Type()&fs.ModeSymlink != 0:
			skipped.skip(full, "a link; links are not followed")
			return nil
		case !entry.Type().IsRegular():
			skipped.skip(full, "no regular file")
			return nil
		case r.again(full, full):
			return nil
		}
		f, err := root.Open(name)
		if err != nil {
			return fmt.Errorf("%s: %w", full, err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return fmt.Errorf("%s: %w", full, err)
		}
		return r.file(full, f, info, skipped)
	})
	if err != nil {
		return err
	}
	if len(r.History.Inputs) == before {
		reason := "the folder is empty"
		if skipped.count > 0 {
			reason = fmt.Sprintf("none of the %d files in it is one; the first is %s", skipped.count, skipped.notes[0].Text)
		}
		return fmt.Errorf("%s: %w: %s; expected %s", path, ErrNoCapture, reason, Expected)
	}
	r.finish(skipped)
	return nil
}

// sizes adds up the sizes of the files below a folder by the ending of their names. What cannot be looked at counts nothing.
func sizes(folder fs.FS) map[string]int64 {
	total := map[string]int64{}
	_ = fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil {
				total[filepath.Ext(name)] += info.Size()
			}
		}
		return nil
	})
	return total
}

// file reads one file. Of a zip archive the members are read, which takes more than a stream.
func (r *reader) file(path string, f *os.File, info fs.FileInfo, skipped *skips) error {
	if info.Mode().IsRegular() && strings.HasPrefix(head(f, 4), "PK\x03\x04") {
		return r.zip(path, f, info.Size(), skipped)
	}
	if info.Mode().IsRegular() {
		// The parts of a recording take the memory of one file if the first one is read with all of them in view.
		r.History.Expected = max(info.Size(), r.ahead[filepath.Ext(path)])
		defer func() { r.History.Expected = 0 }()
		r.ahead[filepath.Ext(path)] -= info.Size()
	}
	return r.stream(path, f, skipped)
}

// head returns the first bytes of a file.
func head(f io.ReaderAt, n int) string {
	b := make([]byte, n)
	n, _ = f.ReadAt(b, 0)
	return string(b[:n])
}

// cancellable is a reader that fails when the context is done.
type cancellable struct {
	ctx context.Context
	r   io.Reader
}

func (c cancellable) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// gunzip returns the decompressed stream, and what to call when it was read: it stops the decompression and returns the
// note on a stream that was cut off or damaged.
func (r *reader) gunzip(src io.Reader) (io.Reader, func() []traces.Note) {
	z := stream.NewGunzip(src, r.options.MaxExpansion)
	ahead := stream.NewAhead(z)
	return ahead, func() []traces.Note {
		_, err := ahead.Read(make([]byte, 1))
		ahead.Close()
		if err == nil {
			return nil // not read to its end: why it would end is not known
		}
		switch damage := z.Damage(); {
		case damage == nil:
			return nil
		case errors.Is(damage, io.ErrUnexpectedEOF):
			return []traces.Note{{Kind: "truncated-capture", Text: "the gzip stream is cut off; what came was used"}}
		default:
			return []traces.Note{{Kind: "truncated-capture", Text: "the gzip stream is damaged (" + damage.Error() + "); what came before was used"}}
		}
	}
}
