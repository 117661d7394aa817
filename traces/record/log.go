package record

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"sync"
	"time"

	"linearize.example/traces"
)

// DefaultRotateBytes is the size from which on a new file is begun.
const DefaultRotateBytes = 64 << 20

// maxQueued bounds what waits to be written, in bytes: from there on notes wait, too. Calls wait for their own records in any case, so
// that each of those in flight has one at most.
const maxQueued = 1 << 20

// ErrClosed is returned by a Log that was closed.
var ErrClosed = errors.New("the recording was closed")

// Options say how to record.
type Options struct {
	// Dir is the folder of the recording; it is made if it is not there.
	Dir string
	// RotateBytes is the size from which on a new file is begun; 0 is DefaultRotateBytes.
	RotateBytes int64
	// Now is the clock; nil is the host's, which is read once, and counted on without the jumps that it may make.
	Now func() time.Time
	// Clock says in the header what the times are; "" is a text about the host's clock, where Now is nil.
	Clock string
	// Header is what else the header says, by name; "recording", "part" and "next" are the log's own.
	Header map[string]string
	// Sync has End return only when the record is on the disk, so that it outlives the machine. Without it the record is with the
	// operating system, and outlives the process.
	Sync bool

	_ struct{}
}

// Log writes a history (docs/history.md) while it happens. Its methods may be called at once by several goroutines.
//
// Records are queued in the order of their calls and written by whichever caller waits for one; all that were queued meanwhile share
// the next write, and all that were written meanwhile the next fsync. After an error of the disk nothing is recorded any more: every
// method returns that error, so that no call goes unrecorded by a caller who looks.
type Log struct {
	options Options
	now     func() time.Time

	mu      sync.Mutex
	wrote   *sync.Cond // written, writing or err has changed
	flushed *sync.Cond // synced, syncing or err has changed
	queue   []byte     // whole lines
	spare   []byte     // the room of the last queue
	seq     int64      // of the last operation

	queued, written, synced int64 // bytes since the log was opened
	writing, syncing        bool  // somebody does, without holding mu
	err                     error
	closed                  bool

	out output
}

// output is where a log writes to. write is called by one goroutine at a time, as is sync; either may run while the other does,
// but for a write with rotate.
type output interface {
	write(lines []byte) error
	sync() error
	full() bool
	// rotate begins a new file, of which next is the first number that it may give out, and makes the old one last.
	rotate(next int64) error
	close() error
	name() string
}

// NewLog records into w, which gets the header at once and whole lines from then on, until Close returns. w need not be safe for
// concurrent use. Where w has a method Sync() error, as files have, Options.Sync uses it.
func NewLog(w io.Writer, o Options) (*Log, error) {
	l := newLog(o)
	l.out = &writer{w, o.Sync}
	if err := l.out.write(traces.AppendHeader(nil, l.header())); err != nil {
		return nil, fmt.Errorf("record: the header cannot be written: %w", err)
	}
	return l, nil
}

func newLog(o Options) *Log {
	if o.RotateBytes <= 0 {
		o.RotateBytes = DefaultRotateBytes
	}
	l := &Log{options: o, now: o.Now}
	if l.now == nil {
		base := time.Now()
		l.now = func() time.Time { return base.Add(time.Since(base)) }
		if o.Clock == "" {
			l.options.Clock = "one host, nanoseconds, UTC"
		}
	}
	l.wrote, l.flushed = sync.NewCond(&l.mu), sync.NewCond(&l.mu)
	return l
}

func (l *Log) header() map[string]string {
	h := maps.Clone(l.options.Header)
	if h == nil {
		h = map[string]string{}
	}
	if l.options.Clock != "" {
		h["clock"] = l.options.Clock
	}
	return h
}

// writer is the output into somebody else's writer.
type writer struct {
	w      io.Writer
	synced bool
}

func (w *writer) write(lines []byte) error {
	n, err := w.w.Write(lines)
	if err == nil && n < len(lines) {
		err = io.ErrShortWrite
	}
	return err
}

