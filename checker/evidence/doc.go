// Package evidence turns explorations into design-review evidence: the matrix of designs and
// environments, each counterexample as a story and as a sequence diagram, and what each design costs.
package evidence
