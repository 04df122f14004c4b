package changepoint

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// supremum returns the probability that the normal deviate of the best split of
// a sequence without a change is z or more, in size, when either side has at
// least a share trim of the observations. It is
//
//	z phi(z) ((1 - 1/z^2) ln(((1-trim)/trim)^2) + 4/z^2)
//
// for the supremum of a standardized Brownian bridge: Vostrikova, Theory Probab.
// Appl. 26 (1981); Csörgő and Horváth, Limit Theorems in Change-Point Analysis
// (1997), 1.3.26. Sequences are discrete and stay a little below that.
func supremum(z, trim float64) float64 {
	if z < 1.5 {
		return 1 // beyond the reach of the formula, and never significant
	}
	trim = min(max(trim, 1e-6), 0.5)
	places := 2 * math.Log((1-trim)/trim)
	p := z * distuv.UnitNormal.Prob(z) * ((1-1/(z*z))*places + 4/(z*z))
	return min(max(p, twoSided(z)), 1)
}

// twoSided returns the probability of a normal deviate of size z or more.
func twoSided(z float64) float64 { return math.Erfc(z / math.Sqrt2) }

// farthest is the largest deviate: beyond, float64 has no probabilities.
const farthest = 38

// normal returns the normal deviate that is as unlikely as t is with df degrees
// of freedom.
func normal(t, df float64) float64 {
	const many = 1e5 // there is no difference
	if df > many {
		return min(t, farthest)
	}
	p := distuv.StudentsT{Sigma: 1, Nu: df}.Survival(t)
	if p < 1e-300 {
		return min(t, farthest)
	}
	return min(t, -distuv.UnitNormal.Quantile(p))
}
