// Package ranks decides which recording is of which rank: by what files say of
// themselves, by their names, by the schedulers of the requests, and by what two
// profilers both recorded. It is the second step of reading, between the index of
// package inputs and the clocks.
//
// [Assign] does it:
//
//  1. Each recording is divided into captures, one for each process or part in it, and
//     each capture is given the rank that it claims.
//  2. Where two profilers recorded one process, which equal events show, what both saw
//     counts once: on timelines the events of one are put into the recording of the
//     other, and reports walk over what remains of both.
//  3. Captures that are copies of others are left out, and those of one rank are put
//     together as a [Track].
//
// A rank that nothing tells stays unknown. It is not rank 0.
package ranks
