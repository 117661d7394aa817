//go:build race

package conform

// The race detector makes exploration ten times slower; with it only graphs of up to so many states are explored.
const maxStates = 5_000
