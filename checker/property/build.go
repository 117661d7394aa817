package property

import (
	"fmt"
	"slices"
	"time"

	"linearize.example/checker/orders"
	"linearize.example/traces"
)

// sameReconcile is how far apart two calls of one process may be to be taken for parts of one reconcile. An API call of
// EC2 takes tens to hundreds of milliseconds; CloudTrail's seconds and its skew are added by the intervals.
const sameReconcile = 5 * time.Second

// problem is a capture prepared for package orders.
type problem struct {
	c        *Capture
	opt      Options
	u        *universe
	effects  []*effect // those of calls with an answer are shared and are not changed
	unique   interned
	narrowed map[narrowing][2]*effect
	scratch  effect // reused from call to call
	ops      []orders.Operation
	// source is the index in Capture.Operations of each operation, or -1 for what is no call.
	source  []int
	initial []orders.State
	unknown []item // rules of which nobody knows whether they were there at the beginning
	// worst says how optional operations that nothing refers to any more are taken: true, so that properties suffer.
	worst bool

	owners map[int]map[string]bool // port → roles that granted rules that begin or end there
	opened map[int32][]int         // managed rule → ports that it opens
	peers  map[[2]string]orders.State

	assumed     map[traces.Rule][]int32 // managed rule → the reasons that are assumed with it
	anyPort     int32                   // the assumed reason without a port, plus one; 0 for none
	targetCalls []targetCall
	targetsFrom traces.Instant // when the first call on targets began; Forever without one
	places      []int32        // index in Capture.Operations → index in ops, plus one

	optional bool        // some operation may never have taken effect
	few      bool        // calls of unknown outcome on few rules may stay open for good
	never    int32       // a fact that is never true
	toldBy   map[int]int // operation of unknown outcome → the one that tells that it took effect
	viewed   int         // one more than the rules that a describe showed before any mutation; 0 without one

	on          []int32                // reasons that are given at the beginning
	settled     map[string]int         // what narrowed the orders down → how many pairs
	unclear     []int                  // operations of unknown effect
	turns       map[traces.Instant]int // the operations that turn reasons at an instant
	assumptions []string
}

// build prepares the capture.
func build(c *Capture, opt Options, worst bool) *problem {
	p := assemble(c, opt)
	p.worst, p.few = worst, opt.fewOpen
	p.resolveOptional()
	p.sortOperations()
	return p
}

// assemble turns the capture into operations, effects and states of the beginning.
func assemble(c *Capture, opt Options) *problem {
	p := &problem{c: c, opt: opt, u: newUniverse(), targetsFrom: traces.Forever, settled: map[string]int{}, narrowed: map[narrowing][2]*effect{}}
	p.number()
	p.proveNeeds()
	p.assumeNeeds()
	n := p.changes()
	p.ops, p.effects, p.source = slices.Grow(p.ops, n), slices.Grow(p.effects, n), slices.Grow(p.source, n)
	for i := range c.Operations {
		p.addCall(i)
	}
	p.u.seal()
	if !opt.freely {
		p.bindNeeds()
	}
	p.order()
	p.begin()
	return p
}

func (p *problem) isManaged(description string) bool {
	if p.opt.Managed != nil {
		return p.opt.Managed.MatchString(description)
	}
	return Managed(description)
}

// managedPermission reports whether a permission is the controller's own. A revoke need not repeat the description; the
// controller revokes nothing but managed rules.
func (p *problem) managedPermission(op *traces.Operation, perm traces.Permission) bool {
	if perm.Description == "" && op.Op == traces.RevokeSecurityGroupIngress {
		r, known := p.c.Releases[op.Process]
		return known && r.Controller && r.Version != Version{}
	}
	return p.isManaged(perm.Description)
}

// number gives every rule that the capture names its facts, in the order of appearance.
func (p *problem) number() {
	add := func(perm traces.Permission, managed bool) {
		it := p.u.rule(perm.Rule)
		if managed {
			p.u.markManaged(it)
		}
	}
	if p.c.Snapshot != nil {
		for _, r := range p.c.Snapshot.Rules {
			add(r.Permission, p.isManaged(r.Description))
		}
	}
	var view []traces.Permission // the one before: most describes show what the one before them showed
	for i := range p.c.Operations {
		op := &p.c.Operations[i]
		for _, perm := range op.Permissions {
			add(perm, p.managedPermission(op, perm))
		}
		for _, perm := range op.Unknown {
			add(perm, false)
		}
		for _, r := range op.Revoked {
			add(r.Permission, p.isManaged(r.Description))
		}
		for _, r := range op.Updates {
			add(r.Permission, p.isManaged(r.Description))
		}
		if op.View == nil || slices.Equal(view, op.View) {
			continue
		}
		view = op.View
		for _, perm := range op.View {
			add(perm, p.isManaged(perm.Description))
		}
	}
}

