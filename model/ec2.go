package model

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// EC2 is the part of the EC2 API that the controller uses on security groups. Errors carry AWS's code
// in a method ErrorCode() string, as the SDK's API errors do.
type EC2 interface {
	// DescribeSecurityGroups returns the groups with the given ids, or those that match the filters.
	DescribeSecurityGroups(ctx context.Context, groupIDs []string, filters []types.Filter) ([]types.SecurityGroup, error)
	// AuthorizeSecurityGroupIngress adds all rules, or none.
	AuthorizeSecurityGroupIngress(ctx context.Context, groupID string, permissions []types.IpPermission) error
	// RevokeSecurityGroupIngress removes all rules, or none.
	RevokeSecurityGroupIngress(ctx context.Context, groupID string, permissions []types.IpPermission) error
}

// Code is AWS's error code, as far as the controller tells codes apart.
type Code uint8

// The codes. Everything that is not named is Failed.
const (
	OK            Code = iota
	Failed             // throttled, denied, timed out, or anything else
	Duplicate          // InvalidPermission.Duplicate: a rule to be added is there
	NotFound           // InvalidPermission.NotFound: a rule to be removed is not there
	LimitExceeded      // RulesPerSecurityGroupLimitExceeded: no room for the rules
)

var codeNames = map[string]Code{
	"InvalidPermission.Duplicate":        Duplicate,
	"InvalidPermission.NotFound":         NotFound,
	"RulesPerSecurityGroupLimitExceeded": LimitExceeded,
}

// CodeOf classifies an error as the controller does (security_group_reconciler.go:137-153).
func CodeOf(err error) Code {
	if err == nil {
		return OK
	}
	var api interface{ ErrorCode() string }
	if errors.As(err, &api) {
		if c, known := codeNames[api.ErrorCode()]; known {
			return c
		}
	}
	return Failed
}
