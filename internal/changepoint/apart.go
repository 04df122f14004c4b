package changepoint

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/combin"
)

// Apart returns the index from which all values exceed every earlier one by a factor or more, with least or more on both sides. With few
// values, a test on ranks cannot show how clear such a difference is. P is the probability that the largest values come last in a random order.
func Apart(values []float64, factor float64, least int, level float64) []Change {
	n := len(values)
	lowest := slices.Clone(values) // of a value and those behind it
	for i := n - 2; i >= 0; i-- {
		lowest[i] = min(lowest[i], lowest[i+1])
	}
	most := 0.0
	for k := range values {
		if p := math.Exp(-combin.LogGeneralizedBinomial(float64(n), float64(k))); k >= least && k <= n-least && lowest[k] >= factor*most && p <= level {
			return []Change{{At: k, First: k, Last: k, To: n, P: p}}
		}
		most = max(most, values[k])
	}
	return nil
}

// ApartWithin returns where least values or more exceed all before and behind by a factor or more, but for the one on either side, which may
// lie between. P is the probability that the largest values follow each other in a random order.
func ApartWithin(values []float64, factor float64, least int, level float64) (best []Change) {
	const beside = 3 // at least on either side: a start may be slow, or fast
	n := len(values)
	behind := slices.Clone(values) // the most of a value and those behind it
	for i := n - 2; i >= 0; i-- {
		behind[i] = max(behind[i], behind[i+1])
	}
	longest, ahead := least-1, 0.0
	for at := beside; at < n-beside; at++ {
		ahead = max(ahead, slices.Max(values[:at-1]))
		lowest := math.Inf(1)
		for to := at + 1; to <= n-beside; to++ {
			if lowest = min(lowest, values[to-1]); lowest < factor*ahead || lowest <= values[at-1] {
				break
			}
			if p := math.Log(float64(n-(to-at)+1)) - combin.LogGeneralizedBinomial(float64(n), float64(to-at)); to-at > longest && lowest > values[to] && lowest >= factor*behind[to+1] && p <= math.Log(level) {
				longest = to - at
				best = []Change{{At: at, First: at, Last: at, To: to, P: math.Exp(p)}, {From: at, At: to, First: to, Last: to, To: n, P: math.Exp(p)}}
			}
		}
	}
	return best
}
