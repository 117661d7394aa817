package traces

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The formats of inputs that Merge tells apart, from the most to the least precise clock.
const (
	FormatHistory       = "history"
	FormatControllerLog = "controller-log"
	FormatCloudTrail    = "cloudtrail"
)

// Merge returns a new history in which one call seen by several sources is one operation, ordered by Call. Its interval
// is the intersection of the sources' intervals, its result what any of them knows. Two records of sources of
// different kinds are of one call when they name the same call, group, rules or targets, their results agree, and their
// intervals meet, by at most tolerance apart. Records of one kind are of one call only where they are equal to the letter, as
// those of a file that was given twice, where one recording has them under one number, the first of them without an answer, and
// where two recordings, of the client and of the endpoint say, have one request id for them. Processes that share a call become one process. The new history shares with h what
// did not have to change.
func Merge(h *History, tolerance time.Duration) *History {
	if oneSource(h) {
		return sortedCopy(h, tolerance)
	}
	m := merger{h: h, tolerance: tolerance, to: make([]int, len(h.Operations)), processes: map[string]string{}}
	m.out.Inputs = slices.Clone(h.Inputs)
	m.out.Header = h.Header
	m.completed()
	m.identified()
	for _, class := range []int{0, 1, 2} {
		m.add(class)
	}
	m.link()
	m.nameProcesses()
	m.observations()
	return &m.out
}

// oneSource reports whether no two records can be of one call: those of one input, and of the parts of one recording that were
// read in their order, of which ReadHistory has completed what a later part completes.
func oneSource(h *History) bool {
	if len(h.Inputs) <= 1 {
		return true
	}
	used := make([]bool, len(h.Inputs))
	for i := range h.Operations {
		if len(h.Operations[i].Sources) == 0 {
			return false
		}
		used[h.Operations[i].Sources[0].Input] = true
	}
	var last *Input
	for i := range h.Inputs {
		in := &h.Inputs[i]
		if !used[i] {
			continue
		}
		if last != nil && (in.Recording == "" || in.Recording != last.Recording || in.Part <= last.Part) {
			return false
		}
		last = in
	}
	return true
}

type merger struct {
	h         *History
	out       History
	tolerance time.Duration
	to        []int             // index in h.Operations → index in out.Operations
	same      map[int]int       // index in h.Operations of another history's record → that of the first record of the call
	processes map[string]string // union-find: process → parent
}

// class ranks an operation's source: history, controller log, CloudTrail.
func (m *merger) class(op *Operation) int {
	if len(op.Sources) == 0 {
		return 0
	}
	format := m.h.Inputs[op.Sources[0].Input].Format
	switch {
	case format == FormatHistory:
		return 0
	case format == FormatControllerLog:
		return 1
	}
	return 2
}

// add brings in all operations of a class: those that an operation of an earlier class already stands for are joined
// to it, the others are appended.
func (m *merger) add(class int) {
	known := map[string][]int{} // key → operations in out, by Call
	for i := range m.out.Operations {
		k := key(&m.out.Operations[i])
		known[k] = append(known[k], i)
	}
	mine := map[string][]int{}
	var keys []string
	copies := map[string]int{}
	for i := range m.h.Operations {
		op := &m.h.Operations[i]
		if m.class(op) != class || m.to[i] < 0 {
			continue
		}
		if class != 2 && len(op.Sources) > 0 {
			// A file given twice: the same line with the same content in another input.
			letter := key(op) + "|" + op.Sources[0].Position + "|" + op.Process + "|" + op.Call.String() + "|" + op.Return.String()
			if first, seen := copies[letter]; seen && m.h.Operations[first].Sources[0].Input != op.Sources[0].Input {
				m.to[i] = -1 - first
				in := &m.out.Inputs[op.Sources[0].Input]
				in.Used--
				in.Duplicates++
				continue
			}
			copies[letter] = i
		}
		k := key(op)
		if mine[k] == nil {
			keys = append(keys, k)
		}
		mine[k] = append(mine[k], i)
	}
	byCall := func(ops []Operation) func(a, b int) int {
		return func(a, b int) int { return cmp.Compare(ops[a].Call, ops[b].Call) }
	}
	joined, taken := map[int]bool{}, map[int]bool{}
	pair := func(known, mine []int) {
		slices.SortStableFunc(known, byCall(m.out.Operations))
		slices.SortStableFunc(mine, byCall(m.h.Operations))
		for _, fits := range []func(base, op *Operation) bool{sameIdentifier, m.answered, agree} {
			for _, tolerance := range []time.Duration{0, m.tolerance} {
				m.match(known, mine, taken, joined, tolerance, fits)
			}
		}
	}
	for _, k := range keys {
		pair(known[k], mine[k])
	}
	// A record that lacks what was asked for is of a call that is left over.
	theirs := byName(m.out.Operations, func(i int) bool { return !taken[i] })
	ours := byName(m.h.Operations, func(i int) bool { return m.to[i] >= 0 && !joined[i] && m.class(&m.h.Operations[i]) == class })
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		pair(theirs[name].clear, ours[name].unclear)
		pair(theirs[name].unclear, ours[name].clear)
	}
	for i := range m.h.Operations {
		op := &m.h.Operations[i]
		if m.class(op) != class || joined[i] || m.to[i] < 0 {
			continue
		}
		if first, ok := m.same[i]; ok && m.to[first] >= 0 {
			m.to[i] = m.to[first]
			m.join(m.to[i], op)
			continue
		}
		m.to[i] = len(m.out.Operations)
		m.out.Operations = append(m.out.Operations, *op)
		if class == 2 && op.Call != Beginning {
			m.out.Operations[m.to[i]].Stamp = op.Call.Add(m.tolerance)
		}
	}
	for i := range m.to {
		if m.to[i] < 0 {
			m.to[i] = m.to[-1-m.to[i]]
		}
	}
}

