//go:build !race

package explain

const sampled = false
