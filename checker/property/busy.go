package property

import (
	"slices"

	"linearize.example/checker/orders"
	"linearize.example/traces"
)

// busy is how many operations are open at once before it is worth while to ask first whether there is any order at all.
const busy = 6

// isBusy reports whether so many operations are open at once.
func (p *problem) isBusy() bool {
	returns := make([]traces.Instant, len(p.ops))
	for i := range p.ops {
		returns[i] = p.ops[i].Return
	}
	slices.Sort(returns)
	over := 0
	for i := range p.ops {
		for returns[over] < p.ops[i].Call {
			over++
		}
		if i+1-over >= busy {
			return true
		}
	}
	return false
}

// rulesAlone gives the problem to package orders without the needs, for the question whether there is any order: operations
// on different rules are not tried in both orders.
func (p *problem) rulesAlone() *orders.Problem {
	q := p.orders()
	q.Step = func(op int, from, to orders.State) bool {
		if !p.effects[op].apply(p.u, p.opt.Lenient, from, to) {
			return false
		}
		for i, mask := range p.u.present {
			to[i] &= mask
		}
		return true
	}
	type mask struct{ all, changed orders.State }
	masks := map[*effect]mask{}
	touched := make([]mask, len(p.ops))
	for i := range p.ops {
		e := p.effects[i]
		m, known := masks[e]
		if !known {
			m = mask{make(orders.State, p.u.words), make(orders.State, p.u.words)}
			if e.kind != none && e.kind != turn {
				p.references(i, func(f int32) { m.all.Set(f) })
			}
			if e.result == changed {
				m.changed = m.all
			}
			masks[e] = m
		}
		touched[i] = m
	}
	q.Touches = func(op int) (all, changed orders.State) { return touched[op].all, touched[op].changed }
	q.Initial = make([]orders.State, len(p.initial))
	for i, s := range p.initial {
		q.Initial[i] = slices.Clone(s)
		for w, mask := range p.u.present {
			q.Initial[i][w] &= mask
		}
	}
	return q
}

// orders gives the problem to package orders.
func (p *problem) orders() *orders.Problem {
	return &orders.Problem{
		Operations: p.ops,
		Words:      p.u.words,
		Initial:    p.initial,
		Step: func(op int, from, to orders.State) bool {
			return p.effects[op].apply(p.u, p.opt.Lenient, from, to)
		},
	}
}
