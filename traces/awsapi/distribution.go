package awsapi

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// Distribution is a length of time, fixed or random. The zero value is no time.
type Distribution struct {
	kind      string
	low, high time.Duration
}

// Fixed is always d.
func Fixed(d time.Duration) Distribution { return Distribution{"fixed", d, d} }

// Uniform lies between low and high, each as likely.
func Uniform(low, high time.Duration) Distribution { return Distribution{"uniform", low, high} }

// Exponential has a mean, and no memory.
func Exponential(mean time.Duration) Distribution { return Distribution{"exponential", mean, mean} }

// UnmarshalText reads "1.5s", "fixed:1.5s", "uniform:0s-2s" or "exponential:500ms".
func (d *Distribution) UnmarshalText(text []byte) error {
	kind, rest, ok := strings.Cut(string(text), ":")
	if !ok {
		kind, rest = "fixed", kind
	}
	from, to := rest, rest
	if kind == "uniform" {
		if from, to, ok = strings.Cut(rest, "-"); !ok {
			return fmt.Errorf("%q lacks the upper bound, as in uniform:0s-2s", text)
		}
	} else if kind != "fixed" && kind != "exponential" {
		return fmt.Errorf("%q is none of 1.5s, uniform:0s-2s, exponential:500ms", text)
	}
	low, err := time.ParseDuration(from)
	if err != nil {
		return fmt.Errorf("%q: %q is no duration such as 1.5s", text, from)
	}
	high, err := time.ParseDuration(to)
	if err != nil {
		return fmt.Errorf("%q: %q is no duration such as 1.5s", text, to)
	}
	if low < 0 || high < low {
		return fmt.Errorf("%q: it is negative, or its bounds are the wrong way round", text)
	}
	*d = Distribution{kind, low, high}
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (d Distribution) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String is "1.5s", "uniform:0s-2s" or "exponential:500ms".
func (d Distribution) String() string {
	switch d.kind {
	case "uniform":
		return fmt.Sprintf("uniform:%s-%s", d.low, d.high)
	case "exponential":
		return "exponential:" + d.low.String()
	}
	return d.low.String()
}

// IsZero reports whether it is no time, always.
func (d Distribution) IsZero() bool { return d.high == 0 }

// at returns the value below which the share u of all values lies, 0 ≤ u < 1.
func (d Distribution) at(u float64) time.Duration {
	switch d.kind {
	case "uniform":
		return d.low + time.Duration(u*float64(d.high-d.low))
	case "exponential":
		// No draw has more than 53 bits, so that the largest value is 37 means; a mean of 292/37 years may be too much.
		return time.Duration(min(-math.Log1p(-u)*float64(d.low), math.MaxInt64/2))
	}
	return d.low
}

// ReadLag says how long after a change describes may still not show it, by the kind of the change: authorize, revoke,
// modify, descriptions, create, delete, tags, targets. The kind "*" stands for those that are not named.
type ReadLag map[string]Distribution

// UnmarshalText reads one distribution for all kinds, "1.5s", or several kinds: "revoke=1.5s,authorize=uniform:0s-2s".
func (l *ReadLag) UnmarshalText(text []byte) error {
	all := ReadLag{}
	for _, part := range strings.Split(string(text), ",") {
		kind, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			kind, value = "*", kind
		}
		var d Distribution
		if err := d.UnmarshalText([]byte(value)); err != nil {
			return err
		}
		if _, twice := all[kind]; twice {
			return fmt.Errorf("%q gives the lag of %s twice", text, kind)
		}
		all[kind] = d
	}
	if err := all.validate(); err != nil {
		return err
	}
	*l = all
	return nil
}

var errKind = errors.New("it is none of authorize, revoke, modify, descriptions, create, delete, tags, targets, *")

func (l ReadLag) validate() error {
	known := map[string]bool{"*": true}
	for _, service := range actions {
		for _, a := range service {
			known[a.lag] = true
		}
	}
	for kind := range l {
		if kind == "" || !known[kind] {
			return fmt.Errorf("readLag.%s: %w", kind, errKind)
		}
	}
	return nil
}

// of returns the distribution of a kind of change.
func (l ReadLag) of(kind string) Distribution {
	if d, ok := l[kind]; ok {
		return d
	}
	return l["*"]
}

// draw returns a number in [0,1) that depends on nothing but its arguments: the seed, what the number is for, and that
// this is the n-th such number. So decisions do not depend on the order in which concurrent calls of other actions come.
func draw(seed uint64, purpose string, n uint64) float64 {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(purpose) {
		h = (h ^ uint64(purpose[i])) * 1099511628211
	}
	return float64(mix(mix(seed^mix(h))+n)>>11) / (1 << 53)
}
