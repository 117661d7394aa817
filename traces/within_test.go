package traces

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithin(t *testing.T) {
	ops := []Operation{
		{ID: "a", Call: 0, Return: 1, After: -1},
		{ID: "b", Call: 2, Return: 3, After: 0},
		{ID: "c", Call: 4, Return: 4, After: 1},
		{ID: "d", Call: 5, Return: Forever, After: 2},
		{ID: "e", Call: 9, Return: 9, After: 2},
	}
	type kept struct {
		ID    string
		After int
	}
	for _, c := range []struct {
		name         string
		since, until Instant
		want         []kept
	}{
		{"all", Beginning, Forever, []kept{{"a", -1}, {"b", 0}, {"c", 1}, {"d", 2}, {"e", 2}}},
		{"bounds are included", 1, 4, []kept{{"a", -1}, {"b", 0}, {"c", 1}}},
		{"what is not over stays", 8, Forever, []kept{{"d", -1}, {"e", -1}}},
		{"the order among those that stay", 3, 9, []kept{{"b", -1}, {"c", 0}, {"d", 1}, {"e", 1}}},
		{"what has no answer may be open for ever", 100, 101, []kept{{"d", -1}}},
		{"nothing", -9, -5, nil},
	} {
		var got []kept
		for _, op := range Within(ops, c.since, c.until) {
			got = append(got, kept{op.ID, op.After})
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, d)
		}
	}
	// What lies between is passed over.
	if got := Pick(ops, []int{0, 2}); got[1].After != 0 || ops[2].After != 1 {
		t.Errorf("after %d; the operations themselves say %d", got[1].After, ops[2].After)
	}
}
