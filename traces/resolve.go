package traces

import "slices"

// ResolveRuleIDs returns the operations, which are in the order of Merge, with rule ids replaced by the permissions
// that they stand for: those that an earlier answer gave, or a snapshot. A revoke or a description by id gets
// Permissions, an update gets in Revoked what the rules were before. A successful revoke whose answer lists what it revoked gets in Unknown
// what it was asked for and did not revoke. Calls whose ids nobody explains become Unclear. The input is not changed; it is
// returned itself where nothing has to be resolved.
func ResolveRuleIDs(ops []Operation, snapshots []Snapshot) []Operation {
	ids := map[string]Permission{}
	for _, s := range snapshots {
		for _, r := range s.Rules {
			if r.ID != "" {
				ids[r.ID] = r.Permission
			}
		}
	}
	out := ops
	for i := range ops {
		op := &out[i]
		if op.Outcome == Failed && len(op.RuleIDs) == 0 {
			continue
		}
		if len(out) > 0 && &out[0] == &ops[0] && op.unresolved() {
			out = slices.Clone(ops)
			op = &out[i]
		}
		switch op.Op {
		case AuthorizeSecurityGroupIngress:
			for _, g := range op.Granted {
				ids[g.ID] = g.Permission
			}
			if len(op.Permissions) == 0 && len(op.Granted) > 0 {
				op.Permissions = permissionsOf(op.Granted)
			}
		case RevokeSecurityGroupIngress:
			if op.unresolved() {
				resolveRevoke(op, ids)
			}
		case UpdateSecurityGroupRuleDescriptionsIngress:
			// By id it names no rule, only the description that it shall have.
			for _, u := range op.Updates {
				p, known := ids[u.ID]
				if !known {
					op.Unclear = true
					continue
				}
				op.Permissions = append(slices.Clip(op.Permissions), Permission{p.Rule, u.Description})
			}
			op.Updates = nil
		case ModifySecurityGroupRules:
			var before []IdentifiedPermission
			for _, u := range op.Updates {
				old, known := ids[u.ID]
				if !known {
					op.Unclear = true
					continue
				}
				before = append(before, IdentifiedPermission{u.ID, old})
			}
			op.Revoked = before
			if op.Outcome == Succeeded {
				for _, u := range op.Updates {
					ids[u.ID] = u.Permission
				}
			}
		}
	}
	return out
}

// unresolved reports whether something of the operation may have to be taken from its answer, or from ids.
func (op *Operation) unresolved() bool {
	switch op.Op {
	case AuthorizeSecurityGroupIngress:
		return len(op.Permissions) == 0 && len(op.Granted) > 0
	case RevokeSecurityGroupIngress:
		return len(op.Permissions) == 0 || len(op.Revoked) > 0
	case ModifySecurityGroupRules:
		return true
	}
	return len(op.Updates) > 0
}

func resolveRevoke(op *Operation, ids map[string]Permission) {
	if len(op.RuleIDs) > 0 && len(op.Permissions) == 0 {
		var permissions []Permission
		for _, id := range op.RuleIDs {
			if p, known := ids[id]; known {
				permissions = append(permissions, p)
				continue
			}
			revoked := slices.IndexFunc(op.Revoked, func(r IdentifiedPermission) bool { return r.ID == id })
			if revoked < 0 {
				op.Unclear = op.Outcome != Failed
				continue
			}
			permissions = append(permissions, op.Revoked[revoked].Permission)
		}
		op.Permissions = permissions
	}
	if len(op.Permissions) == 0 {
		op.Permissions = permissionsOf(op.Revoked)
	}
	if op.Outcome == Succeeded && len(op.Revoked) > 0 && len(op.Unknown) == 0 {
		for _, p := range op.Permissions {
			if !slices.ContainsFunc(op.Revoked, func(r IdentifiedPermission) bool { return r.Rule == p.Rule }) {
				op.Unknown = append(op.Unknown, p)
			}
		}
	}
	if op.Outcome == Succeeded && len(op.Permissions) == 0 && len(op.Unknown) == 0 {
		op.Unclear = true
	}
}

func permissionsOf(rules []IdentifiedPermission) []Permission {
	var permissions []Permission
	for _, r := range rules {
		permissions = append(permissions, r.Permission)
	}
	return permissions
}
