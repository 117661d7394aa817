package traces

import (
	"math"
	"time"
)

// Instant is a point in time: nanoseconds since the Unix epoch, UTC.
type Instant int64

// Beginning and Forever bound every interval: a call of which nobody knows when it was sent begins at Beginning, a
// call without an answer returns at Forever.
const (
	Beginning Instant = math.MinInt64
	Forever   Instant = math.MaxInt64
)

// At converts a time. Times outside of the range that nanoseconds can express (years 1678 to 2262) are clamped.
func At(t time.Time) Instant {
	switch y := t.Year(); {
	case y < 1678:
		return Beginning
	case y > 2261:
		return Forever
	}
	return Instant(t.UnixNano())
}

// Time converts back, in UTC.
func (i Instant) Time() time.Time { return time.Unix(0, int64(i)).UTC() }

// Add moves an instant by d; Beginning and Forever stay where they are, and nothing overflows.
func (i Instant) Add(d time.Duration) Instant {
	if i == Beginning || i == Forever {
		return i
	}
	s := i + Instant(d)
	switch {
	case d > 0 && s < i:
		return Forever
	case d < 0 && s > i:
		return Beginning
	}
	return s
}

// Sub is the distance from j to i, saturated.
func (i Instant) Sub(j Instant) time.Duration {
	d := i - j
	if (i > j) == (d > 0) || i == j {
		return time.Duration(d)
	}
	if i > j {
		return math.MaxInt64
	}
	return math.MinInt64
}

// String prints RFC 3339 with nanoseconds, or the words "beginning" and "forever".
func (i Instant) String() string {
	switch i {
	case Beginning:
		return "beginning"
	case Forever:
		return "forever"
	}
	return i.Time().Format(time.RFC3339Nano)
}

// MarshalText writes RFC 3339 with nanoseconds.
func (i Instant) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (i *Instant) UnmarshalText(b []byte) error {
	switch string(b) {
	case "beginning":
		*i = Beginning
		return nil
	case "forever":
		*i = Forever
		return nil
	}
	t, err := time.Parse(time.RFC3339Nano, string(b))
	if err != nil {
		return err
	}
	*i = At(t)
	return nil
}
