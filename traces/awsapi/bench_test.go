package awsapi_test

import (
	"fmt"
	"net/url"
	"testing"

	"linearize.example/traces/awsapi"
)

// BenchmarkSimulator measures one describe of a group of eight rules, and the same with its operation.
func BenchmarkSimulator(b *testing.B) {
	s, err := awsapi.NewSimulator(load(b, twoGroups), nil, newClock())
	if err != nil {
		b.Fatal(err)
	}
	for i := range 8 {
		c := call("AuthorizeSecurityGroupIngress", fmt.Sprintf("GroupId=%s&IpPermissions.1.IpProtocol=tcp&IpPermissions.1.FromPort=%d&IpPermissions.1.ToPort=%d&IpPermissions.1.Groups.1.GroupId=%s", nodes, i, i, clients))
		if a, err := s.Do(ctx, c); err != nil || a.Code != "" {
			b.Fatal(err, a)
		}
	}
	describe := call("DescribeSecurityGroups", url.Values{"GroupId.1": {nodes}}.Encode())
	b.Run("describe", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = s.Do(ctx, describe)
		}
	})
	b.Run("operations", func(b *testing.B) {
		a, _ := s.Do(ctx, describe)
		b.SetBytes(int64(len(a.Body)))
		b.ReportAllocs()
		for b.Loop() {
			awsapi.Operations(describe, a)
		}
	})
}
