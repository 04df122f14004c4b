package collective

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// Reports returns the tables of collectives in reading order; none if there are no collective kernels.
func (c *Collectives) Reports() []*table.Table {
	var out []*table.Table
	if len(c.Ranks) > 0 {
		out = append(out, c.rankReport(), c.waitReport())
	}
	if len(c.Kinds) > 0 {
		out = append(out, c.kindReport())
	}
	if len(c.ByStep) > 0 && !c.OfHosts {
		out = append(out, c.stepReport())
	}
	if len(c.Parts) > 0 {
		out = append(out, c.partReport())
	}
	if len(c.AllToAlls) > 0 {
		out = append(out, c.allToAllReport())
	}
	return out
}

// schema returns the schema of a table. Tables of host collectives have their own, as a rank
// may be late on its device but not on its host.
func (c *Collectives) schema(table string) string {
	if c.OfHosts {
		return "sgtrace.report.gloo." + table + "/v1"
	}
	return "sgtrace.report.collectives." + table + "/v1"
}

// title returns the title of a table, adapted to host collectives.
func (c *Collectives) title(of string) string {
	if !c.OfHosts {
		return of
	}
	of = strings.Replace(strings.Replace(of, "Kernels", "Calls", 1), "collectives", "gloo collectives", 1)
	return strings.Replace(of, "Collectives", "Gloo collectives", 1)
}

