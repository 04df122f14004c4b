package changepoint

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
)

// tails are the parts of all values, as 1 in so many, that Larger searches for more large ones beyond the beginning of the tail.
var tails = [...]int{20, 40, 80}

// Tails is how many searches Larger adds for the few largest values.
const Tails = len(tails)

// Larger finds when more or fewer of the values are large, though most of them are as large as before, and from which
// limit on they count: from where the tail begins; or, with few, beyond it, as those that run away may be fewer than those
// that are large anyway. The last resort, with an error probability of begins, are few that begin to come. keep reports
// whether a change is large enough to matter; few tells which it is.
func Larger(values []float64, few bool, alpha, begins float64, keep func(from, k, to int, few bool) bool) ([]Change, float64) {
	const least = 1.5 // of the odds
	options := func(limit float64, few bool) Options {
		return Options{Alpha: alpha, Keep: func(from, k, to int) bool {
			before, after := odds(Beyond(values[from:k], limit)), odds(Beyond(values[k:to], limit))
			return max(before, after) >= least*min(before, after) && keep(from, k, to, few)
		}}
	}
	limit := TailLimit(values)
	if found := Excesses(values, limit, options(limit, false)); len(found) > 0 || !few {
		return found, limit
	}
	sorted, n := slices.Sorted(slices.Values(values)), len(values)
	above := func(limit float64) []bool {
		return order.Each(values, func(v float64) bool { return v >= limit })
	}
	for _, part := range tails { // too few to compare blocks of them
		limit = sorted[n-1-n/part]
		if found := Shares(above(limit), options(limit, true)); len(found) > 0 {
			return found, limit
		}
	}
	limit = sorted[max(0, n-max(minEvents, n/tails[len(tails)-1]))]
	o := options(limit, true)
	o.Alpha = begins
	found := Begins(above(limit), o)
	for i := range found { // relative to what the others may have
		found[i].P *= alpha / begins
	}
	return found, limit
}

// Beyond returns the share of the values that reach limit.
func Beyond(values []float64, limit float64) float64 {
	return float64(order.Count(values, func(v float64) bool { return v >= limit })) / float64(max(1, len(values)))
}

func odds(share float64) float64 { return share / max(1-share, math.SmallestNonzeroFloat64) }

// Begins finds when trues began to come, if none came before and they keep coming. Each of them would be in that part of
// the observations with the probability of its share of all, if they came at random. Nothing else needs to be
// tried: there is one place where they begin.
func Begins(is []bool, o Options) []Change {
	first, all := slices.Index(is, true), Count(is)
	n := len(is)
	if first < minEvents || all.In(0, n) < minEvents {
		return nil
	}
	since := float64(n - first)
	p := math.Pow(since/float64(n), float64(all.In(0, n)))
	if p > o.Alpha || len(Shares(is[first:], Options{Alpha: surelyOver})) > 0 || o.Keep != nil && !o.Keep(0, first, n) {
		return nil
	}
	none := int(math.Log(1-confidence) / math.Log1p(-all.Share(first, n))) // so many in a row may be false by chance
	return []Change{{At: first, First: max(1, first-none), Last: first, To: n, P: p}}
}

// confidence is that of a change's interval; surelyOver is how improbable an end of what began may be by chance.
const confidence, surelyOver = 0.95, 0.05
