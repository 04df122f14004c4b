package collective

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/table"
)

// Reports returns the tables of collectives, in the order in which they are read;
// none if there are no kernels of any.
func (c *Collectives) Reports() []*table.Table {
	var out []*table.Table
	if len(c.Ranks) > 0 {
		out = append(out, c.RankReport(), c.WaitReport())
	}
	if len(c.Kinds) > 0 {
		out = append(out, c.KindReport())
	}
	if len(c.ByStep) > 0 {
		out = append(out, c.StepReport())
	}
	if len(c.Parts) > 0 {
		out = append(out, c.PartReport())
	}
	if len(c.AllToAlls) > 0 {
		out = append(out, c.AllToAllReport())
	}
	return out
}

// RankReport makes a table of who comes late to collectives, and who waits.
func (c *Collectives) RankReport() *table.Table {
	type row = Rank
	count := func(name, doc string, of func(*row) int) table.Field[row] {
		return table.Field[row]{Column: table.Column{Name: name, Unit: table.Count, Doc: doc}, Cell: func(r *row) table.Cell { return table.Cell{N: int64(of(r))} }}
	}
	time := func(name, scale, doc string, of func(*row) int64) table.Field[row] {
		return table.Field[row]{Column: table.Column{Name: name, Unit: table.Duration, Doc: doc, Scale: scale}, Cell: func(r *row) table.Cell { return table.Cell{N: of(r), Unknown: r.Sync == 0} }}
	}
	part := func(name, doc string, part, whole func(*row) int64) table.Field[row] {
		return table.Field[row]{Column: table.Column{Name: name, Unit: table.Share, Doc: doc}, Cell: func(r *row) table.Cell { return table.ShareCell(part(r), whole(r)) }}
	}
	last := func(r *row) int64 { return int64(r.Last) }
	sync := func(r *row) int64 { return int64(r.Sync) }
	took := func(r *row) int64 { return r.Took }
	wait := func(r *row) int64 { return r.Wait }
	all := count("all", "collectives in which other ranks were seen, too", func(r *row) int { return r.SyncPoints })
	all.Detail = true
	r := table.New("sgtrace.report.collectives.ranks/v1", "Collectives by rank", c.Ranks, []table.Field[row]{
		{Column: table.Column{Name: "rank", Doc: "rank"}, Cell: func(r *row) table.Cell { return table.TextCell(r.Rank) }},
		all,
		count("n", "collectives at which ranks wait for the last one, and other ranks were seen, too", func(r *row) int { return r.Sync }),
		count("last", "to how many the rank came after all others", func(r *row) int { return r.Last }),
		part("last share", "last of n", last, sync),
		time("late p50", "late", "when it came, after the median (nearest rank) of the ranks: median, nearest rank; negative is before", func(r *row) int64 { return r.LateP50 }),
		time("late p99", "late", "when it came, after the median (nearest rank) of the ranks: 99th percentile, nearest rank", func(r *row) int64 { return r.LateP99 }),
		time("took", "took", "sum of the durations of its kernels", took),
		time("wait", "took", "of took: until the last rank came", wait),
		part("wait share", "wait of took", wait, took),
		time("transfer", "took", "of took: the shortest duration of all ranks, that of the rank that waited least", func(r *row) int64 { return r.Transfer }),
		time("blame", "took", "how long all others together waited for it where it came last", func(r *row) int64 { return r.Blame }),
	})
	r.Stay("late p50", "wait share", "blame").Leave("last", "late p99", "took", "transfer")
	c.noteClocks(r)
	return r
}

// noteClocks tells what the numbers rest on.
func (c *Collectives) noteClocks(r *table.Table) {
	if n := c.Counts.byDuration; n > 0 {
		r.Note("at %d of %d collectives, the clocks of the ranks are not accurate enough: arrival times come from kernel durations, because ranks leave together", n, c.Counts.Sync)
	}
	if n := c.Counts.partial; n > 0 {
		r.Note("at %d of %d collectives, not all ranks of the group were seen: the last rank is the last of those seen", n, c.Counts.Sync)
	}
	if n := c.Counts.all - c.Counts.Sync; n > 0 {
		r.Note("at %d of %d collectives, ranks do not wait for each other, or it is unknown whether they do, as in a broadcast or a dispatch: only their transfer counts, by kind", n, c.Counts.all)
	}
	if n := c.Counts.impossible; n > 0 {
		r.Note("left out: %d of %d collectives, which a rank left before the last one arrived, according to their clocks", n, n+c.Counts.all)
	}
	c.noteAlone(r)
}

// A waitRow is an element of [Collectives.Waits].
type waitRow struct {
	rank, last string
	wait, all  int64
}

// WaitReport makes a table of who waited for whom, the longest wait first.
func (c *Collectives) WaitReport() *table.Table {
	var rows []waitRow
	all := int64(0)
	for _, w := range c.Waits {
		rows = append(rows, waitRow{rank: c.Ranks[w.Rank].Rank, last: c.Ranks[w.Last].Rank, wait: w.Ns})
		all = distribution.AddTimes(all, w.Ns)
	}
	for i := range rows {
		rows[i].all = all
	}
	slices.SortStableFunc(rows, func(a, b waitRow) int { return cmp.Compare(b.wait, a.wait) })
	return table.New("sgtrace.report.collectives.waits/v1", "Who waits for whom in collectives", rows, []table.Field[waitRow]{
		{Column: table.Column{Name: "rank", Doc: "rank that waits"}, Cell: func(r *waitRow) table.Cell { return table.TextCell(r.rank) }},
		{Column: table.Column{Name: "for", Doc: "rank that came last"}, Cell: func(r *waitRow) table.Cell { return table.TextCell(r.last) }},
		{Column: table.Column{Name: "wait", Unit: table.Duration, Doc: "sum over the collectives to which that rank came after all others"}, Cell: func(r *waitRow) table.Cell { return table.Cell{N: r.wait} }},
		{Column: table.Column{Name: "share", Unit: table.Share, Doc: "part of all such waits"}, Cell: func(r *waitRow) table.Cell { return table.ShareCell(r.wait, r.all) }},
	})
}
