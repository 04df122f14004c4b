package judge

import (
	"math"
	"slices"
	"sort"

	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
)

// Levels finds when the level of some values changes, among changes for which keep is true. A test on ranks finds the
// changes, and the values themselves locate them, where the ratio of the levels is largest: once values grow, their
// ranks grow as much at any later position.
func Levels(values []float64, keep func(from, k, to int) bool) []changepoint.Change {
	changes := changepoint.Levels(values, changepoint.Options{Alpha: Surely, Keep: keep})
	for i := range changes {
		Sharpen(values, &changes[i])
		if i > 0 {
			changes[i-1].To = changes[i].At
		}
		if i+1 < len(changes) {
			changes[i+1].From = changes[i].At
		}
	}
	return changes
}

// Sharpen moves a change to where the ratio of the values before and after it is most distinct.
func Sharpen(values []float64, c *changepoint.Change) {
	best, at := 0.0, c.At
	logs := logsOf(values[c.From:c.To])
	all, n, sum := order.Total(logs), len(logs), 0.0
	for k, before := c.From+1, 0; k < c.To; k++ {
		if values[k-1] > 0 {
			sum, before = sum+logs[before], before+1
		}
		after := n - before
		between := sum/float64(before) - (all-sum)/float64(after)
		if gain := between * between * float64(before*after); gain > best {
			best, at = gain, k
		}
	}
	for at > c.From+FewLimited && values[at-1] >= MuchMore*Highest(values[c.From:at-1]) { // a value higher than any before is no longer usual
		at--
	}
	c.At = at
}

// Highest returns the largest of the values that are not NaN.
func Highest(values []float64) float64 {
	most := math.Inf(-1)
	for _, v := range values {
		if v > most {
			most = v
		}
	}
	return most
}

// logsOf returns the logarithms of the positive values.
func logsOf(values []float64) (logs []float64) {
	for _, v := range values {
		if v > 0 {
			logs = append(logs, math.Log(v))
		}
	}
	return logs
}

// Peaks finds runs of intervals whose values are many times the median, if other values almost never are. The values
// in a peak resemble each other, so no test applies and P is NaN.
func Peaks(values []float64, times float64) (out []changepoint.Change) {
	const seldom = 20 // at most one in 20
	limit, high := times*telemetry.Middle(values), 0
	for from := 0; from < len(values); from++ {
		to := from
		for to < len(values) && (values[to] >= limit || to > from && to+1 < len(values) && values[to-1] >= limit && values[to+1] >= limit) {
			to++
		}
		if to-from >= FewLimited {
			out = append(out, changepoint.Change{At: from, To: to, P: math.NaN()})
		} else {
			high += to - from
		}
		from = max(from, to-1)
	}
	if seldom*high > len(values) {
		return nil
	}
	return out
}

// A Spell is a period, from C.At to C.To, in which a mean is much higher than in the time before, without other
// spells.
type Spell struct {
	C             changepoint.Change
	Before, After float64
}

// Higher returns the spells in which a mean is at least many times its usual value. changes are when it changes, and
// mean returns it over several periods together. Adjacent periods on different high levels are one Spell.
func Higher(changes []changepoint.Change, many float64, mean func(times [][2]int) float64, enough func(from, to int) bool) (out []Spell) {
	if len(changes) == 0 {
		return nil
	}
	usual := [][2]int{{0, changes[0].At}}
	for _, c := range changes {
		during := [][2]int{{c.At, c.To}}
		after := mean(during)
		if n := len(out) - 1; n >= 0 && out[n].C.To == c.At && after >= many*out[n].Before {
			out[n].C.To, out[n].After = c.To, mean([][2]int{{out[n].C.At, c.To}})
			continue
		}
		before := mean(usual)
		if before > 0 && after >= many*before && after > mean([][2]int{{c.From, c.At}}) && enough(c.From, c.At) && enough(c.At, c.To) {
			out = append(out, Spell{c, before, after})
		} else {
			usual = append(usual, during...)
		}
	}
	return out
}

// Parted finds the position from which nearly all values are higher than nearly all before: a change too close to an
// end for a test on ranks.
func Parted(list []float64, times float64) (k int, ok bool) {
	const few, wrong = 4, 0.15 // few is the least number of values on each side, and wrong the largest share of a side's values on the wrong side
	best := 2 * wrong
	var left []float64 // the values of both sides, sorted
	right := slices.DeleteFunc(slices.Clone(list), math.IsNaN)
	slices.Sort(right)
	for i := 1; i+few <= len(list); i++ {
		if v := list[i-1]; !math.IsNaN(v) {
			at, _ := slices.BinarySearch(left, v)
			left = slices.Insert(left, at, v)
			at, _ = slices.BinarySearch(right, v)
			right = slices.Delete(right, at, at+1)
		}
		if i < few || len(left) == 0 || len(right) == 0 {
			continue
		}
		before, after := order.MedianOfSorted(left), order.MedianOfSorted(right)
		if after <= times*before {
			continue
		}
		between := math.Sqrt(before * after)
		high := float64(len(left)-atMost(left, between)) / float64(i)
		low := float64(atMost(right, between)) / float64(len(list)-i)
		if high <= wrong && low <= wrong && high+low < best {
			best, k, ok = high+low, i, true
		}
	}
	return k, ok
}

// atMost returns how many of the sorted values are at most v.
func atMost(sorted []float64, v float64) int {
	return sort.Search(len(sorted), func(i int) bool { return sorted[i] > v })
}
