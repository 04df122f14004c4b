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
	all := count("all", "collectives recorded on at least one other rank, too", func(r *row) int { return r.SyncPoints }).InDetail()
	r := table.New(c.schema("ranks"), c.title("Collectives by rank"), c.Ranks, []table.Field[row]{
		table.TextColumn("rank", "rank", func(r *row) string { return r.Rank }),
		all,
		count("n", "collectives in which ranks wait for the last one, recorded on at least one other rank, too", func(r *row) int { return r.Sync }),
		count("last", "how many of them the rank reached last", func(r *row) int { return r.Last }),
		part("last share", "last, as a share of n", last, sync),
		time("late p50", "late", "lateness: arrival minus the median arrival of the ranks; median, nearest rank; negative is early", func(r *row) int64 { return r.LateP50 }),
		time("late p99", "late", "lateness: 99th percentile, nearest rank", func(r *row) int64 { return r.LateP99 }),
		time("took", "took", "total duration of its kernels", took),
		time("wait", "took", "part of took before the last rank arrived", wait),
		part("wait share", "wait, as a share of took", wait, took),
		time("transfer", "took", "part of took that is data transfer: the shortest duration on any rank, which is that of the rank that waited least", func(r *row) int64 { return r.Transfer }),
		time("blame", "took", "total time that the other ranks waited for this one when it came last", func(r *row) int64 { return r.Blame }),
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
		table.TextColumn("for", "rank that was waited for: the last one to arrive", func(r *waitRow) string { return r.last }),
		table.NsColumn("wait", "total wait in the collectives that this rank reached last", func(r *waitRow) int64 { return r.wait }),
		table.PartColumn("share", "share of all such waits", func(r *waitRow) (int64, int64) { return r.wait, r.all }),
	})
}

