package record

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"linearize.example/traces"
)

// The names of a recording's files: history-000001.ndjson. A file gets its name when its header is on disk.
const (
	namePrefix = "history-"
	nameSuffix = ".ndjson"
	newSuffix  = ".new"
)

// Open records into a folder, as files history-000001.ndjson and so on, which together are one history. It continues the recording
// that the folder holds, with its numbers, in a new file; what a kill left of the last record stays where it is. One Log at a time
// records into a folder.
func Open(o Options) (*Log, error) {
	if o.Dir == "" {
		return nil, errors.New("record: Options.Dir is empty; name a folder")
	}
	l := newLog(o)
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	lock, err := lockFolder(o.Dir)
	if err != nil {
		return nil, err
	}
	f := &folder{dir: o.Dir, lock: lock, limit: l.options.RotateBytes, header: l.header()}
	if err := f.resume(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	l.out, l.seq = f, f.next-1
	if err := f.rotate(f.next); err != nil {
		return nil, errors.Join(fmt.Errorf("record: %w", err), lock.Close())
	}
	return l, nil
}

// folder is the output into the files of a folder.
type folder struct {
	dir       string
	lock      *os.File // the folder, locked
	limit     int64
	header    map[string]string
	recording string
	part      int
	next      int64 // the first number that was not given out before Open
	file      *os.File
	size      int64 // of the whole lines in file
}

func (f *folder) name() string {
	if f.file == nil {
		return f.dir
	}
	return f.file.Name()
}

func (f *folder) full() bool { return f.size >= f.limit }

func (f *folder) sync() error { return f.file.Sync() }

// write appends lines. Of lines that could not be written whole what came of the last one is cut off, so that the file ends as a
// history does; where even that fails, readers report a torn line.
func (f *folder) write(lines []byte) error {
	n, err := f.file.Write(lines)
	if err != nil {
		n = bytes.LastIndexByte(lines[:n], '\n') + 1
		f.size += int64(n)
		return errors.Join(err, f.file.Truncate(f.size))
	}
	f.size += int64(n)
	return nil
}

// rotate begins the next file. The old one is on disk before, and the new one's header and name are when it returns.
func (f *folder) rotate(next int64) error {
	if f.file != nil {
		if err := errors.Join(f.file.Sync(), f.file.Close()); err != nil {
			return err
		}
	}
	name := filepath.Join(f.dir, fileName(f.part+1))
	file, err := os.OpenFile(name+newSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	f.header["recording"], f.header["part"], f.header["next"] = f.recording, strconv.Itoa(f.part+1), strconv.FormatInt(next, 10)
	header := traces.AppendHeader(nil, f.header)
	_, err = file.Write(header)
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = os.Rename(name+newSuffix, name)
	}
	if err == nil {
		err = f.lock.Sync()
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	f.part++
	f.file, f.size = file, int64(len(header))
	return nil
}

func (f *folder) close() error { return errors.Join(f.file.Close(), f.lock.Close()) }

// resume finds what the folder holds of a recording: its id, its last part, and the first number that it has not given out. In a
// folder without one it makes up an id.
func (f *folder) resume() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	f.next = 1
	var parts []int
	for _, entry := range entries {
		number := strings.TrimSuffix(strings.TrimPrefix(entry.Name(), namePrefix), nameSuffix)
		if part, err := strconv.Atoi(number); err == nil && entry.Name() == fileName(part) {
			parts = append(parts, part)
			f.part = max(f.part, part)
		}
	}
	slices.Sort(parts)
	// A file's header says which numbers were given out before it, so that those behind it need not be read.
	for _, part := range slices.Backward(parts) {
		name := filepath.Join(f.dir, fileName(part))
		h, err := readHeader(name)
		var last int64
		if err == nil {
			last, err = lastNumber(name)
		}
		if err != nil {
			return fmt.Errorf("record: %w", err)
		}
		f.next = max(f.next, last+1)
		f.recording = cmp.Or(f.recording, h.Recording)
		if next, err := strconv.ParseInt(h.Next, 10, 64); err == nil {
			f.next = max(f.next, next)
			break
		}
	}
	if f.recording == "" {
		var id [8]byte
		_, _ = rand.Read(id[:]) // never fails, see crypto/rand
		f.recording = cmp.Or(f.header["recording"], hex.EncodeToString(id[:]))
	}
	return nil
}

func fileName(part int) string { return fmt.Sprintf("%s%06d%s", namePrefix, part, nameSuffix) }

type fileHeader struct{ Recording, Next string }

// readHeader reads a file's first line. A file without a header tells nothing.
func readHeader(name string) (h fileHeader, err error) {
	file, err := os.Open(name)
	if err != nil {
		return h, err
	}
	defer file.Close()
	line, _ := bufio.NewReader(file).ReadBytes('\n')
	_ = json.Unmarshal(line, &h)
	return h, nil
}

// lastNumber returns the highest sequence number of a file, 0 if it has none.
func lastNumber(name string) (last int64, err error) {
	file, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	lines := traces.NewLines(file, traces.MaxLine)
	for lines.Next() {
		var record struct{ Seq int64 }
		if json.Unmarshal(lines.Bytes(), &record) == nil {
			last = max(last, record.Seq)
		}
	}
	return last, lines.Err()
}

// lockFolder opens the folder and takes it for this process, until it is closed or the process ends.
func lockFolder(dir string) (*os.File, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if err := lock(folder); err != nil {
		if errors.Is(err, fs.ErrPermission) || !errors.Is(err, errLocked) {
			err = fmt.Errorf("record: %s cannot be locked: %w", dir, err)
		} else {
			err = fmt.Errorf("record: %s: somebody else records into it; name another folder", dir)
		}
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}
