// Command tla2go writes a TLA+ module as Go: a checker that computes the successors of states and evaluates invariants
// and constraints, to be run by package checker/conform/engine. The constants get their values when the checker runs.
//
//	tla2go -package conform -o spec_gen.go spec.tla designs/v3.4.0.old-reads.cfg
//
// Generated code differs from TLC where TLA+ leaves a choice, and in its limits. CHOOSE takes the least of several
// elements, in the order of package eval; TLC's order of strings and model values depends on where it met them first.
// Functions are over at most engine.FunCap values, sequences have at most engine.SeqCap elements, sets are over at most
// engine.SetBits different values; constants that need more are reported at the start. Sums are not checked for TLC's 32
// bits; what is stored is checked against the type invariant. Temporal properties and fairness are named on standard error
// and not checked.
//
// The configuration selects the specification and shows what types the constants have; any state predicate of the module
// can be an invariant or a constraint later. The exit status is 1 when the module cannot be written, with file, line and
// column of what is not supported, and 2 on wrong usage.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"linearize.example/cmd/tla2go/internal/build"
)

func main() {
	var o build.Options
	out := flag.String("o", "", "the file to write; standard output when empty")
	flag.StringVar(&o.Package, "package", "main", "the package's name")
	flag.StringVar(&o.TypeInvariant, "type", "TypeOK", "the definition that bounds every variable by x \\in S")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: tla2go [flags] MODULE.tla MODEL.cfg\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	src, notes, err := build.File(flag.Arg(0), flag.Arg(1), o)
	for _, n := range notes {
		fmt.Fprintf(os.Stderr, "tla2go: not checked: %s\n", n)
	}
	if err == nil && *out == "" {
		_, err = os.Stdout.Write(src)
	} else if err == nil {
		err = os.WriteFile(filepath.Clean(*out), src, 0o644)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "tla2go: %v\n", err)
		os.Exit(1)
	}
}
