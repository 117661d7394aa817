package snapshot

import (
	"encoding/json"
	"io"
	"net/netip"
	"slices"
	"strings"

	"linearize.example/traces"
)

// Description is what `aws ec2 describe-security-group-rules` prints, its fields in the CLI's order. A group without any rule
// would not be in it: such groups stand in SecurityGroups, as describe-security-groups has them.
type Description struct {
	SecurityGroups     []EmptyGroup `json:",omitempty"`
	SecurityGroupRules []SecurityGroupRule
}

// EmptyGroup is a group without any rule.
type EmptyGroup struct {
	GroupId                            string
	IpPermissions, IpPermissionsEgress []string
}

// SecurityGroupRule is EC2's (AWS: API_SecurityGroupRule).
type SecurityGroupRule struct {
	SecurityGroupRuleId  string          `json:",omitempty"`
	GroupId              string          `json:",omitempty"`
	GroupOwnerId         string          `json:",omitempty"`
	IsEgress             bool            // always there
	IpProtocol           string          `json:",omitempty"`
	FromPort             *int32          `json:",omitempty"`
	ToPort               *int32          `json:",omitempty"`
	CidrIpv4             string          `json:",omitempty"`
	CidrIpv6             string          `json:",omitempty"`
	PrefixListId         string          `json:",omitempty"`
	ReferencedGroupInfo  *ReferenceGroup `json:",omitempty"`
	Description          *string         `json:",omitempty"`
	Tags                 []Tag           `json:",omitzero"`
	SecurityGroupRuleArn string          `json:",omitempty"`
}

// ReferenceGroup is the group that is a rule's source.
type ReferenceGroup struct {
	GroupId                string `json:",omitempty"`
	PeeringStatus          string `json:",omitempty"`
	UserId                 string `json:",omitempty"`
	VpcId                  string `json:",omitempty"`
	VpcPeeringConnectionId string `json:",omitempty"`
}

// Tag is one tag of a rule.
type Tag struct{ Key, Value string }

// Describe turns snapshots into their description. What a snapshot does not know, such as tags, is left out.
func Describe(snapshots []traces.Snapshot) *Description {
	d := &Description{SecurityGroupRules: []SecurityGroupRule{}}
	for _, s := range snapshots {
		for _, p := range s.Rules {
			r := SecurityGroupRule{SecurityGroupRuleId: p.ID, GroupId: s.Group, IpProtocol: p.Protocol, FromPort: &p.FromPort, ToPort: &p.ToPort}
			if prefix, err := netip.ParsePrefix(p.Source); err == nil && prefix.Addr().Is4() {
				r.CidrIpv4 = p.Source
			} else if err == nil {
				r.CidrIpv6 = p.Source
			} else if strings.HasPrefix(p.Source, "pl-") {
				r.PrefixListId = p.Source
			} else {
				r.ReferencedGroupInfo = &ReferenceGroup{GroupId: p.Source}
			}
			if p.Description != "" {
				r.Description = &p.Description
			}
			d.SecurityGroupRules = append(d.SecurityGroupRules, r)
		}
		d.Name(s.Group)
	}
	return d
}

// Missing returns which of the groups the rules do not name.
func (d *Description) Missing(groups []string) []string {
	return slices.DeleteFunc(slices.Clone(groups), func(id string) bool {
		return slices.ContainsFunc(d.SecurityGroupRules, func(r SecurityGroupRule) bool { return r.GroupId == id })
	})
}

// Name adds the group as one without rules, unless a rule names it.
func (d *Description) Name(group string) {
	if len(d.Missing([]string{group})) > 0 {
		d.SecurityGroups = append(d.SecurityGroups, EmptyGroup{GroupId: group, IpPermissions: []string{}, IpPermissionsEgress: []string{}})
	}
}

// Write writes JSON as the AWS CLI does. ReadSnapshots reads it.
func (d *Description) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "    ")
	return e.Encode(d)
}
