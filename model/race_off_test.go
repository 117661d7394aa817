//go:build !race

package model

// Without -all, a configuration with more states than this is explored up to this many. Fast enough to
// be run each time, and all but the largest are complete.
const (
	quickStates = 120_000
	mostly      = 2 // at least one in so many is explored completely
)
