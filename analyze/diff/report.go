package diff

import (
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/diff/measured"
	"github.com/sgtrace/sgtrace/analyze/diff/setup"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/trace"
)

// Schema is the schema of the table of what changed.
const Schema = "sgtrace.report.diff/v1"

// Report returns a table of all rows.
func (d *Diff) Report() *table.Table {
	r := d.table(Schema, "What changed", d.Rows)
	d.note(r)
	return r
}

// MoreReports returns the tables that were asked for separately: operators, and what the host did while devices waited.
func (d *Diff) MoreReports() []*table.Table {
	return []*table.Table{
		d.table("sgtrace.report.diff.ops/v1", "Operators: time in each itself, and of what it launched itself", d.Operators),
		d.table("sgtrace.report.diff.gaps/v1", "What the host did while GPUs waited for it", d.Gaps),
	}
}

// table returns a table of some rows.
func (d *Diff) table(schema, title string, rows []Row) *table.Table {
	return table.New(schema, title, rows, d.fields(rows)).
		Stay("total change").Leave("n before", "n after", "p50 before", "p50 after", "p99 before", "p99 after")
}

// fields returns the columns of some rows.
func (d *Diff) fields(rows []Row) []table.Field[Row] {
	fields := []table.Field[Row]{
		table.TextColumn("of", kindsInWords(), func(r *Row) string { return r.Kind.String() }),
		table.TextColumn("name", "name of the metric, stage, step kind and batch size, kernel, operation, or operator; for host causes, the reason for idle time and what the host did", func(r *Row) string { return r.Name }).AtMost(table.MaxName),
	}
	if d.byRank {
		fields = append(fields, table.TextColumn("rank", "thread and rank, or rank, without the host", func(r *Row) string { return r.Rank }))
	}
	fields = append(fields, []table.Field[Row]{
		{Column: table.Column{Name: "n before", Unit: table.Count, Doc: "number of values"}, Cell: func(r *Row) table.Cell { return r.count(&r.Before) }},
		{Column: table.Column{Name: "n after", Unit: table.Count, Doc: "number of values"}, Cell: func(r *Row) table.Cell { return r.count(&r.After) }},
	}...)
	for _, n := range diffNumbers {
		fields = append(fields, n.fields()...)
	}
	renamed := slices.ContainsFunc(rows, func(r Row) bool { return r.Like != "" })
	return append(fields,
		table.Field[Row]{Column: table.Column{Name: "effect", Unit: table.Duration, Tenths: true, Scale: "total", Doc: "how much longer a request or step takes because of this change; sort key of the rows", Detail: true},
			Cell: func(r *Row) table.Cell { return table.Cell{N: r.Effect()} }},
		table.TextColumn("like", "possible counterpart: a kernel with the same function name that only the other capture has", func(r *Row) string { return r.Like }).AtMost(table.MaxName).DetailIf(!renamed))
}

// count returns the number of durations, which is unknown for kinds of which only totals have a meaning.
func (r *Row) count(s *Stat) table.Cell { return table.Cell{N: s.N, Unknown: r.Kind.totalOnly()} }

// A diffNumber is a number that rows compare.
type diffNumber struct {
	name, doc, scale string
	tenths           bool
	detail           bool // text output shows only its change
	of               func(*Stat) int64
	change           func(*Row) *compare.Change
}

// diffNumbers are in reading order: totals first, means last.
var diffNumbers = []diffNumber{
	{"total", "total per request and rank; for steps, GPU time, kernels, copies, and waits: total per step", "total", true, false,
		func(s *Stat) int64 { return s.PerUnit }, func(r *Row) *compare.Change { return &r.Total }},
	{"p50", "median, nearest rank", "duration", false, false,
		func(s *Stat) int64 { return s.P50 }, func(r *Row) *compare.Change { return &r.P50 }},
	{"p99", "99th percentile, nearest rank", "duration", false, false,
		func(s *Stat) int64 { return s.P99 }, func(r *Row) *compare.Change { return &r.P99 }},
	{"mean", "arithmetic mean", "duration", true, true,
		func(s *Stat) int64 { return s.Mean }, func(r *Row) *compare.Change { return &r.Mean }},
}

