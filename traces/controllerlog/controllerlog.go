package controllerlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"path"
	"strconv"
	"time"

	"linearize.example/traces"
)

// Options are what the log does not tell.
type Options struct {
	// Skew is how far the controller's clock may be off. Every interval grows by it on both sides; the order of the
	// lines, which Operation.After keeps, does not depend on it.
	Skew time.Duration
}

// maxLine bounds one line, in bytes. The controller logs whole models of load balancers, tens of kilobytes each; a
// security group has at most 1000 rules of 250 bytes.
const maxLine = 4 << 20

// Read reads a log and appends to h the calls and observations that it tells of, counting the lines into
// h.Inputs[input]. A call's interval is from its first line to the line that ends it; a call that nothing ends returns
// Forever. Where a later call of the same process proves that one is over, but no line how, it is Pending with a
// bounded Return. A log without a single end line is an excerpt, in which a missing end proves nothing.
//
// Lines of other programs are irrelevant. Lines that cannot be used are rejected with their reason; a torn last line is
// noted. Read fails only with what r returns, and keeps what it has read before.
func Read(r io.Reader, h *traces.History, input int, opts Options) error {
	in := &h.Inputs[input]
	if in.Format == "" {
		in.Format = traces.FormatControllerLog
	}
	d := reader{
		h: h, in: in, input: input, opts: opts, first: len(h.Operations), base: path.Base(in.Path),
		lanes: map[string]*lane{}, names: map[string]bool{}, pieces: map[string][]byte{}, seen: map[[16]byte]bool{},
		unanswered: map[int]bool{},
	}
	for i := range h.Operations {
		d.names[h.Operations[i].Process] = true
	}
	for i := range h.Observations {
		d.names[h.Observations[i].Process] = true
	}
	lines := traces.NewLines(r, maxLine)
	for lines.Next() {
		d.line = lines.Number()
		switch {
		case lines.TooLong():
			in.Records++
			in.Reject(d.position(), fmt.Sprintf("the line is longer than %d MiB", maxLine>>20))
		case len(bytes.TrimSpace(lines.Bytes())) > 0:
			in.Records++
			d.read(lines.Bytes(), lines.Torn())
		}
	}
	d.finish()
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", d.line, err)
	}
	return nil
}

// reader is the state of one Read.
type reader struct {
	h     *traces.History
	in    *traces.Input
	input int
	opts  Options
	// base is the file's name, for ids; line the number of the current line.
	base  string
	line  int
	first int // the first operation of this log
	// lanes are the pods, by name; the whole log is the lane "" where nothing tells pods apart.
	lanes map[string]*lane
	// names are the processes of the history.
	names map[string]bool
	// pieces are lines that container runtimes cut into parts, by pod and stream, and torn counts those without end.
	pieces map[string][]byte
	// seen holds the lines that carry a carrier's time stamp in nanoseconds.
	seen map[[16]byte]bool
	// ingressEnds and targetEnds tell that the log has lines for the end of such calls.
	ingressEnds, targetEnds bool
	// unanswered are the operations that the client gave up, so that nobody knows whether they took effect.
	unanswered map[int]bool
	// yearless are the observations from klog lines that were read before the year was known.
	yearless []int
	clock    traces.Instant
	// backwards counts the lines that are older than the one before, in the same process.
	backwards, firstBackwards int
	// headless counts calls whose first line is missing, unclear those whose permissions cannot be read.
	headless, unclear int
	// overlapping counts calls that ended after the next began, which one process does not do.
	overlapping int
}

func (r *reader) id() string { return r.base + ":" + strconv.Itoa(r.line) }

func (r *reader) position() string { return "line " + strconv.Itoa(r.line) }

func (r *reader) source() traces.Source { return traces.Source{Input: r.input, Position: r.position()} }

