package main

import (
	"bytes"
	"cmp"
	"context"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/spf13/cobra"

	"linearize.example/traces/snapshot"
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
			if endpoint != "" && !isURL(endpoint) {
				return usage("the endpoint %q is no URL, such as http://127.0.0.1:4566", endpoint)
			}
			cfg, err := awsConfig(cmd.Context(), endpoint)
			if err != nil {
				return usage("%w", err)
			}
			d, err := takeSnapshot(cmd.Context(), ec2.NewFromConfig(cfg), endpoint, groups)
			if err != nil {
				return usage("%w", err)
			}
			if output == "" || output == "-" {
				return d.Write(cmd.OutOrStdout())
			}
			var b bytes.Buffer
			if err := d.Write(&b); err != nil {
				return err
			}
			return writeFile(output, b.Bytes())
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&groups, "sg", nil, "the security group's id; repeatable")
	flags.StringVar(&endpoint, "endpoint", "", "ask this endpoint, such as http://127.0.0.1:4566, instead of AWS\n(default: the environment variable AWS_ENDPOINT_URL)")
	flags.StringVarP(&output, "output", "o", "", "write to this file instead of standard output")
	return cmd
}

// takeSnapshot asks for all rules of the groups.
func takeSnapshot(ctx context.Context, client *ec2.Client, endpoint string, groups []string) (*snapshot.Description, error) {
	const perPage = 1000 // the most that EC2 answers at once
	d := &snapshot.Description{SecurityGroupRules: []snapshot.SecurityGroupRule{}}
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
			d.SecurityGroupRules = append(d.SecurityGroupRules, described(r))
		}
	}
	if missing := d.Missing(groups); len(missing) > 0 {
		// The filter says nothing of a group that does not exist; this call does.
		if _, err := client.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: missing}); err != nil {
			return nil, awsError("DescribeSecurityGroups", endpoint, err)
		}
		for _, id := range missing {
			d.Name(id)
		}
	}
	return d, nil
}

func described(r types.SecurityGroupRule) snapshot.SecurityGroupRule {
	d := snapshot.SecurityGroupRule{
		SecurityGroupRuleId: aws.ToString(r.SecurityGroupRuleId), GroupId: aws.ToString(r.GroupId), GroupOwnerId: aws.ToString(r.GroupOwnerId),
		IsEgress: aws.ToBool(r.IsEgress), IpProtocol: aws.ToString(r.IpProtocol), FromPort: r.FromPort, ToPort: r.ToPort,
		CidrIpv4: aws.ToString(r.CidrIpv4), CidrIpv6: aws.ToString(r.CidrIpv6), PrefixListId: aws.ToString(r.PrefixListId),
		Description: r.Description, SecurityGroupRuleArn: aws.ToString(r.SecurityGroupRuleArn),
	}
	if g := r.ReferencedGroupInfo; g != nil {
		d.ReferencedGroupInfo = &snapshot.ReferenceGroup{
			GroupId: aws.ToString(g.GroupId), PeeringStatus: aws.ToString(g.PeeringStatus), UserId: aws.ToString(g.UserId),
			VpcId: aws.ToString(g.VpcId), VpcPeeringConnectionId: aws.ToString(g.VpcPeeringConnectionId),
		}
	}
	if r.Tags != nil {
		d.Tags = []snapshot.Tag{}
	}
	for _, t := range r.Tags {
		d.Tags = append(d.Tags, snapshot.Tag{Key: aws.ToString(t.Key), Value: aws.ToString(t.Value)})
	}
	return d
}
