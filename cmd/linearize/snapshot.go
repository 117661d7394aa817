package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/spf13/cobra"
)

func newSnapshotCommand() *cobra.Command {
	var groups []string
	var endpoint, output string
	cmd := &cobra.Command{
		Use:   "snapshot --sg ID...",
		Short: "The rules of a group now, for check --initial",
		Long: `snapshot asks EC2, or the endpoint of linearize record, for the rules of security groups and prints
what "aws ec2 describe-security-group-rules" prints, for check --initial. It needs the permission
ec2:DescribeSecurityGroupRules, and ec2:DescribeSecurityGroups for groups without any rule. Region
and credentials are the AWS CLI's.

Reads may be old for a while after a change: take it when nothing has changed for a minute.`,
		Example: `  linearize snapshot --sg sg-053bdd55831dccd60 -o rules.json
  linearize check --initial rules.json cloudtrail/`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(groups) == 0 {
				return usage("which group? name it with --sg sg-…")
			}
			endpoint = cmp.Or(endpoint, os.Getenv("AWS_ENDPOINT_URL"))
			cfg, err := awsConfig(cmd.Context(), endpoint)
			if err != nil {
				return usage("%w", err)
			}
			s, err := takeSnapshot(cmd.Context(), ec2.NewFromConfig(cfg), endpoint, groups)
			if err != nil {
				return usage("%w", err)
			}
			if output == "" || output == "-" {
				_, err := cmd.OutOrStdout().Write(s)
				return err
			}
			return writeFile(output, s)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&groups, "sg", nil, "the security group's id; repeatable")
	flags.StringVar(&endpoint, "endpoint", "", "ask this endpoint, such as http://127.0.0.1:4566, instead of AWS\n(default: the environment variable AWS_ENDPOINT_URL)")
	flags.StringVarP(&output, "output", "o", "", "write to this file instead of standard output")
	return cmd
}

// describedRules is what the AWS CLI prints, its fields in the CLI's order. A group without any rule would not be in it: it is
// added as describe-security-groups has it.
type describedRules struct {
	SecurityGroups     []emptyGroup `json:",omitempty"`
	SecurityGroupRules []describedRule
}

type emptyGroup struct {
	GroupId                            string
	IpPermissions, IpPermissionsEgress []string
}

type describedRule struct {
	SecurityGroupRuleId  *string               `json:",omitempty"`
	GroupId              *string               `json:",omitempty"`
	GroupOwnerId         *string               `json:",omitempty"`
	IsEgress             *bool                 `json:",omitempty"`
	IpProtocol           *string               `json:",omitempty"`
	FromPort             *int32                `json:",omitempty"`
	ToPort               *int32                `json:",omitempty"`
	CidrIpv4             *string               `json:",omitempty"`
	CidrIpv6             *string               `json:",omitempty"`
	PrefixListId         *string               `json:",omitempty"`
	ReferencedGroupInfo  *describedSourceGroup `json:",omitempty"`
	Description          *string               `json:",omitempty"`
	Tags                 []describedTag        `json:",omitzero"`
	SecurityGroupRuleArn *string               `json:",omitempty"`
}

type describedSourceGroup struct {
	GroupId                *string `json:",omitempty"`
	PeeringStatus          *string `json:",omitempty"`
	UserId                 *string `json:",omitempty"`
	VpcId                  *string `json:",omitempty"`
	VpcPeeringConnectionId *string `json:",omitempty"`
}

type describedTag struct {
	Key   *string `json:",omitempty"`
	Value *string `json:",omitempty"`
}

// takeSnapshot asks for all rules of the groups and returns them as JSON.
func takeSnapshot(ctx context.Context, client *ec2.Client, endpoint string, groups []string) ([]byte, error) {
	const perPage = 1000 // the most that EC2 answers at once
	out := describedRules{SecurityGroupRules: []describedRule{}}
	pages := ec2.NewDescribeSecurityGroupRulesPaginator(client, &ec2.DescribeSecurityGroupRulesInput{
		Filters:    []types.Filter{{Name: aws.String("group-id"), Values: groups}},
		MaxResults: aws.Int32(perPage),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awsError("DescribeSecurityGroupRules", endpoint, err)
		}
		for _, r := range page.SecurityGroupRules {
			out.SecurityGroupRules = append(out.SecurityGroupRules, described(r))
		}
	}
	var without []string
	for _, id := range groups {
		if !slices.ContainsFunc(out.SecurityGroupRules, func(r describedRule) bool { return aws.ToString(r.GroupId) == id }) {
			without = append(without, id)
		}
	}
	if len(without) > 0 {
		// The filter says nothing of a group that does not exist; this call does.
		if _, err := client.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: without}); err != nil {
			return nil, awsError("DescribeSecurityGroups", endpoint, err)
		}
		for _, id := range without {
			out.SecurityGroups = append(out.SecurityGroups, emptyGroup{GroupId: id, IpPermissions: []string{}, IpPermissionsEgress: []string{}})
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", strings.Repeat(" ", 4))
	err := e.Encode(out)
	return b.Bytes(), err
}

func described(r types.SecurityGroupRule) describedRule {
	d := describedRule{
		SecurityGroupRuleId: r.SecurityGroupRuleId, GroupId: r.GroupId, GroupOwnerId: r.GroupOwnerId, IsEgress: r.IsEgress,
		IpProtocol: r.IpProtocol, FromPort: r.FromPort, ToPort: r.ToPort, CidrIpv4: r.CidrIpv4, CidrIpv6: r.CidrIpv6,
		PrefixListId: r.PrefixListId, Description: r.Description, SecurityGroupRuleArn: r.SecurityGroupRuleArn,
	}
	if g := r.ReferencedGroupInfo; g != nil {
		source := describedSourceGroup{g.GroupId, g.PeeringStatus, g.UserId, g.VpcId, g.VpcPeeringConnectionId}
		d.ReferencedGroupInfo = &source
	}
	if r.Tags != nil {
		d.Tags = []describedTag{}
	}
	for _, t := range r.Tags {
		d.Tags = append(d.Tags, describedTag{t.Key, t.Value})
	}
	return d
}
