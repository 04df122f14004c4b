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
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// Too few steps cannot be compared with each other, but their hundreds of kernels can. A kernel that follows the same two kernels is in the
// same place of the program, and takes equally long each time. So where steps are few or unknown, changes are looked for in how long the
// kernels of a name take, as a multiple of what each usually takes in its place. If some names take longer while others do not, they are
// slower, or have more to do themselves. If nearly all take longer, the clock is lower, or all have more to do: names do not show which.
const (
	maxPaced  = 500_000 // most kernels and copies that are searched: longer captures have enough steps
	mostPaces = 60      // most values in the series of a kernel name
	muchPaced = 0.01    // least share of a device's kernel time for a name to be searched
	sameWork  = 0.8     // least share of the launches that must be of the same kernels before and after
	nearlyAll = 0.9     // share of the compared kernel time that becomes longer if the clock falls
)

// PaceSubkind is the subkind of findings about kernels that take longer in the same place.
const PaceSubkind = "time of kernels in the same place"

var paceMetric = &observed{pace: "kernels", metric: &metric.Metric{Long: PaceSubkind, Unit: table.Number, Better: metric.Less}}

// A pacedKernel is one kernel of a device. Copies, gaps in front of kernels, and calls of operators on a thread are compared in the same way.
type pacedKernel struct {
	start  trace.Time // on the reference clock
	took   int64      // ns
	usual  float64    // mean time in its place, ns
	name   trace.Sym
	stream uint32
	grid   profile.Grid
	place  uint64 // a hash of its name, and of the names of the two kernels before it in its stream
}

// A paced is the kernels of one name on one device, in order of their starts.
type paced struct {
	name    trace.Sym
	total   int64 // ns
	kernels []pacedKernel
	beside  bool // usual is what they take on other devices at the same time
}

// A deviceKey identifies a device of a rank.
type deviceKey struct{ rank, device int32 }

// deviceIndex returns the index in Devices of each device.
func (t *Timeline) deviceIndex() map[deviceKey]int {
	index := map[deviceKey]int{}
	for i := range t.Devices {
		index[deviceKey{t.Devices[i].RankIndex, t.Devices[i].Device}] = i
	}
	return index
}

// kernelsOf returns the kernels of each device, in order; nil if there are too many, or no search needs them.
func (c *Collector) kernelsOf(t *Timeline, g *gpu.GPUs, rows int64) [][]pacedKernel {
	needed := len(t.Devices) > 1 && float64(exposed(g)) >= minLost*float64(g.Length())
	for i := range t.Devices {
		needed = needed || len(t.Devices[i].rounds) < fewestRounds
	}
	if !needed || rows > maxPaced {
		return nil
	}
	index := t.deviceIndex()
	all := make([][]pacedKernel, len(t.Devices))
	for _, st := range c.set.Streams {
		st.Kernels(func(k *profile.Kernel) bool {
			from, to := c.place(k.Rank, k.Start, k.End)
			if i, ok := index[deviceKey{k.Rank, k.Device}]; ok && from < to {
				all[i] = append(all[i], pacedKernel{start: from, took: k.Dur(), name: k.Name, stream: k.Stream, grid: k.Grid})
			}
			return true
		})
	}
	for _, kernels := range all {
		sortByStart(kernels)
	}
	return all
}

func sortByStart(kernels []pacedKernel) {
	slices.SortStableFunc(kernels, func(a, b pacedKernel) int { return cmp.Compare(a.start, b.start) })
}

