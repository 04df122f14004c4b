// Package hang says why processes stand still: which rank did not enter which collective, or entered a
// different one, who has been waiting for it since when, and where in its code it stands.
//
//  1. The groups of all dumps are matched: ranks may have different names for the same group, so
//     their ranks, what they are for, and their order identify them.
//  2. The first collective of each group that has not ended is compared between its ranks by
//     the rules of torch.distributed.flight_recorder: who is not in it, and whose operation, sizes
//     or types differ. Sends and receives are compared in pairs.
//  3. A rank waits in the first operation that it has in flight; the others are queued behind that.
//     A rank that others wait for and that waits itself is no cause: the ranks at the end of that
//     chain are, or, if it has no end, the order of collectives.
package hang
