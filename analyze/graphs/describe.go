package graphs

import (
	"strings"

	"github.com/sgtrace/sgtrace/analyze/host"
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
	names := host.NewNames(syms)
	modules := map[trace.Sym]trace.Sym{} // by name of a frame: without the prefix; 0 is none
	classes := map[trace.Sym]string{}
	instances, launches := map[string]map[trace.Sym]bool{}, map[string]int{}
	all := 0
	moduleOf := func(f *Frame) trace.Sym {
		switch f.Kind {
		case profile.OperatorFrame:
			return 0
		case profile.RangeFrame:
			classes[f.Name] = strings.TrimRight(syms.Name(f.Name), "0123456789")
			return f.Name
		}
		m, ok := modules[f.Name]
		if !ok {
			if name, is := strings.CutPrefix(syms.Name(f.Name), profile.ModulePrefix); is {
				m = syms.Intern(name)
				classes[m] = profile.ModuleClass(syms.Name(f.Name))
			}
			modules[f.Name] = m
		}
		return m
	}
	for _, c := range captures {
		all += len(c.Launches)
		for i := range c.Launches {
			seen := map[string]bool{}
			for at := c.Launches[i].Frame; at != none; at = c.Frames[at].Around {
				m := moduleOf(&c.Frames[at])
				if m == 0 {
					continue
				}
				class := classes[m]
				if instances[class] == nil {
					instances[class] = map[trace.Sym]bool{}
				}
				instances[class][m] = true
				if !seen[class] {
					seen[class] = true
					launches[class]++
				}
			}
		}
	}
	isLayer := func(m trace.Sym) bool {
		class := classes[m]
		return len(instances[class]) > 1 && float64(launches[class]) >= layerShare*float64(all)
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
				if f.Kind == profile.PythonFrame && p.Source == 0 && names.Of(host.PythonFrame, f.Name).Own && !strings.HasPrefix(syms.Name(f.Name), "<") {
					p.Source = f.Name
				}
				if m := moduleOf(f); m != 0 {
					if p.Module == 0 {
						p.Module, c.modules[i] = m, at
					}
					if isLayer(m) {
						p.Layer = m // the outermost one stays
					}
				}
			}
		}
	}
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
