package significance

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
)

// Few is the number of values of a capture below which compareFew is better than compare: the distribution of
// so few is unknown.
const Few = 10

// compareFew compares a quantity whose pieces are single values, Sum by Of, without assuming a distribution.
// P is that of the exact test of Mann and Whitney (Annals of Mathematical Statistics 18, 1947), and the
// interval is that of the ratios of every value after to every value before (Moses). If even values that do not
// overlap could be chance, P and the interval are NaN.
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
				ratios = append(ratios, 1) // also 0 / 0
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

// Around returns the change with another ratio of the same quantity, such as that of the medians of all values,
// where c has that of the medians of pieces. It widens the interval to include the ratio.
func (c Change) Around(ratio float64) Change {
	if !math.IsNaN(c.Low) {
		c.Low, c.High = min(c.Low, ratio), max(c.High, ratio)
	}
	c.Ratio = ratio
	return c
}

// quotients returns the values of the pieces that have one.
func quotients(pieces []Piece) []float64 {
	var list []float64
	for _, p := range pieces {
		if p.Of > 0 {
			list = append(list, p.Sum/p.Of)
		}
	}
	return list
}

// ways returns the number of ways to divide n+m values into n and m.
func ways(n, m int) float64 {
	w := 1.0
	for i := 1; i <= n; i++ {
		w *= float64(m+i) / float64(i)
	}
	return w
}

// mannWhitney returns the two-sided probability that two lists from the same distribution are at least this far
// apart. Equal values share their ranks, and every way to divide these ranks counts.
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

// twiceRanks returns twice the rank of every value of both lists, and the sum of those of x. Equal values have
// the mean of their ranks, so twice that is whole.
func twiceRanks(x, y []float64) (ranks []int, ofX int) {
	all := slices.Concat(x, y)
	sorted := slices.Sorted(slices.Values(all))
	for i, v := range all {
		first, _ := slices.BinarySearch(sorted, v)
		next := first
		for next < len(sorted) && sorted[next] == v {
			next++
		}
		rank := first + next + 1 // twice the mean of first+1 and next
		ranks = append(ranks, rank)
		if i < len(x) {
			ofX += rank
		}
	}
	return ranks, ofX
}

// subsetSums returns the number of subsets of n ranks for every sum.
func subsetSums(ranks []int, n int) []float64 {
	most := order.Total(ranks)
	counts := make([][]float64, n+1) // by subset size
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

// critical returns how many ratios the interval leaves out at either end: as many as have at most half of
// 1-confidence beyond them.
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

// FalseDiscoveries returns, for every probability, the expected share of chance among all results with at most
// that probability: of those below 0.05, one in 20 is chance on average, and if nothing differs, the
// probability of having any is 0.05 (Benjamini and Hochberg, Journal of the Royal Statistical Society B 57,
// 1995). NaN stays and costs nothing.
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

// sortedKnown returns the indexes of the probabilities that are not NaN, lowest first.
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
