package build

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// head declares an integer, a function, a sequence, a record, a set and a model value or integer; the next state of all but
// x is left to rest.
const head = `---- MODULE m ----
EXTENDS Integers, Sequences, FiniteSets, TLC
CONSTANTS N, S, None
VARIABLES x, f, q, r, s, o
TypeOK == /\ x \in 0..9 /\ f \in [S -> 0..9] /\ q \in UNION {[1..n -> 0..9] : n \in 0..3}
          /\ r \in [a : 0..9, b : BOOLEAN] /\ s \in SUBSET S /\ o \in {None} \cup 0..9
Init == x = 0 /\ f = [i \in S |-> 0] /\ q = << >> /\ r = [a |-> 0, b |-> TRUE] /\ s = {} /\ o = None
rest == UNCHANGED <<f, q, r, s, o>>
`

const (
	firstLine = 9
	config    = "CONSTANTS\n  N = 3\n  S = {1, 2, 3}\n  None = none\nINIT Init\nNEXT Next\nINVARIANT TypeOK\n"
)

// generated writes a module and generates its code.
func generated(t *testing.T, module, config string) (src []byte, notes []string, err error) {
	t.Helper()
	dir := t.TempDir()
	tla, cfg := filepath.Join(dir, "m.tla"), filepath.Join(dir, "m.cfg")
	for path, text := range map[string]string{tla: module, cfg: config} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	src, notes, err = File(tla, cfg, Options{Package: "m", TypeInvariant: "TypeOK"})
	return src, notes, trim(err, dir)
}

// trim takes the folder out of an error's text.
func trim(err error, dir string) error {
	if err == nil {
		return nil
	}
	return trimmed(strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), ""))
}

type trimmed string

func (e trimmed) Error() string { return string(e) }

var (
	fset  = token.NewFileSet()
	check = types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
)

