// Package orders enumerates every order of operations that their intervals allow and their results permit, without
// enumerating orders one by one: a forward pass over configurations (which operations are done, and the state that
// they led to), in which equal configurations are merged. Explanations of a history are the paths of the graph that
// this gives. Wherever all explanations pass through one single configuration the graph is cut, judged and forgotten,
// so that time and memory follow the concurrency of a history and not its length.
//
// The search is the one of Wing and Gong ("Testing and Verifying Concurrent Objects", 1993), breadth first, with the
// configurations of Lowe ("Testing for linearizability", 2016). It knows nothing of rules: states are words, and what an
// operation does to them is a function of the problem.
package orders

import (
	"errors"

	"linearize.example/traces"
)

// Problem is what is to be ordered.
type Problem struct {
	// Operations are ordered by Call.
	Operations []Operation
	// Words is the length of a state, in words.
	Words int
	// Initial are the states that the first operation may find, one of them at least.
	Initial []State
	// Step writes to `to` the state that operation op leaves behind when it takes effect in `from`, and reports
	// whether it can take effect there with the result that it had. It must depend on nothing else.
	Step func(op int, from, to State) bool
	// Touches, if not nil, gives the facts that Step of an operation depends on or changes, and those that it may change. Then
	// operations neither of which may change a fact of the other are not tried in both orders, unless some operation is optional: the graph has an explanation if there is one, but
	// it does not have them all, and where there is none Stuck.Explained may fall short (persistent sets: Godefroid,
	// "Partial-Order Methods for the Verification of Concurrent Systems", 1996, chapter 4).
	Touches func(op int) (all, changed State)
}

// Operation is one operation's place in time.
type Operation struct {
	// Call and Return are the bounds, both included, of the instant at which it took effect.
	Call, Return traces.Instant
	// After are operations that took effect before it.
	After []int32
	// Optional: it may also never have taken effect.
	Optional bool
	// Alike is equal, and not zero, for optional operations that differ in Call alone: of those only the first that was
	// called and is not done is tried, since exchanging two of them changes nothing.
	Alike int32
}

// State is a set of facts, one bit each.
type State []uint64

// Has reports whether fact i is in the state.
func (s State) Has(i int32) bool { return s[i>>6]&(1<<(i&63)) != 0 }

// Set adds fact i.
func (s State) Set(i int32) { s[i>>6] |= 1 << (i & 63) }

// Clear removes fact i.
func (s State) Clear(i int32) { s[i>>6] &^= 1 << (i & 63) }

// Meets reports whether the states have a fact in common.
func (s State) Meets(o State) bool {
	for i, w := range o {
		if s[i]&w != 0 {
			return true
		}
	}
	return false
}

// Block is a part of the graph of configurations between two cuts. Its first nodes are where all explanations enter, its
// last layer is where they leave; nodes are numbered so that every edge leads from a lower to a higher number.
type Block struct {
	Nodes []Node
	Edges []Edge // ordered by From
	// Entries counts the nodes, from 0, at which explanations enter; Exits lists those at which they leave.
	Entries int
	Exits   []int32
	// Last says that the history ends here.
	Last bool
	// Done counts the mandatory operations that are done where explanations leave.
	Done  int
	words []uint64
	width int
}

// Node is one configuration.
type Node struct {
	// First and Last bound the time that an explanation can spend in it.
	First, Last traces.Instant
	// FirstEdge is the index of its first edge; those of the next node begin behind its last.
	FirstEdge int32
	// Survives: some explanation of the whole block passes through it.
	Survives bool
	state    int32
}

// Edge is an operation that takes effect between two configurations.
type Edge struct {
	From, To, Op int32
}

// State returns the state of node n, which must not be changed.
func (b *Block) State(n int32) State {
	at := int(b.Nodes[n].state) * b.width
	return b.words[at : at+b.width]
}

// EdgesOf returns the edges that leave node n.
func (b *Block) EdgesOf(n int32) []Edge {
	end := int32(len(b.Edges))
	if int(n)+1 < len(b.Nodes) {
		end = b.Nodes[n+1].FirstEdge
	}
	return b.Edges[b.Nodes[n].FirstEdge:end]
}

// Span returns the earliest and the latest instant at which the edge can be taken, op being its operation.
func (b *Block) Span(e Edge, op *Operation) (earliest, latest traces.Instant) {
	from := &b.Nodes[e.From]
	return max(from.First, op.Call), min(from.Last, op.Return)
}

// ErrBudget says that a part of the history has more configurations than the budget allows.
var ErrBudget = errors.New("more configurations than the budget allows")

// Stuck is the error for a history that no order explains: every explanation of the operations before dies at Op.
type Stuck struct {
	// Op is the operation whose time runs out: the first that nothing before it lets happen.
	Op int
	// Explained counts the operations that are done in the longest explanations.
	Explained int
	// States are those in which these explanations end, at most MaxStuckStates of them.
	States []State
	// Refused are operations that could have come next in time and that all the states refuse.
	Refused []int
}

// MaxStuckStates bounds Stuck.States.
const MaxStuckStates = 8

func (*Stuck) Error() string { return "no order of the operations gives their results" }

// StateOf returns the number of node n's state in the block; nodes with equal states have equal numbers.
func (b *Block) StateOf(n int32) int32 { return b.Nodes[n].state }

// States counts the distinct states of the block.
func (b *Block) States() int { return len(b.words) / max(1, b.width) }
