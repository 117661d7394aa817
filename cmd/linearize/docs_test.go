package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what the commands print into the documentation")

// TestDocumentation runs every command of the documentation's console blocks and compares what it prints. A block holds one
// command, "$ linearize ARGUMENTS", perhaps with " | head -N", and its output; a last line "exit status N" is the exit
// status, where it is not 0.
func TestDocumentation(t *testing.T) {
	root := filepath.Join("..", "..")
	var pages []string
	for _, pattern := range []string{"README.md", "docs/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	commands := 0
	t.Chdir(root)
	for _, page := range pages {
		page, err := filepath.Rel(root, page)
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		rest := string(content)
		for {
			before, block, found := strings.Cut(rest, "```console\n")
			out.WriteString(before)
			if !found {
				break
			}
			body, after, closed := strings.Cut(block, "```\n")
			if !closed {
				t.Fatalf("%s: a block is not closed", page)
			}
			line, want, _ := strings.Cut(body, "\n")
			if !strings.HasPrefix(line, "$ linearize ") {
				out.WriteString("```console\n" + body + "```\n")
				rest = after
				continue
			}
			commands++
			got := execute(t, strings.TrimPrefix(line, "$ linearize "))
			if diff := cmp.Diff(want, got); diff != "" && !*update {
				t.Errorf("%s: %s (-documented +printed, see -update):\n%s", page, line, diff)
			}
			out.WriteString("```console\n" + line + "\n" + got + "```\n")
			rest = after
		}
		if *update && out.String() != string(content) {
			if err := os.WriteFile(page, []byte(out.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if commands == 0 {
		t.Error("the documentation has no command")
	}
}

// execute runs one command line and returns what it prints, with the exit status where it is not 0.
func execute(t *testing.T, line string) string {
	line, head, limited := strings.Cut(line, " | head -")
	var stdout, stderr bytes.Buffer
	status := run(strings.Fields(line), strings.NewReader(""), &stdout, &stderr)
	text := stdout.String() + stderr.String()
	if limited {
		n, err := strconv.Atoi(head)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		lines := strings.SplitAfter(text, "\n")
		text = strings.Join(lines[:min(n, len(lines))], "")
	}
	if status != 0 {
		text += fmt.Sprintf("exit status %d\n", status)
	}
	return text
}
