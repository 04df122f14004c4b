package graphs

import (
	"strings"

	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Place is what a capture says of one launch. Symbols are 0 where it says nothing.
type Place struct {
	Operator      trace.Sym // the innermost one
	Shapes, Types trace.Sym // of its inputs
	Module        trace.Sym // the innermost one: "Qwen3MLP_7"; where there are ranges, it may be one of these
	Layer         trace.Sym // the module that is a layer of the model: "Qwen3DecoderLayer_7"
	Source        trace.Sym // the innermost function that is of no library: "vllm/model_executor/layers/linear.py(410): forward"
}

// layerShare is the part of launches that the modules of one class have if they are the layers of a
// model. Others come in numbers, too, such as the two halves of an embedding.
const layerShare = 0.1

// describe finds out what captures of one file say of their launches.
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

// moduleNames are the modules that are around launches.
type moduleNames struct {
	syms      *trace.Symbols
	names     map[trace.Sym]trace.Sym // by name of a frame: without the prefix; 0 is none
	classes   map[trace.Sym]string
	instances map[string]map[trace.Sym]bool // by class
	launches  map[string]int                // by class
	all       int                           // launches
}

// of returns the module that a frame is of; 0 is none.
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
	for from := 0; from < len(list); {
		to := from
		for to < len(list) && list[to].File == list[from].File {
			to++
		}
		describe(g.set.Syms, list[from:to])
		from = to
	}
}

// Place returns what a capture says of a node; false if it is of no launch.
func (l *Launch) Place(node int) (Place, bool) {
	if l.Of(node) == nil {
		return Place{}, false
	}
	p := l.Capture.places[l.Pairs.Launch[node]]
	p.Shapes = l.Capture.sized(p.Shapes)
	if l.Pairs.ModuleOnly(node) {
		p = Place{Module: p.Module, Layer: p.Layer}
	}
	return p, true
}