// changes counts the calls that are no describe.
func (p *problem) changes() int {
	n := 0
	for i := range p.c.Operations {
		if op := &p.c.Operations[i]; op.View == nil {
			n++
		}
	}
	return n
}

// addCall turns a call into an operation with an effect.
func (p *problem) addCall(i int) {
	op := &p.c.Operations[i]
	e := &p.scratch
	*e = effect{once: -1, unless: -1, items: e.items[:0], set: e.set[:0], absent: e.absent[:0], on: e.on[:0]}
	switch op.Outcome {
	case traces.Failed:
		switch op.Error {
		case "InvalidPermission.Duplicate":
			e.result = duplicate
		case "InvalidPermission.NotFound", "InvalidSecurityGroupRuleId.NotFound":
			e.result = notFound
		default:
			e.result = refused
		}
		if op.Op == traces.RegisterTargets || op.Op == traces.DeregisterTargets || op.Unclear || len(op.Permissions) == 0 {
			e.result = refused
		}
	case traces.Succeeded, traces.Pending:
		if op.Unclear && op.Op != traces.DescribeSecurityGroups && op.Op != traces.DescribeSecurityGroupRules {
			p.unclear = append(p.unclear, i)
			return
		}
	}
	fact := func(perm traces.Permission, managed bool) int32 {
		it := p.u.rule(perm.Rule)
		if managed {
			return it.managed
		}
		return it.foreign
	}
	switch op.Op {
	case traces.AuthorizeSecurityGroupIngress:
		e.kind = grant
		for _, perm := range distinct(op.Permissions) {
			managed := p.isManaged(perm.Description)
			e.items = append(e.items, p.u.rule(perm.Rule))
			e.set = append(e.set, fact(perm, managed))
			if managed && e.result == changed {
				e.on = append(e.on, p.assumedFor(perm.Rule, op.Call)...)
			}
		}
	case traces.RevokeSecurityGroupIngress:
		e.kind = revoke
		for _, perm := range op.Unknown {
			e.absent = append(e.absent, p.u.rule(perm.Rule))
		}
		for _, perm := range distinct(op.Permissions) {
			if it := p.u.rule(perm.Rule); !slices.Contains(e.absent, it) {
				e.items = append(e.items, it)
			}
		}
	case traces.ModifySecurityGroupRules:
		e.kind = replace
		for _, r := range op.Revoked {
			e.items = append(e.items, p.u.rule(r.Rule))
		}
		for _, r := range op.Updates {
			e.set = append(e.set, fact(r.Permission, p.isManaged(r.Description)))
			if it := p.u.rule(r.Rule); !slices.Contains(e.items, it) {
				e.absent = append(e.absent, it) // or the answer had been InvalidPermission.Duplicate
			}
		}
	case traces.UpdateSecurityGroupRuleDescriptionsIngress:
		e.kind = redescribe
		for _, perm := range distinct(op.Permissions) {
			e.items = append(e.items, p.u.rule(perm.Rule))
			e.set = append(e.set, fact(perm, p.isManaged(perm.Description)))
		}
	case traces.CreateSecurityGroup, traces.DeleteSecurityGroup:
		e.kind = empty
	default:
		return // describes do not bind mutations; calls on targets were turned into needs
	}
	if e.result == refused && op.Outcome == traces.Failed {
		// It changed nothing and says nothing, so that its place does not matter; it is placed for the timeline.
		e.kind = none
	}
	p.push(orders.Operation{Call: op.Call, Return: op.Return, Optional: op.Outcome == traces.Pending}, *e, i)
}

func (p *problem) push(o orders.Operation, e effect, source int) int {
	if o.Return == traces.Forever && !o.Optional {
		// It took effect, and nobody knows when: before the capture ended, or the record would not be there.
		o.Return = max(o.Call, p.c.To)
	}
	p.ops = append(p.ops, o)
	if source >= 0 && !o.Optional && e.kind != turn {
		p.effects = append(p.effects, p.unique.intern(e))
	} else {
		own := e.clone()
		p.effects = append(p.effects, &own)
	}
	p.source = append(p.source, source)
	return len(p.ops) - 1
}

