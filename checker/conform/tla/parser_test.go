package tla

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// show prints an expression in a form that leaves no structure open.
func show(e Expr) string {
	list := func(es []Expr) string {
		var s []string
		for _, e := range es {
			s = append(s, show(e))
		}
		return strings.Join(s, " ")
	}
	bounds := func(bs []Bound) string {
		var s []string
		for _, b := range bs {
			n := strings.Join(b.Names, ",")
			if b.Tuple {
				n = "<" + n + ">"
			}
			s = append(s, n+":"+show(b.Set))
		}
		return strings.Join(s, ";")
	}
	fields := func(fs []FieldExpr) string {
		var s []string
		for _, f := range fs {
			s = append(s, f.Name+"="+show(f.Expr))
		}
		return strings.Join(s, " ")
	}
	switch e := e.(type) {
	case *Ident:
		return e.Name
	case *Num:
		return fmt.Sprint(e.Value)
	case *Str:
		return fmt.Sprintf("%q", e.Value)
	case *Bool:
		return fmt.Sprint(e.Value)
	case *Op:
		return "(" + e.Name + " " + list(e.Args) + ")"
	case *Call:
		return "(call " + e.Name + " " + list(e.Args) + ")"
	case *And:
		return "(and " + list(e.List) + ")"
	case *Or:
		return "(or " + list(e.List) + ")"
	case *Index:
		return "(at " + show(e.Fn) + " " + list(e.Args) + ")"
	case *Field:
		return show(e.Rec) + "." + e.Name
	case *Quant:
		if e.Exists {
			return "(E " + bounds(e.Bounds) + " " + show(e.Body) + ")"
		}
		return "(A " + bounds(e.Bounds) + " " + show(e.Body) + ")"
	case *Choose:
		return "(choose " + bounds([]Bound{e.Bound}) + " " + show(e.Body) + ")"
	case *SetLit:
		return "{" + list(e.Elems) + "}"
	case *Filter:
		return "(filter " + bounds([]Bound{e.Bound}) + " " + show(e.Pred) + ")"
	case *MapSet:
		return "(map " + show(e.Body) + " " + bounds(e.Bounds) + ")"
	case *FnLit:
		return "(fn " + bounds(e.Bounds) + " " + show(e.Body) + ")"
	case *FnSet:
		return "(fnset " + show(e.Dom) + " " + show(e.Rng) + ")"
	case *RecLit:
		return "[" + fields(e.Fields) + "]"
	case *RecSet:
		return "[:" + fields(e.Fields) + "]"
	case *Except:
		s := "(except " + show(e.Fn)
		for _, u := range e.Updates {
			s += " "
			for _, st := range u.Path {
				if st.Field != "" {
					s += "." + st.Field
				} else {
					s += "[" + list(st.Args) + "]"
				}
			}
			s += "=" + show(u.Value)
		}
		return s + ")"
	case *AtSign:
		return "@"
	case *Tuple:
		return "<" + list(e.Elems) + ">"
	case *Cross:
		return "(cross " + list(e.Sets) + ")"
	case *If:
		return "(if " + show(e.Cond) + " " + show(e.Then) + " " + show(e.Else) + ")"
	case *Case:
		s := "(case"
		for _, a := range e.Arms {
			s += " " + show(a.Guard) + "->" + show(a.Body)
		}
		if e.Other != nil {
			s += " other->" + show(e.Other)
		}
		return s + ")"
	case *Let:
		s := "(let"
		for _, d := range e.Defs {
			s += " " + d.Name + "=" + show(d.Body)
		}
		return s + " " + show(e.Body) + ")"
	case *Lambda:
		return "(lambda " + show(e.Body) + ")"
	case *Boxed:
		return fmt.Sprintf("(boxed %v %s %s)", e.Angle, show(e.Action), show(e.V))
	case *Fair:
		return fmt.Sprintf("(fair %v %s %s)", e.Strong, show(e.V), show(e.Action))
	}
	return fmt.Sprintf("%T", e)
}

