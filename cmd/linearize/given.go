package main

import (
	"io"
	"os"
	"regexp"
	"time"

	"github.com/spf13/pflag"

	"linearize.example/traces"
	"linearize.example/traces/snapshot"
)

// given is what the user knows besides the capture, and which part of it counts.
type given struct {
	managed           string
	initial, bindings []string
	since, until      string

	// What parse makes of them.
	pattern   *regexp.Regexp // nil for the controller's own label
	snapshots []traces.Snapshot
	tgbs      []traces.Binding
	from, to  traces.Instant
}

func (g *given) add(flags *pflag.FlagSet) {
	flags.StringVar(&g.managed, "managed", "", "regular expression that descriptions of managed rules match\n(default: the controller's own label)")
	flags.StringArrayVar(&g.initial, "initial", nil, "the rules before the capture: JSON of aws ec2 describe-security-group-rules\nor describe-security-groups; repeatable")
	flags.StringArrayVar(&g.bindings, "bindings", nil, "JSON or YAML of kubectl get targetgroupbindings -A; repeatable")
	flags.StringVar(&g.since, "since", "", "ignore what was over before this time (RFC 3339)")
	flags.StringVar(&g.until, "until", "", "ignore what began after this time (RFC 3339)")
}

// parse reads the flags and the files that they name. Errors are those of usage.
func (g *given) parse() (err error) {
	if g.managed != "" {
		if g.pattern, err = regexp.Compile(g.managed); err != nil {
			return usage("--managed: %v", err)
		}
	}
	g.from, g.to = traces.Beginning, traces.Forever
	for _, t := range []struct {
		flag, value string
		to          *traces.Instant
	}{{"since", g.since, &g.from}, {"until", g.until, &g.to}} {
		if t.value == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, t.value)
		if err != nil {
			return usage("--%s %q is no RFC 3339 time, such as 2026-08-28T09:55:00Z", t.flag, t.value)
		}
		*t.to = traces.At(at)
	}
	if g.to < g.from {
		return usage("--until %s is before --since %s", g.until, g.since)
	}
	if g.snapshots, err = readGiven("initial", g.initial, snapshot.ReadSnapshots); err != nil {
		return err
	}
	g.tgbs, err = readGiven("bindings", g.bindings, snapshot.ReadBindings)
	return err
}

// readGiven reads the files that a flag names.
func readGiven[T any](flag string, paths []string, read func(io.Reader) ([]T, error)) (all []T, err error) {
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return nil, usage("--%s: %v", flag, err)
		}
		list, err := read(file)
		file.Close()
		if err != nil {
			return nil, usage("--%s %s: %v", flag, path, err)
		}
		all = append(all, list...)
	}
	return all, nil
}
