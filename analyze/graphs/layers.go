package graphs

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A LayerTime is how long kernels of one kind ran in a layer, over all replays.
type LayerTime struct {
	Layer   string
	Number  int // in the order of the graph
	Kind    profile.Kind
	Kernels int64
	Total   int64 // ns
}

// Layers are the layers of models in replays of graphs: as captures name them or, where no capture is
// known, from the order of kernels alone.
type Layers struct {
	Rows []LayerTime
	all  int64
	// Blocks say what repeats: "47 x 13 kernels", by graph that was looked at.
	Blocks []string
	places map[blockPlace]*placeTime
	spread layerSpread
}

// A layerSpread is how one layer differs from the others of its graph.
type layerSpread struct {
	layer        string
	time, median int64 // ns of a replay
}

// ReadReplays reads the replays of a set without looking for captures.
func ReadReplays(set *profile.Set) *Graphs {
	g := &Graphs{set: set, Streams: make([]*Replays, len(set.Streams))}
	walk.EachStream(set, func(i int, s profile.Stream) { g.Streams[i] = readReplays(set, s) })
	seqs := sequences{index: map[string]int32{}}
	for _, s := range g.Streams {
		for i := range s.Launches {
			seqs.number(&s.Launches[i])
		}
	}
	return g
}

// Layers sums up the time of kernels by layer and kind.
func (g *Graphs) Layers(opt walk.Options) *Layers {
	m := newMatcher(g.set.Syms)
	out := &Layers{places: map[blockPlace]*placeTime{}}
	type key struct {
		layer string
		kind  profile.Kind
	}
	rows, bySequence := map[key]*LayerTime{}, map[int32]*repetition{}
	numbers := map[string]int{}
	for _, s := range g.Streams {
		for i := range s.Launches {
			l := &s.Launches[i]
			repeated := bySequence[l.Sequence]
			if repeated == nil {
				repeated = m.repetitionOf(l)
				bySequence[l.Sequence] = repeated
				if p := repeated.period; p > 0 {
					out.Blocks = append(out.Blocks, fmt.Sprintf("%d x %d of %s", (repeated.to-repeated.from)/p, p, words.Counted(len(l.Nodes), "kernel")))
				}
			}
			times := map[string]int64{}
			for node := range l.Nodes {
				e := l.Event(node)
				if !opt.Keeps(&e) {
					continue
				}
				out.count(m, repeated, l, node)
				layer, number := "", repeated.layers[node]
				if place, ok := l.Place(node); ok && place.Layer != 0 {
					layer = g.Name(place.Layer)
				} else if number >= 0 {
					layer = fmt.Sprintf("layer %d by order", number)
				} else {
					continue
				}
				if _, ok := numbers[layer]; !ok {
					numbers[layer] = len(numbers)
				}
				k := key{layer, m.kind(l.Nodes[node].Name)}
				if rows[k] == nil {
					rows[k] = &LayerTime{Layer: layer, Number: numbers[layer], Kind: k.kind}
				}
				rows[k].Kernels++
				rows[k].Total = distribution.AddTimes(rows[k].Total, l.Nodes[node].Dur)
				out.all = distribution.AddTimes(out.all, l.Nodes[node].Dur)
				times[layer] += l.Nodes[node].Dur
			}
			out.compare(times)
		}
	}
	for _, r := range rows {
		out.Rows = append(out.Rows, *r)
	}
	slices.SortFunc(out.Rows, func(a, b LayerTime) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(b.Total, a.Total), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

// layersOf tells for each node of a replay which layer it is of, from the order alone: none is of no layer.
// Attention is the anchor: a layer begins with the norm, or the all-reduce with a norm, before the product
// before it.
func (m *matcher) layersOf(l *Launch) []int {
	layers := make([]int, len(l.Nodes))
	var begins []int
	for i := range layers {
		layers[i] = none
		if m.kind(l.Nodes[i].Name) == profile.KindAttention && (i == 0 || m.kind(l.Nodes[i-1].Name) != profile.KindAttention) {
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

// beginOf returns where a layer begins whose attention comes behind some nodes; none is not known.
func (m *matcher) beginOf(nodes []Node) int {
	product := false
	for i := len(nodes) - 1; i >= 0; i-- {
		switch m.kind(nodes[i].Name) {
		case profile.KindGEMM:
			product = true
		case profile.KindAttention:
			return none
		case profile.KindNorm, profile.KindCommunication: // which may do the norm, too
			if product {
				return i
			}
		}
	}
	return none
}

// mostPeriod bounds the sequences in which repetitions are looked for, which takes time by the square.
const mostPeriod = 4096

// period finds the block of nodes that a sequence repeats most: so many nodes, from and to; 0 is none.
func period(nodes []Node) (p, from, to int) {
	if len(nodes) > mostPeriod {
		return 0, 0, 0
	}
	names := make([]trace.Sym, len(nodes))
	for i := range nodes {
		names[i] = nodes[i].Name
	}
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

// compare looks for the layer that differs most from the others of one replay.
func (l *Layers) compare(times map[string]int64) {
	if len(times) < 4 {
		return
	}
	all := make([]int64, 0, len(times))
	for _, t := range times {
		all = append(all, t)
	}
	slices.Sort(all)
	median := all[len(all)/2]
	for layer, t := range times {
		if off := t - median; off > l.spread.time-l.spread.median || off == l.spread.time-l.spread.median && layer < l.spread.layer {
			l.spread = layerSpread{layer, t, median}
		}
	}
}

// Report returns the table.
func (l *Layers) Report() *table.Table {
	t := table.New("sgtrace.report.kernels.layers/v1", "Layers of CUDA graphs", l.Rows, []table.Field[LayerTime]{
		table.ShareColumn("time", "part of the time of all layers", func(r *LayerTime) float64 { return distribution.Fraction(r.Total, l.all) }),
		table.NsColumn("total", "sum of the durations, over all replays", func(r *LayerTime) int64 { return r.Total }),
		table.CountColumn("kernels", "how many ran", func(r *LayerTime) int64 { return r.Kernels }),
		table.TextColumn("kind", "what the kernels compute, by their names", func(r *LayerTime) string { return r.Kind.String() }),
		table.TextColumn("layer", "as the capture calls it, or its number in the order of the graph, by attention", func(r *LayerTime) string { return r.Layer }),
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
