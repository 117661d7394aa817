package engine

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linearize.example/checker/conform/eval"
	"linearize.example/checker/conform/tla"
	"linearize.example/model/tlccfg"
)

func TestPutGet(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const words = 5
	w := make([]uint64, words)
	model := make([]bool, 64*words)
	for range 20_000 {
		width := r.IntN(65)
		off := r.IntN(64*(words-1) - width)
		x := r.Uint64()
		if width < 64 {
			x &= 1<<width - 1
		}
		Put(w, off, width, x)
		for i := range width {
			model[off+i] = x>>i&1 != 0
		}
		if got := Get(w, off, width); got != x {
			t.Fatalf("%d bits at %d: wrote %x, read %x", width, off, x, got)
		}
	}
	for i, want := range model {
		if got := w[i/64]>>(i%64)&1 != 0; got != want {
			t.Fatalf("bit %d is %v, want %v", i, got, want)
		}
	}
	Clear(w, 3, 200)
	for i := range model {
		if got := w[i/64]>>(i%64)&1 != 0; got != (model[i] && (i < 3 || i >= 203)) {
			t.Fatalf("bit %d after Clear is %v", i, got)
		}
	}
}

func TestSetsAreSets(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	random := func() (Set, map[int]bool) {
		m := map[int]bool{}
		var s Set
		for range r.IntN(20) {
			i := r.IntN(SetBits)
			m[i] = true
			s = s.Or(Bit(i))
		}
		return s, m
	}
	elems := func(s Set) map[int]bool {
		m := map[int]bool{}
		for s.Some() {
			m[s.Pop()] = true
		}
		return m
	}
	for range 2000 {
		a, ma := random()
		b, mb := random()
		or, and, not, in := map[int]bool{}, map[int]bool{}, map[int]bool{}, true
		for i := range SetBits {
			if ma[i] || mb[i] {
				or[i] = true
			}
			if ma[i] && mb[i] {
				and[i] = true
			}
			if ma[i] && !mb[i] {
				not[i] = true
				in = false
			}
			if a.Has(i) != ma[i] {
				t.Fatalf("Has(%d) of %v", i, ma)
			}
		}
		got := []any{elems(a.Or(b)), elems(a.And(b)), elems(a.AndNot(b)), a.In(b), a.Len()}
		if d := cmp.Diff([]any{or, and, not, in, len(ma)}, got); d != "" {
			t.Fatalf("%v and %v (-want +got)\n%s", ma, mb, d)
		}
		if n := r.IntN(SetBits); a.Some() {
			if up := a.down(min(n, a.min())).up(min(n, a.min())); up != a {
				t.Fatalf("%v shifted by %d and back is %v", a, n, up)
			}
		}
	}
	if a := Bit(5); a.Has(-1) || a.Has(SetBits) {
		t.Error("Has outside of the range")
	}
}

func TestTableIsASet(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	table, seen := newTable(), map[uint64]bool{}
	var all []uint64
	for i := range 200_000 {
		fp := r.Uint64()
		if i%3 == 0 && len(all) > 0 {
			fp = all[r.IntN(len(all))]
		}
		if i%1000 == 0 {
			fp |= 0xff << 56 // crowds one shard
		}
		if got := table.add(fp); got == seen[fp] {
			t.Fatalf("add(%x) is %v", fp, got)
		}
		seen[fp] = true
		all = append(all, fp)
	}
	if perState := float64(table.bytes()) / float64(len(seen)); perState > 16 {
		t.Errorf("%.1f bytes a state, want at most 16", perState)
	}
}

// boxModule exercises every kind of slot.
const boxModule = `---- MODULE box ----
EXTENDS Integers, Sequences
CONSTANTS P, N, None, Big
VARIABLE v
Pair == {<<a, b>> \in (0..N) \X P : a > 0}
TypeOK == v \in [b : BOOLEAN, n : -3..N, s : {"x", "y"}, set : SUBSET Pair, f : [P -> SUBSET (1..N)],
                 q : UNION {[1..k -> P] : k \in 0..3}, o : {None} \cup [a : P, c : Big..Big+1], t : P \X BOOLEAN]
Init == v = [b |-> TRUE, n |-> -2, s |-> "y", set |-> {<<1, CHOOSE p \in P : TRUE>>}, f |-> [p \in P |-> {N}],
             q |-> <<CHOOSE p \in P : TRUE>>, o |-> None, t |-> <<CHOOSE p \in P : TRUE, FALSE>>]
====`

// boxProgram is what the generator would write for boxModule.
func boxProgram() *Program {
	b, i, a := &Type{Kind: Bool}, &Type{Kind: Int}, &Type{Kind: Name}
	pair := &Type{Kind: Tup, Fields: []Field{{Type: i}, {Type: a}}, Universe: true}
	opt := &Type{Kind: Option, Key: a, Elem: &Type{Kind: Rec, Fields: []Field{{"a", a}, {"c", i}}}}
	rec := &Type{Kind: Rec, Fields: []Field{
		{"b", b}, {"f", &Type{Kind: Fun, Key: a, Elem: &Type{Kind: SetOf, Elem: i}}}, {"n", i}, {"o", opt},
		{"q", &Type{Kind: SeqOf, Elem: a}}, {"s", a}, {"set", &Type{Kind: SetOf, Elem: pair}},
		{"t", &Type{Kind: Tup, Fields: []Field{{Type: a}, {Type: b}}}},
	}}
	return &Program{Source: boxModule, File: "box.tla", Invariant: "TypeOK", Init: "Init", Vars: []Field{{"v", rec}},
		Literals: []string{"x", "y"}, Types: map[string]*Type{}, Consts: []Field{{"N", i}}}
}