// rankReport returns a table of which ranks come late to collectives, and which wait.
func (c *Collectives) rankReport() *table.Table {
	type row = Rank
	count := func(name, doc string, of func(*row) int) table.Field[row] {
		return table.CountColumn(name, doc, func(r *row) int64 { return int64(of(r)) })
	}
	time := func(name, scale, doc string, of func(*row) int64) table.Field[row] {
		return table.Field[row]{Column: table.Column{Name: name, Unit: table.Duration, Doc: doc, Scale: scale}, Cell: func(r *row) table.Cell { return table.Cell{N: of(r), Unknown: r.Sync == 0} }}
	}
	part := func(name, doc string, part, whole func(*row) int64) table.Field[row] {
		return table.PartColumn(name, doc, func(r *row) (int64, int64) { return part(r), whole(r) })
	}
	last := func(r *row) int64 { return int64(r.Last) }
	sync := func(r *row) int64 { return int64(r.Sync) }
	took := func(r *row) int64 { return r.Took }
	wait := func(r *row) int64 { return r.Wait }
	all := count("all", "collectives in which other ranks were seen, too", func(r *row) int { return r.SyncPoints }).InDetail()
	r := table.New(c.schema("ranks"), c.title("Collectives by rank"), c.Ranks, []table.Field[row]{
		table.TextColumn("rank", "rank", func(r *row) string { return r.Rank }),
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

// noteClocks adds notes on what the numbers are based on.
func (c *Collectives) noteClocks(r *table.Table) {
	if n := c.Counts.blurred; n > 0 {
		r.Note("at %d of %d collectives, only how long they took was recorded: arrival times come from that, because ranks leave together", n, c.Counts.Sync)
	}
	if n := c.Counts.byDuration; n > 0 {
		r.Note("at %d of %d collectives, the clocks of the ranks are not accurate enough: arrival times come from kernel durations, because ranks leave together", n, c.Counts.Sync)
	}
	if n := c.Counts.partial; n > 0 {
		r.Note("at %d of %d collectives, not all ranks of the group were seen: the last rank is the last of those seen", n, c.Counts.Sync)
	}
	if n := c.Counts.begin; n > 0 {
		r.Note("left out: %s, with which a rank's recording begins: the others wait for its profiler, %s in all", words.Counted(n, "collective"), words.Nearly(c.Counts.beginWait))
	}
	if n := c.Counts.all - c.Counts.Sync - c.Counts.begin; n > 0 {
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

// waitReport returns a table of who waited for whom, the longest wait first.
func (c *Collectives) waitReport() *table.Table {
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
	return table.New(c.schema("waits"), c.title("Who waits for whom in collectives"), rows, []table.Field[waitRow]{
		table.TextColumn("rank", "rank that waits", func(r *waitRow) string { return r.rank }),
		table.TextColumn("for", "rank that came last", func(r *waitRow) string { return r.last }),
		table.NsColumn("wait", "sum over the collectives to which that rank came after all others", func(r *waitRow) int64 { return r.wait }),
		table.PartColumn("share", "part of all such waits", func(r *waitRow) (int64, int64) { return r.wait, r.all }),
	})
}

// kindReport returns a table of collectives by operation, type, size, and group.
func (c *Collectives) kindReport() *table.Table {
	var columns kindColumns
	fields := append(columns.what(c.Kinds), columns.times()...)
	fields = append(fields,
		columns.text("last", "rank that came last most often", func(k *Kind) string { return k.Last }),
		table.PartColumn("last share", "at how many of those where ranks wait it did", func(k *Kind) (int64, int64) { return int64(k.LastN), int64(k.Sync) }),
		table.Field[Kind]{Column: table.Column{Name: "busbw", Unit: table.Number, Doc: "bus bandwidth at the median transfer of those that were seen on all ranks, GB/s as nccl-tests define it"},
			Cell: func(k *Kind) table.Cell {
				return table.Cell{Share: k.BusBandwidth(), Unknown: k.BusBandwidth() == 0}
			}},
	)
	r := table.New(c.schema("kinds"), c.title("Collectives by kind"), c.Kinds, fields)
	r.Stay("took", "wait p50").Leave("first rank", "ranks", "transfer p99", "wait p99", "last share")
	if slices.ContainsFunc(c.Kinds, func(k Kind) bool { return k.BusBandwidth() > 0 }) {
		r.Note("busbw is the bus bandwidth in GB/s, as nccl-tests define it, of the median transfer")
	}
	c.notePartial(r)
	return r
}

// notePartial adds a note if transfer times are only upper bounds.
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
	return table.TextColumn(name, doc, of)
}

func (kindColumns) count(name, doc string, of func(*Kind) int64) table.Field[Kind] {
	return table.CountColumn(name, doc, of)
}

// what returns the columns that identify collectives, and their number.
func (c kindColumns) what(kinds []Kind) []table.Field[Kind] {
	name := c.text("collective", "operation as the producer calls it; where it tells none, as in CUDA graphs, the name of the kernel without ncclDevKernel_", (*Kind).Name)
	name.Most = 40
	kernel := c.text("kernel", "name of the kernel without types", func(k *Kind) string { return k.Kernel })
	group := c.text("group", "process group, or communicator", func(k *Kind) string { return k.Group })
	first := c.text("first rank", "first rank of the group in this report: replicas call their groups the same", func(k *Kind) string { return k.First })
	seen := c.count("seen", "how many of the ranks were seen at one, at most", func(k *Kind) int64 { return int64(k.Ranks) })
	sync := c.count("sync", "at how many of them ranks wait for the last one", func(k *Kind) int64 { return int64(k.Sync) })
	kernel.Detail, seen.Detail, sync.Detail = true, true, true
	// People need only one of them to tell groups apart.
	group.Detail = slices.ContainsFunc(kinds, func(k Kind) bool { return k.First != kinds[0].First })
	first.Detail = !group.Detail
	return []table.Field[Kind]{
		name, kernel,
		c.text("dtype", "type of the elements", func(k *Kind) string { return k.Dtype }),
		table.BytesColumn("size", "what a rank has where each has all, all parts together where each has one; as in nccl-tests", func(k *Kind) int64 { return k.Bytes }),
		group, first,
		c.count("ranks", "ranks of the group", func(k *Kind) int64 { return int64(k.GroupSize) }),
		seen,
		c.count("n", "collectives that several ranks were seen in", func(k *Kind) int64 { return int64(k.N) }),
		sync,
	}
}

// times returns the columns of how long collectives took, transferred data, and waited.
func (kindColumns) times() []table.Field[Kind] {
	time := func(name, doc string, of func(*Kind) (s *distribution.Summary, ns int64)) table.Field[Kind] {
		return table.Field[Kind]{Column: table.Column{Name: name, Unit: table.Duration, Doc: doc, Scale: "time"}, Cell: func(k *Kind) table.Cell {
			s, ns := of(k)
			return table.Cell{N: ns, Unknown: s.N == 0}
		}}
	}
	return []table.Field[Kind]{
		table.NsColumn("took", "sum of the durations on all ranks", func(k *Kind) int64 { return k.Took }),
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

// stepReport returns a table of who comes late and who waits, by kind of step: prefill and decode are different regimes.
func (c *Collectives) stepReport() *table.Table {
	type row = StepRank
	ns := func(name, doc string, of func(*row) int64) table.Field[row] {
		return table.NsColumn(name, doc, of).OnScale("took")
	}
	return table.New("sgtrace.report.collectives.steps/v1", "Collectives by kind of step and rank", c.ByStep, []table.Field[row]{
		table.TextColumn("kind", "of the step whose calls asked for the collectives: prefill (EXTEND), decode, or other: mixtures, and outside of steps", func(r *row) string { return profilewalk.StepKinds[r.Kind] }),
		table.TextColumn("rank", "rank", func(r *row) string { return r.Rank.Rank }),
		table.CountColumn("n", "collectives at which ranks wait for the last one, and other ranks were seen, too", func(r *row) int64 { return int64(r.Sync) }),
		table.CountColumn("last", "to how many the rank came after all others", func(r *row) int64 { return int64(r.Last) }),
		ns("took", "sum of the durations of its kernels", func(r *row) int64 { return r.Took }),
		ns("wait", "of took: until the last rank came", func(r *row) int64 { return r.Wait }),
		table.PartColumn("wait share", "wait of took", func(r *row) (int64, int64) { return r.Wait, r.Took }),
		ns("transfer", "of took: the shortest duration of all ranks", func(r *row) int64 { return r.Transfer }),
		ns("blame", "how long all others together waited for it where it came last", func(r *row) int64 { return r.Blame }),
	}).Stay("wait share", "blame").Leave("last", "transfer")
}

// partReport returns a table of the collective kernels of each rank, whether other ranks were seen or not.
func (c *Collectives) partReport() *table.Table {
	type row = PartKind
	ns := func(name, doc string, of func(*row) int64) table.Field[row] {
		return table.NsColumn(name, doc, of).OnScale("kernel")
	}
	bytes := table.BytesColumn("size", "what a rank has where each has all, all parts together where each has one; as in nccl-tests", func(r *row) int64 { return r.Bytes })
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
	r := table.New(c.schema("parts"), c.title("Kernels of collectives by rank and kind"), c.Parts, fields)
	r.Stay("took", "p50").Leave("ranks", "min", "max", "alone")
	for _, sentence := range c.longWaits() {
		r.Note("%s", sentence.Text)
	}
	return r
}

// allToAllReport returns a table of what ranks send to each other in all-to-alls.
func (c *Collectives) allToAllReport() *table.Table {
	type row = AllToAll
	return table.New("sgtrace.report.collectives.alltoall/v1", "Who sends how much to whom in all-to-alls", c.AllToAlls, []table.Field[row]{
		table.TextColumn("rank", "rank that sends", func(r *row) string { return r.Rank }),
		table.TextColumn("group", "process group, or communicator", func(r *row) string { return r.Group }),
		table.CountColumn("to", "number, in the group, of the rank that receives", func(r *row) int64 { return int64(r.To) }),
		table.CountColumn("n", "all-to-alls", func(r *row) int64 { return int64(r.N) }),
		table.BytesColumn("bytes", "sum; equal parts where the producer tells no other", func(r *row) int64 { return r.Bytes }),
		table.FactorColumn("of mean", "what the receiver gets from all ranks in the files, divided by the mean over the receivers of the group", func(r *row) float64 { return r.Imbalance }),
	}).Stay("of mean")
}

// noteAlone adds notes on collective kernels that were not matched with those of other ranks.
func (c *Collectives) noteAlone(r *table.Table) {
	if n := c.Counts.alone; n > 0 {
		r.Note("not matched: %d of %d %s, %s of %s; %s.parts lists them", n, c.Counts.kernels, c.parts(), words.Nearly(c.Counts.ranAlone), words.Nearly(c.Counts.ran), strings.Split(c.schema(""), ".")[2])
	}
	if n := c.Counts.refused; n > 0 {
		r.Note("left out: %d of %d %s, whose ranks cannot have met according to their clocks", n, c.Counts.kernels, c.parts())
	}
}

// parts returns the words for the parts of ranks in collectives.
func (c *Collectives) parts() string {
	if c.OfHosts {
		return "calls of gloo collectives"
	}
	return "kernels of collectives"
}
