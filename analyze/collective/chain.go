package collective

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Chain is what ranks did from collective to collective: each rank computes from the end of one to its arrival at the
// next, where it waits for the last rank, and all continue when that has come and the data is through.
//
// [ReadChain] extracts it from what profilers recorded, or says why that is impossible: ranks are missing, or collectives
// overlap with others. [Chain.Play] computes how much faster the run would be if one rank were as fast as its peers.
// Hosts are replayed, too: a launch comes no earlier than recorded, unless its host waited for the device before it.
//
// Played without a change, a chain comes out as recorded, to the nanosecond. It is unknown what ranks had to wait for
// besides each other, such as requests: after a pause of all ranks, the chain restarts at its recorded time.
type Chain struct {
	// Refused says why it cannot be played; "" if it can.
	Refused string

	names    []string // by rank
	points   []point  // ordered by component, and by first arrival
	arrivals []arrival
	hosts    []host // by rank
}

// A point is a collective at which ranks wait for the last one.
type point struct {
	arrivals  [2]int32 // bounds in Chain.arrivals
	component int32
	step      profile.StepKind // of the step that asked for it
	apart     bool             // each rank leaves once it has its own part
}

// An arrival is a rank at a point.
type arrival struct {
	start, end trace.Time
	launch     trace.Time // when its host asked for it; 0 if unknown
	rank       int32
}

const (
	// serial is how long before the end of a rank's previous collective the next one may begin, in
	// ns: device clocks are inexact, and kernels start early to wait.
	serial = 5_000
	// minKnown is the part of the time in collectives that must be in those that can be played.
	minKnown = 0.9
	// maxBeside is the part of collectives that may overlap with others of their ranks.
	maxBeside = 0.05
	// fewPoints is the least number of collectives that shows what is usual.
	fewPoints = 50
	// pause is the longest time, in ns, that ranks compute from one collective to the next. Beyond that, nobody had work.
	pause = 100_000_000
)

// ReadChain extracts the chain from a set. It walks over the launches and kernels of all ranks.
func ReadChain(set *profile.Set) *Chain {
	r := &Chain{names: set.Ranks}
	if len(set.MissingRanks) > 0 {
		m := &set.MissingRanks[0]
		r.Refused = fmt.Sprintf("%d of %s ranks are not in the files, and nobody knows when these came", m.Size-m.Seen, words.Thousands(int64(m.Size)))
		return r
	}
	undated, played := false, int64(0)
	ends := make([]trace.Time, len(set.Ranks))
	beside, all := 0, 0
	for x := range set.Matches(false) {
		undated = undated || x.Blur == math.MaxInt64
		if !x.Sync || x.Apart && (x.Bound < 0 || x.Bound > serial) || int(x.GroupSize) > len(x.Arrivals) {
			continue
		}
		all++
		if besideOthers(x, ends) {
			beside++
			continue
		}
		played = distribution.AddTimes(played, r.add(x, ends))
	}
	ran := int64(0)
	for p := range set.Parts() {
		ran = distribution.AddTimes(ran, max(0, p.Dur))
	}
	switch known := distribution.Fraction(played, ran); {
	case all == 0:
		r.Refused = "no collectives of several ranks were recorded at which all wait for the last one"
	case undated:
		r.Refused = "nobody knows when the collectives were"
	case float64(beside) > maxBeside*float64(all):
		r.Refused = "collectives run beside others of the same rank, and which of them steps wait for is not known"
	case len(r.points) < fewPoints:
		r.Refused = fmt.Sprintf("%s are too few to tell what is usual", words.Counted(len(r.points), "collective"))
	case known < minKnown:
		r.Refused = fmt.Sprintf("only %s %% of the time in collectives is in those at which all ranks were recorded and wait for the last one", words.InPercent(known))
	default:
		r.readHosts(set)
	}
	return r
}

// besideOthers reports whether any rank was still in another collective when it came to this one.
func besideOthers(x *profile.CollectiveMatch, ends []trace.Time) bool {
	return slices.ContainsFunc(x.Arrivals, func(a profile.Arrival) bool { return a.Start+serial < ends[a.Rank] })
}

// add adds a collective, and returns how long its ranks were in it in total, in ns.
func (r *Chain) add(x *profile.CollectiveMatch, ends []trace.Time) (took int64) {
	p := point{component: x.Component, step: x.Step, apart: x.Apart}
	p.arrivals[0] = int32(len(r.arrivals))
	for _, a := range x.Arrivals {
		a.End = max(a.End, a.Start)
		took = distribution.AddTimes(took, int64(a.End-a.Start))
		ends[a.Rank] = max(ends[a.Rank], a.End)
		r.arrivals = memory.Append(r.arrivals, arrival{start: a.Start, end: a.End, rank: a.Rank})
	}
	p.arrivals[1] = int32(len(r.arrivals))
	r.points = memory.Append(r.points, p)
	return took
}

// at returns the arrivals of a point.
func (r *Chain) at(p *point) []arrival { return r.arrivals[p.arrivals[0]:p.arrivals[1]] }

// Rank returns the index of the rank with a name, or -1.
func (r *Chain) Rank(name string) int { return slices.Index(r.names, name) }

// Name returns the name of a rank.
func (r *Chain) Name(rank int) string { return r.names[rank] }

// byRank returns the arrivals of each rank, ordered by start.
func (r *Chain) byRank() [][]*arrival {
	list := make([][]*arrival, len(r.names))
	for i := range r.arrivals {
		a := &r.arrivals[i]
		list[a.rank] = append(list[a.rank], a)
	}
	for _, l := range list {
		slices.SortFunc(l, func(x, y *arrival) int { return cmp.Compare(x.start, y.start) })
	}
	return list
}
