package model

import (
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Limits of what a System can hold; configurations beyond them are refused.
const (
	maxTGBs     = 3
	maxProcs    = 2
	maxWorkers  = 2
	maxVersions = 4
)

// Constants are the constants of spec.tla: the size of the world, what the environment may do, the
// design and the clock. Field names are the specification's.
type Constants struct {
	TGBs      int // bindings 1 to TGBs; binding t needs port t
	Procs     int // controller processes
	Workers   int // reconcile workers in each process
	MaxPods   int // pods get the identities 1 to MaxPods; then no new pod comes
	MaxLag    int // a describe may be old by up to so many changes
	MaxFaults int // so many faults may happen in a run, together

	Failures         bool // a call fails and has no effect
	LostAnswers      bool // a change takes effect, but its answer is lost
	DelayedRevokes   bool // a revoke whose answer was lost takes effect later, or never
	Denied           bool // every authorize is denied
	RuleLimit        int  // how many rules the group can hold
	Crashes          bool // the process dies at any step; a new one with empty memory follows
	LeaderChanges    bool // another process leads; the old one finishes what it had begun
	TwoClusters      bool // process p is cluster p, and serves binding p only
	ExternalRevokes  bool // somebody else removes a managed rule
	StaticRule       bool // somebody else's rule for all ports is always there
	SeveralGroups    bool // interfaces with several groups: a describe outside the mutex
	DefaultVPC       bool // a revoke of absent rules succeeds
	GroupTagged      bool // the group bears the cluster's tag: the first clean-up finds and reads it
	StablePod        bool // the pod of binding 1 stays
	LagOutlivesCache bool // reads may still be old when a cache entry has expired
	DeferredQueue    bool // unchanged bindings are deferred and later reconciled in full
	ColdStart        bool // the run begins with a process that has just started
	StartEmpty       bool // the run begins with no managed rule, although targets are registered

	Design Design

	Timed       bool // there is a clock, and a binding is looked at only when something is due
	DeferMin    int  // least delay of a deferred binding, in ticks
	DeferMax    int  // greatest delay
	ResyncMin   int  // least period of the resync
	ResyncMax   int  // greatest period
	MarkTTL     int  // life of the mark "recently processed"
	RepairBound int  // the bound to check
}

// Unset is an empty checkpoint, and the queue entry of a binding that is not deferred.
const Unset = -1

// Computed is what a process knows of a binding's wanted permissions.
type Computed uint8

// The values of Computed.
const (
	Unknown  Computed = iota // not computed since the start
	None                     // nothing is wanted
	OnePort                  // the binding's port is wanted
	computed                 // number of values
)

// Memory is what a process keeps.
type Memory struct {
	Cache    Cache[Bits]
	Computed [maxTGBs]Computed
	Tracked  bool // clean-up knows the group
}

// Timer is the time-dependent part of a process.
type Timer struct {
	Queue  [maxTGBs]int8  // ticks until a deferred binding's checkpoint is emptied; Unset: not deferred
	Mark   [maxTGBs]uint8 // ticks for which the binding counts as recently processed
	Due    uint8          // bindings to be looked at, as bits
	Resync uint8          // ticks until the resync
}

// State is a state of the specification. Processes, workers and bindings are numbered from 0, except
// where 0 means none. Equal states are equal values.
type State struct {
	Rules      Bits              // the managed rules of the group
	Versions   [maxVersions]Bits // older contents that a describe may still return, oldest first
	Old        uint8             // how many of them there are
	Late       Bits              // rules that a revoke on its way will remove when it arrives
	Registered [maxTGBs]uint8    // the pod that is registered as a target; 0: none
	Pods       [maxTGBs]uint8    // the identity of the pod; 0: none
	Born       uint8             // the highest identity that a pod has had
	Checkpoint [maxTGBs]int8     // the pod that the stored checkpoint stands for; 0: none
	Leader     uint8
	Memory     [maxProcs]Memory
	Worker     [maxProcs][maxWorkers]Worker[Bits]
	Timer      [maxProcs]Timer
	Faults     uint8 // how many faults have happened
	Witness    uint8 // processes, as bits, whose latest look was true if nobody else has changed the group since
	Age        uint8 // for how many ticks never-empty or covered has been violated
}

// System is the protocol in an environment: the states of spec.tla under given constants, and the
// steps between them.
type System struct {
	Constants
	names   []string           // of the rules
	hulls   [][]Bits           // by source and set of wanted bindings: what is wanted of the group
	allows  [maxTGBs]Bits      // by binding: the rules that let its traffic through
	sources [maxProcs]Bits     // by process: the rules from its own source
	foreign Bits               // rules with another description
	needs   [1 << maxTGBs]Bits // by set of bindings with pods: the rules that they need
	layout  layout
}

// NewSystem returns the system with the given constants. An error says which constant cannot be met.
func NewSystem(c Constants) (*System, error) {
	for _, b := range []struct {
		name             string
		value, low, high int
	}{
		{"TGBs", c.TGBs, 1, maxTGBs}, {"Procs", c.Procs, 1, maxProcs}, {"Workers", c.Workers, 1, maxWorkers},
		{"MaxPods", c.MaxPods, 1, 60}, {"MaxLag", c.MaxLag, 0, maxVersions}, {"MaxFaults", c.MaxFaults, 0, 60},
		{"DeferMin", c.DeferMin, 0, c.DeferMax}, {"DeferMax", c.DeferMax, 0, 120}, {"ResyncMin", c.ResyncMin, 0, c.ResyncMax},
		{"ResyncMax", c.ResyncMax, 0, 250}, {"MarkTTL", c.MarkTTL, 0, 250}, {"RepairBound", c.RepairBound, 0, 250},
	} {
		if b.value < b.low || b.value > b.high {
			return nil, fmt.Errorf("constant %s is %d; it must be %d to %d", b.name, b.value, b.low, b.high)
		}
	}
	if c.TwoClusters && c.Procs != c.TGBs {
		return nil, fmt.Errorf("constant TwoClusters with %d processes and %d bindings; process p serves binding p", c.Procs, c.TGBs)
	}
	s := &System{Constants: c}
	s.number()
	s.layout = s.newLayout()
	if s.layout.bits > maxStateBits {
		return nil, fmt.Errorf("a state takes %d bits; at most %d can be stored: make a constant smaller", s.layout.bits, maxStateBits)
	}
	return s, nil
}

// source returns the source of the rules for a binding: each cluster's load balancer has its own group.
func (s *System) source(t int) int {
	if s.TwoClusters {
		return t
	}
	return 0
}

// number gives every rule that may occur its bit, and tabulates what is wanted, with the same
// aggregation that the live reconciler uses. Port t+1 of the model is port t+1 of the permission.
func (s *System) number() {
	nSources := s.source(s.TGBs-1) + 1
	index := func(source, lo, hi int) int {
		at := source * s.TGBs * (s.TGBs + 1) / 2
		for l := range lo {
			at += s.TGBs - l
		}
		return at + hi - lo
	}
	for source := range nSources {
		for lo := range s.TGBs {
			for hi := lo; hi < s.TGBs; hi++ {
				name := fmt.Sprintf("%d-%d", lo+1, hi+1)
				if s.TwoClusters {
					name += fmt.Sprintf("/c%d", source+1)
				}
				s.names = append(s.names, name)
				rule := Bits(1) << index(source, lo, hi)
				for t := lo; t <= hi; t++ {
					if s.source(t) == source {
						s.allows[t] |= rule
					}
				}
				for p := range s.Procs {
					if p == source || !s.TwoClusters {
						s.sources[p] |= rule
					}
				}
			}
		}
	}
	s.hulls = make([][]Bits, nSources)
	for source := range nSources {
		s.hulls[source] = make([]Bits, 1<<s.TGBs)
		for set := range 1 << s.TGBs {
			var wanted []Permissions
			for t := range s.TGBs {
				if set&(1<<t) != 0 {
					wanted = append(wanted, NewPermissions([]types.IpPermission{port(t + 1)}))
				}
			}
			for _, p := range s.Design.aggregate(wanted) {
				lo, hi := max(int(*p.FromPort), 1)-1, min(int(*p.ToPort), s.TGBs)-1
				s.hulls[source][set] |= 1 << index(source, lo, hi)
			}
		}
	}
	if s.StaticRule {
		s.foreign = 1 << index(0, 0, s.TGBs-1)
	}
	for set := range 1 << s.TGBs {
		for source := range nSources {
			s.needs[set] |= s.hulls[source][s.ofSource(source, set)]
		}
	}
}

// ofSource returns the bindings of a set whose rules have the given source.
func (s *System) ofSource(source, set int) int {
	for t := range s.TGBs {
		if s.source(t) != source {
			set &^= 1 << t
		}
	}
	return set
}

// port is the rule for one port from the load balancer's group.
func port(n int) types.IpPermission {
	return Source{Protocol: "tcp", GroupID: "sg-lb"}.permission(int32(n))
}

// serves returns the bindings that a process serves.
func (s *System) serves(p int) []int {
	if s.TwoClusters {
		return []int{p}
	}
	return []int{0, 1, 2}[:s.TGBs]
}

func (s *System) serving(p int) uint8 {
	var set uint8
	for _, t := range s.serves(p) {
		set |= 1 << t
	}
	return set
}

// RuleNames lists a set of rules by their ports, as in 1-2; with two clusters, also by their source, as in
// 1-2/c1.
func (s *System) RuleNames(set Bits) []string {
	var out []string
	for i, name := range s.names {
		if set&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return out
}

// Initial returns the first states: a pod behind every binding, registered, its port open. With a
// clock there is one for every phase of the resync.
func (s *System) Initial() []State {
	var st State
	st.Born = 1
	for t := range s.TGBs {
		st.Pods[t], st.Registered[t], st.Checkpoint[t] = 1, 1, 1
	}
	if !s.StartEmpty {
		st.Rules = s.needs[1<<s.TGBs-1]
	}
	states := []State{st}
	for p := range s.Procs {
		var next []State
		for _, st := range states {
			st.Memory[p] = Memory{}
			if !s.ColdStart {
				st.Memory[p].Tracked = true
				for t := range s.TGBs {
					st.Memory[p].Computed[t] = OnePort
				}
			}
			for _, timer := range s.freshTimers() {
				st.Timer[p] = timer
				next = append(next, st)
			}
		}
		states = next
	}
	return states
}

// freshTimers returns the timers of a process that has just started, one for every period of the resync.
func (s *System) freshTimers() []Timer {
	var timer Timer
	for t := range s.TGBs {
		timer.Queue[t] = Unset
	}
	if s.Timed {
		timer.Due = 1<<s.TGBs - 1
	}
	var out []Timer
	for n := s.ResyncMin; n <= s.ResyncMax; n++ {
		timer.Resync = uint8(n)
		out = append(out, timer)
	}
	return out
}

// answers returns what a describe may answer, each content once: the rules as they are, then the
// older versions, the newest first.
func (st *State) answers(out []Bits) []Bits {
	out = append(out, st.Rules)
	for i := int(st.Old) - 1; i >= 0; i-- {
		if !slices.Contains(out, st.Versions[i]) {
			out = append(out, st.Versions[i])
		}
	}
	return out
}

// withPods returns the bindings that have a pod, as bits.
func (s *System) withPods(st *State) int {
	set := 0
	for t := range s.TGBs {
		if st.Pods[t] != 0 {
			set |= 1 << t
		}
	}
	return set
}

func (st *State) live(t int) bool { return st.Pods[t] != 0 && st.Registered[t] == st.Pods[t] }
