package operators

import (
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/walk"
)

// Reports returns the tables: operators by name, and by the shapes of their inputs.
func (o *Operators) Reports() []*table.Table {
	return []*table.Table{o.nameReport(), o.shapeReport()}
}

func (o *Operators) nameReport() *table.Table {
	t := table.New("sgtrace.report.ops/v1", "Operators", o.Names, o.fields(nil))
	switch {
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
	t := table.New("sgtrace.report.ops.shapes/v1", "Operators by the shapes of their inputs", o.Shapes, o.fields(shapes))
	if o.Shapes == nil && o.frames > 0 {
		t.Note("no shapes were recorded: torch.profiler records them with record_shapes=True")
	}
	return t
}

// mostShapes and mostTypes are how wide these are for people: the first three inputs are the
// tensors that matter.
const mostShapes, mostTypes = 60, 40

// fields are the columns of both tables; more follow the name.
func (o *Operators) fields(more []table.Field[Row]) []table.Field[Row] {
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
	return append(append(fields, walk.NameField("operator", row)), more...)
}
