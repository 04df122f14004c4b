package changepoint

import (
	"math"
	"math/rand/v2"
	"slices"
)

// autoregressive returns noise whose neighbors have the correlation phi.
func autoregressive(r *rand.Rand, n int, phi float64) []float64 {
	x := make([]float64, n)
	v := r.NormFloat64() / math.Sqrt(1-phi*phi)
	for i := range x {
		v = phi*v + r.NormFloat64()
		x[i] = v
	}
	return x
}

// waits returns the waiting times of customers in a queue with utilization rho, and exponential
// arrivals and services: long spells of waiting, with none in between.
func waits(r *rand.Rand, n int, rho float64) []float64 {
	const until = 2000 // customers until the queue reaches its steady state
	x, w := make([]float64, n), 0.0
	for i := -until; i < n; i++ {
		if w = max(0, w+rho*r.ExpFloat64()-r.ExpFloat64()); i >= 0 {
			x[i] = w
		}
	}
	return x
}

// batches returns the times of n events, which arrive in batches of the given mean size.
func batches(r *rand.Rand, n int, size float64) []float64 {
	var x []float64
	for t := 0.0; len(x) < n; {
		t += r.ExpFloat64()
		x = append(x, t)
		for r.Float64() > 1/size && len(x) < n {
			x = append(x, t+r.Float64()/100)
		}
	}
	slices.Sort(x)
	return x
}

// atRates returns the times of Poisson events: counts[i] events at rates[i].
func atRates(r *rand.Rand, counts []int, rates []float64) []float64 {
	var x []float64
	t := 0.0
	for i, n := range counts {
		for range n {
			t += r.ExpFloat64() / rates[i]
			x = append(x, t)
		}
	}
	return x
}

// sticky returns draws that are true with probability p, and repeat the previous one with
// probability stay.
func sticky(r *rand.Rand, n int, p, stay float64) []bool {
	x := make([]bool, n)
	last := r.Float64() < p
	for i := range x {
		if r.Float64() >= stay {
			last = r.Float64() < p
		}
		x[i] = last
	}
	return x
}

// shifted adds a step to x from k on.
func shifted(x []float64, k int, by float64) []float64 {
	for i := k; i < len(x); i++ {
		x[i] += by
	}
	return x
}
