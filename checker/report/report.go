// Package report holds the result of a check in the form in which it is shown, and writes it as text, JSON, HTML,
// Markdown, JUnit and SARIF. It computes nothing: every word and number is in the Report.
package report

import "linearize.example/traces"

// Schema names the stable JSON form.
const Schema = "linearize.report/v1"

// Verdict is the judgement over every order of the operations that the capture allows. The zero value is Unknown:
// what was never judged has not succeeded.
type Verdict uint8

// The verdicts.
const (
	Unknown  Verdict = iota // time or memory ran out, or the capture cannot be ordered at all
	Holds                   // no order violates the property
	Possible                // some orders violate it and some do not
	Violated                // every order violates it
)

var verdictNames = [...]string{"unknown", "holds", "possible", "violated"}

func (v Verdict) String() string { return verdictNames[v] }

// MarshalText writes the verdict's name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Report is the whole result.
type Report struct {
	Schema  string   `json:"schema"`
	Verdict Verdict  `json:"verdict"`
	Summary string   `json:"summary"` // the verdict in one line
	Inputs  []Input  `json:"inputs"`
	Groups  []Group  `json:"groups"`
	Options []Option `json:"options"` // what the verdict was asked with: name and value of every option that matters
}

// Option is one option that a verdict depends on.
type Option struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Input is one file, stream or archive member.
type Input struct {
	Path       string   `json:"path"`
	Format     string   `json:"format"`
	Records    int      `json:"records"`
	Used       int      `json:"used"`
	Duplicates int      `json:"duplicates"`
	Irrelevant int      `json:"irrelevant"`
	Rejected   int      `json:"rejected"`
	Rejections []string `json:"rejections"` // the first ones, "position: reason"
}

// Group is the result for one security group.
type Group struct {
	GroupID       string     `json:"group_id"`
	Operations    int        `json:"operations"`
	From          *Instant   `json:"from"` // the first instant of the capture that concerns the group
	To            *Instant   `json:"to"`
	Linearity     Linearity  `json:"linearity"`
	Properties    []Property `json:"properties"`
	Processes     []Process  `json:"processes"`
	Findings      []Finding  `json:"findings"`
	Assumptions   []string   `json:"assumptions"` // what the verdict rests on
	SettledBy     []string   `json:"settled_by"`  // what narrowed the orders down: "the controller log orders 4 pairs", ...
	Timeline      []Row      `json:"timeline"`
	TimelineOmits int        `json:"timeline_omits"` // rows left out of Timeline
	Bars          []Bar      `json:"bars"`           // each rule's presence, for the picture
	Needs         []Need     `json:"needs"`          // the ports that targets needed, for the picture
	Unordered     *Unordered `json:"unordered"`      // set when no order explains the results
	Visualization string     `json:"-"`              // an HTML document by Porcupine of the stretch that cannot be ordered, or empty
}

// Instant is a traces.Instant; in JSON it is RFC 3339 with nanoseconds.
type Instant = traces.Instant

// Range is an instant known between two bounds.
type Range struct {
	Earliest Instant `json:"earliest"`
	Latest   Instant `json:"latest"`
}

// Linearity is what Porcupine says of the operations, and how old the reads are.
type Linearity struct {
	Result            string     `json:"result"`    // linearizable, not-linearizable, unknown
	Mutations         string     `json:"mutations"` // the same for the mutations alone
	StaleReads        int        `json:"stale_reads"`
	Reads             int        `json:"reads"`
	MaxReadLagSeconds float64    `json:"max_read_lag_seconds"`
	ReadLags          []ReadLag  `json:"read_lags"`          // of the stale reads
	Quantiles         *Quantiles `json:"read_lag_quantiles"` // over all reads; null without reads
	Detail            string     `json:"detail"`
}

// ReadLag is one read that needed an old version.
type ReadLag struct {
	ID      string  `json:"id"`
	Seconds float64 `json:"seconds"`
}

