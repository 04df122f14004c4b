package graphs

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A repetition is how a sequence of nodes repeats.
type repetition struct {
	layers           []int // by node, see layersOf
	period, from, to int   // the block that is repeated, and where; 0 is none
	first            int   // node that is the first place of a block: where a layer begins, if that is known
}

// repetitionOf finds how the nodes of a replay repeat.
func (m *matcher) repetitionOf(l *Launch) *repetition {
	r := &repetition{layers: m.layersOf(l)}
	r.period, r.from, r.to = period(l.Nodes)
	r.first = r.from
	for i := r.from; i < r.to; i++ {
		if n := r.layers[i]; n != none && (i == 0 || r.layers[i-1] != n) {
			r.first = i
			break
		}
	}
	return r
}

// at returns the place of a node in its block, and which block that is, as layers are numbered where they are
// known; false is none.
func (r *repetition) at(node int) (place, block int, ok bool) {
	if r.period == 0 || node < r.from || node >= r.to {
		return 0, 0, false
	}
	off := node - r.first
	if r.first > r.from {
		off += r.period // what comes before the first block is a part of one
	}
	if layer := r.layers[node]; layer != none {
		return off % r.period, layer, true
	}
	return off % r.period, off / r.period, true
}

// A blockPlace is a place in a block of so many nodes.
type blockPlace struct {
	period, place int
	name          trace.Sym
}

// A placeTime is how long the nodes at one place of a block ran, over all blocks of all replays.
type placeTime struct {
	blockPlace
	kernel  string
	kind    profile.Kind
	kernels int64
	total   int64         // ns
	blocks  map[int]int64 // ns, by block
}

// count counts a node for its place.
func (l *Layers) count(m *matcher, r *repetition, launch *Launch, node int) {
	place, block, ok := r.at(node)
	if !ok {
		return
	}
	n := &launch.Nodes[node]
	key := blockPlace{r.period, place, n.Name}
	p := l.places[key]
	if p == nil {
		p = &placeTime{blockPlace: key, kernel: m.syms.Name(n.Name), kind: m.kind(n.Name), blocks: map[int]int64{}}
		l.places[key] = p
	}
	p.kernels++
	p.total = distribution.AddTimes(p.total, n.Dur)
	p.blocks[block] = distribution.AddTimes(p.blocks[block], n.Dur)
}

// slowest returns the block whose nodes at a place took longest, and how many times as long as the median block.
func (p *placeTime) slowest() (block int, ratio float64) {
	times := make([]int64, 0, len(p.blocks))
	for _, ns := range p.blocks {
		times = append(times, ns)
	}
	slices.Sort(times)
	most := times[len(times)-1]
	block = -1
	for b, ns := range p.blocks {
		if ns == most && (block < 0 || b < block) {
			block = b
		}
	}
	return block, distribution.Fraction(most, times[len(times)/2])
}

// Any reports whether some graph repeats a block.
func (l *Layers) Any() bool { return len(l.places) > 0 }

// BlockReport returns the table of places in the blocks that graphs repeat.
func (l *Layers) BlockReport() *table.Table {
	var rows []*placeTime
	all := int64(0)
	for _, p := range l.places {
		rows = append(rows, p)
		all = distribution.AddTimes(all, p.total)
	}
	slices.SortFunc(rows, func(a, b *placeTime) int {
		return cmp.Or(cmp.Compare(b.period, a.period), cmp.Compare(a.place, b.place), cmp.Compare(b.total, a.total), cmp.Compare(a.kernel, b.kernel))
	})
	list := make([]placeTime, len(rows))
	for i, p := range rows {
		list[i] = *p
	}
	kernel := table.TextColumn("kernel", "name of the kernel", func(p *placeTime) string { return p.kernel })
	kernel.Most = table.MostName
	return table.New("sgtrace.report.kernels.blocks/v1", "Blocks that CUDA graphs repeat", list, []table.Field[placeTime]{
		table.CountColumn("of", "how many kernels a block has", func(p *placeTime) int64 { return int64(p.period) }),
		table.CountColumn("place", "which of them, from 1 on; the first one begins a layer, where that is known", func(p *placeTime) int64 { return int64(p.place) + 1 }),
		table.ShareColumn("time", "part of the time of all blocks", func(p *placeTime) float64 { return distribution.Fraction(p.total, all) }),
		table.NsColumn("total", "sum of the durations, over all blocks of all replays", func(p *placeTime) int64 { return p.total }),
		table.NsColumn("mean", "mean duration", func(p *placeTime) int64 { return p.total / p.kernels }),
		table.CountColumn("kernels", "how many ran", func(p *placeTime) int64 { return p.kernels }),
		table.CountColumn("slowest block", "the block in which it took longest, over all replays: the number of the layer by order, or else of the block", func(p *placeTime) int64 { b, _ := p.slowest(); return int64(b) }),
		{Column: table.Column{Name: "of median", Unit: table.Factor, Doc: "how many times as long it took there as in the median block"},
			Cell: func(p *placeTime) table.Cell { _, ratio := p.slowest(); return table.RealCell(ratio) }},
		table.TextColumn("kind", "what the kernel computes, by its name", func(p *placeTime) string { return p.kind.String() }),
		kernel,
	})
}
