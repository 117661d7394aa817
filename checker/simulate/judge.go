package simulate

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"linearize.example/checker"
	"linearize.example/checker/property"
	"linearize.example/checker/report"
	"linearize.example/traces/capture"
)

// Properties are those that a run is judged by, in the order in which they are shown.
var Properties = []string{property.NeverEmpty, property.Covered, property.RepairBound, property.Tight}

// Judge judges the history of a run, as `linearize check` does.
func Judge(ctx context.Context, history []byte, bound time.Duration) (*report.Report, error) {
	c, err := capture.Read(ctx, []string{"-"}, bytes.NewReader(history), capture.Options{})
	if err != nil {
		return nil, err
	}
	opt := checker.DefaultOptions()
	opt.RepairBound = bound
	opt.Groups = []string{PodGroup}
	opt.ClockSkew = 0 // a history has exact times, of one clock
	r := checker.Check(ctx, c, opt)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(r.Groups) != 1 {
		return nil, fmt.Errorf("the history of a run has %d groups to judge instead of one", len(r.Groups))
	}
	return r, nil
}

// verdictOf returns the verdict on one property.
func verdictOf(r *report.Report, name string) report.Verdict {
	if p := propertyOf(r, name); p != nil {
		return p.Verdict
	}
	return report.Unknown
}

func propertyOf(r *report.Report, name string) *report.Property {
	for i := range r.Groups[0].Properties {
		if p := &r.Groups[0].Properties[i]; p.Name == name {
			return p
		}
	}
	return nil
}
