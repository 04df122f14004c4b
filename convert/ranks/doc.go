// Package ranks decides which rank each recording is from: by what files say about themselves, by their
// names, by the schedulers of the requests, and by what two profilers both recorded. It is the second step
// of reading, between the index of package inputs and the clocks.
//
// [Assign] does it:
//
//  1. Each recording is divided into captures, one for each process or part in it, and
//     each capture is given the rank that it claims.
//  2. Where equal events show that two profilers recorded one process, events in both count
//     once: timelines move the events of one recording into the other, and reports walk over
//     the one and the rest of the other.
//  3. Captures that are copies of others are left out, and those of one rank are put
//     together as a [Track].
//
// A rank without any evidence stays unknown. It is not rank 0.
package ranks
