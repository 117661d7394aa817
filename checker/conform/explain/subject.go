package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"linearize.example/checker/property"
	"linearize.example/traces"
)

// kind is what an operation does to the group, or to the targets behind it.
type kind uint8

const (
	authorize kind = iota
	revoke
	describe
	register
	deregister
)

var kindWords = [...]string{"authorize", "revoke", "describe", "register", "deregister", "lead", "be elected", "skip",
	"empty the checkpoint of", "want", "use the cache"}

// span is a rule without protocol and source, which are those of the subject.
type span struct{ lo, hi int32 }

// operation is one visible step that an explanation needs.
type operation struct {
	kind    kind
	rules   []span // of an authorize or a revoke; what a describe returned
	port    int32  // of targets; of an observed TGB, where it is known
	tgb     string // the TGB that was observed
	outcome traces.Outcome
	err     string // the error code; empty when any error will do
	call    traces.Instant
	ret     traces.Instant
	stamp   traces.Instant // the second that the source writes; 0 where there is none
	after   int            // the operation that the same caller finished before; -1
	certain bool           // the source tells running processes apart
	caller  string         // the process that sent it, where there are several
	foreign bool           // the caller is no controller
	id      string
	at      string // the time, for people
}

// optional says whether an explanation may leave the operation out: without an answer it may never have been carried out.
func (op *operation) optional() bool { return op.outcome == traces.Pending }

// Subject is what is explained at once: the rules of one group with one protocol and source.
type Subject struct {
	Group, Protocol, Source string
	// Notes say what of the capture is not used, and what is assumed.
	Notes []string
	// Tried says which environments were tried besides those asked for; empty when none were.
	Tried string
	// Cannot says why the specification cannot speak about this capture; empty when it can.
	Cannot string

	ops       []operation
	ports     []int32  // the ends of rules, ascending
	initial   [][]span // candidates for the rules at the start
	describes bool     // describes were recorded, so that there are no others
	listed    bool     // and some of them of no group in particular
	watched   []int32  // ports whose targets were recorded
	callers   []string
	named     map[string]int32 // the ports of TGBs that were given
	only      bool             // there are no other TGBs
	inner     []string         // processes that record what they do under the mutex
	calls     []line           // where logs tell of calls
	release   string           // the design of the release that the callers' user agents name
	lives     [][2]int         // the first and the last operation of each process that the sources tell from others
}

// Operations is how many calls an explanation has to contain or may contain, and Observations how many other things.
func (s *Subject) Operations() int { return len(s.ops) - s.Observations() }

// Observations is how many things besides calls an explanation has to contain.
func (s *Subject) Observations() int {
	n := 0
	for i := range s.ops {
		if s.ops[i].observed() {
			n++
		}
	}
	return n
}

type key struct{ protocol, source string }

// Selection says what of a capture is explained, and what is known besides. Zero values select everything and know nothing.
type Selection struct {
	// Groups restricts it to some groups.
	Groups []string
	// Managed says which descriptions are those of managed rules; nil means the controller's own label.
	Managed func(string) bool
	// Initial are the rules at the start; of several for one group the first counts.
	Initial []traces.Snapshot
	// Bindings are the TGBs, and HasBindings tells none from not known.
	Bindings    []traces.Binding
	HasBindings bool
}

// Subjects prepares the operations of a merged history with resolved rule ids for each group with managed rules, and for
// each protocol and source of these.
func Subjects(h *traces.History, sel Selection) []*Subject {
	if sel.Managed == nil {
		sel.Managed = property.Managed
	}
	keys := map[string][]key{}
	see := func(group string, list []traces.Permission) {
		for _, p := range list {
			k := key{p.Protocol, p.Source}
			if sel.Managed(p.Description) && !slices.Contains(keys[group], k) {
				keys[group] = append(keys[group], k)
			}
		}
	}
	for i := range h.Operations {
		op := &h.Operations[i]
		see(op.Group, op.Permissions)
		see(op.Group, op.View)
	}
	var out []*Subject
	for group, list := range keys {
		if group == "" || len(sel.Groups) > 0 && !slices.Contains(sel.Groups, group) {
			continue
		}
		for _, k := range list {
			out = append(out, newSubject(h, group, k, len(list) > 1, &sel))
		}
	}
	slices.SortFunc(out, func(a, b *Subject) int {
		return strings.Compare(a.Group+" "+a.Protocol+" "+a.Source, b.Group+" "+b.Protocol+" "+b.Source)
	})
	return out
}

