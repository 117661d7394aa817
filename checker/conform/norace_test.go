//go:build !race

package conform

// All graphs that are compared are smaller.
const maxStates = 10_000_000
