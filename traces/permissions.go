package traces

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// ipPermission is EC2's IpPermission as the AWS CLI prints it; one of them stands for as many rules as it has sources.
type ipPermission struct {
	IpProtocol       *string
	FromPort         *int64          `json:",omitempty"`
	ToPort           *int64          `json:",omitempty"`
	UserIdGroupPairs []userIDGroup   `json:",omitempty"`
	IpRanges         []ipRange       `json:",omitempty"`
	Ipv6Ranges       []ipv6Range     `json:",omitempty"`
	PrefixListIds    []prefixListRef `json:",omitempty"`
}

type userIDGroup struct {
	GroupId     string `json:",omitempty"`
	GroupName   string `json:",omitempty"`
	Description string `json:",omitempty"`
}

type ipRange struct {
	CidrIp      string
	Description string `json:",omitempty"`
}

type ipv6Range struct {
	CidrIpv6    string
	Description string `json:",omitempty"`
}

type prefixListRef struct {
	PrefixListId string
	Description  string `json:",omitempty"`
}

// DecodePermissions reads a JSON list of EC2's IpPermission, with the field names that the AWS CLI and the SDKs print.
func DecodePermissions(list []byte) ([]Permission, error) {
	var items []ipPermission
	if err := json.Unmarshal(list, &items); err != nil {
		return nil, fmt.Errorf("is no list of IpPermission: %w", err)
	}
	permissions := make([]Permission, 0, len(items))
	for _, item := range items {
		if item.IpProtocol == nil {
			return nil, fmt.Errorf("a permission has no IpProtocol")
		}
		add := func(source, description string) error {
			r, err := NewRule(*item.IpProtocol, item.FromPort, item.ToPort, source)
			if err != nil {
				return err
			}
			permissions = append(permissions, Permission{r, description})
			return nil
		}
		before := len(permissions)
		for _, g := range item.UserIdGroupPairs {
			source := g.GroupId
			if source == "" {
				source = g.GroupName
			}
			if err := add(source, g.Description); err != nil {
				return nil, err
			}
		}
		for _, c := range item.IpRanges {
			if err := add(c.CidrIp, c.Description); err != nil {
				return nil, err
			}
		}
		for _, c := range item.Ipv6Ranges {
			if err := add(c.CidrIpv6, c.Description); err != nil {
				return nil, err
			}
		}
		for _, p := range item.PrefixListIds {
			if err := add(p.PrefixListId, p.Description); err != nil {
				return nil, err
			}
		}
		if len(permissions) == before {
			return nil, fmt.Errorf("a permission (%s) names no source", *item.IpProtocol)
		}
	}
	return permissions, nil
}

// EncodePermissions writes permissions as a JSON list of IpPermission, one for each.
func EncodePermissions(permissions []Permission) []byte { return appendPermissions(nil, permissions) }

func appendPermissions(b []byte, permissions []Permission) []byte {
	b = append(b, '[')
	for i := range permissions {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendPermission(b, &permissions[i])
	}
	return append(b, ']')
}

// appendPermission writes what json.Marshal would write of an ipPermission; a recorder writes many.
func appendPermission(b []byte, p *Permission) []byte {
	b = appendJSONString(append(b, `{"IpProtocol":`...), p.Protocol)
	if p.Protocol != "-1" && (p.FromPort != -1 || p.ToPort != -1) {
		b = strconv.AppendInt(append(b, `,"FromPort":`...), int64(p.FromPort), 10)
		b = strconv.AppendInt(append(b, `,"ToPort":`...), int64(p.ToPort), 10)
	}
	source := `,"UserIdGroupPairs":[{"GroupId":`
	switch {
	case strings.HasPrefix(p.Source, "pl-"):
		source = `,"PrefixListIds":[{"PrefixListId":`
	case strings.Contains(p.Source, "/") && strings.Contains(p.Source, ":"):
		source = `,"Ipv6Ranges":[{"CidrIpv6":`
	case strings.Contains(p.Source, "/"):
		source = `,"IpRanges":[{"CidrIp":`
	}
	b = appendJSONString(append(b, source...), p.Source)
	if p.Description != "" {
		b = appendJSONString(append(b, `,"Description":`...), p.Description)
	}
	return append(b, "}]}"...)
}

// identified is a rule with its id. Without an IpPermission it is a new description for whatever rule has the id.
type identified struct {
	SecurityGroupRuleId string
	IpPermission        json.RawMessage `json:",omitempty"`
	Description         string          `json:",omitempty"`
}

func decodeIdentified(value []byte) ([]IdentifiedPermission, error) {
	var items []identified
	if err := json.Unmarshal(value, &items); err != nil {
		return nil, fmt.Errorf("is no list of rules: %w", err)
	}
	var rules []IdentifiedPermission
	for _, item := range items {
		if item.IpPermission == nil {
			if item.SecurityGroupRuleId == "" {
				return nil, fmt.Errorf("a rule has neither SecurityGroupRuleId nor IpPermission")
			}
			rules = append(rules, IdentifiedPermission{item.SecurityGroupRuleId, Permission{Description: item.Description}})
			continue
		}
		permissions, err := DecodePermissions([]byte("[" + string(item.IpPermission) + "]"))
		if err != nil {
			return nil, err
		}
		for _, p := range permissions {
			rules = append(rules, IdentifiedPermission{item.SecurityGroupRuleId, p})
		}
	}
	return rules, nil
}

func decodeUpdates(value []byte) ([]RuleUpdate, error) {
	rules, err := decodeIdentified(value)
	updates := make([]RuleUpdate, len(rules))
	for i, r := range rules {
		updates[i] = RuleUpdate(r)
	}
	return updates, err
}

func appendIdentified(b []byte, rules []IdentifiedPermission) []byte {
	b = append(b, '[')
	for i := range rules {
		r := &rules[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSONString(append(b, `{"SecurityGroupRuleId":`...), r.ID)
		switch {
		case r.Rule != (Rule{}):
			b = appendPermission(append(b, `,"IpPermission":`...), &r.Permission)
		case r.Description != "":
			b = appendJSONString(append(b, `,"Description":`...), r.Description)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

type target struct {
	ID   string `json:"id"`
	Port int64  `json:"port,omitempty"`
}

func decodeTargets(value []byte) ([]Target, error) {
	var items []target
	if err := json.Unmarshal(value, &items); err != nil {
		return nil, fmt.Errorf("is no list of targets: %w", err)
	}
	targets := make([]Target, len(items))
	for i, t := range items {
		if t.Port < 0 || t.Port > 65535 {
			return nil, fmt.Errorf("port %d is outside of 0..65535", t.Port)
		}
		targets[i] = Target{t.ID, int32(t.Port)}
	}
	return targets, nil
}

// mustMarshal encodes values that cannot fail to encode: structs of strings and numbers.
func mustMarshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return b
}
