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

// A Chain is what some ranks did from collective to collective: at each, ranks wait for the last
// of them, so each computes from the end of one to the next, and all continue when the last one
// has come and the data is through.
//
// [ReadChain] takes it out of what profilers recorded, or says why it does not hold: ranks are
// missing, or collectives run beside others. [Chain.Play] computes how much faster the run would
// be if one rank were as fast as its peers. Hosts are played, too: a launch comes no earlier than
// before, unless its host waited for the device before it.
//
// Played without a change, a chain comes out as it was recorded, to the nanosecond. What cannot be
// known is what the ranks had to wait for beside each other, such as requests: after a pause of
// all ranks, the chain begins anew at its recorded time.
type Chain struct {
	// Refused says why it cannot be played; "" is that it can.
	Refused string

	names    []string // of ranks
	points   []point  // by component, and by first arrival
	arrivals []arrival
	hosts    []host // by rank
}

// A point is a collective at which ranks wait for the last one.
type point struct {
	arrivals  [2]int32 // of Chain.arrivals
	component int32
	step      profile.StepKind // that asked for it
	apart     bool             // each rank leaves when it has its own part
}

// An arrival is a rank at a point.
type arrival struct {
	start, end trace.Time
	launch     trace.Time // when its host asked for it; 0 is unknown
	rank       int32
}

const (
	// serial is how much a collective of a rank may begin before the one before it ends, in ns: clocks
	// of devices, and kernels that start early to wait.
	serial = 5_000
	// minKnown is which part of the time in collectives has to be of those that can be played.
	minKnown = 0.9
	// maxBeside is which part of the collectives may run beside others of their ranks.
	maxBeside = 0.05
	// fewPoints is how many collectives are the least that tell what is usual.
	fewPoints = 50
	// pause is how long ranks compute from one collective to the next at most, in ns. Beyond, nobody had
	// anything to do.
	pause = 100_000_000
)

// ReadChain takes the chain out of a set. It walks over the launches and kernels of all ranks.
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

// besideOthers reports whether a rank was still in another collective when it came.
func besideOthers(x *profile.CollectiveMatch, ends []trace.Time) bool {
	return slices.ContainsFunc(x.Arrivals, func(a profile.Arrival) bool { return a.Start+serial < ends[a.Rank] })
}

// add adds a collective, and returns how long its ranks were in it, in ns.
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

// Rank returns the rank that has a name; -1 is none.
func (r *Chain) Rank(name string) int { return slices.Index(r.names, name) }

// Name returns the name of a rank.
func (r *Chain) Name(rank int) string { return r.names[rank] }

// byRank returns the arrivals of each rank, in the order of their starts.
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
