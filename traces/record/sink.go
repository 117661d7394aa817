package record

import "linearize.example/traces"

// Sink takes each operation that was recorded, with its interval and result, in the order in which the calls ended. Record does not
// wait for a disk longer than a file's write takes, and what it cannot keep it reports when it is closed.
type Sink interface{ Record(op traces.Operation) }
