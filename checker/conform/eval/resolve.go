package eval

import "linearize.example/checker/conform/tla"

// resolve reports the first name of a module that nothing declares, or that is applied to a wrong number of arguments.
func resolve(m *tla.Module) error {
	r := &resolver{arity: map[string]int{}}
	for _, d := range m.Constants {
		r.arity[d.Name] = 0
	}
	for _, d := range m.Variables {
		r.arity[d.Name] = 0
	}
	for _, d := range m.Defs {
		if !d.Recursive { // a recursive operator may be used before its definition, others may not
			continue
		}
		r.arity[d.Name] = len(d.Params)
	}
	for _, d := range m.Defs {
		if d.Bounds != nil {
			r.arity[d.Name] = 0
		}
		r.def(d)
		r.arity[d.Name] = len(d.Params)
	}
	for _, a := range m.Assumes {
		r.expr(a)
	}
	return r.err
}

type resolver struct {
	arity map[string]int
	err   error
}

func (r *resolver) use(e tla.Expr, name string, args int) {
	n, ok := r.arity[name]
	if !ok {
		n, ok = tla.Standard[name]
	}
	switch {
	case r.err != nil:
	case !ok:
		r.err = tla.Errorf(e.Where(), "%s is not defined before its use", name)
	case n != args:
		r.err = tla.Errorf(e.Where(), "%s takes %d arguments, not %d", name, n, args)
	}
}

// with resolves with names bound meanwhile.
func (r *resolver) with(names map[string]int, f func()) {
	old := map[string]int{}
	for n, a := range names {
		if v, ok := r.arity[n]; ok {
			old[n] = v
		}
		r.arity[n] = a
	}
	f()
	for n := range names {
		if v, ok := old[n]; ok {
			r.arity[n] = v
		} else {
			delete(r.arity, n)
		}
	}
}

func (r *resolver) def(d *tla.Def) {
	names := map[string]int{}
	for _, p := range d.Params {
		names[p.Name] = p.Arity
	}
	if d.Recursive || d.Bounds != nil {
		names[d.Name] = len(d.Params)
	}
	r.with(names, func() { r.bound(d.Bounds, d.Body) })
}

func (r *resolver) bound(bs []tla.Bound, body tla.Expr) {
	names := map[string]int{}
	for _, b := range bs {
		r.expr(b.Set)
		for _, n := range b.Names {
			names[n] = 0
		}
	}
	r.with(names, func() { r.expr(body) })
}

// args resolves arguments, of which names of operators are left to the evaluation.
func (r *resolver) args(args []tla.Expr) {
	for _, a := range args {
		if id, ok := a.(*tla.Ident); ok {
			if n := r.arity[id.Name]; n > 0 {
				continue
			}
		}
		r.expr(a)
	}
}

func (r *resolver) expr(e tla.Expr) {
	Walk(e, func(x tla.Expr) bool {
		switch x := x.(type) {
		case *tla.Ident:
			r.use(x, x.Name, 0)
		case *tla.Call:
			r.use(x, x.Name, len(x.Args))
			r.args(x.Args)
			return false
		case *tla.Quant:
			r.bound(x.Bounds, x.Body)
			return false
		case *tla.Choose:
			r.bound([]tla.Bound{x.Bound}, x.Body)
			return false
		case *tla.Filter:
			r.bound([]tla.Bound{x.Bound}, x.Pred)
			return false
		case *tla.MapSet:
			r.bound(x.Bounds, x.Body)
			return false
		case *tla.FnLit:
			r.bound(x.Bounds, x.Body)
			return false
		case *tla.Lambda:
			names := map[string]int{}
			for _, p := range x.Params {
				names[p.Name] = 0
			}
			r.with(names, func() { r.expr(x.Body) })
			return false
		case *tla.Let:
			names := map[string]int{}
			for _, d := range x.Defs {
				if d.Recursive {
					names[d.Name] = len(d.Params)
				}
			}
			r.with(names, func() { r.let(x.Defs, x.Body) })
			return false
		}
		return true
	})
}

// let resolves the definitions in turn: each sees those before it.
func (r *resolver) let(defs []*tla.Def, body tla.Expr) {
	if len(defs) == 0 {
		r.expr(body)
		return
	}
	d := defs[0]
	r.def(d)
	r.with(map[string]int{d.Name: len(d.Params)}, func() { r.let(defs[1:], body) })
}