func TestExpressions(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{`1 + 2 * 3 - 4`, `(+ 1 (- (* 2 3) 4))`},
		{`a - b - c`, `(- (- a b) c)`},
		{`-1 + x`, `(+ -1 x)`},
		{`a \cup b \cup c`, `(\cup (\cup a b) c)`},
		{`a = b /\ c # d`, `(and (= a b) (# c d))`},
		{`a /\ b => c \/ d`, `(=> (and a b) (or c d))`},
		{`~a /\ b`, `(and (~ a) b)`},
		{`~ x \in S`, `(~ (\in x S))`},
		{`x \notin S \ {y}`, `(\notin x (\ S {y}))`},
		{`1..n - 1`, `(.. 1 (- n 1))`},
		{`f[x][y, z].g'`, `(' (at (at f x) y z).g)`},
		{`x' = y`, `(= (' x) y)`},
		{`A \X B \X C`, `(cross A B C)`},
		{`A \X (B \X C)`, `(cross A (cross B C))`},
		{`[x \in S, y \in T |-> x]`, `(fn x:S;y:T x)`},
		{`[S -> [a: T, b: 1..2]]`, `(fnset S [:a=T b=(.. 1 2)])`},
		{`[a |-> 1, b |-> "s"]`, `[a=1 b="s"]`},
		{`[f EXCEPT ![x].a[y] = @ + 1, !.b = 2]`, `(except f [x].a[y]=(+ @ 1) .b=2)`},
		{`{x \in S : p}`, `(filter x:S p)`},
		{`{<<x, y>> \in S : p}`, `(filter <x,y>:S p)`},
		{`{x + y : x \in S, y \in T}`, `(map (+ x y) x:S;y:T)`},
		{`{x \in S, y}`, `{(\in x S) y}`},
		{`{<<x, y>>, <<>>}`, `{<x y> <>}`},
		{`\E x, y \in S, <<u, v>> \in T : p /\ q`, `(E x,y:S;<u,v>:T (and p q))`},
		{`CHOOSE x \in S : \A y \in S : x <= y`, `(choose x:S (A y:S (<= x y)))`},
		{`IF a THEN b ELSE c + 1`, `(if a b (+ c 1))`},
		{`CASE a -> b [] c -> d [] OTHER -> e`, `(case a->b c->d other->e)`},
		{`LET f(x) == x g == 2 IN f(g)`, `(let f=x g=2 (call f g))`},
		{`[][Next]_<<a, b>> /\ WF_vars(A) /\ SF_v(B)`,
			`(and ([] (boxed false Next <a b>)) (fair false vars A) (fair true v B))`},
		{`[]<>P ~> Q`, `(~> ([] (<> P)) Q)`},
		{`<<A>>_v`, `(boxed true A v)`},
		{"/\\ a\n/\\ \\/ b\n   \\/ c\n/\\ d", `(and a (or b c) d)`},
		{"/\\ a = 1\n/\\ IF b\n   THEN c\n   ELSE d\n/\\ e", `(and (= a 1) (if b c d) e)`},
		{"\\/ /\\ a\n   /\\ b\n\\/ c", `(or (and a b) c)`},
		{"/\\ \\E x \\in S :\n     /\\ p\n     /\\ q\n/\\ r", `(and (E x:S (and p q)) r)`},
		{"(/\\ a\n /\\ b) => c", `(=> (and a b) c)`},
		{"/\\ a\n/\\ b => c", `(and a (=> b c))`},
		{"x (* nested (* comment *) *) + 1 \\* rest", `(+ x 1)`},
		{`SelectSeq(s, LAMBDA x : x > 1)`, `(call SelectSeq s (lambda (> x 1)))`},
		{`UNCHANGED <<a, b>>`, `(UNCHANGED <a b>)`},
		{`a :> 1 @@ b :> 2`, `(@@ (:> a 1) (:> b 2))`},
		{`DOMAIN f = SUBSET S`, `(= (DOMAIN f) (SUBSET S))`},
		{`a <=> b`, `(<=> a b)`},
		{`10 \div 3 % 2`, `(% (\div 10 3) 2)`},
		{`a = b = c`, ``},
	} {
		e, err := ParseExpr("test", c.src)
		if c.want == "" {
			if err == nil {
				t.Errorf("%s: parsed as %s, want an error", c.src, show(e))
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		if d := cmp.Diff(c.want, show(e)); d != "" {
			t.Errorf("%s: (-want +got)\n%s", c.src, d)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"---- MODULE m ----\nA == a /\\ b \\/ c\n====", `m.tla:2:13: \/ after /\ needs parentheses`},
		{"---- MODULE m ----\nEXTENDS Reals\n====", `m.tla:2:9: module Reals is not supported; ` +
			`of other modules only Naturals, Integers, Sequences, FiniteSets and TLC are`},
		{"---- MODULE m ----\nA == INSTANCE x\n====", `m.tla:2:6: INSTANCE is not supported`},
		{"---- MODULE m ----\nA == x \\prec y\n====", `m.tla:2:8: operator \prec is not supported`},
		{"---- MODULE m ----\nA == \\E x : TRUE\n====", `m.tla:2:9: x is unbounded; only "x \in S" is supported`},
		{"---- MODULE m ----\nA ==\n\t1\n====", `m.tla:3:1: a tab; columns carry meaning in TLA+, use spaces`},
		{"---- MODULE m ----\nA == (* x\n====", `m.tla:2:6: comment is not closed`},
		{"---- MODULE m ----\nA == \"x\n====", `m.tla:2:6: string is not closed on its line`},
		{"---- MODULE m ----\nA == 1\nA == 2\n====", `m.tla:3:1: A is already declared at m.tla:2:1`},
		{"---- MODULE m ----\nA == [a |-> 1, a |-> 2]\n====", `m.tla:2:16: field a is given twice`},
		{"---- MODULE m ----\nA == /\\ b +\n     /\\ c\n====",
			`m.tla:3:6: expected an expression, found "/\\", which ends the list item, standing at or left of its bullet`},
		{"---- MODULE m ----\nA == 99999999999\n====", `m.tla:2:6: number 99999999999 is too large; TLC's integers have 32 bits`},
		{"---- MODULE m ----\nA == I!Op\n====", `m.tla:2:6: I!... : instances are not supported`},
		{"nothing", `m.tla:1:1: no module: expected a line ---- MODULE Name ----`},
		{"---- MODULE m ----\nA ==", `m.tla:2:5: expected an expression, found the end`},
		{"---- MODULE m ----\na + b == 1\n====",
			`m.tla:2:3: expected "==" (infix, prefix and postfix operators cannot be defined), found "+"`},
	} {
		_, err := Parse("m.tla", c.src)
		if err == nil {
			t.Errorf("%q parsed, want %s", c.src, c.want)
		} else if d := cmp.Diff(c.want, err.Error()); d != "" {
			t.Errorf("%q (-want +got)\n%s", c.src, d)
		}
	}
}

func TestModule(t *testing.T) {
	m, err := Parse("m.tla", `text before
---- MODULE m ----
EXTENDS Integers, Sequences
CONSTANTS A, B
VARIABLE x
ASSUME Fine == A > 0
RECURSIVE Sum(_)
Sum(S) == IF S = {} THEN 0 ELSE 1
f[i \in 1..3] == i
--------
Apply(F(_), y) == F(y)
THEOREM TRUE
====
text after`)
	if err != nil {
		t.Fatal(err)
	}
	var defs []string
	for _, d := range m.Defs {
		defs = append(defs, fmt.Sprintf("%s %d %d %v | %s", d.Name, len(d.Params), len(d.Bounds), d.Recursive, d.Text))
	}
	want := []string{
		"Sum 1 0 true | Sum(S) == IF S = {} THEN 0 ELSE 1",
		`f 0 1 false | f[i \in 1..3] == i`,
		"Apply 2 0 false | Apply(F(_), y) == F(y)",
	}
	if d := cmp.Diff(want, defs); d != "" {
		t.Errorf("definitions (-want +got)\n%s", d)
	}
	if len(m.Constants) != 2 || len(m.Variables) != 1 || len(m.Assumes) != 1 || len(m.Extends) != 2 {
		t.Errorf("declarations: %d constants, %d variables, %d assumptions, %d modules",
			len(m.Constants), len(m.Variables), len(m.Assumes), len(m.Extends))
	}
}

func FuzzParse(f *testing.F) {
	f.Add("---- MODULE m ----\nA == /\\ [x EXCEPT ![1] = @]\n     /\\ CASE a -> b [] OTHER -> c\n====")
	f.Add("---- MODULE m ----\nA == {<<a, b>> \\in S : [] [N]_<<x>> }\n====")
	f.Add("---- MODULE m ----\nA == [a, b \\in S |-> {x \\in")
	f.Fuzz(func(t *testing.T, src string) {
		m, err := Parse("m.tla", src)
		if (m == nil) == (err == nil) {
			t.Fatalf("module %v, error %v", m, err)
		}
	})
}