// fields returns the columns of a number: before, after, and its change.
func (n *diffNumber) fields() []table.Field[Row] {
	name := n.name
	side := func(when string, stat func(*Row) *Stat) table.Field[Row] {
		return table.Field[Row]{Column: table.Column{Name: name + " " + when, Unit: table.Duration, Doc: n.doc, Scale: n.scale, Tenths: n.tenths, Detail: n.detail}, Cell: func(r *Row) table.Cell {
			s := stat(r)
			return table.Cell{N: n.of(s), Unknown: n.of(s) < 0 || s.N == 0 || r.Kind.totalOnly() && n.name != "total"}
		}}
	}
	real := func(what, doc string, of func(*compare.Change) float64) table.Field[Row] {
		return table.NumberColumn(name+" "+what, doc, func(r *Row) float64 { return of(n.change(r)) }).InDetail()
	}
	return []table.Field[Row]{
		side("before", func(r *Row) *Stat { return &r.Before }),
		side("after", func(r *Row) *Stat { return &r.After }),
		{Column: table.Column{Name: name + " change", Doc: "change with its 95 % confidence interval; likely: up to 1 in 20 such changes is chance; ~: may be chance; ?: not enough data; new or gone: only one capture has it"},
			Cell: func(r *Row) table.Cell { return table.Cell{Text: r.words(n.change(r)), Tone: r.tone(n.change(r))} }},
		real("ratio", "after / before", func(c *compare.Change) float64 { return c.Change.Ratio }),
		real("ratio low", "lower bound of the ratio's 95 % confidence interval", func(c *compare.Change) float64 { return c.Change.Low }),
		real("ratio high", "upper bound of the ratio's 95 % confidence interval", func(c *compare.Change) float64 { return c.Change.High }),
		real("p", "probability of such a difference if nothing changed, corrected for all numbers of the table (Holm)", func(c *compare.Change) float64 { return c.Change.P }),
	}
}

// words returns how a number of the row changed.
func (r *Row) words(c *compare.Change) string {
	switch {
	case r.Kind.totalOnly() && c != &r.Total:
		return "-"
	case r.Before.N == 0:
		return "new"
	case r.After.N == 0:
		return "gone"
	}
	return c.Words()
}

// tone returns whether a number of the row changed for better or worse; less time is better.
func (r *Row) tone(c *compare.Change) table.Tone {
	switch {
	case r.Before.N == 0 || r.After.N == 0 || !c.Tested() || !c.Significant() || math.IsNaN(c.Change.Ratio) || r.Kind.totalOnly() && c != &r.Total:
		return table.Plain
	case c.Change.Ratio > 1:
		return table.Bad
	}
	return table.Good
}

// note adds notes on how to read the table, and on what it can't tell.
func (d *Diff) note(r *table.Table) {
	requests, devices := d.Before.Requests >= 0 && d.After.Requests >= 0, d.Before.Ranks >= 0 && d.After.Ranks >= 0
	switch {
	case requests && devices:
		r.Note("total is per request and rank; for steps, GPU time, kernels, copies, and waits per %s and rank", d.per)
	case requests && d.Before.Requests+d.After.Requests > 0:
		r.Note("total is per request and rank")
	case requests:
		r.Note("total is per second")
	case devices:
		r.Note("total is per %s and rank", d.per)
	}
	d.noteChance(r, requests, devices)
	doubtful := func(r Row) bool {
		return !r.only() && slices.ContainsFunc(r.changes(), func(c *compare.Change) bool { return (!c.Tested() || c.Vague()) && !math.IsNaN(c.Change.Ratio) })
	}
	if slices.ContainsFunc(d.Rows, doubtful) {
		r.Note("? is too few requests or pieces to tell: it may have halved or doubled, or there was nothing to test")
	}
	table.NoteApproximate(r, d.approximate)
}

