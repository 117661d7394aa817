package simulate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var near = cmpopts.EquateApprox(0, 5e-5)

// TestShare compares Wilson's interval with published values: 0, 1 and 15 of 148 (R. G. Newcombe, Statistics in Medicine
// 17, 1998, table I) and with its own ends.
func TestShare(t *testing.T) {
	for _, c := range []struct {
		count, of int
		low, high float64
	}{
		{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}, {29, 29, 0.8830, 1}, {0, 0, 0, 1},
	} {
		want := Share{c.count, c.of, c.low, c.high}
		if diff := cmp.Diff(want, NewShare(c.count, c.of), near); diff != "" {
			t.Errorf("%d of %d (-want +got)\n%s", c.count, c.of, diff)
		}
	}
}

// TestSurvival computes the example of Kaplan and Meier's paper: deaths at 0.8, 3.1, 5.4, 9.2 months, losses at 1.0, 2.7,
// 7.0, 12.1.
func TestSurvival(t *testing.T) {
	s := NewSurvival([]Lifetime{{0.8, false}, {1.0, true}, {2.7, true}, {3.1, false}, {5.4, false}, {7.0, true}, {9.2, false}, {12.1, true}})
	want := Survival{Count: 8, Censored: 4, Longest: 12.1,
		Steps: []SurvivalStep{{0.8, 7.0 / 8}, {3.1, 7.0 / 8 * 4 / 5}, {5.4, 7.0 / 8 * 4 / 5 * 3 / 4}, {9.2, 7.0 / 8 * 4 / 5 * 3 / 4 / 2}}}
	if diff := cmp.Diff(want, s, near); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if m, known := s.Quantile(0.5); m != 9.2 || !known {
		t.Errorf("median %v, %v", m, known)
	}
	if m, known := s.Quantile(0.9); m != 12.1 || known {
		t.Errorf("p90 %v, %v: more than is known", m, known)
	}
	if got := s.repaired(5.4); math.Abs(got-0.475) > 1e-9 {
		t.Errorf("within 5.4: %v", got)
	}
}

// TestSurvivalWithoutCensoring: then it is the empirical distribution.
func TestSurvivalWithoutCensoring(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := 1 + r.IntN(30)
		var lives []Lifetime
		var seconds []float64
		for range n {
			x := float64(r.IntN(20))
			lives, seconds = append(lives, Lifetime{Seconds: x}), append(seconds, x)
		}
		slices.Sort(seconds)
		s := NewSurvival(lives)
		for _, p := range []float64{0.1, 0.5, 0.9, 0.99, 1} {
			want := seconds[max(int(math.Ceil(p*float64(n)-1e-9))-1, 0)]
			if got, known := s.Quantile(p); got != want || !known {
				t.Fatalf("%v of %v: %v, %v, want %v", p, seconds, got, known, want)
			}
		}
	}
}
