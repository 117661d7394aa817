package linear

import (
	"fmt"
	"slices"
	"strings"

	"linearize.example/traces"
)

// describer puts calls and states into words.
type describer struct {
	p     *part
	names []string
}

// describer names rules by protocol and ports, and by their source as well where the part has several.
func (p *part) describer() describer {
	if p.names != nil {
		return describer{p, p.names}
	}
	d := describer{p, make([]string, len(p.rules))}
	p.names = d.names
	sources := map[string]bool{}
	for _, r := range p.rules {
		sources[r.Source] = true
	}
	for i, r := range p.rules {
		d.names[i] = r.Ports()
		if len(sources) > 1 {
			d.names[i] = r.String()
		}
	}
	return d
}

// most is how many rules of one call or state are named; the others are counted.
const most = 8

func (d describer) list(names []string) string {
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func (d describer) rules(rules []int32) string {
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = d.names[r]
	}
	return d.list(names)
}

// set prints the rules present in the order of traces.Rule, and with a question mark those of which nothing is known.
func (d describer) set(present, known bits) string {
	var rules []int32
	for i := range int32(len(d.p.rules)) {
		if present.has(i) || known != nil && !known.has(i) {
			rules = append(rules, i)
		}
	}
	slices.SortFunc(rules, func(a, b int32) int { return d.p.rules[a].Compare(d.p.rules[b]) })
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = d.names[r]
		if !present.has(r) {
			names[i] += "?"
		}
	}
	return "{" + d.list(names) + "}"
}

func (d describer) state(s *state) string {
	if s == ended {
		return "the end"
	}
	return d.set(s.present, s.known)
}

func (d describer) item(it *item) string {
	if it.end != nil {
		return "the end"
	}
	return d.call(it.call)
}

// call prints what was asked for and the answer: "revoke tcp 3000-3008 → NotFound".
func (d describer) call(c *call) string {
	answer := "ok"
	switch c.result {
	case shows:
		return "describe → " + d.set(c.view, nil)
	case maybe:
		answer = "no answer"
	case refused:
		answer = strings.TrimPrefix(c.op.Error, "InvalidPermission.")
	}
	var verb string
	switch c.op.Op {
	case traces.AuthorizeSecurityGroupIngress:
		verb = "authorize"
	case traces.RevokeSecurityGroupIngress:
		verb = "revoke"
	case traces.ModifySecurityGroupRules:
		verb = "modify"
	case traces.CreateSecurityGroup:
		verb = "create the group"
	case traces.DeleteSecurityGroup:
		verb = "delete the group"
	}
	switch {
	case c.forget:
		verb += " unrecorded rules"
	case c.wipe:
	case c.result == refused:
		verb += " " + d.rules(c.some)
	case c.op.Op == traces.ModifySecurityGroupRules:
		verb += fmt.Sprintf(" %s to %s", d.rules(c.remove), d.rules(c.add))
	case c.op.Op == traces.RevokeSecurityGroupIngress:
		if len(c.absent) > 0 {
			answer += ", unknown: " + d.rules(c.absent)
		}
		verb += " " + d.rules(append(slices.Clone(c.remove), c.absent...))
	default:
		verb += " " + d.rules(c.add)
	}
	return verb + " → " + answer
}

// refusal says why the call cannot take effect in the state with the answer that it got; it is empty where it can.
func (d describer) refusal(c *call, s *state) string {
	it := item{call: c, mark: -1, needs: -1}
	if len(it.next(s, nil)) > 0 {
		return ""
	}
	switch c.result {
	case shows:
		return "the rules are " + d.state(s)
	case refused:
		presence := "absent"
		if !c.somePresent {
			presence = "present"
		}
		return d.rules(c.some) + be(len(c.some)) + presence
	}
	var present, absent []int32
	for _, r := range c.absent {
		if s.present.has(r) {
			present = append(present, r)
		}
	}
	for _, r := range c.present {
		if !s.present.has(r) {
			absent = append(absent, r)
		}
	}
	var why []string
	if len(present) > 0 {
		why = append(why, d.rules(present)+be(len(present))+"present")
	}
	if len(absent) > 0 {
		why = append(why, d.rules(absent)+be(len(absent))+"absent")
	}
	return strings.Join(why, " and ")
}

func be(n int) string {
	if n > 1 {
		return " are "
	}
	return " is "
}