func (w *writer) sync() error {
	if s, ok := w.w.(interface{ Sync() error }); ok && w.synced {
		return s.Sync()
	}
	return nil
}

func (w *writer) full() bool         { return false }
func (w *writer) rotate(int64) error { return nil }
func (w *writer) close() error       { return nil }

func (w *writer) name() string {
	if f, ok := w.w.(*os.File); ok {
		return f.Name()
	}
	return "the history"
}

// Entry is a call that was begun.
type Entry struct {
	log     *Log
	call    traces.Instant
	begun   []traces.Operation
	seqs    []int64
	records []traces.Operation // what End recorded
	ended   bool
}

// isRead reports whether the call changes nothing, whatever becomes of it.
func isRead(op string) bool { return strings.HasPrefix(op, "Describe") }

// Begin records that a call is about to be sent: the operations that it asks for (those of awsapi.Operations), with their numbers
// and the instant of the call, and no answer. When it returns, calls that change something are with the operating system: a process
// that is killed from here on leaves them pending in its history. A log that cannot record any more returns its error at once; who
// wants every effect in the history must not send the call then.
func (l *Log) Begin(ops ...traces.Operation) (*Entry, error) {
	e := &Entry{log: l, begun: make([]traces.Operation, len(ops)), seqs: make([]int64, len(ops))}
	copy(e.begun, ops)
	wait := false
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return nil, err
	}
	// The order of the records is that of their instants: the clock is read under the mutex.
	e.call = traces.At(l.now())
	before := len(l.queue)
	for i := range e.begun {
		op := &e.begun[i]
		l.seq++
		e.seqs[i] = l.seq
		wait = wait || !isRead(op.Op)
		record := *op
		record.ID, record.After, record.Call, record.Return, record.Outcome, record.Error = "", -1, e.call, traces.Forever, traces.Pending, ""
		l.queue = traces.AppendOperation(l.queue, &record, l.seq)
	}
	l.queued += int64(len(l.queue) - before)
	var err error
	if wait {
		err = l.awaitWritten(l.queued)
	} else {
		err = l.enqueued()
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// End records what became of the call: the whole records, with the numbers that Begin gave, and returns when they are kept
// (Options.Sync). Their intervals reach from Begin until now; an operation of which no answer is known (Pending) has no end, unless
// its Return says when it can no longer take effect. An operation that Begin did not have, of a describe that found more groups,
// gets a new number. One that End does not have stays what Begin recorded. A call ends once.
func (e *Entry) End(ops ...traces.Operation) error {
	l := e.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	if e.ended {
		return errors.New("record: the call was ended before")
	}
	e.ended = true
	now := max(traces.At(l.now()), e.call)
	used := make([]bool, len(e.begun))
	before := len(l.queue)
	e.records = make([]traces.Operation, len(ops))
	for i := range ops {
		record := &e.records[i]
		*record = ops[i]
		seq := e.number(record, used)
		record.ID, record.After, record.Call = fmt.Sprint("seq ", seq), -1, e.call
		switch {
		case record.Outcome != traces.Pending:
			record.Return = now
		case record.Return <= record.Call:
			record.Return = traces.Forever
		}
		l.queue = traces.AppendOperation(l.queue, record, seq)
	}
	l.queued += int64(len(l.queue) - before)
	if l.options.Sync {
		return l.awaitSynced(l.queued)
	}
	return l.awaitWritten(l.queued)
}

// number returns the number that Begin gave to the operation, or a new one. The log's mutex is held.
func (e *Entry) number(op *traces.Operation, used []bool) int64 {
	for i := range e.begun {
		// Before its answer a group may be known by its name only.
		if b := &e.begun[i]; !used[i] && b.Op == op.Op && (b.Group == op.Group || !strings.HasPrefix(b.Group, "sg-")) {
			used[i] = true
			return e.seqs[i]
		}
	}
	e.log.seq++
	return e.log.seq
}

// Operations returns what End recorded: with names, instants and results.
func (e *Entry) Operations() []traces.Operation { return e.records }

// Note records an observation. Where it has no time it gets the present one. It waits for nothing but room in the queue; what was
// noted is written soon, and at the latest with the next call or by Close.
func (l *Log) Note(ob traces.Observation) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	if ob.Earliest == 0 && ob.Latest == 0 {
		ob.Earliest = traces.At(l.now())
		ob.Latest = ob.Earliest
	}
	before := len(l.queue)
	l.queue = traces.AppendObservation(l.queue, &ob)
	l.queued += int64(len(l.queue) - before)
	return l.enqueued()
}

