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

// A Bulk is a few sync points that account for most of the time that others lose to a rank: its host stalled once, or
// now and then. Means over all sync points hide them. The zero value means that there are none.
type Bulk struct {
	N         int   // number of sync points
	Lost      int64 // ns: time lost by all other ranks together
	Low, High int64 // ns: shortest and longest mean wait of the others at one of them
	At, Last  trace.Time
}

// fewOf is the smallest ratio of all sync points to those in a bulk: a bulk is at most a tenth of them.
const fewOf = 10

// bulk returns the bulk of the time lost at the sync points [from, to) at which a rank comes last: the largest losses
// that make up half of all, and those at least half as large as the smallest of these. It returns none if that is all
// of several sync points, more than a tenth of them, or the only sync point in the range. Sync points with stall[i]
// >= 0 are reported elsewhere and left out; a nil stall leaves out none.
func (g *SyncSamples) bulk(rank, from, to int, stall []int) Bulk {
	b, last := g.most(rank, from, to, 0, stall)
	if b.N > 1 && (b.N == last || b.N*fewOf > last) || to-from == 1 {
		return Bulk{}
	}
	return b
}

// stalls returns the sync points that account for most of the time lost to a rank, if they are few and far more is
// lost at each than usual. lost is the time lost to all ranks, ns. The others then wait for the rank once, or now and
// then, and not over a period.
func (g *SyncSamples) stalls(rank int, lost int64) Bulk {
	n := len(g.SyncPoints)
	b, _ := g.most(rank, 0, n, n/fewOf, nil)
	if usual := lost / int64(n*(len(g.Names)-1)); b.Low < fewOf*usual {
		return Bulk{}
	}
	return b
}

// most is [SyncSamples.bulk] without the checks. It looks at no more than few sync points, or a tenth of those at
// which the rank comes last, if that is more. n is how often it comes last.
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
	// A bulk cannot have more than that.
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

// Of says what share of lost the bulk is, and what it consists of: " (96 % of that in one collective that ended at
// 12:00:05.100)". one and several are the words for one sync point and for more.
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

// Alone describes the bulk if there is no other loss to report: " (40 ms in one collective that ended at
// 12:00:05.100)".
func (b *Bulk) Alone(one, several string) string {
	if b.N == 1 {
		return fmt.Sprintf(" (%s in %s that ended at %s)", words.Nearly(b.High), one, words.At(b.At, words.ClockLayout))
	}
	return fmt.Sprintf(" (%s to %s in each of %d %s, %s)", words.Nearly(b.Low), words.Nearly(b.High), b.N, several, b.when())
}

// when says when the first and the last of several sync points ended.
func (b *Bulk) when() string {
	return "from " + words.At(b.At, words.ClockLayout) + " to " + words.At(b.Last, words.ClockLayout)
}
