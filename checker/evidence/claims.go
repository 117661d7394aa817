package evidence

import (
	"errors"
	"fmt"
	"strings"
)

// page is a text with facts. Each fact is checked against the matrix when the page is written, so that
// no sentence outlives the result that it rests on.
type page struct {
	title, intro string
	sections     []section
}

type section struct {
	title, text string
	facts       []fact
}

// fact says that a design in an environment keeps a property, or violates it.
type fact struct {
	design, environment, property string
	holds                         bool
}

func yes(design, environment, property string) fact { return fact{design, environment, property, true} }

func no(design, environment, property string) fact { return fact{design, environment, property, false} }

// write renders a page. Facts that were not explored are left out; one that the matrix contradicts is
// an error.
func (e *Evidence) write(p page) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\nWritten by `linearize evidence` from the [matrix](README.md); do not edit.\n\n%s\n\n", p.title, p.intro)
	var wrong []error
	for _, s := range p.sections {
		fmt.Fprintf(&b, "## %s\n%s\n\n", s.title, s.text)
		var rows [][]string
		for _, f := range s.facts {
			c, explored := e.cell(f.design, f.environment)
			j, judged := c.judgment(f.property)
			if !explored || !judged || j.Verdict == "unknown" {
				continue
			}
			if f.holds != (j.Verdict == "holds") {
				wrong = append(wrong, fmt.Errorf("%q rests on %s in %s: the page has %s holding: %v; the matrix says %s. Rewrite the page",
					s.title, f.design, f.environment, f.property, f.holds, j.Verdict))
			}
			rows = append(rows, []string{"`" + f.design + "`", "`" + f.environment + "`", f.property, j.cell()})
		}
		if len(rows) > 0 {
			table(&b, []string{"design", "environment", "property", "holds"}, rows)
		}
	}
	return b.String(), errors.Join(wrong...)
}

// Properties by their public names.
const (
	neverEmpty = "never-empty"
	covered    = "covered"

	reachable   = "reachable"
	repairBound = "repair-bound"
)

