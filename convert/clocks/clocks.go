package clocks

import (
	"github.com/sgtrace/sgtrace/align"
	"github.com/sgtrace/sgtrace/align/matching"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
)

// Clocks tell how the clocks of the hosts of some ranks and requests relate.
type Clocks struct {
	*ranks.Ranks
	HostClocks []*HostClock
	ClockOf    map[request.ClockKey]int // of each host of Requests, an index into HostClocks
	alignRanks []matching.Rank          // the collectives of each rank that has any
	alignNames *matching.Names          // of their communicators and calls
	AlignOf    []*ranks.Track           // which rank that is
	Calls      []*rankCalls             // their collectives
	whats      []profile.Collective     // kinds of collectives
	Matches    matching.Matches         // the same collective on several ranks
	Solution   align.Solution
}
