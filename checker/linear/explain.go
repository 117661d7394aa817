package linear

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"linearize.example/traces"
)

const (
	// maxPicture is the most operations of a stretch that is shown as a picture, maxPartials how many partial orders it
	// shows.
	maxPicture  = 2000
	maxPartials = 100
	// maxContext is the most calls before the stretch that are shown with it.
	maxContext = 120
	// lastOrdered is how many calls of the longest partial order are named.
	lastOrdered = 6
)

// explain shows why no order gets past the stretch at which a chain is stuck. It narrows the stretch down to the part of
// it, between two quiet instants, that cannot be ordered, and looks at that together with what comes before it.
func (k *checker) explain(stuck *failure) {
	p, calls, from := stuck.part, stuck.stretches[stuck.at], stuck.from
	failed := calls
	if verdict, narrow := k.chain(p, p.cut(calls, 1), from); verdict == NotLinearizable {
		failed = narrow.stretches[narrow.at]
		last := slices.Index(calls, failed[len(failed)-1])
		if calls = calls[:last+1]; len(calls) > maxContext+len(failed) {
			calls, from = failed, narrow.from
		}
	}
	if stuck.at > 0 && len(stuck.stretches[stuck.at-1])+len(calls) <= maxContext+len(failed) {
		calls, from = slices.Concat(stuck.stretches[stuck.at-1], calls), stuck.before
	}
	var end int64
	for _, c := range calls {
		end = max(end, c.callRank+1)
		if !c.unanswered() {
			end = max(end, c.retRank+1)
		}
	}
	r := p.newRun(calls, from, end, func(*state) bool { return false }, nil)
	f := &Failure{From: failed[0].call, To: failed[len(failed)-1].call}
	for _, c := range failed {
		f.Operations = append(f.Operations, c.index)
		if !c.unanswered() {
			f.To = max(f.To, c.ret)
		}
	}
	k.res.Failed = f
	r.picture()
	b := &budget{ctx: k.ctx, left: k.opts.MaxBytes, each: entrySize(len(r.items), r.start)}
	_, info := porcupine.CheckOperationsVerbose(b.bound(p.model(r.start, r.branching)), r.history, 0)
	if b.stopped {
		f.Text = fmt.Sprintf("the %d operations from %s to %s cannot be ordered", len(failed), f.From, f.To)
		return
	}
	partials := info.PartialLinearizations()
	slices.SortFunc(partials[0], func(a, b []int) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), slices.Compare(a, b))
	})
	partials[0] = partials[0][:min(len(partials[0]), maxPartials)]
	var longest []int
	if len(partials[0]) > 0 {
		longest = partials[0][0]
	}
	p.words(f, r, longest)
	if len(calls) <= maxPicture {
		var html bytes.Buffer
		if err := porcupine.Visualize(p.model(r.start, r.branching), info, &html); err == nil {
			f.Visualization = html.String()
		}
	}
}

// picture gives the run's operations the lanes and texts that Porcupine shows: a lane for each process, and more where
// calls of one process overlap. Its times are ranks; the real ones are in the text.
func (r *run) picture() {
	type lane struct {
		process string
		free    int64
	}
	var lanes []lane
	for i := range r.history {
		o := &r.history[i]
		c := r.items[i].call
		if c == nil {
			o.ClientId = len(lanes)
			continue
		}
		o.ClientId = slices.IndexFunc(lanes, func(l lane) bool { return l.process == c.op.Process && l.free < o.Call })
		if o.ClientId < 0 {
			o.ClientId = len(lanes)
			lanes = append(lanes, lane{process: c.op.Process})
		}
		lanes[o.ClientId].free = o.Return
		o.Metadata = strings.Join(slices.DeleteFunc([]string{c.op.ID, c.op.Process, interval(c)},
			func(s string) bool { return s == "" }), " · ")
	}
}

func interval(c *call) string {
	if c.unanswered() {
		return "from " + c.call.String()
	}
	return c.call.String() + " to " + c.ret.String()
}

// words tells how far the longest partial order gets, and why nothing continues it.
func (p *part) words(f *Failure, r *run, order []int) {
	d := p.describer()
	states := []*state{r.start}
	placed := make([]bool, len(r.items))
	var ordered []*call
	for _, i := range order {
		var next []*state
		for _, s := range states {
			next = r.items[i].next(s, next)
		}
		placed[i] = true
		if r.items[i].call == nil || next[0] == ended {
			break
		}
		states = next
		ordered = append(ordered, r.items[i].call)
		f.Ordered = append(f.Ordered, r.items[i].index)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "starting from %s, ", d.state(r.start))
	if n := len(ordered); n == 0 {
		b.WriteString("no call can come first")
	} else {
		fmt.Fprintf(&b, "an order gets as far as %d of %d calls", n, len(r.items)-1)
		from := max(0, n-lastOrdered)
		if from > 0 {
			b.WriteString(", the last of them")
		}
		for i, c := range ordered[from:] {
			b.WriteString([...]string{"; ", ": "}[min(1, max(0, 1-i))])
			b.WriteString(d.named(c))
		}
		var all []string
		for _, s := range states {
			all = append(all, d.state(s))
		}
		fmt.Fprintf(&b, ". The rules are %s then", strings.Join(all, " or "))
	}
	b.WriteString(". Next must come")
	// What comes next was called before any of the calls left returned.
	first := traces.Forever
	for i := range r.items[:len(r.items)-1] {
		if !placed[i] {
			first = min(first, r.items[i].ret)
		}
	}
	for i := range r.items[:len(r.items)-1] {
		it := &r.items[i]
		if placed[i] || it.call.call > first {
			continue
		}
		if len(f.Next) > 0 {
			b.WriteString(", or")
		}
		f.Next = append(f.Next, it.index)
		fmt.Fprintf(&b, " %s", d.named(it.call))
		if it.needs >= 0 && !states[0].done.has(it.needs) {
			b.WriteString(", but its process made another call before it")
		} else if why := d.refusal(it.call, states[0]); why != "" {
			b.WriteString(", but " + why)
		} else {
			b.WriteString(", after which no order continues")
		}
	}
	f.Text = b.String()
}

func (d describer) named(c *call) string {
	if c.op.ID == "" {
		return d.call(c)
	}
	return d.call(c) + " (" + c.op.ID + ")"
}
