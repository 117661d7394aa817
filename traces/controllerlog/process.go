package controllerlog

import (
	"strconv"

	"linearize.example/traces"
)

// process is one running controller: what is known of it at the current line.
type process struct {
	name   string
	caller *traces.Caller
	// The steps of a controller's life that its lines showed; active means that it did what only a leader does.
	started, attempted, elected, lost, active bool
	attemptedAt                               span
	// last is the latest line's time stamp.
	last span

	open map[string]*call
	// unresolved are calls that are over, without a line that tells how; newest last.
	unresolved []*call
	// blamed are calls that an error line was attributed to while they were open, by key.
	blamed map[string]*call
	// lastEnded indexes the newest operation that ended, by key, and lastAny of all.
	lastEnded map[string]int
	lastAny   int
	// reported holds errors already seen in one line and to be repeated in another, by TGB.
	reported map[string]string
	// bindings holds "namespace/name" by name.
	bindings map[string]string
	// creating holds the lines that began the creation of a group, by resource.
	creating map[string]creation
}

// creation is a group that is being created; its id is not known before the answer.
type creation struct {
	at   span
	from traces.Source
}

func newProcess(name string) *process {
	return &process{
		name: name, lastAny: -1,
		open: map[string]*call{}, blamed: map[string]*call{}, lastEnded: map[string]int{},
		reported: map[string]string{}, bindings: map[string]string{}, creating: map[string]creation{},
	}
}

// lane is one stream of lines: a pod's, or the whole log where nothing tells pods apart. Processes follow each other in
// it, and a second one may wait for the lease while the first still runs.
type lane struct {
	name string
	// sure is set where the lane is a pod's, so that all of its lines come from one process at a time.
	sure             bool
	current, standby *process
}

// phase is what a message proves of the process that wrote it.
type phase int

const (
	anytime    phase = iota // every process writes it
	starting                // the first line of a process
	attempting              // the process begins to wait for the lease
	acquiring               // the process becomes leader
	losing                  // the process stops being leader
	serving                 // controllers were started, which happens once, after the lease was won
	leading                 // only leaders write it
)

// process finds the process that wrote a line of this phase. Starts begin a new one.
func (r *reader) process(l *lane, ph phase) *process {
	if l.current == nil {
		name := l.name
		if !l.sure || ph == starting || ph == attempting {
			name = r.freeName(l.name)
		}
		r.names[name] = true
		l.current = newProcess(name)
	}
	switch ph {
	case starting:
		if c := l.current; c.started || c.attempted || c.elected || c.active {
			l.standby = newProcess(r.freeName(l.name))
			return l.begin()
		}
	case attempting:
		if l.standby != nil && !l.standby.attempted {
			return l.standby
		}
		if c := l.current; c.attempted || c.elected || c.active || l.standby != nil {
			l.standby = newProcess(r.freeName(l.name))
			return l.begin()
		}
	case acquiring, serving:
		if l.standby != nil {
			l.promote()
		}
	case leading, anytime:
		// A process that waits for the lease writes no such line: its predecessor, in the same log, still does.
		if l.standby != nil && (l.current.lost || ph == leading && !l.standby.attempted) {
			l.promote()
		}
	}
	return l.current
}

// begin makes the standby the only process of a pod: a container starts when the one before has ended.
func (l *lane) begin() *process {
	next := l.standby
	if l.sure {
		l.promote()
	}
	return next
}

func (l *lane) promote() { l.current, l.standby = l.standby, nil }

// freeName returns base, or base-2, base-3 and so on: the first that no process of the history has.
func (r *reader) freeName(base string) string {
	name := base
	for n := 2; r.names[name]; n++ {
		name = base + "-" + strconv.Itoa(n)
	}
	r.names[name] = true
	return name
}
