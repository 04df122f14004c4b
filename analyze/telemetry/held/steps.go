package held

import (
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/trace"
)

// steps says how much a rank decodes from one decode line to the next: the throughput in the line, times the time
// between their stamps, per running request. A line comes after a fixed number of steps, and its throughput covers
// the time since the line before by a clock of its own. So a pause does not change the amount, but it grows where
// lines are missing, or where somebody sets the clock of the stamps.
type steps struct {
	last   trace.Time // of the decode line before
	sum, n float64    // over all decode lines
}

// next returns the amount at a line; 0 if it is no decode line, or the first one.
func (s *steps) next(x *telemetry.LoggedLine) float64 {
	running := x.Values[telemetry.RunningOf]
	if !x.Has(telemetry.RateOf) || !(running >= 1) || x.At == s.last {
		return 0
	}
	before := s.last
	if s.last = x.At; before == 0 {
		return 0
	}
	amount := x.Values[telemetry.RateOf] * float64(x.At-before) / 1e9 / running
	s.sum, s.n = s.sum+amount, s.n+1
	return amount
}

// goesOn reports whether a rank decodes many times as much between two lines as between others, so that it did not
// stand still there.
func (s *steps) goesOn(amount float64) bool {
	return s.n > fewTimes && amount*(s.n-1) > manyTimes*(s.sum-amount)
}
