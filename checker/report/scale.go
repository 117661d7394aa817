package report

import (
	"math"
	"slices"
	"sort"
	"time"

	"linearize.example/traces"
)

// scale maps instants to columns of a picture, linear between its knots.
type scale struct {
	at []Instant // ascending
	x  []float64
}

// linearScale draws the time from from to to to scale.
func linearScale(from, to Instant, x0, x1 float64) scale {
	if to <= from {
		to = from.Add(time.Millisecond)
	}
	return scale{[]Instant{from, to}, []float64{x0, x1}}
}

// eventScale gives the time between two successive instants a width that grows with its logarithm, so that calls
// milliseconds apart and the quiet hour after them fit into one picture.
func eventScale(instants []Instant, x0, x1 float64) scale {
	at := slices.Clone(instants)
	slices.Sort(at)
	at = slices.Compact(at)
	if len(at) < 2 {
		at = []Instant{at[0].Add(-time.Second), at[0].Add(time.Second)}
	}
	least := math.Inf(1)
	for i := 1; i < len(at); i++ {
		least = math.Min(least, float64(at[i].Sub(at[i-1])))
	}
	weights := make([]float64, len(at))
	sum := 0.0
	for i := 1; i < len(at); i++ {
		weights[i] = 1 + 0.8*math.Min(math.Log10(float64(at[i].Sub(at[i-1]))/least), 6)
		sum += weights[i]
	}
	s := scale{at: at, x: make([]float64, len(at))}
	s.x[0] = x0
	for i := 1; i < len(at); i++ {
		s.x[i] = s.x[i-1] + weights[i]/sum*(x1-x0)
	}
	return s
}

func (s scale) from() Instant { return s.at[0] }
func (s scale) to() Instant   { return s.at[len(s.at)-1] }

// pos is the column of an instant; instants outside of the picture lie on its edges.
func (s scale) pos(i Instant) float64 {
	k := sort.Search(len(s.at), func(k int) bool { return s.at[k] >= i })
	switch {
	case k == 0:
		return s.x[0]
	case k == len(s.at):
		return s.x[k-1]
	}
	part := float64(i.Sub(s.at[k-1])) / float64(s.at[k].Sub(s.at[k-1]))
	return s.x[k-1] + part*(s.x[k]-s.x[k-1])
}

// outside reports whether the time from from to to lies outside of the picture.
func (s scale) outside(from, to Instant) bool { return to < s.from() || from > s.to() }

// tick is a labelled instant on an axis, or, with a gap, the label of the time between two knots.
type tick struct {
	x    float64
	text string
	gap  bool
}

// linearTicks are round instants, at most n.
func linearTicks(s scale, n int) []tick {
	length := s.to().Sub(s.from())
	step := time.Nanosecond
	for _, d := range steps() {
		step = d
		if length/d <= time.Duration(n) {
			break
		}
	}
	var ticks []tick
	for i := floor(s.from()-1, Instant(step)) + Instant(step); i <= s.to() && len(ticks) <= 2*n; i += Instant(step) {
		text := clock(i)
		if step >= 24*time.Hour {
			text = day(i)
		} else if step >= time.Minute {
			text = text[:5]
		}
		ticks = append(ticks, tick{x: s.pos(i), text: text})
	}
	return ticks
}

// steps are the distances that ticks may have, ascending.
func steps() []time.Duration {
	var out []time.Duration
	for unit := time.Nanosecond; unit < time.Second; unit *= 10 {
		out = append(out, unit, 2*unit, 5*unit)
	}
	for _, unit := range []time.Duration{time.Second, time.Minute} {
		for _, n := range []time.Duration{1, 2, 5, 10, 15, 30} {
			out = append(out, n*unit)
		}
	}
	for _, n := range []time.Duration{1, 2, 3, 6, 12, 24, 48, 7 * 24, 30 * 24, 91 * 24, 365 * 24, 10 * 365 * 24, 100 * 365 * 24} {
		out = append(out, n*time.Hour)
	}
	return out
}

// eventTicks label the given instants, as many as fit, the earlier ones in the list first, and the wide gaps between them.
func eventTicks(s scale, wanted []Instant) []tick {
	const room, letter = 12, 6.2
	unit := time.Second
	if length := s.to().Sub(s.from()); length < time.Second {
		unit = time.Microsecond
	} else if length < 10*time.Minute {
		unit = time.Millisecond
	}
	var ticks []tick
	for _, i := range wanted {
		if s.outside(i, i) {
			continue
		}
		x, text := s.pos(i), clock(floor(i, Instant(unit)))
		free := !slices.ContainsFunc(ticks, func(t tick) bool {
			return math.Abs(t.x-x) < letter*float64(len(t.text)+len(text))/2+room
		})
		if free {
			ticks = append(ticks, tick{x: x, text: text})
		}
	}
	for k := 1; k < len(s.at); k++ {
		mid, d := (s.x[k]+s.x[k-1])/2, s.at[k].Sub(s.at[k-1])
		if s.x[k]-s.x[k-1] > 40 && d >= time.Second {
			ticks = append(ticks, tick{x: mid, text: duration(d.Seconds()), gap: true})
		}
	}
	slices.SortStableFunc(ticks, func(a, b tick) int {
		switch {
		case a.x < b.x:
			return -1
		case a.x > b.x:
			return 1
		}
		return 0
	})
	return ticks
}

// bounded reports whether an instant is one, and no bound of all.
func bounded(i Instant) bool { return i != traces.Beginning && i != traces.Forever }
