package types

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linearize.example/checker/conform/eval"
	"linearize.example/checker/conform/tla"
	"linearize.example/model/tlccfg"
)

// inferred types a module whose only variable is in the given set, with the given definitions of Next and others.
func inferred(t *testing.T, set, defs string) (*Program, error) {
	t.Helper()
	m, err := tla.Parse("m.tla", "---- MODULE m ----\nEXTENDS Integers, Sequences, FiniteSets\nCONSTANTS N, S, None\nVARIABLE v\n"+
		"TypeOK == v \\in "+set+"\nInit == FALSE\n"+defs+"\n====\n")
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]tlccfg.Value{"N": 3, "S": []tlccfg.Value{1, 2}, "None": tlccfg.ModelValue("none")}
	ev, err := eval.New(m, values)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := eval.Select(m, &tlccfg.Config{Init: "Init", Next: "Next", Constants: values, Invariants: []string{"TypeOK"}})
	if err != nil {
		t.Fatal(err)
	}
	return Infer(m, spec, ev, "TypeOK", true)
}

func TestTypesOfVariables(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{`1..N`, "integer"},
		{`BOOLEAN`, "Boolean"},
		{`{"a", "b"}`, "string or model value"},
		{`{None} \cup 0..3`, "model value or integer"},
		{`{None} \cup [a : 0..3]`, "model value or record of a"},
		{`SUBSET S`, "set of integer"},
		{`SUBSET (S \X {TRUE})`, "set of tuple <<integer, Boolean>>"},
		{`[S -> BOOLEAN]`, "function from integer to Boolean"},
		{`[S -> [a : S, b : SUBSET S]]`, "function from integer to record of a, b"},
		{`[{"x", "y"} -> [S -> 1..2]]`, "function from string or model value to function from integer to integer"},
		{`S \X {"a"} \X BOOLEAN`, "tuple <<integer, string or model value, Boolean>>"},
		{`UNION {[1..n -> S] : n \in 0..2}`, "sequence of integer"},
		{`UNION {[1..n -> [a : S]] : n \in 0..2}`, "sequence of record of a"},
		{`Seq(S)`, "sequence of integer"},
		{`[1..2 -> S]`, "function from integer to integer"},
		{`{<<1, 2>>}`, "tuple <<integer, integer>>"},
	} {
		p, err := inferred(t, c.set, "Next == UNCHANGED v")
		if err != nil {
			t.Errorf("%s: %v", c.set, err)
			continue
		}
		if d := cmp.Diff(c.want, p.Vars["v"].String()); d != "" {
			t.Errorf("%s (-want +got)\n%s", c.set, d)
		}
	}
}

// An operator has one instance for each combination of types, and one only.
func TestInstances(t *testing.T) {
	p, err := inferred(t, `[a : 0..3, b : SUBSET S]`, strings.Join([]string{
		`Id(x) == x`,
		`RECURSIVE Sum(_)`,
		`Sum(s) == IF s = {} THEN 0 ELSE LET e == CHOOSE e \in s : TRUE IN e + Sum(s \ {e})`,
		`Next == v' = [a |-> Id(v.a) + Id(1) + Sum(v.b) + Sum({1}), b |-> Id(v.b)]`,
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range p.Instances {
		if len(x.Params) > 0 {
			got = append(got, x.Def.Name+": "+x.Params[0].Type.String()+" -> "+x.Result.String())
		}
	}
	want := []string{"Id: integer -> integer", "Sum: set of integer -> integer", "Id: set of integer -> set of integer"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// A bound name is known to be an argument of a function when all that it can be comes from the function's domain.
func TestTags(t *testing.T) {
	p, err := inferred(t, `[S -> 0..3]`, strings.Join([]string{
		`At(i) == v[i] = 0`,
		`Other(i) == v[i] = 0`,
		`Next == /\ \E i \in S : At(i) /\ \E j \in S \ {1} : At(j) /\ \A k \in {k \in S : k > 1} : At(k)`,
		`        /\ \E i \in S : Other(i) /\ \E j \in 1..2 : Other(j)`,
		`        /\ UNCHANGED v`,
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, x := range p.Instances {
		if len(x.Params) > 0 {
			got[x.Def.Name] = x.Params[0].Tag.Text()
		}
	}
	if d := cmp.Diff(map[string]string{"At": "S", "Other": ""}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// Constant expressions may be a function's domain, and nothing else may.
func TestClosed(t *testing.T) {
	p, err := inferred(t, `0..3`, "Two == 2\nTwice == 2 * v\nNext == UNCHANGED v")
	if err != nil {
		t.Fatal(err)
	}
	for src, want := range map[string]bool{
		`1..N`:                                  true,
		`{x + Two : x \in S}`:                   true,
		`LET k == N f(y) == y + k IN 0..f(1)`:   true,
		`{x \in S : \A y \in S : y <= x}`:       true,
		`[[i \in S |-> 1] EXCEPT ![1] = @ + 1]`: true,
		`1..v`:                                  false,
		`{Twice}`:                               false,
		`{v' : x \in S}`:                        false,
		`{x \in S : x = i}`:                     false,
		`{@}`:                                   false,
	} {
		e, err := tla.ParseExpr("x", src)
		if err != nil {
			t.Fatal(err)
		}
		if got := Closed(p, e, func(name string) bool { return name == "i" }); got != want {
			t.Errorf("%s: %v, want %v", src, got, want)
		}
	}
}
