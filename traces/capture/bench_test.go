package capture

import (
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkGzippedCloudTrail reads log files of mostly irrelevant events, in the same run as `gzip -dc` over the same
// file, and reports the ratio of the two speeds and the most memory that the heap and its free spans took.
func BenchmarkGzippedCloudTrail(b *testing.B) {
	path := filepath.Join(b.TempDir(), "cloudtrail.json.gz")
	size := writeTrail(b, path, 100_000)
	var ours, theirs time.Duration
	var peak atomic.Uint64
	stop := make(chan struct{})
	go watchMemory(&peak, stop)
	b.SetBytes(size)
	for b.Loop() {
		start := time.Now()
		c, err := Read(b.Context(), []string{path}, nil, Options{Skew: time.Second})
		if err != nil {
			b.Fatal(err)
		}
		ours += time.Since(start)
		if in := c.History.Inputs[0]; in.Records != 100_000 || in.Used != 1000 {
			b.Fatalf("read %+v", in)
		}
		b.StopTimer()
		start = time.Now()
		if err := exec.Command("gzip", "-dc", path).Run(); err != nil {
			b.Fatal(err)
		}
		theirs += time.Since(start)
		b.StartTimer()
	}
	close(stop)
	b.ReportMetric(theirs.Seconds()/ours.Seconds(), "speed/gzip-dc")
	b.ReportMetric(float64(peak.Load())/(1<<20), "peak-MiB")
}

func watchMemory(peak *atomic.Uint64, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), m.Sys-m.HeapReleased))
		}
	}
}

// writeTrail writes a log file of n events, one in a hundred about a security group, and returns its size before
// compression.
func writeTrail(tb testing.TB, path string, n int) int64 {
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	z := gzip.NewWriter(f)
	w := &sized{w: z}
	random := rand.New(rand.NewPCG(1, 2))
	fmt.Fprint(w, `{"Records":[`)
	for i := range n {
		if i > 0 {
			fmt.Fprint(w, ",")
		}
		writeEvent(w, random, i)
	}
	fmt.Fprint(w, "]}")
	if w.err != nil || z.Close() != nil || f.Close() != nil {
		tb.Fatal("cannot write the log file")
	}
	return w.n
}

type sized struct {
	w   io.Writer
	n   int64
	err error
}

func (s *sized) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.n += int64(n)
	if err != nil {
		s.err = err
	}
	return n, err
}

func writeEvent(w io.Writer, random *rand.Rand, i int) {
	id := func() string {
		return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", random.Uint32(), random.IntN(1<<16), random.IntN(1<<12), random.IntN(1<<12), random.Int64N(1<<48))
	}
	at := time.Date(2026, 8, 28, 9, 0, 0, 0, time.UTC).Add(time.Duration(i) * 50 * time.Millisecond).Format(time.RFC3339)
	name, source, request, response := irrelevant[random.IntN(len(irrelevant))], "ec2.amazonaws.com",
		fmt.Sprintf(`{"instancesSet":{"items":[{"instanceId":"i-%017x"}]},"filterSet":{}}`, random.Int64N(1<<60)), "null"
	if i%100 == 99 {
		name = "RevokeSecurityGroupIngress"
		if i%200 == 199 {
			name = "AuthorizeSecurityGroupIngress"
		}
		request = `{"groupId":"sg-0123456789abcdef0","ipPermissions":{"items":[{"ipProtocol":"tcp","fromPort":3000,"toPort":3008,` +
			`"groups":{"items":[{"groupId":"sg-0fedcba9876543210","description":"elbv2.k8s.aws/targetGroupBinding=shared"}]},` +
			`"ipRanges":{},"ipv6Ranges":{},"prefixListIds":{}}]}}`
		response = `{"requestId":"` + id() + `","_return":true}`
	}
	role := fmt.Sprintf("role-%d", random.IntN(20))
	fmt.Fprintf(w, `{"eventVersion":"1.11","userIdentity":{"type":"AssumedRole","principalId":"AROAEXAMPLE%d:session-%d",`+
		`"arn":"arn:aws:sts::111122223333:assumed-role/%s/session-%d","accountId":"111122223333","accessKeyId":"ASIAEXAMPLE%08X",`+
		`"sessionContext":{"sessionIssuer":{"type":"Role","principalId":"AROAEXAMPLE","arn":"arn:aws:iam::111122223333:role/%s",`+
		`"accountId":"111122223333","userName":"%s"},"webIdFederationData":{},"attributes":{"creationDate":"2026-08-28T08:00:00Z",`+
		`"mfaAuthenticated":"false"}}},"eventTime":"%s","eventSource":"%s","eventName":"%s","awsRegion":"us-east-1",`+
		`"sourceIPAddress":"10.%d.%d.%d","userAgent":"aws-sdk-go-v2/1.30.3 os/linux lang/go#1.22.5 md/GOOS#linux md/GOARCH#amd64 api/ec2#1.177.0",`+
		`"requestParameters":%s,"responseElements":%s,"requestID":"%s","eventID":"%s","readOnly":true,"eventType":"AwsApiCall",`+
		`"managementEvent":true,"recipientAccountId":"111122223333","eventCategory":"Management","tlsDetails":{"tlsVersion":"TLSv1.3",`+
		`"cipherSuite":"TLS_AES_128_GCM_SHA256","clientProvidedHostHeader":"ec2.us-east-1.amazonaws.com"}}`,
		random.IntN(20), random.IntN(50), role, random.IntN(50), random.Uint32(), role, role, at, source, name,
		random.IntN(256), random.IntN(256), random.IntN(256), request, response, id(), id())
}

var irrelevant = []string{"DescribeInstances", "AssumeRole", "DescribeNetworkInterfaces", "GetParameter", "Decrypt",
	"DescribeRouteTables", "DescribeTags", "ListBuckets", "GetSecretValue", "DescribeTargetHealth"}
