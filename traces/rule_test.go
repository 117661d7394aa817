package traces_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
)

func port(n int64) *int64 { return &n }

func TestNewRule(t *testing.T) {
	cases := []struct {
		protocol string
		from, to *int64
		source   string
		want     string // String of the rule, or the error
	}{
		{"tcp", port(80), port(80), "sg-1", "tcp 80-80 from sg-1"},
		{" TCP ", port(80), port(8080), " sg-1 ", "tcp 80-8080 from sg-1"},
		{"6", port(80), port(80), "sg-1", "tcp 80-80 from sg-1"},
		{"17", port(53), port(53), "pl-1", "udp 53-53 from pl-1"},
		{"tcp", nil, nil, "sg-1", "tcp 0-65535 from sg-1"},
		{"udp", port(-1), port(-1), "sg-1", "udp 0-65535 from sg-1"},
		{"tcp", port(0), port(65535), "sg-1", "tcp 0-65535 from sg-1"},
		{"-1", nil, nil, "sg-1", "all traffic from sg-1"},
		{"-1", port(0), port(0), "sg-1", "all traffic from sg-1"},
		{"all", port(7), port(9), "sg-1", "all traffic from sg-1"},
		{"1", port(8), port(-1), "sg-1", "icmp 8--1 from sg-1"},
		{"icmp", nil, nil, "sg-1", "icmp from sg-1"},
		{"58", port(-1), port(-1), "sg-1", "icmpv6 from sg-1"},
		{"50", port(1), port(2), "sg-1", "50 from sg-1"},
		{"tcp", port(80), port(80), "10.1.2.3/8", "tcp 80-80 from 10.0.0.0/8"},
		{"tcp", port(80), port(80), "2001:DB8:0:0::1/32", "tcp 80-80 from 2001:db8::/32"},
		{"", port(80), port(80), "sg-1", "the permission has no protocol"},
		{"tcp", port(80), port(80), " ", "the permission has no source"},
		{"256", nil, nil, "sg-1", `protocol "256" is no IP protocol`},
		{"-2", nil, nil, "sg-1", `protocol "-2" is no IP protocol`},
		{"tcp", port(80), port(1 << 40), "sg-1", "port 1099511627776 is outside of -1..65535"},
		{"tcp", port(-5), port(80), "sg-1", "port -5 is outside of -1..65535"},
		{"tcp", port(80), nil, "sg-1", "the port range 80--1 is incomplete"},
		{"tcp", port(90), port(80), "sg-1", "the port range 90-80 runs backwards"},
	}
	for _, c := range cases {
		r, err := traces.NewRule(c.protocol, c.from, c.to, c.source)
		got := r.String()
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("NewRule(%q, …, %q) is %q, want %q", c.protocol, c.source, got, c.want)
		}
		if err != nil {
			continue
		}
		// A canonical rule is its own canonical form.
		again, err := traces.NewRule(r.Protocol, port(int64(r.FromPort)), port(int64(r.ToPort)), r.Source)
		if diff := cmp.Diff(r, again); err != nil || diff != "" {
			t.Errorf("%s made anew: %v %s", r, err, diff)
		}
	}
}

func TestCanonicalSource(t *testing.T) {
	for source, want := range map[string]string{
		"100.68.0.18/18": "100.68.0.0/18", "0.0.0.0/0": "0.0.0.0/0", "::/0": "::/0", "FE80::A/64": "fe80::/64",
		"sg-0aaa": "sg-0aaa", " pl-1\t": "pl-1", "10.0.0.0/33": "10.0.0.0/33", "": "",
	} {
		if got := traces.CanonicalSource(source); got != want {
			t.Errorf("CanonicalSource(%q) = %q, want %q", source, got, want)
		}
	}
}

func TestCoversAndContains(t *testing.T) {
	tcp := traces.Rule{Protocol: "tcp", FromPort: 80, ToPort: 90, Source: "sg-1"}
	all := traces.Rule{Protocol: "-1", FromPort: -1, ToPort: -1, Source: "sg-1"}
	for _, c := range []struct {
		rule     traces.Rule
		protocol string
		port     int32
		want     bool
	}{
		{tcp, "tcp", 80, true}, {tcp, "tcp", 90, true}, {tcp, "tcp", 79, false}, {tcp, "tcp", 91, false}, {tcp, "udp", 85, false}, {all, "udp", 1, true},
	} {
		if got := c.rule.Covers(c.protocol, c.port); got != c.want {
			t.Errorf("%s covers %s %d: %v", c.rule, c.protocol, c.port, got)
		}
	}
	inner := traces.Rule{Protocol: "tcp", FromPort: 80, ToPort: 85, Source: "sg-1"}
	elsewhere := inner
	elsewhere.Source = "sg-2"
	for _, c := range []struct {
		outer, inner traces.Rule
		want         bool
	}{{tcp, inner, true}, {inner, tcp, false}, {tcp, tcp, true}, {tcp, elsewhere, false}, {all, inner, false}} {
		if got := c.outer.Contains(c.inner); got != c.want {
			t.Errorf("%s contains %s: %v", c.outer, c.inner, got)
		}
	}
}

// TestCompare: the order is total, and equal rules alone compare equal.
func TestCompare(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var list []traces.Rule
	for range 60 {
		list = append(list, randomRule(rng))
	}
	for _, a := range list {
		for _, b := range list {
			if (a.Compare(b) == 0) != (a == b) || sign(a.Compare(b)) != -sign(b.Compare(a)) {
				t.Fatalf("%s and %s compare %d and %d", a, b, a.Compare(b), b.Compare(a))
			}
		}
	}
	slices.SortFunc(list, traces.Rule.Compare)
	for i := range list[2:] {
		if list[i].Compare(list[i+2]) > 0 {
			t.Errorf("%s is behind %s", list[i+2], list[i])
		}
	}
}

func sign(n int) int { return max(-1, min(1, n)) }

func randomRule(rng *rand.Rand) traces.Rule {
	sources := []string{"sg-1", "sg-2", "10.0.0.0/8", "2001:db8::/32", "pl-1", "sg-\"quoted\"<b>"}
	protocols := []string{"tcp", "tcp", "udp", "-1", "icmp", "50"}
	from := int64(rng.IntN(100))
	r, err := traces.NewRule(protocols[rng.IntN(len(protocols))], port(from), port(from+int64(rng.IntN(100))), sources[rng.IntN(len(sources))])
	if err != nil {
		panic(err)
	}
	return r
}
