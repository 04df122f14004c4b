package transfer

import (
	"math"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// surely is the error probability of a time at which transfers became slow.
const surely = 0.001

// A stretch is a run of transfers, [from, to), with the bounds of its beginning.
type stretch struct{ from, to, first, last int }

// slowStretch returns during which of the transfers all of them took longer for their sizes than before; it is empty if there is
// no such time. It lasts to the end, or until they took no longer than before.
func slowStretch(all []moved) (out stretch) {
	const least = 1.5
	ratios := order.EachRow(all, (*moved).ratio)
	times := func(from, to int) float64 { return order.Median(ratios[from:to]) }
	changes := changepoint.Levels(ratios, changepoint.Options{Alpha: surely, Keep: func(from, k, to int) bool {
		x, y := times(from, k), times(k, to)
		return max(x, y) >= least*min(x, y)
	}})
	if len(changes) == 0 {
		return out
	}
	usual := times(0, changes[0].At)
	for _, c := range changes {
		switch slow := times(c.At, c.To) >= least*usual; {
		case slow && out.to == 0:
			out = stretch{c.At, len(all), c.First, c.Last}
		case !slow && out.to == len(all):
			out.to = c.At
		}
	}
	if out.from < finding.FewCompared || out.to-out.from < finding.FewCompared {
		return stretch{}
	}
	return out
}

// findSlower reports whether transfers between all ranks took longer in a stretch, and by how much. It is more than a decode step:
// servers look only between two steps whether a transfer is through, so that longer steps seem to be longer transfers.
func (x *Transfers) findSlower(all []moved, in stretch) bool {
	if in.to <= in.from {
		return false
	}
	var ratios []float64
	by, sums := map[ranks][]float64{}, map[int]int64{}
	for i := in.from; i < in.to; i++ {
		m := &all[i]
		key := ranks{m.from, m.to}
		ratios, by[key] = append(ratios, m.ratio()), append(by[key], m.ratio())
		sums[m.request] = max(0, m.took-m.expects)
	}
	times := order.Median(ratios)
	for _, of := range by {
		if len(of) >= finding.FewDelayed && order.Median(of) < math.Sqrt(times) {
			return false
		}
	}
	took := func(list []moved) int64 { return median(list, func(m *moved) int64 { return m.took }) }
	before, after := took(all[:in.from]), took(all[in.from:in.to])
	if after-before < median(all[in.from:in.to], func(m *moved) int64 { return x.set.Requests[m.request].Metrics.TPOT }) {
		return false
	}
	x.Slower = &Slower{times, before, after, sums}
	x.Since, x.Earliest, x.Latest = all[in.from].at, all[max(0, in.first-1)].at, all[min(in.last, len(all)-1)].at
	if in.to < len(all) {
		x.Until = all[in.to].at
	}
	return true
}

// date finds since when, and until when, transfers are slow: the share of slow ones is far larger than at
// other times, or most are slow and none was before.
func (x *Transfers) date(all []moved) {
	slow := order.EachRow(all, x.isSlow)
	at := func(k int) trace.Time { return all[max(0, k)].at }
	since, until := most(changepoint.Shares(slow, changepoint.Options{Alpha: surely}), changepoint.Count(slow))
	if since != nil {
		x.Since, x.Earliest, x.Latest = at(since.At), at(since.First-1), at(since.Last)
		if until != nil {
			x.Until = at(until.At)
		}
	} else if first, last, ok := changepoint.Crowd(slow, finding.FewCompared); ok {
		x.Since, x.Earliest, x.Latest = at(first), at(first-1), at(first)
		if last+finding.FewCompared < len(slow) {
			x.Until = at(last + 1)
		}
	}
}

// most returns the changes that enclose most of what is counted. It maximizes, over runs of adjacent stretches, the
// sum of what exceeds half of the overall share. since is nil if the run starts at the beginning, and until if it
// lasts to the end.
func most(changes []changepoint.Change, count changepoint.Trues) (since, until *changepoint.Change) {
	if len(changes) == 0 {
		return nil, nil
	}
	n := changes[len(changes)-1].To
	half := count.Share(0, n) / 2
	sum, best, from := 0.0, 0.0, 0
	for i := range len(changes) + 1 {
		begin, end := 0, n
		if i > 0 {
			begin = changes[i-1].At
		}
		if i < len(changes) {
			end = changes[i].At
		}
		if sum <= 0 {
			sum, from = 0, i
		}
		if sum += (count.Share(begin, end) - half) * float64(end-begin); sum > best {
			best, since, until = sum, nil, nil
			if from > 0 {
				since = &changes[from-1]
			}
			if i < len(changes) {
				until = &changes[i]
			}
		}
	}
	return since, until
}
