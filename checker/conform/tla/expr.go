package tla

import "strconv"

// prec is the range of precedences of an operator; two operators whose ranges overlap need parentheses, unless
// both are the same operator and it associates to the left.
type prec struct {
	lo, hi int
	left   bool
}

var infix = map[string]prec{
	"=>": {1, 1, false}, "<=>": {2, 2, false}, "~>": {2, 2, false},
	`/\`: {3, 3, true}, `\/`: {3, 3, true},
	"=": {5, 5, false}, "#": {5, 5, false}, "<": {5, 5, false}, ">": {5, 5, false}, "<=": {5, 5, false},
	">=": {5, 5, false}, `\in`: {5, 5, false}, `\notin`: {5, 5, false}, `\subseteq`: {5, 5, false},
	`\subset`: {5, 5, false}, `\supseteq`: {5, 5, false},
	"@@": {6, 6, true}, ":>": {7, 7, false},
	`\cup`: {8, 8, true}, `\cap`: {8, 8, true}, `\`: {8, 8, false},
	"..": {9, 9, false}, "+": {10, 10, true}, "-": {11, 11, true}, "%": {10, 11, false},
	`\X`: {10, 13, true}, "*": {13, 13, true}, `\div`: {13, 13, false}, `\o`: {13, 13, true}, "^": {14, 14, false},
}

var prefix = map[string]prec{
	"~": {4, 4, false}, "[]": {4, 15, false}, "<>": {4, 15, false}, "ENABLED": {4, 15, false},
	"UNCHANGED": {4, 15, false}, "SUBSET": {8, 8, false}, "UNION": {8, 8, false}, "DOMAIN": {9, 9, false},
	"-": {12, 12, false},
}

// pending is an operator whose right operand is being read.
type pending struct {
	name string
	prec prec
	pos  Pos
	left Expr // nil for a prefix operator
}

// expr reads an expression: operands and operators, reduced by precedence.
func (p *parser) expr() Expr {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.peek().pos, "expressions are nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	var stack []pending
	for {
		for {
			t := p.peek()
			pr, ok := prefix[t.text]
			if t.kind != symbol || !ok {
				break
			}
			p.next()
			if len(stack) > maxDepth {
				p.fail(t.pos, "more than %d operators in a row", maxDepth)
			}
			stack = append(stack, pending{t.text, pr, t.pos, nil})
		}
		operand := p.postfix(p.operand())
		t := p.peek()
		pr, ok := infix[t.text]
		if t.kind != symbol {
			ok = false
		}
		for len(stack) > 0 {
			top := stack[len(stack)-1]
			if ok {
				if top.prec.hi < pr.lo {
					break
				}
				if top.prec.lo <= pr.hi && !(top.name == t.text && pr.left && top.left != nil) {
					p.fail(t.pos, "%s after %s needs parentheses", t.text, top.name)
				}
			}
			operand = reduce(top, operand)
			stack = stack[:len(stack)-1]
		}
		if !ok {
			return strip(operand)
		}
		p.next()
		stack = append(stack, pending{t.text, pr, t.pos, operand})
	}
}

// paren keeps A \X (B \X C) apart from A \X B \X C.
type paren struct{ Expr }

func strip(e Expr) Expr {
	if q, ok := e.(paren); ok {
		return q.Expr
	}
	return e
}

func reduce(op pending, right Expr) Expr {
	if op.left == nil {
		right = strip(right)
		if n, ok := right.(*Num); ok && op.name == "-" {
			return &Num{At{op.pos}, -n.Value}
		}
		return &Op{At{op.pos}, op.name, []Expr{right}}
	}
	switch op.name {
	case `/\`:
		if l, ok := op.left.(*And); ok {
			return &And{l.At, append(append([]Expr{}, l.List...), strip(right))}
		}
		return &And{At{op.left.Where()}, []Expr{strip(op.left), strip(right)}}
	case `\/`:
		if l, ok := op.left.(*Or); ok {
			return &Or{l.At, append(append([]Expr{}, l.List...), strip(right))}
		}
		return &Or{At{op.left.Where()}, []Expr{strip(op.left), strip(right)}}
	case `\X`:
		if l, ok := op.left.(*Cross); ok {
			return &Cross{l.At, append(append([]Expr{}, l.Sets...), strip(right))}
		}
		return &Cross{At{op.left.Where()}, []Expr{strip(op.left), strip(right)}}
	}
	return &Op{At{op.pos}, op.name, []Expr{strip(op.left), strip(right)}}
}

// postfix reads primes, fields and applications after an operand.
func (p *parser) postfix(e Expr) Expr {
	for {
		t := p.peek()
		switch {
		case p.accept("'"):
			e = &Op{At{t.pos}, "'", []Expr{strip(e)}}
		case p.accept("."):
			e = &Field{At{t.pos}, strip(e), p.name("a field's name").text}
		case p.accept("["):
			args := p.exprs()
			p.expect("]")
			e = &Index{At{t.pos}, strip(e), args}
		default:
			return e
		}
	}
}

func (p *parser) exprs() []Expr {
	es := []Expr{p.expr()}
	for p.accept(",") {
		es = append(es, p.expr())
	}
	return es
}

func (p *parser) operand() Expr {
	t := p.next()
	at := At{t.pos}
	switch t.kind {
	case ident:
		if p.accept("(") {
			var args []Expr
			for {
				args = append(args, p.arg())
				if !p.accept(",") {
					break
				}
			}
			p.expect(")")
			return &Call{at, t.text, args}
		}
		if p.is("!") {
			p.fail(t.pos, "%s!... : instances are not supported", t.text)
		}
		if p.is("::") {
			p.fail(t.pos, "labels are not supported")
		}
		return &Ident{at, t.text}
	case number:
		n, err := strconv.Atoi(t.text)
		if err != nil || n > 1<<31-1 {
			p.fail(t.pos, "number %s is too large; TLC's integers have 32 bits", t.text)
		}
		return &Num{at, n}
	case text:
		return &Str{at, t.text}
	case symbol:
		return p.symbolOperand(t)
	}
	p.unexpected(t, "an expression")
	return nil
}

// arg reads an operator's argument, which may be a LAMBDA.
func (p *parser) arg() Expr {
	t := p.peek()
	if !p.accept("LAMBDA") {
		return p.expr()
	}
	l := &Lambda{At: At{t.pos}}
	for _, n := range p.names() {
		l.Params = append(l.Params, Param{Name: n})
	}
	p.expect(":")
	l.Body = p.expr()
	return l
}

func (p *parser) symbolOperand(t token) Expr {
	at := At{t.pos}
	switch t.text {
	case "TRUE", "FALSE":
		return &Bool{at, t.text == "TRUE"}
	case "(":
		e := p.expr()
		p.expect(")")
		return paren{e}
	case `/\`, `\/`:
		return p.junction(t)
	case `\E`, `\A`:
		bs := p.bounds()
		p.expect(":")
		return &Quant{at, t.text == `\E`, bs, p.expr()}
	case "CHOOSE":
		b := p.bound()
		if len(b.Names) > 1 && !b.Tuple {
			p.fail(b.Pos, "CHOOSE binds one name")
		}
		p.expect(":")
		return &Choose{at, b, p.expr()}
	case "{":
		return p.set(at)
	case "[":
		return p.bracket(at)
	case "<<":
		tup := &Tuple{At: at}
		if p.accept(">>") {
			return tup
		}
		tup.Elems = p.exprs()
		if p.accept(">>_") {
			if len(tup.Elems) != 1 {
				p.fail(t.pos, "<<A>>_v holds one action")
			}
			return &Boxed{at, true, tup.Elems[0], p.subscript()}
		}
		p.expect(">>")
		return tup
	case "@":
		return &AtSign{at}
	case "IF":
		e := &If{At: at}
		e.Cond = p.expr()
		p.expect("THEN")
		e.Then = p.expr()
		p.expect("ELSE")
		e.Else = p.expr()
		return e
	case "CASE":
		return p.cases(at)
	case "LET":
		return p.let(at)
	case "WF_", "SF_":
		f := &Fair{At: at, Strong: t.text == "SF_", V: p.subscript()}
		p.expect("(")
		f.Action = p.expr()
		p.expect(")")
		return f
	}
	p.unexpected(t, "an expression")
	return nil
}

// subscript reads the v of [A]_v: a name, a tuple or an expression in parentheses.
func (p *parser) subscript() Expr {
	t := p.peek()
	if t.kind == ident {
		p.next()
		return &Ident{At{t.pos}, t.text}
	}
	if t.text != "<<" && t.text != "(" {
		p.unexpected(t, "the subscript of an action")
	}
	return strip(p.operand())
}

// junction reads a list of /\ or \/ items whose bullets stand in one column; an item ends at the first token that
// stands at or left of it.
func (p *parser) junction(t token) Expr {
	var list []Expr
	col := t.pos.Col
	for {
		p.limits = append(p.limits, col)
		list = append(list, p.expr())
		p.limits = p.limits[:len(p.limits)-1]
		b := p.peek()
		if b.kind != symbol || b.pos.Col != col || b.text != `/\` && b.text != `\/` {
			break
		}
		if b.text != t.text {
			p.fail(b.pos, "a list of %s continues with %s", t.text, b.text)
		}
		p.next()
	}
	if len(list) == 1 {
		return paren{list[0]}
	}
	if t.text == `/\` {
		return paren{&And{At{t.pos}, list}}
	}
	return paren{&Or{At{t.pos}, list}}
}

// set reads what follows a brace: an enumeration, a filter or an image.
func (p *parser) set(at At) Expr {
	if p.accept("}") {
		return &SetLit{At: at}
	}
	if b, ok := p.filterBound(); ok {
		f := &Filter{At: at, Bound: b}
		f.Pred = p.expr()
		p.expect("}")
		return f
	}
	first := p.expr()
	if p.accept(":") {
		m := &MapSet{At: at, Body: first}
		m.Bounds = p.bounds()
		p.expect("}")
		return m
	}
	s := &SetLit{At: at, Elems: []Expr{first}}
	for p.accept(",") {
		s.Elems = append(s.Elems, p.expr())
	}
	p.expect("}")
	return s
}

// filterBound tries "x \in S :" or "<<x, y>> \in S :"; otherwise it leaves the input as it was.
func (p *parser) filterBound() (Bound, bool) {
	start := p.at
	i := p.at
	if p.toks[i].kind == symbol && p.toks[i].text == "<<" {
		for i++; p.toks[i].kind == ident || p.toks[i].text == ","; i++ {
		}
		if p.toks[i].text != ">>" {
			return Bound{}, false
		}
	} else if p.toks[i].kind != ident {
		return Bound{}, false
	}
	if p.toks[i].kind == eof || p.toks[i+1].text != `\in` || p.toks[i+1].kind != symbol {
		return Bound{}, false
	}
	b := p.bound()
	if p.accept(":") {
		return b, true
	}
	p.at = start
	return Bound{}, false
}

// bracket reads what follows a square bracket: a function, a set of functions, a record, a set of records, an EXCEPT
// or a boxed action.
func (p *parser) bracket(at At) Expr {
	t, after := p.peek(), p.toks[min(p.at+1, len(p.toks)-1)]
	if t.kind == ident && after.kind == symbol && (after.text == "|->" || after.text == ":") {
		return p.record(at, after.text)
	}
	if start := p.at; t.kind == ident && (after.text == `\in` || after.text == ",") || t.text == "<<" {
		if bs, ok := p.tryBounds(); ok && p.accept("|->") {
			f := &FnLit{At: at, Bounds: bs}
			f.Body = p.expr()
			p.expect("]")
			return f
		}
		p.at = start
	}
	e := p.expr()
	switch {
	case p.accept("->"):
		f := &FnSet{At: at, Dom: e}
		f.Rng = p.expr()
		p.expect("]")
		return f
	case p.accept("EXCEPT"):
		return p.except(at, e)
	case p.accept("]_"):
		return &Boxed{at, false, e, p.subscript()}
	}
	p.unexpected(p.peek(), `"->", "|->", "EXCEPT" or "]_"`)
	return nil
}

// tryBounds reads bounds, or reports that there are none here.
func (p *parser) tryBounds() (bs []Bound, ok bool) {
	limits, depth := len(p.limits), p.depth
	defer func() {
		if r := recover(); r != nil {
			if _, isError := r.(*Error); !isError {
				panic(r)
			}
			p.limits, p.depth = p.limits[:limits], depth
			bs, ok = nil, false
		}
	}()
	return p.bounds(), true
}

func (p *parser) record(at At, sep string) Expr {
	var fs []FieldExpr
	seen := map[string]bool{}
	for {
		n := p.name("a field's name")
		if seen[n.text] {
			p.fail(n.pos, "field %s is given twice", n.text)
		}
		seen[n.text] = true
		p.expect(sep)
		fs = append(fs, FieldExpr{n.text, p.expr()})
		if !p.accept(",") {
			break
		}
	}
	p.expect("]")
	if sep == ":" {
		return &RecSet{at, fs}
	}
	return &RecLit{at, fs}
}

func (p *parser) except(at At, fn Expr) Expr {
	e := &Except{At: at, Fn: fn}
	for {
		u := Update{Pos: p.expect("!").pos}
		for {
			if p.accept(".") {
				u.Path = append(u.Path, PathStep{Field: p.name("a field's name").text})
			} else if p.accept("[") {
				u.Path = append(u.Path, PathStep{Args: p.exprs()})
				p.expect("]")
			} else {
				break
			}
		}
		if len(u.Path) == 0 {
			p.unexpected(p.peek(), `"[" or "."`)
		}
		p.expect("=")
		u.Value = p.expr()
		e.Updates = append(e.Updates, u)
		if !p.accept(",") {
			break
		}
	}
	p.expect("]")
	return e
}

func (p *parser) cases(at At) Expr {
	c := &Case{At: at}
	for {
		if p.accept("OTHER") {
			p.expect("->")
			c.Other = p.expr()
			return c
		}
		var a Arm
		a.Guard = p.expr()
		p.expect("->")
		a.Body = p.expr()
		c.Arms = append(c.Arms, a)
		if !p.accept("[]") {
			return c
		}
	}
}

func (p *parser) let(at At) Expr {
	l := &Let{At: at}
	recursive := map[string]bool{}
	for !p.accept("IN") {
		if p.accept("RECURSIVE") {
			for _, prm := range p.params() {
				recursive[prm.Name] = true
			}
			continue
		}
		if t := p.peek(); t.kind != ident {
			p.unexpected(t, `a definition or "IN"`)
		}
		d := p.def()
		d.Recursive = recursive[d.Name]
		l.Defs = append(l.Defs, d)
	}
	if len(l.Defs) == 0 {
		p.fail(at.Pos, "LET without a definition")
	}
	l.Body = p.expr()
	return l
}

// Standard operators of the modules that the tools know, by name, with the number of their arguments.
var Standard = map[string]int{
	"Cardinality": 1, "IsFiniteSet": 1, "Len": 1, "Append": 2, "Head": 1, "Tail": 1, "SubSeq": 3, "Seq": 1,
	"SelectSeq": 2, "Nat": 0, "Int": 0, "BOOLEAN": 0, "STRING": 0, "Assert": 2, "Print": 2, "PrintT": 1,
}
