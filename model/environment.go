package model

// DefaultConstants are those of the environment fresh-reads: one process with one worker, two bindings,
// at most two new pods, reads that are never old, and no fault.
func DefaultConstants(d Design) Constants {
	return Constants{TGBs: 2, Procs: 1, Workers: 1, MaxPods: 3, RuleLimit: 99, GroupTagged: true, Design: d}
}