// compile checks the types of generated code.
func compile(t *testing.T, src []byte) {
	t.Helper()
	file, err := parser.ParseFile(fset, "m_gen.go", src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := check.Check("m", fset, []*ast.File{file}, nil); err != nil {
		t.Errorf("the code does not compile: %v", err)
	}
}

// TestLanguage says of each construct whether it is generated, as code that compiles, or refused with its place. What the
// generated code does is compared with TLC in package examples.
func TestLanguage(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		// Values of one number.
		{"arithmetic", `Next == x' = (x * 2 + 7 \div 2 - 2 ^ 2) % 10 /\ rest`, ""},
		{"comparison", `Next == (x < 3 <=> x <= 2) /\ x # 4 /\ x' = -(-x) /\ rest`, ""},
		{"choice of the next value", `Next == x' \in {1, x, x + 1} \cap 0..9 /\ rest`, ""},
		{"a set of numbers", `Next == x' \in {y \in 0..9 : y % 2 = 0} \cup {z + 1 : z \in s} /\ rest`, ""},
		{"a number too large", `Next == x' = 3000000000 /\ rest`, "m.tla:9:14: number 3000000000 is too large; TLC's integers have 32 bits"},
		{"a real number", `Next == x' = 1.5 /\ rest`, `m.tla:9:16: expected a field's name, found "5"`},

		// Choice.
		{"IF", `Next == x' = IF x > 3 THEN 0 ELSE x + 1 /\ rest`, "m.tla:9:37: an integer is used as a Boolean"},
		{"IF in parentheses", `Next == x' = (IF x > 3 THEN 0 ELSE x + 1) /\ rest`, ""},
		{"CASE with OTHER", `Next == x' = (CASE x = 0 -> 1 [] x = 1 -> 2 [] OTHER -> 0) /\ rest`, ""},
		{"CASE without OTHER", `Next == x' = (CASE x < 5 -> 1 [] x >= 5 -> 2) /\ rest`, ""},
		{"CASE of actions", `Next == CASE x < 5 -> x' = 1 /\ rest [] OTHER -> x' = 2 /\ rest`, ""},
		{"arms of two types", `Next == x' = (CASE x < 5 -> 1 [] OTHER -> <<1>>) /\ rest`, "m.tla:9:15: an integer is used as a tuple <<integer>>"},
		{"CHOOSE", `Next == x' = (CHOOSE y \in 0..9 : y > x \/ y = 0) /\ rest`, ""},
		{"CHOOSE of a tuple", `Next == x' = (CHOOSE p \in S \X S : p[1] < p[2])[1] /\ rest`, ""},
		{"unbounded CHOOSE", `Next == x' = (CHOOSE y : y > 1) /\ rest`, `m.tla:9:22: y is unbounded; only "x \in S" is supported`},

		// Functions, records and their changes.
		{"EXCEPT with @", `Next == f' = [f EXCEPT ![1] = @ + 1, ![2] = f[1]] /\ UNCHANGED <<x, q, r, s, o>>`, ""},
		{"EXCEPT of a record", `Next == r' = [r EXCEPT !.a = @ + 1, !.b = ~@] /\ UNCHANGED <<x, f, q, s, o>>`, ""},
		{"EXCEPT of an unknown field", `Next == r' = [r EXCEPT !.c = 1] /\ UNCHANGED <<x, f, q, s, o>>`, "m.tla:9:24: a record of a, b has no field c"},
		{"nested EXCEPT", "g == [i \\in S |-> [a |-> f, b |-> i]]\nNext == x' = [g EXCEPT ![2].a[3] = @ + x].a[3] /\\ rest",
			"m.tla:10:42: a function from integer to record of a, b has no field a"},
		{"nested EXCEPT that is applied", "g == [i \\in S |-> [a |-> f, b |-> i]]\nNext == x' = [g EXCEPT ![2].a[3] = @ + x][2].a[3] /\\ rest", ""},
		{"@ outside", `Next == x' = @ /\ rest`, "m.tla:9:14: @ outside of an EXCEPT"},
		{"a function by another domain", `Next == f' = [i \in 1..2 |-> 0] /\ UNCHANGED <<x, q, r, s, o>>`, ""},
		{"a set of functions as a test", `Next == f \in [S -> {0}] /\ x' = 1 /\ rest`, ""},
		{"a set of functions to choose from", `Next == f' \in [S -> {0, 1}] /\ UNCHANGED <<x, q, r, s, o>>`,
			"m.tla:9:16: a set of functions is supported after \\in only in generated code"},
		{"a function of two arguments", `Next == x' = [i, j \in S |-> i][1, 2] /\ rest`, "m.tla:9:14: a function of several arguments is not supported in generated code; use a tuple"},
		{"a function over a set that changes", `Next == x' = [i \in s |-> 1][1] /\ rest`, "m.tla:9:21: the domain of this function depends on more than constants"},
		{"DOMAIN", `Next == x' = Cardinality(DOMAIN f) + Cardinality(DOMAIN q) /\ rest`, ""},
		{"DOMAIN of a record", `Next == x' = Cardinality(DOMAIN r) /\ rest`, "m.tla:9:26: DOMAIN of a record of a, b is not supported in generated code"},
		{"a set of records", `Next == r' \in [a : {x}, b : BOOLEAN] /\ UNCHANGED <<x, f, q, s, o>>`, ""},
		{":> and @@", `Next == x' = (1 :> 2)[1] /\ rest`, "m.tla:9:17: operator :> is not supported in generated code"},

		// Tuples and sequences.
		{"tuples", `Next == \E p \in S \X S : p[1] < p[2] /\ x' = p[1] + p[2] /\ rest`, ""},
		{"a tuple's pattern", `Next == \E <<a, b>> \in S \X {1} : x' = a + b /\ rest`, ""},
		{"a pattern that does not match", `Next == \E <<a, b, c>> \in S \X S : x' = a /\ rest`, "m.tla:9:12: a pattern of 3 names does not match a tuple <<integer, integer>>"},
		{"beyond a tuple", `Next == x' = <<1, 2>>[3] /\ rest`, "m.tla:9:22: 3 is not in the domain of a tuple of 2"},
		{"Append, Head, Tail, Len", `Next == Len(q) > 0 /\ q' = Append(Tail(q), Head(q)) /\ UNCHANGED <<x, f, r, s, o>>`, ""},
		{"SubSeq and \\o", `Next == Len(q) = 1 /\ q' = SubSeq(q, 1, 1) \o <<x>> /\ UNCHANGED <<x, f, r, s, o>>`, ""},
		{"SelectSeq", `Next == q' = SelectSeq(q, LAMBDA e : e > x) /\ UNCHANGED <<x, f, r, s, o>>`, ""},
		{"SelectSeq by name", "Big(e) == e > 1\nNext == q' = SelectSeq(q, Big) /\\ UNCHANGED <<x, f, r, s, o>>",
			"m.tla:10:14: SelectSeq needs a LAMBDA with one parameter in generated code"},
		{"a sequence of two types", `Next == q' = <<1, "a">> /\ UNCHANGED <<x, f, r, s, o>>`, "m.tla:9:19: a string or model value is used as an integer"},
		{"an element of a number", `Next == x' = x[1] /\ rest`, "m.tla:9:15: an integer is applied, which is no function"},

		// Sets.
		{"Cardinality and SUBSET", `Next == \E t \in SUBSET S : Cardinality(t) = 2 /\ s' = t /\ UNCHANGED <<x, f, q, r, o>>`, ""},
		{"UNION", `Next == s' = UNION {{1}, s, {y \in S : y > x}} /\ UNCHANGED <<x, f, q, r, o>>`, ""},
		{"\\subseteq and \\notin", `Next == s \subseteq {1, 2} /\ 3 \notin s /\ x' = 1 /\ rest`, ""},
		{"a string beside numbers", `Next == x \in {1, "a"} /\ x' = 1 /\ rest`, "m.tla:9:19: TLC cannot compare a string with an integer; use a model value"},
		{"a string where a model value may be", `Next == o # "a" /\ x' = 1 /\ rest`, "m.tla:9:11: TLC cannot compare a string with an integer; use a model value"},
		{"a model value beside strings, and beside numbers", `Next == (x = 1 => None # "a") /\ o \in {1, None} /\ x' = 1 /\ rest`, ""},
		{"a model value beside numbers", `Next == o \in {1, None} /\ x' = 1 /\ rest`, ""},
		{"a variable of sets of sets", "VARIABLE z\nMore == z \\in SUBSET (SUBSET S)\nNext == z' = {{1}} /\\ x' = 1 /\\ rest",
			"m.tla:9:10: TypeOK does not bound variable z by \"z \\in S\""},
		{"Nat cannot be listed", `Next == \E n \in Nat : x' = n /\ rest`, "m.tla:9:18: Nat cannot be used here in generated code"},

		// Operators.
		{"recursion", "RECURSIVE Sum(_)\nSum(t) == IF t = {} THEN 0 ELSE LET e == CHOOSE e \\in t : TRUE IN e + Sum(t \\ {e})\nNext == x' = Sum(s) /\\ rest", ""},
		{"a function definition", "h[i \\in 0..3] == IF i = 0 THEN 1 ELSE 2 * h[i - 1]\nNext == x' = h[3] /\\ rest", ""},
		{"a function definition over the state", "h[i \\in 0..3] == i + x\nNext == x' = h[3] /\\ rest",
			"m.tla:9:1: function h depends on the state; only constant function definitions are supported in generated code, define an operator instead"},
		{"LET with parameters", `Next == LET Add(a, b) == a + b y == Add(x, 1) IN y < 9 /\ x' = Add(y, 0) /\ rest`, ""},
		{"an operator at two types", "Id(v) == v\nNext == x' = Id(x) /\\ r' = Id(r) /\\ UNCHANGED <<f, q, s, o>>", ""},
		{"an operator as an argument", "Ap(F(_), v) == F(v)\nUp(v) == v + 1\nNext == x' = Ap(Up, x) /\\ rest", "m.tla:11:17: an operator as an argument is not supported in generated code"},
		{"an infix operator", "a ++ b == a\nNext == x' = 1 /\\ rest", `m.tla:9:3: expected "==" (infix, prefix and postfix operators cannot be defined), found "+"`},
		{"INSTANCE", "INSTANCE n\nNext == x' = 1 /\\ rest", "m.tla:9:1: INSTANCE is not supported"},
		{"a named instance", "I == INSTANCE n\nNext == x' = 1 /\\ rest", "m.tla:9:6: INSTANCE is not supported"},
		{"an inner module", "---- MODULE n ----\n====\nNext == x' = 1 /\\ rest", `m.tla:9:6: expected a definition or a declaration, found "MODULE"`},

		// Actions.
		{"disjunction", `Next == (x' = 1 \/ x' = 2) /\ rest`, ""},
		{"an assignment under a quantifier", `Next == \E i, j \in S : i < j /\ x' = i + j /\ rest`, ""},
		{"an action for all values", `Next == \A i \in S : x' = i /\ rest`, "m.tla:9:9: an action for all values is not supported in generated code"},
		{"a next value that is read", `Next == x' = x + 1 /\ f' = [f EXCEPT ![1] = x'] /\ UNCHANGED <<q, r, s, o>>`, ""},
		{"a next value that is read too early", `Next == f' = [f EXCEPT ![1] = x'] /\ x' = 1 /\ UNCHANGED <<q, r, s, o>>`, "m.tla:9:32: x' is used before it has a value"},
		{"no next value", `Next == x' = 1 /\ UNCHANGED <<f, q, r, s>>`, "m.tla:4:26: action Next gives variable o no next value"},
		{"a model value or a number", `Next == o' = IF o = None THEN x ELSE None /\ UNCHANGED <<x, f, q, r, s>>`, "m.tla:9:38: a string or model value is used as a Boolean"},
		{"a model value or a number, in parentheses", `Next == o' = (IF o = None THEN x ELSE None) /\ UNCHANGED <<x, f, q, r, s>>`, ""},
		{"UNCHANGED of an expression", `Next == x' = 1 /\ UNCHANGED <<f[1], q, r, s, o>>`, "m.tla:9:32: UNCHANGED of anything but variables is not supported in generated code"},
		{"ENABLED", "A == x' = 1 /\\ rest\nNext == ENABLED A /\\ A", "m.tla:10:9: operator ENABLED is not supported in generated code"},
		{"composition", "A == x' = 1 /\\ rest\nNext == A \\cdot A", `m.tla:10:11: operator \cdot is not supported`},
		{"a temporal formula", `Next == x' = 1 /\ rest /\ <>(x = 1)`, "m.tla:9:27: operator <> is not supported in generated code"},
	} {
		t.Run(c.name, func(t *testing.T) {
			src, _, err := generated(t, head+c.body+"\n====\n", config)
			switch {
			case c.want != "" && err == nil:
				t.Fatalf("generated, want the error %s", c.want)
			case c.want != "":
				if err.Error() != c.want {
					t.Errorf("%v\nwant %s", err, c.want)
				}
				return
			case err != nil:
				t.Fatal(err)
			}
			compile(t, src)
		})
	}
}