// paces returns since when devices with too few steps take longer for the same kernels.
func (c *Collector) paces(t *Timeline, kernels [][]pacedKernel) (found []Change) {
	works, kernels := make([]*pacedWork, len(kernels)), c.withoutWaits(kernels)
	changes := make([]*Change, len(kernels))
	parallel.Each(len(changes), func(i int) {
		if d := &t.Devices[i]; len(d.rounds) < fewestRounds {
			works[i] = c.pacedWork(kernels[i])
		}
	})
	c.besidePeers(works)
	parallel.Each(len(changes), func(i int) {
		if works[i] != nil {
			changes[i] = c.paceOf(t, &t.Devices[i], works[i])
		}
	})
	clearest := clearestOf(changes)
	if clearest == nil {
		return nil
	}
	for i, x := range changes {
		if x == nil || x.gradual != clearest.gradual {
			x = cmp.Or(c.paceAsOther(t, &t.Devices[i], works[i], clearest), x)
		}
		if x != nil {
			found = append(found, *x)
		}
	}
	return found
}

// paceAsOther applies a change of another device to d. It returns that change if the same kernels take longer on d since then, by
// at least half as much, and nil otherwise: what shows on one device is often too faint to be found on each of the others.
func (c *Collector) paceAsOther(t *Timeline, d *Device, w *pacedWork, by *Change) (x *Change) {
	if w == nil || len(w.equal) == 0 {
		return nil
	}
	if x = c.paceSince(t, d, w, &slowing{of: w.equal[0], at: by.Time, until: by.Until, first: by.First, last: by.Last, p: by.P, ramp: by.ramp}, by.slower); x == nil || x.After-1 < (by.After-1)/2 {
		return nil
	}
	return x
}

// brief returns the name of a kernel for a sentence.
func (c *Collector) brief(name trace.Sym) string {
	const width = 50
	text := c.set.Syms.Name(name)
	if !c.operators {
		text = profile.BareName(text)
	}
	return table.CutMiddle(text, width, table.Style{ASCII: true})
}

// A pacedWork is what a device ran: its kernels in order, and all of its names, longest total time
// first. equal holds those that take equally long each time, or as long as on their peers.
type pacedWork struct {
	kernels    []pacedKernel
	all, equal []*paced
	total      int64 // ns, of all
}

func (c *Collector) pacedWork(kernels []pacedKernel) *pacedWork {
	w, name := &pacedWork{kernels: kernels}, c.set.Syms.Name
	setUsual(kernels)
	byName := map[trace.Sym]*paced{}
	for _, k := range kernels {
		p := order.Memo(byName, k.name, func() *paced { return &paced{name: k.name} })
		p.kernels, p.total, w.total = append(p.kernels, k), p.total+k.took, w.total+k.took
	}
	w.all = slices.SortedFunc(maps.Values(byName), func(a, b *paced) int {
		return cmp.Or(cmp.Compare(b.total, a.total), strings.Compare(name(a.name), name(b.name)))
	})
	w.equal = order.Only(w.all, func(p *paced) bool { return !kernelname.KindOf(name(p.name)).Varies() })
	return w
}

// besidePeers makes kernels comparable whose time depends on the load: their usual time becomes what they take on other devices
// at the same time, if these launch about as many, since ranks that do the same have the same load. They are then searched, too.
func (c *Collector) besidePeers(works []*pacedWork) {
	type besides struct {
		of    *paced
		paces []float64 // of the peers, by part of the launches
	}
	found := make([][]besides, len(works))
	byName := map[trace.Sym][]*paced{}
	for _, w := range works {
		if w != nil {
			for _, p := range w.all {
				byName[p.name] = append(byName[p.name], p)
			}
		}
	}
	for i, w := range works {
		if w == nil {
			continue
		}
		for _, p := range w.all {
			if kind := kernelname.KindOf(c.set.Syms.Name(p.name)); !kind.Varies() || kind == kernelname.KindCommunication || len(p.kernels) < fewest {
				continue
			}
			if paces := peerPaces(p, byName[p.name]); paces != nil {
				found[i] = append(found[i], besides{p, paces})
			}
		}
	}
	for i, list := range found {
		for _, b := range list {
			n, parts := len(b.of.kernels), len(b.paces)
			beside := *b.of
			beside.kernels, beside.beside = slices.Clone(b.of.kernels), true
			for part, pace := range b.paces {
				for k := part * n / parts; k < (part+1)*n/parts; k++ {
					beside.kernels[k].usual *= pace
				}
			}
			works[i].equal = append(works[i].equal, &beside)
		}
	}
}

