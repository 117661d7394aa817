package record

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linearize.example/traces"
	"linearize.example/traces/awsapi"
)

// BenchmarkRecord measures the endpoint with every record on disk before its answer against the same endpoint with recording off:
// calls a second over connections that are kept alive, by as many clients as the sub-benchmark's name says. The two run in turns; the
// ratio is the median of those of a turn. A client alone waits for an fsync with each call, whose time is reported too; clients that
// are many share them.
func BenchmarkRecord(b *testing.B) {
	for _, clients := range []int{1, 8, 64, 256} {
		b.Run(strconv.Itoa(clients), func(b *testing.B) {
			dir := b.TempDir()
			var on, off time.Duration
			var ratios []float64
			var alone []time.Duration
			calls := max(1000, 20*clients)
			const turns = 5
			for n := range b.N * turns {
				log, err := Open(Options{Dir: filepath.Join(dir, strconv.Itoa(n)), Sync: true})
				if err != nil {
					b.Fatal(err)
				}
				without, with := throughput(b, nil, clients, calls), throughput(b, log, clients, calls)
				if err := log.Close(); err != nil {
					b.Fatal(err)
				}
				off, on = off+without, on+with
				ratios = append(ratios, float64(without)/float64(with))
				alone = append(alone, fsync(b, dir))
			}
			slices.Sort(ratios)
			slices.Sort(alone)
			total := float64(b.N * turns * calls)
			b.ReportMetric(total/on.Seconds(), "calls/s")
			b.ReportMetric(total/off.Seconds(), "unrecorded-calls/s")
			b.ReportMetric(ratios[len(ratios)/2], "ratio")
			b.ReportMetric(float64(alone[len(alone)/2].Microseconds()), "fsync-µs")
		})
	}
}

// throughput is the time for n calls of several clients, half of them authorizes, half of them revokes of the same port.
func throughput(b *testing.B, log *Log, clients, n int) time.Duration {
	server := httptest.NewServer(Handler(HandlerOptions{Backend: benchWorld(b), Log: log}))
	defer server.Close()
	address := server.Listener.Addr().String()
	var next atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	for client := range clients {
		all.Go(func() {
			c, err := net.Dial("tcp", address)
			if err != nil {
				b.Error(err)
				return
			}
			defer c.Close()
			r := bufio.NewReader(c)
			for call := 0; next.Add(1) <= int64(n); call++ {
				action := traces.AuthorizeSecurityGroupIngress
				if call%2 == 1 {
					action = traces.RevokeSecurityGroupIngress
				}
				form := fmt.Sprintf("Action=%s&Version=2016-11-15&GroupId=%s&IpPermissions.1.IpProtocol=tcp&IpPermissions.1.FromPort=%d&"+
					"IpPermissions.1.ToPort=%[3]d&IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0%%2F8", action, benchGroup(client%benchGroups), client+1)
				fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: %s\r\nUser-Agent: elbv2.k8s.aws/v3.4.0\r\n"+
					"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", address, len(form), form)
				answer, err := http.ReadResponse(r, nil)
				if err != nil {
					b.Error(err)
					return
				}
				if answer.StatusCode != http.StatusOK {
					b.Errorf("%s: %s", action, answer.Status)
					return
				}
				if _, err := r.Discard(int(answer.ContentLength)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return time.Since(start)
}

// fsync is the time that the disk takes for a record alone.
func fsync(b *testing.B, dir string) time.Duration {
	f, err := os.CreateTemp(dir, "fsync")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	line := make([]byte, 600)
	const n = 50
	start := time.Now()
	for range n {
		if _, err := f.Write(line); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start) / n
}

const benchGroups = 16

func benchGroup(i int) string { return fmt.Sprintf("sg-0aaa1111bbbb%05x", i) }

// benchWorld is a world of some groups.
func benchWorld(b *testing.B) awsapi.Backend {
	var groups []string
	for i := range benchGroups {
		groups = append(groups, fmt.Sprintf(`{"id":%q}`, benchGroup(i)))
	}
	w, err := awsapi.LoadWorld(strings.NewReader(`{"groups":[` + strings.Join(groups, ",") + `]}`))
	if err != nil {
		b.Fatal(err)
	}
	s, err := awsapi.NewSimulator(w, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	return s
}
