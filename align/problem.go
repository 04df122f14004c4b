package align

import (
	"math"

	"github.com/sgtrace/sgtrace/align/matching"
	"github.com/sgtrace/sgtrace/trace"
)

// A Problem has the evidence about clocks 0..Clocks-1.
type Problem struct {
	Clocks    int
	Reference int
	Fixed     []Fixed
	Ranks     []matching.Rank
	Matches   matching.Matches // as from MatchCollectives(Ranks)
	Bounds    []Bound
	// Claims tells which clocks claim to show Unix time: see keep.go. It may be nil.
	Claims []bool
}

// A Fixed relation is known before anything is matched: given by the user, or
// recorded by a producer. With o = Offset + DriftPPB/1e9 * (b - At), clock A shows
// b - o when clock B shows b.
type Fixed struct {
	A, B     int
	At       int64 // on clock B; does not matter without drift
	Offset   int64 // ns, B minus A, within +-2e18
	DriftPPB int64 // within +-1e8
	Bound    int64 // ns, how far it may be off; 0 where the user's word is taken
	Why      trace.SyncBasis
	// By and Matches say what the relation rests on, if it was matched before.
	By      MatchBasis
	Matches int
}

// NoLo and NoHi are the sides of a Bound that are not known.
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
	Lo, Hi int64 // within +-2e18, or NoLo, NoHi; others are ignored
	// OfHosts tells that a collective of hosts says so, no request.
	OfHosts bool
}

// sound reports whether b says anything, in numbers that can be computed with.
func (b Bound) sound() bool {
	in := func(v, none, most int64) bool { return v == none || v >= -most && v <= most }
	return in(b.At, 0, matching.Farthest) && in(b.Lo, NoLo, matching.Farthest/2) && in(b.Hi, NoHi, matching.Farthest/2) && (b.Lo != NoLo || b.Hi != NoHi)
}

// TransferBounds returns what matched sends and receives say: nobody has received
// before the other one began to send. (The opposite does not hold: a send may be
// buffered.)
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

// MeetBounds returns what matched collectives of hosts say: none has left before the last one came. Ends of
// threads are too uneven for more. Each clock is compared with the first one of a collective.
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
