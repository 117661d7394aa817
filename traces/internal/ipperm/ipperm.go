// Package ipperm reads IpPermission in the JSON that AWS's SDKs and CLI print: capitalised fields, lists that may be
// null (AWS: API_IpPermission). The controller's log and `aws ec2 describe-security-groups` both have this form.
package ipperm

import (
	"encoding/json"
	"fmt"

	"linearize.example/traces"
)

type permission struct {
	IpProtocol       string
	FromPort, ToPort *int64
	UserIdGroupPairs []struct{ GroupId, Description string }
	IpRanges         []struct{ CidrIp, Description string }
	Ipv6Ranges       []struct{ CidrIpv6, Description string }
	PrefixListIds    []struct{ PrefixListId, Description string }
}

// Decode takes the JSON of a list of IpPermission and returns one permission for each protocol, port range and
// source, in the order of the list. Errors name the element and the field.
func Decode(raw json.RawMessage) ([]traces.Permission, error) {
	var list []permission
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("the permissions are no list of IpPermission: %w", err)
	}
	var all []traces.Permission
	for i, p := range list {
		before := len(all)
		add := func(field, source, description string) error {
			rule, err := traces.NewRule(p.IpProtocol, p.FromPort, p.ToPort, source)
			if err != nil {
				return fmt.Errorf("permission %d, %s: %w", i, field, err)
			}
			all = append(all, traces.Permission{Rule: rule, Description: description})
			return nil
		}
		for _, s := range p.UserIdGroupPairs {
			if err := add("UserIdGroupPairs.GroupId", s.GroupId, s.Description); err != nil {
				return nil, err
			}
		}
		for _, s := range p.IpRanges {
			if err := add("IpRanges.CidrIp", s.CidrIp, s.Description); err != nil {
				return nil, err
			}
		}
		for _, s := range p.Ipv6Ranges {
			if err := add("Ipv6Ranges.CidrIpv6", s.CidrIpv6, s.Description); err != nil {
				return nil, err
			}
		}
		for _, s := range p.PrefixListIds {
			if err := add("PrefixListIds.PrefixListId", s.PrefixListId, s.Description); err != nil {
				return nil, err
			}
		}
		if len(all) == before {
			return nil, fmt.Errorf("permission %d names no source", i)
		}
	}
	return all, nil
}
