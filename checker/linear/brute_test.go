package linear

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"linearize.example/traces"
)

// The oracle of the property tests: every order of a few operations, tried one by one on a set of rules.

type set map[traces.Rule]bool

func (s set) copy() set {
	c := set{}
	for r := range s {
		c[r] = true
	}
	return c
}

func (s set) any(list []traces.Permission, present bool) bool {
	return slices.ContainsFunc(list, func(p traces.Permission) bool { return s[p.Rule] == present })
}

// answers returns the sets that the operation can lead to with the answer that it got.
func answers(op *traces.Operation, s set, lenient bool) []set {
	if op.Outcome == traces.Pending {
		done := *op
		done.Outcome = traces.Succeeded
		return append(answers(&done, s, lenient), s)
	}
	if op.Outcome == traces.Failed {
		old := identifiedOf(op.Revoked)
		var updated []traces.Permission
		for _, u := range op.Updates {
			if !slices.ContainsFunc(old, func(p traces.Permission) bool { return p.Rule == u.Rule }) {
				updated = append(updated, u.Permission)
			}
		}
		switch {
		case op.Op == traces.AuthorizeSecurityGroupIngress && op.Error == duplicate && !s.any(op.Permissions, true),
			op.Op == traces.RevokeSecurityGroupIngress && op.Error == notFound && !s.any(op.Permissions, false),
			op.Op == traces.ModifySecurityGroupRules && op.Error == duplicate && len(updated) > 0 && !s.any(updated, true),
			op.Op == traces.ModifySecurityGroupRules && op.Error == notFound && len(old) > 0 && !s.any(old, false):
			return nil
		}
		return []set{s}
	}
	n := s.copy()
	switch op.Op {
	case traces.AuthorizeSecurityGroupIngress:
		if s.any(op.Permissions, true) {
			return nil
		}
		for _, p := range op.Permissions {
			n[p.Rule] = true
		}
	case traces.RevokeSecurityGroupIngress:
		if s.any(op.Unknown, true) {
			return nil
		}
		for _, p := range op.Permissions {
			unknown := slices.ContainsFunc(op.Unknown, func(q traces.Permission) bool { return q.Rule == p.Rule })
			if !unknown && !lenient && !s[p.Rule] {
				return nil
			}
			delete(n, p.Rule)
		}
	case traces.ModifySecurityGroupRules:
		for _, r := range op.Revoked {
			if !s[r.Rule] {
				return nil
			}
			delete(n, r.Rule)
		}
		for _, u := range op.Updates {
			if n[u.Rule] {
				return nil
			}
		}
		for _, u := range op.Updates {
			n[u.Rule] = true
		}
	case traces.CreateSecurityGroup, traces.DeleteSecurityGroup:
		return []set{{}}
	case traces.DescribeSecurityGroups:
		if len(op.View) != len(s) || s.any(op.View, false) {
			return nil
		}
	}
	return []set{n}
}

func identifiedOf(rules []traces.IdentifiedPermission) []traces.Permission {
	var list []traces.Permission
	for _, r := range rules {
		list = append(list, r.Permission)
	}
	return list
}

// bruteForce reports whether some order explains all answers, from one of the initial sets.
func bruteForce(ops []traces.Operation, initials []set, lenient bool) bool {
	placed := make([]bool, len(ops))
	var place func(n int, s set) bool
	place = func(n int, s set) bool {
		if n == len(ops) {
			return true
		}
		for i := range ops {
			if placed[i] || ops[i].After >= 0 && !placed[ops[i].After] {
				continue
			}
			late := false
			for j := range ops {
				late = late || !placed[j] && ops[j].Return < ops[i].Call
			}
			if late {
				continue
			}
			placed[i] = true
			for _, next := range answers(&ops[i], s, lenient) {
				if place(n+1, next) {
					placed[i] = false
					return true
				}
			}
			placed[i] = false
		}
		return false
	}
	return slices.ContainsFunc(initials, func(s set) bool { return place(0, s) })
}

func withoutReads(ops []traces.Operation) []traces.Operation {
	blind := slices.Clone(ops)
	for i := range blind {
		if blind[i].Op == traces.DescribeSecurityGroups {
			blind[i].Op, blind[i].Outcome, blind[i].Error = "DescribeVpcs", traces.Failed, "Throttling"
		}
	}
	return blind
}

// mayChange reports whether the operation can add or remove the rule.
func mayChange(op *traces.Operation, p traces.Permission) bool {
	same := func(q traces.Permission) bool { return q.Rule == p.Rule }
	before := slices.ContainsFunc(identifiedOf(op.Revoked), same)
	after := slices.ContainsFunc(op.Updates, func(u traces.RuleUpdate) bool { return same(u.Permission) })
	switch op.Op {
	case traces.CreateSecurityGroup, traces.DeleteSecurityGroup:
		return op.Outcome != traces.Failed
	case traces.DescribeSecurityGroups:
		return false
	}
	return op.Outcome != traces.Failed &&
		(slices.ContainsFunc(op.Permissions, same) && !slices.ContainsFunc(op.Unknown, same) || before != after)
}

// assume adds to what is known that a rule that no operation can change is what the first read shows.
func assume(ops []traces.Operation, rules int, initial Initial) Initial {
	first := -1
	for i, op := range ops {
		if op.Op == traces.DescribeSecurityGroups && (first < 0 || op.Call < ops[first].Call) {
			first = i
		}
	}
	known := Initial{Rules: maps.Clone(initial.Rules), Others: initial.Others}
	for i := range rules {
		p := rule(i)
		if _, explicit := initial.Rules[p.Rule]; explicit || first < 0 ||
			slices.ContainsFunc(ops, func(op traces.Operation) bool { return mayChange(&op, p) }) {
			continue
		}
		known.Rules[p.Rule] = Absent
		if slices.ContainsFunc(ops[first].View, func(q traces.Permission) bool { return q.Rule == p.Rule }) {
			known.Rules[p.Rule] = Present
		}
	}
	return known
}

