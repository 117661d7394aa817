//go:build !race

package simulate

// fewer is false without the race detector.
const fewer = false
