package graphs

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// A LayerTime is how long kernels of one kind ran in a layer, over all replays.
type LayerTime struct {
	Layer   string
	Number  int // in the order of the graph
	Kind    kernelname.Kind
	Kernels int64
	Total   int64 // ns
}

// Layers are the layers of models in replays of graphs: as captures name them or, where no capture is
// known, from the order of kernels alone.
type Layers struct {
	Rows []LayerTime
	all  int64
	// Blocks say what repeats, by sequence: "47 x 13 of 634 kernels".
	Blocks []string
	places []*placeTime // of blocks
	spread layerSpread
}

// A layerSpread is how far one layer differs from the others of its graph.
type layerSpread struct {
	layer        string
	time, median int64 // ns of a replay
}

// Layers sums up the time of kernels by layer and kind, and by place in what repeats.
func (g *Graphs) Layers(opt profilewalk.Options) *Layers {
	c := &layerCounter{Graphs: g, matcher: newMatcher(g.set.Syms), out: &Layers{}, repetitions: map[int32]*repetition{}, known: map[countedBy]*counted{},
		rows: map[layerKind]*LayerTime{}, places: map[blockPlace]*placeTime{}}
	for _, s := range g.Streams {
		for i := range s.Launches {
			c.count(&s.Launches[i], &opt)
		}
	}
	for _, r := range c.rows {
		if r.Kernels > 0 {
			c.out.Rows = append(c.out.Rows, *r)
		}
	}
	slices.SortFunc(c.out.Rows, func(a, b LayerTime) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(b.Total, a.Total), cmp.Compare(a.Kind, b.Kind))
	})
	for _, p := range c.places {
		if p.kernels > 0 {
			c.out.places = append(c.out.places, p)
		}
	}
	return c.out
}

// A layerCounter sums up layers.
type layerCounter struct {
	*Graphs
	*matcher
	out         *Layers
	repetitions map[int32]*repetition // by sequence
	known       map[countedBy]*counted
	rows        map[layerKind]*LayerTime
	layers      order.Groups[string, struct{}] // in the order of the graph
	places      map[blockPlace]*placeTime
	times       []int64 // of a replay, by layer, ns
}

// A layerKind is the kernels of one kind in a layer.
type layerKind struct {
	layer int
	kind  kernelname.Kind
}

// A countedBy identifies replays whose nodes count for the same rows.
type countedBy struct {
	sequence int32
	capture  *Capture
	pairs    *Pairs
}

// A counted says what the nodes of a replay count for.
type counted struct {
	rows   []*LayerTime // nil if the node is in no layer
	places []*placeTime // nil if it is in no block
	blocks []int
}

// countedOf finds out what the nodes of a replay count for.
func (c *layerCounter) countedOf(l *Launch) *counted {
	repeated := order.Memo(c.repetitions, l.Sequence, func() *repetition {
		r := c.repetitionOf(l)
		if p := r.period; p > 0 {
			c.out.Blocks = append(c.out.Blocks, fmt.Sprintf("%d x %d of %s", (r.to-r.from)/p, p, words.Counted(len(l.Nodes), "kernel")))
		}
		return r
	})
	n := len(l.Nodes)
	of := &counted{make([]*LayerTime, n), make([]*placeTime, n), make([]int, n)}
	for node := range l.Nodes {
		of.places[node], of.blocks[node] = c.placeOf(repeated, l, node)
		layer := ""
		if place, ok := l.Place(node); ok && place.Layer != 0 {
			layer = c.name(place.Layer)
		} else if number := repeated.layers[node]; number >= 0 {
			layer = fmt.Sprintf("layer %d by order", number)
		} else {
			continue
		}
		k := layerKind{c.layers.At(layer), c.kind(l.Nodes[node].Name)}
		of.rows[node] = order.Memo(c.rows, k, func() *LayerTime { return &LayerTime{Layer: layer, Number: k.layer, Kind: k.kind} })
	}
	return of
}

// count counts the nodes of a replay.
func (c *layerCounter) count(l *Launch, opt *profilewalk.Options) {
	of := order.Memo(c.known, countedBy{l.Sequence, l.Capture, l.Pairs}, func() *counted { return c.countedOf(l) })
	c.times = append(c.times[:0], make([]int64, len(c.layers.Keys))...)
	for node := range l.Nodes {
		e, dur := l.Event(node), l.Nodes[node].Dur
		if !opt.Keeps(&e) {
			continue
		}
		if p := of.places[node]; p != nil {
			p.add(of.blocks[node], dur)
		}
		if r := of.rows[node]; r != nil {
			r.Kernels++
			r.Total = distribution.AddTimes(r.Total, dur)
			c.out.all = distribution.AddTimes(c.out.all, dur)
			c.times[r.Number] += dur
		}
	}
	c.out.compare(c.times, c.layers.Keys)
}

