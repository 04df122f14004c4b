package significance

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// draw makes pieces with means around level, whose neighbors have the correlation rho.
func draw(rng *rand.Rand, n int, level, spread, rho float64) []Piece {
	pieces := make([]Piece, n)
	left := rng.NormFloat64()
	for i := range pieces {
		left = rho*left + math.Sqrt(1-rho*rho)*rng.NormFloat64()
		of := 10 + float64(rng.IntN(10))
		pieces[i] = Piece{Sum: of * level * math.Exp(spread*left), Of: of}
	}
	return pieces
}

// Equal distributions are called different as often as P says, with and without correlated
// neighbors, and intervals contain the truth as often as they promise.
func TestErrorsAreAsFrequentAsPromised(t *testing.T) {
	for _, c := range []struct {
		name        string
		n           int
		spread, rho float64
		neighbors   Neighbors
		most        float64 // share of tests at the 5% level
	}{
		{"independent", 20, 0.3, 0, Apart, 0.06},
		{"few pieces", 6, 0.3, 0, Apart, 0.07},
		{"very few pieces", 3, 0.3, 0, Apart, 0.07},
		{"skewed", 20, 1, 0, Apart, 0.06},
		{"neighbors alike", 20, 0.3, 0.4, Apart, 0.13},       // 20% without a correction
		{"neighbors in a queue", 20, 0.3, 0.4, Queued, 0.08}, // the same
	} {
		rng := rand.New(rand.NewPCG(1, 2))
		const tries, ratio = 1500, 1.3
		wrong, outside := 0, 0
		for range tries {
			same := compare(c.neighbors.Mean(draw(rng, c.n, 1, c.spread, c.rho)), c.neighbors.Mean(draw(rng, c.n, 1, c.spread, c.rho)))
			if same.P <= 0.05 {
				wrong++
			}
			more := compare(c.neighbors.Mean(draw(rng, c.n, 1, c.spread, c.rho)), c.neighbors.Mean(draw(rng, c.n, ratio, c.spread, c.rho)))
			if ratio < more.Low || ratio > more.High {
				outside++
			}
		}
		if share := float64(wrong) / tries; share > c.most || share < 0.01 {
			t.Errorf("%s: %.1f %% are called different", c.name, 100*share)
		}
		if share := float64(outside) / tries; share > c.most+0.01 {
			t.Errorf("%s: %.1f %% of the intervals miss the truth", c.name, 100*share)
		}
	}
}

// P and the interval agree, and the order of the captures does not matter.
func TestIntervalAgreesWithP(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	different := 0
	for range 500 {
		a, b := Apart.Mean(draw(rng, 12, 1, 0.4, 0)), Apart.Mean(draw(rng, 9, 1.4, 0.6, 0))
		c, back := compare(a, b), compare(b, a)
		if outside := c.Low > 1 || c.High < 1; outside != (c.P < 0.05) || c.Low > c.Ratio || c.High < c.Ratio {
			t.Fatalf("%+v", c)
		}
		if math.Abs(c.P-back.P) > 1e-9 || math.Abs(c.Ratio*back.Ratio-1) > 1e-9 {
			t.Fatalf("%+v, and in the other direction %+v", c, back)
		}
		if c.P < 0.05 {
			different++
		}
	}
	if different < 50 || different > 450 {
		t.Errorf("%d of 500 differ", different)
	}
}

// If pieces scatter little, P is that of Welch's t-test: t = 2.6946 with 11.000 degrees of freedom,
// twice the integral of Student's density beyond t.
func TestMeanIsWelchs(t *testing.T) {
	a := []float64{1001, 999, 1003, 998, 1002, 997}
	b := []float64{1006, 1001, 1005, 1000, 1007, 1002, 1006}
	pieces := func(values []float64) []Piece {
		var out []Piece
		for _, v := range values {
			out = append(out, Piece{v, 1})
		}
		return out
	}
	// Neighbors are uncorrelated, so the correlation time is 1.
	c := compare(Apart.Mean(pieces(a)), Apart.Mean(pieces(b)))
	const want = 0.02086
	if math.Abs(c.P-want) > 0.0002 {
		t.Errorf("P is %.5f, want %.5f", c.P, want)
	}
}

