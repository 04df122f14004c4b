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
	At        trace.Time
}

// fewOf is how many times as many sync points there are as a bulk has, at least: a tenth of them.
const fewOf = 10

// bulk returns the bulk of what is lost at the sync points [from, to) to which a rank comes last:
// the largest losses that make up half of all, and those that are half as large as the least of them.
func (g *SyncSamples) bulk(rank, from, to int) (b Bulk) {
	all, half := int64(0), int64(0)
	var losses []int64
	for i := from; i < to; i++ {
		if m := &g.SyncPoints[i]; m.last == rank {
			losses, all = append(losses, m.lost), distribution.AddTimes(all, m.lost)
		}
	}
	// More of them than are few need not be looked at.
	n := len(losses)
	if n == 0 {
		return b
	}
	least := order.Nth(losses, max(0, n-1-max(1, n/fewOf)))
	var last []*syncPoint
	for i := from; i < to; i++ {
		if m := &g.SyncPoints[i]; m.last == rank && m.lost >= least {
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
		b.N, b.Lost, b.Low, b.At = b.N+1, distribution.AddTimes(b.Lost, m.lost), each, min(b.At, m.At)
	}
	if b.N == n || b.N > 1 && b.N*fewOf > n {
		return Bulk{}
	}
	return b
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
	return fmt.Sprintf(" (%.0f %% of that in %d %s, %s to %s each, from %s on)", share, b.N, several, words.Nearly(b.Low), words.Nearly(b.High), words.At(b.At, words.ClockLayout))
}
