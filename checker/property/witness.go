package property

import (
	"encoding/binary"
	"slices"

	"linearize.example/checker/orders"
	"linearize.example/traces"
)

// Witness lists the describes, as indices of Capture.Operations, that Order does not explain. All others can be put between two
// changes, where their intervals allow it and the rules are those that they show; where that is so for all of a part between
// two cuts, the calls of that part are linearizable. What Order does not explain some other order still may. isRead tells
// which operations show all rules. known is false where there is no order to look at.
func (r *Result) Witness(isRead func(op *traces.Operation) bool) (unexplained []int, known bool) {
	if r.Stuck != nil || r.Err != nil || r.problem.optional || len(r.Unclear) > 0 {
		return nil, false
	}
	ops := r.problem.c.Operations
	w := r.versions()
	bounds := w.bounds(ops, isRead)
	var open []placedRead // those that later reads may overlap
	floor, first := 0, 0
	places := map[int]int{} // reads that something waits for, or that wait
	for i := range ops {
		op := &ops[i]
		if !isRead(op) {
			continue
		}
		open = slices.DeleteFunc(open, func(o placedRead) bool {
			if o.ret < op.Call {
				floor = max(floor, o.place)
			}
			return o.ret < op.Call
		})
		for w.returns[first] < op.Call {
			first++
		}
		b, bounded := bounds[i]
		k := max(first, floor)
		if bounded {
			k = max(k, b.lowest)
			if b.read >= 0 {
				k = max(k, places[b.read])
			}
		}
		view := w.find(r.problem, op.View)
		for k < len(w.at) && w.calls[k] <= op.Return && w.at[k] != view {
			k++
		}
		if k == len(w.at) || w.calls[k] > op.Return || bounded && (k > b.highest || b.read > i) {
			unexplained = append(unexplained, i)
			continue
		}
		if bounded {
			places[i] = k
		}
		open = append(open, placedRead{k, op.Return})
	}
	return unexplained, true
}

type placedRead struct {
	place int
	ret   traces.Instant
}

// versions are the rules along an order. Place k is behind the first k changes.
type versions struct {
	at      []int32          // place → the rules there, numbered
	calls   []traces.Instant // place → the latest Call of the changes before it
	returns []traces.Instant // place → the earliest Return of the changes behind it
	index   []int32          // operation of the capture → its index among the changes, or -1
	known   map[string]int32
	key     []byte
	views   map[viewKey]int32
}

// viewKey identifies a view without comparing it: readers of captures share equal views.
type viewKey struct {
	first *traces.Permission
	n     int
}

func (r *Result) versions() *versions {
	p := r.problem
	w := &versions{known: map[string]int32{}, views: map[viewKey]int32{}, index: make([]int32, len(p.c.Operations))}
	for i := range w.index {
		w.index[i] = -1
	}
	call := traces.Beginning
	add := func(id int32) {
		w.at = append(w.at, id)
		w.calls = append(w.calls, call)
	}
	n := len(r.Order) + 1
	w.at, w.calls = make([]int32, 0, n), make([]traces.Instant, 0, n)
	if r.start == nil {
		w.at, w.calls, w.returns = []int32{0}, []traces.Instant{call}, []traces.Instant{traces.Forever}
		w.number(p, make(orders.State, p.u.words))
		return w
	}
	add(w.number(p, r.start))
	r.Replay(func(k int, before, after orders.State) {
		i := r.Order[k].Op
		if i < 0 || p.effects[r.Order[k].internal].kind == turn {
			return
		}
		w.index[i] = int32(len(w.at) - 1)
		call = max(call, p.c.Operations[i].Call)
		id := w.at[len(w.at)-1]
		if !slices.Equal(before, after) {
			id = w.number(p, after)
		}
		add(id)
	})
	w.returns = make([]traces.Instant, len(w.at))
	for k := range w.returns {
		w.returns[k] = traces.Forever
	}
	for i, k := range w.index {
		if k >= 0 {
			w.returns[k] = p.c.Operations[i].Return
		}
	}
	for k := len(w.returns) - 2; k >= 0; k-- {
		w.returns[k] = min(w.returns[k], w.returns[k+1])
	}
	return w
}

// number numbers the rules of a state, whatever their descriptions.
func (w *versions) number(p *problem, s orders.State) int32 {
	w.key = w.key[:0]
	for i := range p.u.words {
		w.key = binary.LittleEndian.AppendUint64(w.key, s[i]&p.u.present[i])
	}
	id, known := w.known[string(w.key)]
	if !known {
		id = w.class(p, s)
		w.known[string(w.key)] = id
	}
	return id
}

// class numbers the rules of a state, each by the fact that it is managed, since describes are compared without
// descriptions.
func (w *versions) class(p *problem, s orders.State) int32 {
	plain := make(orders.State, p.u.words)
	for f := range int32(len(p.u.facts)) {
		if p.u.present.Has(f) && s.Has(f) {
			plain.Set(p.u.managedOf(f))
		}
	}
	return w.plain(plain)
}

func (w *versions) plain(s orders.State) int32 {
	key := []byte{'='}
	for _, word := range s {
		key = binary.LittleEndian.AppendUint64(key, word)
	}
	id, known := w.known[string(key)]
	if !known {
		id = int32(len(w.known))
		w.known[string(key)] = id
	}
	return id
}

// find returns the number of the rules that a describe shows.
func (w *versions) find(p *problem, view []traces.Permission) int32 {
	key := viewKey{n: len(view)}
	if len(view) > 0 {
		key.first = &view[0]
	}
	if id, known := w.views[key]; known {
		return id
	}
	s := make(orders.State, p.u.words)
	for i := range view {
		s.Set(p.u.rules[view[i].Rule].managed)
	}
	id := w.plain(s)
	w.views[key] = id
	return id
}

// bound is where a read that is ordered with others by its source can be.
type bound struct{ lowest, highest, read int }

// bounds collects the reads that wait for an operation, or that one waits for.
func (w *versions) bounds(ops []traces.Operation, isRead func(op *traces.Operation) bool) map[int]bound {
	bounds := map[int]bound{}
	of := func(i int) bound {
		if b, known := bounds[i]; known {
			return b
		}
		return bound{0, len(w.at), -1}
	}
	for i := range ops {
		a := ops[i].After
		for a >= 0 && w.index[a] < 0 && !isRead(&ops[a]) {
			a = ops[a].After
		}
		switch {
		case a < 0 || !isRead(&ops[i]) && w.index[i] < 0:
		case isRead(&ops[i]) && isRead(&ops[a]):
			b := of(i)
			b.read = a
			bounds[i], bounds[a] = b, of(a)
		case isRead(&ops[i]):
			b := of(i)
			b.lowest = max(b.lowest, int(w.index[a])+1)
			bounds[i] = b
		case isRead(&ops[a]):
			b := of(a)
			b.highest = min(b.highest, int(w.index[i]))
			bounds[a] = b
		}
	}
	return bounds
}