// layersOf returns the layer of each node of a replay, by order alone; none if it is in no layer.
// Attention is the anchor: a layer begins with the norm, or the all-reduce that may include it, that
// precedes the product before attention.
func (m *matcher) layersOf(l *Launch) []int {
	layers := make([]int, len(l.Nodes))
	var begins []int
	for i := range layers {
		layers[i] = none
		if m.kind(l.Nodes[i].Name) == kernelname.KindAttention && (i == 0 || m.kind(l.Nodes[i-1].Name) != kernelname.KindAttention) {
			if at := m.beginOf(l.Nodes[:i]); at >= 0 && (len(begins) == 0 || at > begins[len(begins)-1]) {
				begins = append(begins, at)
			}
		}
	}
	if len(begins) < 2 {
		return layers
	}
	var lengths []int
	for i := 1; i < len(begins); i++ {
		lengths = append(lengths, begins[i]-begins[i-1])
	}
	usual := slices.Clone(lengths)
	slices.Sort(usual)
	last := begins[len(begins)-1]
	ends := append(slices.Clone(begins[1:]), min(len(layers), last+usual[len(usual)/2]))
	for n := range begins {
		for i := begins[n]; i < ends[n]; i++ {
			layers[i] = n
		}
	}
	return layers
}

// beginOf returns where the layer begins whose attention follows the nodes; none if that is unknown.
func (m *matcher) beginOf(nodes []Node) int {
	product := false
	for i := len(nodes) - 1; i >= 0; i-- {
		switch m.kind(nodes[i].Name) {
		case kernelname.KindGEMM:
			product = true
		case kernelname.KindAttention:
			return none
		case kernelname.KindNorm, kernelname.KindCommunication: // which may include the norm
			if product {
				return i
			}
		}
	}
	return none
}

// maxPeriod bounds the length of sequences that are searched for repetitions, which takes quadratic time.
const maxPeriod = 4096

// period finds the block of nodes whose repetitions cover most of a sequence: its length, and from
// which node to which it repeats; 0 if there is none.
func period(nodes []Node) (p, from, to int) {
	if len(nodes) > maxPeriod {
		return 0, 0, 0
	}
	names := order.EachRow(nodes, func(n *Node) trace.Sym { return n.Name })
	const repeats = 3
	for q := 1; q*repeats <= len(names); q++ {
		run := 0
		for i := 0; i+q < len(names); i++ {
			if names[i] != names[i+q] {
				run = 0
				continue
			}
			if run++; run+q > to-from && run+q >= repeats*q {
				p, from, to = q, i+1-run, i+1+q
			}
		}
	}
	return p, from, to
}

// compare looks for the layer that exceeds the median layer of one replay most. times are ns, by layer;
// 0 means that the layer is not in the replay.
func (l *Layers) compare(times []int64, layers []string) {
	all := order.Only(times, func(t int64) bool { return t > 0 })
	if len(all) < 4 {
		return
	}
	slices.Sort(all)
	median := all[len(all)/2]
	for i, t := range times {
		if off := t - median; off > l.spread.time-l.spread.median || off == l.spread.time-l.spread.median && layers[i] < l.spread.layer {
			l.spread = layerSpread{layers[i], t, median}
		}
	}
}

// Report returns the table.
func (l *Layers) Report() *table.Table {
	t := table.New("sgtrace.report.kernels.layers/v1", "Layers of CUDA graphs", l.Rows, []table.Field[LayerTime]{
		table.ShareColumn("time", "share of the time of all layers", func(r *LayerTime) float64 { return distribution.Fraction(r.Total, l.all) }),
		table.NsColumn("total", "total duration over all replays", func(r *LayerTime) int64 { return r.Total }),
		table.CountColumn("kernels", "number of kernels", func(r *LayerTime) int64 { return r.Kernels }),
		table.TextColumn("kind", "what the kernels compute, judged by their names", func(r *LayerTime) string { return r.Kind.String() }),
		table.TextColumn("layer", "layer, as the capture names it; otherwise its number in the graph, counted by attention", func(r *LayerTime) string { return r.Layer }),
	})
	if len(l.Rows) == 0 {
		return t
	}
	const few = 3
	if n := len(l.Blocks); n > 0 {
		t.Note("the order of kernels repeats: %s", words.JoinNonEmpty("; ", l.Blocks[:min(n, few)]...))
	}
	if s := l.spread; s.layer != "" && 2*s.time >= 3*s.median {
		t.Note("in one replay, %s takes %s, and half of the others less than %s", s.layer, words.Nearly(s.time), words.Nearly(s.median))
	}
	return t
}

// A Neighbors finds what ran in a replay before and after some time.
type Neighbors struct {
	*Graphs
	extents [][]extent // of the replays, by stream
}

