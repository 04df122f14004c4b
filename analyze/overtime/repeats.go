package overtime

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/trace"
)

// RepeatSubkind is the subkind of findings about kernels that are launched more often in a row in the same place.
const RepeatSubkind = "launches of kernels in the same place"

var repeatMetric = &observed{pace: "kernels", metric: &metric.Metric{Long: RepeatSubkind, Unit: table.Number, Better: metric.Less}}

// perLaunch is what each launch of a run adds to its number, which is in place of a time.
const perLaunch = 1000

// runsOf returns launches of the same kernel that follow each other in a stream as one, with their number in place of the time.
func runsOf(kernels []pacedKernel) (runs []pacedKernel) {
	last := map[uint32]int{} // by stream
	for i := range kernels {
		k := &kernels[i]
		if at, ok := last[k.stream]; ok && runs[at].name == k.name {
			runs[at].took += perLaunch
			continue
		}
		last[k.stream] = len(runs)
		runs = append(runs, pacedKernel{start: k.start, took: perLaunch, name: k.name, stream: k.stream})
	}
	return runs
}

// repeats returns since when devices with too few steps launch the same kernels more often in a row.
func (c *Collector) repeats(t *Timeline, kernels [][]pacedKernel) (found []Change) {
	changes := make([]*Change, len(kernels))
	parallel.Each(len(changes), func(i int) {
		if d := &t.Devices[i]; len(d.rounds) < fewestRounds {
			changes[i] = c.repeatsOf(t, d, kernels[i])
		}
	})
	for _, x := range changes {
		if x != nil {
			found = append(found, *x)
		}
	}
	return found
}

// A repeated is the kernels of one name that are launched more often in a row since some time.
type repeated struct {
	slowing       // of runs: factor is by how many times as many launches they have
	took    int64 // by these kernels since then, ns
	lost    float64
	each    float64 // time of one since then, as a multiple of that before
}

// timed adds how long the kernels take, and what their runs take beyond those before.
func (r *repeated) timed(kernels []pacedKernel) {
	var took, n, runs [2]float64 // before or behind, and since then
	half := func(at trace.Time) int {
		if at >= r.at && (r.until == 0 || at < r.until) {
			return 1
		}
		return 0
	}
	for i := range kernels {
		if k := &kernels[i]; k.name == r.of.name {
			h := half(k.start)
			took[h], n[h] = took[h]+float64(k.took), n[h]+1
		}
	}
	for i := range r.of.kernels {
		runs[half(r.of.kernels[i].start)]++
	}
	r.took, r.each = int64(took[1]), (took[1]/max(1, n[1]))/(max(1, took[0])/max(1, n[0]))
	r.lost = max(0, min(took[1]-took[0]/max(1, runs[0])*runs[1], took[1]*(1-1/r.factor)))
}

// repeatsOf returns since when a device launches kernels more often in a row; nil if it does not.
func (c *Collector) repeatsOf(t *Timeline, d *Device, kernels []pacedKernel) *Change {
	if len(kernels) == 0 {
		return nil
	}
	w, first := c.pacedWork(runsOf(kernels)), kernels[0].start
	varied := order.Only(w.all, func(p *paced) bool {
		return len(p.kernels) >= fewest && slices.ContainsFunc(p.kernels, func(k pacedKernel) bool { return math.Abs(float64(k.took)-k.usual) >= perLaunch/2 })
	})
	tests := float64(len(varied) * len(t.Devices))
	var lead repeated
	for _, p := range varied {
		if s, ok := p.slower(alpha / tests); ok && s.ramp == nil {
			r := repeated{slowing: s}
			if r.timed(kernels); r.lost > lead.lost {
				lead = r
			}
		}
	}
	if lead.of == nil || sameLaunches(w.kernels, first, lead.at, lead.until) < sameWork {
		return nil
	}
	x := &Change{What: RepeatSubkind, Where: []string{t.Name(d)}, ranks: []int32{d.RankIndex}, metric: repeatMetric, Time: lead.at, Until: lead.until,
		First: lead.first, Last: lead.last, Before: 1, P: min(1, lead.p*tests), known: true}
	last := kernels[len(kernels)-1].start
	x.lasts = float64(cmp.Or(lead.until, last)-lead.at) >= minLasting*float64(last-first)
	c.repeatedBy(x, w, kernels, &lead)
	if d.Stepped {
		why := x.Load
		t.compareWork(x, t.buckets(first, lead.at), t.buckets(lead.at, cmp.Or(lead.until, last)))
		x.known, x.Load = true, words.JoinNonEmpty("; ", why, x.Load)
	}
	return x
}

// repeatedBy adds which kernels are launched more often since a change, and what that costs.
func (c *Collector) repeatedBy(x *Change, w *pacedWork, kernels []pacedKernel, lead *repeated) {
	var list []repeated
	all, more, once, each := int64(0), int64(0), 0.0, 0.0
	for _, p := range w.all {
		r := repeated{slowing: p.since(kernels[0].start, lead.at, lead.until)}
		if r.factor == 0 {
			continue
		}
		r.timed(kernels)
		if all += r.took; r.factor >= minLonger {
			list = append(list, r)
			more, once, each = more+r.took, once+float64(r.took)/r.factor, each+r.each*float64(r.took)
			x.lost += r.lost
		}
	}
	slices.SortStableFunc(list, func(a, b repeated) int { return cmp.Compare(b.lost, a.lost) })
	for _, r := range list[:min(3, len(list))] {
		x.kernels = append(x.kernels, fmt.Sprintf("%s: %s times as many launches, %s in all", c.brief(r.of.name), words.ThreeDigits(r.factor), nearly(r.lost)))
	}
	x.After = math.Round(10*float64(more)/max(1, once)) / 10 // a piece may begin just before or after the change
	if x.Load = "most of all `" + c.brief(lead.of.name) + "`, while others are launched as often as before"; float64(more) >= nearlyAll*float64(all) {
		x.Load = "nearly all of them"
	}
	const same = 0.1
	if each /= max(1, float64(more)); math.Abs(each-1) <= same {
		x.Load += ", and each takes as long as before"
	} else {
		x.Load += fmt.Sprintf(", and each takes %s times as long", words.ThreeDigits(each))
	}
}