// read takes one line and counts it.
func (r *reader) read(line []byte, torn bool) {
	if r.line == 1 {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	text, w := peel(line)
	if w.stream != "" {
		key := w.pod + "/" + w.stream
		piece := r.pieces[key]
		switch {
		case w.partial && len(piece)+len(text) <= maxLine:
			r.pieces[key] = append(piece, text...)
			r.in.Irrelevant++
			return
		case w.partial:
			delete(r.pieces, key)
			r.in.Reject(r.position(), fmt.Sprintf("the parts of a line are longer than %d MiB together", maxLine>>20))
			return
		case len(piece) > 0:
			text = append(piece, text...)
			delete(r.pieces, key)
		}
	}
	e, ok, err := decode(text)
	if err == nil && !ok && torn && len(text) > 0 && text[0] == '{' && !json.Valid(text) {
		err = io.ErrUnexpectedEOF
	}
	switch {
	case err != nil && torn:
		r.in.Reject(r.position(), "the last line is torn")
		r.note("truncated-capture", "the log's last line is torn; the rest was used")
	case err != nil:
		r.in.Reject(r.position(), err.Error())
	case !ok:
		r.in.Irrelevant++
	case r.duplicate(text, w):
		r.in.Duplicates++
	default:
		r.handle(&e, w)
	}
}

// duplicate recognizes a line that was delivered twice: `kubectl logs --timestamps` taken twice and joined, say. Only
// the carrier's nanoseconds tell it from a line that the controller wrote twice.
func (r *reader) duplicate(text []byte, w wrapped) bool {
	if !w.exact {
		return false
	}
	sum := fnv.New128a()
	fmt.Fprintf(sum, "%s\n%d\n", w.pod, w.at.lo)
	sum.Write(text)
	key := [16]byte(sum.Sum(nil))
	if r.seen[key] {
		return true
	}
	r.seen[key] = true
	return false
}

// handle finds the process of a line and does what its message says.
func (r *reader) handle(e *entry, w wrapped) {
	switch {
	case e.timed && e.yearless && w.timed:
		e.at, e.yearless = w.at, false
	case !e.timed && w.timed:
		e.at, e.timed = w.at, true
	}
	if !e.timed {
		r.in.Reject(r.position(), `the line has no time stamp that can be read ("ts")`)
		return
	}
	if e.yearless && r.clock != 0 {
		e.at, e.yearless = inYearOf(e.at, r.clock), false
	}
	if !e.yearless {
		r.clock = e.at.lo
		for _, i := range r.yearless {
			ob := &r.h.Observations[i]
			at := inYearOf(span{ob.Earliest, ob.Latest}, r.clock)
			ob.Earliest, ob.Latest = at.lo, at.hi
		}
		r.yearless = nil
	}
	m := lookup(e.msg)
	if m.relevant != nil && !m.relevant(e) {
		r.in.Irrelevant++
		return
	}
	l := r.lanes[w.pod]
	if l == nil {
		l = &lane{name: w.pod, sure: w.pod != ""}
		if !l.sure {
			l.name = "controller"
		}
		r.lanes[w.pod] = l
	}
	p := r.process(l, m.phase)
	p.active = p.active || m.phase == leading
	if !e.yearless {
		if p.last.lo != 0 && e.at.hi < p.last.lo {
			if r.backwards == 0 {
				r.firstBackwards = r.line
			}
			r.backwards++
		}
		p.last = e.at
	}
	switch err := m.do(r, p, e); {
	case err == nil:
		r.in.Used++
	case errors.Is(err, errIrrelevant):
		r.in.Irrelevant++
	default:
		r.in.Reject(r.position(), err.Error())
	}
}

// observe adds an observation at a line.
func (r *reader) observe(p *process, e *entry, ob traces.Observation) {
	ob.ID, ob.Process = r.id(), p.name
	ob.Sources = []traces.Source{r.source()}
	if ob.Text == "" {
		ob.Text = e.msg
	}
	if ob.Earliest == 0 && ob.Latest == 0 {
		ob.Earliest, ob.Latest = e.at.lo, e.at.hi
	}
	ob.Earliest, ob.Latest = ob.Earliest.Add(-r.opts.Skew), ob.Latest.Add(r.opts.Skew)
	if e.yearless {
		r.yearless = append(r.yearless, len(r.h.Observations))
	}
	r.h.Observations = append(r.h.Observations, ob)
}

func (r *reader) note(kind, text string) {
	r.in.Notes = append(r.in.Notes, traces.Note{Kind: kind, Text: text})
}

// finish settles what only the whole log tells.
func (r *reader) finish() {
	r.settle()
	for _, i := range r.yearless {
		ob := &r.h.Observations[i]
		ob.Earliest, ob.Latest = traces.Beginning, traces.Forever
	}
	r.adopt()
	if r.backwards > 0 {
		r.note("clock-backwards", fmt.Sprintf("%d lines are older than the line before them, first line %d; "+
			"the order of the lines is kept", r.backwards, r.firstBackwards))
	}
	if r.headless > 0 {
		r.note("truncated-capture", fmt.Sprintf("the log tells only the end of %d calls; what they asked for is unknown",
			r.headless))
	}
	if r.unclear > 0 {
		r.note("unclear-call", fmt.Sprintf("%d calls name permissions or targets that cannot be read; "+
			"what they asked for is unknown", r.unclear))
	}
	if r.overlapping > 0 {
		r.note("mixed-processes", fmt.Sprintf("%d calls ended after the next one began, so that several controllers wrote "+
			"this log; take it with the pods' names (kubectl logs --prefix)", r.overlapping))
	}
	if len(r.pieces) > 0 {
		r.note("truncated-capture", fmt.Sprintf("%d lines that the container runtime cut into parts have no last part",
			len(r.pieces)))
	}
}

// inYearOf moves a span of the year 2000 into the year in which it is nearest to the clock.
func inYearOf(at span, clock traces.Instant) span {
	lo := at.lo.Time()
	best := span{}
	for year := clock.Time().Year() - 1; year <= clock.Time().Year()+1; year++ {
		t := traces.At(time.Date(year, lo.Month(), lo.Day(), lo.Hour(), lo.Minute(), lo.Second(), lo.Nanosecond(), time.UTC))
		if best.hi == 0 || distance(t, clock) < distance(best.lo, clock) {
			best = span{t, t.Add(at.hi.Sub(at.lo))}
		}
	}
	return best
}

func distance(a, b traces.Instant) time.Duration { return max(a, b).Sub(min(a, b)) }

// Sniff reports whether a stream that begins with prefix looks like a controller's log, or another log by zap: at least
// one of its lines, after what carriers put in front, has level, time and message, or is one that the controller writes.
func Sniff(prefix []byte) bool {
	prefix = bytes.TrimPrefix(prefix, []byte("\xef\xbb\xbf"))
	for len(prefix) > 0 {
		line, rest, _ := bytes.Cut(prefix, []byte("\n"))
		prefix = rest
		text, _ := peel(line)
		if len(text) == 0 {
			continue
		}
		if text[0] == '{' {
			// The top-level fields come first, so that a line which the prefix cuts is recognized too.
			head := text[:min(len(text), maxPrefix)]
			if bytes.Contains(head, []byte(`"level"`)) && bytes.Contains(head, []byte(`"ts"`)) && bytes.Contains(head, []byte(`"msg"`)) {
				return true
			}
			continue
		}
		if _, ok, _ := decode(text); ok || isConsole(text) {
			return true
		}
	}
	return false
}
