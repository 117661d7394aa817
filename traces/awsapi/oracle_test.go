package awsapi_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
	"linearize.example/traces/awsapi"
)

// oracle is EC2's semantics of rules in the plainest form: a list of rules, and a list of everything that happened.
type oracle struct {
	limit     int
	byDefault bool
	rules     []heldRule
	happened  []happening
}

type heldRule struct {
	id string
	traces.Permission
}

// happening is one change of one rule: what it was from an instant on that describes heed.
type happening struct {
	rule    traces.Rule
	text    string
	present bool
	visible traces.Instant
}

func (o *oracle) index(r traces.Rule) int {
	return slices.IndexFunc(o.rules, func(h heldRule) bool { return h.Rule == r })
}

func (o *oracle) indexID(id string) int {
	return slices.IndexFunc(o.rules, func(h heldRule) bool { return h.id == id })
}

func twice[T comparable](all []T) bool {
	for i := range all {
		if slices.Contains(all[:i], all[i]) {
			return true
		}
	}
	return false
}

func rulesOf(all []traces.Permission) []traces.Rule {
	var rules []traces.Rule
	for _, p := range all {
		rules = append(rules, p.Rule)
	}
	return rules
}

// authorize returns the error's code; without one the caller adds the rules, because only the answer has their ids.
func (o *oracle) authorize(all []traces.Permission) string {
	if twice(rulesOf(all)) {
		return "InvalidParameterValue"
	}
	for _, p := range all {
		if o.index(p.Rule) >= 0 {
			return "InvalidPermission.Duplicate"
		}
	}
	if len(o.rules)+len(all) > o.limit {
		return "RulesPerSecurityGroupLimitExceeded"
	}
	return ""
}

func (o *oracle) add(id string, p traces.Permission, visible traces.Instant) {
	o.rules = append(o.rules, heldRule{id, p})
	o.happened = append(o.happened, happening{p.Rule, p.Description, true, visible})
}

func (o *oracle) remove(i int, visible traces.Instant) {
	o.happened = append(o.happened, happening{rule: o.rules[i].Rule, visible: visible})
	o.rules = slices.Delete(o.rules, i, i+1)
}

func (o *oracle) revoke(all []traces.Permission, visible traces.Instant) (code string, unknown []traces.Rule) {
	if twice(rulesOf(all)) {
		return "InvalidParameterValue", nil
	}
	for _, p := range all {
		if o.index(p.Rule) < 0 {
			if !o.byDefault {
				return "InvalidPermission.NotFound", nil
			}
			unknown = append(unknown, p.Rule)
		}
	}
	for _, p := range all {
		if i := o.index(p.Rule); i >= 0 {
			o.remove(i, visible)
		}
	}
	return "", unknown
}

func (o *oracle) revokeIDs(ids []string, visible traces.Instant) string {
	for _, id := range ids {
		if o.indexID(id) < 0 {
			return "InvalidSecurityGroupRuleId.NotFound"
		}
	}
	for _, id := range ids {
		if i := o.indexID(id); i >= 0 {
			o.remove(i, visible)
		}
	}
	return ""
}

func (o *oracle) modify(ids []string, to []traces.Permission, visible traces.Instant) string {
	after := slices.Clone(o.rules)
	for k, id := range ids {
		if slices.Contains(ids[:k], id) {
			return "InvalidParameterValue"
		}
		i := o.indexID(id)
		if i < 0 {
			return "InvalidSecurityGroupRuleId.NotFound"
		}
		after[i].Permission = to[k]
	}
	var rules []traces.Rule
	for _, h := range after {
		rules = append(rules, h.Rule)
	}
	if twice(rules) {
		return "InvalidPermission.Duplicate"
	}
	for _, id := range ids {
		o.happened = append(o.happened, happening{rule: o.rules[o.indexID(id)].Rule, visible: visible})
	}
	for _, p := range to {
		o.happened = append(o.happened, happening{p.Rule, p.Description, true, visible})
	}
	o.rules = after
	return ""
}

func (o *oracle) describe(all []traces.Permission, visible traces.Instant) string {
	if twice(rulesOf(all)) {
		return "InvalidParameterValue"
	}
	for _, p := range all {
		if o.index(p.Rule) < 0 {
			return "InvalidPermission.NotFound"
		}
	}
	for _, p := range all {
		o.rules[o.index(p.Rule)].Description = p.Description
		o.happened = append(o.happened, happening{p.Rule, p.Description, true, visible})
	}
	return ""
}

// view is what a describe at an instant shows: of each rule the last happening that it heeds.
func (o *oracle) view(at traces.Instant) []traces.Permission {
	shown := map[traces.Rule]happening{}
	for _, h := range o.happened {
		if h.visible <= at {
			shown[h.rule] = h
		}
	}
	all := []traces.Permission{}
	for _, h := range shown {
		if h.present {
			all = append(all, traces.Permission{Rule: h.rule, Description: h.text})
		}
	}
	return sorted(all)
}

func sorted(all []traces.Permission) []traces.Permission {
	slices.SortFunc(all, func(a, b traces.Permission) int { return a.Compare(b.Rule) })
	return all
}

// put writes permissions into a form.
func put(form url.Values, prefix string, p traces.Permission, source string) {
	form.Set(prefix+"IpProtocol", p.Protocol)
	form.Set(prefix+"FromPort", fmt.Sprint(p.FromPort))
	form.Set(prefix+"ToPort", fmt.Sprint(p.ToPort))
	form.Set(prefix+source, p.Source)
}

