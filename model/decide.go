package model

// Step is the position of a worker in a reconcile, as in spec.tla.
type Step uint8

// The steps, in the order of a reconcile.
const (
	Idle          Step = iota // waiting for work
	LookUp                    // about to describe the group for its tags, outside the mutex
	SaveStep                  // has that answer, about to save it
	LockStep                  // waiting for the mutex
	Fetch                     // about to look at the group: in the cache, or by a describe
	ReloadStep                // about to describe, ignoring the cache
	Authorize                 // about to authorize
	SeeGrantStep              // describes until the grant is visible (ReadYourWrites)
	RereadStep                // about to describe before the revoke (GuardReread)
	Revoke                    // about to revoke
	SeeRevokeStep             // describes until the revoke is visible (ReadYourWrites)
	Track                     // about to list the groups with the cluster's tag, once after a start
	UnlockStep                // about to release the mutex
	RegisterStep              // about to deregister and register targets
)

// locked reports whether a worker at this step holds the mutex.
func (s Step) locked() bool { return s >= Fetch && s <= UnlockStep }

// Worker is one reconcile in progress: where it is, and what it has seen.
type Worker[R Rules[R]] struct {
	Step        Step
	TGB         uint8 // number of the binding, from 1; 0: none
	Pod         uint8 // the binding's pod when it was taken up; 0: none
	Wanted      R     // the rules that all bindings want
	View        R     // the managed rules, as last seen
	Retried     bool  // this is the second attempt
	RevokeFirst bool  // revoke, then authorize
	Failed      bool  // the network part failed
}

// Cache is what a process remembers of a group's rules.
type Cache[R Rules[R]] struct {
	Valid bool
	Rules R
}

// Save keeps an answer of EC2 (security_group_manager.go:107).
func (c *Cache[R]) Save(d *Design, view R) {
	if d.UseCache {
		*c = Cache[R]{true, view}
	}
}

// Forget drops the entry.
func (c *Cache[R]) Forget() { *c = Cache[R]{} }

// AfterError is what a failed call does to the cache: nothing in v3.4.0
// (security_group_manager.go:138, 158).
func (c *Cache[R]) AfterError(d *Design) {
	if d.InvalidateOnError {
		c.Forget()
	}
}

// AfterGrant is what a successful authorize does to the cache (security_group_manager.go:145).
func (c *Cache[R]) AfterGrant(d *Design, grant R) {
	if d.WriteThrough && c.Valid {
		c.Rules = c.Rules.Union(grant)
	} else {
		c.Forget()
	}
}

// AfterRemoval is what a successful revoke does to the cache (security_group_manager.go:165).
func (c *Cache[R]) AfterRemoval(d *Design, extra R) {
	if d.WriteThrough && c.Valid {
		c.Rules = c.Rules.Minus(extra)
	} else {
		c.Forget()
	}
}

// Site is what a worker's decisions depend on besides what it has seen itself.
type Site[R Rules[R]] struct {
	Design        *Design
	Foreign       R    // the group's rules with another description: compared, never revoked
	Own           R    // the rules that may be the process's own, by their source
	AuthorizeOnly bool // some binding's permissions have not been computed since the start
	Tagged        bool // the group bears the cluster's tag: the first clean-up finds and reads it
	Tracked       bool // clean-up knows the group
}

// confirms reports whether all that is wanted is authorized, whatever the view says.
func (s *Site[R]) confirms(w *Worker[R]) bool {
	return s.Design.ConfirmAuthorize ||
		s.Design.ConfirmBeforeRevoke && !s.AuthorizeOnly && !s.Extra(w).Empty()
}

// Missing returns what is to be granted (security_group_reconciler.go:105).
func (s *Site[R]) Missing(w *Worker[R]) R {
	if s.confirms(w) {
		return w.Wanted
	}
	return w.Wanted.Minus(w.View.Union(s.Foreign))
}

// Extra returns what is to be revoked (security_group_reconciler.go:98-104).
func (s *Site[R]) Extra(w *Worker[R]) R {
	extra := w.View.Minus(w.Wanted)
	if s.Design.OwnRules {
		return common(extra, s.Own)
	}
	return extra
}

func (s *Site[R]) mustGrant(w *Worker[R]) bool { return !s.Missing(w).Empty() }

func (s *Site[R]) mustRevoke(w *Worker[R]) bool {
	extra := s.Extra(w)
	if extra.Empty() || s.AuthorizeOnly {
		return false
	}
	if s.Design.GuardView && !w.Wanted.Empty() {
		return !w.View.Minus(extra).Union(s.Missing(w)).Empty()
	}
	return true
}

// Locked continues when the mutex is taken and it is known what all bindings want. A group that
// nobody wants is left alone until all permissions are computed, and then cleaned if it is known
// (networking_manager.go:230-247).
func (s *Site[R]) Locked(w *Worker[R], wanted R) {
	w.Wanted = wanted
	switch {
	case !wanted.Empty():
		w.Step = Fetch
	case s.AuthorizeOnly:
		w.Step = UnlockStep
	case s.Tracked:
		w.Step = Fetch
	case s.Tagged:
		w.Step = Track
	default:
		w.Step = UnlockStep
	}
	w.RevokeFirst = s.Design.RevokeFirst && w.Step != UnlockStep
}

