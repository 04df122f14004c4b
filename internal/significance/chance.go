package significance

import "gonum.org/v1/gonum/stat/distuv"

// AtLeast returns how probable it is that k or more of some events happen that do not depend on
// each other, of which p has the probability of each: Poisson's binomial distribution, exactly.
func AtLeast(k int, p []float64) float64 {
	if k <= 0 {
		return 1
	}
	if k > len(p) {
		return 0
	}
	// happen[i] is the probability that i of the events so far have happened; happen[k] stands
	// for k or more.
	happen := make([]float64, k+1)
	happen[0] = 1
	for _, one := range p {
		happen[k] += happen[k-1] * one
		for i := k - 1; i > 0; i-- {
			happen[i] = happen[i]*(1-one) + happen[i-1]*one
		}
		happen[0] *= 1 - one
	}
	return min(1, happen[k])
}

// AtLeastOf returns how probable it is that k or more of n such events happen that all have the
// probability p.
func AtLeastOf(k, n int, p float64) float64 {
	return max(0, distuv.Binomial{N: float64(n), P: p}.Survival(float64(k-1)))
}
