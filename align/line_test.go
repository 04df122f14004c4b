package align

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestToReference(t *testing.T) {
	const t0 = 1_775_000_000_000_000_000
	c := ClockFit{T0: t0, Offset: 1_734_500, DriftPPB: 12_000}
	for _, x := range []struct{ in, want int64 }{
		{t0, t0 - 1_734_500},
		{t0 + 1_000_000_000, t0 - 1_734_500 + 1_000_000_000 - 12_000},
		{t0 - 1_000_000_000, t0 - 1_734_500 - 1_000_000_000 + 12_000},
		{0, -1_734_500 + 21_300_000_000_000},
	} {
		if got := c.ToReference(x.in); got != x.want {
			t.Errorf("%d: %d, want %d", x.in, got, x.want)
		}
	}
}

// exact computes drift*(t-t0) to the nearest integer, away from zero.
func exact(t, t0, drift int64) *big.Int {
	p := new(big.Int).Sub(big.NewInt(t), big.NewInt(t0))
	p.Mul(p, big.NewInt(drift))
	half := big.NewInt(500_000_000)
	if p.Sign() < 0 {
		half.Neg(half)
	}
	return p.Quo(p.Add(p, half), big.NewInt(1_000_000_000))
}

func FuzzToReference(f *testing.F) {
	f.Add(int64(1_775_000_000_000_000_000), int64(77), int64(1_775_000_000_000_000_100), int64(12_345), int64(-50_000))
	f.Add(int64(math.MaxInt64), int64(1), int64(math.MinInt64), int64(math.MinInt64), int64(maxDriftPPB))
	f.Add(int64(-5), int64(10), int64(0), int64(3), int64(-maxDriftPPB))
	f.Fuzz(func(t *testing.T, at, dur, t0, offset, drift int64) {
		drift %= maxDriftPPB + 1
		dur = max(dur, -dur, 0) / 2
		at -= max(0, at/2) // room for dur
		want := exact(at, t0, drift)
		if got := driftOver(at, t0, drift); want.IsInt64() && want.Cmp(big.NewInt(got)) != 0 {
			t.Fatalf("drift over %d..%d at %d: %d, want %d", t0, at, drift, got, want)
		}
		c := ClockFit{T0: t0, Offset: offset, DriftPPB: drift}
		a, b := c.ToReference(at), c.ToReference(at+dur)
		if b < a {
			t.Fatalf("%+v: %d..%d becomes %d..%d", c, at, at+dur, a, b)
		}
		if a == math.MinInt64 || b == math.MaxInt64 || a == math.MaxInt64 || b == math.MinInt64 || math.Abs(float64(at)) > 1<<61 || math.Abs(float64(offset)) > 1<<60 {
			return // cut at the limits
		}
		change := new(big.Int).Abs(new(big.Int).Sub(big.NewInt(b-a), big.NewInt(dur)))
		most := new(big.Int).Add(new(big.Int).Abs(exact(dur, 0, drift)), big.NewInt(1))
		if change.Cmp(most) > 0 {
			t.Fatalf("%+v: %d ns become %d", c, dur, b-a)
		}
	})
}

func TestLines(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		l := line{t0: 1_775e15 + rng.Int64N(1e12), off: rng.Int64N(2e18) - 1e18, slope: (rng.Float64() - 0.5) * 1e-4}
		m := line{t0: rng.Int64N(1e15), off: rng.Int64N(1e12), slope: (rng.Float64() - 0.5) * 1e-4}
		x := l.t0 + rng.Int64N(1e12)
		m.t0 += l.apply(x)
		if d := l.inverse().apply(l.apply(x)) - x; max(d, -d) > 1 {
			t.Fatalf("%+v: there and back is off by %d", l, d)
		}
		if d := l.then(m).apply(x) - m.apply(l.apply(x)); max(d, -d) > 2 {
			t.Fatalf("%+v, %+v: off by %d", l, m, d)
		}
		if d := l.at(x).apply(x+1e9) - l.apply(x+1e9); max(d, -d) > 2 {
			t.Fatalf("%+v: off by %d", l, d)
		}
	}
}
