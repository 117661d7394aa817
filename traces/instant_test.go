package traces_test

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"linearize.example/traces"
)

func TestInstantText(t *testing.T) {
	for _, c := range []struct {
		at   traces.Instant
		want string
	}{
		{traces.Beginning, "beginning"},
		{traces.Forever, "forever"},
		{0, "1970-01-01T00:00:00Z"},
		{traces.At(time.Date(2026, 8, 28, 9, 56, 1, 1000, time.FixedZone("x", 7200))), "2026-08-28T07:56:01.000001Z"},
		{traces.At(time.Date(1500, 1, 1, 0, 0, 0, 0, time.UTC)), "beginning"},
		{traces.At(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)), "forever"},
	} {
		if got := c.at.String(); got != c.want {
			t.Errorf("%d is %q, want %q", int64(c.at), got, c.want)
		}
		text, err := c.at.MarshalText()
		var back traces.Instant
		if err2 := back.UnmarshalText(text); err != nil || err2 != nil || back != c.at {
			t.Errorf("%q reads back as %v (%v, %v)", text, back, err, err2)
		}
	}
	var i traces.Instant
	if err := i.UnmarshalText([]byte("yesterday")); err == nil {
		t.Error("yesterday is a time")
	}
}

// TestInstantArithmetic compares Add and Sub with numbers that cannot overflow.
func TestInstantArithmetic(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	clamp := func(b *big.Int) int64 {
		switch {
		case b.Cmp(big.NewInt(int64(traces.Forever))) > 0:
			return int64(traces.Forever)
		case b.Cmp(big.NewInt(int64(traces.Beginning))) < 0:
			return int64(traces.Beginning)
		}
		return b.Int64()
	}
	edges := []int64{0, 1, -1, int64(traces.Forever), int64(traces.Beginning), int64(traces.Forever) - 1, int64(traces.Beginning) + 1}
	pick := func() int64 {
		if rng.IntN(2) == 0 {
			return edges[rng.IntN(len(edges))]
		}
		return int64(rng.Uint64())
	}
	for range 20000 {
		a, b := pick(), pick()
		want := clamp(new(big.Int).Sub(big.NewInt(a), big.NewInt(b)))
		if got := traces.Instant(a).Sub(traces.Instant(b)); int64(got) != want {
			t.Fatalf("%d - %d = %d, want %d", a, b, got, want)
		}
		want = clamp(new(big.Int).Add(big.NewInt(a), big.NewInt(b)))
		if i := traces.Instant(a); i == traces.Beginning || i == traces.Forever {
			want = a
		}
		if got := traces.Instant(a).Add(time.Duration(b)); int64(got) != want {
			t.Fatalf("%d + %d = %d, want %d", a, b, got, want)
		}
	}
}
