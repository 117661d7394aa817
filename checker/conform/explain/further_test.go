package explain

import (
	"context"
	"strings"
	"testing"

	"linearize.example/model"
	"linearize.example/traces"
)

// TestFurther: the release that the capture names is tried in wider environments, when it explains nothing yet and only then.
func TestFurther(t *testing.T) {
	release, err := model.DesignNamed("v3.4.0")
	if err != nil {
		t.Fatal(err)
	}
	other, err := model.DesignNamed("v2.7.2")
	if err != nil {
		t.Fatal(err)
	}
	designs := []model.Design{other, release}
	k := newWalker(t, walk{design: "v3.4.0", env: "older-reads", tgbs: 3, looks: true, names: true, seed: 5})
	for i := 0; i < 4000 && len(k.ops) < 60; i++ {
		k.step()
	}
	s := k.subject()
	s.release = "v3.4.0"
	none := []*Result{{Design: "v2.7.2", Verdict: Explains}, {Design: "v3.4.0", Verdict: DoesNot}}
	more, note, err := Further(context.Background(), s, designs, none, Options{}, nil)
	if err != nil || len(more) != 1 || more[0].Design != "v3.4.0" || more[0].Verdict != Explains || !strings.Contains(note, "older-reads; v3.4.0 explains it") {
		t.Errorf("%v, %q, %v", more, note, err)
	}
	if all := Insert(none, more); len(all) != 3 || all[2] != more[0] {
		t.Errorf("%v", all)
	}
	none[1].Verdict = Explains
	if more, note, err := Further(context.Background(), s, designs, none, Options{}, nil); len(more) != 0 || note != "" || err != nil {
		t.Errorf("explained already: %v, %q, %v", more, note, err)
	}
}

// TestFurtherFollowsTheCapture: what the capture gives a reason for is tried, and nothing else.
func TestFurtherFollowsTheCapture(t *testing.T) {
	for _, c := range []struct {
		ops  []operation
		want string
	}{
		{nil, "very-old-reads"},
		{[]operation{{kind: revoke, outcome: traces.Pending}}, "very-old-reads+lost-answers+delayed-revokes"},
		{[]operation{{kind: elect, outcome: traces.Succeeded}, {kind: elect, outcome: traces.Succeeded}}, "very-old-reads+crash+leader-change"},
		{[]operation{{kind: revoke, outcome: traces.Succeeded, foreign: true}}, "very-old-reads+external-revokes"},
	} {
		list := (&Subject{ops: c.ops}).further()
		if got := list[len(list)-1]; got.Name != c.want || got.lag != 6 || got.workers != 3 {
			t.Errorf("%s, want %s: %+v", got.Name, c.want, got)
		}
	}
	if _, err := EnvironmentNamed("old-reads+none"); err == nil {
		t.Error("no environment is called none")
	}
}