func boxConstants() map[string]tlccfg.Value {
	return map[string]tlccfg.Value{
		"P": []tlccfg.Value{tlccfg.ModelValue("p"), tlccfg.ModelValue("q"), tlccfg.ModelValue("r")},
		"N": 4, "None": tlccfg.ModelValue("None"), "Big": 1000,
	}
}

func TestPackUnpack(t *testing.T) {
	m, err := NewModel(boxProgram(), boxConstants())
	if err != nil {
		t.Fatal(err)
	}
	initial, err := m.Initial()
	if err != nil {
		t.Fatal(err)
	}
	want := `/\ v = [b |-> TRUE, f |-> (p :> {4} @@ q :> {4} @@ r :> {4}), n |-> -2, o |-> None, q |-> <<p>>, s |-> "y", ` +
		`set |-> {<<1, p>>}, t |-> <<p, FALSE>>]` + "\n"
	if d := cmp.Diff(want, m.Show(initial[0])); d != "" {
		t.Errorf("initial state (-want +got)\n%s", d)
	}
	for _, src := range []string{
		`[b |-> FALSE, n |-> 4, s |-> "x", set |-> Pair, f |-> [p \in P |-> 1..N], q |-> <<CHOOSE p \in P : TRUE>>,
          o |-> [a |-> CHOOSE p \in P : TRUE, c |-> Big + 1], t |-> <<CHOOSE p \in P : TRUE, TRUE>>]`,
		`[b |-> FALSE, n |-> -3, s |-> "x", set |-> {}, f |-> [p \in P |-> {}], q |-> << >>,
          o |-> None, t |-> <<CHOOSE p \in P : TRUE, TRUE>>]`,
	} {
		e, err := tla.ParseExpr("test", src)
		if err != nil {
			t.Fatal(err)
		}
		v, err := m.ev.Eval(e, nil)
		if err != nil {
			t.Fatal(err)
		}
		w := make([]uint64, m.Words)
		m.Pack(m.Slots[0], w, 0, v)
		if got := m.Value(w, "v"); !eval.Equal(v, got) {
			t.Errorf("packed %s\nunpacked %s", v, got)
		}
	}
}

func TestValuesOutsideOfTheTypeInvariant(t *testing.T) {
	for src, want := range map[string]string{
		`n |-> -2`:                       `n |-> 5`,
		`s |-> "y"`:                      `s |-> "z"`,
		`{<<1, CHOOSE p \in P : TRUE>>}`: `{<<0, CHOOSE p \in P : TRUE>>}`,
		`[p \in P |-> {N}]`:              `[p \in P |-> {N + 1}]`,
	} {
		p := boxProgram()
		p.Source = strings.Replace(p.Source, src, want, 1)
		m, err := NewModel(p, boxConstants())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Initial(); err == nil || !strings.Contains(err.Error(), "outside of the type invariant") {
			t.Errorf("%s: %v, want a value outside of the type invariant", want, err)
		}
	}
}

func TestModelReports(t *testing.T) {
	many := func(n int) []tlccfg.Value {
		var vs []tlccfg.Value
		for i := range n {
			vs = append(vs, tlccfg.ModelValue("p"+string(rune('a'+i/26))+string(rune('a'+i%26))))
		}
		return vs
	}
	for _, c := range []struct {
		name, constant string
		value          tlccfg.Value
		want           string
	}{
		{"type", "N", true, "box.tla: N: TRUE is not of the type for which the code was generated"},
		{"keys", "P", many(17), "a function over "},
		{"elements", "N", 60, "sets over 180 different values such as <<1, p>>; generated code holds sets over at most 128"},
		{"atoms", "P", many(130), "more than 128 different strings and model values"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := boxConstants()
			k[c.constant] = c.value
			_, err := NewModel(boxProgram(), k)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestFingerprintOfOneWordIsABijection(t *testing.T) {
	seen := map[uint64]uint64{}
	for i := range uint64(100_000) {
		for _, x := range []uint64{i, i << 40, ^i} {
			fp := fingerprint([]uint64{x})
			if y, ok := seen[fp]; ok && y != x {
				t.Fatalf("%x and %x have the same fingerprint", x, y)
			}
			seen[fp] = x
		}
	}
}

// The arithmetic is the interpreter's.
func TestArithmetic(t *testing.T) {
	m, err := NewModel(boxProgram(), boxConstants())
	if err != nil {
		t.Fatal(err)
	}
	for op, f := range map[string]func(a, b int) int{`\div`: FloorDiv, "%": Mod, "^": Pow} {
		for a := -3; a <= 3; a++ {
			for b := 1; b <= 4; b++ {
				e := &tla.Op{Name: op, Args: []tla.Expr{&tla.Num{Value: a}, &tla.Num{Value: b}}}
				want, err := m.ev.Eval(e, nil)
				if err != nil {
					t.Fatal(err)
				}
				if got := f(a, b); eval.Int(got) != want {
					t.Errorf("%d %s %d is %d, want %s", a, op, b, got, want)
				}
			}
		}
	}
}

// After the first states have grown the buffers, a successor costs no allocation.
func TestOutReusesItsMemory(t *testing.T) {
	o := &Out{Cur: []uint64{1, 2, 3}}
	n := testing.AllocsPerRun(100, func() {
		o.Reset()
		for range 50 {
			Put(o.Begin(), 5, 30, 7)
			o.Commit(1)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations for 50 successors", n)
	}
}
