package align

import (
	"math"

	"github.com/sgtrace/sgtrace/trace"
)

// A Problem is what is known about clocks 0..Clocks-1.
type Problem struct {
	Clocks    int
	Reference int
	Fixed     []Fixed
	Ranks     []Rank
	Matches   []Match // as from MatchCollectives(Ranks)
	Bounds    []Bound
}

// A Fixed relation is known before anything is matched: given by the user, or
// recorded by a producer. With o = Offset + DriftPPB/1e9 * (b - At), clock A shows
// b - o when clock B shows b.
type Fixed struct {
	A, B     int
	At       int64 // on clock B; does not matter without drift
	Offset   int64 // ns, B minus A
	DriftPPB int64 // within +-1e8
	Bound    int64 // ns, how far it may be off; 0 where the user's word is taken
	Why      trace.SyncWhy
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
	Lo, Hi int64
}

// Contained returns the Bound of a span [b1, b2] on clock B that lies inside of
// the span [a1, a2] on clock A.
func Contained(a int, a1, a2 int64, b int, b1, b2 int64) Bound {
	return Bound{A: a, B: b, At: b1 + (b2-b1)/2, Lo: b2 - a2, Hi: b1 - a1}
}