// Err returns what has ended the recording: nil while it goes on.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Close writes what is queued, has it on disk, and ends the recording. Calls that are under way stay pending in the history.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	l.closed = true
	err := l.awaitWritten(l.queued)
	if err == nil {
		err = l.awaitSynced(l.queued)
	}
	for l.writing || l.syncing {
		if l.writing {
			l.wrote.Wait()
		} else {
			l.flushed.Wait()
		}
	}
	if e := l.out.close(); err == nil && e != nil {
		err = fmt.Errorf("record: %s: %w", l.out.name(), e)
	}
	return err
}

func (l *Log) usable() error {
	switch {
	case l.err != nil:
		return l.err
	case l.closed:
		return ErrClosed
	}
	return nil
}

// enqueued sees to it that the queue is written by somebody, and waits while it is too long. The mutex is held.
func (l *Log) enqueued() error {
	if len(l.queue) > maxQueued {
		return l.awaitWritten(l.queued)
	}
	if !l.writing {
		l.writing = true
		go func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.write()
		}()
	}
	return nil
}

// awaitWritten returns when all up to a position is with the operating system. The mutex is held, and given up meanwhile.
func (l *Log) awaitWritten(position int64) error {
	for l.written < position && l.err == nil {
		if l.writing {
			l.wrote.Wait()
			continue
		}
		l.writing = true
		l.write()
	}
	if l.written >= position {
		return nil
	}
	return l.err
}

// awaitSynced returns when all up to a position is on disk. The mutex is held, and given up meanwhile.
func (l *Log) awaitSynced(position int64) error {
	if err := l.awaitWritten(position); err != nil {
		return err
	}
	for l.synced < position && l.err == nil {
		if l.syncing {
			l.flushed.Wait()
			continue
		}
		l.syncing = true
		written := l.written
		l.mu.Unlock()
		err := l.out.sync()
		l.mu.Lock()
		l.syncing = false
		if err == nil {
			l.synced = max(l.synced, written)
		} else {
			// What an fsync that failed has left on disk, nobody knows; to ask again would say that all is well.
			l.fail(err)
		}
		l.flushed.Broadcast()
	}
	if l.synced >= position {
		return nil
	}
	return l.err
}

// write writes the queue. The mutex is held, and given up meanwhile; writing is true, and is false when it returns.
func (l *Log) write() {
	if l.out.full() {
		for l.syncing {
			l.flushed.Wait()
		}
		l.syncing = true
		written, next := l.written, l.seq+1
		l.mu.Unlock()
		err := l.out.rotate(next)
		l.mu.Lock()
		l.syncing = false
		if err == nil {
			l.synced = max(l.synced, written)
		} else {
			l.fail(err)
		}
		l.flushed.Broadcast()
	}
	lines := l.queue
	l.queue = l.spare[:0]
	l.mu.Unlock()
	err := l.Err()
	if err == nil {
		err = l.out.write(lines)
	}
	l.mu.Lock()
	l.spare = lines
	l.writing = false
	if err == nil {
		l.written += int64(len(lines))
	} else {
		l.fail(err)
	}
	l.wrote.Broadcast()
}

// fail ends the recording. The mutex is held.
func (l *Log) fail(err error) {
	if l.err == nil {
		l.err = fmt.Errorf("record: %s: %w; nothing more is recorded: make room or repair the disk, and start the recording anew", l.out.name(), err)
	}
	l.flushed.Broadcast()
	l.wrote.Broadcast()
}
