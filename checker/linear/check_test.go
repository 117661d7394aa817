package linear

import (
	"context"
	"math/rand/v2"
	"testing"
)

// Check agrees with the enumeration of all orders, however finely it cuts.
func TestCheckAgreesWithEnumeration(t *testing.T) {
	const cases = 20000
	count := map[[2]Verdict]int{}
	for seed := range uint64(cases) {
		rng := rand.New(rand.NewPCG(seed, 1))
		rules := 1 + rng.IntN(4)
		ops, initial, lenient := randomOps(rng, 1+rng.IntN(7), rules, 2)
		opts := Options{Lenient: lenient, stretch: 1 + rng.IntN(8), piece: 1 + rng.IntN(4)}
		got := Check(context.Background(), ops, initial, opts)
		known := initials(rules, assume(ops, rules, initial))
		want := [2]Verdict{NotLinearizable, NotLinearizable}
		if _, err := newTimeline(ops); err != nil {
			want = [2]Verdict{}
		} else {
			if bruteForce(withoutReads(ops), known, lenient) {
				want[0] = Linearizable
			}
			if bruteForce(ops, known, lenient) {
				want[1] = Linearizable
			}
		}
		if got.Mutations != want[0] || got.All != want[1] {
			t.Fatalf("seed %d: got %s, %s (%s); want %s, %s\n%s", seed, got.Mutations, got.All, got.Detail, want[0], want[1],
				show(ops, initial, lenient))
		}
		if failed := want[0] == NotLinearizable || want[1] == NotLinearizable; failed != (got.Failed != nil) {
			t.Fatalf("seed %d: the failed stretch is %+v", seed, got.Failed)
		}
		count[want]++
	}
	for _, v := range [][2]Verdict{{Linearizable, Linearizable}, {Linearizable, NotLinearizable}, {NotLinearizable, NotLinearizable}} {
		if count[v] < cases/50 {
			t.Errorf("only %d of %d cases are %s without reads and %s with them", count[v], cases, v[0], v[1])
		}
	}
}