// TestNotes: what is in the specification and nothing checks is named.
func TestNotes(t *testing.T) {
	const module = `---- MODULE m ----
EXTENDS Naturals
VARIABLE x
TypeOK == x \in 0..1
Init == x = 0
Next == x' = 1 - x
Spec == Init /\ [][Next]_x /\ WF_x(Next) /\ SF_x(x = 0 /\ Next)
Live == []<>(x = 1)
====
`
	_, notes, err := generated(t, module, "SPECIFICATION Spec\nPROPERTY Live\nINVARIANT TypeOK\n")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"property Live", "m.tla:7:31", "m.tla:7:45"} {
		if len(notes) != 3 || !strings.Contains(notes[i], want) {
			t.Fatalf("notes %q, want three, the %d. with %q", notes, i+1, want)
		}
	}
}

// TestNames: the names of a module are those of Go only where Go allows it.
func TestNames(t *testing.T) {
	const module = `---- MODULE m ----
EXTENDS Naturals
CONSTANTS type, c
VARIABLES func, n, w, state
TypeOK == func \in 0..9 /\ n \in [type -> 0..c] /\ w \in [if : 0..1, go : BOOLEAN] /\ state \in {"a-b", "a b", "1", ""}
Init == func = 0 /\ n = [i \in type |-> 0] /\ w = [if |-> 0, go |-> TRUE] /\ state = "1"
New(var) == func' = var /\ UNCHANGED <<n, w, state>>
Load == \E off \in type : n' = [n EXCEPT ![off] = 0] /\ w' = [w EXCEPT !.if = 1, !.go = ~@] /\ UNCHANGED <<func, state>>
Checker == state' \in {"a-b", "a b", ""} /\ UNCHANGED <<func, n, w>>
Next == (\E range \in 0..9 : New(range)) \/ Load \/ Checker
program == func < 10
====
`
	const config = "CONSTANTS\n  type = {1, 2}\n  c = 3\nINIT Init\nNEXT Next\nINVARIANTS TypeOK program\n"
	src, _, err := generated(t, module, config)
	if err != nil {
		t.Fatal(err)
	}
	compile(t, src)
	if again, _, err := generated(t, module, config); err != nil || string(again) != string(src) {
		t.Errorf("the second time the code differs (%v)", err)
	}
}

// TestPredicates: an invariant outside of the language is an error only where the configuration selects it.
func TestPredicates(t *testing.T) {
	module := head + "Next == x' = 1 /\\ rest\nOdd == ENABLED Next\n====\n"
	if _, _, err := generated(t, module, config); err != nil {
		t.Errorf("not selected: %v", err)
	}
	_, _, err := generated(t, module, config+"INVARIANT Odd\n")
	if want := "m.tla:10:8: operator ENABLED is not supported in generated code"; err == nil || err.Error() != want {
		t.Errorf("selected: %v, want %s", err, want)
	}
}
