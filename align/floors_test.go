package align

import (
	"math"
	"math/rand/v2"
	"testing"
)

// crossingLimits returns limits from n messages each way, on a clock that is ahead by offset. The delay of
// each message is a floor (up[0], down[0]) plus an exponential part with a mean of up[1] or down[1], ns.
func crossingLimits(rng *rand.Rand, n int, offset float64, up, down [2]float64) (lo, hi []limit) {
	for k := range n {
		t := int64(k) * 10_000_000
		hi = append(hi, limit{t, int64(offset + up[0] + rng.ExpFloat64()*up[1])})
		lo = append(lo, limit{t + 5_000_000, int64(offset - down[0] - rng.ExpFloat64()*down[1])})
	}
	return lo, hi
}

// Where one direction is much slower, the middle between the limits is a guess. The
// line through the floors is nearer to the truth, and its error still covers the truth.
func TestFloors(t *testing.T) {
	const offset = -500_000
	for _, c := range []struct {
		name     string
		up, down [2]float64
		n        int
		within   float64 // ns, root mean square error
	}{
		{"alike", [2]float64{150_000, 300_000}, [2]float64{200_000, 300_000}, 300, 50_000},
		{"one way is slow, and uneven", [2]float64{200_000, 100_000}, [2]float64{300_000, 60_000_000}, 40, 900_000},
		{"the other way", [2]float64{300_000, 60_000_000}, [2]float64{200_000, 100_000}, 40, 900_000},
	} {
		const runs = 200
		squares, middles, covered := 0.0, 0.0, 0
		for seed := range uint64(runs) {
			lo, hi := crossingLimits(rand.New(rand.NewPCG(seed, 3)), c.n, offset, c.up, c.down)
			fit, ok := lineBetween(lo, hi)
			if !ok {
				t.Fatalf("%s: no line", c.name)
			}
			low, high := math.Inf(-1), math.Inf(1)
			for i := range lo {
				low, high = max(low, float64(lo[i].V)), min(high, float64(hi[i].V))
			}
			e := float64(fit.Off) - offset
			squares, middles = squares+e*e, middles+((low+high)/2-offset)*((low+high)/2-offset)
			if math.Abs(e) <= fit.Err {
				covered++
			}
		}
		got, middle := math.Sqrt(squares/runs), math.Sqrt(middles/runs)
		t.Logf("%s: off by %.0f us, the middle by %.0f us", c.name, got/1000, middle/1000)
		if got > c.within || got > 1.1*middle {
			t.Errorf("%s: off by %.0f us, the middle by %.0f us", c.name, got/1000, middle/1000)
		}
		if covered < runs*95/100 {
			t.Errorf("%s: the error covers the truth in %d of %d", c.name, covered, runs)
		}
	}
}
