package align

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/align/matching"
	"github.com/sgtrace/sgtrace/trace"
)

// Unknown is the Bound of a clock that is not related to the reference.
const Unknown = -1

// A Solution relates every clock to the reference.
type Solution struct {
	Reference int
	Clocks    []ClockFit // by clock
	Ranks     []RankFit  // by rank, as in Problem.Ranks
	Conflicts []Conflict // ordered by A, B, kind
	// Rejected are the matches, ascending, that cannot be one collective on the resulting clocks: one
	// rank ended before another had started, or ends differ too much. They must not be drawn as flows.
	Rejected []int
	// Components is the number of sets of clocks that nothing relates to each other.
	Components int
}

// MatchBasis is the evidence that a matched relation is based on.
type MatchBasis uint8

const (
	ByNothing MatchBasis = iota
	ByKernels            // kernels that two profilers of the same process recorded
	ByCollectives
	ByRequests
	ByHosts // host collectives
)

// String returns the word that reports print.
func (b MatchBasis) String() string {
	return [...]string{"", "kernels", "collectives", "requests", "collectives of hosts"}[b]
}

// A ClockFit relates one clock to the reference clock:
//
//	reference = local - Offset - DriftPPB/1e9 * (local - T0)
type ClockFit struct {
	Clock int
	// Why is the weakest relation on the way to the reference; SyncGiven for the reference itself.
	Why trace.SyncBasis
	By  MatchBasis
	// Component is the lowest clock that is related to this one. Clocks in another component than
	// the reference's are correct only relative to each other.
	Component int

	T0       int64 // ns, local clock
	Offset   int64 // ns, local minus reference at T0
	DriftPPB int64 // growth of Offset

	// Bound is how far the truth may be from the line, in ns, anywhere between From and To, or
	// Unknown. It should hold in 99 % of cases: see fit.go.
	Bound int64
	// BoundAtT0 and DriftBoundPPB are its two parts.
	BoundAtT0, DriftBoundPPB int64
	// Loose is the part of Bound due to a single direction of requests, whose shortest delays are far apart, in ns.
	Loose int64
	// From and To bound the time on the local clock that the relation was derived from. From == To == T0 if it holds at all times.
	From, To int64

	Matches     int   // number of collectives, or of inequalities, that the relation is based on
	Trimmed     int   // number of outliers that were left out
	ResidualP95 int64 // 95th percentile of differences between the ends of collectives after alignment, ns; 0 with requests
}

// ToReference returns the time of the reference clock when the local clock shows t. It never decreases with
// t, is exact to 1 ns for all t, and changes a duration by no more than the drift and 1 ns of rounding.
func (c ClockFit) ToReference(t int64) int64 {
	return sub(t, add(c.Offset, driftOver(t, c.T0, c.DriftPPB)))
}

// ToLocal returns what the local clock shows at time t of the reference, to 1 ns.
func (c ClockFit) ToLocal(t int64) int64 {
	// This inverts a line that is nearly the identity: after one correction step, the relative error is the square of the drift.
	local := add(t, c.Offset)
	return add(local, sub(t, c.ToReference(local)))
}

// Moves reports whether the clock differs from the reference.
func (c ClockFit) Moves() bool { return c.Offset != 0 || c.DriftPPB != 0 }

// BoundAt returns the error bound at local time t, which may be outside of the window, or Unknown.
func (c ClockFit) BoundAt(t int64) int64 {
	if c.Bound == Unknown {
		return Unknown
	}
	return add(c.BoundAtT0, driftOver(max(t, c.T0), min(t, c.T0), c.DriftBoundPPB))
}

// A RankFit is how far the ends of one rank's collectives are, in the median, from those of
// its peers on aligned clocks. It is never used to move ranks.
type RankFit struct {
	Matches int
	Offset  int64 // ns, positive if late
	// Apart reports that Offset is more than noise, and more than ends of collectives normally
	// differ (apartFloor): the rank may have a clock of its own.
	Apart bool
}

// ConflictKind says which evidence contradicts what.
type ConflictKind uint8

const (
	// FixedConflict: two given or recorded relations disagree; the first, or the better one, is used.
	FixedConflict ConflictKind = iota
	// CollectiveConflict: matched collectives disagree with the relation used.
	CollectiveConflict
	// SpreadConflict: matched collectives do not end together on any two clocks that run evenly, and are not used.
	SpreadConflict
	// CausalityConflict: if ends are aligned, ranks end before others have started. The matches are not used.
	CausalityConflict
	// RequestConflict: inequalities from requests disagree with the relation used.
	RequestConflict
	// DividedRequests: inequalities from requests disagree with each other.
	DividedRequests
	// OneSided: requests bound the offset on one side only, which does not give an
	// offset.
	OneSided
)

var conflictText = [...]string{
	"given or recorded relations disagree",
	"collectives disagree with the relation used",
	"matched collectives do not end together; not used",
	"matched collectives would end before all ranks have started; not used",
	"requests disagree with the relation used",
	"requests disagree with each other; not used",
	"requests bound the offset on one side only; not used",
}

