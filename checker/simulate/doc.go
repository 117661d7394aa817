// Package simulate runs the reference implementation as a live controller: workers, a work queue, timers, leaders that
// come and go, and a cluster whose pods follow a script, all through the AWS SDK's clients against a recording endpoint.
//
// A run on the virtual clock is a function of its script, its design and its options: the same input gives the same
// bytes of history, and an idle hour takes no time. Sweep repeats it over seeds and counts what each design violates;
// Shrink takes from a script all that a violation does not need.
package simulate
