package model

import (
	"fmt"
	"strings"
)

// designs lists every design, each by what it changes of an earlier one. The first is v3.4.0.
var designs = buildDesigns()

func buildDesigns() []Design {
	v340 := Design{Name: "v3.4.0", UseCache: true, RevokeFirstOnLimit: true}
	proposed := Design{
		UseCache: true, ConfirmAuthorize: true, GateRegister: true, WaitOut: true, OwnRules: true,
		CheckpointVerifiesAWS: true,
	}
	all := []Design{v340}
	add := func(name string, base Design, change func(*Design)) {
		base.Name = name
		change(&base)
		all = append(all, base)
	}
	add("v2.7.2", v340, func(d *Design) { d.RevokeFirst, d.RevokeFirstOnLimit = true, false })
	add("invalidate-on-error", v340, func(d *Design) { d.InvalidateOnError = true })
	add("no-cache", v340, func(d *Design) { d.UseCache = false })
	add("write-through", v340, func(d *Design) { d.WriteThrough = true })
	add("guard-view", v340, func(d *Design) { d.GuardView = true })
	add("guard-reread", v340, func(d *Design) { d.GuardReread = true })
	add("read-your-writes", v340, func(d *Design) { d.ReadYourWrites = true })
	add("checkpoint-verifies-aws", v340, func(d *Design) { d.CheckpointVerifiesAWS = true })
	add("group-mutex", v340, func(d *Design) { d.GroupMutex = true })
	add("all-ports", v340, func(d *Design) { d.AllPorts = true })
	add("gate-register", v340, func(d *Design) { d.GateRegister = true })
	add("never-revoke-first", v340, func(d *Design) { d.RevokeFirstOnLimit = false })
	add("wait-out", v340, func(d *Design) { d.WaitOut = true })
	add("own-rules", v340, func(d *Design) { d.OwnRules = true })
	add("confirm-before-revoke", v340, func(d *Design) { d.ConfirmBeforeRevoke = true })
	add("confirm-authorize", v340, func(d *Design) { d.ConfirmAuthorize = true })
	add("proposed", proposed, func(*Design) {})
	add("proposed-confirm-before-revoke", proposed, func(d *Design) { d.ConfirmAuthorize, d.ConfirmBeforeRevoke = false, true })
	add("proposed-read-your-writes", proposed, func(d *Design) { d.ConfirmAuthorize, d.ReadYourWrites = false, true })
	add("proposed-revoke-first-on-limit", proposed, func(d *Design) { d.RevokeFirstOnLimit = true })
	add("proposed-without-checkpoint-verifies-aws", proposed, func(d *Design) { d.CheckpointVerifiesAWS = false })
	add("proposed-without-confirm-authorize", proposed, func(d *Design) { d.ConfirmAuthorize = false })
	add("proposed-without-gate-register", proposed, func(d *Design) { d.GateRegister = false })
	add("proposed-without-own-rules", proposed, func(d *Design) { d.OwnRules = false })
	add("proposed-without-wait-out", proposed, func(d *Design) { d.WaitOut = false })
	return all
}

// DesignNames lists the names of all designs, v3.4.0 first.
func DesignNames() []string {
	names := make([]string, len(designs))
	for i, d := range designs {
		names[i] = d.Name
	}
	return names
}

// DesignNamed returns the design of that name. The error of an unknown name lists those there are.
func DesignNamed(name string) (Design, error) {
	for _, d := range designs {
		if d.Name == name {
			return d, nil
		}
	}
	return Design{}, fmt.Errorf("no design is called %q; there are %s", name, strings.Join(DesignNames(), ", "))
}