// A Conflict is evidence that was not followed, about clock B relative to clock A.
type Conflict struct {
	Kind       ConflictKind
	A, B       int
	Difference int64 // ns, largest difference between the evidence and the relation used; B minus A
	Bound      int64 // ns, tolerated difference
	Count, Of  int   // pieces of evidence that disagree, out of all between A and B
}

// String describes c without the names of clocks, which only callers know.
func (c Conflict) String() string {
	if c.Kind == DividedRequests || c.Kind == OneSided { // there is no relation to differ from
		return fmt.Sprintf("%s: %d bounds", conflictText[c.Kind], c.Of)
	}
	return fmt.Sprintf("%s: off by %s, of which %s can be explained, in %d of %d",
		conflictText[c.Kind], trace.FormatDuration(c.Difference), trace.FormatDuration(c.Bound), c.Count, c.Of)
}

// A Problem is the evidence about clocks 0..Clocks-1.
type Problem struct {
	Clocks    int
	Reference int
	Fixed     []Fixed
	Ranks     []matching.Rank
	Matches   matching.Matches // as returned by matching.Find(Ranks)
	Bounds    []Bound
	// Claims reports which clocks claim to show Unix time: see keep.go. It may be nil.
	Claims []bool
}

// A Fixed relation is known before anything is matched: given by the user, or recorded by a
// producer. With o = Offset + DriftPPB/1e9 * (b - At), clock A shows b - o when clock B shows b.
type Fixed struct {
	A, B     int
	At       int64 // on clock B; irrelevant without drift
	Offset   int64 // ns, B minus A, within +-2e18
	DriftPPB int64 // within +-1e8
	Bound    int64 // ns, how far off it may be; 0 if the user gave it
	Why      trace.SyncBasis
	// By and Matches say what the relation is based on, if it was matched earlier.
	By      MatchBasis
	Matches int
}

// NoLo and NoHi are unknown sides of a Bound.
const (
	NoLo = math.MinInt64
	NoHi = math.MaxInt64
)

// A Bound is an inequality: when clock B showed At, B minus A was in [Lo, Hi], ns.
//
// A span [b1, b2] of clock B inside of a span [a1, a2] of clock A says
// At b1, Lo b2-a2, Hi b1-a1. A message that was sent at a and received at b says
// Hi b-a and NoLo. That both clocks are within x of Unix time says Lo -x, Hi x.
type Bound struct {
	A, B   int
	At     int64
	Lo, Hi int64 // within +-2e18, or NoLo, NoHi; bounds with other values are ignored
	// OfHosts reports that the bound comes from a host collective, not from a request.
	OfHosts bool
}

// sound reports whether b limits anything, with values that cannot overflow.
func (b Bound) sound() bool {
	in := func(v, none, most int64) bool { return v == none || v >= -most && v <= most }
	return in(b.At, 0, matching.Farthest) && in(b.Lo, NoLo, matching.Farthest/2) && in(b.Hi, NoHi, matching.Farthest/2) && (b.Lo != NoLo || b.Hi != NoHi)
}

// TransferBounds returns the bounds from matched sends and receives: a receive does not end
// before the send has begun. (The opposite does not hold: a send may be buffered.)
func TransferBounds(ranks []matching.Rank, names *matching.Names, matches *matching.Matches) []Bound {
	var list []Bound
	for _, m := range matches.All() {
		if m.Kind != matching.KindSend || len(m.Members) != 2 {
			continue
		}
		for i, from := range m.Members {
			to := m.Members[1-i]
			a, b := &ranks[from.Rank], &ranks[to.Rank]
			send, recv := a.Calls.At(int(from.Index)), b.Calls.At(int(to.Index))
			if names.Of(send.Call).Kind == matching.KindSend && names.Of(recv.Call).Kind == matching.KindRecv && a.Clock != b.Clock {
				list = append(list, Bound{A: a.Clock, B: b.Clock, At: recv.End, Lo: NoLo, Hi: sub(recv.End, send.Start)})
			}
		}
	}
	return list
}

// MeetBounds returns the bounds from matched host collectives: no rank leaves before the last one has come.
// Ends of threads are too uneven to use otherwise. Each clock is compared with the first one in a collective.
func MeetBounds(ranks []matching.Rank, matches *matching.Matches) []Bound {
	var list []Bound
	for _, m := range matches.All() {
		if m.Kind != matching.KindSync {
			continue
		}
		first := &ranks[m.Members[0].Rank]
		a := first.Calls.At(int(m.Members[0].Index))
		for _, x := range m.Members[1:] {
			other := &ranks[x.Rank]
			if b := other.Calls.At(int(x.Index)); other.Clock != first.Clock && a.Timed() && b.Timed() {
				list = append(list, Bound{A: first.Clock, B: other.Clock, At: b.End, Lo: NoLo, Hi: sub(b.End, a.Start), OfHosts: true},
					Bound{A: other.Clock, B: first.Clock, At: a.End, Lo: NoLo, Hi: sub(a.End, b.Start), OfHosts: true})
			}
		}
	}
	return list
}