// suggestions answers the four suggestions of the report of 2026-08-28.
var suggestions = page{
	title: "The report's four suggestions",
	intro: `*Enough* means: v3.4.0 with this change alone keeps never-empty when reads may be old. *Necessary* means: no design that keeps
it does without. The root of the incident is a describe that answers with an older version of the rules, as EC2 may. With reads that are
never old, v3.4.0 keeps never-empty already; the leader's change came only later, and one mutex keeps its reconciles apart.`,
	sections: []section{
		{
			title: "1. Invalidate the cache after every change: neither enough nor necessary",
			text: `v3.4.0 does that already. Dropping the entry on errors as well, writing the result through, or keeping no cache at all does
not help: the *answer* is old, not the cache. A design that asks by authorizing keeps the cache, and keeps never-empty.`,
			facts: []fact{
				no("v3.4.0", "old-reads", neverEmpty), no("invalidate-on-error", "old-reads", neverEmpty),
				no("no-cache", "old-reads", neverEmpty), no("write-through", "old-reads", neverEmpty),
				yes("confirm-authorize", "old-reads", neverEmpty),
			},
		},
		{
			title: "2. Never let the rules end up empty: neither enough nor necessary, as a check on what was read",
			text: `The check reads the same old answer, in which a rule that is gone is still there. A second describe just before the revoke may
be old as well. The aim is right. But only a change tells what is true, because only changes are never old.`,
			facts: []fact{
				no("guard-view", "old-reads", neverEmpty), no("guard-reread", "old-reads", neverEmpty),
				yes("confirm-authorize", "old-reads", neverEmpty),
			},
		},
		{
			title: "3. Verify AWS's rules before a binding is skipped: not enough, and not necessary; but necessary for a quick repair after a restart",
			text: `It prevents nothing: the rules are lost by a reconcile that is not skipped. But it moves the repair after a restart from the deferred
queue's 30 to 45 minutes to the first reconcile. Without a restart, the resync alone bounds the repair: nothing looks earlier. Who wants
five minutes must also resync every five minutes.`,
			facts: []fact{
				no("checkpoint-verifies-aws", "old-reads", neverEmpty),
				no("v3.4.0", "restart-30m", repairBound), yes("v3.4.0", "restart-45m", repairBound),
				yes("checkpoint-verifies-aws", "restart-at-once", repairBound), yes("proposed", "restart-at-once", repairBound),
				no("proposed-without-checkpoint-verifies-aws", "restart-at-once", repairBound),
				no("checkpoint-verifies-aws", "steady-10h", repairBound), yes("checkpoint-verifies-aws", "steady-11h", repairBound),
				no("v3.4.0", "sync-5m-bound-5m", repairBound), yes("proposed", "sync-5m-bound-5m", repairBound),
			},
		},
		{
			title: "4. A mutex per security group: neither enough nor necessary",
			text: `v3.4.0 has one mutex for all groups, which is stronger. The calls of the incident were made one after the other. And a mutex per
group that is taken after the wanted rules are aggregated loses what the one mutex gives: two workers then overwrite each other.`,
			facts: []fact{
				no("group-mutex", "old-reads", neverEmpty), yes("v3.4.0", "two-workers", neverEmpty),
				no("group-mutex", "two-workers", neverEmpty),
			},
		},
		{
			title: "What is enough against old reads",
			text: `Authorize every wanted rule before anything is revoked, and take Duplicate as the proof that it is there. This holds with a crash and
with two workers, too. It costs one authorize in each reconcile that is not skipped. Doing so only when, by the view, something is to be
revoked is cheaper and not enough: the old view may show nothing to revoke. Waiting until one's own change is visible is enough as long as
the process lives and gets its answers; after a crash, a lost answer or a slow read it is not.`,
			facts: []fact{
				yes("confirm-authorize", "old-reads", neverEmpty), yes("confirm-authorize", "old-reads", covered),
				yes("confirm-authorize", "older-reads", covered), yes("confirm-authorize", "two-workers-old-reads", covered),
				yes("confirm-authorize", "crash", covered), yes("confirm-authorize", "crash-two-workers", covered),
				yes("confirm-authorize", "several-groups", covered), no("confirm-before-revoke", "old-reads", neverEmpty),
				yes("read-your-writes", "old-reads", neverEmpty), no("read-your-writes", "crash", neverEmpty),
				no("read-your-writes", "lost-answers", neverEmpty), no("read-your-writes", "slow-reads", neverEmpty),
			},
		},
		{
			title: "What is enough in every environment",
			text: `No single change is. The design ` + "`proposed`" + ` makes five, and verifies AWS for the sake of the repair: it confirms by authorizing,
never revokes first when the group is full, registers no new target whose port could not be opened, begins nothing while an earlier call may
still take effect, and revokes only rules with its own source. None can be left out:`,
			facts: []fact{
				no("proposed-without-confirm-authorize", "old-reads", neverEmpty),
				no("proposed-confirm-before-revoke", "old-reads", neverEmpty), no("proposed-read-your-writes", "crash", neverEmpty),
				no("proposed-revoke-first-on-limit", "limit", neverEmpty), no("proposed-without-gate-register", "failures", neverEmpty),
				no("proposed-without-wait-out", "delayed-revokes", neverEmpty), no("proposed-without-wait-out", "leader-change", neverEmpty),
				no("proposed-without-own-rules", "two-clusters", neverEmpty),
				no("proposed-without-checkpoint-verifies-aws", "restart-at-once", repairBound),
			},
		},
		{
			title: "With all of them",
			text:  "The rules are never empty and always cover, in every environment that was explored.",
			facts: []fact{
				yes("proposed", "fresh-reads", covered), yes("proposed", "old-reads", covered), yes("proposed", "older-reads", covered),
				yes("proposed", "two-workers-old-reads", covered), yes("proposed", "several-groups", covered),
				yes("proposed", "default-vpc", covered), yes("proposed", "crash", covered), yes("proposed", "crash-two-workers", covered),
				yes("proposed", "failures", covered), yes("proposed", "lost-answers", covered), yes("proposed", "delayed-revokes", covered),
				yes("proposed", "denied", covered), yes("proposed", "limit", covered), yes("proposed", "leader-change", covered),
				yes("proposed", "leader-change-old-reads", covered), yes("proposed", "two-clusters", covered),
				yes("proposed", "everything", covered), yes("proposed", "everything-twice", covered),
			},
		},
		{
			title: "The workarounds",
			text: `One rule for all ports removes the change of the rule that the incident needs, as long as some pod stays. When all pods go and come
back, it can be lost as well. A rule by somebody else for all ports keeps clients connected: *reachable* holds, while the managed rules are
still lost.`,
			facts: []fact{
				yes("all-ports", "stable-pod", neverEmpty), no("v3.4.0", "stable-pod", neverEmpty), no("all-ports", "old-reads", neverEmpty),
				yes("v3.4.0", "static-rule", reachable), no("v3.4.0", "static-rule", neverEmpty),
			},
		},
	},
}

