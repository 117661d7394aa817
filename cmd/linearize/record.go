package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	transport "github.com/aws/smithy-go/endpoints"
	"github.com/spf13/cobra"

	"linearize.example/traces"
	"linearize.example/traces/awsapi"
	"linearize.example/traces/record"
	"linearize.example/traces/snapshot"
)

// Limits of the server. A call is some kilobytes, and its answer comes at once unless faults hold it back.
const (
	maxConnections    = 1024
	maxHeader         = 64 << 10
	headerTimeout     = 10 * time.Second
	requestTimeout    = 30 * time.Second
	answerTimeout     = 10 * time.Minute
	idleTimeout       = 2 * time.Minute
	shutdownTimeout   = 30 * time.Second
	defaultListen     = "127.0.0.1:4566"
	secretEnvironment = "LINEARIZE_SECRET"
	initialName       = "initial.json"
)

type recordFlags struct {
	simulate, faults, readLag, seed string
	upstream                        bool
	upstreamURL                     string
	listen                          string
	keys                            []string
	dir, cloudtrail                 string
	rotate                          string
	noSync                          bool
}

func newRecordCommand() *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use:   "record --simulate FILE|--upstream -o DIR",
		Short: "An endpoint of the EC2 and ELBv2 APIs that records: a stand-in with faults, or a proxy to AWS",
		Long: `record serves the EC2 and ELBv2 APIs over HTTP, as AWS's SDKs and its CLI speak them, and writes every
call into a history. With --simulate it is a stand-in for AWS, from a file that says what there is, with
faults; with --upstream it passes calls on to AWS, signed with the SDK's default credentials.

A call's record is on disk before its answer leaves; where it cannot be written the call fails. On an
interrupt the calls under way are finished, and the recording is closed. See docs/record.md.

It listens on this host only, unless it is given keys (--key) that requests have to be signed with.`,
		Example: `  linearize record --simulate world.yaml --read-lag revoke=1.5s -o run
  AWS_ENDPOINT_URL=http://127.0.0.1:4566 controller …
  linearize check run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.simulate, "simulate", "", "be AWS: groups, rules, targets and the rest as this file has them\n(JSON or YAML, see docs/record.md)")
	flags.StringVar(&f.faults, "faults", "", "the faults of --simulate (JSON or YAML, see docs/record.md)")
	flags.StringVar(&f.readLag, "read-lag", "", "how long describes may not show a change: 1.5s, uniform:0s-2s,\nexponential:500ms; by the kind of change: revoke=1.5s,authorize=0s")
	flags.StringVar(&f.seed, "seed", "", "the number that decides what chance would, in --faults and --read-lag\n(default: that of --faults, or 0)")
	flags.BoolVar(&f.upstream, "upstream", false, "pass calls on to AWS")
	flags.StringVar(&f.upstreamURL, "upstream-url", "", "pass calls on to this endpoint")
	flags.StringVar(&f.listen, "listen", defaultListen, "address and port to listen on")
	flags.StringArrayVar(&f.keys, "key", nil, "let in who signs with this key; repeatable. ID:FILE, the file holding the secret,\nor ID, the secret being in "+secretEnvironment)
	flags.StringVarP(&f.dir, "output", "o", "", "the folder to record into")
	flags.StringVar(&f.cloudtrail, "cloudtrail", "", "also write what CloudTrail would have written, into this folder")
	flags.StringVar(&f.rotate, "rotate", "64MiB", "begin a new file at this size")
	flags.BoolVar(&f.noSync, "no-sync", false, "do not wait for the disk: records outlive this program, but not the machine")
	return cmd
}

func (f *recordFlags) run(cmd *cobra.Command) error {
	rotate, err := parseSize(f.rotate)
	if err != nil {
		return usage("--rotate: %w", err)
	}
	keys, err := f.readKeys()
	if err != nil {
		return err
	}
	if err := f.consistent(len(keys) > 0); err != nil {
		return err
	}
	note := func(format string, args ...any) {
		fmt.Fprintf(cmd.ErrOrStderr(), "linearize record: "+format+"\n", args...)
	}
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return usage("--listen %s: %w", f.listen, err)
	}
	if f.upstreamURL != "" && leadsTo(f.upstreamURL, listener.Addr()) {
		return errors.Join(usage("--upstream-url %s is this endpoint itself: name the one to pass calls on to", f.upstreamURL), listener.Close())
	}
	e, err := f.endpoint(cmd.Context(), rotate)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	options := record.HandlerOptions{Backend: e.backend, Log: e.log, EveryCall: true, Sinks: e.sinks, Keys: keys, Failed: sparingly(note)}
	if f.simulate != "" {
		options.RequestID = record.RandomRequestID // those of two stand-ins must not be alike
	}
	address := "http://" + listener.Addr().String()
	server := &http.Server{
		Handler:        record.Handler(options),
		MaxHeaderBytes: maxHeader, ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, WriteTimeout: answerTimeout, IdleTimeout: idleTimeout,
		ErrorLog: log.New(cmd.ErrOrStderr(), "linearize record: ", 0),
	}
	note("%s records into %s; point a client at it:\n  export AWS_ENDPOINT_URL=%s%s", e.what, f.dir, address, f.advice(e.region, len(keys) > 0))
	served := make(chan error, 1)
	go func() { served <- server.Serve(limitConnections(listener, maxConnections)) }()
	select {
	case err = <-served:
	case <-cmd.Context().Done():
		ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), shutdownTimeout)
		defer cancel()
		if err = server.Shutdown(ctx); err != nil {
			err = fmt.Errorf("calls were still under way after %s; they stay pending in the record: %w", shutdownTimeout, errors.Join(err, server.Close()))
		}
	}
	if err := errors.Join(err, e.close()); err != nil {
		return usage("%w", err)
	}
	note("%s in %s; judge them with\n  linearize check %s", e.count, f.dir, pasted(f.dir))
	return nil
}

// sparingly prints the first errors, and of the rest one each time that their number has doubled: a full disk fails every call.
func sparingly(note func(format string, args ...any)) func(error) {
	const all = 16 // a power of two
	var n atomic.Uint64
	return func(err error) {
		switch n := n.Add(1); {
		case n < all:
			note("%v", err)
		case n&(n-1) == 0:
			note("%v (error %d; the next line comes with error %d)", err, n, 2*n)
		}
	}
}

// endpoint is what the server is made of.
type endpoint struct {
	what    string
	region  string // of the stand-in
	backend awsapi.Backend
	log     *record.Log
	sinks   []record.Sink
	count   *tally
	close   func() error
}

// endpoint opens the recording and what stands behind it.
func (f *recordFlags) endpoint(ctx context.Context, rotate int64) (*endpoint, error) {
	e := &endpoint{count: &tally{processes: map[string]bool{}}}
	e.sinks = []record.Sink{e.count}
	header := map[string]string{"recorder": "linearize record"}
	var err error
	var world *awsapi.Simulator
	if f.simulate != "" {
		header["backend"] = "simulated: " + filepath.Base(f.simulate)
		e.what = "a stand-in for AWS"
		if world, err = f.simulator(); err == nil {
			e.backend, e.region = world, world.Region()
		}
	} else {
		header["backend"] = "AWS"
		e.what, e.backend, err = f.proxy(ctx)
	}
	if err != nil {
		return nil, err
	}
	if world != nil {
		// A second world would not begin where the first one ended.
		if names, err := os.ReadDir(f.dir); err == nil && len(names) > 0 {
			return nil, usage("%s is not empty: a stand-in begins anew, and so does its record; name another folder", f.dir)
		}
	}
	e.log, err = record.Open(record.Options{Dir: f.dir, RotateBytes: rotate, Sync: !f.noSync, Header: header})
	if err != nil {
		return nil, usage("%w", err)
	}
	e.close = e.log.Close
	if f.cloudtrail != "" {
		// The seed gives the events their ids, which no other recording into the folder may have.
		trail, err := record.NewCloudTrail(record.CloudTrailOptions{Dir: f.cloudtrail, Seed: rand.Uint64()})
		if err != nil {
			return nil, usage("--cloudtrail: %w", errors.Join(err, e.close()))
		}
		e.sinks = append(e.sinks, trail)
		e.close = func() error { return errors.Join(e.log.Close(), trail.Close()) }
	}
	if world != nil {
		// What check takes for the rules before the first call.
		var b bytes.Buffer
		err := snapshot.Describe(world.Snapshots()).Write(&b)
		if err == nil {
			err = writeFile(filepath.Join(f.dir, initialName), b.Bytes())
		}
		if err != nil {
			return nil, errors.Join(err, e.close())
		}
	}
	return e, nil
}

// simulator is the stand-in for AWS.
func (f *recordFlags) simulator() (*awsapi.Simulator, error) {
	world, err := load(f.simulate, awsapi.LoadWorld)
	if err != nil {
		return nil, usage("--simulate %w", err)
	}
	faults := &awsapi.Faults{}
	if f.faults != "" {
		if faults, err = load(f.faults, awsapi.LoadFaults); err != nil {
			return nil, usage("--faults %w", err)
		}
	}
	if f.readLag != "" {
		if err := faults.ReadLag.UnmarshalText([]byte(f.readLag)); err != nil {
			return nil, usage("--read-lag: %w", err)
		}
	}
	if f.seed != "" {
		if faults.Seed, err = strconv.ParseUint(f.seed, 10, 64); err != nil {
			return nil, usage("--seed %q is no number from 0 to 2^64 - 1", f.seed)
		}
	}
	s, err := awsapi.NewSimulator(world, faults, nil)
	if err != nil {
		return nil, usage("--faults %s: %w", f.faults, err)
	}
	return s, nil
}

// load reads a file; errors name it.
func load[T any](path string, read func(io.Reader) (T, error)) (v T, err error) {
	file, err := os.Open(path)
	if err != nil {
		return v, err
	}
	defer file.Close()
	if v, err = read(file); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return v, err
}

// proxy is AWS, or the endpoint of --upstream-url.
func (f *recordFlags) proxy(ctx context.Context) (what string, backend awsapi.Backend, err error) {
	cfg, err := awsConfig(ctx, f.upstreamURL)
	if err != nil {
		return "", nil, usage("--upstream: %w", err)
	}
	to := "AWS"
	resolve := func(ctx context.Context, service, region string) (string, error) {
		var at transport.Endpoint
		var err error
		if service == awsapi.EC2 {
			at, err = ec2.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, ec2.EndpointParameters{Region: &region})
		} else {
			at, err = elb.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, elb.EndpointParameters{Region: &region})
		}
		return at.URI.String(), err
	}
	if f.upstreamURL != "" {
		to = f.upstreamURL
		resolve = func(context.Context, string, string) (string, error) { return f.upstreamURL, nil }
	}
	return "a proxy to " + to, awsapi.NewUpstream(awsapi.UpstreamOptions{Credentials: cfg.Credentials, Region: cfg.Region, Endpoint: resolve}), nil
}

// tally counts what was recorded, for the last line.
type tally struct {
	mu                          sync.Mutex
	operations, errors, pending int
	processes                   map[string]bool
}

// Record counts an operation.
func (t *tally) Record(op traces.Operation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.operations++
	t.processes[op.Process] = true
	switch op.Outcome {
	case traces.Failed:
		t.errors++
	case traces.Pending:
		t.pending++
	}
}

func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := plural(t.operations, "operation") + " of " + plural(len(t.processes), "process", "processes")
	if t.errors > 0 {
		text += fmt.Sprintf(", %d with an error", t.errors)
	}
	if t.pending > 0 {
		text += fmt.Sprintf(", %d without an answer", t.pending)
	}
	return text
}

func plural(n int, one string, many ...string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(many) > 0:
		return fmt.Sprint(n, " ", many[0])
	}
	return fmt.Sprint(n, " ", one, "s")
}

// consistent refuses flags that do not go together.
func (f *recordFlags) consistent(signed bool) error {
	upstream := f.upstream || f.upstreamURL != ""
	host, _, err := net.SplitHostPort(f.listen)
	switch {
	case f.simulate == "" && !upstream:
		return usage("what shall it be? --simulate FILE is a stand-in for AWS, --upstream passes calls on to AWS")
	case f.simulate != "" && upstream:
		return usage("--simulate and --upstream exclude each other")
	case upstream && (f.faults != "" || f.readLag != ""):
		return usage("--faults and --read-lag need --simulate: AWS's own faults cannot be chosen")
	case f.dir == "":
		return usage("where to? name a folder with -o DIR")
	case err != nil:
		return usage("--listen %q is not ADDRESS:PORT, such as %s", f.listen, defaultListen)
	case !isLoopback(host) && !signed:
		return usage("--listen %s can be reached from other hosts: name a key with --key that requests have to be signed with,\n"+
			"or listen on %s", f.listen, defaultListen)
	}
	if f.upstreamURL != "" {
		if !isURL(f.upstreamURL) {
			return usage("--upstream-url %q is no URL, such as https://ec2.eu-central-1.amazonaws.com", f.upstreamURL)
		}
	}
	return nil
}

// readKeys reads the secrets. They are never on the command line, which every process of the host can see.
func (f *recordFlags) readKeys() (map[string]string, error) {
	keys := map[string]string{}
	for _, key := range f.keys {
		id, path, inFile := strings.Cut(key, ":")
		secret, where := os.Getenv(secretEnvironment), "the environment variable "+secretEnvironment
		if inFile {
			content, err := os.ReadFile(path)
			if err != nil {
				return nil, usage("--key %s: %w; after the colon stands the name of a file that holds the secret", id, err)
			}
			secret, where = strings.TrimSpace(string(content)), path
		}
		if id == "" || secret == "" {
			return nil, usage("--key %s: %s holds no secret", id, where)
		}
		keys[id] = secret
	}
	return keys, nil
}

// advice is what else a client has to be told. Some SDKs, and version 1 of the AWS CLI, read AWS_DEFAULT_REGION only.
func (f *recordFlags) advice(region string, signed bool) string {
	text := ""
	if region != "" {
		text = fmt.Sprintf("\n  export AWS_REGION=%[1]s AWS_DEFAULT_REGION=%[1]s", pasted(region))
	}
	switch {
	case signed:
		text += "\n  and a key of --key as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
	case region != "":
		text += "\n  export AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any"
	}
	return text
}

// parseSize reads a number of bytes: 4096, 64KiB, 64MiB, 1GiB.
func parseSize(text string) (int64, error) {
	digits, shift := text, 0
	for unit, n := range map[string]int{"KiB": 10, "MiB": 20, "GiB": 30} {
		if d, ok := strings.CutSuffix(text, unit); ok {
			digits, shift = d, n
		}
	}
	const most = 1 << 10 // GiB
	n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if err != nil || n < 1 || n > most<<30>>shift {
		return 0, fmt.Errorf("%q is no size from 1 to %d GiB, such as 4096, 64MiB or 1GiB", text, most)
	}
	return n << shift, nil
}

// limitConnections lets at most n connections be open at once; others wait in the system's queue.
func limitConnections(l net.Listener, n int) net.Listener {
	return &limitedListener{Listener: l, free: make(chan struct{}, n), closed: make(chan struct{})}
}

type limitedListener struct {
	net.Listener
	free   chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &limitedConn{Conn: c, release: sync.OnceFunc(func() { <-l.free })}, nil
}

func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	release func()
}

func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.release()
	return err
}