func newSubject(history *traces.History, group string, k key, several bool, sel *Selection) *Subject {
	h := history
	s := &Subject{Group: group, Protocol: k.protocol, Source: k.source}
	spans := func(list []traces.Permission) (mine []span, others bool) {
		for _, p := range list {
			switch {
			case !sel.Managed(p.Description):
			case p.Protocol == k.protocol && p.Source == k.source:
				mine = append(mine, span{p.FromPort, p.ToPort})
			default:
				others = true
			}
		}
		slices.SortFunc(mine, compareSpans)
		return slices.Compact(mine), others
	}
	// A revoke by somebody who names no description is of a managed rule when a managed one has that identity.
	known := map[span]bool{}
	for i := range h.Operations {
		if op := &h.Operations[i]; op.Group == group {
			for _, list := range [][]traces.Permission{op.Permissions, op.View} {
				mine, _ := spans(list)
				for _, r := range mine {
					known[r] = true
				}
			}
		}
	}
	for _, ob := range h.Observations {
		if ob.Kind == traces.Wanted && ob.Group == group {
			mine, _ := spans(ob.Permissions)
			for _, r := range mine {
				known[r] = true
			}
		}
	}
	for r := range known {
		s.ports = append(s.ports, r.lo, r.hi)
	}
	slices.Sort(s.ports)
	s.ports = slices.Compact(s.ports)
	s.know(sel)
	kept := map[int]int{} // from the history's operations to the subject's
	unread := 0
	for i := range h.Operations {
		h := &h.Operations[i]
		op := operation{outcome: h.Outcome, err: h.Error, call: h.Call, ret: h.Return, stamp: h.Stamp, after: -1, caller: h.Process, id: h.ID, at: clock(h)}
		op.certain = certain(history, h.Sources, h.Process)
		if c := h.Caller; c != nil && c.UserAgent != "" {
			version, controller := property.FromUserAgent(c.UserAgent)
			op.foreign = !controller
			switch {
			case h.Group != group:
			case version.RevokesFirst():
				s.release = "v2.7.2"
			case version.AuthorizesFirst():
				s.release = "v3.4.0"
			}
		}
		switch h.Op {
		case traces.RegisterTargets, traces.DeregisterTargets:
			op.kind = register
			if h.Op == traces.DeregisterTargets {
				op.kind = deregister
			}
			if op.outcome != traces.Succeeded || len(h.Targets) == 0 || !slices.Contains(s.ports, h.Targets[0].Port) {
				continue
			}
			op.port = h.Targets[0].Port
			if !slices.Contains(s.watched, op.port) {
				s.watched = append(s.watched, op.port)
			}
		case traces.AuthorizeSecurityGroupIngress, traces.RevokeSecurityGroupIngress:
			if h.Group != group {
				continue
			}
			if h.Unclear {
				s.cannot("%s (%s): nobody knows what the call asked for", h.ID, op.at)
				continue
			}
			op.kind = authorize
			var others bool
			op.rules, others = spans(h.Permissions)
			if h.Op == traces.RevokeSecurityGroupIngress {
				op.kind = revoke
				for _, p := range h.Permissions {
					r := span{p.FromPort, p.ToPort}
					if p.Protocol == k.protocol && p.Source == k.source && p.Description == "" && known[r] && !slices.Contains(op.rules, r) {
						op.rules = append(op.rules, r)
					}
				}
				slices.SortFunc(op.rules, compareSpans)
			}
			if len(op.rules) == 0 {
				continue
			}
			if others && op.outcome == traces.Failed {
				op.err = "" // the others may be the reason
			}
		case traces.DescribeSecurityGroups:
			s.listed = s.listed || h.Group == ""
			if h.Group != group || h.Outcome == traces.Pending {
				continue
			}
			if h.View == nil && h.Outcome == traces.Succeeded {
				unread++
				continue
			}
			op.kind = describe
			op.rules, _ = spans(h.View)
			s.describes = s.describes || h.View != nil
		case traces.ModifySecurityGroupRules, traces.DeleteSecurityGroup:
			if h.Group == group && h.Outcome != traces.Failed {
				s.cannot("%s (%s): %s is no step of the specification", h.ID, op.at, h.Op)
			}
			continue
		default:
			continue
		}
		if op.foreign && op.kind == describe {
			continue
		}
		if op.foreign && op.kind == authorize && op.outcome != traces.Failed {
			s.cannot("%s (%s): somebody else than a controller grants managed rules, which is no step of the specification", h.ID, op.at)
		}
		kept[i] = len(s.ops)
		s.ops = append(s.ops, op)
		if !slices.Contains(s.callers, op.caller) && !op.foreign {
			s.callers = append(s.callers, op.caller)
		}
	}
	if !s.describes {
		s.ops = withoutDescribes(s.ops, kept)
	}
	for i, j := range kept {
		for a := h.Operations[i].After; a >= 0; a = h.Operations[a].After {
			if before, ok := kept[a]; ok {
				s.ops[j].after = before
				break
			}
		}
	}
	for _, i := range slices.Sorted(maps.Keys(kept)) {
		s.calls = append(s.calls, lineOf(h, kept[i], h.Operations[i].Process, h.Operations[i].Sources))
	}
	s.observe(h, spans)
	s.order()
	s.thin()
	s.live()
	if several {
		s.note("the group's rules have several sources or protocols; each is explained by itself")
	}
	if unread > 0 && !s.describes {
		s.note("%d describes were recorded without their answers, and are not used", unread)
	}
	s.begin(group, k, sel)
	if len(s.ports) == 0 {
		s.cannot("no rule has ports")
	}
	return s
}

