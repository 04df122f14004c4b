package operators

import (
	"math"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/walk"
)

// Reports returns the tables: operators by name, by the shapes of their inputs, and
// those that multiply matrices, and
// modules.
func (o *Operators) Reports() []*table.Table {
	return []*table.Table{o.nameReport(), o.shapeReport(), o.gemmReport(), o.moduleReport()}
}

func (o *Operators) nameReport() *table.Table {
	t := table.New("sgtrace.report.ops/v1", "Operators", o.Names, o.fields("operator", nil))
	switch {
	case o.frames == 0 && o.export:
		t.Note("no operators were recorded: nsys records them as ranges with --pytorch=autograd-shapes-nvtx")
	case o.frames == 0:
		t.Note("no operators were recorded: torch.profiler records them with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]")
	case o.outside > 0:
		t.Note("no operator launched %s of GPU time: the rows in parentheses", table.InWords(o.outside))
	}
	return t
}

func (o *Operators) shapeReport() *table.Table {
	shapes := []table.Field[Row]{
		table.TextColumn("types", "types of the inputs", func(r *Row) string { return r.Types }),
		table.TextColumn("shapes", "shapes of the inputs", func(r *Row) string { return r.Shapes }),
	}
	shapes[0].Most, shapes[1].Most = mostTypes, mostShapes
	t := table.New("sgtrace.report.ops.shapes/v1", "Operators by the shapes of their inputs", o.Shapes, o.fields("operator", shapes))
	switch {
	case o.Shapes != nil || o.frames == 0:
	case o.export:
		t.Note("no shapes were recorded: nsys records them with --pytorch=autograd-shapes-nvtx, or emit_nvtx with record_shapes=True")
	default:
		t.Note("no shapes were recorded: torch.profiler records them with record_shapes=True")
	}
	return t
}

// mostShapes and mostTypes are how wide these are for people: the first three inputs are the
// tensors that matter.
const mostShapes, mostTypes = 60, 40

// fields are the columns of rows that what names; more follow the name.
func (o *Operators) fields(what string, more []table.Field[Row]) []table.Field[Row] {
	row := func(r *Row) *walk.Row { return &r.Row }
	fields := append(walk.RankFields(o.ByRank, row),
		walk.ShareField("part of the GPU time of all rows, of their own", func(r *Row) float64 { return r.Share }),
		table.NsColumn("self gpu", "kernels, copies, and fills that it launched itself", func(r *Row) int64 { return r.SelfGPU }),
		table.NsColumn("gpu", "the same, and those of operators in it", func(r *Row) int64 { return r.GPU }),
		table.NsColumn("self cpu", "time of threads in it and in no operator within", func(r *Row) int64 { return r.SelfCPU }),
		table.NsColumn("cpu", "time of threads in it", func(r *Row) int64 { return r.CPU }),
		table.CountColumn("calls", "how many times it ran", func(r *Row) int64 { return r.Calls }),
		table.CountColumn("launched", "kernels, copies, and fills that it launched itself", func(r *Row) int64 { return r.Work }))
	fields = append(fields, walk.RanksFields(o.ByRank, o.ranks, row)...)
	return append(append(fields, walk.NameField(what, row)), more...)
}

func (o *Operators) moduleReport() *table.Table {
	t := table.New("sgtrace.report.ops.modules/v1", "Modules", o.Modules, o.fields("module", nil))
	if o.Modules == nil && o.frames > 0 {
		t.Note("no modules were recorded: torch.profiler records them with with_stack=True")
	}
	return t
}

func (o *Operators) gemmReport() *table.Table {
	fields := append(walk.RankFields(o.ByRank, func(g *GEMM) *walk.Row { return &g.Row.Row }),
		table.NsColumn("gpu", "what it launched, and operators in it", func(g *GEMM) int64 { return g.GPU }),
		table.CountColumn("calls", "how many launched work", func(g *GEMM) int64 { return g.Working }),
		table.CountColumn("b", "how many products in a call", func(g *GEMM) int64 { return g.B }),
		table.CountColumn("m", "rows of the left matrix", func(g *GEMM) int64 { return g.M }),
		table.CountColumn("n", "columns of the right matrix", func(g *GEMM) int64 { return g.N }),
		table.CountColumn("k", "columns of the left matrix", func(g *GEMM) int64 { return g.K }),
		table.NumberColumn("gflop", "in one call, in billions of floating-point operations", func(g *GEMM) float64 { return g.FLOPs / float64(g.Working) / 1e9 }),
		table.NumberColumn("tflops", "achieved, in 10^12 operations per second of GPU time", (*GEMM).Achieved),
		table.ShareColumn("of peak", "tflops as part of what the GPU is made for", func(g *GEMM) float64 { return g.Achieved() / g.Peak() }),
		table.NumberColumn("peak", "what the GPU is made for, in TFLOP/s", (*GEMM).Peak),
		table.TextColumn("gpu name", "what the GPU is called", func(g *GEMM) string { return g.GPUName }),
		table.TextColumn("type", "of the matrices", func(g *GEMM) string { return g.Type }),
		table.TextColumn("operator", "name of the operator", func(g *GEMM) string { return g.Name }))
	for i := range fields {
		fields[i].Detail = fields[i].Name == "peak" || fields[i].Name == "gpu name"
	}
	t := table.New("sgtrace.report.ops.gemms/v1", "Matrix multiplications", o.GEMMs, fields)
	if len(o.GEMMs) > 0 {
		o.notePeak(t)
	}
	return t
}

// notePeak says what the peak is of, or why there is none.
func (o *Operators) notePeak(t *table.Table) {
	name, unknown := o.GEMMs[0].GPUName, 0
	for i := range o.GEMMs {
		if math.IsNaN(o.GEMMs[i].Peak()) {
			unknown++
		}
	}
	switch {
	case unknown < len(o.GEMMs) && name != "" && !o.ByRank:
		t.Note("peak of %s without sparsity, from its data sheet", name)
	case unknown == len(o.GEMMs) && name == "":
		t.Note("no peak: the files do not name the GPU, or name several")
	case unknown == len(o.GEMMs):
		t.Note("no peak of %s is known for these types", name)
	}
}
