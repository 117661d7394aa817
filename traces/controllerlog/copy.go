package controllerlog

import (
	"slices"

	"linearize.example/traces"
)

// adopt gives the processes of a log that is a copy of an earlier one their earlier names, so that traces.Merge sees
// that both tell of the same calls. Two logs that differ in one line are of two processes, unless pods' names tell.
func (r *reader) adopt() {
	for _, l := range r.lanes {
		if l.sure {
			return
		}
	}
	mine := r.told(r.input)
	if len(mine.Operations)+len(mine.Observations) == 0 {
		return
	}
	for i := range r.h.Inputs[:r.input] {
		earlier := &r.h.Inputs[i]
		if earlier.Format != r.in.Format || earlier.Records != r.in.Records || earlier.Used != r.in.Used {
			continue
		}
		names, same := sameTelling(r.told(i), mine)
		if !same {
			continue
		}
		for j := r.first; j < len(r.h.Operations); j++ {
			r.h.Operations[j].Process = names[r.h.Operations[j].Process]
		}
		for j := range r.h.Observations {
			if ob := &r.h.Observations[j]; ob.Sources[0].Input == r.input {
				ob.Process = names[ob.Process]
			}
		}
		return
	}
}

// told is the part of the history that an input told.
func (r *reader) told(input int) (part traces.History) {
	for _, op := range r.h.Operations {
		if len(op.Sources) > 0 && op.Sources[0].Input == input {
			part.Operations = append(part.Operations, op)
		}
	}
	for _, ob := range r.h.Observations {
		if len(ob.Sources) > 0 && ob.Sources[0].Input == input {
			part.Observations = append(part.Observations, ob)
		}
	}
	return part
}

// sameTelling reports whether two inputs tell the same at the same lines, and how the second's processes are called in
// the first.
func sameTelling(a, b traces.History) (names map[string]string, same bool) {
	names = map[string]string{}
	rename := func(from, to string) bool {
		if known, ok := names[from]; ok {
			return known == to
		}
		names[from] = to
		return true
	}
	same = slices.EqualFunc(a.Operations, b.Operations, func(x, y traces.Operation) bool {
		return x.Sources[0].Position == y.Sources[0].Position && x.Op == y.Op && x.Group == y.Group &&
			x.TargetGroup == y.TargetGroup && x.Call == y.Call && x.Return == y.Return && x.Outcome == y.Outcome &&
			x.Error == y.Error && x.RequestID == y.RequestID && slices.Equal(x.Permissions, y.Permissions) &&
			slices.Equal(x.Targets, y.Targets) && rename(y.Process, x.Process)
	}) && slices.EqualFunc(a.Observations, b.Observations, func(x, y traces.Observation) bool {
		return x.Sources[0].Position == y.Sources[0].Position && x.Kind == y.Kind && x.TGB == y.TGB && x.Text == y.Text &&
			x.Earliest == y.Earliest && x.Latest == y.Latest && rename(y.Process, x.Process)
	})
	return names, same
}
