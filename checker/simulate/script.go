package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"linearize.example/model"
)

// Duration is a time.Duration that JSON holds as text, such as "1m30s".
type Duration time.Duration

// MarshalText writes "1m30s".
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration does.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is no duration such as 1m30s", text)
	}
	*d = Duration(v)
	return nil
}

// Script is what happens around the controller: the bindings there are, and what befalls them and the controller, and when.
type Script struct {
	// Seed decides everything that is drawn at random during the run.
	Seed     uint64          `json:"seed"`
	Duration Duration        `json:"duration"`
	Bindings []ScriptBinding `json:"bindings"`
	Events   []Event         `json:"events"`
}

// ScriptBinding is a TargetGroupBinding, and how many pods it has at the beginning.
type ScriptBinding struct {
	Name     string `json:"name"` // namespace/name
	Port     int32  `json:"port"`
	Protocol string `json:"protocol,omitempty"` // tcp (the default) or udp
	Source   string `json:"source,omitempty"`   // the group that may reach the pods; the balancer's by default
	Pods     int    `json:"pods"`
}

func (b *ScriptBinding) protocol() string {
	if b.Protocol == "" {
		return "tcp"
	}
	return b.Protocol
}

// Event is one thing that happens.
type Event struct {
	At      Duration  `json:"at"` // since the beginning
	Kind    EventKind `json:"kind"`
	Binding string    `json:"binding,omitempty"` // for kinds that concern one
	Pods    int       `json:"pods,omitempty"`    // how many come or go; 1 by default
}

// EventKind says what happens.
type EventKind string

// The kinds of events.
const (
	PodComes       EventKind = "pod-comes"
	PodGoes        EventKind = "pod-goes"        // the oldest first
	PodsReplaced   EventKind = "pods-replaced"   // all at once, on new addresses
	SpecChange     EventKind = "spec-change"     // the binding's specification changes, but not its ports
	LeaderChange   EventKind = "leader-change"   // another process leads at once; the old one finishes what it has begun
	Crash          EventKind = "crash"           // the leader dies; calls in flight stay without an answer
	Restart        EventKind = "restart"         // the leader finishes what it has begun, then the next one starts
	ExternalRevoke EventKind = "external-revoke" // somebody else removes the managed rules
)

// eventKinds tells which kinds concern a binding.
var eventKinds = map[EventKind]bool{
	PodComes: true, PodGoes: true, PodsReplaced: true, SpecChange: true,
	LeaderChange: false, Crash: false, Restart: false, ExternalRevoke: false,
}

// Bounds of a script: what is beyond them is a mistake.
const (
	mostBindings = 500
	mostPods     = 10000
	mostEvents   = 1000000
	longest      = 100 * 24 * time.Hour
	mostScript   = 256 << 20 // bytes
)

// ReadScript reads a script. Unknown fields, unknown kinds and values out of bounds are errors that name their place.
func ReadScript(r io.Reader) (*Script, error) {
	text, err := io.ReadAll(io.LimitReader(r, mostScript+1))
	if err != nil {
		return nil, err
	}
	if len(text) > mostScript {
		return nil, fmt.Errorf("the script is longer than %d bytes", mostScript)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var s Script
	if err := d.Decode(&s); err != nil {
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case err == io.EOF:
			return nil, errors.New("the script is empty")
		case err == io.ErrUnexpectedEOF:
			return nil, fmt.Errorf("line %d: the script ends within an object", lineAt(text, int64(len(text))))
		case errors.As(err, &syntax):
			return nil, fmt.Errorf("line %d: %w", lineAt(text, syntax.Offset), err)
		case errors.As(err, &kind):
			return nil, fmt.Errorf("line %d: %w", lineAt(text, kind.Offset), err)
		}
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something follows the script's closing brace")
	}
	return &s, s.validate()
}

func lineAt(text []byte, offset int64) int {
	return 1 + bytes.Count(text[:min(int(offset), len(text))], []byte("\n"))
}

// Write writes a script as ReadScript takes it.
func (s *Script) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(s)
}

// sources lists the groups that bindings name as theirs.
func (s *Script) sources() []string {
	list := []string{BalancerGroup}
	for _, b := range s.Bindings {
		if b.Source != "" && !slices.Contains(list, b.Source) {
			list = append(list, b.Source)
		}
	}
	return list
}

