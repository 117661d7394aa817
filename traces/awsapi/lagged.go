package awsapi

import "linearize.example/traces"

// lagged is a map whose writers see the last change, and whose readers see a change only from an instant on that each
// change has of its own. Of the changes of one key that a reader may see, the one made last counts; so a change may
// become visible before an earlier one of another key, but is never undone by an earlier one of its own.
type lagged[K comparable, V any] struct {
	changes map[K][]change[V]
}

type change[V any] struct {
	visible traces.Instant
	value   V
	present bool
}

// set changes a key for writers at once, for readers from visible on. Readers come at now or later, so that older changes
// which none of them can see are forgotten.
func (l *lagged[K, V]) set(k K, value V, now, visible traces.Instant) {
	l.add(k, change[V]{visible, value, true}, now)
}

// remove takes a key away, with the same instants.
func (l *lagged[K, V]) remove(k K, now, visible traces.Instant) {
	if _, known := l.changes[k]; known {
		l.add(k, change[V]{visible: visible}, now)
	}
}

// add keeps the changes of a key in the order in which they were made and become visible: one that would become visible
// only when a later one is visible is never seen. Of those that are visible now the last one is enough.
func (l *lagged[K, V]) add(k K, c change[V], now traces.Instant) {
	if l.changes == nil {
		l.changes = map[K][]change[V]{}
	}
	all := l.changes[k]
	for len(all) > 0 && all[len(all)-1].visible >= c.visible {
		all = all[:len(all)-1]
	}
	all = append(all, c)
	for len(all) > 1 && all[1].visible <= now {
		all = all[1:]
	}
	if len(all) == 1 && !c.present && c.visible <= now {
		delete(l.changes, k)
		return
	}
	l.changes[k] = all
}

// current returns what writers see.
func (l *lagged[K, V]) current(k K) (value V, present bool) {
	all := l.changes[k]
	if len(all) == 0 {
		return value, false
	}
	last := &all[len(all)-1]
	return last.value, last.present
}

// at returns what a reader at an instant sees.
func (l *lagged[K, V]) at(k K, at traces.Instant) (value V, present bool) {
	all := l.changes[k]
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].visible <= at {
			return all[i].value, all[i].present
		}
	}
	return value, false
}

// each calls f for all keys that a reader at an instant sees, in no order; traces.Forever stands for writers. Keys that no
// reader at that instant or later can see are forgotten.
func (l *lagged[K, V]) each(at traces.Instant, f func(K, V)) {
	for k, all := range l.changes {
		if last := &all[len(all)-1]; !last.present && last.visible <= at && at != traces.Forever {
			delete(l.changes, k)
			continue
		}
		if value, present := l.at(k, at); present {
			f(k, value)
		}
	}
}