// kindReport returns a table of collectives by operation, type, size, and group.
func (c *Collectives) kindReport() *table.Table {
	var columns kindColumns
	fields := append(columns.what(c.Kinds), columns.times()...)
	fields = append(fields,
		columns.text("last", "rank that most often arrived last", func(k *Kind) string { return k.Last }),
		table.PartColumn("last share", "how often it did, as a share of sync", func(k *Kind) (int64, int64) { return int64(k.LastN), int64(k.Sync) }),
		table.Field[Kind]{Column: table.Column{Name: "busbw", Unit: table.Number, Doc: "bus bandwidth in GB/s as nccl-tests define it, at the median transfer of collectives recorded on all ranks"},
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
	name := c.text("collective", "operation, as the producer names it; if unknown, as in CUDA graphs, the kernel name without ncclDevKernel_", (*Kind).Name)
	name.Most = 40
	kernel := c.text("kernel", "kernel name without types", func(k *Kind) string { return k.Kernel })
	group := c.text("group", "process group or communicator", func(k *Kind) string { return k.Group })
	first := c.text("first rank", "first rank of the group in this report; tells replicas apart whose groups have the same name", func(k *Kind) string { return k.First })
	seen := c.count("seen", "most ranks of the group recorded in any one collective", func(k *Kind) int64 { return int64(k.Ranks) })
	sync := c.count("sync", "how many of n have ranks wait for the last one", func(k *Kind) int64 { return int64(k.Sync) })
	kernel.Detail, seen.Detail, sync.Detail = true, true, true
	// People need only one of them to tell groups apart.
	group.Detail = slices.ContainsFunc(kinds, func(k Kind) bool { return k.First != kinds[0].First })
	first.Detail = !group.Detail
	return []table.Field[Kind]{
		name, kernel,
		c.text("dtype", "data type of the elements", func(k *Kind) string { return k.Dtype }),
		table.BytesColumn("size", "message size as nccl-tests define it: the data of one rank if every rank ends up with all of it, else the sum of all parts", func(k *Kind) int64 { return k.Bytes }),
		group, first,
		c.count("ranks", "number of ranks in the group", func(k *Kind) int64 { return int64(k.GroupSize) }),
		seen,
		c.count("n", "collectives recorded on several ranks", func(k *Kind) int64 { return int64(k.N) }),
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
		table.NsColumn("took", "total duration over all ranks", func(k *Kind) int64 { return k.Took }),
		time("transfer p50", "transfer time: the shortest duration on any rank; median, nearest rank",
			func(k *Kind) (*distribution.Summary, int64) { return &k.Transfer, k.Transfer.P50 }),
		time("transfer p99", "transfer time: 99th percentile, nearest rank",
			func(k *Kind) (*distribution.Summary, int64) { return &k.Transfer, k.Transfer.P99 }),
		time("wait p50", "time until the last rank arrived, over all other ranks: median, nearest rank",
			func(k *Kind) (*distribution.Summary, int64) { return &k.Wait, k.Wait.P50 }),
		time("wait p99", "time until the last rank arrived, over all other ranks: 99th percentile, nearest rank",
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
		table.TextColumn("kind", "kind of step that launched the collectives: prefill (EXTEND), decode, or other (mixed steps, and outside of steps)", func(r *row) string { return profilewalk.StepKinds[r.Kind] }),
		table.TextColumn("rank", "rank", func(r *row) string { return r.Rank.Rank }),
		table.CountColumn("n", "collectives in which ranks wait for the last one, recorded on at least one other rank, too", func(r *row) int64 { return int64(r.Sync) }),
		table.CountColumn("last", "how many of them the rank reached last", func(r *row) int64 { return int64(r.Last) }),
		ns("took", "total duration of its kernels", func(r *row) int64 { return r.Took }),
		ns("wait", "part of took before the last rank arrived", func(r *row) int64 { return r.Wait }),
		table.PartColumn("wait share", "wait, as a share of took", func(r *row) (int64, int64) { return r.Wait, r.Took }),
		ns("transfer", "part of took that is data transfer: the shortest duration on any rank", func(r *row) int64 { return r.Transfer }),
		ns("blame", "total time that the other ranks waited for this one when it came last", func(r *row) int64 { return r.Blame }),
	}).Stay("wait share", "blame").Leave("last", "transfer")
}

// partReport returns a table of the collective kernels of each rank, whether other ranks were seen or not.
func (c *Collectives) partReport() *table.Table {
	type row = PartKind
	ns := func(name, doc string, of func(*row) int64) table.Field[row] {
		return table.NsColumn(name, doc, of).OnScale("kernel")
	}
	bytes := table.BytesColumn("size", "message size as nccl-tests define it: the data of one rank if every rank ends up with all of it, else the sum of all parts", func(r *row) int64 { return r.Bytes })
	busbw := table.Field[row]{Column: table.Column{Name: "busbw most", Unit: table.Number, Doc: "bus bandwidth in GB/s as nccl-tests define it, of the shortest kernel: the highest reached"},
		Cell: func(r *row) table.Cell { return table.Cell{Share: r.BusBandwidth(), Unknown: r.BusBandwidth() == 0} }}
	name := table.TextColumn("collective", "operation, as the producer names it; if unknown, as in CUDA graphs, the kernel name without ncclDevKernel_", (*row).Name)
	name.Column.Most = 40
	fields := []table.Field[row]{
		table.TextColumn("rank", "rank, or name of a process that is not a rank", func(r *row) string { return r.Rank }),
		name,
		table.TextColumn("dtype", "data type of the elements", func(r *row) string { return r.Dtype }),
		bytes,
		table.CountColumn("ranks", "number of ranks in the group", func(r *row) int64 { return int64(r.GroupSize) }),
		table.CountColumn("n", "number of kernels", func(r *row) int64 { return int64(r.Took.N) }),
		table.CountColumn("alone", "how many of n were recorded on no other rank", func(r *row) int64 { return int64(r.Alone) }),
		table.NsColumn("took", "total duration", func(r *row) int64 { return r.Took.Total }),
		ns("min", "shortest", func(r *row) int64 { return r.Took.Min }),
		ns("p50", "median, nearest rank", func(r *row) int64 { return r.Took.P50 }),
		ns("max", "longest", func(r *row) int64 { return r.Took.Max }),
		table.CountColumn("long", "how many of alone took at least four times as long as usual and at least 100 us longer", func(r *row) int64 { return int64(r.Long) }),
		table.NsColumn("long wait", "excess of these kernels over the usual duration: likely waits for a rank that is not in the files", func(r *row) int64 { return r.LongWait }),
		table.NsColumn("wait at most", "upper bound of the wait in alone: their total time beyond that of the shortest kernel", func(r *row) int64 { return r.MostWait }),
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
		table.TextColumn("rank", "sending rank", func(r *row) string { return r.Rank }),
		table.TextColumn("group", "process group or communicator", func(r *row) string { return r.Group }),
		table.CountColumn("to", "number of the receiving rank within the group", func(r *row) int64 { return int64(r.To) }),
		table.CountColumn("n", "number of all-to-alls", func(r *row) int64 { return int64(r.N) }),
		table.BytesColumn("bytes", "total bytes sent; assumes equal parts if split sizes were not recorded", func(r *row) int64 { return r.Bytes }),
		table.FactorColumn("of mean", "bytes that the receiver gets from all ranks in the files, divided by the mean over the group's receivers", func(r *row) float64 { return r.Imbalance }),
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
