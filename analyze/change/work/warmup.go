package work

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A WarmUp is how much longer than later a rank took for its work when it began: it compiles kernels, captures graphs, or tunes.
type WarmUp struct {
	Until  trace.Time
	Factor float64
	Extra  map[int]int64 // ns, by request
}

// WarmUp returns how a rank that began at a time was slow at first; nil if it was not, or if it never settled.
func (p *Pace) WarmUp(from trace.Time) *WarmUp {
	const (
		block  = 4
		slow   = 1.25
		about  = 1.1
		surely = 0.001
	)
	k, _ := slices.BinarySearchFunc(p.Pieces, from, func(x Piece, t trace.Time) int { return int(x.From - t) })
	pieces := p.Pieces[k:]
	if len(pieces) < Fewest {
		return nil
	}
	ratios := order.EachRow(pieces, func(x *Piece) float64 { return x.Ratio })
	half := len(ratios) / 2
	middle := func(list []float64) float64 { return distribution.LowerMedian(slices.Clone(list)) }
	settled, n := middle(ratios[half:]), 0
	for n+block <= half && middle(ratios[n:n+block]) > about*settled {
		n += block
	}
	if n < 2*block || n+block > half {
		return nil
	}
	factor := distribution.Ratio(middle(ratios[:n]), settled)
	if chance, _ := changepoint.Compare(ratios[n:], ratios[:n]); factor < slow || chance > surely {
		return nil
	}
	w := &WarmUp{pieces[n].From, factor, map[int]int64{}}
	for i := range pieces[:n] {
		x := &pieces[i]
		w.Extra[x.Request] += max(0, int64(x.Units*x.NS*(1-settled/x.Ratio)))
	}
	return w
}
