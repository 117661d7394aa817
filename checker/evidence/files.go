package evidence

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"linearize.example/model"
)

// Files returns what docs/evidence holds, by file name: the matrix for people and for machines, every
// counterexample as a drawing and as text, and the page on the report's suggestions.
func (e *Evidence) Files() (map[string][]byte, error) {
	files := map[string][]byte{}
	for i := range e.Cells {
		e.Cells[i].nameStories()
		e.Cells[i].tellStories(files)
	}
	var matrix bytes.Buffer
	enc := json.NewEncoder(&matrix)
	enc.SetIndent("", " ")
	err := enc.Encode(struct {
		Schema       string            `json:"schema"`
		Environments map[string]string `json:"environments"`
		Cells        []Cell            `json:"cells"`
		Costs        []Cost            `json:"costs"`
	}{"linearize.evidence/v1", e.bounds(), e.Cells, e.Costs})
	if err != nil {
		return nil, err
	}
	files["matrix.json"] = matrix.Bytes()
	files["README.md"] = []byte(e.matrixPage())
	for name, page := range map[string]page{"suggestions.md": suggestions, "claims.md": claims} {
		text, err := e.write(page)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = []byte(text)
	}
	return files, nil
}

// bounds says of every environment within which bounds it is exhaustive.
func (e *Evidence) bounds() map[string]string {
	out := map[string]string{}
	for _, env := range e.environments {
		out[env.name] = describe(env.constants)
	}
	return out
}

// nameStories gives each counterexample a file. Properties that one run violates at once share it.
func (c *Cell) nameStories() {
	var texts, names []string
	for i := range c.Judged {
		j := &c.Judged[i]
		story, told := c.counterexamples[j.Property]
		if !told {
			continue
		}
		text := story.Text()
		if at := slices.Index(texts, text); at >= 0 {
			j.Story = names[at]
			continue
		}
		j.Story = "stories/" + c.Design + "." + c.Environment
		if len(names) > 0 {
			j.Story += "." + j.Property
		}
		texts, names = append(texts, text), append(names, j.Story)
	}
}

func (c *Cell) tellStories(files map[string][]byte) {
	for _, j := range c.Judged {
		if _, drawn := files[j.Story+".svg"]; drawn || j.Story == "" {
			continue
		}
		var also []string
		for _, other := range c.Judged {
			if other.Story == j.Story {
				also = append(also, other.Property)
			}
		}
		verb := "is"
		if len(also) > 1 {
			verb = "are"
		}
		title := fmt.Sprintf("%s, %s: %s %s violated after %d steps", c.Design, c.Environment, strings.Join(also, " and "), verb, j.Steps)
		end := j.Property + ": " + meanings[j.Property]
		story := c.counterexamples[j.Property]
		files[j.Story+".svg"] = []byte(story.Diagram(title, end).SVG())
		files[j.Story+".txt"] = []byte(title + ".\n" + end + ".\n\n" + story.Text())
	}
}

// describe says in words what an environment allows, and how large it is.
func describe(c model.Constants) string {
	several := func(n int, one, more string) string {
		if n == 1 {
			return "1 " + one
		}
		return fmt.Sprintf("%d %s", n, more)
	}
	parts := []string{
		several(c.TGBs, "binding", "bindings"), several(c.Procs, "process", "processes"),
		several(c.Workers, "worker in each", "workers in each"), several(c.MaxPods-1, "new pod", "new pods"),
	}
	if c.MaxLag > 0 {
		parts = append(parts, "reads old by up to "+several(c.MaxLag, "change", "changes"))
	} else {
		parts = append(parts, "reads never old")
	}
	var faults []string
	for _, f := range []struct {
		on   bool
		name string
	}{
		{c.Failures, "a call fails"}, {c.LostAnswers, "an answer is lost"}, {c.DelayedRevokes, "a revoke arrives late"},
		{c.Crashes, "a crash"}, {c.LeaderChanges, "a change of the leader"}, {c.ExternalRevokes, "a rule is removed from outside"},
	} {
		if f.on {
			faults = append(faults, f.name)
		}
	}
	if len(faults) > 0 {
		parts = append(parts, fmt.Sprintf("up to %s of: %s", several(c.MaxFaults, "fault", "faults"), strings.Join(faults, ", ")))
	}
	for _, f := range []struct {
		on   bool
		text string
	}{
		{c.Denied, "every authorize is denied"}, {c.RuleLimit < 10, fmt.Sprintf("room for %s", several(c.RuleLimit, "rule", "rules"))},
		{c.TwoClusters, "two clusters write to the group"}, {c.StaticRule, "somebody else's rule for all ports is there"},
		{c.SeveralGroups, "interfaces with several groups"}, {c.DefaultVPC, "a revoke of absent rules succeeds"},
		{!c.GroupTagged, "the group does not bear the cluster's tag"}, {c.StablePod, "the pod of binding 1 stays"},
		{c.LagOutlivesCache, "reads may be old when a cache entry has expired"}, {c.DeferredQueue, "unchanged bindings are deferred"},
		{c.ColdStart, "the run begins with a start"}, {c.StartEmpty, "at first there is no rule"},
	} {
		if f.on {
			parts = append(parts, f.text)
		}
	}
	if c.Timed {
		parts = append(parts, fmt.Sprintf("a clock: deferred for %d to %d ticks, resync after %d to %d, mark for %d, bound %d",
			c.DeferMin, c.DeferMax, c.ResyncMin, c.ResyncMax, c.MarkTTL, c.RepairBound))
	}
	return strings.Join(parts, "; ")
}

// verdict is a judgment as a table shows it: yes, or the length of the counterexample, linked to it.
func (j Judgment) cell() string {
	switch {
	case j.Verdict == "holds":
		return "yes"
	case j.Verdict == "violated" && j.Story != "":
		return fmt.Sprintf("**[no, %d](%s.svg)**", j.Steps, j.Story)
	case j.Verdict == "violated":
		return "**no**"
	}
	return "unknown"
}

func duration(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second)).Round(time.Minute)
	if d < time.Hour {
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

// table writes a Markdown table.
func table(b *strings.Builder, head []string, rows [][]string) {
	b.WriteString("| " + strings.Join(head, " | ") + " |\n|" + strings.Repeat("---|", len(head)) + "\n")
	for _, r := range rows {
		b.WriteString("| " + strings.Join(r, " | ") + " |\n")
	}
	b.WriteString("\n")
}
