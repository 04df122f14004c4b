package overtime

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/changepoint"
)

// spells returns the changes after which values are higher: the last one, and those that the next change undoes. mean is that of some values.
func spells(list []changepoint.Change, mean func(from, to int) float64) (up []changepoint.Change) {
	for i, x := range list {
		if i == len(list)-1 {
			up = append(up, x)
			continue
		}
		if before, during := mean(x.From, x.At), mean(x.At, x.To); during > before && near(mean(x.To, list[i+1].To), before, during) {
			up = append(up, x)
		}
	}
	return up
}

// apart returns the index from which all values exceed every earlier one by minLonger or more. With few values, a test on
// ranks cannot show how clear such a difference is. P is the probability that the largest values come last in a random order.
func apart(values []float64, level float64) []changepoint.Change {
	n := len(values)
	least := slices.Clone(values) // of a value and those behind it
	for i := n - 2; i >= 0; i-- {
		least[i] = min(least[i], least[i+1])
	}
	most := 0.0
	for k := range values {
		if p := math.Exp(-logChoose(n, k)); k >= leastSteps && k <= n-leastSteps && least[k] >= minLonger*most && p <= level {
			return []changepoint.Change{{At: k, First: k, Last: k, To: n, P: p}}
		}
		most = max(most, values[k])
	}
	return nil
}

// apartWithin returns where values exceed all before and behind by minLonger or more, but for the one on either side, which may lie between. P is
// the probability that the largest values follow each other in a random order.
func apartWithin(values []float64, level float64) (best []changepoint.Change) {
	const beside = 3 // at least on either side: a start may be slow, or fast
	n := len(values)
	behind := slices.Clone(values) // the most of a value and those behind it
	for i := n - 2; i >= 0; i-- {
		behind[i] = max(behind[i], behind[i+1])
	}
	longest, ahead := leastSteps-1, 0.0
	for at := beside; at < n-beside; at++ {
		ahead = max(ahead, slices.Max(values[:at-1]))
		least := math.Inf(1)
		for to := at + 1; to <= n-beside; to++ {
			if least = min(least, values[to-1]); least < minLonger*ahead || least <= values[at-1] {
				break
			}
			if p := math.Log(float64(n-(to-at)+1)) - logChoose(n, to-at); to-at > longest && least > values[to] && least >= minLonger*behind[to+1] && p <= math.Log(level) {
				longest = to - at
				best = []changepoint.Change{{At: at, First: at, Last: at, To: to, P: math.Exp(p)}, {From: at, At: to, First: to, Last: to, To: n, P: math.Exp(p)}}
			}
		}
	}
	return best
}