// peerPaces returns how long the kernels of a name take on the devices beside that of p over time, as a multiple of
// their usual time: the median of the devices that launch about as many. It returns nil if none does.
func peerPaces(p *paced, all []*paced) []float64 {
	const asMany = 0.05
	n := len(p.kernels)
	parts := min(n, mostPaces)
	byPart := make([][]float64, parts)
	for _, o := range all {
		if m := len(o.kernels); o != p && float64(max(m-n, n-m)) <= asMany*float64(n) && m >= parts {
			for k := range byPart {
				byPart[k] = append(byPart[k], pace(o.kernels[k*m/parts:(k+1)*m/parts]))
			}
		}
	}
	if len(byPart[0]) == 0 {
		return nil
	}
	return order.Each(byPart, func(of []float64) float64 { return distribution.LowerMedian(of) })
}

// paceOf returns since when the kernels of a device take longer, nil if they do not.
func (c *Collector) paceOf(t *Timeline, d *Device, w *pacedWork) *Change {
	much := order.Only(w.equal, func(p *paced) bool { return len(p.kernels) >= fewest && float64(p.total) >= muchPaced*float64(w.total) })
	tests := float64(len(much) * len(t.Devices))
	var lead slowing
	for _, p := range much {
		if s, ok := p.slower(alpha / tests); ok && s.lost > lead.lost {
			lead = s
		}
	}
	if lead.of == nil {
		return nil
	}
	lead.p = min(1, lead.p*tests)
	return c.paceSince(t, d, w, &lead, nil)
}

// paceSince compares kernels of a device before and after a slowdown: those with the given names or, if
// names is nil, those that take longer. It returns nil if other kernels are launched since then.
func (c *Collector) paceSince(t *Timeline, d *Device, w *pacedWork, lead *slowing, names map[trace.Sym]bool) *Change {
	judged := int64(0)
	first, last := lead.of.kernels[0].start, lead.of.kernels[len(lead.of.kernels)-1].start
	from, at := lead.split(first)
	if sameLaunches(w.kernels, from, at, lead.until) < sameWork {
		return nil
	}
	last = cmp.Or(lead.until, last)
	since := func(p *paced) slowing { return p.sinceOf(lead, first) }
	x := &Change{What: PaceSubkind, Where: []string{t.Name(d)}, ranks: []int32{d.RankIndex}, metric: paceMetric, Time: lead.at, Until: lead.until, First: lead.first, Last: lead.last,
		Before: 1, P: lead.p, lasts: float64(last-lead.at) >= minLasting*float64(w.kernels[len(w.kernels)-1].start-first), slower: map[trace.Sym]bool{}, gradual: lead.ramp != nil, ramp: lead.ramp}
	var list []slowing
	took, least := int64(0), leastLonger(order.Each(w.equal, since))
	for _, p := range w.equal {
		s := since(p)
		if names[p.name] && s.factor > 0 || names == nil && s.factor >= least {
			list, took, x.lost = append(list, s), took+s.took, x.lost+s.lost
			x.slower[p.name] = true
		}
		if s.factor > 0 && (!p.beside || x.slower[p.name]) { // compared with peers that are slower, too, it seems as fast as before
			judged += s.took
		}
	}
	slices.SortStableFunc(list, func(a, b slowing) int { return cmp.Compare(b.lost, a.lost) })
	for _, s := range list[:min(3, len(list))] {
		x.kernels = append(x.kernels, fmt.Sprintf("%s: %s%s times as long, %s in all", c.brief(s.of.name), x.upTo(), words.ThreeDigits(s.factor), nearly(s.lost)))
	}
	if x.After = float64(took) / max(1, float64(took)-x.lost); x.gradual {
		x.After = order.Sum(list, func(s slowing) float64 { return s.factor * float64(s.took) }) / max(1, float64(took))
	}
	why := "most of all `" + c.brief(lead.of.name) + "`, while others take as long as before"
	if lead.of.beside {
		why = "most of all `" + c.brief(lead.of.name) + "`, while others, and these on its peers, take as long as before"
	}
	all := float64(took) >= nearlyAll*float64(judged)
	if x.Until != 0 && (!all || d.Stepped) {
		return nil // some have more to do for a while, or larger steps
	}
	if all {
		why = cmp.Or(w.turns(x.Time, x.Until), "nearly all of them, "+profilewalk.WhyAlike(moreBlocks(list, x), x.After, "the GPU clock"))
		if len(t.Devices) > 1 && profile.IsWholeGraph(c.set.Syms.Name(lead.of.name)) {
			why += ", or what these graphs communicate takes longer"
		}
		x.lost += c.lostByOthers(w, x, since)
	}
	if d.Stepped {
		t.compareWork(x, t.buckets(from, at), t.buckets(at, last))
	}
	x.known, x.Load = true, words.JoinNonEmpty("; ", why, x.Load)
	return x
}