func putAll(form url.Values, all []traces.Permission) {
	for i, p := range all {
		prefix := fmt.Sprintf("IpPermissions.%d.", i+1)
		put(form, prefix, p, "Groups.1.GroupId")
		form.Set(prefix+"Groups.1.Description", p.Description)
	}
}

// TestAgainstOracle runs random calls and compares every answer, every describe and the rules with the oracle's.
func TestAgainstOracle(t *testing.T) {
	for seed := range uint64(25) {
		againstOracle(t, seed)
	}
}

func againstOracle(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	lag := map[string]time.Duration{"authorize": 0, "revoke": time.Duration(rnd.IntN(3)) * time.Second, "modify": time.Second, "descriptions": 2 * time.Second}
	faults := &awsapi.Faults{RulesPerGroup: 4, ReadLag: awsapi.ReadLag{}}
	for kind, d := range lag {
		faults.ReadLag[kind] = awsapi.Fixed(d)
	}
	c := newClock()
	s, err := awsapi.NewSimulator(load(t, twoGroups), faults, c)
	if err != nil {
		t.Fatal(err)
	}
	s.KeepChanges()
	groups := map[string]*oracle{nodes: {limit: 4}, "sg-0eee": {limit: 4, byDefault: true}}
	sources := map[string]string{nodes: clients, "sg-0eee": "sg-0fff"}
	ids := []string{"sgr-0bad"}
	for step := range 300 {
		group := []string{nodes, "sg-0eee"}[rnd.IntN(2)]
		o := groups[group]
		permissions := make([]traces.Permission, 1+rnd.IntN(2))
		for i := range permissions {
			permissions[i] = traces.Permission{Rule: rule(int32(1+rnd.IntN(5)), sources[group]), Description: []string{managed, "", "other"}[rnd.IntN(3)]}
		}
		some := []string{ids[rnd.IntN(len(ids))], ids[rnd.IntN(len(ids))]}[:1+rnd.IntN(2)]
		visible := func(kind string) traces.Instant { return traces.At(c.now.Add(lag[kind])) }
		form := url.Values{"GroupId": {group}}
		do := func(action string) (*awsapi.Answer, traces.Operation) {
			form.Set("Action", action)
			asked := &awsapi.Call{Service: awsapi.EC2, Action: action, Form: form}
			a, err := s.Do(ctx, asked)
			if err != nil {
				t.Fatal(err)
			}
			return a, awsapi.Operations(asked, a)[0]
		}
		var a *awsapi.Answer
		var op traces.Operation
		var want string
		switch rnd.IntN(7) {
		case 0, 1:
			putAll(form, permissions)
			a, op = do(traces.AuthorizeSecurityGroupIngress)
			if want = o.authorize(permissions); want == "" {
				for i, g := range op.Granted {
					o.add(g.ID, permissions[i], visible("authorize"))
					ids = append(ids, g.ID)
				}
			}
		case 2:
			putAll(form, permissions)
			a, op = do(traces.RevokeSecurityGroupIngress)
			var unknown []traces.Rule
			want, unknown = o.revoke(permissions, visible("revoke"))
			if diff := cmp.Diff(unknown, rulesOf(op.Unknown)); diff != "" {
				t.Errorf("seed %d, step %d, unknown:\n%s", seed, step, diff)
			}
		case 3:
			for i, id := range some {
				form.Set(fmt.Sprintf("SecurityGroupRuleId.%d", i+1), id)
			}
			a, op = do(traces.RevokeSecurityGroupIngress)
			want = o.revokeIDs(some, visible("revoke"))
		case 4:
			some = some[:min(len(some), len(permissions))]
			permissions = permissions[:len(some)]
			for i, id := range some {
				form.Set(fmt.Sprintf("SecurityGroupRule.%d.SecurityGroupRuleId", i+1), id)
				put(form, fmt.Sprintf("SecurityGroupRule.%d.SecurityGroupRule.", i+1), permissions[i], "ReferencedGroupId")
				form.Set(fmt.Sprintf("SecurityGroupRule.%d.SecurityGroupRule.Description", i+1), permissions[i].Description)
			}
			a, op = do(traces.ModifySecurityGroupRules)
			want = o.modify(some, permissions, visible("modify"))
		case 5:
			putAll(form, permissions)
			a, op = do(traces.UpdateSecurityGroupRuleDescriptionsIngress)
			want = o.describe(permissions, visible("descriptions"))
		case 6:
			form = url.Values{"GroupId.1": {group}}
			a, op = do(traces.DescribeSecurityGroups)
			if diff := cmp.Diff(o.view(traces.At(c.now)), sorted(op.View)); diff != "" {
				t.Fatalf("seed %d, step %d, at %v a describe of %s:\n%s", seed, step, c.now, group, diff)
			}
			c.advance(time.Duration(rnd.IntN(4)) * 500 * time.Millisecond)
		}
		if a.Code != want {
			t.Fatalf("seed %d, step %d, %s %v: %q, not %q", seed, step, op.Op, form, a.Code, want)
		}
		var rules []traces.Permission
		for _, h := range o.rules {
			rules = append(rules, h.Permission)
		}
		got := s.Rules(group)
		if diff := cmp.Diff(append([]traces.Permission{}, sorted(rules)...), got); diff != "" {
			t.Fatalf("seed %d, step %d, the rules after %s %v:\n%s", seed, step, op.Op, form, diff)
		}
		changes := s.Changes(group)
		last := changes[len(changes)-1].Rules
		if len(last) != len(got) {
			t.Fatalf("seed %d, step %d: the last change left %v, the rules are %v", seed, step, last, got)
		}
	}
}
