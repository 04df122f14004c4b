package graphs

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// A repetition is how a sequence of nodes repeats.
type repetition struct {
	layers           []int // by node, see layersOf
	period, from, to int   // length of the block that repeats, and from which node to which; 0 if there is none
	first            int   // node at the first place of a block: where a layer begins, if that is known
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

// at returns the place of a node in its block, and the number of that block: the number of its layer,
// where layers are known. ok is false if the node is in no block.
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

// A blockPlace is a place in a block of period nodes.
type blockPlace struct {
	period, place int
	name          trace.Sym
}

// A placeTime is how long the nodes at one place of a block ran, over all blocks of all replays.
type placeTime struct {
	blockPlace
	kernel  string
	kind    kernelname.Kind
	kernels int64
	total   int64   // ns
	blocks  []int64 // ns, by block; 0 is none
}

// placeOf returns the place of a node, and its block; nil if it is in no block.
func (c *layerCounter) placeOf(r *repetition, launch *Launch, node int) (p *placeTime, block int) {
	place, block, ok := r.at(node)
	if !ok {
		return nil, 0
	}
	name := launch.Nodes[node].Name
	key := blockPlace{r.period, place, name}
	if c.places[key] == nil {
		c.places[key] = &placeTime{blockPlace: key, kernel: c.name(name), kind: c.kind(name)}
	}
	return c.places[key], block
}

// add counts a node.
func (p *placeTime) add(block int, dur int64) {
	p.kernels++
	p.total = distribution.AddTimes(p.total, dur)
	if n := block + 1 - len(p.blocks); n > 0 {
		p.blocks = append(p.blocks, make([]int64, n)...)
	}
	p.blocks[block] = distribution.AddTimes(p.blocks[block], dur)
}

// slowest returns the block whose nodes at a place took longest, and how many times as long as the median block.
func (p *placeTime) slowest() (block int, ratio float64) {
	times := slices.Sorted(slices.Values(p.blocks))
	from := slices.IndexFunc(times, func(ns int64) bool { return ns > 0 })
	if from < 0 {
		return 0, 1 // none of them took any time
	}
	times = times[from:]
	most := times[len(times)-1]
	return slices.Index(p.blocks, most), distribution.Fraction(most, times[len(times)/2])
}

// Any reports whether some graph repeats a block.
func (l *Layers) Any() bool { return len(l.places) > 0 }

// BlockReport returns the table of places in the blocks that graphs repeat.
func (l *Layers) BlockReport() *table.Table {
	rows, all := slices.Clone(l.places), int64(0)
	for _, p := range rows {
		all = distribution.AddTimes(all, p.total)
	}
	slices.SortFunc(rows, func(a, b *placeTime) int {
		return cmp.Or(cmp.Compare(b.period, a.period), cmp.Compare(a.place, b.place), cmp.Compare(b.total, a.total), cmp.Compare(a.kernel, b.kernel))
	})
	list := order.Each(rows, func(p *placeTime) placeTime { return *p })
	kernel := table.TextColumn("kernel", "name of the kernel", func(p *placeTime) string { return p.kernel })
	kernel.Most = table.MaxName
	return table.New("sgtrace.report.kernels.blocks/v1", "Blocks that CUDA graphs repeat", list, []table.Field[placeTime]{
		table.CountColumn("of", "number of kernels in a block", func(p *placeTime) int64 { return int64(p.period) }),
		table.CountColumn("place", "position in the block, from 1; position 1 begins a layer if layers are known", func(p *placeTime) int64 { return int64(p.place) + 1 }),
		table.ShareColumn("time", "share of the time of all blocks", func(p *placeTime) float64 { return distribution.Fraction(p.total, all) }),
		table.NsColumn("total", "total duration over all blocks of all replays", func(p *placeTime) int64 { return p.total }),
		table.NsColumn("mean", "mean duration", func(p *placeTime) int64 { return p.total / p.kernels }),
		table.CountColumn("kernels", "number of kernels", func(p *placeTime) int64 { return p.kernels }),
		table.CountColumn("slowest block", "block in which this position took longest over all replays: the layer number by order, else the block number", func(p *placeTime) int64 { b, _ := p.slowest(); return int64(b) }),
		{Column: table.Column{Name: "of median", Unit: table.Factor, Doc: "duration there divided by that in the median block"},
			Cell: func(p *placeTime) table.Cell { _, ratio := p.slowest(); return table.RealCell(ratio) }},
		table.TextColumn("kind", "what the kernel computes, judged by its name", func(p *placeTime) string { return p.kind.String() }),
		kernel,
	})
}
