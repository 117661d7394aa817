// Package explain decides which designs could have produced a capture. For a design in an environment it searches for a
// behaviour of the specification whose visible steps are the capture's operations on one group, with their results, in an
// order that the intervals allow; all other steps are hidden, and the search finds them. The steps are those of the checker
// that is generated from spec.tla (package conform); this package only says which to try, and when.
package explain
