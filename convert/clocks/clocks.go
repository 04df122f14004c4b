package clocks

import (
	"github.com/sgtrace/sgtrace/align"
	"github.com/sgtrace/sgtrace/align/matching"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
)

// An Alignment tells how the clocks of the hosts of some ranks and requests relate.
type Alignment struct {
	HostClocks []*HostClock
	Reference  int                      // the clock that all others are put on
	ClockOf    map[request.ClockKey]int // of each host of requests, an index into HostClocks
	Meetings                            // on devices
	hosts      Meetings                 // of hosts
	Solution   align.Solution
}

// Meetings tell which collectives of some ranks are the same.
type Meetings struct {
	AlignOf []*ranks.Track       // the ranks that have any collectives
	Calls   []*rankCalls         // of each of them
	whats   []profile.Collective // kinds of collectives
	Matches matching.Matches     // the same collective on several ranks
	ranks   []matching.Rank      // the collectives of each of AlignOf
	names   *matching.Names      // of their communicators and calls
}

// Options say what the user knows about clocks.
type Options struct {
	Given []Given // goes before what can be found out
	// Find tells to find out the rest; without, only what is given moves.
	Find bool
}

// An aligner makes an alignment.
type aligner struct {
	*Alignment
	in *inputs.Loaded
	of *ranks.Assignment
}
