//go:build race

package simulate

// fewer: the race detector makes a run some ten times slower, and more seeds show it nothing new.
const fewer = true