// namesakes are the calls of one name on one group or target group: those that tell what was asked for, and those that do not.
type namesakes struct{ clear, unclear []int }

// byName sorts the operations that are left over by name, group and target group.
func byName(ops []Operation, left func(int) bool) map[string]namesakes {
	names := map[string]namesakes{}
	for i := range ops {
		if !left(i) {
			continue
		}
		name := ops[i].Op + "|" + ops[i].Group + "|" + ops[i].TargetGroup
		list := names[name]
		if ops[i].Unclear {
			list.unclear = append(list.unclear, i)
		} else {
			list.clear = append(list.clear, i)
		}
		names[name] = list
	}
	return names
}

// completed marks the records without an answer that another part of their recording completes, where the parts were not read in
// their order.
func (m *merger) completed() {
	type name struct{ recording, id string }
	named := func(op *Operation) name {
		if len(op.Sources) == 0 || m.h.Inputs[op.Sources[0].Input].Recording == "" {
			return name{}
		}
		return name{m.h.Inputs[op.Sources[0].Input].Recording, op.ID}
	}
	whole := map[name]int{}
	for i := range m.h.Operations {
		if op := &m.h.Operations[i]; op.open() && named(op) != (name{}) {
			whole[named(op)] = -1
		}
	}
	if len(whole) == 0 {
		return
	}
	for i := range m.h.Operations {
		op := &m.h.Operations[i]
		if first, ok := whole[named(op)]; ok && first < 0 && !op.open() {
			whole[named(op)] = i
		}
	}
	for i := range m.h.Operations {
		op := &m.h.Operations[i]
		if !op.open() {
			continue
		}
		if w, ok := whole[named(op)]; ok && w >= 0 && sameRecord(op, &m.h.Operations[w]) {
			m.to[i] = -1 - w
			in := &m.out.Inputs[op.Sources[0].Input]
			in.Records--
			in.Used--
		}
	}
}

// identified finds the records of different histories that have one request id: those of the client and of the endpoint.
func (m *merger) identified() {
	type call struct{ request, op, group, targets string }
	firsts := map[call]int{}
	m.same = map[int]int{}
	for i := range m.h.Operations {
		op := &m.h.Operations[i]
		if op.RequestID == "" || m.class(op) != 0 || len(op.Sources) == 0 {
			continue
		}
		c := call{op.RequestID, op.Op, op.Group, op.TargetGroup}
		first, seen := firsts[c]
		if !seen {
			firsts[c] = i
			continue
		}
		a, b := op.Sources[0].Input, m.h.Operations[first].Sources[0].Input
		if r := m.h.Inputs[a].Recording; a != b && (r == "" || r != m.h.Inputs[b].Recording) {
			m.same[i] = first
		}
	}
}

