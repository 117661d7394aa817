package simulate

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Share is how many of a number of runs do something, with the bounds within which the true share lies with a
// confidence of 95 %.
type Share struct {
	Count int     `json:"count"`
	Of    int     `json:"of"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// confidence is that of every interval.
const confidence = 0.95

// NewShare computes Wilson's score interval, which keeps its level for few runs and for shares of 0 and 1 (E. B. Wilson,
// JASA 22, 1927; Brown, Cai, DasGupta, Statistical Science 16, 2001).
func NewShare(count, of int) Share {
	s := Share{Count: count, Of: of, High: 1}
	if of == 0 {
		return s
	}
	z := distuv.UnitNormal.Quantile(1 - (1-confidence)/2)
	n, p := float64(of), float64(count)/float64(of)
	centre := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	s.Low, s.High = max(0, centre-half), min(1, centre+half)
	// At the ends the bound is the end itself, which rounding may miss.
	if count == 0 {
		s.Low = 0
	}
	if count == of {
		s.High = 1
	}
	return s
}

// Lifetime is how long a window lasted, in seconds; Censored says that the run ended first, so that it may have lasted longer.
type Lifetime struct {
	Seconds  float64 `json:"seconds"`
	Censored bool    `json:"censored,omitempty"`
}

// Survival is the distribution of lifetimes by the estimator of Kaplan and Meier (JASA 53, 1958), which counts a censored
// lifetime as one that was at risk until it ended, and no longer.
type Survival struct {
	Count, Censored int
	// Steps are the lifetimes that were seen to end, ascending, and the share that lasts longer than each.
	Steps []SurvivalStep
	// Longest is the longest lifetime, censored or not.
	Longest float64
}

// SurvivalStep is one step of the distribution.
type SurvivalStep struct {
	Seconds float64 `json:"seconds"`
	Lasts   float64 `json:"lasts"` // the share of the windows that last longer
}

// NewSurvival estimates the distribution.
func NewSurvival(lifetimes []Lifetime) Survival {
	s := Survival{Count: len(lifetimes)}
	sorted := slices.Clone(lifetimes)
	slices.SortFunc(sorted, func(a, b Lifetime) int {
		switch {
		case a.Seconds < b.Seconds:
			return -1
		case a.Seconds > b.Seconds:
			return 1
		case a.Censored == b.Censored:
			return 0
		case b.Censored: // who is censored at an instant was at risk in it
			return -1
		}
		return 1
	})
	lasts := 1.0
	for i := 0; i < len(sorted); {
		at, ended, next := sorted[i].Seconds, 0, i
		for ; next < len(sorted) && sorted[next].Seconds == at; next++ {
			if sorted[next].Censored {
				s.Censored++
			} else {
				ended++
			}
		}
		if ended > 0 {
			lasts *= 1 - float64(ended)/float64(len(sorted)-i)
			s.Steps = append(s.Steps, SurvivalStep{at, lasts})
		}
		i, s.Longest = next, at
	}
	return s
}

// Quantile is the time within which a share p of the windows ends. known is false where too many are censored to tell; then
// the time is the longest lifetime, and the quantile is that at least.
func (s Survival) Quantile(p float64) (seconds float64, known bool) {
	const rounding = 1e-9
	for _, step := range s.Steps {
		if step.Lasts <= 1-p+rounding {
			return step.Seconds, true
		}
	}
	return s.Longest, false
}

// repaired is the share that ends within a time.
func (s Survival) repaired(seconds float64) float64 {
	share := 0.0
	for _, step := range s.Steps {
		if step.Seconds > seconds {
			break
		}
		share = 1 - step.Lasts
	}
	return share
}
