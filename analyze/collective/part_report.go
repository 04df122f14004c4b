package collective

import (
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// StepReport makes a table of who comes late and who waits, by kind of step: prefill and
// decode are two regimes.
func (c *Collectives) StepReport() *table.Table {
	type row = StepRank
	ns := func(name, doc string, of func(*row) int64) table.Field[row] {
		f := table.NsColumn(name, doc, of)
		f.Column.Scale = "took"
		return f
	}
	return table.New("sgtrace.report.collectives.steps/v1", "Collectives by kind of step and rank", c.ByStep, []table.Field[row]{
		table.TextColumn("kind", "of the step whose calls asked for the collectives: prefill (EXTEND), decode, or other: mixtures, and outside of steps", func(r *row) string { return walk.StepKinds[r.Kind] }),
		table.TextColumn("rank", "rank", func(r *row) string { return r.Rank.Rank }),
		table.CountColumn("n", "collectives at which ranks wait for the last one, and other ranks were seen, too", func(r *row) int64 { return int64(r.Sync) }),
		table.CountColumn("last", "to how many the rank came after all others", func(r *row) int64 { return int64(r.Last) }),
		ns("took", "sum of the durations of its kernels", func(r *row) int64 { return r.Took }),
		ns("wait", "of took: until the last rank came", func(r *row) int64 { return r.Wait }),
		{Column: table.Column{Name: "wait share", Unit: table.Share, Doc: "wait of took"}, Cell: func(r *row) table.Cell { return table.ShareCell(r.Wait, r.Took) }},
		ns("transfer", "of took: the shortest duration of all ranks", func(r *row) int64 { return r.Transfer }),
		ns("blame", "how long all others together waited for it where it came last", func(r *row) int64 { return r.Blame }),
	}).Stay("wait share", "blame").Leave("last", "transfer")
}

// PartReport makes a table of the kernels of collectives on each rank, whether others were
// seen or not.
func (c *Collectives) PartReport() *table.Table {
	type row = PartKind
	ns := func(name, doc string, of func(*row) int64) table.Field[row] {
		f := table.NsColumn(name, doc, of)
		f.Column.Scale = "kernel"
		return f
	}
	bytes := table.Field[row]{Column: table.Column{Name: "size", Unit: table.Bytes, Doc: "what a rank has where each has all, all parts together where each has one; as in nccl-tests"},
		Cell: func(r *row) table.Cell { return table.NumberCell(r.Bytes) }}
	busbw := table.Field[row]{Column: table.Column{Name: "busbw most", Unit: table.Number, Doc: "bus bandwidth of the shortest kernel, GB/s as nccl-tests define it: none was faster"},
		Cell: func(r *row) table.Cell { return table.Cell{Share: r.BusBandwidth(), Unknown: r.BusBandwidth() == 0} }}
	name := table.TextColumn("collective", "operation as the producer calls it; where it tells none, as in CUDA graphs, the name of the kernel without ncclDevKernel_", (*row).Name)
	name.Column.Most = 40
	fields := []table.Field[row]{
		table.TextColumn("rank", "rank, or process that is none", func(r *row) string { return r.Rank }),
		name,
		table.TextColumn("dtype", "type of the elements", func(r *row) string { return r.Dtype }),
		bytes,
		table.CountColumn("ranks", "ranks of the group", func(r *row) int64 { return int64(r.GroupSize) }),
		table.CountColumn("n", "kernels", func(r *row) int64 { return int64(r.Took.N) }),
		table.CountColumn("alone", "of n: no other rank was seen in it", func(r *row) int64 { return int64(r.Alone) }),
		table.NsColumn("took", "sum of their durations", func(r *row) int64 { return r.Took.Total }),
		ns("min", "shortest", func(r *row) int64 { return r.Took.Min }),
		ns("p50", "median, nearest rank", func(r *row) int64 { return r.Took.P50 }),
		ns("max", "longest", func(r *row) int64 { return r.Took.Max }),
		table.CountColumn("long", "of alone: took four times the median or more, and 100 us longer", func(r *row) int64 { return int64(r.Long) }),
		table.NsColumn("long wait", "how much longer than the median those took: they waited for another rank", func(r *row) int64 { return r.LongWait }),
		table.NsColumn("wait at most", "how much longer than the shortest kernel all alone took: more they cannot have waited", func(r *row) int64 { return r.MostWait }),
		busbw,
	}
	r := table.New("sgtrace.report.collectives.parts/v1", "Kernels of collectives by rank and kind", c.Parts, fields)
	r.Stay("took", "p50").Leave("ranks", "min", "max", "alone")
	for _, sentence := range c.longWaits() {
		r.Note("%s", sentence.Text)
	}
	return r
}

// AllToAllReport makes a table of what ranks send to each of their group in all-to-alls.
func (c *Collectives) AllToAllReport() *table.Table {
	type row = AllToAll
	return table.New("sgtrace.report.collectives.alltoall/v1", "Who sends how much to whom in all-to-alls", c.AllToAlls, []table.Field[row]{
		table.TextColumn("rank", "rank that sends", func(r *row) string { return r.Rank }),
		table.TextColumn("group", "process group, or communicator", func(r *row) string { return r.Group }),
		table.CountColumn("to", "number, in the group, of the rank that receives", func(r *row) int64 { return int64(r.To) }),
		table.CountColumn("n", "all-to-alls", func(r *row) int64 { return int64(r.N) }),
		{Column: table.Column{Name: "bytes", Unit: table.Bytes, Doc: "sum; equal parts where the producer tells no other"}, Cell: func(r *row) table.Cell { return table.NumberCell(r.Bytes) }},
		{Column: table.Column{Name: "of mean", Unit: table.Factor, Doc: "what the receiver gets from all ranks in the files, divided by the mean over the receivers of the group"},
			Cell: func(r *row) table.Cell { return table.RealCell(r.Imbalance) }},
	}).Stay("of mean")
}

// noteAlone tells how many kernels of collectives no other rank was found for.
func (c *Collectives) noteAlone(r *table.Table) {
	if n := c.Counts.alone; n > 0 {
		r.Note("not matched: %d of %d kernels of collectives, %s of %s; collectives.parts lists them", n, c.Counts.kernels, words.Nearly(c.Counts.ranAlone), words.Nearly(c.Counts.ran))
	}
	if n := c.Counts.refused; n > 0 {
		r.Note("left out: %d of %d collective kernels, whose ranks cannot have met according to their clocks", n, c.Counts.kernels)
	}
}