// sameIdentifier reports whether an identifier shows that two records are of the same call.
func sameIdentifier(a, b *Operation) bool {
	return (a.EventID != "" && a.EventID == b.EventID || a.RequestID != "" && a.RequestID == b.RequestID) && agree(a, b)
}

// answered reports whether a history's record and another one tell of the same answer. A client's history has each attempt of a
// call: what a log or CloudTrail says was answered is the attempt that was answered, and not the one before that timed out.
func (m *merger) answered(base, op *Operation) bool {
	return m.class(base) == 0 && base.Outcome != Pending && op.Outcome != Pending && agree(base, op)
}

// match joins each of mine to the first of known, in the order of their calls, that fits and is not taken.
func (m *merger) match(known, mine []int, taken, joined map[int]bool, tolerance time.Duration, fits func(base, op *Operation) bool) {
	first := 0
	for _, i := range mine {
		if joined[i] {
			continue
		}
		op := &m.h.Operations[i]
		for first < len(known) && (taken[known[first]] || m.out.Operations[known[first]].Return.Add(tolerance) < op.Call) {
			first++
		}
		for n := first; n < len(known); n++ {
			base := &m.out.Operations[known[n]]
			if base.Call > op.Return.Add(tolerance) {
				break
			}
			if taken[known[n]] || base.Return.Add(tolerance) < op.Call || !fits(base, op) {
				continue
			}
			taken[known[n]], joined[i] = true, true
			m.to[i] = known[n]
			m.join(known[n], op)
			break
		}
	}
}

// key is what two records of one call have in common.
func key(op *Operation) string {
	var b strings.Builder
	b.WriteString(op.Op)
	b.WriteByte('|')
	b.WriteString(op.Group)
	b.WriteByte('|')
	b.WriteString(op.TargetGroup)
	parts := make([]string, 0, len(op.Permissions)+len(op.Targets)+len(op.RuleIDs))
	for _, p := range op.Permissions {
		parts = append(parts, p.Rule.String())
	}
	for _, t := range op.Targets {
		parts = append(parts, t.ID+":"+strconv.Itoa(int(t.Port)))
	}
	parts = append(parts, op.RuleIDs...)
	slices.Sort(parts)
	for _, p := range slices.Compact(parts) {
		b.WriteByte('|')
		b.WriteString(p)
	}
	return b.String()
}

// agree reports whether two records can be of the same call, by their identifiers and results. A client that saw an
// error of its own (a time-out, say) does not contradict AWS's record of success.
func agree(a, b *Operation) bool {
	switch {
	case a.EventID != "" && b.EventID != "":
		return a.EventID == b.EventID
	case a.RequestID != "" && b.RequestID != "":
		return a.RequestID == b.RequestID
	case a.Outcome == Pending || b.Outcome == Pending:
		return true
	case a.Outcome == Failed && b.Outcome == Failed:
		return a.Error == b.Error || !isAWSCode(a.Error) || !isAWSCode(b.Error)
	case a.Outcome == Failed:
		return !isAWSCode(a.Error)
	case b.Outcome == Failed:
		return !isAWSCode(b.Error)
	}
	return true
}

// isAWSCode reports whether the text looks like an error code of AWS rather than a client's own words.
func isAWSCode(code string) bool {
	return code != "" && code != "unknown" && !strings.ContainsAny(code, " :")
}

// join adds what op knows to the operation at index i.
func (m *merger) join(i int, op *Operation) {
	base := &m.out.Operations[i]
	if call, ret := max(base.Call, op.Call), min(base.Return, op.Return); call <= ret {
		base.Call, base.Return = call, ret
	}
	if base.Outcome == Pending || base.Outcome == Failed && !isAWSCode(base.Error) && op.Outcome != Pending {
		base.Outcome, base.Error = op.Outcome, op.Error
	}
	if m.class(op) == 2 && m.class(base) == 1 {
		base.Stamp = op.Call.Add(m.tolerance)
	}
	base.EventID = cmp.Or(base.EventID, op.EventID)
	base.RequestID = cmp.Or(base.RequestID, op.RequestID)
	if base.Caller == nil || base.Caller.Role == "" && op.Caller != nil {
		base.Caller = cmp.Or(op.Caller, base.Caller)
	}
	if base.Unclear && !op.Unclear {
		base.Unclear, base.Permissions, base.Updates = false, op.Permissions, op.Updates
		base.Targets, base.RuleIDs = op.Targets, op.RuleIDs
	}
	if base.View == nil {
		base.View = op.View
	}
	if base.Granted == nil {
		base.Granted = op.Granted
	}
	if base.Revoked == nil {
		base.Revoked = op.Revoked
	}
	if base.Unknown == nil {
		base.Unknown = op.Unknown
	}
	base.Sources = append(slices.Clip(base.Sources), op.Sources...)
	if a, b := m.root(base.Process), m.root(op.Process); a != b && a != "" && b != "" {
		m.processes[b] = a
	} else if a == "" {
		base.Process = op.Process
	}
}