// An extent is when the nodes of a replay ran.
type extent struct{ from, to trace.Time }

// Neighbors prepares a search for what ran in replays.
func (g *Graphs) Neighbors() *Neighbors {
	n := &Neighbors{g, make([][]extent, len(g.Streams))}
	for s, r := range g.Streams {
		for i := range r.Launches {
			nodes := r.Launches[i].Nodes
			e := extent{nodes[0].Start, nodes[0].Start}
			for k := range nodes {
				e.from, e.to = min(e.from, nodes[k].Start), max(e.to, nodes[k].Start+trace.Time(nodes[k].Dur))
			}
			n.extents[s] = append(n.extents[s], e)
		}
	}
	return n
}

// Around names what a device ran before and after a time in which it ran nothing: the operator and its
// module at capture, or else the kernel. Both are "" if the time is not within one replay.
func (n *Neighbors) Around(rank string, device int32, from, to trace.Time) (before, after string) {
	at := int32(slices.Index(n.set.Ranks, rank))
	for s, r := range n.Streams {
		for i := range r.Launches {
			l := &r.Launches[i]
			if e := n.extents[s][i]; l.Rank != at || from <= e.from || e.to <= to {
				continue
			}
			last, next := none, none
			for k := range l.Nodes {
				switch x := &l.Nodes[k]; {
				case x.Device != device:
				case x.Start < to && (last == none || x.Start > l.Nodes[last].Start):
					last = k
				case x.Start >= to && (next == none || x.Start < l.Nodes[next].Start):
					next = k
				}
			}
			if last != none && next != none {
				return n.nameOf(l, last), n.nameOf(l, next)
			}
		}
	}
	return "", ""
}

// nameOf names a node: "aten::mm in Qwen3MLP_7".
func (n *Neighbors) nameOf(l *Launch, node int) string {
	place, _ := l.Place(node)
	if place.Operator == 0 && place.Module == 0 {
		return n.name(l.Nodes[node].Name)
	}
	return words.JoinNonEmpty(" in ", n.name(place.Operator), n.name(place.Module))
}

// A LayerKernel is a kernel of a layer in one replay.
type LayerKernel struct {
	Layer    string
	Kind     kernelname.Kind
	Name     string
	From, To int64 // ns since the layer began
}

// minLayers is the fewest layers of a model.
const minLayers = 4

// OneReplay returns the kernels of the layers of one replay, layer by layer: the replay of median
// length of the sequence that took most time. what describes it: "634 kernels in 1.37 ms". Both are
// empty if no sequence has layers.
func (g *Graphs) OneReplay() (list []LayerKernel, what string) {
	bySequence, times := map[int32][]*Launch{}, map[int32]int64{}
	for _, s := range g.Streams {
		for i := range s.Launches {
			l := &s.Launches[i]
			bySequence[l.Sequence] = append(bySequence[l.Sequence], l)
			times[l.Sequence] += l.span()
		}
	}
	m := newMatcher(g.set.Syms)
	for _, sequence := range order.Largest(times) {
		replays := bySequence[sequence]
		slices.SortFunc(replays, func(a, b *Launch) int { return cmp.Or(cmp.Compare(a.span(), b.span()), cmp.Compare(a.At, b.At)) })
		l := replays[len(replays)/2]
		if list = g.layersIn(m, l); list != nil {
			return list, fmt.Sprintf("%d kernels in %.2f ms", len(l.Nodes), float64(l.span())/1e6)
		}
	}
	return nil, ""
}

// span returns how long the kernels of a replay ran, from the first to the last.
func (l *Launch) span() int64 {
	end := int64(l.Nodes[0].Start) + l.Nodes[0].Dur
	for i := range l.Nodes {
		end = max(end, int64(l.Nodes[i].Start)+l.Nodes[i].Dur)
	}
	return end - int64(l.Nodes[0].Start)
}

// layersIn returns the kernels of the layers of a replay; nil if it has fewer than minLayers.
func (g *Graphs) layersIn(m *matcher, l *Launch) (list []LayerKernel) {
	byOrder := m.layersOf(l)
	begins := map[string]int64{}
	for node := range l.Nodes {
		n := &l.Nodes[node]
		layer := ""
		if place, ok := l.Place(node); ok && place.Layer != 0 {
			layer = g.name(place.Layer)
		} else if byOrder[node] >= 0 {
			layer = fmt.Sprintf("layer %d", byOrder[node])
		} else {
			continue
		}
		begin := order.Memo(begins, layer, func() int64 { return int64(n.Start) })
		list = append(list, LayerKernel{layer, m.kind(n.Name), profile.BareName(g.name(n.Name)), int64(n.Start) - begin, int64(n.Start) + n.Dur - begin})
	}
	if len(begins) < minLayers {
		return nil
	}
	return list
}