// certain says whether a process that sources name is one running process for sure: in a controller's log, which would show
// its start, and in a history that names processes. CloudTrail knows sessions, and those outlive processes.
func certain(h *traces.History, sources []traces.Source, process string) bool {
	for _, source := range sources {
		switch h.Inputs[source.Input].Format {
		case traces.FormatControllerLog:
			return true
		case traces.FormatHistory:
			return process != "" && process != "controller"
		}
	}
	return false
}

// live finds between which operations a process cannot have started anew.
func (s *Subject) live() {
	s.lives = nil
	index := map[string]int{}
	for i, op := range s.ops {
		if !op.certain || op.foreign || op.optional() {
			continue
		}
		n, ok := index[op.caller]
		if !ok {
			n = len(s.lives)
			index[op.caller] = n
			s.lives = append(s.lives, [2]int{i, i})
		}
		s.lives[n][1] = i
	}
}

// withoutTargets is the subject without the calls on targets.
func (s *Subject) withoutTargets() *Subject {
	n := *s
	n.ops, n.watched = nil, nil
	place := make([]int, len(s.ops))
	for i, op := range s.ops {
		place[i] = -1
		if op.kind != register && op.kind != deregister {
			place[i] = len(n.ops)
			n.ops = append(n.ops, op)
		}
	}
	for i := range n.ops {
		a := n.ops[i].after
		for a >= 0 && place[a] < 0 {
			a = s.ops[a].after
		}
		if a >= 0 {
			a = place[a]
		}
		n.ops[i].after = a
	}
	n.live()
	return &n
}

// withoutDescribes drops describes of which no answer is known at all, as failed ones alone.
func withoutDescribes(ops []operation, kept map[int]int) []operation {
	var out []operation
	moved := make([]int, len(ops))
	for i, op := range ops {
		moved[i] = -1
		if op.kind != describe {
			moved[i] = len(out)
			out = append(out, op)
		}
	}
	for i, j := range kept {
		if kept[i] = moved[j]; moved[j] < 0 {
			delete(kept, i)
		}
	}
	return out
}

// order sorts by call and keeps what After refers to.
func (s *Subject) order() {
	index := make([]int, len(s.ops))
	for i := range index {
		index[i] = i
	}
	slices.SortStableFunc(index, func(a, b int) int {
		switch x, y := s.ops[a], s.ops[b]; {
		case x.call != y.call:
			if x.call < y.call {
				return -1
			}
			return 1
		case x.ret != y.ret:
			if x.ret < y.ret {
				return -1
			}
			return 1
		}
		return a - b
	})
	place := make([]int, len(index))
	sorted := make([]operation, len(index))
	for n, i := range index {
		place[i] = n
		sorted[n] = s.ops[i]
	}
	for i := range sorted {
		if sorted[i].after >= 0 {
			sorted[i].after = place[sorted[i].after]
		}
	}
	s.ops = sorted
}

func compareSpans(a, b span) int {
	if a.lo != b.lo {
		return int(a.lo - b.lo)
	}
	return int(a.hi - b.hi)
}

// begin finds what the group's rules can have been at the start: what a snapshot says, else what the first calls prove.
func (s *Subject) begin(group string, k key, sel *Selection) {
	for _, snap := range sel.Initial {
		if snap.Group != group {
			continue
		}
		var rules []span
		for _, r := range snap.Rules {
			if sel.Managed(r.Description) && r.Protocol == k.protocol && r.Source == k.source {
				rules = append(rules, span{r.FromPort, r.ToPort})
				s.ports = append(s.ports, r.FromPort, r.ToPort)
			}
		}
		slices.Sort(s.ports)
		s.ports = slices.Compact(s.ports)
		slices.SortFunc(rules, compareSpans)
		s.initial = [][]span{rules}
		s.note("at the start the group held %s, as the snapshot says", s.list(rules))
		return
	}
	var present, either []span
	for _, r := range s.mentioned() {
		switch s.first(r) {
		case proven:
			present = append(present, r)
		case open:
			either = append(either, r)
		}
	}
	if len(either) > 3 {
		either = either[:3]
	}
	for mask := range 1 << len(either) {
		rules := slices.Clone(present)
		for i, r := range either {
			if mask>>i&1 != 0 {
				rules = append(rules, r)
			}
		}
		slices.SortFunc(rules, compareSpans)
		s.initial = append(s.initial, rules)
	}
	s.note("at the start the group held %s, by the first call on each rule, and the controller was idle", s.list(s.initial[0]))
}

