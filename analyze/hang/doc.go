// Package hang says why processes stand still: which rank did not enter which collective, or
// entered another one, who waits for it since when, and where it stands.
//
//  1. The groups of all dumps are put together: names of equal groups differ between ranks, so
//     that their ranks, what they are for, and their order tell them apart.
//  2. Of each group, the first collective that has not ended is compared between its ranks by
//     the rules of torch.distributed.flight_recorder: who is not in it, whose operation, sizes
//     or types are other ones. Sends and receives are compared in pairs.
//  3. A rank waits in the first that it has in flight; the rest is queued behind that. Who is
//     waited for and waits itself is no cause: the ranks at the end of that chain are, and if it
//     has no end, the order of collectives is.
package hang