// initials enumerates the sets that agree with what is known.
func initials(rules int, initial Initial) []set {
	sets := []set{{}}
	for i := range rules {
		p := rule(i)
		presence, ok := initial.Rules[p.Rule]
		if !ok {
			presence = initial.Others
		}
		if presence == Absent {
			continue
		}
		for _, s := range sets {
			with := s.copy()
			with[p.Rule] = true
			if presence == Maybe {
				sets = append(sets, with)
			} else {
				s[p.Rule] = true
			}
		}
	}
	return sets
}

func rule(i int) traces.Permission {
	return traces.Permission{Rule: traces.Rule{Protocol: "tcp", FromPort: int32(i), ToPort: int32(i), Source: "sg-1"}}
}

// randomOps makes a few operations on a few rules: reads to every twelve others. The answers are those of one order, with some changed at random.
func randomOps(rng *rand.Rand, n, rules, reads int) (ops []traces.Operation, initial Initial, lenient bool) {
	initial = Initial{Rules: map[traces.Rule]Presence{}, Others: []Presence{Absent, Absent, Maybe}[rng.IntN(3)]}
	lenient = rng.IntN(6) == 0
	s := set{}
	for i := range rules {
		if p := Presence(rng.IntN(6)); p <= Absent {
			initial.Rules[rule(i).Rule] = p
			if p == Present || p == Maybe && rng.IntN(2) == 0 {
				s[rule(i).Rule] = true
			}
		} else if initial.Others == Maybe && rng.IntN(2) == 0 {
			s[rule(i).Rule] = true
		}
	}
	subset := func() []traces.Permission {
		var list []traces.Permission
		for _, i := range rng.Perm(rules)[:1+rng.IntN(min(rules, 2))] {
			list = append(list, rule(i))
		}
		return list
	}
	wide := 1 + rng.IntN(12)
	at := 0
	var versions []set
	for i := range n {
		at += rng.IntN(4)
		op := traces.Operation{
			ID: fmt.Sprint("op ", i), Process: fmt.Sprint("p", i%3), Outcome: traces.Succeeded, After: -1,
			Call: traces.Instant(max(0, at-rng.IntN(wide))), Return: traces.Instant(at + rng.IntN(wide)),
		}
		switch k := rng.IntN(12 + reads); {
		case k < 5:
			op.Op, op.Permissions = traces.AuthorizeSecurityGroupIngress, subset()
		case k < 10:
			op.Op, op.Permissions = traces.RevokeSecurityGroupIngress, subset()
			if lenient {
				for _, p := range op.Permissions {
					if !s[p.Rule] && rng.IntN(2) == 0 {
						op.Unknown = append(op.Unknown, p)
					}
				}
			}
		case k == 10 && rng.IntN(2) == 0:
			op.Op = traces.ModifySecurityGroupRules
			a, b := rule(rng.IntN(rules)), rule(rng.IntN(rules))
			op.Revoked = []traces.IdentifiedPermission{{ID: "sgr-1", Permission: a}}
			op.Updates = []traces.RuleUpdate{{ID: "sgr-1", Permission: b}}
		case k == 11 && rng.IntN(4) == 0:
			op.Op = []string{traces.CreateSecurityGroup, traces.DeleteSecurityGroup}[rng.IntN(2)]
		default:
			op.Op, op.View = traces.DescribeSecurityGroups, []traces.Permission{}
			seen := s
			if len(versions) > 0 && rng.IntN(4) == 0 {
				seen = versions[rng.IntN(len(versions))]
			}
			for i := range rules {
				if seen[rule(i).Rule] {
					op.View = append(op.View, rule(i))
				}
			}
		}
		versions = append(versions, s)
		switch next := answers(&op, s, lenient); {
		case next != nil:
			s = next[0]
		case op.Op != traces.DescribeSecurityGroups:
			op.Outcome, op.Error = traces.Failed, duplicate
			if op.Op == traces.RevokeSecurityGroupIngress {
				op.Error = notFound
			}
		}
		if op.Op != traces.DescribeSecurityGroups {
			switch rng.IntN(12) {
			case 0:
				op.Outcome, op.Error = traces.Pending, ""
				if rng.IntN(3) > 0 {
					op.Return = traces.Forever
				}
			case 1:
				op.Outcome, op.Error = traces.Failed, []string{duplicate, notFound, "RequestLimitExceeded"}[rng.IntN(3)]
			case 2:
				op.Outcome, op.Error = traces.Succeeded, ""
			}
		}
		if i > 0 && rng.IntN(4) == 0 {
			if a := rng.IntN(i); ops[a].Call <= op.Return {
				op.After = a
			}
		}
		ops = append(ops, op)
	}
	return ops, initial, lenient
}

func show(ops []traces.Operation, initial Initial, lenient bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "initially %v, lenient %v\n", initial, lenient)
	ports := func(list []traces.Permission) (s []string) {
		for _, p := range list {
			s = append(s, fmt.Sprint(p.FromPort))
		}
		return s
	}
	for i, op := range ops {
		fmt.Fprintf(&b, "%d %s %v old %v new %v unknown %v view %v %d %s [%d,%d] after %d\n", i, op.Op, ports(op.Permissions), op.Revoked,
			op.Updates, ports(op.Unknown), ports(op.View), op.Outcome, op.Error, op.Call, op.Return, op.After)
	}
	return b.String()
}
