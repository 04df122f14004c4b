// Package gaps says what the host did while devices ran nothing.
//
// Package gpu finds the gaps and divides each by reason. That division stays; within each reason, this
// package asks what the thread did that launched late, or the thread whose call is to blame:
//
//  1. A [Collector] takes the gaps while package gpu measures them.
//  2. It reads what threads did, and keeps the calls, ranges and frames that overlap a gap
//     (host.go). Where that is worth it, it also reads what was seen of threads: samples, when
//     they had cores, and the stacks of calls (observed.go, others.go).
//  3. A sweep over each thread (package host) knows what its stack says at any moment
//     (host.go), and every part of a gap counts under that (attribute.go). Where the stack says
//     too little, it counts under what was seen of the thread, or of another thread that the
//     first one may have waited for (others.go).
//  4. Stretches in which a thread does nothing that was recorded are pauses if they are far
//     longer than it takes to launch (pause.go), or look like waiting for the interpreter
//     lock (others.go).
//
// All parts add up to the time of the gaps.
package gaps
