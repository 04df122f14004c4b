package diff

import (
	"slices"

	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/profile"
)

// addBatch adds a decode step to those with the same number of requests.
func (d *Collected) addBatch(s *diffStep, per perStep, piece, pieces int) {
	if s.kind.StepName.Kind != profile.StepDecode || s.kind.StepName.Batch < 0 {
		return
	}
	if d.batches[per] == nil {
		d.batches[per] = map[int32][]significance.Piece{}
	}
	of := d.batches[per][s.kind.StepName.Batch]
	if of == nil {
		of = make([]significance.Piece, pieces)
		d.batches[per][s.kind.StepName.Batch] = of
	}
	of[piece].Sum += float64(s.dur)
	of[piece].Of++
}

// gaugeDecodeSteps gauges how long a decode step takes, like for like: each step after is
// compared with what a step with as many requests took before. The load of two captures is
// never quite the same, and moves the mean of all steps by more than a regression does. It is
// nil where there are no batch sizes that both sides have.
func (d *Diff) gaugeDecodeSteps() *Gauge {
	sides := [2]map[int32][]significance.Piece{d.locate.sides[0].batches[d.per], d.locate.sides[1].batches[d.per]}
	usual := map[int32]float64{} // ns before, by batch size
	all := significance.Piece{}
	for batch, pieces := range sides[0] {
		if sides[1][batch] != nil {
			sum := sumOf(pieces)
			usual[batch] = sum.Sum / sum.Of
			all.Sum, all.Of = all.Sum+sum.Sum, all.Of+sum.Of
		}
	}
	if len(usual) == 0 || all.Sum == 0 {
		return nil
	}
	mean := all.Sum / all.Of
	g := &Gauge{Time: true, counted: "decode step", perPiece: 1}
	for side, batches := range sides {
		pieces, n := d.standardize(batches, usual, mean)
		g.samples[side], g.n[side] = significance.Sample{Quantity: significance.Mean(pieces), Pieces: pieces}, n
		g.pieces[side] = len(pieces)
	}
	captures := d.locate.captures()
	if captures {
		g.counted, g.n = "capture", [2]int64{int64(d.locate.sides[0].captures), int64(d.locate.sides[1].captures)}
	}
	g.how = howToCompare(g.samples[0].Pieces, g.samples[1].Pieces, captures)
	g.Before, g.After = g.samples[0].Quantity.Value, g.samples[1].Quantity.Value
	g.Change = g.how.Compare(g.samples[0], g.samples[1])
	return g
}

// standardize counts every step as the part of a mean step that one of its batch size usually
// takes, and returns how many steps that are.
func (d *Diff) standardize(batches map[int32][]significance.Piece, usual map[int32]float64, mean float64) (pieces []significance.Piece, n int64) {
	var sizes []int32
	for batch := range usual {
		sizes = append(sizes, batch)
	}
	slices.Sort(sizes) // sums of floats depend on the order
	for _, batch := range sizes {
		of := batches[batch]
		if pieces == nil {
			pieces = make([]significance.Piece, len(of))
		}
		for i, p := range of {
			pieces[i].Sum += p.Sum
			pieces[i].Of += p.Of * usual[batch] / mean
			n += int64(p.Of)
		}
	}
	return pieces, n
}

// sumOf adds up pieces.
func sumOf(pieces []significance.Piece) (sum significance.Piece) {
	for _, p := range pieces {
		sum.Sum, sum.Of = sum.Sum+p.Sum, sum.Of+p.Of
	}
	return sum
}
