package model

import (
	"fmt"
	"slices"
	"strings"

	"linearize.example/model/explore"
)

// Call is a change of the group that a run makes, and EC2's answer to it.
type Call struct {
	Revoke bool
	Rules  Bits
	Answer Code
}

// Incident is the sequence of calls of 2026-08-28, with the model's ports for the real ones: 1-1 is
// 3000-3008, and 1-2 is 3000-8025.
const Incident = "authorize 1-1, revoke 1-2, revoke 1-2: NotFound, revoke 1-2: NotFound, revoke 1-1"

// ParseCalls reads calls as Incident writes them: "authorize RULES" or "revoke RULES", with several
// rules joined by +, and ": Duplicate", ": NotFound", ": LimitExceeded" or ": failed" when the call fails.
func (s *System) ParseCalls(text string) ([]Call, error) {
	answers := map[string]Code{"": OK, "Duplicate": Duplicate, "NotFound": NotFound, "LimitExceeded": LimitExceeded, "failed": Failed}
	var out []Call
	for _, part := range strings.Split(text, ",") {
		what, answer, _ := strings.Cut(part, ":")
		verb, rules, _ := strings.Cut(strings.TrimSpace(what), " ")
		code, known := answers[strings.TrimSpace(answer)]
		if !known || verb != "authorize" && verb != "revoke" {
			return nil, fmt.Errorf("call %q: write authorize or revoke, rules as in 1-2+2-2, and perhaps : Duplicate, : NotFound, "+
				": LimitExceeded or : failed", strings.TrimSpace(part))
		}
		c := Call{Revoke: verb == "revoke", Answer: code}
		for _, name := range strings.Split(rules, "+") {
			i := slices.Index(s.names, strings.TrimSpace(name))
			if i < 0 {
				return nil, fmt.Errorf("call %q: no rule is called %q; there are %s", strings.TrimSpace(part), name, strings.Join(s.names, ", "))
			}
			c.Rules |= 1 << i
		}
		out = append(out, c)
	}
	if len(out) > 15 {
		return nil, fmt.Errorf("%d calls; at most 15 can be followed", len(out))
	}
	return out, nil
}

// call returns the change that a step makes, if it is one that EC2 answers.
func (e Event) call() (Call, bool) {
	switch e.Action {
	case AuthorizeOk:
		return Call{false, e.Rules, OK}, true
	case AuthorizeDuplicate:
		return Call{false, e.Rules, Duplicate}, true
	case AuthorizeLimit:
		return Call{false, e.Rules, LimitExceeded}, true
	case AuthorizeDenied, AuthorizeFails, AuthorizeAnswerLost:
		return Call{false, e.Rules, Failed}, true
	case RevokeOk:
		return Call{true, e.Rules, OK}, true
	case RevokeNotFound:
		return Call{true, e.Rules, NotFound}, true
	case RevokeFails, RevokeAnswerLost, RevokeDelayed:
		return Call{true, e.Rules, Failed}, true
	}
	return Call{}, false
}

// through restricts a model to the runs whose changes are the given calls, in that order. A run is
// judged when it has made all of them.
type through struct {
	*Model
	calls []Call
}

const throughBits = 4

// Through returns the model restricted to the runs that make exactly these calls. It fails when a
// state has no room for the number of calls made.
func (m *Model) Through(calls []Call) (explore.Model, error) {
	if m.layout.bits+throughBits > maxStateBits {
		return nil, fmt.Errorf("a state takes %d bits and leaves no room to follow calls: make a constant smaller", m.layout.bits)
	}
	return &through{m, calls}, nil
}

func (t *through) Bits() int                  { return t.layout.bits + throughBits }
func (t *through) Expander() explore.Expander { return t }

func (t *through) made(packed explore.State) int {
	u := unpacker{state: packed, at: t.layout.bits}
	return int(u.get(throughBits))
}

func (t *through) Successors(packed explore.State, emit func(int, explore.State)) {
	st, made := t.Unpack(packed), t.made(packed)
	t.Next(&st, func(e Event, next *State) {
		after := made
		if c, isCall := e.call(); isCall {
			if made == len(t.calls) || c != t.calls[made] {
				return
			}
			after++
		}
		p := packer{state: t.Pack(next), at: t.layout.bits}
		p.put(uint32(after), throughBits)
		emit(int(e.Action), p.state)
	})
}

func (t *through) Violated(packed explore.State) uint64 {
	if t.made(packed) < len(t.calls) {
		return 0
	}
	return t.Model.Violated(packed)
}
