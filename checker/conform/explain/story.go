package explain

import (
	"fmt"
	"slices"

	"linearize.example/checker/conform"
	"linearize.example/checker/conform/engine"
	"linearize.example/model"
)

// Line is one line of a story.
type Line struct {
	// Seen tells what the capture shows from what was inferred.
	Seen bool `json:"seen"`
	// At is the time of day of what was seen, and ID the record.
	At   string `json:"at,omitempty"`
	ID   string `json:"id,omitempty"`
	Text string `json:"text"`
}

// teller turns a path of nodes into a story.
type teller struct {
	*search
	r      *Result
	picked map[[2]int]string // what a worker was given to do
}

// tell writes the shortest explanation into the result.
func (x *search) tell(r *Result) error {
	path, err := x.replay()
	if err != nil {
		return err
	}
	t := &teller{search: x, r: r, picked: map[[2]int]string{}}
	for i := 1; i < len(path); i++ {
		if !path[i].label.seen() {
			r.Inferred++
		}
		t.step(path, i)
	}
	t.open(path)
	r.Done = len(x.ops)
	return nil
}

// open says which orders this explanation chose and the record leaves open: of an authorize and a revoke in the same second, or
// that overlap, one after the other. The order of these two is what many designs differ in.
func (t *teller) open(path []moment) {
	const most = 3
	var last *operation
	n := 0
	for i := range path {
		o := path[i].label.ops[0]
		if o < 0 || t.ops[o].kind > revoke {
			continue
		}
		op := &t.ops[o]
		if before := last; before != nil && before.kind != op.kind && t.either(before, op) {
			if n++; n <= most {
				t.fact("the record leaves open whether %s came first at %s, or %s; here the first did", t.calls(before), op.at, t.calls(op))
			}
		}
		last = op
	}
	if n > most {
		t.fact("the record leaves the order of %d more such pairs open", n-most)
	}
}

func (t *teller) calls(op *operation) string { return kindWords[op.kind] + " " + t.list(op.rules) }

// either says whether two operations, the first of which an explanation puts before the second, may have come the other way round.
func (t *teller) either(a, b *operation) bool {
	if a.stamp != b.stamp || b.call > a.ret || a.call > b.ret {
		return false
	}
	for i := range t.ops {
		if &t.ops[i] == b {
			for j := b.after; j >= 0; j = t.ops[j].after {
				if &t.ops[j] == a {
					return false
				}
			}
		}
	}
	return true
}

func (t *teller) infer(format string, args ...any) {
	t.r.Story = append(t.r.Story, Line{Text: fmt.Sprintf(format, args...)})
}

// say tells a step that may have been observed.
func (t *teller) say(l *label, format string, args ...any) {
	line := Line{Text: fmt.Sprintf(format, args...)}
	if l.seen() {
		op := &t.ops[l.ops[0]]
		line.Seen, line.At, line.ID = true, op.at, op.id
	}
	t.r.Story = append(t.r.Story, line)
}

func (t *teller) fact(format string, args ...any) {
	if f := fmt.Sprintf(format, args...); !slices.Contains(t.r.Facts, f) {
		t.r.Facts = append(t.r.Facts, f)
	}
}

func (t *teller) rules(set engine.Set) string { return t.list(t.spansOf(set)) }

// who names a process where there are several.
func (t *teller) who(p int) string {
	if t.world.env.processes == 1 {
		return "the controller"
	}
	return fmt.Sprintf("controller %d", p)
}

// port names what a binding needs.
func (t *teller) port(tgb int) string {
	if port := t.ports[tgb]; port != 0 {
		if name := t.nameOf(port); name != "" {
			return fmt.Sprintf("port %d (%s)", port, name)
		}
		return fmt.Sprintf("port %d", port)
	}
	return fmt.Sprintf("a port between %d and %d", t.ports[tgb-1], t.ports[tgb+1])
}

// nameOf is the only TGB that is known to need a port.
func (t *teller) nameOf(port int32) string {
	found := ""
	for name, p := range t.named {
		if p == port && found != "" {
			return ""
		}
		if p == port {
			found = name
		}
	}
	return found
}

