package awsapi

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"linearize.example/traces"
)

// Faults are the ways in which a simulated AWS departs from an ideal one, in the form that docs/record.md describes. The
// zero value has none. All decisions are drawn from the seed; the n-th call of an action meets the same decisions whatever
// other calls come between.
type Faults struct {
	Seed uint64 `json:"seed"`
	// ReadLag is how long after a change describes may still not show it.
	ReadLag ReadLag `json:"readLag,omitempty"`
	// InOrder: changes of one group's rules become visible in the order in which they were made, so that a describe
	// always shows a state in which the rules once were.
	InOrder bool `json:"inOrder,omitempty"`
	// Latency is how long every call takes. It takes effect somewhere in between.
	Latency Distribution `json:"latency,omitzero"`
	// Throttle bounds the calls by action; "*" is one bucket for all actions that are not named.
	Throttle map[string]Bucket `json:"throttle,omitempty"`
	// RulesPerGroup bounds the ingress rules of a group, for IPv4 and IPv6 each; 0 stands for DefaultRuleLimit.
	RulesPerGroup int `json:"rulesPerGroup,omitempty"`
	// Rules are the faults of single calls. Of those that select a call the first one decides; latencies add up.
	Rules []FaultRule `json:"rules,omitempty"`
}

// Bucket is a token bucket: every call takes a token, Burst tokens are there at first and at most, and Rate come back in
// a second (EC2 API reference, "Request throttling").
type Bucket struct {
	Rate  float64 `json:"rate"`
	Burst float64 `json:"burst"`
}

// FaultRule is one fault and the calls that it befalls: those of Action (a pattern with * and ?), of Group if set, between
// From and Until, and of these the Share, the Nth, or every EveryNth; all of them if none of the three is given.
type FaultRule struct {
	Action string `json:"action"`
	// Group is a security group's id or a target group's ARN.
	Group    string   `json:"group,omitempty"`
	Share    float64  `json:"share,omitempty"`
	Nth      []uint64 `json:"nth,omitempty"`
	EveryNth uint64   `json:"everyNth,omitempty"`
	From     Moment   `json:"from,omitzero"`
	Until    Moment   `json:"until,omitzero"`

	// Code is the error to answer with; Message is AWS's own if empty.
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// Lost: the call takes effect and the connection is closed without an answer.
	Lost bool `json:"lost,omitempty"`
	// Dropped: the connection is closed, and the call never takes effect.
	Dropped bool `json:"dropped,omitempty"`
	// Late: the connection is closed, and the call takes effect that much later.
	Late Distribution `json:"late,omitzero"`
	// Latency is added to the time that the call takes.
	Latency Distribution `json:"latency,omitzero"`
}

// Moment is an instant, or a time since the faults were set.
type Moment struct {
	after time.Duration
	at    time.Time
	set   bool
}

// After is the moment d after the faults were set.
func After(d time.Duration) Moment { return Moment{after: d, set: true} }