// noteChance adds notes on how changes were tested.
func (d *Diff) noteChance(r *table.Table, requests, devices bool) {
	if d.locate.captures() {
		r.Note("changes are tested on whole captures, %d before and %d after: how much those of one side differ shows how much days differ. likely: up to one in 20 such changes is chance; ~ may be chance",
			d.locate.sides[0].captures.N, d.locate.sides[1].captures.N)
		return
	}
	const chance = "changes are tested on pieces of the captures, not on single requests or steps, because neighbors are alike: "
	var pieces string
	if requests {
		pieces = fmt.Sprintf("%d and %d with the same number of requests", d.Before.RequestPieces, d.After.RequestPieces)
	}
	if devices {
		if pieces != "" {
			pieces += ", "
		}
		like := "with the same number of " + d.per.String() + "s"
		if d.per == perSecond {
			like = "of the same length, whatever is done in them"
		}
		pieces += fmt.Sprintf("%d and %d %s", d.Before.StepPieces, d.After.StepPieces, like)
	}
	if pieces != "" {
		r.Note("%s%s. likely: up to one in 20 such changes is chance; ~ may be chance. One capture of each side cannot show how much captures differ from day to day", chance, pieces)
	}
}

// SideReport returns a table that describes the captures, with the verdict as its title.
func (d *Diff) SideReport() *table.Table {
	sides := []Side{d.Before, d.After}
	t := table.New("sgtrace.report.diff.captures/v1", d.verdict, sides, []table.Field[Side]{
		table.TextColumn("capture", "before or after", func(s *Side) string {
			if s == &sides[0] {
				return "before"
			}
			return "after"
		}),
		table.TextColumn("label", "your label, else the path", func(s *Side) string { return s.Label }).AtMost(table.MaxName),
		table.TimeField("from", "start of the first request or step", func(s *Side) (trace.Time, bool) { return s.First, s.First != 0 }),
		{Column: table.Column{Name: "length", Unit: table.Duration, Doc: "time from then to the end of the last request or step"}, Cell: func(s *Side) table.Cell {
			return table.Cell{N: distribution.Between(s.First, s.Last), Unknown: s.First == 0}
		}},
		table.CountColumn("requests", "number of requests", func(s *Side) int64 { return s.Requests }),
		table.CountColumn("finished", "finished requests", func(s *Side) int64 { return s.Finished }),
		table.CountColumn("ranks", "number of ranks that profilers recorded", func(s *Side) int64 { return s.Ranks }),
		table.CountColumn("steps", "number of steps over all ranks", func(s *Side) int64 { return s.Steps }),
	})
	for _, text := range d.mixtures() {
		t.Note("%s", text)
	}
	return t
}

// Percentiles returns a table of the bounds that histogram metrics set to latency percentiles.
func (d *Diff) Percentiles() *table.Table {
	return measured.Percentiles(&d.locate.sides[0].measured, &d.locate.sides[1].measured)
}

// LoadReport returns a table of the load: number and length of requests, tokens per second, and work per step.
func (d *Diff) LoadReport() *table.Table {
	rows := slices.Clone(d.Load)
	for i := range d.Paces {
		rows = append(rows, d.Paces[i].Loads()...)
	}
	return table.New("sgtrace.report.diff.load/v1", "Load", rows, []table.Field[compare.Load]{
		table.TextColumn("of", "what is compared", func(l *compare.Load) string { return l.Name }),
		table.NumberColumn("before", "mean before", func(l *compare.Load) float64 { return l.Before }),
		table.NumberColumn("after", "mean after", func(l *compare.Load) float64 { return l.After }),
		table.TextColumn("change", "change with its 95 % confidence interval; likely: up to 1 in 20 such changes is chance; ~: may be chance", func(l *compare.Load) string { return l.Change.Words() }),
		table.NumberColumn("ratio", "after / before", func(l *compare.Load) float64 { return l.Change.Change.Ratio }).InDetail(),
		table.NumberColumn("ratio low", "lower bound of the ratio's 95 % confidence interval", func(l *compare.Load) float64 { return l.Change.Change.Low }).InDetail(),
		table.NumberColumn("ratio high", "upper bound of the ratio's 95 % confidence interval", func(l *compare.Load) float64 { return l.Change.Change.High }).InDetail(),
		table.NumberColumn("p", "probability of such a difference if nothing changed, corrected for all numbers of the comparison (Holm)", func(l *compare.Load) float64 { return l.Change.Change.P }).InDetail(),
	})
}

// SetupReport returns a table of the differences in how the captures were made.
func (d *Diff) SetupReport() *table.Table { return setup.Report(d.Setup) }
