package routing

import "math"

// A chance computes the mean number of tokens on the busiest GPU if each token goes to a random GPU, by the number of
// tokens.
type chance struct {
	gpus  int
	known map[int64]float64
	top   float64 // the mean of the largest of gpus standard normal deviates; 0 if not computed yet
}

func newChance(gpus int) *chance { return &chance{gpus: gpus, known: map[int64]float64{}} }

// fewTokens is the largest number of tokens for which the exact multinomial distribution is used. With more,
// independent Poisson variables differ from it by less than a token; with manyTokens per GPU, normal variables do.
const fewTokens, manyTokens = 64, 1000

// busiest returns the mean number of tokens on the busiest GPU, out of n tokens.
func (c *chance) busiest(n int64) float64 {
	if c.gpus <= 1 || n <= 0 {
		return float64(max(n, 0))
	}
	if v, ok := c.known[n]; ok {
		return v
	}
	v := c.compute(n)
	c.known[n] = v
	return v
}

func (c *chance) compute(n int64) float64 {
	mean := float64(n) / float64(c.gpus)
	switch {
	case n <= fewTokens:
		return multinomial(int(n), c.gpus)
	case mean < manyTokens:
		return poisson(mean, c.gpus)
	}
	if c.top == 0 {
		c.top = normal(c.gpus)
	}
	return mean + math.Sqrt(mean)*c.top
}

// multinomial returns the exact mean of the largest count if n tokens are spread over gpus GPUs: the sum over m of
// the probability that it exceeds m. Each is a coefficient of a power of the truncated series of e^x.
func multinomial(n, gpus int) float64 {
	all := math.Lgamma
	factorial, _ := all(float64(n + 1))
	sum := 0.0
	for m := range n {
		series := make([]float64, n+1)
		for j := range m + 1 {
			f, _ := all(float64(j + 1))
			series[j] = math.Exp(-f)
		}
		power := raise(series, gpus)
		atMost := 0.0
		if power[n] > 0 {
			atMost = math.Exp(math.Log(power[n]) + factorial - float64(n)*math.Log(float64(gpus)))
		}
		sum += 1 - min(1, atMost)
	}
	return sum
}

// raise returns the k-th power of a polynomial, truncated to its length.
func raise(p []float64, k int) []float64 {
	out := make([]float64, len(p))
	out[0] = 1
	for ; k > 0; k >>= 1 {
		if k&1 != 0 {
			out = product(out, p)
		}
		p = product(p, p)
	}
	return out
}

func product(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i, x := range a {
		if x == 0 {
			continue
		}
		for j := range len(a) - i {
			out[i+j] += x * b[j]
		}
	}
	return out
}

// poisson returns the mean of the largest of n independent Poisson variables.
func poisson(mean float64, n int) float64 {
	sum, below, log := 0.0, 0.0, -mean
	for m := 0; ; m++ {
		if m > 0 {
			log += math.Log(mean) - math.Log(float64(m))
		}
		below += math.Exp(log)
		above := 1 - math.Pow(min(1, below), float64(n))
		sum += above
		if float64(m) > mean && above < 1e-9 {
			return sum
		}
	}
}

// normal returns the mean of the largest of n standard normal deviates.
func normal(n int) float64 {
	const step, far = 0.001, 9.0
	sum := 0.0
	for x := -far; x < far; x += step {
		all := math.Pow(0.5*math.Erfc(-x/math.Sqrt2), float64(n))
		if x < 0 {
			sum -= all * step
		} else {
			sum += (1 - all) * step
		}
	}
	return sum
}
