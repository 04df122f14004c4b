package straggler

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A Bulk is the few sync points that most of what the others lose by a rank is lost at: a host that
// stood still once, or now and then. Means over all sync points hide them. The zero value
// is none.
type Bulk struct {
	N         int   // sync points
	Lost      int64 // by all others together, ns
	Low, High int64 // how long the others waited at each, on average, ns
	At, Last  trace.Time
}

// fewOf is how many times as many sync points there are as a bulk has, at least: a tenth of them.
const fewOf = 10

// bulk returns the bulk of what is lost at the sync points [from, to) to which a rank comes last:
// the largest losses that make up half of all, and those that are half as large as the least of them.
// All of several are no bulk, nor is a single sync point of one. Where stall is 0 or more, the sync point is told elsewhere; nil is nowhere.
func (g *SyncSamples) bulk(rank, from, to int, stall []int) Bulk {
	b, last := g.most(rank, from, to, 0, stall)
	if b.N > 1 && (b.N == last || b.N*fewOf > last) || to-from == 1 {
		return Bulk{}
	}
	return b
}

// stalls returns the sync points at which most is lost that a rank costs, if these are few of all that there are,
// and far more is lost at each than is usual, of what is lost by all ranks: the others wait for it once, or now and then, and not for a time.
func (g *SyncSamples) stalls(rank int, lost int64) Bulk {
	n := len(g.SyncPoints)
	b, _ := g.most(rank, 0, n, n/fewOf, nil)
	if usual := lost / int64(n*(len(g.Names)-1)); b.Low < fewOf*usual {
		return Bulk{}
	}
	return b
}

// most is [SyncSamples.bulk] without asking whether that is few, as long as it is no more than few; last is
// how many times the rank comes last.
func (g *SyncSamples) most(rank, from, to, few int, stall []int) (b Bulk, n int) {
	counts := func(i int) bool { return g.SyncPoints[i].last == rank && (stall == nil || stall[i] < 0) }
	all, half := int64(0), int64(0)
	var losses []int64
	for i := from; i < to; i++ {
		if counts(i) {
			lost := g.SyncPoints[i].lost
			losses, all = append(losses, lost), distribution.AddTimes(all, lost)
		}
	}
	// More of them than are few need not be looked at.
	if n = len(losses); n == 0 {
		return b, n
	}
	least := order.Nth(losses, max(0, n-1-max(1, few, n/fewOf)))
	var last []*syncPoint
	for i := from; i < to; i++ {
		if m := &g.SyncPoints[i]; counts(i) && m.lost >= least {
			last = append(last, m)
		}
	}
	slices.SortStableFunc(last, func(x, y *syncPoint) int { return cmp.Compare(y.lost, x.lost) })
	for _, m := range last {
		if 2*b.Lost >= all {
			if 2*m.lost < half {
				break
			}
		} else {
			half = m.lost
		}
		each := m.lost / int64(m.here-1)
		if b.N == 0 {
			b.High, b.At = each, m.At
		}
		b.N, b.Lost, b.Low = b.N+1, distribution.AddTimes(b.Lost, m.lost), each
		b.At, b.Last = min(b.At, m.At), max(b.Last, m.At)
	}
	return b, n
}

// Of says which part of what is lost the bulk is, and what it is: " (96 % of that in one collective that
// ended at 12:00:05.100)"; one and several are what a sync point, and several, are called.
func (b *Bulk) Of(lost int64, one, several string) string {
	share := 100 * distribution.Fraction(b.Lost, lost)
	switch {
	case b.N == 0:
		return ""
	case b.N == 1:
		return fmt.Sprintf(" (%.0f %% of that in %s that ended at %s)", share, one, words.At(b.At, words.ClockLayout))
	}
	return fmt.Sprintf(" (%.0f %% of that in %d %s, %s to %s each, %s)", share, b.N, several, words.Nearly(b.Low), words.Nearly(b.High), b.when())
}

// Alone says what the bulk is where it is all that is told of a rank: " (40 ms in one collective that ended at 12:00:05.100)".
func (b *Bulk) Alone(one, several string) string {
	if b.N == 1 {
		return fmt.Sprintf(" (%s in %s that ended at %s)", words.Nearly(b.High), one, words.At(b.At, words.ClockLayout))
	}
	return fmt.Sprintf(" (%s to %s in each of %d %s, %s)", words.Nearly(b.Low), words.Nearly(b.High), b.N, several, b.when())
}

// when says when the first of several ended, and the last.
func (b *Bulk) when() string {
	return "from " + words.At(b.At, words.ClockLayout) + " to " + words.At(b.Last, words.ClockLayout)
}
