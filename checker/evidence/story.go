package evidence

import (
	"fmt"
	"strings"

	"linearize.example/model"
	"linearize.example/model/explore"
)

// Line is one step of a story: who did what, seeing what, and the group's rules afterwards.
type Line struct {
	Step   int      `json:"step"`
	Action string   `json:"action"` // its name in spec.tla
	Who    string   `json:"who"`
	Does   string   `json:"does"`
	Sees   []string `json:"sees,omitempty"` // the rules that it saw
	Old    bool     `json:"old,omitempty"`  // what it saw was old
	Failed bool     `json:"failed,omitempty"`
	Rules  []string `json:"rules"` // of the group, afterwards

	row Row
}

// Story is a run of the model, told step by step.
type Story struct {
	Initial []string `json:"initial_rules"`
	Lines   []Line   `json:"steps"`
	lanes   []string
}

// Tell turns a path that the explorer found into a story.
func Tell(s *model.System, path []explore.Step) Story {
	first := s.Unpack(path[0].State)
	t := teller{System: s}
	story := Story{Initial: s.RuleNames(first.Rules), lanes: t.lanes()}
	for i, m := range s.Moments(path) {
		line := t.line(m)
		line.Step = i + 1
		line.Action = m.Event.Action.String()
		line.Rules = s.RuleNames(m.After.Rules)
		line.row.Text, line.row.Failed, line.row.After = line.Does, line.Failed, braces(line.Rules)
		story.Lines = append(story.Lines, line)
	}
	return story
}

// Diagram draws the story.
func (s Story) Diagram(title, end string) Diagram {
	d := Diagram{Title: title, Lanes: s.lanes, End: end}
	d.Rows = append(d.Rows, Row{Text: "at first", After: braces(s.Initial)})
	for _, l := range s.Lines {
		d.Rows = append(d.Rows, l.row)
	}
	return d
}

// Text lists the story in columns of at most 100 characters.
func (s Story) Text() string {
	width := 0
	for _, l := range s.Lines {
		width = max(width, len(l.Who))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "   0  at first%s%s\n", strings.Repeat(" ", 64), braces(s.Initial))
	for _, l := range s.Lines {
		does := wrap(l.Does, 68-width)
		for i, part := range does {
			if i == 0 {
				fmt.Fprintf(&b, "%4d  %-*s  %-*s  %s\n", l.Step, width, l.Who, 68-width, part, braces(l.Rules))
			} else {
				fmt.Fprintf(&b, "      %-*s    %s\n", width, "", part)
			}
		}
	}
	return b.String()
}

