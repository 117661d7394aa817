package linear

import (
	"slices"

	"linearize.example/traces"
)

// result says what a call's answer tells about the rules.
type result uint8

const (
	takes   result = iota // the call took effect
	refused               // it changed nothing, because at least one of the rules in some was present, or absent
	maybe                 // no answer: it took effect if it could, or never arrived
	shows                 // it showed the rules in view
)

// call is an operation in the form that the models step through. Rules are indexes into the part's rules.
type call struct {
	op     *traces.Operation
	index  int // in the operations that Check was given
	result result
	// absent and present are what must hold for the call to take effect; then the rules in remove go and those in add
	// come.
	absent, present, remove, add []int32
	// wipe: all rules go. forget: the record does not tell what the call did, anything may hold afterwards.
	wipe, forget bool
	// some are the rules of a refused call, of which one had the presence somePresent.
	some        []int32
	somePresent bool
	view        bits

	call, ret traces.Instant // the interval, as After edges narrow it
	after     *call          // the call that must come before it, where the intervals alone do not say so
	// callRank and retRank order all calls and returns of a part: calls before returns at the same instant, since
	// intervals are closed. They are even, so that a cut fits between any two.
	callRank, retRank int64
	// item is this call's index in the run that is being built.
	item int
}

// unanswered reports whether the call may take effect at any later time, or never.
func (c *call) unanswered() bool { return c.result == maybe && c.ret == traces.Forever }

// everything reports whether the call concerns all rules of the group.
func (c *call) everything() bool { return c.wipe || c.forget || c.result == shows }

func (c *call) rules(yield func(int32) bool) {
	for _, list := range [...][]int32{c.absent, c.present, c.remove, c.add, c.some} {
		for _, r := range list {
			if !yield(r) {
				return
			}
		}
	}
}

// settled reports whether the order of this call among others cannot change the state that all of them lead to: it
// proves what each rule that it changes was before, and so the count of such calls tells what the rule is in the end.
func (c *call) settled() bool {
	return c.result != maybe && !c.wipe && !c.forget && len(c.remove) <= len(c.present) && len(c.add) <= len(c.absent)
}

// compiler turns operations into calls.
type compiler struct {
	rules   []traces.Rule
	index   map[traces.Rule]int32
	lenient bool
	views   map[viewKey][]int32
	// lastView is the view before, lastList its rules.
	lastView []traces.Permission
	lastList []int32
	calls    []call  // the rest of a block: many small allocations cost more than few large ones
	numbers  []int32 // likewise
}

// viewKey identifies a view without comparing it: the readers of captures share equal views.
type viewKey struct {
	first *traces.Permission
	n     int
}

func (c *compiler) rule(r traces.Rule) int32 {
	i, ok := c.index[r]
	if !ok {
		i = int32(len(c.rules))
		c.index[r] = i
		c.rules = append(c.rules, r)
	}
	return i
}

// room returns an empty list for up to n rules.
func (c *compiler) room(n int) []int32 {
	if cap(c.numbers)-len(c.numbers) < n {
		c.numbers = make([]int32, 0, max(n, 4096))
	}
	from := len(c.numbers)
	c.numbers = c.numbers[:from+n]
	return c.numbers[from : from : from+n]
}

func (c *compiler) newCall(op *traces.Operation) *call {
	if len(c.calls) == 0 {
		c.calls = make([]call, 256)
	}
	k := &c.calls[0]
	c.calls = c.calls[1:]
	*k = call{op: op}
	return k
}

// insert adds a rule to a list that has no rule twice.
func insert(list []int32, r int32) []int32 {
	if slices.Contains(list, r) {
		return list
	}
	return append(list, r)
}

func (c *compiler) list(permissions []traces.Permission) []int32 {
	list := c.room(len(permissions))
	for i := range permissions {
		list = insert(list, c.rule(permissions[i].Rule))
	}
	return list
}

func (c *compiler) identified(rules []traces.IdentifiedPermission) []int32 {
	list := c.room(len(rules))
	for i := range rules {
		list = insert(list, c.rule(rules[i].Rule))
	}
	return list
}

