package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"linearize.example/traces"
	"linearize.example/traces/capture"
)

// asTool in the environment makes the test's binary the tool, for tests that need processes of it.
const asTool = "LINEARIZE_TEST_AS_TOOL"

func TestMain(m *testing.M) {
	if os.Getenv(asTool) != "" {
		main()
	}
	os.Exit(m.Run())
}

// tool is a process of the tool.
type tool struct {
	*exec.Cmd
	url string
	// rest are the lines of standard error behind the URL; closed at its end.
	rest chan string
}

// startRecord starts linearize record on a free port and waits until it says where.
func startRecord(t testing.TB, args ...string) *tool {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"record", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), asTool+"=1", "GOMAXPROCS=2")
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &tool{Cmd: cmd, rest: make(chan string, 1000)}
	lines := bufio.NewScanner(out)
	var said []string
	for p.url == "" && lines.Scan() {
		said = append(said, lines.Text())
		if _, address, ok := strings.Cut(lines.Text(), "AWS_ENDPOINT_URL="); ok {
			p.url, _, _ = strings.Cut(address, " ")
		}
	}
	if p.url == "" {
		t.Fatalf("the tool did not start: %s (%v)", strings.Join(said, "\n"), cmd.Wait())
	}
	go func() {
		defer close(p.rest)
		for lines.Scan() {
			p.rest <- lines.Text()
		}
	}()
	return p
}

// stop interrupts the tool and returns what it says then.
func (p *tool) stop(t testing.TB) string {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var said []string
	for line := range p.rest {
		said = append(said, line)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("the tool ended with %v: %s", err, strings.Join(said, "\n"))
	}
	return strings.Join(said, "\n")
}

const managedDescription = "elbv2.k8s.aws/targetGroupBinding=shared"