// Quantiles summarize a sample, in seconds.
type Quantiles struct {
	Median float64 `json:"median"`
	P90    float64 `json:"p90"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

// Property is the verdict on never-empty, covered, tight or repair-bound.
type Property struct {
	Name    string   `json:"name"`
	Verdict Verdict  `json:"verdict"`
	Vacuous bool     `json:"vacuous"`
	Meaning string   `json:"meaning"` // the property in words, as its named error has them
	Reason  string   `json:"reason"`  // one line: why this verdict; for a vacuous one why the capture could not have violated it
	Windows []Window `json:"windows"`
	Hidden  int      `json:"windows_hidden"` // windows shorter than --min-window, counted and not listed
	// The rest is for repair-bound alone, and left out of the JSON of the others.
	BoundSeconds *float64    `json:"bound_seconds"`
	WorstSeconds *float64    `json:"worst_seconds"` // null: there was nothing to repair
	Statistics   *Statistics `json:"statistics"`
	Promise      *Promise    `json:"promise"` // the bound that the release can promise; null: no release is known
}

// Statistics describe the lengths of the windows, in seconds; Censored counts those that the capture ended first.
type Statistics struct {
	Count    int `json:"count"`
	Censored int `json:"censored"`
	Quantiles
}

// Promise is the repair bound that a release can keep, and whether it was kept.
type Promise struct {
	Release      string  `json:"release"`
	BoundSeconds float64 `json:"bound_seconds"`
	Verdict      Verdict `json:"verdict"`
	Text         string  `json:"text"`
}

// Window is a time in which a property was violated, or may have been.
type Window struct {
	Verdict         Verdict `json:"verdict"` // violated or possible
	Start           Range   `json:"start"`
	End             *Range  `json:"end"` // null: the capture ended first
	CertainSeconds  float64 `json:"certain_seconds"`
	PossibleSeconds float64 `json:"possible_seconds"`
	OpenedBy        *Ref    `json:"opened_by"` // null: it was open when the capture began
	ClosedBy        *Ref    `json:"closed_by"`
	Subject         string  `json:"subject"` // for covered: the port, "tcp 8025"; empty for never-empty
	Text            string  `json:"text"`    // what else is to be said of it
	// From and To are the instants that people write for Start and End: those that the sources wrote.
	From Instant `json:"-"`
	To   Instant `json:"-"`
}

// Ref names an operation.
type Ref struct {
	ID      string `json:"id"`
	Process string `json:"process"`
	Summary string `json:"summary"` // "revoke tcp 3000-3008 from sg-014f"
	Who     string `json:"who"`     // role, session, key, user agent, address, in words
	// Sources are the records it was read from, as in Row; the input's path comes first.
	Sources []string `json:"sources"`
}

// Process is one caller.
type Process struct {
	ID            string `json:"id"`
	Role          string `json:"role"`
	Session       string `json:"session"`
	SessionStart  string `json:"session_start"`
	AccessKeyID   string `json:"access_key_id"`
	UserAgent     string `json:"user_agent"`
	SourceAddress string `json:"source_address"`
	Release       string `json:"release"` // of the controller, "v3.4.0"; empty for others
	Controller    bool   `json:"controller"`
	Operations    int    `json:"operations"`
}

// Finding is something worth knowing that is no property.
type Finding struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// Row is one line of the timeline.
type Row struct {
	Kind     string   `json:"kind"` // call, observation, window-start, window-end, capture
	ID       string   `json:"id"`
	At       Range    `json:"at"`
	Process  string   `json:"process"`
	Summary  string   `json:"summary"`        // "revoke tcp 3000-3008", "skipped test/mailpit"
	Result   string   `json:"result"`         // "ok", "InvalidPermission.NotFound", "no answer"; empty for observations
	Rules    []string `json:"rules"`          // the managed rules afterwards; several alternatives where orders differ; null where unknown
	Possible []string `json:"possible_rules"` // other sets that some order has at that point
	Marks    []string `json:"marks"`          // windows that begin, end or are open here: "never-empty violated from here"
	Sources  []string `json:"sources"`        // "cloudtrail.json record 6"
}

// Bar is one rule's presence over a time, for the picture.
type Bar struct {
	Rule    string `json:"rule"`
	Managed bool   `json:"managed"`
	From    Range  `json:"from"`
	To      *Range `json:"to"` // null: to the end of the capture
	Certain bool   `json:"certain"`
}

// Need is a time in which a target needed a port, for the picture.
type Need struct {
	Port    string `json:"port"` // "tcp 8025"
	Why     string `json:"why"`  // "test/mailpit, registered 10.0.1.10:8025"
	From    Range  `json:"from"`
	To      *Range `json:"to"` // null: to the end of the capture
	Certain bool   `json:"certain"`
}

// Unordered tells where the last explanation died: no order of the operations gives their results.
type Unordered struct {
	At        Ref      `json:"at"`        // the first operation at which no explanation survives
	Explained int      `json:"explained"` // how many operations before it can be explained
	States    []string `json:"states"`    // the sets of rules just before it
	Refusals  []string `json:"refusals"`  // why each refuses it
}
