package eval

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linearize.example/checker/conform/tla"
	"linearize.example/model/tlccfg"
)

const lib = `---- MODULE lib ----
EXTENDS Integers, Sequences, FiniteSets, TLC
CONSTANTS C, M
Double(x) == 2 * x
Twice(F(_), x) == F(F(x))
fact[n \in 0..5] == IF n = 0 THEN 1 ELSE n * fact[n - 1]
RECURSIVE Sum(_)
Sum(S) == IF S = {} THEN 0 ELSE LET x == CHOOSE x \in S : TRUE IN x + Sum(S \ {x})
RECURSIVE Forever(_)
Forever(x) == Forever(x)
====`

func TestEval(t *testing.T) {
	m, err := tla.Parse("lib.tla", lib)
	if err != nil {
		t.Fatal(err)
	}
	ev, err := New(m, map[string]tlccfg.Value{"C": 7, "M": tlccfg.ModelValue("m")})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ src, want string }{
		{`1 + 2 * 3`, `7`},
		{`(-7) \div 2`, `-4`},
		{`-7 \div 2`, `-3`},
		{`-7 % 3`, `2`},
		{`2 ^ 10`, `1024`},
		{`3..1`, `{}`},
		{`{3, 1, 2, 1}`, `{1, 2, 3}`},
		{`{1, 2} \cup {2, 3} \ {1}`, `x:1:20: \ after \cup needs parentheses`},
		{`({1, 2} \cup {3}) \cap 2..5`, `{2, 3}`},
		{`SUBSET {1, 2}`, `{{}, {1}, {2}, {1, 2}}`},
		{`UNION {{1}, {2, 3}}`, `{1, 2, 3}`},
		{`{x * x : x \in -2..2}`, `{0, 1, 4}`},
		{`{x + y : x \in 1..2, y \in {10}}`, `{11, 12}`},
		{`{x \in 1..9 : x % 2 = 0}`, `{2, 4, 6, 8}`},
		{`{<<x, y>> \in (1..2) \X (1..2) : x < y}`, `{<<1, 2>>}`},
		{`[x \in 1..2 |-> x + 1]`, `<<2, 3>>`},
		{`[x \in {"a", "b"} |-> x]`, `[a |-> "a", b |-> "b"]`},
		{`[x \in 0..1 |-> x]`, `(0 :> 0 @@ 1 :> 1)`},
		{`[x, y \in 0..1 |-> x + y][1, 1]`, `2`},
		{`[{1} -> {2, 3}]`, `{<<2>>, <<3>>}`},
		{`[a : {1, 2}, b : {TRUE}]`, `{[a |-> 1, b |-> TRUE], [a |-> 2, b |-> TRUE]}`},
		{`[[a |-> 1, b |-> <<1, 2>>] EXCEPT !.a = @ + 1, !.b[2] = 9]`, `[a |-> 2, b |-> <<1, 9>>]`},
		{`DOMAIN [a |-> 1]`, `{"a"}`},
		{`(1 :> 2 @@ 3 :> 4)[3]`, `4`},
		{`Append(<<1>>, 2) \o <<3>>`, `<<1, 2, 3>>`},
		{`SubSeq(<<1, 2, 3>>, 2, 3)`, `<<2, 3>>`},
		{`Head(Tail(<<1, 2>>))`, `2`},
		{`SelectSeq(<<1, 2, 3>>, LAMBDA x : x # 2)`, `<<1, 3>>`},
		{`Len(<<>>) = 0 /\ Cardinality({1, 1}) = 1`, `TRUE`},
		{`<<1, 2>> = [i \in 1..2 |-> i]`, `TRUE`},
		{`CASE 1 > 2 -> "a" [] 2 > 1 -> "b" [] OTHER -> "c"`, `"b"`},
		{`LET f(x) == x + 1 y == f(1) IN f(y)`, `3`},
		{`LET f[n \in 0..9] == IF n < 2 THEN n ELSE f[n - 1] + f[n - 2] IN f[9]`, `34`},
		{`Twice(Double, 3)`, `12`},
		{`Twice(LAMBDA x : x - 1, 3)`, `1`},
		{`fact[5]`, `120`},
		{`Sum(1..10)`, `55`},
		{`\A x, y \in 1..3 : x + y = y + x`, `TRUE`},
		{`CHOOSE x \in 5..9 : x > 6`, `7`},
		{`5 \in Nat /\ -5 \in Int /\ ~(-5 \in Nat)`, `TRUE`},
		{`<<1, 2>> \in Seq(1..2) /\ <<3>> \notin Seq(1..2)`, `TRUE`},
		{`[i \in 1..30 |-> 1] \in [1..30 -> {1, 2}]`, `TRUE`},
		{`M # C /\ M # "m"`, `TRUE`},
		{`{M} = {C}`, `FALSE`},
		{`1 = "a"`, `x:1:3: cannot compare a number with a string: 1 and "a"`},
		{`<<1, 2>>[3]`, `x:1:9: 3 is not in the domain of <<1, 2>>`},
		{`[a |-> 1].b`, `x:1:10: [a |-> 1] has no field b`},
		{`CHOOSE x \in {} : TRUE`, `x:1:1: CHOOSE: no element of {} satisfies the predicate`},
		{`CASE FALSE -> 1`, `x:1:1: CASE: no guard holds, and there is no OTHER`},
		{`Head(<<>>)`, `x:1:1: Head of an empty sequence`},
		{`2147483647 + 1`, `x:1:12: 2147483647 + 1 overflows TLC's 32 bits`},
		{`1 \div 0`, `x:1:3: division by zero`},
		{`IF 1 THEN 2 ELSE 3`, `x:1:4: expected TRUE or FALSE, found a number: 1`},
		{`\A x \in Nat : x >= 0`, `x:1:10: Nat cannot be enumerated`},
		{`Forever(1)`, `lib.tla:10:15: recursion more than 20000 deep`},
		{`[{1} EXCEPT ![1] = 2]`, `x:1:1: EXCEPT changes a set, which is no function: {1}`},
		{`Assert(FALSE, "no")`, `x:1:1: Assert: "no"`},
		{`ENABLED TRUE`, `x:1:1: ENABLED cannot be evaluated`},
		{`Unknown`, `x:1:1: Unknown is not defined`},
	} {
		e, err := tla.ParseExpr("x", c.src)
		got := ""
		if err == nil {
			var v Value
			if v, err = ev.Eval(e, nil); err == nil {
				got = v.String()
			}
		}
		if err != nil {
			got = err.Error()
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got)\n%s", c.src, d)
		}
	}
}

func TestNewReports(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"A == B\nB == 1", "m.tla:3:6: B is not defined before its use"},
		{"F(x) == x\nA == F(1, 2)", "m.tla:4:6: F takes 1 arguments, not 2"},
		{"ASSUME N > 5", "m.tla:3:10: the assumption does not hold"},
		{"CONSTANT K", "m.tla:3:10: the configuration gives constant K no value"},
		{"A == {x \\in {1} : y}", "m.tla:3:19: y is not defined before its use"},
	} {
		m, err := tla.Parse("m.tla", "---- MODULE m ----\nCONSTANT N\n"+c.body+"\n====")
		if err != nil {
			t.Fatal(err)
		}
		_, err = New(m, map[string]tlccfg.Value{"N": 1})
		if err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.body, err, c.want)
		}
	}
	m, err := tla.Parse("m.tla", "---- MODULE m ----\n====")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(m, map[string]tlccfg.Value{"N": 1}); err == nil || !strings.Contains(err.Error(), "no constant") {
		t.Errorf("superfluous constant: %v", err)
	}
}
