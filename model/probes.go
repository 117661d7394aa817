package model

// The probes of spec.tla. A configuration that names one must violate it: what it denies does happen.

// everyWorker reports whether all workers of all processes satisfy holds.
func (s *System) everyWorker(st *State, holds func(p int, w *Worker[Bits]) bool) bool {
	for p := range s.Procs {
		for w := range s.Workers {
			if !holds(p, &st.Worker[p][w]) {
				return false
			}
		}
	}
	return true
}

// probeLive: no new pod is ever registered.
func (s *System) probeLive(st *State) bool {
	for t := range s.TGBs {
		if st.Born > 1 && st.Pods[t] == st.Born && st.live(t) {
			return false
		}
	}
	return true
}

// probeSettled: nothing settles after a change.
func (s *System) probeSettled(st *State) bool { return st.Born <= 1 || !s.settled(st) }

// probeShrunk: a single rule is always the needed one.
func (s *System) probeShrunk(st *State) bool {
	return st.Rules == s.needs[s.withPods(st)] || st.Rules.Len() != 1
}

// probeTwoRules: no new rule stands beside an old one.
func (s *System) probeTwoRules(st *State) bool { return st.Rules.Len() < 2 }

// probeOldCache: the cache is never old.
func (s *System) probeOldCache(st *State) bool {
	for p := range s.Procs {
		if c := st.Memory[p].Cache; c.Valid && c.Rules != st.Rules {
			return false
		}
	}
	return true
}

// probeOldView: nobody is about to revoke on an old view.
func (s *System) probeOldView(st *State) bool {
	return s.everyWorker(st, func(_ int, w *Worker[Bits]) bool {
		return w.Step != Revoke || w.View.Minus(st.Rules|w.Wanted).Empty()
	})
}

// probeAuthorizeOnly: nobody looks at the group before all permissions are computed.
func (s *System) probeAuthorizeOnly(st *State) bool {
	return s.everyWorker(st, func(p int, w *Worker[Bits]) bool { return w.Step != Fetch || !s.authorizeOnly(st, p) })
}

// probeRevokeFirst: nobody revokes before authorizing.
func (s *System) probeRevokeFirst(st *State) bool {
	return s.everyWorker(st, func(_ int, w *Worker[Bits]) bool { return w.Step != Revoke || !w.RevokeFirst })
}

// probeFailed: no network part fails.
func (s *System) probeFailed(st *State) bool {
	return s.everyWorker(st, func(_ int, w *Worker[Bits]) bool { return !w.Failed })
}

// probeTwoAtOnce: two processes are never about to revoke at the same time.
func (s *System) probeTwoAtOnce(st *State) bool {
	revoking := 0
	for p := range s.Procs {
		for w := range s.Workers {
			if st.Worker[p][w].Step == Revoke {
				revoking |= 1 << p
			}
		}
	}
	return revoking != 1<<maxProcs-1
}

// probeCleaned: the group is never empty because nobody needs anything.
func (s *System) probeCleaned(st *State) bool { return st.Rules != 0 || s.withPods(st) == 1<<s.TGBs-1 }

// probeDrift: no gap outlives a tick.
func (s *System) probeDrift(st *State) bool { return st.Age == 0 }

// probeRepaired: no such gap is ever closed.
func (s *System) probeRepaired(st *State) bool { return st.Age == 0 || s.uncovered(st) }