// writeWorld writes a world file with one group that has no rule.
func writeWorld(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "world.json")
	const world = `{"groups":[{"id":"sg-0aaa1111bbbb2222c","name":"nodes"}]}`
	if err := os.WriteFile(path, []byte(world), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// ruleCall is the form of a call on the port of the world's group.
func ruleCall(action string, port int) string {
	return url.Values{
		"Action": {action}, "Version": {"2016-11-15"}, "GroupId": {"sg-0aaa1111bbbb2222c"},
		"IpPermissions.1.IpProtocol": {"tcp"}, "IpPermissions.1.FromPort": {strconv.Itoa(port)}, "IpPermissions.1.ToPort": {strconv.Itoa(port)},
		"IpPermissions.1.IpRanges.1.CidrIp": {"10.0.0.0/8"}, "IpPermissions.1.IpRanges.1.Description": {managedDescription},
	}.Encode()
}

// acknowledged is a call that its client knows to be done.
type acknowledged struct {
	requestID, op string
	status        int
}

// hammer sends calls until they fail, and returns those that were answered.
func hammer(ctx context.Context, address string, client int) []acknowledged {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	var done []acknowledged
	for call := 0; ; call++ {
		op := []string{traces.AuthorizeSecurityGroupIngress, traces.DescribeSecurityGroups, traces.RevokeSecurityGroupIngress,
			traces.RevokeSecurityGroupIngress}[call%4] // the last one fails
		form := ruleCall(op, client+1)
		if op == traces.DescribeSecurityGroups {
			form = "Action=DescribeSecurityGroups&Version=2016-11-15&GroupId.1=sg-0aaa1111bbbb2222c"
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form))
		if err != nil {
			return done
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer, err := transport.RoundTrip(r)
		if err != nil {
			return done
		}
		_, err = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		// The head of the answer is an acknowledgement already, even if the rest does not come.
		done = append(done, acknowledged{answer.Header.Get("X-Amzn-Requestid"), op, answer.StatusCode})
		if err != nil {
			return done
		}
	}
}

// TestKillsLoseNothing kills the tool at random instants under load. Whatever was acknowledged is in the history, with its
// result, and the history can be read. LINEARIZE_KILLS says how often, and LINEARIZE_KILLS_SEED with which instants.
func TestKillsLoseNothing(t *testing.T) {
	kills, seed := 50, uint64(1)
	if n, err := strconv.Atoi(os.Getenv("LINEARIZE_KILLS")); err == nil {
		kills = n
	}
	if n, err := strconv.ParseUint(os.Getenv("LINEARIZE_KILLS_SEED"), 10, 64); err == nil {
		seed = n
	}
	world := writeWorld(t)
	chance := rand.New(rand.NewPCG(seed, 0))
	total, pending, torn := 0, 0, 0
	for kill := range kills {
		dir := filepath.Join(t.TempDir(), strconv.Itoa(kill))
		// Small files, so that kills meet rotations too.
		p := startRecord(t, "--simulate", world, "-o", dir, "--rotate", strconv.Itoa(4096+chance.IntN(64<<10)))
		const clients = 6
		done := make([][]acknowledged, clients)
		var all sync.WaitGroup
		for client := range clients {
			all.Go(func() { done[client] = hammer(t.Context(), p.url, client) })
		}
		time.Sleep(time.Duration(chance.Int64N(int64(120 * time.Millisecond))))
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		if err := p.Wait(); err == nil {
			t.Fatal("the tool ended by itself")
		}
		c, err := capture.Read(t.Context(), []string{dir}, strings.NewReader(""), capture.Options{})
		if err != nil {
			t.Fatalf("kill %d: %v", kill, err)
		}
		recorded := map[string]traces.Operation{}
		for _, op := range c.History.Operations {
			if op.Outcome == traces.Pending {
				pending++
				continue
			}
			recorded[op.RequestID] = op
		}
		for _, in := range c.History.Inputs {
			for _, note := range in.Notes {
				if note.Kind == "truncated-capture" {
					torn++
				}
			}
		}
		for _, calls := range done {
			total += len(calls)
			for _, a := range calls {
				op, ok := recorded[a.requestID]
				if !ok || op.Op != a.op || (op.Outcome == traces.Succeeded) != (a.status == http.StatusOK) {
					t.Errorf("kill %d: %s %s was answered with %d and is recorded as %q %v", kill, a.op, a.requestID, a.status, op.Op, op.Outcome)
				}
			}
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	if total == 0 {
		t.Error("no call was acknowledged, so that nothing was tested")
	}
	t.Logf("%d kills, %d calls acknowledged, none lost; %d were pending, %d histories end in a torn line", kills, total, pending, torn)
}

// TestRecordStops: an interrupt finishes the recording, and the last line is the command that judges it.
func TestRecordStops(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	p := startRecord(t, "--simulate", writeWorld(t), "-o", dir)
	for _, op := range []string{traces.AuthorizeSecurityGroupIngress, traces.RevokeSecurityGroupIngress, traces.RevokeSecurityGroupIngress} {
		answer, err := http.Post(p.url, "application/x-www-form-urlencoded", strings.NewReader(ruleCall(op, 80)))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	said := p.stop(t)
	want := fmt.Sprintf("linearize record: 3 operations of 1 process, 1 with an error in %s; judge them with\n  linearize check %[1]s", dir)
	if !strings.HasSuffix(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
	var stdout, stderr bytes.Buffer
	if status := run([]string{"check", dir}, strings.NewReader(""), &stdout, &stderr); status != exitViolated {
		t.Errorf("status %d: %s%s", status, stdout.String(), stderr.String())
	}
}

// TestRecordAsProxy: a proxy before a stand-in records what the stand-in does.
func TestRecordAsProxy(t *testing.T) {
	behind, before := filepath.Join(t.TempDir(), "behind"), filepath.Join(t.TempDir(), "before")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("the proxy's\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDPROXY")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "the proxy's")
	world := startRecord(t, "--simulate", writeWorld(t), "-o", behind, "--key", "AKIDPROXY:"+secret)
	proxy := startRecord(t, "--upstream-url", world.url, "-o", before)
	for _, op := range []string{traces.AuthorizeSecurityGroupIngress, traces.RevokeSecurityGroupIngress, traces.RevokeSecurityGroupIngress} {
		answer, err := http.Post(proxy.url, "application/x-www-form-urlencoded", strings.NewReader(ruleCall(op, 80)))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	proxy.stop(t)
	world.stop(t)
	read := func(dirs ...string) []traces.Operation {
		c, err := capture.Read(t.Context(), dirs, strings.NewReader(""), capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return traces.Merge(c.History, 0).Operations
	}
	apart, together := read(before), read(before, behind)
	if len(apart) != 3 || len(together) != 3 {
		t.Fatalf("%d operations in the proxy's record, %d in both; want 3 and 3", len(apart), len(together))
	}
	for i, op := range together {
		if op.RequestID == "" || op.RequestID != apart[i].RequestID || op.Outcome == traces.Pending || len(op.Sources) != 2 ||
			op.Call < apart[i].Call || op.Return > apart[i].Return {
			t.Errorf("operation %d is %+v, in the proxy's record %+v", i, op, apart[i])
		}
	}
}

// TestRecordRefusals has calls of the tool that cannot be served: each says what to do and leaves no folder behind.
func TestRecordRefusals(t *testing.T) {
	world := writeWorld(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "--simulate FILE is a stand-in for AWS, --upstream passes calls on to AWS"},
		{[]string{"--simulate", world, "--upstream", "-o", dir}, "exclude each other"},
		{[]string{"--upstream", "--read-lag", "1s", "-o", dir}, "need --simulate"},
		{[]string{"--simulate", world}, "-o DIR"},
		{[]string{"--simulate", world, "-o", dir, "--listen", "4566"}, "is not ADDRESS:PORT"},
		{[]string{"--simulate", world, "-o", dir, "--listen", ":4566"}, "name a key with --key"},
		{[]string{"--simulate", world, "-o", dir, "--listen", "0.0.0.0:4566"}, "name a key with --key"},
		{[]string{"--simulate", world, "-o", dir, "--listen", "example.com:4566"}, "name a key with --key"},
		{[]string{"--simulate", world, "-o", dir, "--rotate", "0"}, "is no size"},
		{[]string{"--simulate", world, "-o", dir, "--rotate", "1TiB"}, "is no size"},
		{[]string{"--simulate", world, "-o", dir, "--rotate", "1025GiB"}, "is no size"},
		{[]string{"--simulate", world, "-o", dir, "--key", "AKID:" + dir}, "the name of a file that holds the secret"},
		{[]string{"--simulate", world, "-o", dir, "--key", "AKID:" + secret}, "holds no secret"},
		{[]string{"--simulate", world, "-o", dir, "--key", "AKID"}, "LINEARIZE_SECRET holds no secret"},
		{[]string{"--simulate", filepath.Join(dir, "none"), "-o", dir}, "no such file"},
		{[]string{"--simulate", world, "-o", dir, "--read-lag", "soon"}, "--read-lag"},
		{[]string{"--simulate", world, "-o", dir, "--faults", secret}, "--faults"},
		{[]string{"--upstream-url", "ftp://127.0.0.1", "-o", dir}, "is no URL"},
	} {
		var stdout, stderr bytes.Buffer
		status := run(append([]string{"record"}, c.args...), strings.NewReader(""), &stdout, &stderr)
		if status != exitUsage || !strings.Contains(stderr.String(), c.want) || stdout.Len() > 0 {
			t.Errorf("%q: status %d, %q, want %q", c.args, status, stderr.String(), c.want)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Fatalf("%q made the folder", c.args)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "4096": 4096, "64KiB": 64 << 10, "64 MiB": 64 << 20, "1024GiB": 1 << 40} {
		if got, err := parseSize(text); got != want || err != nil {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5GiB", "64MB", "0KiB", "9223372036854775807KiB"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

// TestRecordHostile: what is no call is refused on the wire, leaves nothing in the record, and harms nobody else.
func TestRecordHostile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	p := startRecord(t, "--simulate", writeWorld(t), "-o", dir)
	address := strings.TrimPrefix(p.url, "http://")
	send := func(request string) string {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go io.WriteString(c, request) // it may be cut off before the end
		status, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			t.Fatalf("%.40q: %v", request, err)
		}
		return strings.TrimSpace(status)
	}
	const post = "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
	body := ruleCall(traces.AuthorizeSecurityGroupIngress, 80)
	for _, c := range []struct{ request, want string }{
		{"no HTTP at all\r\n\r\n", "HTTP/1.1 400 Bad Request"},
		{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "HTTP/1.1 400 Bad Request"},
		{post + "X: " + strings.Repeat("x", 1<<17) + "\r\n\r\n", "HTTP/1.1 431 Request Header Fields Too Large"},
		{post + "Content-Length: 7\r\nContent-Length: 8\r\n\r\nAction=", "HTTP/1.1 400 Bad Request"},
		{post + "Transfer-Encoding: gzip\r\n\r\n", "HTTP/1.1 501 Not Implemented"},
		{post + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("10000\r\n"+strings.Repeat("a", 1<<16)+"\r\n", 20) + "0\r\n\r\n", "HTTP/1.1 413 Request Entity Too Large"},
		{post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", "HTTP/1.1 400 Bad Request"},
		{post + "Content-Length: 0\r\n\r\n", "HTTP/1.1 400 Bad Request"},
		{post + fmt.Sprintf("Origin: null\r\nContent-Length: %d\r\n\r\n%s", len(body), body), "HTTP/1.1 403 Forbidden"},
		{post + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body), "HTTP/1.1 200 OK"},
	} {
		if got := send(c.request); got != c.want {
			t.Errorf("%.120q: %s, want %s", c.request, got, c.want)
		}
	}
	// One that never sends its end does not keep the tool from stopping for good.
	half, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	if said := p.stop(t); !strings.Contains(said, "1 operation of 1 process in ") {
		t.Errorf("said %q", said)
	}
}