// For independent values, the interval of the median is that of order statistics: for 100 values,
// the 40th and the 61st (Conover, Practical Nonparametric Statistics, section 3.2).
func TestMedianIsOfOrderStatistics(t *testing.T) {
	pieces := make([]Piece, 100)
	for i := range pieces { // minimum scatter of independent values
		pieces[i] = Piece{Sum: float64(i % 2), Of: 1}
	}
	q := Apart.Quantile(0.5, pieces, 100, func(i int) float64 { return float64(i + 1) })
	if low, high := q.bounds(1.96); q.Value != 50 || low != 40 || high != 60 {
		t.Errorf("the median of 1 to 100 is %v, between %v and %v", q.Value, low, high)
	}
	if low, high := q.bounds(20); low != 0 || !math.IsInf(high, 1) {
		t.Errorf("no values bound it by %v and %v", low, high)
	}
}

// If the values of a piece move together, a quantile is less certain than the number of values suggests.
func TestQuantileOfClusters(t *testing.T) {
	width := func(together bool) float64 {
		var pieces []Piece
		for i := range 20 {
			p := Piece{Sum: 25, Of: 50}
			if together {
				p.Sum = float64(50 * (i % 2))
			}
			pieces = append(pieces, p)
		}
		q := Apart.Quantile(0.5, pieces, 1000, func(i int) float64 { return float64(i + 1) })
		low, high := q.bounds(1)
		return high - low
	}
	if alone, together := width(false), width(true); together < 5*alone {
		t.Errorf("the interval is %v wide, of values that move together %v", alone, together)
	}
}

// With too few pieces, there is no result and no failure.
func TestTooFewPieces(t *testing.T) {
	few := draw(rand.New(rand.NewPCG(1, 1)), Enough-1, 1, 0.1, 0)
	many := draw(rand.New(rand.NewPCG(1, 2)), 20, 5, 0.1, 0)
	for _, q := range []Quantity{Apart.Mean(few), Apart.Mean(nil), Apart.Mean(append(few, make([]Piece, 30)...)), {}, Apart.Quantile(0.5, nil, 0, nil)} {
		if c := compare(q, Apart.Mean(many)); !math.IsNaN(c.P) || !math.IsNaN(c.Low) {
			t.Errorf("%+v: %+v", q, c)
		}
	}
	if c := compare(Apart.Mean(few), Apart.Mean(many)); !(c.Ratio > 4) {
		t.Errorf("the ratio is not told: %+v", c)
	}
}

// Appeared counts, among all ways to distribute the seen pieces, those with all of them in one
// capture.
func TestAppearedCountsWays(t *testing.T) {
	const pieces, other = 5, 4
	for seen := 1; seen <= pieces; seen++ {
		ways, all := 0, 0
		for set := range 1 << (pieces + other) {
			n, inOther := 0, false
			for i := range pieces + other {
				if set>>i&1 == 1 {
					n++
					inOther = inOther || i >= pieces
				}
			}
			if n == seen {
				all++
				if !inOther {
					ways++
				}
			}
		}
		want := min(1, 2*float64(ways)/float64(all))
		if got := Appeared(seen, pieces, other); math.Abs(got-want) > 1e-12 {
			t.Errorf("%d seen: %v, want %v", seen, got, want)
		}
	}
}

func TestHolm(t *testing.T) {
	nan := math.NaN()
	got := Holm([]float64{0.04, 0.01, nan, 0.03, 0.5})
	want := []float64{0.09, 0.04, nan, 0.09, 0.5}
	if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) < 1e-12 }) {
		t.Errorf("%v, want %v", got, want)
	}
}
