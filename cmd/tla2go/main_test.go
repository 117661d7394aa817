package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"linearize.example/cmd/tla2go/internal/build"
	"linearize.example/cmd/tla2go/internal/examples"
)

// generateLine is a go:generate command of this tool.
var generateLine = regexp.MustCompile(`(?m)^//go:generate go run \S+ -package (\S+) -o (\S+) (\S+) (\S+)$`)

// Generated files are what the generator writes now, to the byte.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	count := 0
	for _, file := range []string{"../../checker/conform/conform.go", "internal/examples/examples.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(file)
		for _, m := range generateLine.FindAllStringSubmatch(string(text), -1) {
			count++
			want, _, err := build.File(filepath.Join(dir, m[3]), filepath.Join(dir, m[4]),
				build.Options{Package: m[1], TypeInvariant: "TypeOK"})
			if err != nil {
				t.Errorf("%s: %v", m[3], err)
				continue
			}
			got, err := os.ReadFile(filepath.Join(dir, m[2]))
			if err != nil {
				t.Error(err)
				continue
			}
			if !bytes.Equal(want, got) {
				t.Errorf("%s is not what tla2go writes; run go generate ./...", filepath.Join(dir, m[2]))
			}
		}
	}
	if want := len(examples.All) + 1; count != want {
		t.Errorf("%d go:generate lines were found, want %d", count, want)
	}
}

// What the generator does not support it reports, with the place.
func TestUnsupported(t *testing.T) {
	const head = "---- MODULE m ----\nEXTENDS Integers, Sequences, FiniteSets, TLC\nCONSTANT N\nVARIABLES x, y\n" +
		"TypeOK == x \\in 0..3 /\\ y \\in [1..2 -> 0..3]\nInit == x = 0 /\\ y = <<0, 0>>\n"
	for _, c := range []struct{ name, body, want string }{
		{"temporal operator in an action", "Next == x' = 1 /\\ y' = y /\\ []TRUE", "7:29: operator [] is not supported"},
		{"ENABLED", "A == x' = 1 /\\ y' = y\nNext == ENABLED A /\\ A", "8:9: operator ENABLED is not supported"},
		{"variable without a next value", "Next == x' = 1", "4:14: action Next gives variable y no next value"},
		{"next value read before it is given", "Next == x' = y'[1] /\\ y' = y", "7:15: y' is used before it has a value"},
		{"types that do not fit", "Next == x' = \"a\" /\\ y' = y", "7:12: a string or model value is used as an integer"},
		{"set and number", "Next == x' = x \\cup {1} /\\ y' = y", "7:16: "},
		{"unknown field", "Next == x' = x.f /\\ y' = y", "7:15: an integer has no field f"},
		{"domain that depends on the state", "Next == x' = 1 /\\ y' = [i \\in {1, x} |-> 0]",
			"7:31: the domain of this function depends on more than constants"},
		{"operator argument", "F(G(_)) == G(1)\nH(a) == a\nNext == x' = F(H) /\\ y' = y",
			"9:16: an operator as an argument is not supported"},
		{"prime of an expression", "P == x + 1\nNext == x' = 1 /\\ y' = y /\\ P' = 2", "8:30: only variables can be primed"},
		{"undefined name", "Next == x' = z /\\ y' = y", "7:14: z is not defined before its use"},
		{"several arguments", "Next == x' = [a, b \\in {1} |-> 0][1, 1] /\\ y' = y", "7:14: a function of several arguments"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			module, config := filepath.Join(dir, "m.tla"), filepath.Join(dir, "m.cfg")
			write(t, module, head+c.body+"\n====\n")
			write(t, config, "CONSTANT N = 1\nINIT Init\nNEXT Next\nINVARIANT TypeOK\n")
			_, _, err := build.File(module, config, build.Options{Package: "p", TypeInvariant: "TypeOK"})
			if err == nil {
				t.Fatalf("generated, want an error at %s", c.want)
			}
			if want := module + ":" + c.want; !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v\nwant it to begin with %s", err, want)
			}
		})
	}
}

func TestMissingTypeInvariant(t *testing.T) {
	dir := t.TempDir()
	module, config := filepath.Join(dir, "m.tla"), filepath.Join(dir, "m.cfg")
	write(t, module, "---- MODULE m ----\nEXTENDS Naturals\nVARIABLES x, y\nTypeOK == x \\in 0..1\nInit == x = 0 /\\ y = 0\n"+
		"Next == x' = 1 /\\ y' = y\n====\n")
	write(t, config, "INIT Init\nNEXT Next\n")
	for invariant, want := range map[string]string{
		"TypeOK": ":3:14: TypeOK does not bound variable y by \"y \\in S\"",
		"Types":  ":1:1: no definition Types; it must bound every variable by \"x \\in S\"",
	} {
		_, _, err := build.File(module, config, build.Options{Package: "p", TypeInvariant: invariant})
		if err == nil || err.Error() != module+want {
			t.Errorf("%s: %v, want %s", invariant, err, want)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