// Viewed continues when the group's rules are known, from the cache or from EC2
// (security_group_reconciler.go:97-130).
func (s *Site[R]) Viewed(w *Worker[R], view R) {
	w.View = view
	switch {
	case w.RevokeFirst && s.mustRevoke(w):
		s.toRevoke(w)
	case w.RevokeFirst:
		s.afterRevoke(w)
	case s.mustGrant(w):
		w.Step = Authorize
	default:
		s.afterAuthorize(w)
	}
}

func (s *Site[R]) toRevoke(w *Worker[R]) {
	w.Step = Revoke
	if s.Design.GuardReread {
		w.Step = RereadStep
	}
}

func (s *Site[R]) afterAuthorize(w *Worker[R]) {
	if !w.RevokeFirst && s.mustRevoke(w) {
		s.toRevoke(w)
	} else {
		s.finish(w, false)
	}
}

func (s *Site[R]) afterRevoke(w *Worker[R]) {
	if w.RevokeFirst && s.mustGrant(w) {
		w.Step = Authorize
	} else {
		s.finish(w, false)
	}
}

// finish ends the network part. The groups with the cluster's tag are then listed, once
// (networking_manager.go:243, 507, 590).
func (s *Site[R]) finish(w *Worker[R], failed bool) {
	w.Step = UnlockStep
	if s.Tagged && !w.Wanted.Empty() && !s.AuthorizeOnly && !s.Tracked {
		w.Step = Track
	}
	var none R
	w.View, w.Retried, w.RevokeFirst, w.Failed = none, false, false, failed
}

// tryAgain describes once more, ignoring the cache, and runs the diff again; a second error ends the
// reconcile (security_group_reconciler.go:81-92).
func (s *Site[R]) tryAgain(w *Worker[R], revokeFirst bool) {
	if w.Retried {
		s.finish(w, true)
		return
	}
	var none R
	w.Step, w.View, w.Retried, w.RevokeFirst = ReloadStep, none, true, revokeFirst
}

// DescribeFailed continues when a describe has failed.
func (s *Site[R]) DescribeFailed(w *Worker[R]) { s.finish(w, true) }

// Authorized continues when EC2 has answered an authorize of what is missing
// (security_group_reconciler.go:115-119, 137-153).
func (s *Site[R]) Authorized(w *Worker[R], c *Cache[R], answer Code) {
	switch {
	case answer == OK && s.Design.ReadYourWrites:
		c.AfterGrant(s.Design, s.Missing(w))
		w.Step = SeeGrantStep
	case answer == OK:
		c.AfterGrant(s.Design, s.Missing(w))
		s.afterAuthorize(w)
	case answer == Duplicate && s.confirms(w):
		s.afterAuthorize(w)
	default:
		c.AfterError(s.Design)
		s.refused(w, answer)
	}
}

// Revoked continues when EC2 has answered a revoke of what is extra
// (security_group_reconciler.go:121-127, 137-153).
func (s *Site[R]) Revoked(w *Worker[R], c *Cache[R], answer Code) {
	switch {
	case answer == OK && s.Design.ReadYourWrites:
		c.AfterRemoval(s.Design, s.Extra(w))
		w.Step = SeeRevokeStep
	case answer == OK:
		c.AfterRemoval(s.Design, s.Extra(w))
		s.afterRevoke(w)
	default:
		c.AfterError(s.Design)
		s.refused(w, answer)
	}
}

// refused decides what follows an error of a change.
func (s *Site[R]) refused(w *Worker[R], answer Code) {
	switch {
	case answer == Duplicate || answer == NotFound:
		s.tryAgain(w, s.Design.RevokeFirst)
	case answer == LimitExceeded && s.Design.RevokeFirstOnLimit:
		s.tryAgain(w, true)
	default:
		s.finish(w, true)
	}
}

// SeesGrant reports whether a describe shows the grant, and continues if so.
func (s *Site[R]) SeesGrant(w *Worker[R], view R) bool {
	if !w.Wanted.Minus(view.Union(s.Foreign)).Empty() {
		return false
	}
	s.afterAuthorize(w)
	return true
}

// SeesRevoke reports whether a describe shows the revoke, and continues if so.
func (s *Site[R]) SeesRevoke(w *Worker[R], view R) bool {
	if overlap(view, s.Extra(w)) {
		return false
	}
	s.afterRevoke(w)
	return true
}

// Reread continues when the describe before a revoke is answered: if nothing would be left, the
// answer replaces the view, once.
func (s *Site[R]) Reread(w *Worker[R], view R) {
	switch {
	case w.Wanted.Empty() || !view.Minus(s.Extra(w)).Empty():
		w.Step = Revoke
	case w.Retried:
		s.finish(w, true)
	default:
		w.Retried = true
		s.Viewed(w, view)
	}
}

// MayRegister reports whether a target may be registered after the network part.
func (d *Design) MayRegister(networkFailed bool) bool { return !networkFailed || !d.GateRegister }

// aggregate returns the one set of rules that all bindings together want from a group.
func (d *Design) aggregate(wanted []Permissions) Permissions {
	if d.AllPorts {
		return AllPorts(wanted)
	}
	return Hull(wanted)
}
