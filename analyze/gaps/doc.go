// Package gaps says what the host did while devices ran nothing.
//
// Package gpu finds the gaps and divides each by reason. That division stays; within each
// reason, this package asks what the thread did that launched late, or the thread of the call
// that is to blame:
//
//  1. A [Collector] takes the gaps while package gpu measures them.
//  2. It reads what threads did, and keeps the calls, ranges and frames that overlap a gap
//     (host.go). Where it is worth it, also what was seen of threads: samples, when they had
//     cores, the stacks of calls (observed.go, places.go).
//  3. A sweep over each thread (package host) knows what its stack says at any moment
//     (stack.go), and every part of a gap counts under that (attribute.go); where the stack
//     says nothing better, under what was seen of the thread. What another thread did while
//     the first one could not go on is in others.go.
//  4. Stretches in which a thread does nothing that was recorded are pauses, if they are far
//     longer than it takes to launch (pause.go), or look like waiting for the interpreter
//     lock (others.go).
//
// All parts add up to the time of the gaps.
package gaps