// compile returns the call, and false for an operation that neither changes the rules nor tells anything of them:
// one that failed for another reason than the presence of a rule, a description's update, a describe whose answer was not
// recorded or that asked for some rules only.
//
// The semantics are EC2's as AWS documents them (API_AuthorizeSecurityGroupIngress, API_RevokeSecurityGroupIngress,
// API_ModifySecurityGroupRules); that an authorize of several rules takes effect as a whole is assumed.
func (c *compiler) compile(op *traces.Operation) (*call, bool) {
	if op.Outcome == traces.Failed && op.Error != duplicate && op.Error != notFound {
		return nil, false
	}
	k := c.newCall(op)
	var ok bool
	switch op.Op {
	case traces.AuthorizeSecurityGroupIngress:
		ok = c.authorize(k)
	case traces.RevokeSecurityGroupIngress:
		ok = c.revoke(k)
	case traces.ModifySecurityGroupRules:
		ok = c.modify(k)
	case traces.CreateSecurityGroup, traces.DeleteSecurityGroup:
		k.wipe, ok = true, op.Outcome != traces.Failed
	case traces.DescribeSecurityGroups, traces.DescribeSecurityGroupRules:
		if op.View == nil || op.Outcome != traces.Succeeded || len(op.RuleIDs) > 0 {
			return nil, false
		}
		k.result = shows
		return k, true
	}
	if !ok {
		return nil, false
	}
	if op.Outcome == traces.Pending {
		k.result = maybe
	}
	return k, true
}

// refuse makes the call one that changed nothing because one of the rules was present, or absent.
func refuse(k *call, some []int32, present bool) bool {
	k.result, k.some, k.somePresent = refused, some, present
	return len(some) > 0 && !k.op.Unclear
}

const (
	duplicate = "InvalidPermission.Duplicate"
	notFound  = "InvalidPermission.NotFound"
)

func (c *compiler) authorize(k *call) bool {
	rules := c.list(k.op.Permissions)
	if len(rules) == 0 {
		rules = c.identified(k.op.Granted)
	}
	switch {
	case k.op.Outcome == traces.Failed:
		return k.op.Error == duplicate && refuse(k, rules, true)
	case k.op.Unclear:
		k.forget = true
	default:
		k.absent, k.add = rules, rules
	}
	return k.forget || len(rules) > 0
}

func (c *compiler) revoke(k *call) bool {
	rules := c.list(k.op.Permissions)
	if len(rules) == 0 {
		rules = c.identified(k.op.Revoked)
	}
	switch {
	case k.op.Outcome == traces.Failed:
		return k.op.Error == notFound && refuse(k, rules, false)
	case k.op.Unclear, len(rules) == 0 && len(k.op.RuleIDs) > 0:
		k.forget = true
		return true
	}
	k.absent = c.list(k.op.Unknown)
	k.remove = slices.DeleteFunc(rules, func(r int32) bool { return slices.Contains(k.absent, r) })
	if !c.lenient {
		k.present = k.remove
	}
	return len(k.remove)+len(k.absent) > 0
}

func (c *compiler) modify(k *call) bool {
	before := c.identified(k.op.Revoked)
	after := c.room(len(k.op.Updates))
	for i := range k.op.Updates {
		after = insert(after, c.rule(k.op.Updates[i].Rule))
	}
	gone := except(before, after)
	come := except(after, before)
	switch {
	case k.op.Outcome == traces.Failed && k.op.Error == duplicate:
		return len(k.op.Revoked) == len(k.op.Updates) && refuse(k, come, true)
	case k.op.Outcome == traces.Failed:
		return k.op.Error == notFound && refuse(k, before, false)
	case k.op.Unclear, len(k.op.Revoked) < len(k.op.Updates):
		k.forget = true
		return true
	}
	k.present, k.absent, k.remove, k.add = before, come, gone, come
	return len(before) > 0
}

func (c *compiler) view(view []traces.Permission) []int32 {
	if len(view) == 0 {
		return nil
	}
	key := viewKey{&view[0], len(view)}
	list, ok := c.views[key]
	if !ok && slices.Equal(view, c.lastView) {
		list, ok = c.lastList, true // most reads show what the one before them showed
		c.views[key] = list
	}
	if !ok {
		list = make([]int32, len(view))
		for i := range view {
			list[i] = c.rule(view[i].Rule)
		}
		c.views[key] = list
	}
	c.lastView, c.lastList = view, list
	return list
}

func except(a, b []int32) []int32 {
	var rest []int32
	for _, r := range a {
		if !slices.Contains(b, r) {
			rest = append(rest, r)
		}
	}
	return rest
}
