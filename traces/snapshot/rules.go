package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"linearize.example/traces"
)

// SniffSnapshot reports whether a stream that begins with prefix looks like the answer to a describe of groups or rules.
func SniffSnapshot(prefix []byte) bool {
	keys := topKeys(prefix)
	return keys["SecurityGroupRules"] || keys["SecurityGroups"] || keys["SecurityGroupRuleId"] ||
		keys["IpPermissions"] && keys["GroupId"]
}

// answer is what the AWS CLI prints; with --query, only the list.
type answer struct {
	SecurityGroups     []json.RawMessage
	SecurityGroupRules []json.RawMessage
	NextToken          string
}

type describedGroup struct {
	GroupId       string
	IpPermissions json.RawMessage
}

// describedRule is EC2's SecurityGroupRule (AWS: API_SecurityGroupRule).
type describedRule struct {
	SecurityGroupRuleId string
	GroupId             string
	IsEgress            *bool
	IpProtocol          string
	FromPort, ToPort    *int64
	CidrIpv4, CidrIpv6  string
	PrefixListId        string
	ReferencedGroupInfo struct{ GroupId string }
	Description         string
}

// ReadSnapshots reads the ingress rules of every group that the input names, in the order in which it names them:
// answers of describe-security-group-rules and describe-security-groups, several of them too. A group with egress
// rules only is in the result without rules. A page that is not the last one fails with ErrIncomplete, because a rule
// that is only missing from the page would count as absent. Errors name the document and the field.
func ReadSnapshots(r io.Reader) ([]traces.Snapshot, error) {
	docs, err := documents(r)
	if err != nil {
		return nil, err
	}
	s := snapshots{place: map[string]int{}, rules: map[ruleOf]int{}}
	for _, d := range docs {
		if err := s.document(d); err != nil {
			return nil, err
		}
	}
	if len(s.all) == 0 {
		return nil, errors.New("it names no group; where a group has no rules at all, give the answer of " +
			"`aws ec2 describe-security-groups --group-ids`, which names it")
	}
	return s.all, nil
}

type snapshots struct {
	all   []traces.Snapshot
	place map[string]int
	rules map[ruleOf]int
}

type ruleOf struct {
	group string
	rule  traces.Rule
}

func (s *snapshots) document(d document) error {
	var a answer
	if bytes.HasPrefix(bytes.TrimSpace(d.json), []byte("[")) {
		var list []json.RawMessage
		if err := decode(d.name, d.json, &list); err != nil {
			return err
		}
		a.SecurityGroupRules = list
		if len(list) > 0 {
			var group describedGroup
			if json.Unmarshal(list[0], &group) == nil && group.IpPermissions != nil {
				a.SecurityGroups, a.SecurityGroupRules = list, nil
			}
		}
	} else {
		if err := decode(d.name, d.json, &a); err != nil {
			return err
		}
		if a.SecurityGroups == nil && a.SecurityGroupRules == nil {
			return fmt.Errorf("%s: it has neither SecurityGroupRules nor SecurityGroups; expected the JSON of "+
				"`aws ec2 describe-security-group-rules` or `describe-security-groups`", d.name)
		}
	}
	if a.NextToken != "" {
		return fmt.Errorf("%s: %w: NextToken is set; run the command without --max-items and --max-results", d.name, ErrIncomplete)
	}
	for i, raw := range a.SecurityGroups {
		if err := s.group(fmt.Sprintf("%s, SecurityGroups[%d]", d.name, i), raw); err != nil {
			return err
		}
	}
	for i, raw := range a.SecurityGroupRules {
		if err := s.rule(fmt.Sprintf("%s, SecurityGroupRules[%d]", d.name, i), raw); err != nil {
			return err
		}
	}
	return nil
}

func (s *snapshots) group(where string, raw json.RawMessage) error {
	var g describedGroup
	if err := decode(where, raw, &g); err != nil {
		return err
	}
	if g.GroupId == "" {
		return fmt.Errorf("%s.GroupId: is missing", where)
	}
	if g.IpPermissions == nil {
		return fmt.Errorf("%s.IpPermissions: is missing", where)
	}
	permissions, err := traces.DecodePermissions(g.IpPermissions)
	if err != nil {
		return fmt.Errorf("%s.IpPermissions: %w", where, err)
	}
	s.at(g.GroupId)
	for _, p := range permissions {
		s.add(g.GroupId, traces.IdentifiedPermission{Permission: p})
	}
	return nil
}

func (s *snapshots) rule(where string, raw json.RawMessage) error {
	var r describedRule
	if err := decode(where, raw, &r); err != nil {
		return err
	}
	if r.GroupId == "" {
		return fmt.Errorf("%s.GroupId: is missing", where)
	}
	if r.IsEgress == nil {
		return fmt.Errorf("%s.IsEgress: is missing, so that nothing tells whether the rule is for ingress", where)
	}
	s.at(r.GroupId)
	if *r.IsEgress {
		return nil
	}
	var source string
	for _, candidate := range []string{r.ReferencedGroupInfo.GroupId, r.CidrIpv4, r.CidrIpv6, r.PrefixListId} {
		if candidate == "" {
			continue
		}
		if source != "" {
			return fmt.Errorf("%s: it has two sources, %s and %s", where, source, candidate)
		}
		source = candidate
	}
	rule, err := traces.NewRule(r.IpProtocol, r.FromPort, r.ToPort, source)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	s.add(r.GroupId, traces.IdentifiedPermission{
		ID: r.SecurityGroupRuleId, Permission: traces.Permission{Rule: rule, Description: r.Description},
	})
	return nil
}

// at returns the group's place in the result.
func (s *snapshots) at(group string) int {
	i, ok := s.place[group]
	if !ok {
		i = len(s.all)
		s.place[group] = i
		s.all = append(s.all, traces.Snapshot{Group: group})
	}
	return i
}

// add adds a rule once: the two commands' answers may stand side by side, and only one of them has ids.
func (s *snapshots) add(group string, p traces.IdentifiedPermission) {
	snapshot := &s.all[s.at(group)]
	key := ruleOf{group, p.Rule}
	if i, ok := s.rules[key]; ok {
		if snapshot.Rules[i].ID == "" {
			snapshot.Rules[i].ID = p.ID
		}
		return
	}
	s.rules[key] = len(snapshot.Rules)
	snapshot.Rules = append(snapshot.Rules, p)
}
