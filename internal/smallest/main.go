// Command smallest looks for the smallest changes of v3.4.0 that keep every property in every
// environment, by trying all combinations of the designs' switches. Environments are those of
// designs/proposed.ENVIRONMENT.cfg; a combination that violates a property in one is not tried in the
// next. It prints how many combinations are left after each, and those of which no part is left too.
package main

import (
	"context"
	"fmt"
	"math/bits"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"linearize.example/model"
	"linearize.example/model/explore"
	"linearize.example/model/tlccfg"
)

// change is one switch turned.
type change struct {
	name string
	turn func(*model.Design)
}

// changes are the switches. guard-view is left out: what is viewed and not revoked, plus what is
// authorized, always holds the wanted rule, so that it never prevents a revoke.
var changes = []change{
	{"no-cache", func(d *model.Design) { d.UseCache = false }},
	{"invalidate-on-error", func(d *model.Design) { d.InvalidateOnError = true }},
	{"write-through", func(d *model.Design) { d.WriteThrough = true }},
	{"guard-reread", func(d *model.Design) { d.GuardReread = true }},
	{"confirm-authorize", func(d *model.Design) { d.ConfirmAuthorize = true }},
	{"confirm-before-revoke", func(d *model.Design) { d.ConfirmBeforeRevoke = true }},
	{"read-your-writes", func(d *model.Design) { d.ReadYourWrites = true }},
	{"checkpoint-verifies-aws", func(d *model.Design) { d.CheckpointVerifiesAWS = true }},
	{"group-mutex", func(d *model.Design) { d.GroupMutex = true }},
	{"all-ports", func(d *model.Design) { d.AllPorts = true }},
	{"gate-register", func(d *model.Design) { d.GateRegister = true }},
	{"never-revoke-first", func(d *model.Design) { d.RevokeFirstOnLimit = false }},
	{"wait-out", func(d *model.Design) { d.WaitOut = true }},
	{"own-rules", func(d *model.Design) { d.OwnRules = true }},
}

// environments are ordered so that what is cheap and refuses much comes first.
var environments = []string{
	"failures", "two-clusters", "leader-change", "lost-answers", "denied", "limit", "old-reads",
	"delayed-revokes", "crash", "two-workers", "several-groups", "default-vpc", "restart-at-once",
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "smallest:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	left := combinations()
	fmt.Printf("%d combinations\n", len(left))
	for _, environment := range environments {
		kept := left[:0:0]
		constants, invariants, err := read(environment)
		if err != nil {
			return err
		}
		for _, c := range left {
			holds, err := c.holds(ctx, constants, invariants)
			if err != nil {
				return fmt.Errorf("%s with %v: %w", environment, c, err)
			}
			if holds {
				kept = append(kept, c)
			}
		}
		left = kept
		fmt.Printf("%s: %d left, the smallest are\n", environment, len(left))
		for _, c := range smallest(left) {
			fmt.Println("   ", c)
		}
	}
	return nil
}

// combination is a set of changes, one bit each.
type combination uint

// combinations lists those that differ: without a cache nothing can be done to it, and
// confirm-authorize includes confirm-before-revoke.
func combinations() []combination {
	var out []combination
	for c := combination(0); c < 1<<len(changes); c++ {
		idle := c.has("no-cache") && (c.has("invalidate-on-error") || c.has("write-through")) ||
			c.has("confirm-authorize") && c.has("confirm-before-revoke")
		if !idle {
			out = append(out, c)
		}
	}
	return out
}

func (c combination) has(name string) bool {
	i := slices.IndexFunc(changes, func(x change) bool { return x.name == name })
	return c>>i&1 == 1
}

// String names the changes.
func (c combination) String() string {
	var names []string
	for _, x := range changes {
		if c.has(x.name) {
			names = append(names, x.name)
		}
	}
	return strings.Join(names, " + ")
}

// holds explores v3.4.0 with the changes completely, or up to the first violation.
func (c combination) holds(ctx context.Context, constants model.Constants, invariants []string) (bool, error) {
	design, err := model.DesignNamed("v3.4.0")
	if err != nil {
		return false, err
	}
	for _, x := range changes {
		if c.has(x.name) {
			x.turn(&design)
		}
	}
	constants.Design = design
	system, err := model.NewSystem(constants)
	if err != nil {
		return false, err
	}
	judged, err := system.Judge(invariants)
	if err != nil {
		return false, err
	}
	result, err := explore.Run(ctx, judged, explore.Options{StopAtViolation: true, Workers: 1})
	if err != nil {
		return false, err
	}
	switch result.Reason {
	case explore.Complete, explore.AtViolation:
		return len(result.Violations) == 0, nil
	default:
		return false, fmt.Errorf("exploration %v", result.Reason)
	}
}

// smallest returns the combinations of which no proper part is in the list.
func smallest(list []combination) []combination {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b combination) int {
		return bits.OnesCount(uint(a)) - bits.OnesCount(uint(b))
	})
	var out []combination
	for _, c := range sorted {
		if !slices.ContainsFunc(out, func(part combination) bool { return part&c == part }) {
			out = append(out, c)
		}
	}
	return out
}

func read(environment string) (model.Constants, []string, error) {
	path := filepath.Join("designs", "proposed."+environment+".cfg")
	text, err := os.ReadFile(path)
	if err != nil {
		return model.Constants{}, nil, err
	}
	config, err := tlccfg.Parse(path, text)
	if err != nil {
		return model.Constants{}, nil, err
	}
	constants, err := model.ConstantsOf(config)
	return constants, config.Invariants, err
}
