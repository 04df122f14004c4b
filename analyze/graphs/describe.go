package graphs

import (
	"strings"

	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Place is what a capture says about one launch. Symbols are 0 if it says nothing.
type Place struct {
	Operator      trace.Sym // the innermost one
	Shapes, Types trace.Sym // of its inputs
	Module        trace.Sym // the innermost one: "Qwen3MLP_7"; it may be a range, where there are any
	Layer         trace.Sym // the module that is a layer of the model: "Qwen3DecoderLayer_7"
	Source        trace.Sym // the innermost function that belongs to no library: "vllm/model_executor/layers/linear.py(410): forward"
}

// layerShare is the least share of launches that the modules of a class must have to be the layers of a
// model. Other modules occur several times, too, such as the two halves of an embedding.
const layerShare = 0.1

// describe finds out what the captures of one file say about their launches.
func describe(syms *trace.Symbols, captures []*Capture) {
	m := moduleNames{syms: syms, names: map[trace.Sym]trace.Sym{}, classes: map[trace.Sym]string{}, instances: map[string]map[trace.Sym]bool{}, launches: map[string]int{}}
	for _, c := range captures {
		m.count(c)
	}
	names := host.NewNames(syms)
	isOwn := func(f *Frame) bool {
		return f.Kind == profile.PythonFrame && names.Of(host.PythonFrame, f.Name).Own && !strings.HasPrefix(syms.Name(f.Name), "<")
	}
	for _, c := range captures {
		c.places, c.modules = make([]Place, len(c.Launches)), make([]int32, len(c.Launches))
		for i := range c.Launches {
			p := &c.places[i]
			c.modules[i] = none
			for at := c.Launches[i].Frame; at != none; at = c.Frames[at].Around {
				f := &c.Frames[at]
				if f.Kind == profile.OperatorFrame && p.Operator == 0 {
					p.Operator, p.Shapes, p.Types = f.Name, f.Shapes, f.Types
				}
				if p.Source == 0 && isOwn(f) {
					p.Source = f.Name
				}
				if module := m.of(f); module != 0 {
					if p.Module == 0 {
						p.Module, c.modules[i] = module, at
					}
					if m.isLayer(module) {
						p.Layer = module // the outermost one stays
					}
				}
			}
		}
	}
}

// moduleNames are the modules around launches.
type moduleNames struct {
	syms      *trace.Symbols
	names     map[trace.Sym]trace.Sym // by name of a frame: without the prefix; 0 if it is no module
	classes   map[trace.Sym]string
	instances map[string]map[trace.Sym]bool // by class
	launches  map[string]int                // by class
	all       int                           // launches
}

// of returns the module of a frame; 0 if it is not a module.
func (m *moduleNames) of(f *Frame) trace.Sym {
	switch f.Kind {
	case profile.OperatorFrame:
		return 0
	case profile.RangeFrame:
		m.classes[f.Name] = strings.TrimRight(m.syms.Name(f.Name), "0123456789")
		return f.Name
	}
	return order.Memo(m.names, f.Name, func() (module trace.Sym) {
		if name, is := strings.CutPrefix(m.syms.Name(f.Name), profile.ModulePrefix); is {
			module = m.syms.Intern(name)
			m.classes[module] = profile.ModuleClass(m.syms.Name(f.Name))
		}
		return module
	})
}

// count counts the modules of each class around launches, and the launches in any of them.
func (m *moduleNames) count(c *Capture) {
	m.all += len(c.Launches)
	for i := range c.Launches {
		seen := map[string]bool{}
		for at := c.Launches[i].Frame; at != none; at = c.Frames[at].Around {
			module := m.of(&c.Frames[at])
			if module == 0 {
				continue
			}
			class := m.classes[module]
			order.Memo(m.instances, class, func() map[trace.Sym]bool { return map[trace.Sym]bool{} })[module] = true
			if !seen[class] {
				seen[class] = true
				m.launches[class]++
			}
		}
	}
}

// isLayer reports whether a module is a layer of the model.
func (m *moduleNames) isLayer(module trace.Sym) bool {
	class := m.classes[module]
	return len(m.instances[class]) > 1 && float64(m.launches[class]) >= layerShare*float64(m.all)
}

// describeAll describes captures, file by file.
func (g *Graphs) describeAll(list []*Capture) {
	for of := range order.Runs(list, func(a, b **Capture) bool { return (*a).File == (*b).File }) {
		describe(g.set.Syms, of)
	}
}

// Place returns what the capture says about a node; ok is false if the node has no launch there.
func (l *Launch) Place(node int) (Place, bool) {
	if l.of(node) == nil {
		return Place{}, false
	}
	p := l.Capture.places[l.Pairs.Launch[node]]
	p.Shapes = l.Capture.sized(p.Shapes)
	if l.Pairs.ModuleOnly(node) {
		p = Place{Module: p.Module, Layer: p.Layer}
	}
	return p, true
}

// A named is the name of a node, and the file that has it.
type named struct {
	name trace.Sym // 0 if files contradict each other
	file string
}

// annotate applies the names that the program gave to nodes to replays without a capture: each graph
// that has any counts as captured in ranges of these names.
func (g *Graphs) annotate() {
	if len(g.set.Annotations) == 0 {
		return
	}
	names := make([]map[int64]named, len(g.set.Ranks))
	for rank := range names {
		names[rank] = g.namesOf(rank)
	}
	graphs, of := map[executable]*recorded{}, map[*Launch]*recorded{}
	var captures []*Capture
	for _, s := range g.Streams {
		for i := range s.Launches {
			l := &s.Launches[i]
			if l.Capture != nil {
				continue
			}
			var x *recorded
			for k := range l.Nodes {
				n := &l.Nodes[k]
				said := names[l.Rank][n.number]
				if said.name == 0 {
					continue
				}
				id := numbered{process{l.Rank, l.pid}, n.number}.executableOf()
				if x = graphs[id]; x == nil {
					x = &recorded{capture: &Capture{File: said.file, Rank: g.set.Ranks[l.Rank], Tokens: Unknown, batch: Unknown}, launch: map[int64]int32{}, by: ByAnnotation}
					graphs[id], captures = x, append(captures, x.capture)
				}
				x.add(n, said.name)
			}
			if x != nil {
				of[l] = x
			}
		}
	}
	describe(g.set.Syms, captures)
	for _, c := range captures {
		for i := range c.places {
			c.places[i].Layer = 0 // names do not show which of them are layers
		}
	}
	for l, x := range of {
		l.Capture, l.Pairs = x.capture, x.pairs(l)
		g.exact = true
	}
}

// add adds a named node, once.
func (r *recorded) add(n *Node, name trace.Sym) {
	if _, known := r.launch[n.number]; known {
		return
	}
	c := r.capture
	frame := int32(len(c.Frames))
	for i := range c.Frames {
		if c.Frames[i].Name == name {
			frame = int32(i)
			break
		}
	}
	if int(frame) == len(c.Frames) {
		c.Frames = append(c.Frames, Frame{Around: none, Kind: profile.RangeFrame, Name: name})
	}
	r.launch[n.number] = int32(len(c.Launches))
	c.Launches = append(c.Launches, Captured{Name: n.Name, Work: n.Work, Shape: n.Shape, Frame: frame})
}

// namesOf returns the names of the nodes of a rank. A file without a rank counts only if there is a
// single rank: numbers of nodes are per process, so other ranks have them, too.
func (g *Graphs) namesOf(rank int) map[int64]named {
	names := map[int64]named{}
	for i := range g.set.Annotations {
		a := &g.set.Annotations[i]
		own := rank < len(g.set.Numbers) && a.Rank >= 0 && a.Rank == g.set.Numbers[rank]
		if !own && len(g.set.Ranks) > 1 {
			continue
		}
		if !own && a.Rank >= 0 && rank < len(g.set.Numbers) && g.set.Numbers[rank] >= 0 {
			continue // it is of another rank
		}
		for node, text := range a.Names {
			name := g.set.Syms.Intern(text)
			if before, ok := names[node]; ok && before.name != name {
				name = 0
			}
			names[node] = named{name, a.File}
		}
	}
	return names
}
