package profile

import (
	"iter"

	"github.com/sgtrace/sgtrace/trace"
)

// CollectiveMatches are the collectives of some ranks: what each rank did, and which of that is one
// collective. There may be tens of millions: they are passed one by one, and what is passed
// is valid until the next.
type CollectiveMatches interface {
	// Matches passes the collectives that were seen on several ranks, on one clock. Those
	// of ranks that meet are together, by their first arrival, as they are held; byTime asks
	// for all by their first arrival.
	Matches(byTime bool) iter.Seq[*CollectiveMatch]
	// Parts passes the kernels of collectives of all ranks, by rank and start.
	Parts() iter.Seq[*Part]
}

// A CollectiveMatch is one collective as its ranks saw it: the kernels that ran on
// each of them, on one clock.
type CollectiveMatch struct {
	Name trace.Sym // of the kernel, on the rank with the lowest index
	// What the producer says, as in [Collective]: 0 and -1 are unknown.
	Op, Dtype, Group trace.Sym
	In, Out          int64 // elements, the most that a rank has
	GroupSize        int32
	// Sync tells that nobody leaves before the last rank has come. Only then a rank that is
	// there early waits. All leave together, unless Apart tells that each leaves when it
	// has its own part, as in a dispatch.
	Sync, Apart bool
	Step        StepKind  // of the step that asked for it, StepOther if nobody knows
	Arrivals    []Arrival // by rank; two at least
	// Component numbers the ranks that meet each other, directly or not. Matches of a component
	// follow each other, unless all were asked for by time.
	Component int32
	// First tells that it is the first one that was recorded of some rank: the others may have waited for that
	// rank's profiler to start.
	First bool
	// Bound is how far the clocks of its ranks may be off each other, in ns: 0 on one
	// host, -1 if it is unknown.
	Bound int64
	// Blur is how far it may be off its time, as [Meta.Blur].
	Blur int64
}

// FirstArrival returns when the first rank came.
func (x *CollectiveMatch) FirstArrival() trace.Time {
	first := x.Arrivals[0].Start
	for _, a := range x.Arrivals[1:] {
		first = min(first, a.Start)
	}
	return first
}

// A Part is what one rank did in a collective, whether others were seen there or not.
type Part struct {
	Collective       // on the clock of its host
	Rank       int32 // index into Set.Ranks
	Matched    bool  // it is an arrival of a CollectiveMatch, or one side of a transfer
	// Refused tells that others seemed to be there, which their clocks contradict.
	Refused bool
}

// An Arrival is when one rank came to a collective and when it left.
type Arrival struct {
	Rank       int32 // index into Set.Ranks
	Start, End trace.Time
}

// Matches passes those of s.Collectives; see there.
func (s *Set) Matches(byTime bool) iter.Seq[*CollectiveMatch] {
	if s.Collectives == nil {
		return func(func(*CollectiveMatch) bool) {}
	}
	return s.Collectives.Matches(byTime)
}

// Parts passes those of s.Collectives; see there.
func (s *Set) Parts() iter.Seq[*Part] {
	if s.Collectives == nil {
		return func(func(*Part) bool) {}
	}
	return s.Collectives.Parts()
}
