package compare

import (
	"math"

	"github.com/sgtrace/sgtrace/internal/significance"
)

// A Load is a number of two captures that explains why they are slow or fast, or describes them
// as a whole: how many requests there are, and how long they are; how many tokens steps compute.
type Load struct {
	Name          string
	Before, After float64 // NaN if unknown
	Change        Change
	Follows       bool // it follows from what is asked of servers, and from how long they take for it
}

// An Amount is a load of one capture, in pieces.
type Amount struct {
	Name   string
	Pieces []significance.Piece
}

// Sample returns the mean of the pieces, with the pieces themselves.
func (l *Amount) Sample() significance.Sample {
	return significance.Sample{Quantity: significance.Apart.Mean(l.Pieces), Pieces: l.Pieces}
}

// Amounts compares a load of two captures; captures reports whether each piece is a whole capture.
func Amounts(before, after *Amount, captures bool) Load {
	b, a := before.Sample(), after.Sample()
	l := Load{Name: before.Name, Before: b.Quantity.Value, After: a.Quantity.Value}
	l.Change.Change = ChooseTest(before.Pieces, after.Pieces, captures).Compare(b, a)
	if (l.Before == 0) != (l.After == 0) {
		l.Change.Change.P = Appeared(before.Pieces, after.Pieces)
	}
	return l
}

// ChooseTest chooses the test for quantities made of the given pieces.
func ChooseTest(before, after []significance.Piece, captures bool) significance.How {
	switch {
	case captures:
		return significance.ByCapture
	case min(len(before), len(after)) < significance.Few:
		return significance.ByRanks
	}
	return significance.ByScatter
}

// Appeared returns the probability that only one of two captures has something if both are alike; NaN if they are too short to tell.
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
