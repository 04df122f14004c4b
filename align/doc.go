// Package align puts the clocks of several hosts on one time line.
//
// It is pure: times go in, relations between clocks come out. Callers say which events of a
// trace are collectives, and which clock an input uses.
//
// The pieces, in the order in which they run:
//
//  1. [matching.Find] finds the same collective on several ranks.
//  2. [Solve] relates the clocks. Relations given by the user come first, then those
//     that a producer recorded, then matched collectives, then requests that crossed
//     hosts ([Bound]). Later evidence never moves earlier relations, but checks them:
//     contradictions are reported as [Conflict], not averaged.
//  3. [MatchRest] matches by time what [matching.Find] left, on clocks that are now related.
//  4. [Solution] holds a line for each clock, with an error bound, and
//     [ClockFit.ToReference] applies it.
//
// # Sign
//
// An offset is always "local minus reference": a clock that is 1.7 ms ahead has
// the offset +1 700 000. Its drift is how much that grows: a clock that runs 12 ppm
// fast has the drift +12 000 ppb. So
//
//	reference = local - Offset - DriftPPB/1e9 * (local - T0)
//
// with T0 an instant on the local clock.
//
// # Why ends
//
// Ranks arrive at a collective when they are ready, up to milliseconds apart, but
// they leave it together: nobody can end before the last one has brought its data,
// and the transfer itself ends within 1 to 3 us everywhere (5 to 7 us for
// large rings). Collectives that let some ranks leave early (broadcast, reduce,
// send, and so on; see package matching) are matched but not used for clocks.
//
// # Units
//
// Times, offsets and bounds are int64 ns; drifts are parts per billion.
package align