// moreBlocks returns by which factor the launches of slower kernels have more blocks since a change: see [profilewalk.More].
func moreBlocks(list []slowing, x *Change) float64 {
	var all []profilewalk.Resized
	at := x.Time
	if x.ramp != nil {
		at = x.ramp.middle
	}
	for _, s := range list {
		var before, after profilewalk.Blocks
		for i := range s.of.kernels {
			switch k := &s.of.kernels[i]; {
			case x.ramp != nil && k.start < x.Time:
			case k.start < at:
				before.Add(k.grid)
			case x.Until == 0 || k.start < x.Until:
				after.Add(k.grid)
			}
		}
		all = append(all, profilewalk.Resized{Before: before.Mean(), After: after.Mean(), Time: float64(s.took)})
	}
	return profilewalk.More(all, x.After)
}

// leastLonger returns the least factor by which kernels of a name must take longer to count. Where nearly
// all take longer, it is half of their overall increase, since chance keeps some of them below minLonger.
func leastLonger(list []slowing) float64 {
	all, lost, alike := 0.0, 0.0, 0.0
	list = order.Only(list, func(s slowing) bool { return s.factor > 0 && !s.of.beside })
	for _, s := range list {
		all, lost = all+float64(s.took), lost+s.lost
	}
	half := 1 + (all/max(1, all-lost)-1)/2
	for _, s := range list {
		if s.factor >= half {
			alike += float64(s.took)
		}
	}
	if alike >= nearlyAll*all && half-1 >= (minLonger-1)/2 {
		return min(half, minLonger)
	}
	return minLonger
}

// lostByOthers returns the time lost by kernels whose time depends on the load, if they take longer while all
// others do: they share the clock. Whatever they lose beyond the factor of the others is put down to more work.
func (c *Collector) lostByOthers(w *pacedWork, x *Change, since func(*paced) slowing) (lost float64) {
	for _, p := range w.all {
		if x.slower[p.name] || slices.Contains(w.equal, p) || kernelname.KindOf(c.set.Syms.Name(p.name)) == kernelname.KindCommunication {
			continue
		}
		if s := since(p); s.factor-1 >= (x.After-1)/2 {
			lost += s.lost * min(1, (x.After-1)/(s.factor-1))
		}
	}
	return lost
}

// setUsual sets the places of kernels, and their usual time: the mean of those in the same place.
func setUsual(kernels []pacedKernel) {
	type sum struct{ n, took int64 }
	sums := map[uint64]*sum{}
	setPlaces(kernels)
	for i := range kernels {
		s := order.Memo(sums, kernels[i].place, func() *sum { return &sum{} })
		s.n, s.took = s.n+1, s.took+kernels[i].took
	}
	for i := range kernels {
		s := sums[kernels[i].place]
		kernels[i].usual = float64(s.took) / float64(s.n)
	}
}

