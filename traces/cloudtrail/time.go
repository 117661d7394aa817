package cloudtrail

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// layouts of times; those without a zone mean UTC, as Lake, Athena and Panther print them.
var layouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04:05.999999999Z07",
	"2006-01-02T15:04:05.999999999 UTC", "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05.999999999 Z07:00",
	"2006-01-02T15:04:05.999999999 Z0700"}

// parseTime reads an eventTime and how exact it is. CloudTrail writes whole seconds; a fraction that is zero was added
// by an export, any other was written by an emulator, which knew it. Numbers count seconds since 1970, or milli-, micro-
// or nanoseconds if they are too large for that.
func parseTime(v any) (at time.Time, resolution time.Duration, err error) {
	s := strings.TrimSpace(text(v))
	if s == "" {
		return time.Time{}, 0, errors.New("is missing")
	}
	if whole, fraction, isNumber := splitNumber(s); isNumber {
		return epoch(whole, fraction)
	}
	t := s
	if len(t) > 10 && t[10] == ' ' {
		t = t[:10] + "T" + strings.TrimLeft(t[11:], " ")
	}
	for _, layout := range layouts {
		if at, err = time.Parse(layout, t); err == nil {
			return at, resolutionOf(at, fractionDigits(t)), nil
		}
	}
	return time.Time{}, 0, fmt.Errorf("%.60q is no time", s)
}

// resolutionOf is the length of the interval that a time stands for, from the number of its fraction's digits.
func resolutionOf(at time.Time, digits int) time.Duration {
	if at.Nanosecond() == 0 {
		return time.Second
	}
	resolution := time.Second
	for ; digits > 0 && resolution > 1; digits-- {
		resolution /= 10
	}
	return resolution
}

func fractionDigits(s string) int {
	i := strings.IndexByte(s, '.')
	if i < 0 {
		return 0
	}
	n := 0
	for _, c := range s[i+1:] {
		if c < '0' || c > '9' {
			break
		}
		n++
	}
	return n
}

// splitNumber splits a plain decimal number of at most 19 digits.
func splitNumber(s string) (whole int64, fraction string, ok bool) {
	digits, fraction, _ := strings.Cut(s, ".")
	if mantissa, exponent, ok := strings.Cut(strings.ToLower(s), "e"); ok && exponent != "" {
		var f float64
		if _, err := fmt.Sscanf(mantissa+"e"+exponent, "%g", &f); err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return 0, "", false
		}
		return int64(f), "", true
	}
	if digits == "" || len(digits) > 19 {
		return 0, "", false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, "", false
		}
		if whole > (math.MaxInt64-int64(c-'0'))/10 {
			return 0, "", false
		}
		whole = whole*10 + int64(c-'0')
	}
	for _, c := range fraction {
		if c < '0' || c > '9' {
			return 0, "", false
		}
	}
	return whole, fraction, true
}

// epoch turns a count since 1970 into a time.
func epoch(whole int64, fraction string) (time.Time, time.Duration, error) {
	unit := time.Second
	switch {
	case whole >= 1e17:
		unit = time.Nanosecond
	case whole >= 1e14:
		unit = time.Microsecond
	case whole >= 1e11:
		unit = time.Millisecond
	}
	perSecond := int64(time.Second / unit)
	at := time.Unix(whole/perSecond, whole%perSecond*int64(unit)).UTC()
	digits := map[time.Duration]int{time.Second: 0, time.Millisecond: 3, time.Microsecond: 6, time.Nanosecond: 9}[unit]
	if unit == time.Second {
		nanos := int64(0)
		for i, scale := 0, int64(1e8); i < len(fraction) && scale > 0; i, scale = i+1, scale/10 {
			nanos += int64(fraction[i]-'0') * scale
		}
		at = at.Add(time.Duration(nanos))
		digits = len(fraction)
	}
	return at, resolutionOf(at, digits), nil
}
