package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"linearize.example/traces"
)

func TestDuration(t *testing.T) {
	tests := []struct {
		seconds float64
		want    string
	}{
		{0, "0 s"}, {2387, "39 m 47 s"}, {0.15, "150 ms"}, {0.0238, "23.8 ms"}, {1.5, "1.5 s"}, {59.94, "59.9 s"}, {59.96, "1 m"},
		{0.9996, "1 s"}, {60, "1 m"}, {61.4, "1 m 1 s"}, {3600, "1 h"}, {36000 + 45*60, "10 h 45 m"}, {90061, "1 d 1 h 1 m 1 s"},
		{25e-9, "25 ns"}, {3.5e-6, "3.5 µs"}, {-5, "-5 s"}, {math.NaN(), "unknown"}, {math.Inf(1), "without end"}, {1e11, "without end"},
	}
	for _, tt := range tests {
		if got := duration(tt.seconds); got != tt.want {
			t.Errorf("duration(%v) = %q, want %q", tt.seconds, got, tt.want)
		}
	}
}

func TestClockRange(t *testing.T) {
	tests := []struct {
		r    Range
		want string
	}{
		{span2("09:56:01", "09:56:01"), "09:56:01"},
		{second("09:56:01"), "09:56:00–03"},
		{span2("09:56:59", "09:57:02"), "09:56:59–57:02"},
		{span2("09:59:59", "10:00:01"), "09:59:59–10:00:01"},
		{span2("12:00:00.123456789", "12:00:00.123456789"), "12:00:00.123456789"},
		{span2("12:00:00.123456789", "12:00:00.124956789"), "12:00:00.1234–00.125"},
		{span2("12:00:00.4", "12:00:03.2"), "12:00:00.4–03.2"},
		{span2("12:00:00.44", "12:00:03.21"), "12:00:00.4–03.3"},
		{Range{at("12:00:00"), at("12:00:00").Add(24 * time.Hour)}, "12:00:00–2026-08-29 12:00:00"},
		{Range{traces.Beginning, at("12:00:00")}, "≤ 12:00:00"},
		{Range{at("12:00:00"), traces.Forever}, "≥ 12:00:00"},
		{Range{traces.Beginning, traces.Forever}, "at any time"},
		{Range{traces.Forever, traces.Forever}, "after the capture"},
	}
	for _, tt := range tests {
		if got := clockRange(tt.r); got != tt.want {
			t.Errorf("clockRange(%v) = %q, want %q", tt.r, got, tt.want)
		}
	}
}

// A range is never shown narrower than it is.
func FuzzClockRangeRoundsOutwards(f *testing.F) {
	f.Add(int64(0), int64(1))
	f.Add(int64(1234567891234567), int64(99_999_999))
	f.Fuzz(func(t *testing.T, start, width int64) {
		from := at("00:00:00") + Instant(abs(start)%int64(20*time.Hour))
		to := from + Instant(abs(width)%int64(3*time.Hour))
		s := clockRange(Range{from, to})
		a, b, ok := strings.Cut(s, "–")
		if !ok {
			b = a
		}
		b = a[:max(8-len(strings.SplitN(b, ".", 2)[0]), 0)] + b
		if at(a) > from || at(b) < to {
			t.Errorf("%v to %v is shown as %q", from, to, s)
		}
	})
}

func abs(n int64) int64 {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

func TestClean(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plain ünï 日本", "plain ünï 日本"},
		{"\x1b[31m", `\x1b[31m`},
		{"a\u202eb", `a\u202eb`},
		{"a\nb\tc\rd\x00", `a\nb\tc\rd\x00`},
		{"bad \xff\xc3", `bad \xff\xc3`},
		{"\u009b \u00a0 \u200b \U000e0001", `\u009b \u00a0 \u200b \U000e0001`},
		{"\ufffd", "\ufffd"},
		{strings.Repeat("x", maxString) + "yz", strings.Repeat("x", maxString) + "... (2 bytes more)"},
	}
	for _, tt := range tests {
		if got := clean(tt.in); got != tt.want {
			t.Errorf("clean(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestWrap(t *testing.T) {
	tests := []struct {
		in   string
		n    int
		want []string
	}{
		{"", 10, []string{""}},
		{"one two three", 7, []string{"one two", "three"}},
		{"max 42 m 59 s", 9, []string{"max 42 m", "59 s"}},
		{"arn:aws:iam::1:role/long", 12, []string{"arn:aws:iam:", ":1:role/long"}},
		{"日本語日本語", 4, []string{"日本", "語日", "本語"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, wrap(tt.in, tt.n)); diff != "" {
			t.Errorf("wrap(%q, %d) (-want +got)\n%s", tt.in, tt.n, diff)
		}
	}
}

// Wrapping loses nothing but spaces, and keeps to the width.
func FuzzWrap(f *testing.F) {
	f.Add("revoke tcp 3000-3008 from sg-014f7b94f96fe2d8d", 10)
	f.Fuzz(func(t *testing.T, s string, n int) {
		s, n = clean(s), 2+int(uint(n)%98)
		lines := wrap(s, n)
		strip := func(s string) string { return strings.ReplaceAll(s, " ", "") }
		if got := strip(strings.Join(lines, "")); got != strip(s) {
			t.Fatalf("%q became %q", s, lines)
		}
		for _, l := range lines {
			if displayWidth(l) > n {
				t.Fatalf("%q is wider than %d", l, n)
			}
		}
	})
}