// claims settles what an earlier prototype said.
var claims = page{
	title: "Claims of the prototype",
	intro: "An earlier prototype of this protocol made the claims below. The specification and the reference implementation settle each.",
	sections: []section{
		{
			title: "With reads that are never old, one process and no errors, v3.4.0 keeps never-empty: confirmed",
			text:  "So do all designs that authorize first, and two workers change nothing.",
			facts: []fact{yes("v3.4.0", "fresh-reads", neverEmpty), yes("v3.4.0", "two-workers", neverEmpty)},
		},
		{
			title: "With old reads it does not, after 13 steps: confirmed",
			text: `The shortest way is a first describe after the revoke that is old, in the very reconcile that wants the rule back. The calls of the
incident, in their order, are possible as well; they take 23 steps: ` + "`linearize explore v3.4.0 --old-reads 1 --through incident`.",
			facts: []fact{no("v3.4.0", "old-reads", neverEmpty)},
		},
		{
			title: "No cache, dropping the entry on errors, or writing through do not help: confirmed",
			text:  "No cache does close the second way, the describe outside the mutex.",
			facts: []fact{
				no("no-cache", "old-reads", neverEmpty), no("invalidate-on-error", "old-reads", neverEmpty), no("write-through", "old-reads", neverEmpty),
				no("v3.4.0", "several-groups", neverEmpty), yes("no-cache", "several-groups", neverEmpty),
			},
		},
		{
			title: "Confirming by authorize helps, against a crash and two workers too: confirmed",
			text:  "It is not enough against failed calls, late revokes, a full group, a second writer or a denied authorize; `proposed` is.",
			facts: []fact{
				yes("confirm-authorize", "old-reads", neverEmpty), yes("confirm-authorize", "crash", neverEmpty),
				yes("confirm-authorize", "crash-two-workers", neverEmpty), no("confirm-authorize", "failures", covered),
				no("confirm-authorize", "delayed-revokes", neverEmpty), no("confirm-authorize", "limit", neverEmpty),
				no("confirm-authorize", "leader-change", neverEmpty), no("confirm-authorize", "two-clusters", neverEmpty),
				no("confirm-authorize", "denied", neverEmpty),
			},
		},
		{
			title: "Revoking first fails by itself, within 5 steps: confirmed",
			text:  "No crash and no error is needed: between the two calls the group is empty.",
			facts: []fact{no("v2.7.2", "fresh-reads", neverEmpty), no("v2.7.2", "crash", neverEmpty)},
		},
		{
			title: "A failed authorize whose targets are registered all the same violates, with reads that are never old: confirmed",
			text: `Covered is violated sooner than never-empty. Not registering what could not be opened helps. v3.4.0 has
one more way, without any fault: a full group makes it revoke first.`,
			facts: []fact{
				no("v3.4.0", "failures", covered), no("v3.4.0", "failures", neverEmpty), yes("gate-register", "failures", covered),
				no("v3.4.0", "limit", neverEmpty),
			},
		},
		{
			title: "Not tried by the prototype: guard-view and guard-reread",
			text:  "Neither keeps never-empty.",
			facts: []fact{no("guard-view", "old-reads", neverEmpty), no("guard-reread", "old-reads", neverEmpty)},
		},
		{
			title: "Not tried by the prototype: read-your-writes",
			text:  "It keeps never-empty with old reads and with two workers, and not with a crash, a lost answer, or reads slower than the cache.",
			facts: []fact{
				yes("read-your-writes", "old-reads", neverEmpty), yes("read-your-writes", "two-workers-old-reads", neverEmpty),
				no("read-your-writes", "crash", neverEmpty), no("read-your-writes", "lost-answers", neverEmpty),
				no("read-your-writes", "slow-reads", neverEmpty),
			},
		},
		{
			title: "Not tried by the prototype: the bounds of repair",
			text: `After a restart with equal checkpoints v3.4.0 repairs within 45 minutes, and not within 30: confirmed. Without a restart, 10 h and 45 min is
not the worst case. The mark "recently processed" can outlive a resync that comes early; then the next one counts. 21 hours hold in the
model, 20 do not. The resync cannot be moved below the deferred queue's delay: a resync every five minutes bounds the repair by 50, not
by five.`,
			facts: []fact{
				yes("v3.4.0", "restart-45m", repairBound), no("v3.4.0", "restart-30m", repairBound), no("v3.4.0", "steady-20h", repairBound),
				yes("v3.4.0", "steady-21h", repairBound), no("v3.4.0", "sync-5m-bound-5m", repairBound), yes("v3.4.0", "sync-5m-bound-50m", repairBound),
			},
		},
	},
}
