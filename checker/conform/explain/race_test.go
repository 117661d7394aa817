//go:build race

package explain

// The race detector makes the search ten times slower; with it a sample is tried.
const sampled = true
