package graphs

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// A LayerKernel is a kernel of a layer in one replay.
type LayerKernel struct {
	Layer    string
	Kind     kernelname.Kind
	Name     string
	From, To int64 // ns since the layer began
}

// minLayers is how many layers are a model.
const minLayers = 4

// OneReplay returns the kernels of the layers of one replay, layer by layer: of the sequence that took most time, that
// replay of which half took longer. It also says what that is: "634 kernels in 1.37 ms". It is empty where no
// sequence has layers.
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

// layersIn returns the kernels of the layers of a replay; nil if it has few layers.
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
