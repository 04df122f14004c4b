package collective

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/table"
)

// KindReport makes a table of collectives by operation, type, size and group.
func (c *Collectives) KindReport() *table.Table {
	var columns kindColumns
	fields := append(columns.what(c.Kinds), columns.times()...)
	fields = append(fields,
		columns.text("last", "rank that came last most often", func(k *Kind) string { return k.Last }),
		table.Field[Kind]{Column: table.Column{Name: "last share", Unit: table.Share, Doc: "at how many of those where ranks wait it did"},
			Cell: func(k *Kind) table.Cell { return table.ShareCell(int64(k.LastN), int64(k.Sync)) }},
		table.Field[Kind]{Column: table.Column{Name: "busbw", Unit: table.Number, Doc: "bus bandwidth at the median transfer of those that were seen on all ranks, GB/s as nccl-tests define it"},
			Cell: func(k *Kind) table.Cell {
				return table.Cell{Share: k.BusBandwidth(), Unknown: k.BusBandwidth() == 0}
			}},
	)
	r := table.New("sgtrace.report.collectives.kinds/v1", "Collectives by kind", c.Kinds, fields)
	r.Stay("took", "wait p50").Leave("first rank", "ranks", "transfer p99", "wait p99", "last share")
	if slices.ContainsFunc(c.Kinds, func(k Kind) bool { return k.BusBandwidth() > 0 }) {
		r.Note("busbw is the bus bandwidth in GB/s, as nccl-tests define it, of the median transfer")
	}
	c.notePartial(r)
	return r
}

// notePartial tells where transfer is no more than a bound.
func (c *Collectives) notePartial(r *table.Table) {
	all, partial := 0, 0
	for i := range c.Kinds {
		all += c.Kinds[i].N
		partial += c.Kinds[i].N - c.Kinds[i].Whole
	}
	if partial > 0 {
		r.Note("at %d of %d collectives, not all ranks of the group were seen: a missing rank may have arrived last, so their transfer time is an upper bound, and they have no busbw", partial, all)
	}
}

// kindColumns makes columns of kinds of collectives.
type kindColumns struct{}

func (kindColumns) text(name, doc string, of func(*Kind) string) table.Field[Kind] {
	return table.Field[Kind]{Column: table.Column{Name: name, Doc: doc}, Cell: func(k *Kind) table.Cell { return table.TextCell(of(k)) }}
}

func (kindColumns) count(name, doc string, of func(*Kind) int64) table.Field[Kind] {
	return table.Field[Kind]{Column: table.Column{Name: name, Unit: table.Count, Doc: doc}, Cell: func(k *Kind) table.Cell { return table.NumberCell(of(k)) }}
}

// what says which collectives, of whom, and how many.
func (c kindColumns) what(kinds []Kind) []table.Field[Kind] {
	name := c.text("collective", "operation as the producer calls it; where it tells none, as in CUDA graphs, the name of the kernel without ncclDevKernel_", (*Kind).Name)
	name.Most = 40
	kernel := c.text("kernel", "name of the kernel without types", func(k *Kind) string { return k.Kernel })
	group := c.text("group", "process group, or communicator", func(k *Kind) string { return k.Group })
	first := c.text("first rank", "first rank of the group in this report: replicas call their groups the same", func(k *Kind) string { return k.First })
	seen := c.count("seen", "how many of the ranks were seen at one, at most", func(k *Kind) int64 { return int64(k.Ranks) })
	sync := c.count("sync", "at how many of them ranks wait for the last one", func(k *Kind) int64 { return int64(k.Sync) })
	kernel.Detail, seen.Detail, sync.Detail = true, true, true
	// People need one of them to tell groups apart.
	group.Detail = slices.ContainsFunc(kinds, func(k Kind) bool { return k.First != kinds[0].First })
	first.Detail = !group.Detail
	return []table.Field[Kind]{
		name, kernel,
		c.text("dtype", "type of the elements", func(k *Kind) string { return k.Dtype }),
		{Column: table.Column{Name: "size", Unit: table.Bytes, Doc: "what a rank has where each has all, all parts together where each has one; as in nccl-tests"},
			Cell: func(k *Kind) table.Cell { return table.NumberCell(k.Bytes) }},
		group, first,
		c.count("ranks", "ranks of the group", func(k *Kind) int64 { return int64(k.GroupSize) }),
		seen,
		c.count("n", "collectives that several ranks were seen in", func(k *Kind) int64 { return int64(k.N) }),
		sync,
	}
}

// times says how long they took, moved data, and waited.
func (kindColumns) times() []table.Field[Kind] {
	time := func(name, doc string, of func(*Kind) (s *distribution.Summary, ns int64)) table.Field[Kind] {
		return table.Field[Kind]{Column: table.Column{Name: name, Unit: table.Duration, Doc: doc, Scale: "time"}, Cell: func(k *Kind) table.Cell {
			s, ns := of(k)
			return table.Cell{N: ns, Unknown: s.N == 0}
		}}
	}
	return []table.Field[Kind]{
		{Column: table.Column{Name: "took", Unit: table.Duration, Doc: "sum of the durations on all ranks"}, Cell: func(k *Kind) table.Cell { return table.Cell{N: k.Took} }},
		time("transfer p50", "shortest duration of all ranks, that of the rank that waited least: median, nearest rank",
			func(k *Kind) (*distribution.Summary, int64) { return &k.Transfer, k.Transfer.P50 }),
		time("transfer p99", "shortest duration of all ranks: 99th percentile, nearest rank",
			func(k *Kind) (*distribution.Summary, int64) { return &k.Transfer, k.Transfer.P99 }),
		time("wait p50", "until the last rank came, over all other ranks: median, nearest rank",
			func(k *Kind) (*distribution.Summary, int64) { return &k.Wait, k.Wait.P50 }),
		time("wait p99", "until the last rank came, over all other ranks: 99th percentile, nearest rank",
			func(k *Kind) (*distribution.Summary, int64) { return &k.Wait, k.Wait.P99 }),
	}
}
