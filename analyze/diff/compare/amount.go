package compare

import (
	"math"

	"github.com/sgtrace/sgtrace/internal/significance"
)

// A Load is something about two captures that explains why they are slow or fast, or says it of
// the whole: how many requests there are, and how long; how many tokens steps compute.
type Load struct {
	Name          string
	Before, After float64 // NaN is unknown
	Change        Change
	Follows       bool // from what is asked of servers, and what they take for it
}

// An Amount is one of them in one capture.
type Amount struct {
	Name   string
	Pieces []significance.Piece
}

// Sample is the mean of the pieces.
func (l *Amount) Sample() significance.Sample {
	return significance.Sample{Quantity: significance.Apart.Mean(l.Pieces), Pieces: l.Pieces}
}

// Amounts compares those of two captures, whose pieces may be a capture each.
func Amounts(before, after *Amount, captures bool) Load {
	b, a := before.Sample(), after.Sample()
	l := Load{Name: before.Name, Before: b.Quantity.Value, After: a.Quantity.Value}
	l.Change.Change = How(before.Pieces, after.Pieces, captures).Compare(b, a)
	if (l.Before == 0) != (l.After == 0) {
		l.Change.Change.P = Appeared(before.Pieces, after.Pieces)
	}
	return l
}

// How chooses the test for quantities that are made of such pieces.
func How(before, after []significance.Piece, captures bool) significance.How {
	switch {
	case captures:
		return significance.ByCapture
	case min(len(before), len(after)) < significance.Few:
		return significance.ByRanks
	}
	return significance.ByScatter
}

// Appeared tells how likely it is that only one of two captures has something, if both are
// alike; NaN if they are too short to tell.
func Appeared(before, after []significance.Piece) float64 {
	count := func(pieces []significance.Piece) (seen, all int) {
		for _, p := range pieces {
			if p.Of > 0 {
				all++
				if p.Sum > 0 {
					seen++
				}
			}
		}
		return seen, all
	}
	seenBefore, b := count(before)
	seenAfter, a := count(after)
	switch {
	case min(b, a) < significance.Enough:
		return math.NaN()
	case seenBefore == 0:
		return significance.Appeared(seenAfter, a, b)
	}
	return significance.Appeared(seenBefore, b, a)
}
