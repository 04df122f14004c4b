package overtime

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// A kernel of a collective waits until all ranks have arrived, and then moves data. The rank that
// arrives last waits least, so its kernel shows how long the transfer takes. Where all ranks launch
// equally many collectives of a name, their nth kernels belong to the same collective.

// TransferSubkind is the subkind of findings about transfers that take longer in the same place of a program.
const TransferSubkind = "time of transfers in the same place"

var transferMetric = &observed{pace: "transfers of collectives", metric: &metric.Metric{Long: TransferSubkind, Unit: table.Number, Better: metric.Less}}

// transferPace returns since when transfers of collectives take longer; nil if they do not, or if kernels that compute take longer,
// too: then there is more to do, or the clocks are lower. It overwrites the times of the first device's communication kernels.
func (c *Collector) transferPace(t *Timeline, g *gpu.GPUs, kernels [][]pacedKernel) *Change {
	if len(kernels) < 2 {
		return nil
	}
	names := c.setTransfers(kernels)
	w := c.pacedWork(kernels[0])
	moved := order.Only(w.all, func(p *paced) bool { return names[p.name] })
	tests := float64(len(moved))
	var lead slowing
	for _, p := range moved {
		if s, ok := p.slower(alpha / tests); ok && len(p.kernels) >= fewest && s.lost > lead.lost {
			lead = s
		}
	}
	if lead.of == nil {
		return nil
	}
	from, to := lead.of.kernels[0].start, lead.of.kernels[len(lead.of.kernels)-1].start
	factor, lost := paceOfAll(moved, from, &lead)
	work, _ := paceOfAll(w.equal, from, &lead)
	since, at := lead.split(from)
	// What else is launched may differ, as the transfers and what computes in front of them are compared in the same places.
	places := func(k *pacedKernel) uint64 { return k.place }
	if factor < minLonger || alikeBy(lead.of.kernels, since, at, lead.until, places) < sameWork || work-1 > (factor-1)/2 {
		return nil
	}
	x := &Change{What: TransferSubkind, metric: transferMetric, Time: lead.at, Until: lead.until, First: lead.first, Last: lead.last, Before: 1, After: factor, P: min(1, lead.p*tests),
		known: true, gradual: lead.ramp != nil, lasts: float64(cmp.Or(lead.until, to)-lead.at) >= minLasting*float64(to-from)}
	for i := range t.Devices {
		x.Where, x.ranks = append(x.Where, t.Name(&t.Devices[i])), append(x.ranks, t.Devices[i].RankIndex)
	}
	x.lost = lost * float64(len(t.Devices)) * distribution.Fraction(exposed(g), g.Total(func(d *gpu.GPU) int64 { return d.Time(kernelname.ClassCommunication) }))
	x.Load = fmt.Sprintf("most of all `%s`, without what ranks wait for each other; what they compute takes as long as before", c.brief(lead.of.name))
	x.kernels = []string{fmt.Sprintf("%s: %s%s times as long, %s in all on each rank", c.brief(lead.of.name), x.upTo(), words.ThreeDigits(lead.factor), nearly(lead.lost))}
	return x
}

// exposed returns how long devices communicate without computing, ns.
func exposed(g *gpu.GPUs) int64 {
	return g.Total(func(d *gpu.GPU) int64 { return d.Exposed(kernelname.ClassCommunication) })
}

// paceOfAll returns how long kernels take since lead became slower, as a multiple of before, and the time that this costs, ns.
func paceOfAll(list []*paced, first trace.Time, lead *slowing) (factor, lost float64) {
	took, times := 0.0, 0.0
	for _, p := range list {
		if s := p.sinceOf(lead, first); s.factor > 0 {
			took, lost, times = took+float64(s.took), lost+s.lost, times+s.factor*float64(s.took)
		}
	}
	if lead.ramp != nil {
		return times / max(1, took), lost
	}
	return took / max(1, took-lost), lost
}

// setTransfers sets the times of the first device's communication kernels to those of the transfers:
// the shortest of all devices. It returns the names that every device launches equally often.
func (c *Collector) setTransfers(kernels [][]pacedKernel) map[trace.Sym]bool {
	least := map[trace.Sym][]int64{} // by name, of each collective
	kinds := map[trace.Sym]kernelname.Kind{}
	for i := range kernels {
		seen := map[trace.Sym]int{}
		for _, k := range kernels[i] {
			if order.Memo(kinds, k.name, func() kernelname.Kind { return kernelname.KindOf(c.set.Syms.Name(k.name)) }) != kernelname.KindCommunication {
				continue
			}
			n := seen[k.name]
			if seen[k.name]++; i == 0 {
				least[k.name] = append(least[k.name], k.took)
			} else if n < len(least[k.name]) {
				least[k.name][n] = min(least[k.name][n], k.took)
			}
		}
		maps.DeleteFunc(least, func(name trace.Sym, list []int64) bool { return seen[name] != len(list) })
	}
	seen, names := map[trace.Sym]int{}, map[trace.Sym]bool{}
	for i := range kernels[0] {
		if k := &kernels[0][i]; least[k.name] != nil {
			k.took, names[k.name] = least[k.name][seen[k.name]], true
			seen[k.name]++
		}
	}
	return names
}

// sameLaunches returns which part of the launches is of the same kernels in two times, by how many there are of each: from at until some time,
// or to the end, and otherwise since the first.
func sameLaunches(kernels []pacedKernel, from, at, until trace.Time) float64 {
	return alikeBy(kernels, from, at, until, func(k *pacedKernel) uint64 { return uint64(k.name) })
}

// alikeBy is [sameLaunches] for kernels that are the same if their keys are.
func alikeBy(kernels []pacedKernel, from, at, until trace.Time, key func(*pacedKernel) uint64) (part float64) {
	counts, n := map[uint64]*[2]float64{}, [2]float64{}
	for i := range kernels {
		if k := &kernels[i]; k.start >= from {
			half := 0
			if k.start >= at && (until == 0 || k.start < until) {
				half = 1
			}
			order.Memo(counts, key(k), func() *[2]float64 { return new([2]float64) })[half]++
			n[half]++
		}
	}
	for _, c := range counts {
		part += min(c[0]/max(1, n[0]), c[1]/max(1, n[1]))
	}
	return part
}
