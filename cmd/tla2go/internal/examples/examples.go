// Package examples holds small specifications as tla2go writes them, one package each. The specifications lie in
// checker/conform/testdata, with TLC's numbers, and cover the language between them.
package examples

//go:generate go run ../.. -package channel -o channel/channel_gen.go ../../../../checker/conform/testdata/channel.tla ../../../../checker/conform/testdata/channel.cfg
//go:generate go run ../.. -package commit -o commit/commit_gen.go ../../../../checker/conform/testdata/commit.tla ../../../../checker/conform/testdata/commit.cfg
//go:generate go run ../.. -package counts -o counts/counts_gen.go ../../../../checker/conform/testdata/counts.tla ../../../../checker/conform/testdata/counts.cfg
//go:generate go run ../.. -package deque -o deque/deque_gen.go ../../../../checker/conform/testdata/deque.tla ../../../../checker/conform/testdata/deque.cfg
//go:generate go run ../.. -package ledger -o ledger/ledger_gen.go ../../../../checker/conform/testdata/ledger.tla ../../../../checker/conform/testdata/ledger.cfg
//go:generate go run ../.. -package mutex -o mutex/mutex_gen.go ../../../../checker/conform/testdata/mutex.tla ../../../../checker/conform/testdata/mutex.cfg
//go:generate go run ../.. -package ring -o ring/ring_gen.go ../../../../checker/conform/testdata/ring.tla ../../../../checker/conform/testdata/ring.cfg

import (
	"linearize.example/checker/conform/engine"
	"linearize.example/cmd/tla2go/internal/examples/channel"
	"linearize.example/cmd/tla2go/internal/examples/commit"
	"linearize.example/cmd/tla2go/internal/examples/counts"
	"linearize.example/cmd/tla2go/internal/examples/deque"
	"linearize.example/cmd/tla2go/internal/examples/ledger"
	"linearize.example/cmd/tla2go/internal/examples/mutex"
	"linearize.example/cmd/tla2go/internal/examples/ring"
	"linearize.example/model/tlccfg"
)

// Example is a generated package.
type Example struct {
	NewModel func(map[string]tlccfg.Value) (*engine.Model, error)
	New      func(*engine.Model) engine.Checker
}

// All holds the examples by the names of their modules.
var All = map[string]Example{
	"channel": {channel.NewModel, channel.New},
	"commit":  {commit.NewModel, commit.New},
	"counts":  {counts.NewModel, counts.New},
	"deque":   {deque.NewModel, deque.New},
	"ledger":  {ledger.NewModel, ledger.New},
	"mutex":   {mutex.NewModel, mutex.New},
	"ring":    {ring.NewModel, ring.New},
}
