package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Writing the evidence again changes nothing, and --check notices when something differs.
func TestEvidence(t *testing.T) {
	dir := t.TempDir()
	args := []string{"--designs", "../../designs", "--out", dir, "--only", "^(v3.4.0|confirm-authorize)/(fresh|old)-reads$"}
	if status, out := runCommand(t, newEvidenceCommand(), args...); status != exitHolds || !strings.Contains(out, "4 explorations") {
		t.Fatalf("status %d: %s", status, out)
	}
	if status, out := runCommand(t, newEvidenceCommand(), append(args, "--check")...); status != exitHolds {
		t.Errorf("written again, the files differ: %s", out)
	}
	page, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		"| `v3.4.0` | yes | **[no, 13](stories/v3.4.0.old-reads.svg)** |",
		"| `confirm-authorize` | yes | yes |",
	} {
		if !strings.Contains(string(page), s) {
			t.Errorf("README.md lacks %s\n%s", s, page)
		}
	}
	story := filepath.Join(dir, "stories", "v3.4.0.old-reads.txt")
	if err := os.WriteFile(story, []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, out := runCommand(t, newEvidenceCommand(), append(args, "--check")...); status != exitViolated || !strings.Contains(out, story) {
		t.Errorf("a changed file is not noticed: %d %s", status, out)
	}
	if status, out := runCommand(t, newEvidenceCommand(), "--designs", dir); status != exitUsage || !strings.Contains(out, "no configurations") {
		t.Errorf("a folder without configurations: %d %s", status, out)
	}
}
