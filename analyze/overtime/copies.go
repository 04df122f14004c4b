package overtime

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// CopySubkind is the subkind of findings about copies that take longer for the same number of bytes.
const CopySubkind = "time of copies of the same size"

var copyMetric = &observed{pace: "copies", metric: &metric.Metric{Long: CopySubkind, Unit: table.Number, Better: metric.Less}}

// A copySize identifies copies that should take equally long: the same operation, kinds of memory, and number of bytes.
type copySize struct {
	name  trace.Sym
	kind  profile.CopyKind
	bytes int64
}

// A sizedCopy is one copy.
type sizedCopy struct {
	copySize
	start trace.Time // clipped to the window, on the reference clock
	took  int64      // ns
}

// A copySum is the number of copies of a size, and how long they took in total, ns, before and after some point.
type copySum struct{ n, took [2]int64 }

// copyPaces returns since when copies take longer, for devices that spend much of their time on copies that nothing hides.
func (c *Collector) copyPaces(t *Timeline, g *gpu.GPUs) (found []Change) {
	exposed, copies := map[deviceKey]float64{}, map[deviceKey][]sizedCopy{}
	for i := range g.GPUs {
		d := &g.GPUs[i]
		if of := d.Exposed(kernelname.ClassMemory); float64(of) >= minLost*float64(d.Length()) {
			exposed[deviceKey{d.RankIndex, d.Device}] = distribution.Fraction(of, d.Time(kernelname.ClassMemory))
		}
	}
	if len(exposed) == 0 {
		return nil
	}
	for _, st := range c.set.Streams {
		st.Copies(func(x *profile.Copy) bool {
			from, to := c.place(x.Rank, x.Start, x.End)
			if key := (deviceKey{x.Rank, x.Device}); from < to && x.Bytes > 0 && exposed[key] > 0 {
				copies[key] = append(copies[key], sizedCopy{copySize{x.Name, x.Kind, x.Bytes}, from, int64(to - from)})
			}
			return true
		})
	}
	for i := range t.Devices {
		d := &t.Devices[i]
		key := deviceKey{d.RankIndex, d.Device}
		if x := c.copyPaceOf(t, d, copies[key]); x != nil {
			x.lost *= exposed[key]
			found = append(found, *x)
		}
	}
	return found
}

// copyPaceOf returns since when the copies of a device take longer; nil if they do not. Each operation is searched separately.
func (c *Collector) copyPaceOf(t *Timeline, d *Device, copies []sizedCopy) *Change {
	slices.SortStableFunc(copies, func(a, b sizedCopy) int { return cmp.Compare(a.start, b.start) })
	sums, byName := map[copySize]*copySum{}, map[trace.Sym]*paced{}
	for i := range copies {
		s := order.Memo(sums, copies[i].copySize, func() *copySum { return &copySum{} })
		s.n[0], s.took[0] = s.n[0]+1, s.took[0]+copies[i].took
	}
	for i := range copies {
		x := &copies[i]
		p := order.Memo(byName, x.name, func() *paced { return &paced{name: x.name} })
		s := sums[x.copySize]
		if s.n[0] > 1 { // a size that occurs once has nothing to compare with
			p.kernels = append(p.kernels, pacedKernel{start: x.start, took: x.took, usual: float64(s.took[0]) / float64(s.n[0])})
		}
	}
	var lead slowing
	tests := float64(len(byName) * len(t.Devices))
	for _, p := range slices.SortedFunc(maps.Values(byName), func(a, b *paced) int { return strings.Compare(c.set.Syms.Name(a.name), c.set.Syms.Name(b.name)) }) {
		if len(p.kernels) < fewest {
			continue
		}
		if s, ok := p.slower(alpha / tests); ok && s.lost > lead.lost {
			lead = s
		}
	}
	if lead.of == nil {
		return nil
	}
	first, last := lead.of.kernels[0].start, lead.of.kernels[len(lead.of.kernels)-1].start
	x := &Change{What: CopySubkind, Where: []string{t.Name(d)}, ranks: []int32{d.RankIndex}, metric: copyMetric, Time: lead.at, First: lead.first, Last: lead.last,
		Before: 1, After: lead.factor, P: min(1, lead.p*tests), lost: lead.lost, known: true, gradual: lead.ramp != nil, lasts: float64(last-lead.at) >= minLasting*float64(last-first)}
	x.Load = c.copyRates(copies, &lead)
	return x
}

// copyRates says how fast copies of the size that lost most were, before and since.
func (c *Collector) copyRates(copies []sizedCopy, lead *slowing) string {
	sums := map[copySize]*copySum{}
	for i := range copies {
		if x := &copies[i]; x.name == lead.of.name {
			half := 0
			if x.start >= lead.at {
				half = 1
			}
			s := order.Memo(sums, x.copySize, func() *copySum { return &copySum{} })
			s.n[half], s.took[half] = s.n[half]+1, s.took[half]+x.took
		}
	}
	// lost is how much longer the copies since then took than they would have at the pace before, ns.
	lost := func(s *copySum) float64 {
		if s.n[0] == 0 || s.n[1] == 0 {
			return 0
		}
		return float64(s.took[1]) - float64(s.took[0])*float64(s.n[1])/float64(s.n[0])
	}
	most := slices.MinFunc(slices.Collect(maps.Keys(sums)), func(a, b copySize) int {
		return cmp.Or(cmp.Compare(lost(sums[b]), lost(sums[a])), cmp.Compare(b.bytes, a.bytes), strings.Compare(a.kind.String(), b.kind.String()))
	})
	s := sums[most]
	rate := func(half int) string {
		return words.Size(int64(float64(most.bytes)*float64(s.n[half])*1e9/float64(max(1, s.took[half])))) + "/s"
	}
	return fmt.Sprintf("%s of %s ran at %s before, and at %s since", c.set.Syms.Name(most.name), words.Size(most.bytes), rate(0), rate(1))
}
