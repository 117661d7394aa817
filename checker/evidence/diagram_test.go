package evidence

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

var example = Diagram{
	Title: "v3.4.0, old reads: never-empty is violated",
	Lanes: []string{"cluster", "process 1, worker a", "EC2, group"},
	Rows: []Row{
		{0, 0, "pod of binding 2 is gone", false, "{1-2}"},
		{1, 2, "authorize 1-1", false, "{1-1, 1-2}"},
		{2, 1, "describe: {1-1, 1-2}, old", false, "{1-1, 1-2}"},
		{1, 2, "revoke 1-2: NotFound", true, "{1-1}"},
		{1, 1, "fails; the answer stays in the cache & <nobody> looks", true, "{1-1}"},
	},
	End: "never-empty: no managed rule is left while binding 1 has a live, registered target",
}

// A drawing is well-formed, says every text of the diagram, and is the same each time.
func TestSVG(t *testing.T) {
	svg := example.SVG()
	if svg != example.SVG() {
		t.Error("two drawings of one diagram differ")
	}
	if dir := os.Getenv("EVIDENCE_KEEP"); dir != "" {
		if err := os.WriteFile(dir+"/example.svg", []byte(svg), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var said []string
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := tok.(xml.CharData); ok {
			said = append(said, string(s))
		}
	}
	all := strings.Join(said, "\n")
	want := append([]string{example.Title, example.End}, example.Lanes...)
	for _, r := range example.Rows {
		want = append(want, r.Text)
	}
	for _, w := range want {
		if !strings.Contains(all, w) {
			t.Errorf("%q is not in the drawing", w)
		}
	}
	if n := strings.Count(all, "{1-1, 1-2}"); n != 2 {
		t.Errorf("the rules {1-1, 1-2} are drawn %d times: once in a label and once where they change", n)
	}
}
