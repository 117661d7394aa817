package traces

import "slices"

// Within returns the operations that may have been open between two instants: those that had not returned before since, and
// were called by until.
func Within(ops []Operation, since, until Instant) []Operation {
	if since == Beginning && until == Forever {
		return ops
	}
	var kept []int
	for i, op := range ops {
		if op.Return >= since && op.Call <= until {
			kept = append(kept, i)
		}
	}
	return Pick(ops, kept)
}

// Pick returns copies of the operations with the given indices, in ascending order, and with their order among themselves.
func Pick(ops []Operation, kept []int) []Operation {
	picked := make([]Operation, len(kept))
	for n, i := range kept {
		picked[n] = ops[i]
		picked[n].After = nearest(ops, kept, i)
	}
	return picked
}

// nearest is the place, in a list of kept operations in ascending order, of the nearest one that operation i comes after;
// those that were not kept pass on the order that they stand for. It is -1 where there is none.
func nearest(ops []Operation, kept []int, i int) int {
	for a := ops[i].After; a >= 0; a = ops[a].After {
		if n, found := slices.BinarySearch(kept, a); found {
			return n
		}
	}
	return -1
}
