package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

const incident = "../../testdata/captures/incident-2026-08-28"

// TestCheckRefusals has calls of the tool that cannot be answered: each is exit status 2 and says what to do.
func TestCheckRefusals(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--sg", "sg-typo"}, "--sg sg-typo: nothing recorded is of this group, but of sg-053bdd55831dccd60"},
		{[]string{"--rows=-1"}, "--rows -1 is negative"},
		{[]string{"--max-states=-1"}, "--max-states -1 is negative"},
		{[]string{"--max-expansion=-1"}, "--max-expansion -1 is negative"},
		{[]string{"--since", "2026-08-28T11:00:00Z", "--until", "2026-08-28T10:00:00Z"}, "--until 2026-08-28T10:00:00Z is before --since"},
		{[]string{"-o", folder}, "cannot write " + folder + ": it is a folder"},
		{[]string{"-o", filepath.Join(folder, "none", "report")}, "cannot write " + filepath.Join(folder, "none", "report") + ": no such file"},
	} {
		var stdout, stderr bytes.Buffer
		status := run(append([]string{"check", incident}, c.args...), strings.NewReader(""), &stdout, &stderr)
		if status != exitUsage || !strings.Contains(stderr.String(), c.want) || stdout.Len() > 0 {
			t.Errorf("%q: status %d, %q, want %q", c.args, status, stderr.String(), c.want)
		}
	}
}

// TestOutputFollowsLinks: a link stays one, and the file that it names is replaced.
func TestOutputFollowsLinks(t *testing.T) {
	folder := t.TempDir()
	file, link := filepath.Join(folder, "file"), filepath.Join(folder, "link")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if status := run([]string{"check", incident, "-o", link}, strings.NewReader(""), &stdout, &stderr); status != exitViolated {
		t.Fatalf("status %d: %s", status, stderr.String())
	}
	if content, err := os.ReadFile(file); err != nil || !bytes.HasPrefix(content, []byte("violated: ")) {
		t.Errorf("the file has %q, %v", content, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is replaced: %v, %v", info, err)
	}
}

// TestOutputToADevice: what is no file is written to and stays what it is.
func TestOutputToADevice(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if status := run([]string{"check", incident, "-o", os.DevNull}, strings.NewReader(""), &stdout, &stderr); status != exitViolated {
		t.Fatalf("status %d: %s", status, stderr.String())
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("the device is replaced: %v, %v", info, err)
	}
}

// TestHelpFits: help is at most 100 columns wide.
func TestHelpFits(t *testing.T) {
	for _, command := range []string{"check", "convert", "explain", "explore", "evidence"} {
		var stdout, stderr bytes.Buffer
		if status := run([]string{command, "--help"}, strings.NewReader(""), &stdout, &stderr); status != exitHolds {
			t.Errorf("%s: status %d: %s", command, status, stderr.String())
		}
		for line := range strings.Lines(stdout.String()) {
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 100 {
				t.Errorf("%s: too wide: %s", command, line)
			}
		}
	}
}

// TestInterruptedWhileNothingComes: a pipe that stays open and silent does not hold the tool.
func TestInterruptedWhileNothingComes(t *testing.T) {
	stdin, writer := io.Pipe()
	defer writer.Close()
	ctx, cancel := context.WithCancel(t.Context())
	root := newRootCommand()
	root.SetArgs([]string{"check", "-"})
	root.SetIn(stdin)
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	cancel()
	if err := root.ExecuteContext(ctx); err == nil || err.Error() != "interrupted; no verdict" {
		t.Errorf("got %v", err)
	}
}
