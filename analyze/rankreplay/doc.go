// Package rankreplay plays the collectives of a recorded run again, and computes how much faster
// the run would be if one rank were as fast as its peers. At a collective, ranks wait for the last
// of them, so a run of ranks is a chain: each computes from the end of one collective to the next,
// and all continue when the last one has come and the data is through.
//
// [Read] takes the chain out of what profilers recorded, or says why it does not hold: ranks are
// missing, or collectives run beside others. [Run.Play] plays it with one rank at the level of its
// peers. Hosts are played, too: a launch comes no earlier than before, unless its host waited for
// the device before it.
//
// Played without a change, a chain comes out as it was recorded, to the nanosecond. What cannot be
// known is what the ranks had to wait for beside each other, such as requests: after a pause of
// all ranks, the chain begins anew at its recorded time.
package rankreplay
