// Package counters draws numbers over time: those of logs and metrics ([Draw]), and others in pieces of time of a
// round length ([Pieces]).
package counters

import (
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/trace"
)

const (
	// MostPieces is the maximum number of pieces of time that counters are divided into, more than a screen
	// can show. With few requests, a piece has at least perRate of them on average, so that rates are not
	// noise; but there are at least fewPieces pieces.
	MostPieces = 500
	perRate    = 10
	fewPieces  = 20
)

// Pieces are the values of a counter, one for each piece of time; NaN means unchanged.
type Pieces struct {
	Extent inputs.Extent
	Width  trace.Time
	Values []float64
}

// NewPieces divides an extent into up to most pieces (plus one for the end) of a round length, all with the value first.
func NewPieces(e inputs.Extent, most int, first float64) Pieces {
	width := roundUp(max(1, (e.To-e.From)/trace.Time(most)))
	s := Pieces{Extent: e, Width: width, Values: make([]float64, (e.To-e.From)/width+1)}
	for i := range s.Values {
		s.Values[i] = first
	}
	return s
}

// RatePieces returns how many pieces the time of n requests is divided into.
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

// At returns the index of the piece that contains t.
func (s *Pieces) At(t trace.Time) int { return int((t - s.Extent.From) / s.Width) }

// Text formats the length of a piece.
func (s *Pieces) Text() string { return trace.FormatDuration(int64(s.Width)) }
