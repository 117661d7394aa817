// Package build turns a module and a configuration into Go source, from file to file.
package build

import (
	"os"

	"linearize.example/checker/conform/eval"
	"linearize.example/checker/conform/tla"
	"linearize.example/cmd/tla2go/internal/gen"
	"linearize.example/cmd/tla2go/internal/types"
	"linearize.example/model/tlccfg"
)

// Options say what is generated.
type Options struct {
	Package       string
	TypeInvariant string
}

// File generates the Go source for a module and a configuration. The notes name what the configuration holds and nothing
// checks: temporal properties and fairness.
func File(module, config string, o Options) (src []byte, notes []string, err error) {
	m, err := tla.ParseFile(module)
	if err != nil {
		return nil, nil, err
	}
	text, err := os.ReadFile(config)
	if err != nil {
		return nil, nil, err
	}
	c, err := tlccfg.Parse(config, text)
	if err != nil {
		return nil, nil, err
	}
	ev, err := eval.New(m, c.Constants)
	if err != nil {
		return nil, nil, err
	}
	spec, err := eval.Select(m, c)
	if err != nil {
		return nil, nil, err
	}
	// Predicates that the configuration does not select need not be in the language.
	for _, all := range []bool{true, false} {
		if src, err = generate(m, spec, ev, o, all); err == nil {
			break
		}
	}
	return src, spec.Unchecked, err
}

func generate(m *tla.Module, spec *eval.Spec, ev *eval.Evaluator, o Options, all bool) ([]byte, error) {
	p, err := types.Infer(m, spec, ev, o.TypeInvariant, all)
	if err != nil {
		return nil, err
	}
	return gen.Generate(p, ev, gen.Options{Package: o.Package, Command: "tla2go"})
}