func (m *merger) root(p string) string {
	for m.processes[p] != "" {
		p = m.processes[p]
	}
	return p
}

// inOrder reports whether the operations need no change, so that a long history need not be copied.
func (m *merger) inOrder() bool {
	ops := m.h.Operations
	for i := range ops {
		op := &ops[i]
		if i > 0 && cmp.Or(cmp.Compare(ops[i-1].Call, op.Call), cmp.Compare(ops[i-1].Return, op.Return)) > 0 ||
			op.After >= i || op.After >= 0 && ops[op.After].Call > op.Return || m.class(op) == 2 {
			return false
		}
	}
	return true
}

// sortedCopy is Merge for a single input, of which no two records can be of one call.
func sortedCopy(h *History, tolerance time.Duration) *History {
	m := merger{h: h, processes: map[string]string{}}
	if m.inOrder() {
		m.out = History{Operations: h.Operations, Inputs: slices.Clone(h.Inputs), Header: h.Header}
		m.observations()
		return &m.out
	}
	m.out = History{Operations: slices.Clone(h.Operations), Inputs: slices.Clone(h.Inputs), Header: h.Header}
	m.to = make([]int, len(h.Operations))
	for i := range m.to {
		m.to[i] = i
		if op := &m.out.Operations[i]; m.class(op) == 2 && op.Call != Beginning {
			op.Stamp = op.Call.Add(tolerance)
		}
	}
	m.link()
	m.observations()
	return &m.out
}

// link sorts the operations by Call and carries over what the sources say of their order.
func (m *merger) link() {
	ops := m.out.Operations
	after := make([]int, len(ops))
	for i := range after {
		after[i] = -1
	}
	for i := range m.h.Operations {
		if a := m.h.Operations[i].After; a >= 0 && after[m.to[i]] < 0 && m.to[a] != m.to[i] {
			after[m.to[i]] = m.to[a]
		}
	}
	order := make([]int, len(ops))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(ops[a].Call, ops[b].Call), cmp.Compare(ops[a].Return, ops[b].Return))
	})
	place := make([]int, len(ops))
	for to, from := range order {
		place[from] = to
	}
	sorted := make([]Operation, len(ops))
	for to, from := range order {
		sorted[to] = ops[from]
		sorted[to].After = -1
		if a := after[from]; a >= 0 && ops[a].Call <= ops[from].Return {
			sorted[to].After = place[a]
		}
	}
	m.out.Operations = sorted
	var dropped Input
	breakCycles(sorted, &dropped)
	if len(m.out.Inputs) > 0 {
		m.out.Inputs[0].Notes = append(slices.Clip(m.out.Inputs[0].Notes), dropped.Notes...)
	}
}

func (m *merger) nameProcesses() {
	for i := range m.out.Operations {
		m.out.Operations[i].Process = m.root(m.out.Operations[i].Process)
	}
}

func (m *merger) observations() {
	seen := map[string]bool{}
	for _, ob := range m.h.Observations {
		if len(ob.Sources) > 0 {
			s := ob.Sources[0]
			letter := strings.Join([]string{s.Position, string(ob.Kind), ob.Process, ob.TGB, ob.Text, ob.Earliest.String()}, "|")
			other := letter + "|" + strconv.Itoa(s.Input)
			if seen[letter] && !seen[other] {
				continue // the same line of a file that was given twice
			}
			seen[letter], seen[other] = true, true
		}
		ob.Process = m.root(ob.Process)
		m.out.Observations = append(m.out.Observations, ob)
	}
	slices.SortStableFunc(m.out.Observations, func(a, b Observation) int { return cmp.Compare(a.Earliest, b.Earliest) })
}
