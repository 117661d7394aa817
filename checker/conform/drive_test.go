package conform

import (
	"testing"

	"linearize.example/model"
)

func TestActionsAreNumberedAsTheModels(t *testing.T) {
	actions := program().Actions
	for i, a := range actions {
		if name := model.Action(i).String(); name != a.Name {
			t.Errorf("action %d is %s here and %s in the reference implementation", i, a.Name, name)
		}
	}
	if last := model.Action(len(actions) - 1); last != model.Tick {
		t.Errorf("the last action is %s, want %s", last, model.Tick)
	}
}
