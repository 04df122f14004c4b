package operators

import (
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
)

// Reports returns the tables: operators by name, by the shapes of their inputs, and
// those that multiply matrices or compute attention; copies by what launched them; modules; and
// the kernels of graphs.
func (o *Operators) Reports() []*table.Table {
	return []*table.Table{o.nameReport(), o.shapeReport(), o.gemmReport(), o.attentionReport(), o.copyReport(), o.moduleReport(), o.graphs.Report(o.opt)}
}

func (o *Operators) nameReport() *table.Table {
	t := table.New("sgtrace.report.ops/v1", "Operators", o.Names, o.fields("operator", nil))
	switch {
	case o.frames == 0 && o.graphs != nil:
	case o.frames == 0 && o.export:
		t.Note("no operators were recorded: nsys records them as ranges with --pytorch=autograd-shapes-nvtx")
	case o.frames == 0:
		t.Note("no operators were recorded: torch.profiler records them with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]")
	case o.outside > 0:
		t.Note("no operator launched %s of GPU time: the rows in parentheses", table.InWords(o.outside))
	}
	profilewalk.NoteGraphs(t, o.whole)
	if o.graphs == nil && o.replayed && !o.export {
		t.Note("recordings of the capture of CUDA graphs, or of a pass without them, say which operators their kernels are of: --captures FOLDER")
	}
	return t
}

func (o *Operators) shapeReport() *table.Table {
	shapes := []table.Field[Row]{
		table.TextColumn("types", "data types of the inputs", func(r *Row) string { return r.Types }),
		table.TextColumn("shapes", "shapes of the inputs", func(r *Row) string { return r.Shapes }),
		table.TextColumn("causal", "whether attention is causal; empty for other operators", func(r *Row) string { return r.Mask.Causal.String() }),
		windowColumn(func(r *Row) profile.Mask { return r.Mask }),
	}
	shapes[0].Most, shapes[1].Most, shapes[2].Detail = maxTypes, maxShapes, true
	t := table.New("sgtrace.report.ops.shapes/v1", "Operators by the shapes of their inputs", o.Shapes, o.fields("operator", shapes))
	switch {
	case o.Shapes != nil || o.frames == 0:
	case o.export:
		t.Note("no shapes were recorded, from which FLOPs follow: nsys records them with --pytorch=autograd-shapes-nvtx, or emit_nvtx with record_shapes=True")
	default:
		t.Note("no shapes were recorded, from which FLOPs follow: torch.profiler records them with record_shapes=True")
	}
	return t
}

// maxShapes and maxTypes are the widths of these columns for people: the first three inputs are the
// tensors that matter.
const maxShapes, maxTypes = 60, 40

// fields returns the columns of rows of operators or modules, as what says; more follow the name.
func (o *Operators) fields(what string, more []table.Field[Row]) []table.Field[Row] {
	row := func(r *Row) *profilewalk.Row { return &r.Row }
	fields := append(profilewalk.RankFields(o.ByRank, row),
		profilewalk.ShareField("self GPU time as a share of that of all rows", func(r *Row) float64 { return r.Share }),
		table.NsColumn("self gpu", "time of kernels, copies, and fills that it launched itself", func(r *Row) int64 { return r.SelfGPU }),
		table.NsColumn("gpu", "self GPU time plus that of operators or modules called within it", func(r *Row) int64 { return r.GPU }),
		table.NsColumn("self cpu", "host time in it, excluding operators or modules called within it", func(r *Row) int64 { return r.SelfCPU }),
		table.NsColumn("cpu", "host time in it, including everything called within it", func(r *Row) int64 { return r.CPU }),
		table.CountColumn("calls", "number of calls", func(r *Row) int64 { return r.Calls }),
		table.CountColumn("launched", "number of kernels, copies, and fills that it launched itself", func(r *Row) int64 { return r.Work }))
	fields = append(fields, profilewalk.RanksFields(o.ByRank, o.ranks, row)...)
	return append(append(fields, profilewalk.NameField(what, row)), more...)
}

func (o *Operators) moduleReport() *table.Table {
	t := table.New("sgtrace.report.ops.modules/v1", "Modules", o.Modules, o.fields("module", nil))
	if o.Modules == nil && o.frames > 0 {
		t.Note("no modules were recorded: torch.profiler records them with with_stack=True")
	}
	return t
}

func (o *Operators) copyReport() *table.Table {
	row := func(r *CopyRow) *profilewalk.Row { return &r.Row }
	function := table.TextColumn("function", "innermost Python function outside of libraries around the call", func(r *CopyRow) string { return r.Function })
	function.Most = table.MaxName
	fields := append(profilewalk.RankFields(o.ByRank, row),
		profilewalk.ShareField("share of the GPU time of all operators", func(r *CopyRow) float64 { return r.Share }),
		table.NsColumn("gpu", "total duration", func(r *CopyRow) int64 { return r.Copied.Time }),
		table.CountColumn("copies", "number of copies or fills", func(r *CopyRow) int64 { return r.Copied.N }))
	fields = append(fields, profilewalk.CopiedFields(func(r *CopyRow) *profilewalk.Copied { return &r.Copied })...)
	fields = append(fields, table.TextColumn("operation", "kind of copy or fill", func(r *CopyRow) string { return r.Operation }),
		profilewalk.MemoryField(func(r *CopyRow) profile.CopyKind { return r.Kind }))
	fields = append(fields, profilewalk.RanksFields(o.ByRank, o.ranks, row)...)
	fields = append(fields, profilewalk.NameField("operator", row), function)
	return table.New("sgtrace.report.ops.copies/v1", "Copies and fills by what launched them", o.Copies, fields).Stay("size").Leave("operation", "ranks")
}

func (o *Operators) gemmReport() *table.Table {
	of := func(g *GEMM) *Computed { return &g.Computed }
	t := table.New("sgtrace.report.ops.gemms/v1", "Matrix multiplications", o.GEMMs, computedFields(o, of, []table.Field[GEMM]{
		table.CountColumn("b", "batch size: number of products in a call", func(g *GEMM) int64 { return g.B }),
		table.CountColumn("m", "rows of the left matrix", func(g *GEMM) int64 { return g.M }),
		table.CountColumn("n", "columns of the right matrix", func(g *GEMM) int64 { return g.N }),
		table.CountColumn("k", "columns of the left matrix", func(g *GEMM) int64 { return g.K }),
	}))
	notePeak(o, t, o.GEMMs, of)
	return t
}
