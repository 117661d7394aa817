// Package linear judges one security group's operations against a set with EC2's error semantics: it is the second
// opinion, by Porcupine (github.com/anishathalye/porcupine), on the verdicts of the other checkers, and it measures
// how old the recorded reads are.
//
// Check decides whether the mutations, and the mutations with the reads, are linearizable. Porcupine alone decides;
// what this package adds is the model and the cuts that keep its memory, which grows with the square of a history,
// within bounds:
//
//   - Mutations that share no rule, and that no After edge joins, are judged apart (linearizability is local: Herlihy and
//     Wing 1990, theorem 1). Reads show every rule, so with reads there is one part. It is judged first, since an order
//     of everything is one of the mutations too.
//   - A part is cut at quiet instants, at which no call with an answer is open. Porcupine runs on one stretch after the
//     other. Each run ends with a pseudo-call that reads the whole state, so that a run yields one state that the stretch can end in;
//     the next stretch starts there. When a stretch cannot be ordered from a state, the stretch before it is run again, its
//     pseudo-call refusing every state known to be hopeless. The history is linearizable when the last stretch has been
//     ordered, and is not when the first has no end left: the set of possible states is enumerated, by Porcupine itself, as far
//     as the verdict needs it. A call without an answer that has not yet taken effect is carried into the next stretch.
//   - A stretch without a quiet instant is run in pieces, where calls that are open at a cut may be on either side of it. When
//     a piece cannot be ordered, it is run again together with one, two, four … pieces before it, in the end with
//     all of them, so that no order is missed.
//
// ReadLag does not use Porcupine: one forward pass over the mutations keeps every configuration that an order can
// reach, and one backward pass removes those that lead nowhere.
package linear
