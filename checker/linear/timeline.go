package linear

import (
	"fmt"

	"linearize.example/traces"
)

// timeline is when operations may have taken effect: their intervals, narrowed by the After edges. An operation is
// sent after its predecessor was, and its predecessor had finished when it returned.
type timeline struct {
	call, ret []traces.Instant
	order     []int // the operations, each after its predecessor
	depth     []int // the number of operations that come before it by After edges alone
}

// newTimeline fails where no order is possible: for edges that form a circle, and intervals that end before they
// begin.
func newTimeline(ops []traces.Operation) (*timeline, error) {
	n := len(ops)
	t := &timeline{make([]traces.Instant, n), make([]traces.Instant, n), make([]int, 0, n), make([]int, n)}
	const onPath = -1 // depth 0: not yet placed; placed ones count from 1 until the end
	var path []int
	for i := range ops {
		for j := i; t.depth[j] == 0; j = ops[j].After {
			t.depth[j] = onPath
			path = append(path, j)
			a := ops[j].After
			if a < 0 {
				break
			}
			if a >= n {
				return nil, fmt.Errorf("%s comes after operation %d of %d", name(&ops[j]), a, n)
			}
			if t.depth[a] == onPath {
				return nil, fmt.Errorf("%s and %s are each said to come after the other", name(&ops[a]), name(&ops[j]))
			}
		}
		for len(path) > 0 {
			j := path[len(path)-1]
			path = path[:len(path)-1]
			t.call[j], t.ret[j], t.depth[j] = ops[j].Call, ops[j].Return, 1
			if a := ops[j].After; a >= 0 {
				t.call[j] = max(t.call[j], t.call[a])
				t.depth[j] = t.depth[a] + 1
			}
			t.order = append(t.order, j)
		}
	}
	for k := n - 1; k >= 0; k-- {
		j := t.order[k]
		t.depth[j]--
		if a := ops[j].After; a >= 0 {
			t.ret[a] = min(t.ret[a], t.ret[j])
		}
	}
	for i := range ops {
		if t.call[i] > t.ret[i] {
			return nil, fmt.Errorf("%s returned at %s, before it can have been sent at %s", name(&ops[i]), t.ret[i], t.call[i])
		}
	}
	return t, nil
}

// nearest gives for each operation the closest one of those kept that comes before it by After edges, or -1.
func (t *timeline) nearest(ops []traces.Operation, kept []bool) []int {
	before := make([]int, len(ops))
	for _, i := range t.order {
		before[i] = -1
		if a := ops[i].After; a >= 0 {
			before[i] = a
			if !kept[a] {
				before[i] = before[a]
			}
		}
	}
	return before
}

// name is how a message names an operation.
func name(op *traces.Operation) string {
	if op.ID != "" {
		return op.ID
	}
	return op.Op + " at " + op.Call.String()
}
