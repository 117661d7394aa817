package model

import (
	"testing"

	"linearize.example/model/explore"
)

// BenchmarkExplore explores v3.4.0 with two workers and reads old by two changes: a million states.
func BenchmarkExplore(b *testing.B) {
	c := DefaultConstants(designs[0])
	c.Workers, c.MaxLag = 2, 2
	s, err := NewSystem(c)
	if err != nil {
		b.Fatal(err)
	}
	m, err := s.Judge([]string{"TypeOK", "Sane", "NeverEmpty", "Covered", "Tight"})
	if err != nil {
		b.Fatal(err)
	}
	states, bytes := 0, 0.0
	for b.Loop() {
		r, err := explore.Run(b.Context(), m, explore.Options{})
		if err != nil {
			b.Fatal(err)
		}
		states += r.States
		bytes = r.BytesPerState
	}
	b.ReportMetric(float64(states)/b.Elapsed().Seconds(), "states/s")
	b.ReportMetric(bytes, "B/state")
	b.ReportMetric(float64(states)/float64(b.N), "states")
}