func wrap(s string, width int) []string {
	var out []string
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && len(line)+1+len(word) > width {
			out = append(out, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(out, line)
}

func braces(names []string) string { return "{" + strings.Join(names, ", ") + "}" }

// teller finds the words for steps.
type teller struct{ *model.System }

// Lanes of the diagram: the cluster, then every worker, then EC2.
func (t teller) lanes() []string {
	lanes := []string{"cluster"}
	for p := range t.Procs {
		for w := range t.Workers {
			lanes = append(lanes, t.who(p, w))
		}
	}
	return append(lanes, "EC2, the group")
}

func (t teller) who(p, w int) string {
	name := "controller"
	if t.TwoClusters {
		name = fmt.Sprintf("cluster %d", p+1)
	} else if t.Procs > 1 {
		name = fmt.Sprintf("process %d", p+1)
	}
	if t.Workers > 1 {
		name += ", worker " + string(rune('a'+w))
	}
	return name
}

// line describes one step. Lanes and words follow from the action; what was seen, from the event.
func (t teller) line(m model.Moment) Line {
	e := m.Event
	p, w, binding := int(e.P), int(e.W), int(e.T)+1
	worker, ec2 := 1+p*t.Workers+w, 1+t.Procs*t.Workers
	rules := braces(t.RuleNames(e.Rules))
	says := func(from, to int, who, does string) Line {
		return Line{Who: who, Does: does, row: Row{From: from, To: to}}
	}
	own := func(does string) Line { return says(worker, worker, t.who(p, w), does) }
	call := func(verb, answer string, failed bool) Line {
		l := says(worker, ec2, t.who(p, w), fmt.Sprintf("%s %s: %s", verb, rules, answer))
		l.Failed = failed
		return l
	}
	sees := func(from int, how string) Line {
		l := says(from, worker, t.who(p, w), how+" "+rules)
		l.Sees, l.Old = t.RuleNames(e.Rules), e.Rules != m.Before.Rules
		if l.Old {
			l.Does += ", which is old"
		}
		return l
	}
	cluster := func(does string) Line { return says(0, 0, "cluster", does) }
	group := func(does string) Line { return says(ec2, ec2, "EC2", does) }
	switch e.Action {
	case model.PodComes:
		return cluster(fmt.Sprintf("a pod of binding %d comes", binding))
	case model.PodGoes:
		return cluster(fmt.Sprintf("the pod of binding %d goes", binding))
	case model.Pick:
		if m.Before.Pods[e.T] == 0 {
			return own(fmt.Sprintf("takes up binding %d: it has no pod", binding))
		}
		return own(fmt.Sprintf("takes up binding %d: it has a pod", binding))
	case model.Skip:
		return own(fmt.Sprintf("skips binding %d: its checkpoint is equal", binding))
	case model.FireDeferred:
		return own(fmt.Sprintf("empties the checkpoint of binding %d, which was deferred", binding))
	case model.LookUpGroup:
		return sees(ec2, "describes, outside the mutex:")
	case model.SaveLookUp:
		return own("saves that answer to the cache: " + rules)
	case model.Lock:
		does := "takes the mutex; all bindings want " + rules
		if t.AuthorizeOnly(&m.After, p) {
			does += "; may only grant"
		}
		return own(does)
	case model.ReadCache:
		return sees(worker, "finds in the cache:")
	case model.Describe:
		return sees(ec2, "describes:")
	case model.Reload:
		return sees(ec2, "describes again:")
	case model.AuthorizeOk:
		return call("authorize", "ok", false)
	case model.AuthorizeDuplicate:
		return call("authorize", "Duplicate", true)
	case model.AuthorizeLimit:
		return call("authorize", "the group is full", true)
	case model.AuthorizeDenied:
		return call("authorize", "denied", true)
	case model.SeeGrant:
		return sees(ec2, "sees the grant:")
	case model.Reread:
		return sees(ec2, "describes before the revoke:")
	case model.RevokeOk:
		return call("revoke", "ok", false)
	case model.RevokeNotFound:
		return call("revoke", "NotFound", true)
	case model.SeeRevoke:
		return sees(ec2, "sees the revoke:")
	case model.ListTagged:
		return sees(ec2, "lists the tagged groups:")
	case model.Unlock:
		if m.Before.Worker[p][w].Failed {
			l := own("releases the mutex; the network part failed")
			l.Failed = true
			return l
		}
		return own("releases the mutex")
	case model.Register:
		return own(t.registers(m, p, w, binding))
	case model.DescribeFails:
		l := says(worker, ec2, t.who(p, w), "describe: fails")
		l.Failed = true
		return l
	case model.AuthorizeFails:
		return call("authorize", "fails", true)
	case model.RevokeFails:
		return call("revoke", "fails", true)
	case model.AuthorizeAnswerLost:
		return call("authorize", "done, answer lost", true)
	case model.RevokeAnswerLost:
		return call("revoke", "done, answer lost", true)
	case model.RevokeDelayed:
		return call("revoke", "no answer yet", true)
	case model.DelayedRevokeArrives:
		return group("the late revoke of " + rules + " arrives")
	case model.Crash:
		return own("crashes and starts anew, with nothing in memory")
	case model.LeaderChange:
		return own("becomes the leader, with nothing in memory")
	case model.ExternalRevoke:
		return group("somebody else removes " + rules)
	case model.Settle:
		return group("the oldest version is no longer read")
	case model.ExpireCache:
		return own("drops its cache entry: ten minutes are over")
	case model.Resync:
		return own("begins a resync")
	case model.Tick:
		return cluster("time passes: one tick")
	}
	return cluster(e.Action.String())
}

func (t teller) registers(m model.Moment, p, w, binding int) string {
	before, after := m.Before.Registered[binding-1], m.After.Registered[binding-1]
	end := "; stores the checkpoint"
	if m.Before.Worker[p][w].Failed {
		end = "; will try again"
	}
	switch {
	case before == after:
		return fmt.Sprintf("binding %d: targets unchanged%s", binding, end)
	case after == 0:
		return fmt.Sprintf("binding %d: deregisters the target%s", binding, end)
	}
	return fmt.Sprintf("binding %d: registers the pod%s", binding, end)
}
