// Package counters draws numbers over time: those of logs and metrics ([Draw]), and any others in pieces of a round
// length ([Pieces]).
package counters

import (
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/trace"
)

const (
	// MostPieces is into how many pieces of time counters are divided at most:
	// more than a screen tells apart. Of a few requests, a piece has perRate or more on
	// average, so that rates are no noise; but there are fewPieces at least.
	MostPieces = 500
	perRate    = 10
	fewPieces  = 20
)

// Pieces are the values of a counter, one for each piece of time; NaN keeps the one
// before.
type Pieces struct {
	Extent inputs.Extent
	Width  trace.Time
	Values []float64
}

// NewPieces divides an extent into so many pieces at most, of a round length.
func NewPieces(e inputs.Extent, most int, first float64) Pieces {
	width := roundUp(max(1, (e.To-e.From)/trace.Time(most)))
	s := Pieces{Extent: e, Width: width, Values: make([]float64, (e.To-e.From)/width+1)}
	for i := range s.Values {
		s.Values[i] = first
	}
	return s
}

// RatePieces is into how many pieces the time of n requests is divided.
func RatePieces(n int) int { return min(max(n/perRate, fewPieces), MostPieces) }

// roundUp returns the next 1, 2 or 5 times a power of ten.
func roundUp(t trace.Time) trace.Time {
	for unit := trace.Time(1); ; unit *= 10 {
		for _, n := range [...]trace.Time{1, 2, 5} {
			if n*unit >= t {
				return n * unit
			}
		}
	}
}

// At returns the piece that a time is in.
func (s *Pieces) At(t trace.Time) int { return int((t - s.Extent.From) / s.Width) }

// Text says how long a piece is.
func (s *Pieces) Text() string { return trace.FormatDuration(int64(s.Width)) }