func (s *Script) validate() error {
	if s.Duration <= 0 || time.Duration(s.Duration) > longest {
		return fmt.Errorf("duration %s is not between 0 and %s", time.Duration(s.Duration), longest)
	}
	if n := len(s.Bindings); n == 0 || n > mostBindings {
		return fmt.Errorf("%d bindings; there have to be 1 to %d", n, mostBindings)
	}
	if len(s.Events) > mostEvents {
		return fmt.Errorf("%d events; there may be %d", len(s.Events), mostEvents)
	}
	pods := map[string]int{}
	for i, b := range s.Bindings {
		_, known := pods[b.Name]
		_, name, found := strings.Cut(b.Name, "/")
		switch {
		case known:
			return fmt.Errorf("bindings[%d]: another one is called %q, too", i, b.Name)
		case !found || name == "" || strings.ContainsAny(b.Name, " \t\n\"") || strings.HasPrefix(b.Name, "/") || strings.Contains(name, "/"):
			return fmt.Errorf("bindings[%d]: the name %q is not of the form namespace/name", i, b.Name)
		case b.Port < 1 || b.Port > 65535:
			return fmt.Errorf("bindings[%d]: port %d is not between 1 and 65535", i, b.Port)
		case b.protocol() != "tcp" && b.protocol() != "udp":
			return fmt.Errorf("bindings[%d]: protocol %q is neither tcp nor udp", i, b.Protocol)
		case b.Source != "" && !strings.HasPrefix(b.Source, "sg-"):
			return fmt.Errorf("bindings[%d]: source %q is no security group's id", i, b.Source)
		case b.Pods < 0 || b.Pods > mostPods:
			return fmt.Errorf("bindings[%d]: %d pods are not between 0 and %d", i, b.Pods, mostPods)
		}
		pods[b.Name] = b.Pods
	}
	for i, e := range s.Events {
		concerns, known := eventKinds[e.Kind]
		_, exists := pods[e.Binding]
		switch {
		case !known:
			return fmt.Errorf("events[%d]: no event is called %q; there are %s", i, e.Kind, kindNames())
		case e.At < 0 || e.At > s.Duration:
			return fmt.Errorf("events[%d]: %s is not between 0 and the duration", i, time.Duration(e.At))
		case concerns && !exists:
			return fmt.Errorf("events[%d]: there is no binding %q", i, e.Binding)
		case !concerns && e.Binding != "":
			return fmt.Errorf("events[%d]: %s concerns no binding", i, e.Kind)
		case e.Pods < 0 || e.Pods > mostPods:
			return fmt.Errorf("events[%d]: %d pods are not between 0 and %d", i, e.Pods, mostPods)
		}
		if e.Kind == PodComes {
			if pods[e.Binding] += max(e.Pods, 1); pods[e.Binding] > mostPods {
				return fmt.Errorf("events[%d]: %s has more than %d pods", i, e.Binding, mostPods)
			}
		}
	}
	return nil
}

func kindNames() string {
	var names []string
	for k := range eventKinds {
		names = append(names, string(k))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// play makes the events happen, one actor through all of them.
func (s *Script) play(r *run) {
	events := slices.Clone(s.Events)
	slices.SortStableFunc(events, func(a, b Event) int { return int(a.At - b.At) })
	for _, e := range events {
		if r.clock.Sleep(r.ctx, r.start.Add(time.Duration(e.At)).Sub(r.clock.Now())) != nil {
			return
		}
		r.happen(e)
	}
}

// happen makes one event happen.
func (r *run) happen(e Event) {
	n := max(e.Pods, 1)
	c := r.cluster
	switch e.Kind {
	case PodComes:
		c.change(e.Binding, "endpoints", func(b *bound) {
			for range n {
				b.Endpoints = append(b.Endpoints, c.pod(b))
			}
		})
	case PodGoes:
		c.change(e.Binding, "endpoints", func(b *bound) { b.Endpoints = slices.Clone(b.Endpoints[min(n, len(b.Endpoints)):]) })
	case PodsReplaced:
		c.change(e.Binding, "endpoints", func(b *bound) {
			fresh := make([]model.Endpoint, 0, len(b.Endpoints))
			for range b.Endpoints {
				fresh = append(fresh, c.pod(b))
			}
			b.Endpoints = fresh
		})
	case SpecChange:
		c.change(e.Binding, "spec", func(b *bound) { b.Spec += "'" })
	case LeaderChange:
		r.leaderChange()
	case Crash:
		r.crash()
	case Restart:
		r.restart()
	case ExternalRevoke:
		r.clock.Go(r.externalRevoke)
	}
}
