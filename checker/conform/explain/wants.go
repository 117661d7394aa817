package explain

import (
	"linearize.example/checker/conform"
	"linearize.example/checker/conform/engine"
)

// wants says for each binding what a process may have computed of it: any of these, independently of the other bindings. So
// one node of the search stands for all states that differ in this alone. Of wants that hold mayUnknown anywhere only those
// states are meant in which one binding at least is unknown.
//
// The specification looks at what was computed in two ways: from the lowest to the highest wanted port is the rule that is
// wanted, and while one binding is unknown nothing is revoked. In all states that a node stands for these two are equal: the
// ends of the wanted rule are bindings that want their port for sure, and bindings outside of it do not. So all of them have
// the same steps until another binding is computed, where settled tells apart what differs from then on.
type wants uint64

const (
	mayUnknown wants = 1 << iota
	mayNone
	mayPort
	bitsPerBinding = iota + 1

	anyUnknown wants = 0x1111111111111111
)

func may(v engine.Atom) wants {
	switch v {
	case conform.Port:
		return mayPort
	case conform.None:
		return mayNone
	}
	return mayUnknown
}

// of returns what a binding, counted from 1, may want.
func (w wants) of(t int) wants {
	return w >> (bitsPerBinding * (t - 1)) & (mayUnknown | mayNone | mayPort)
}

// with sets what a binding may want.
func (w wants) with(t int, v wants) wants {
	at := bitsPerBinding * (t - 1)
	return w&^(0xf<<at) | v<<at
}

func (w wants) in(all wants) bool { return w&^all == 0 }

// starting says whether some binding has not been computed.
func (w wants) starting() bool { return w&anyUnknown != 0 }

// known returns the states in which every binding has been computed; ok says whether there are any, among n bindings.
func (w wants) known(n int) (known wants, ok bool) {
	known = w &^ anyUnknown
	for t := 1; t <= n; t++ {
		if known.of(t) == 0 {
			return 0, false
		}
	}
	return known, true
}

// ends returns the bindings whose ports are the ends of the wanted rule; 0 and 0 when none is wanted.
func (w wants) ends(n int) (lo, hi int) {
	for t := 1; t <= n; t++ {
		if w.of(t) == mayPort {
			if lo == 0 {
				lo = t
			}
			hi = t
		}
	}
	return lo, hi
}

// typical returns one state of memory with the same wanted rule, and the same answer to whether all is known. It is the same for
// all wants of which this is true.
func (w wants) typical(n int) (computed [engine.FunCap]engine.Atom) {
	rest := engine.Atom(conform.None)
	if w.starting() {
		rest = conform.Unknown
	}
	lo, hi := w.ends(n)
	for t := 1; t <= n; t++ {
		computed[t-1] = rest
		if t == lo || t == hi {
			computed[t-1] = conform.Port
		}
	}
	return computed
}

// settled lists what n bindings may want after one of them was computed: together the results are all states that follow, and
// each has one wanted rule.
func (w wants) settled(n, t int, v engine.Atom) []wants {
	after := w.with(t, may(v))
	var list []wants
	if !w.starting() {
		list = append(list, after)
	} else {
		if after.starting() {
			list = append(list, after)
		}
		if known, ok := after.known(n); ok && w.of(t)&mayUnknown != 0 { // this was the last one
			list = append(list, known)
		}
	}
	lo, hi := w.ends(n)
	if v == conform.Port || t != lo && t != hi || lo == hi {
		return list
	}
	// An end is gone. The next binding inside that wants its port is the new one.
	from := list
	list = nil
	for _, w := range from {
		step := 1
		if t == hi {
			step = -1
		}
		for u := t + step; ; u += step {
			if w.of(u)&mayPort != 0 {
				list = append(list, w.with(u, mayPort))
			}
			if w = w.with(u, w.of(u)&^mayPort); w.of(u) == 0 {
				break // u wants its port for sure; so does the other end
			}
		}
	}
	return list
}
