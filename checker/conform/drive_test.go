package conform

import "testing"

func TestActionsAreNumberedInTheOrderOfNext(t *testing.T) {
	names := program().Actions
	for _, c := range []struct {
		action Action
		name   string
	}{{PodComes, "PodComes"}, {Pick, "Pick"}, {Describe, "Describe"}, {AuthorizeOk, "AuthorizeOk"}, {RevokeNotFound, "RevokeNotFound"},
		{Register, "Register"}, {RevokeDelayed, "RevokeDelayed"}, {Crash, "Crash"}, {ExternalRevoke, "ExternalRevoke"}, {Tick, "Tick"}} {
		if names[c.action].Name != c.name {
			t.Errorf("action %d is %s, not %s", c.action, names[c.action].Name, c.name)
		}
	}
	if len(names) != int(Tick)+1 {
		t.Errorf("%d actions, want %d", len(names), Tick+1)
	}
}
