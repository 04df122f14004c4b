package slo

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// FewestJudged is how many judged requests it takes to tell that a goodput is too small.
const FewestJudged = 30

// Below is the probability of as few requests that meet all objectives if each of those judged
// does with a share, 0 to 1, as its probability; NaN with fewer than [FewestJudged].
func (g *Goodput) Below(share float64) float64 {
	judged := g.All.Judged()
	switch {
	case judged < FewestJudged:
		return math.NaN()
	case share >= 1: // where a single miss is one too many
		if g.All.Missed > 0 {
			return 0
		}
		return 1
	}
	return distuv.Binomial{N: float64(judged), P: share}.CDF(float64(g.All.Met))
}
