package operators

import (
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Modules are summed by class as operators are summed by name, whatever Python
// functions and operators surround them.
func TestModulesMomentByMoment(t *testing.T) {
	modules := map[string]string{"aten::to": "nn.Module: Linear_0", "aten::mm": "nn.Module: Linear_12", "aten::linear": "nn.Module: Block"}
	classes := map[string]string{"nn.Module: Linear_0": "Linear", "nn.Module: Linear_12": "Linear", "nn.Module: Block": "Block", "(no operator)": "(no module)"}
	rows := 0
	for seed := range uint64(40) {
		p := &playground{r: rand.New(rand.NewPCG(seed, 3)), syms: trace.NewSymbols(), counted: profile.PythonFrame}
		p.fill(0, 1, 1, 400, 5)
		for i := range p.stream.FrameRows {
			f := &p.stream.FrameRows[i]
			f.Kind, f.Shapes, f.Name = profile.PythonFrame, 0, p.syms.Intern(modules[p.syms.Name(f.Name)])
		}
		if len(p.stream.FrameRows) == 0 {
			continue // there is no table without modules
		}
		stream := p.stream
		for tid := range int64(2) {
			function, operator := profile.Frame{Event: p.event(0, 0, 500, "model.py(3): forward"), TID: tid}, profile.Frame{Event: p.event(0, 1, 500, "aten::to"), TID: tid}
			function.Kind = profile.PythonFrame
			stream.FrameRows = append(stream.FrameRows, function, operator)
		}
		o := Sum(testset.SetOf(p.syms, []string{"TP0"}, stream.Shuffled(p.r)), profilewalk.Options{})
		rows += compare(t, seed, "modules", o.Modules, p.expected(func(f *profile.Frame) string {
			if class, ok := classes[p.syms.Name(f.Name)]; ok {
				return class
			}
			return p.syms.Name(f.Name)
		}))
	}
	if rows < 100 {
		t.Errorf("%d rows are too few to tell", rows)
	}
}
