//go:build race

package model

// The race detector makes the exploration several times slower; see race_off_test.go.
const (
	quickStates = 4_000
	mostly      = 6
)