func distinct(permissions []traces.Permission) []traces.Permission {
	if len(permissions) < 2 {
		return permissions
	}
	out := make([]traces.Permission, 0, len(permissions))
	for _, perm := range permissions {
		if !slices.ContainsFunc(out, func(o traces.Permission) bool { return o.Rule == perm.Rule }) {
			out = append(out, perm)
		}
	}
	return out
}

// order carries over the sources' order and adds what the release's contract says.
func (p *problem) order() {
	ended := map[int][]int{} // calls that deregistered → the ends of needs that they stand for
	for _, t := range p.targetCalls {
		if !t.register {
			ended[t.source] = append(ended[t.source], t.op)
		}
	}
	for i, s := range p.source {
		if s < 0 {
			continue
		}
		// Operations that were left out (describes, calls on targets) or may never have taken effect pass on the order
		// that they stand for.
		for a := p.c.Operations[s].After; a >= 0; a = p.c.Operations[a].After {
			for _, j := range ended[a] {
				p.after(i, j, "the controller log's order")
			}
			if j, known := p.place(a); known {
				p.after(i, j, "the controller log's order")
				if !p.ops[j].Optional {
					break
				}
			}
		}
	}
	p.pairs()
	p.alike()
}

// place is the operation of the problem that stands for a call, if any does.
func (p *problem) place(source int) (int, bool) {
	if p.places == nil {
		p.places = make([]int32, len(p.c.Operations))
		for i, s := range p.source {
			if s >= 0 {
				p.places[s] = int32(i + 1)
			}
		}
	}
	return int(p.places[source]) - 1, p.places[source] > 0
}

// after orders j before i, and counts it where the intervals alone do not tell.
func (p *problem) after(i, j int, why string) {
	if slices.Contains(p.ops[i].After, int32(j)) || p.ops[j].Call > p.ops[i].Return {
		return
	}
	p.ops[i].After = append(p.ops[i].After, int32(j))
	if p.ops[j].Return >= p.ops[i].Call {
		p.settled[why]++
	}
}

// alike orders operations that nothing tells apart, and numbers optional ones that differ in Call alone.
func (p *problem) alike() {
	type signature struct {
		text     string
		optional bool
	}
	seen := map[signature]int{}
	count := int32(0)
	awaited := make([]bool, len(p.ops))
	for i := range p.ops {
		for _, a := range p.ops[i].After {
			awaited[a] = true
		}
	}
	for i := range p.ops {
		if p.source[i] < 0 {
			continue
		}
		o := &p.ops[i]
		op := &p.c.Operations[p.source[i]]
		sameCall := i > 0 && p.ops[i-1].Call == o.Call || i+1 < len(p.ops) && p.ops[i+1].Call == o.Call
		if !o.Optional && !sameCall || awaited[i] || len(o.After) > 0 || len(p.effects[i].narrows) > 0 || len(p.effects[i].drops) > 0 {
			continue
		}
		text := op.Op
		for _, it := range p.effects[i].items {
			text += fmt.Sprint("|", it.managed)
		}
		text += fmt.Sprint("|", p.effects[i].set, p.effects[i].absent, p.effects[i].result, o.Return)
		if !o.Optional {
			text += fmt.Sprint("|", o.Call)
		}
		s := signature{text, o.Optional}
		j, known := seen[s]
		seen[s] = i
		switch {
		case !known:
		case o.Optional:
			if p.ops[j].Alike == 0 {
				count++
				p.ops[j].Alike = count
			}
			o.Alike = p.ops[j].Alike
		default:
			o.After = append(o.After, int32(j))
		}
	}
}

// sortOperations puts the operations in the order of their Call, as package orders wants them.
func (p *problem) sortOperations() {
	order := make([]int, len(p.ops))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case p.ops[a].Call != p.ops[b].Call:
			if p.ops[a].Call < p.ops[b].Call {
				return -1
			}
			return 1
		case p.ops[a].Return < p.ops[b].Return:
			return -1
		case p.ops[a].Return > p.ops[b].Return:
			return 1
		}
		return 0
	})
	if slices.IsSorted(order) {
		return
	}
	place := make([]int32, len(order))
	for to, from := range order {
		place[from] = int32(to)
	}
	ops, effects, source := make([]orders.Operation, len(order)), make([]*effect, len(order)), make([]int, len(order))
	for to, from := range order {
		o := p.ops[from]
		for n, a := range o.After {
			o.After[n] = place[a]
		}
		ops[to], effects[to], source[to] = o, p.effects[from], p.source[from]
	}
	p.ops, p.effects, p.source = ops, effects, source
}
