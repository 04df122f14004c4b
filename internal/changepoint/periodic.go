package changepoint

import "math"

// Periodic tells whether events, in order of time, come at equal intervals, some of which may
// be left out, and bounds the probability that events at random times seem to; P is 1 if
// they do not.
func Periodic(times []float64) (period, p float64) {
	const (
		fewest = 4
		most   = 0.1 // of a period that an event is off
		there  = 0.6 // of the intervals that have an event
	)
	p = 1
	if len(times) < fewest {
		return 0, p
	}
	tried := 0.0
	for i := range times[1:] {
		gap := times[i+1] - times[i]
		if gap <= 0 {
			continue
		}
		tried++
		length, off, intervals := lineUp(times, gap)
		if off > most*length || float64(len(times)) < there*(intervals+1) {
			continue
		}
		// One event says where they begin, and one how far apart they are.
		chance := math.Pow(2*max(off/length, 1e-3), float64(len(times)-2))
		if chance < p {
			period, p = length, chance
		}
	}
	return period, min(1, p*max(1, tried))
}

// lineUp puts events on intervals of about a length, by least squares, and returns the length,
// by how much the worst is off, and how many intervals there are.
func lineUp(times []float64, length float64) (fit, off, intervals float64) {
	n := float64(len(times))
	number := make([]float64, len(times))
	sumX, sumY := 0.0, 0.0
	for i, t := range times {
		if i > 0 {
			number[i] = number[i-1] + max(1, math.Round((t-times[i-1])/length))
		}
		sumX, sumY = sumX+number[i], sumY+t
	}
	product, square := 0.0, 0.0
	for i, t := range times {
		product += (number[i] - sumX/n) * (t - sumY/n)
		square += (number[i] - sumX/n) * (number[i] - sumX/n)
	}
	fit = product / square
	for i, t := range times {
		off = max(off, math.Abs(t-sumY/n-fit*(number[i]-sumX/n)))
	}
	return fit, off, number[len(number)-1]
}