func (t *teller) step(path []moment, i int) {
	n, l := &path[i], &path[i].label
	p, w := l.args.Process, l.args.Worker
	t.d.Load(path[i-1].state)
	before := t.d.Rules()
	old := slices.Clone(t.d.Old())
	computed := engine.Atom(conform.None)
	if l.action == model.Pick {
		computed = t.d.MemoryOf(p).Computed[l.args.TGB-1]
	}
	t.d.Load(n.state)
	age, stale := "", ""
	if l.answered && l.answer != before {
		for j := len(old) - 1; j >= 0; j-- {
			if old[j] == l.answer {
				age = ages(len(old) - j)
				break
			}
		}
		stale = fmt.Sprintf("; this is %s old, the group holds %s", age, t.rules(before))
	}
	for _, o := range l.ops {
		if o < 0 {
			continue
		}
		op := &t.ops[o]
		if op.observed() && l.action != model.ExternalRevoke {
			continue // told below
		}
		text := t.Subject.text(op)
		if l.answered {
			text += stale
		}
		if op.optional() {
			text += ", then: " + l.actionText()
		}
		t.r.Story = append(t.r.Story, Line{Seen: true, At: op.at, ID: op.id, Text: text})
	}
	switch l.action {
	case model.Pick:
		t.picked[[2]int{p, w}] = t.occasion(l, computed)
	case model.Lock:
		me := t.d.WorkerOf(p, w)
		text := t.picked[[2]int{p, w}] + "; wanted is " + t.rules(me.Wanted)
		if t.d.AuthorizesOnly(p) && me.Wanted.Some() {
			text += ", granting only"
		}
		t.say(l, "%s", text)
	case model.ReadCache:
		cache := t.d.MemoryOf(p).Cache
		if cache == before {
			t.say(l, "the cache says %s", t.rules(cache))
			break
		}
		t.say(l, "the cache says %s; this is stale, the group holds %s", t.rules(cache), t.rules(before))
		t.fact("what was decided before %s rests on a stale cache: %s instead of %s", t.next(path, i), t.rules(cache), t.rules(before))
	case model.Crash:
		t.say(l, "%s starts anew, with nothing in memory", t.who(p))
		if l.seen() {
			break
		}
		t.fact("%s started anew between %s and %s", t.who(p), t.previous(path, i), t.next(path, i))
	case model.LeaderChange:
		t.say(l, "controller %d leads from now on, with nothing in memory", p)
		if l.seen() {
			break
		}
		t.fact("the leader changed between %s and %s", t.previous(path, i), t.next(path, i))
	case model.Skip:
		if l.answered {
			t.infer("so the TGB of %s is skipped", t.port(l.args.TGB))
		} else if l.seen() {
			t.say(l, "the TGB of %s is skipped, for nothing has changed", t.port(l.args.TGB))
		}
	case model.FireDeferred:
		if l.seen() {
			t.say(l, "the checkpoint of the TGB of %s is emptied, for the delay is over", t.port(l.args.TGB))
		}
	case model.ExpireCache:
		t.infer("the cache entry is ten minutes old and expires")
	case model.Settle:
		t.infer("describes no longer return the oldest version")
	case model.SaveLookUp:
		if view := t.d.MemoryOf(p).Cache; view != before {
			t.infer("that answer is saved to the cache now; the group holds %s", t.rules(before))
			t.fact("an answer from before the last change was saved to the cache after it, before %s", t.next(path, i))
		}
	case model.RevokeDelayed:
		t.infer("revoke %s: no answer yet, it is on its way", t.rules(t.d.Late()))
	case model.DescribeFails, model.AuthorizeAnswerLost, model.RevokeAnswerLost:
		if !l.seen() {
			t.infer("a describe fails")
		} else if l.action != model.DescribeFails {
			t.infer("the controller never gets this answer")
		}
	}
	if describes(l.action) {
		if !l.seen() {
			t.infer("%s%s", t.lookText(l), stale)
		}
		if stale != "" {
			t.fact("%s returned a version at least %s old", t.look(path, i), age)
		}
	}
	switch l.action {
	case model.RevokeNotFound, model.AuthorizeDuplicate, model.AuthorizeLimit, model.RevokeFails, model.AuthorizeFails:
		if m := t.d.MemoryOf(p); m.Cached && m.Cache != before && t.d.WorkerOf(p, w).Step != conform.AtReload {
			t.infer("the reconcile fails; the cache keeps %s, though the group holds %s", t.rules(m.Cache), t.rules(before))
		}
	}
}

func ages(n int) string {
	if n == 1 {
		return "one change"
	}
	return fmt.Sprintf("%d changes", n)
}

func (l *label) actionText() string {
	switch l.action {
	case model.AuthorizeOk, model.RevokeOk:
		return "it took effect"
	case model.AuthorizeAnswerLost, model.RevokeAnswerLost:
		return "it took effect, unknown to the controller"
	}
	return "it had no effect"
}

func (t *teller) lookText(l *label) string {
	what := "a describe answers "
	switch l.action {
	case model.Reload:
		what = "a describe that ignores the cache answers "
	case model.LookUpGroup:
		what = "a describe outside the mutex answers "
	case model.ListTagged:
		what = "the list of the groups with the cluster's tag says "
	}
	return what + t.rules(l.answer)
}

// occasion says what makes the controller look at a binding.
func (t *teller) occasion(l *label, computed engine.Atom) string {
	port := t.port(l.args.TGB)
	switch {
	case computed == conform.Unknown && l.wants == conform.Port:
		return "the TGB of " + port + " is reconciled, with a pod"
	case computed == conform.Unknown:
		return "the TGB of " + port + " is reconciled, without a pod"
	case computed == l.wants && l.wants == conform.Port:
		return "the TGB of " + port + " is reconciled again"
	case computed == l.wants:
		return "the TGB of " + port + ", without a pod, is reconciled again"
	case l.wants == conform.Port:
		return "the pod behind " + port + " is back"
	}
	return "the pod behind " + port + " is gone"
}

// next is when the next thing was seen, previous when the last one was.
func (t *teller) next(path []moment, i int) string {
	for j := i + 1; j < len(path); j++ {
		if o := path[j].label.ops[0]; o >= 0 {
			return t.ops[o].at
		}
	}
	return "the end"
}

func (t *teller) previous(path []moment, i int) string {
	for j := i - 1; j > 0; j-- {
		if o := path[j].label.ops[0]; o >= 0 {
			return t.ops[o].at
		}
	}
	return "the start"
}

func (t *teller) look(path []moment, i int) string {
	if l := &path[i].label; l.seen() {
		return "the describe at " + t.ops[l.ops[0]].at
	}
	return fmt.Sprintf("the describe between %s and %s", t.previous(path, i), t.next(path, i))
}