func setPlaces(kernels []pacedKernel) {
	before := map[uint32][2]trace.Sym{}
	for i := range kernels {
		k := &kernels[i]
		last := before[k.stream]
		k.place = order.Mix(order.Mix(order.Mix(uint64(last[0]))+uint64(last[1])) + uint64(k.name))
		before[k.stream] = [2]trace.Sym{last[1], k.name}
	}
}

// A slowing is since when kernels take longer, and by how much.
type slowing struct {
	of          *paced
	at, until   trace.Time // from the first that does to the last; until is 0 to the end
	first, last trace.Time // start of the first slow kernel, and its bounds with a confidence of 95 %
	took        int64      // by the kernels since then, ns
	lost        float64    // part of took that the slowdown costs, ns
	factor, p   float64
	ramp        *ramp // nil if it is a jump
}

// pace returns how long kernels take, as a multiple of what they usually do.
func pace(lists ...[]pacedKernel) float64 {
	took, usual := int64(0), 0.0
	for _, kernels := range lists {
		for i := range kernels {
			took, usual = took+kernels[i].took, usual+kernels[i].usual
		}
	}
	return float64(took) / max(1, usual)
}

// slower returns since when kernels take longer, if they do so until the end.
func (p *paced) slower(level float64) (s slowing, ok bool) {
	n := len(p.kernels)
	parts := min(n, mostPaces)
	of := func(from, to int) []pacedKernel { return p.kernels[from*n/parts : to*n/parts] }
	values := make([]float64, parts)
	for i := range values {
		values[i] = pace(of(i, i+1))
	}
	list := changepoint.Levels(values, changepoint.Options{Alpha: level, Keep: func(from, k, to int) bool {
		before, after := pace(of(from, k)), pace(of(k, to))
		return max(before, after) >= minLonger*min(before, after)
	}})
	if len(list) == 0 {
		list = changepoint.Apart(values, minLonger, leastSteps, level)
	}
	if len(list) < 2 { // it may be one of the two that a spell has
		if two := changepoint.ApartWithin(values, minLonger, leastSteps, level); two != nil {
			list = two
		}
	}
	if x, from, left, ok := changepoint.BitByBit(values, steepest, level); ok && left < changepoint.Unexplained(values, list) {
		return p.ramping(&x, from, parts)
	}
	if list == nil {
		return s, false
	}
	for _, x := range spells(list, func(from, to int) float64 { return pace(of(from, to)) }) {
		until := trace.Time(0)
		if x.To < parts {
			until = of(x.To, parts)[0].start
		}
		this := p.since(of(x.From, x.At)[0].start, of(x.At, parts)[0].start, until)
		this.first, this.last, this.p = of(max(0, x.First-1), parts)[0].start, of(x.Last, parts)[0].start, x.P
		if this.factor >= minLonger && this.lost > s.lost {
			s = this
		}
	}
	return s, s.of != nil
}

// index returns the index of the first kernel that starts at some time or later.
func (p *paced) index(at trace.Time) int {
	i, _ := slices.BinarySearchFunc(p.kernels, at, func(k pacedKernel, at trace.Time) int { return cmp.Compare(k.start, at) })
	return i
}

// since compares the kernels from at until some time, or to the end, with those between first and at, and behind.
func (p *paced) since(first, at, until trace.Time) slowing {
	s := slowing{of: p, at: at, until: until}
	before, after, behind := p.kernels[p.index(first):p.index(at)], p.kernels[p.index(at):], p.kernels[len(p.kernels):]
	if until != 0 {
		n := p.index(until) - p.index(at)
		after, behind = after[:n], after[n:]
	}
	if len(before)+len(behind) == 0 || len(after) == 0 {
		return s
	}
	for i := range after {
		s.took += after[i].took
	}
	s.factor = pace(after) / pace(before, behind)
	s.lost = float64(s.took) * (1 - 1/s.factor)
	return s
}