// UnmarshalText reads "90s" or RFC 3339.
func (m *Moment) UnmarshalText(text []byte) error {
	if d, err := time.ParseDuration(string(text)); err == nil {
		*m = After(d)
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return fmt.Errorf("%q is neither a duration such as 90s nor a time such as 2026-11-30T07:28:30Z", text)
	}
	*m = Moment{at: at, set: true}
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (m Moment) MarshalText() ([]byte, error) {
	if m.at.IsZero() {
		return []byte(m.after.String()), nil
	}
	return m.at.MarshalText()
}

// IsZero reports whether no moment is given.
func (m Moment) IsZero() bool { return !m.set }

func (m Moment) instant(start traces.Instant) traces.Instant {
	if m.at.IsZero() {
		return start.Add(m.after)
	}
	return traces.At(m.at)
}

// LoadFaults reads faults from JSON or YAML, as strictly as LoadWorld.
func LoadFaults(r io.Reader) (*Faults, error) {
	f := &Faults{}
	if err := decodeStrict(r, f); err != nil {
		return nil, err
	}
	return f, f.validate()
}

// UnmarshalJSON reads what LoadFaults reads.
func (f *Faults) UnmarshalJSON(b []byte) error {
	read, err := LoadFaults(strings.NewReader(string(b)))
	if err == nil {
		*f = *read
	}
	return err
}

func (f *Faults) validate() error {
	if err := f.ReadLag.validate(); err != nil {
		return err
	}
	if f.RulesPerGroup < 0 {
		return fmt.Errorf("rulesPerGroup is negative")
	}
	for name, b := range f.Throttle {
		if !actionExists(name) {
			return fmt.Errorf("throttle.%s: there is no such action", name)
		}
		if b.Rate < 0 || b.Burst < 0 {
			return fmt.Errorf("throttle.%s: rate or burst is negative", name)
		}
	}
	for i := range f.Rules {
		if err := f.Rules[i].validate(); err != nil {
			return fmt.Errorf("rules[%d]%w", i, err)
		}
	}
	return nil
}

func (r *FaultRule) validate() error {
	selections := 0
	for _, given := range []bool{r.Share != 0, len(r.Nth) > 0, r.EveryNth != 0} {
		if given {
			selections++
		}
	}
	fates := 0
	for _, given := range []bool{r.Code != "", r.Lost, r.Dropped, !r.Late.IsZero()} {
		if given {
			fates++
		}
	}
	switch {
	case r.Action == "":
		return fmt.Errorf(" has no action; * stands for all")
	case !actionExists(r.Action):
		return fmt.Errorf(".action: no action is called %q", r.Action)
	case r.Share < 0 || r.Share > 1:
		return fmt.Errorf(".share: %v is outside of 0..1", r.Share)
	case slices.Contains(r.Nth, 0):
		return fmt.Errorf(".nth: calls are counted from 1")
	case selections > 1:
		return fmt.Errorf(": only one of share, nth and everyNth can be given")
	case fates > 1:
		return fmt.Errorf(": only one of code, lost, dropped and late can be given")
	case fates == 0 && r.Latency.IsZero():
		return fmt.Errorf(" has none of code, lost, dropped, late and latency: it does nothing")
	}
	return nil
}

// actionExists reports whether a pattern names an action of either service.
func actionExists(pattern string) bool {
	for _, service := range actions {
		for name := range service {
			if matches(pattern, name) {
				return true
			}
		}
	}
	return false
}

// deciding is the state of faults that are in force.
type deciding struct {
	*Faults
	start traces.Instant
	// calls counts the calls of each action, selected those of each rule and action.
	calls    map[string]uint64
	selected []map[string]uint64
	buckets  map[string]*level
}

// level is how full a bucket is.
type level struct {
	tokens float64
	at     traces.Instant
}

// fate is what faults decide of one call.
type fate struct {
	conditions
	// before and after are how long the call takes until its effect, and from there to its answer.
	before, after time.Duration
	refusal       *Refusal
	lost, dropped bool
	// late: the effect comes that much after before.
	late   time.Duration
	isLate bool
}

func newDeciding(f *Faults, start traces.Instant) *deciding {
	d := &deciding{Faults: f, start: start, calls: map[string]uint64{}, buckets: map[string]*level{}}
	for range f.Rules {
		d.selected = append(d.selected, map[string]uint64{})
	}
	return d
}

// decide says what becomes of a call that comes at an instant.
func (d *deciding) decide(now traces.Instant, c *Call) fate {
	on := fate{conditions: conditions{inOrder: d.InOrder, ruleLimit: d.RulesPerGroup}}
	if on.ruleLimit == 0 {
		on.ruleLimit = DefaultRuleLimit
	}
	a, known := actions[c.Service][c.Action]
	if !known {
		return on // it is refused in any case, and names that callers make up must not be counted for ever
	}
	key := c.Service + " " + c.Action
	d.calls[key]++
	n := d.calls[key]
	on.lag = d.ReadLag.of(a.lag).at(draw(d.Seed, "lag "+key, n))
	latency := d.Latency.at(draw(d.Seed, "latency "+key, n))
	if d.throttled(now, c.Action) {
		on.refusal = &Refusal{Code: "RequestLimitExceeded"}
		if c.Service == ELBv2 {
			on.refusal.Code = "Throttling"
		}
	}
	decided := on.refusal != nil
	for i := range d.Rules {
		r := &d.Rules[i]
		if !r.befalls(now, d.start, c) {
			continue
		}
		d.selected[i][key]++
		if n := d.selected[i][key]; !r.selects(n, draw(d.Seed, fmt.Sprintf("rule %d %s", i, key), n)) {
			continue
		}
		latency += r.Latency.at(draw(d.Seed, fmt.Sprintf("rule latency %d %s", i, key), n))
		if decided || r.Code == "" && !r.Lost && !r.Dropped && r.Late.IsZero() {
			continue
		}
		decided = true
		on.lost, on.dropped, on.isLate = r.Lost, r.Dropped, !r.Late.IsZero()
		on.late = r.Late.at(draw(d.Seed, fmt.Sprintf("late %d %s", i, key), n))
		if r.Code != "" {
			on.refusal = &Refusal{r.Code, r.Message}
		}
	}
	on.before = time.Duration(draw(d.Seed, "effect "+key, n) * float64(latency))
	on.after = latency - on.before
	return on
}

// throttled takes a token, or reports that there is none.
func (d *deciding) throttled(now traces.Instant, action string) bool {
	name := action
	bucket, limited := d.Throttle[name]
	if !limited {
		name = "*"
		if bucket, limited = d.Throttle[name]; !limited {
			return false
		}
	}
	l := d.buckets[name]
	if l == nil {
		l = &level{bucket.Burst, now}
		d.buckets[name] = l
	}
	l.tokens = min(bucket.Burst, l.tokens+max(0, now.Sub(l.at).Seconds())*bucket.Rate)
	l.at = max(l.at, now)
	if l.tokens < 1 {
		return true
	}
	l.tokens--
	return false
}

// befalls reports whether the rule is about the call at all.
func (r *FaultRule) befalls(now, start traces.Instant, c *Call) bool {
	return matches(r.Action, c.Action) &&
		(r.Group == "" || r.Group == c.Form.Get("GroupId") || r.Group == c.Form.Get("GroupId.1") || r.Group == c.Form.Get("TargetGroupArn")) &&
		(!r.From.set || now >= r.From.instant(start)) && (!r.Until.set || now < r.Until.instant(start))
}

// selects reports whether the n-th call that the rule is about meets the fault; u is a draw for the share.
func (r *FaultRule) selects(n uint64, u float64) bool {
	switch {
	case r.Share > 0:
		return u < r.Share
	case len(r.Nth) > 0:
		return slices.Contains(r.Nth, n)
	case r.EveryNth > 0:
		return n%r.EveryNth == 0
	}
	return true
}
