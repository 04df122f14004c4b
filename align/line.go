package align

import (
	"math"
	"math/bits"
)

const ppb = 1e-9

// maxDriftPPB is the steepest line that is believed from anybody: 10 %. It keeps
// every line strictly increasing.
const maxDriftPPB = 100_000_000

// A line maps the times of one clock to another one's:
//
//	other = t - off - slope*(t-t0)
//
// Offsets are integers, as float64 has steps of 256 ns at today's Unix times.
type line struct {
	t0, off int64
	slope   float64
}

func (l line) apply(t int64) int64 {
	return t - l.off - int64(math.Round(l.slope*float64(t-l.t0)))
}

// inverse returns the line back. From u = t-o-m(t-t0) follows, with u0 = t0-o the
// image of t0, t = u + o + m/(1-m) (u-u0).
func (l line) inverse() line {
	return line{t0: l.t0 - l.off, off: -l.off, slope: -l.slope / (1 - l.slope)}
}

// then returns the line that applies l and then m. It is stated for an instant that
// its drift is about: drifts are rounded in the end, which must not be far from
// where the offset is right.
func (l line) then(m line) line {
	if l.slope == 0 {
		l.t0 = m.t0 + l.off
	}
	return line{
		t0:    l.t0,
		off:   l.t0 - m.apply(l.t0-l.off),
		slope: l.slope + m.slope - l.slope*m.slope,
	}
}

// at returns the same line with the offset stated for another instant.
func (l line) at(t int64) line {
	return line{t0: t, off: t - l.apply(t), slope: l.slope}
}

// driftOver returns drift*(t-t0), rounded to the nearest ns, for any two instants
// and |drift| <= 1e9 ppb. It never decreases, or never increases, with t.
func driftOver(t, t0, driftPPB int64) int64 {
	negative := (t < t0) != (driftPPB < 0)
	span := uint64(t) - uint64(t0) // right even where t-t0 overflows
	if t < t0 {
		span = -span
	}
	rate := uint64(driftPPB)
	if driftPPB < 0 {
		rate = -rate
	}
	hi, lo := bits.Mul64(span, min(rate, 1_000_000_000))
	lo, carry := bits.Add64(lo, 500_000_000, 0)
	hi += carry
	quotient := span // hi is too large for Div64 only at the full rate of 1e9
	if hi < 1_000_000_000 {
		quotient, _ = bits.Div64(hi, lo, 1_000_000_000)
	}
	quotient = min(quotient, math.MaxInt64)
	if negative {
		return -int64(quotient)
	}
	return int64(quotient)
}

// sub returns a-b, at the limits of int64 the limit.
func sub(a, b int64) int64 {
	switch d := a - b; {
	case b > 0 && d > a:
		return math.MinInt64
	case b < 0 && d < a:
		return math.MaxInt64
	default:
		return d
	}
}

// add returns a+b, at the limits of int64 the limit.
func add(a, b int64) int64 {
	switch s := a + b; {
	case b > 0 && s < a:
		return math.MaxInt64
	case b < 0 && s > a:
		return math.MinInt64
	default:
		return s
	}
}
