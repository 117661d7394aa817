package record_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"linearize.example/traces/record"
)

// answers is a transport that answers everything with one body, so that what is measured is the program's own work.
type answers string

func (a answers) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
	}
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(a)))}, nil
}

// BenchmarkMiddleware measures a call of the SDK's client with and without a Recorder, in turns: the client's own work, without a
// network, in which any call takes milliseconds. It reports what recording adds to a call, and the ratio.
func BenchmarkMiddleware(b *testing.B) {
	rules := strings.Repeat(`<item><ipProtocol>tcp</ipProtocol><fromPort>80</fromPort><toPort>81</toPort><groups><item><groupId>sg-lb</groupId><description>elbv2.k8s.aws/targetGroupBinding=shared</description></item></groups></item>`, 50)
	for _, c := range []struct {
		name, answer string
		call         func(*client) error
	}{
		{"authorize", authorized, func(c *client) error { return c.authorize(context.Background()) }},
		{"describe-50-rules", strings.Replace(twoGroups, `<groupId>sg-2</groupId><ipPermissions/>`, `<groupId>sg-2</groupId><ipPermissions>`+rules+`</ipPermissions>`, 1), func(c *client) error {
			_, err := c.ec2.DescribeSecurityGroups(context.Background(), &ec2.DescribeSecurityGroupsInput{GroupIds: []string{"sg-1", "sg-2"}})
			return err
		}},
	} {
		for _, synced := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/sync=%v", c.name, synced), func(b *testing.B) {
				log, err := record.Open(record.Options{Dir: filepath.Join(b.TempDir(), "history"), Sync: synced})
				must(b, err)
				transport := func(cfg *aws.Config) { cfg.HTTPClient = answers(c.answer) }
				with := newClient(b, "http://localhost", func(cfg *aws.Config) { transport(cfg); cfg.APIOptions = record.New(log, "lbc").APIOptions() })
				without := newClient(b, "http://localhost", func(cfg *aws.Config) { transport(cfg); cfg.APIOptions = nil })
				var on, off time.Duration
				for b.Loop() {
					begin := time.Now()
					must(b, c.call(with))
					middle := time.Now()
					must(b, c.call(without))
					on, off = on+middle.Sub(begin), off+time.Since(middle)
				}
				must(b, log.Close())
				b.ReportMetric(float64((on-off).Microseconds())/float64(b.N), "added-µs/call")
				b.ReportMetric(float64(on)/float64(off), "ratio")
			})
		}
	}
}
