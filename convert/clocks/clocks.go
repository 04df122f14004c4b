package clocks

import (
	"github.com/sgtrace/sgtrace/align"
	"github.com/sgtrace/sgtrace/align/matching"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
)

// An Alignment says how the clocks of the hosts of ranks and requests relate.
type Alignment struct {
	HostClocks []*HostClock
	Reference  int                      // index of the clock that all others are put on
	ClockOf    map[request.ClockKey]int // for each host of requests, an index into HostClocks
	Meetings                            // of collectives on devices
	hosts      Meetings                 // of collectives on hosts
	Solution   align.Solution
}

// Meetings say which collectives of different ranks are the same.
type Meetings struct {
	AlignOf []*ranks.Track       // the ranks that have any collectives
	Calls   []*rankCalls         // for each rank in AlignOf
	whats   []profile.Collective // kinds of collectives
	Matches matching.Matches     // which calls of different ranks are the same collective
	ranks   []matching.Rank      // the collectives of each rank in AlignOf
	names   *matching.Names      // of communicators and calls
}

// Options say what the user knows about the clocks.
type Options struct {
	Given []Given // takes precedence over what is found
	// Find also finds the offsets and drifts that are not given; otherwise, only the given clocks move.
	Find bool
}

// An aligner builds an Alignment.
type aligner struct {
	*Alignment
	in *inputs.Loaded
	of *ranks.Assignment
}