// mentioned lists the rules that calls and describes name.
func (s *Subject) mentioned() []span {
	var out []span
	for _, op := range s.ops {
		out = append(out, op.rules...)
	}
	slices.SortFunc(out, compareSpans)
	return slices.Compact(out)
}

type presence uint8

const (
	absent presence = iota
	proven
	open
)

// first says whether a rule was there at the start. Grants and removals of one rule take turns, so that their numbers tell
// where their order does not.
func (s *Subject) first(r span) presence {
	grants, removals := 0, 0
	var told, view presence = open, open
	var until traces.Instant
	for _, op := range s.ops {
		if op.kind == register || op.kind == deregister {
			continue
		}
		has := slices.Contains(op.rules, r)
		var says presence
		switch {
		case op.kind == describe && op.outcome == traces.Succeeded:
			if view == open {
				view = absent
				if has {
					view = proven
				}
			}
			continue
		case !has || op.outcome == traces.Pending:
			continue
		case op.kind == authorize && op.outcome == traces.Succeeded:
			grants++
			says = absent
		case op.kind == revoke && op.outcome == traces.Succeeded:
			removals++
			says = proven
		case op.kind == authorize && op.err == duplicate && len(op.rules) == 1:
			says = proven
		case op.kind == revoke && op.err == notFound && len(op.rules) == 1:
			says = absent
		default:
			continue
		}
		if told == open {
			told, until = says, op.ret
		} else if told != says && op.call <= until && grants == removals {
			return open
		}
	}
	switch {
	case grants > removals:
		return absent
	case removals > grants:
		return proven
	case told != open:
		return told
	case view == proven:
		return proven
	}
	return absent
}

func (s *Subject) cannot(format string, args ...any) {
	if s.Cannot == "" {
		s.Cannot = fmt.Sprintf(format, args...)
	}
}

func (s *Subject) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

func (s *Subject) ruleText(r span) string {
	return traces.Rule{Protocol: s.Protocol, FromPort: r.lo, ToPort: r.hi, Source: s.Source}.Ports()
}

func (s *Subject) list(rules []span) string {
	if len(rules) == 0 {
		return "no rule"
	}
	text := make([]string, len(rules))
	for i, r := range rules {
		text[i] = s.ruleText(r)
	}
	return strings.Join(text, ", ")
}

// text says what an operation was, without its time.
func (s *Subject) text(op *operation) string {
	switch op.kind {
	case register, deregister:
		return fmt.Sprintf("%s a target on port %d", kindWords[op.kind], op.port)
	case describe:
		if op.outcome == traces.Failed {
			return "describe: " + op.err
		}
		return "describe: " + s.list(op.rules)
	case runs:
		return "a controller leads, for it looks at the TGB " + op.tgb
	case elect:
		return "a controller is elected"
	case skip, reset:
		return fmt.Sprintf("%s the TGB %s of port %d", kindWords[op.kind], op.tgb, op.port)
	case want:
		return "wanted is " + s.list(op.rules)
	case hit:
		return "the cache is used"
	}
	return fmt.Sprintf("%s %s: %s", kindWords[op.kind], s.list(op.rules), resultText(op.outcome, op.err))
}

func resultText(o traces.Outcome, err string) string {
	switch {
	case o == traces.Succeeded:
		return "ok"
	case o == traces.Pending:
		return "no answer"
	case err == "":
		return "an error"
	}
	return strings.TrimPrefix(err, "InvalidPermission.")
}

// clock is the time of day at which an operation took effect as far as is known: the source's own stamp, else the call.
func clock(op *traces.Operation) string {
	if op.Stamp != 0 {
		return clockAt(op.Stamp)
	}
	return clockAt(op.Call)
}

func clockAt(at traces.Instant) string {
	switch at {
	case traces.Beginning, traces.Forever:
		return "at some time"
	}
	t := at.Time()
	if t.Nanosecond() == 0 {
		return t.Format("15:04:05")
	}
	return t.Format("15:04:05.000")
}
