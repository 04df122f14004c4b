package overtime

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// GapSubkind is the subkind of findings about devices that idle longer in front of the same kernels
// because their host launches these later.
const GapSubkind = "gaps in front of the same kernels"

var gapMetric = &observed{pace: "gaps in front of the same kernels", metric: &metric.Metric{Long: GapSubkind, Unit: table.Number, Better: metric.Less}}

// farLonger caps a gap at this multiple of the median gap in its place: pauses say nothing about the pace.
const farLonger = 5

// gapPaces returns since when devices idle longer in front of the same kernels. It looks at those with too few steps that idle much.
func (c *Collector) gapPaces(t *Timeline, g *gpu.GPUs, kernels [][]pacedKernel) (found []Change) {
	if kernels == nil {
		return nil
	}
	idle := map[deviceKey]bool{}
	for i := range g.GPUs {
		x := &g.GPUs[i]
		idle[deviceKey{x.RankIndex, x.Device}] = float64(x.IdleTime()) >= minLost*float64(x.Length())
	}
	var copied [][]pacedKernel
	for i := range kernels {
		d := &t.Devices[i]
		if len(d.rounds) >= fewestRounds || !idle[deviceKey{d.RankIndex, d.Device}] {
			continue
		}
		if copied == nil {
			copied = c.copiesOf(t)
		}
		if x := c.gapPaceOf(t, d, kernels[i], copied[i]); x != nil {
			found = append(found, *x)
		}
	}
	return found
}

// copiesOf returns the copies of each device.
func (c *Collector) copiesOf(t *Timeline) [][]pacedKernel {
	index := t.deviceIndex()
	all := make([][]pacedKernel, len(t.Devices))
	for _, st := range c.set.Streams {
		st.Copies(func(x *profile.Copy) bool {
			from, to := c.place(x.Rank, x.Start, x.End)
			if i, ok := index[deviceKey{x.Rank, x.Device}]; ok && from < to {
				all[i] = append(all[i], pacedKernel{start: from, took: int64(to - from)})
			}
			return true
		})
	}
	return all
}

// gapPaceOf returns since when a device idles longer in front of the same kernels; nil if it does not.
func (c *Collector) gapPaceOf(t *Timeline, d *Device, kernels, copied []pacedKernel) *Change {
	p := &paced{kernels: gapsOf(kernels, copied)}
	if len(p.kernels) < fewest {
		return nil
	}
	s, ok := p.slower(alpha / float64(len(t.Devices)))
	if !ok {
		return nil
	}
	first, last := p.kernels[0].start, cmp.Or(s.until, p.kernels[len(p.kernels)-1].start)
	if from, at := s.split(first); sameLaunches(kernels, from, at, s.until) < sameWork {
		return nil
	}
	return &Change{What: GapSubkind, Where: []string{t.Name(d)}, ranks: []int32{d.RankIndex}, metric: gapMetric, Time: s.at, Until: s.until, First: s.first, Last: s.last,
		Before: 1, After: s.factor, P: min(1, s.p*float64(len(t.Devices))), lost: s.lost, known: true, gradual: s.ramp != nil,
		lasts: float64(last-s.at) >= minLasting*float64(p.kernels[len(p.kernels)-1].start-first), Load: "the host launches them later, or has more to do in between"}
}

// gapsOf returns kernels with the idle gap in front of each, and its usual length, in place of their
// own time. The first kernel has no gap. Kernels that usually have none are left out.
func gapsOf(kernels, copied []pacedKernel) []pacedKernel {
	slices.SortStableFunc(copied, func(a, b pacedKernel) int { return cmp.Compare(a.start, b.start) })
	list, busy := slices.Clone(kernels), trace.Time(0)
	for i := range list {
		k := &list[i]
		for len(copied) > 0 && copied[0].start <= k.start {
			busy = max(busy, copied[0].start+trace.Time(copied[0].took))
			copied = copied[1:]
		}
		end := k.start + trace.Time(k.took)
		if k.took = max(0, int64(k.start-busy)); busy == 0 {
			k.took = 0
		}
		busy = max(busy, end)
	}
	byPlace := map[uint64][]int{}
	setPlaces(list)
	for i := range list {
		byPlace[list[i].place] = append(byPlace[list[i].place], i)
	}
	for _, at := range byPlace {
		slices.SortFunc(at, func(a, b int) int { return cmp.Compare(list[a].took, list[b].took) })
		most, sum := farLonger*list[at[len(at)/2]].took, int64(0)
		for _, i := range at {
			list[i].took = min(list[i].took, most)
			sum += list[i].took
		}
		for _, i := range at {
			list[i].usual = float64(sum) / float64(len(at))
		}
	}
	return order.Only(list, func(k pacedKernel) bool { return k.usual > 0 })
}
