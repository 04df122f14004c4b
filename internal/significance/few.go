package significance

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
)

// Few is below how many values of a capture compareFew says more than compare: nobody
// knows how so few are distributed.
const Few = 10

// compareFew tells how a quantity changed of which each piece is one value, Sum by Of. It
// supposes nothing about how values are distributed: P is that of the exact test of Mann
// and Whitney (Annals of Mathematical Statistics 18, 1947), and the interval is that of
// all ratios of a value after to one before (Moses). Where even values that do not overlap
// could be chance, P and the interval are NaN.
func compareFew(before, after []Piece) Change {
	x, y := quotients(before), quotients(after)
	c := Change{Ratio: math.NaN(), Low: math.NaN(), High: math.NaN(), P: math.NaN()}
	if b, a := estimate(before, Apart).value, estimate(after, Apart).value; b > 0 && a > 0 {
		c.Ratio = a / b
	}
	if len(x) == 0 || len(y) == 0 || 2/ways(len(x), len(y)) > 1-confidence {
		return c
	}
	c.P = mannWhitney(x, y)
	if math.IsNaN(c.Ratio) {
		return c
	}
	ratios := make([]float64, 0, len(x)*len(y))
	for _, b := range x {
		for _, a := range y {
			if a == b {
				ratios = append(ratios, 1) // of 0 and 0, too
			} else {
				ratios = append(ratios, a/b)
			}
		}
	}
	slices.Sort(ratios)
	leave := critical(len(x), len(y))
	c.Low, c.High = min(c.Ratio, ratios[leave]), max(c.Ratio, ratios[len(ratios)-1-leave])
	return c
}

// Around returns the change as one of another ratio of the same quantity, such as that of
// medians of all values, where c is about the medians of pieces.
func (c Change) Around(ratio float64) Change {
	if !math.IsNaN(c.Low) {
		c.Low, c.High = min(c.Low, ratio), max(c.High, ratio)
	}
	c.Ratio = ratio
	return c
}

// quotients returns the values of pieces that have any.
func quotients(pieces []Piece) []float64 {
	var list []float64
	for _, p := range pieces {
		if p.Of > 0 {
			list = append(list, p.Sum/p.Of)
		}
	}
	return list
}

// ways returns in how many ways n+m values can be divided into n and m.
func ways(n, m int) float64 {
	w := 1.0
	for i := 1; i <= n; i++ {
		w *= float64(m+i) / float64(i)
	}
	return w
}

// mannWhitney returns how likely it is that two lists of the same origin are at least
// this far apart, in either direction. Equal values share their ranks, and every way to
// divide these ranks counts.
func mannWhitney(x, y []float64) float64 {
	ranks, sum := twiceRanks(x, y)
	counts := subsetSums(ranks, len(x))
	atMost, atLeast, all := 0.0, 0.0, 0.0
	for s, n := range counts {
		all += n
		if s <= sum {
			atMost += n
		}
		if s >= sum {
			atLeast += n
		}
	}
	return min(1, 2*min(atMost, atLeast)/all)
}

// twiceRanks returns twice the rank of every value of both lists, and what those of x add
// up to. Equal values have the mean of their ranks, so that twice it is whole.
func twiceRanks(x, y []float64) (ranks []int, ofX int) {
	all := slices.Concat(x, y)
	sorted := slices.Sorted(slices.Values(all))
	for i, v := range all {
		first, _ := slices.BinarySearch(sorted, v)
		next := first
		for next < len(sorted) && sorted[next] == v {
			next++
		}
		rank := first + next + 1 // the mean of first+1 and next, twice
		ranks = append(ranks, rank)
		if i < len(x) {
			ofX += rank
		}
	}
	return ranks, ofX
}

// subsetSums returns how many subsets of n ranks add up to every sum.
func subsetSums(ranks []int, n int) []float64 {
	most := order.Total(ranks)
	counts := make([][]float64, n+1) // by size of the subset
	for i := range counts {
		counts[i] = make([]float64, most+1)
	}
	counts[0][0] = 1
	for _, r := range ranks {
		for size := n; size > 0; size-- {
			for sum := most; sum >= r; sum-- {
				counts[size][sum] += counts[size-1][sum-r]
			}
		}
	}
	return counts[n]
}

// critical returns how many of the ratios at either end the interval leaves out: as many
// as leave at most half of what confidence does not cover beyond.
func critical(n, m int) int {
	ranks := make([]int, n+m)
	for i := range ranks {
		ranks[i] = i + 1
	}
	least := n * (n + 1) / 2
	below, leave := 0.0, 0
	for u, count := range subsetSums(ranks, n)[least:] {
		if below += count; below/ways(n, m) > (1-confidence)/2 {
			break
		}
		leave = u
	}
	return leave
}

// FalseDiscoveries returns, for every probability, the share of chance among all that are
// at most that, if so many were asked for at once: of what is below 0.05 one in 20 is
// chance on average, and if nothing differs there is any with a probability of 0.05 only
// (Benjamini and Hochberg, Journal of the Royal Statistical Society B 57, 1995). NaN stays
// and costs nothing.
func FalseDiscoveries(p []float64) []float64 {
	out := slices.Clone(p)
	order := sortedKnown(p)
	least := 1.0
	for rank, i := range slices.Backward(order) {
		least = min(least, p[i]*float64(len(order))/float64(rank+1))
		out[i] = least
	}
	return out
}

// sortedKnown returns the indexes of the probabilities that are known, the lowest first.
func sortedKnown(p []float64) []int {
	var order []int
	for i, v := range p {
		if !math.IsNaN(v) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(p[i], p[j]) })
	return order
}
