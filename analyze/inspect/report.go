package inspect

import (
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

func reportFiles(files []request.File) *table.Table {
	type F = request.File
	return table.New("sgtrace.inspect.files/v1", "Files", files, []table.Field[F]{
		table.TextColumn("file", "input file", func(f *F) string { return f.Name }),
		table.TextColumn("encoding", "encoding after decompression", func(f *F) string { return f.Encoding }),
		table.CountColumn("bytes", "size after decompression", func(f *F) int64 { return f.Bytes }),
		table.CountColumn("documents", "number of export requests", func(f *F) int64 { return int64(f.Documents) }),
		table.CountColumn("spans", "number of spans", func(f *F) int64 { return int64(f.Rows) }),
		table.CountColumn("other", "documents of other signals (logs, metrics), skipped", func(f *F) int64 { return int64(f.Other) }),
	})
}

// extentFields returns the columns of an extent.
func extentFields[T any](of func(*T) *extent) []table.Field[T] {
	at := func(name, doc string, t func(*extent) trace.Time) table.Field[T] {
		return table.Field[T]{Column: table.Column{Name: name, Unit: table.Instant, Doc: doc}, Cell: func(row *T) table.Cell {
			return table.Cell{N: int64(t(of(row))), Unknown: of(row).spans == 0}
		}}
	}
	return []table.Field[T]{
		table.CountColumn("spans", "number of spans", func(row *T) int64 { return int64(of(row).spans) }),
		at("first", "earliest start, Unix time", func(e *extent) trace.Time { return e.first }),
		at("last", "latest end, Unix time", func(e *extent) trace.Time { return e.last }),
	}
}

func reportServices(rows []serviceRow) *table.Table {
	type S = serviceRow
	return table.New("sgtrace.inspect.services/v1", "Services", rows, append([]table.Field[S]{
		table.TextColumn("service", "service.name", func(r *S) string { return r.service }),
		table.TextColumn("layout", "how the producer arranges its spans; see docs/METRICS.md", func(r *S) string { return r.layouts.String() }),
		table.TextColumn("language", "telemetry.sdk.language", func(r *S) string { return r.language }),
		table.TextColumn("sdk", "telemetry.sdk.name", func(r *S) string { return r.sdk }),
		table.TextColumn("version", "telemetry.sdk.version", func(r *S) string { return r.version }),
		table.CountColumn("instances", "number of distinct service.instance.id values: one per process start", func(r *S) int64 { return int64(r.instances) }),
	}, extentFields(func(r *S) *extent { return &r.extent })...))
}

func reportRanks(rows []rankRow) *table.Table {
	type R = rankRow
	instance := table.TextColumn("instance", "service.instance.id", func(r *R) string { return r.Proc.Instance }).InDetail()
	return table.New("sgtrace.inspect.ranks/v1", "Ranks", rows, append([]table.Field[R]{
		table.TextColumn("host", "host name, or the start of its ID", func(r *R) string { return r.host }),
		table.TextColumn("label", "label of the thread, such as Tokenizer", func(r *R) string { return r.Proc.Label }),
		table.TextColumn("rank", "parallel ranks, such as DP1 TP0", func(r *R) string { return r.rank }),
		table.TextColumn("role", "role of its server", func(r *R) string { return r.Proc.Role.String() }),
		{Column: table.Column{Name: "pid", Unit: table.Count, Doc: "native thread ID"}, Cell: func(r *R) table.Cell { return table.Cell{N: r.Proc.PID, Unknown: r.Proc.PID == 0} }},
		table.TextColumn("service", "service.name", func(r *R) string { return r.Proc.Service }),
		instance,
		table.CountColumn("parts", "number of request parts that it worked on", func(r *R) int64 { return int64(r.threads) }),
	}, append(extentFields(func(r *R) *extent { return &r.extent }),
		table.NumberColumn("spans_per_second", "spans per second in its busiest ten seconds", func(r *R) float64 { return r.tracing.PerSecond }),
		table.ShareColumn("tracing", "estimated share of those ten seconds spent on writing spans, at 40 us each", func(r *R) float64 { return r.tracing.Share() }))...))
}

// A gapRow is a gap in the spans of a proc.
type gapRow struct {
	*rankRow
	Gap request.Gap
}

// reportGaps makes a table of when spans of which ranks were lost, as far as other spans show it.
func reportGaps(ranks []rankRow) *table.Table {
	var rows []gapRow
	for i := range ranks {
		for _, gap := range ranks[i].tracing.Gaps {
			rows = append(rows, gapRow{&ranks[i], gap})
		}
	}
	type G = gapRow
	return table.New("sgtrace.inspect.gaps/v1", "Lost spans", rows, []table.Field[G]{
		table.TextColumn("host", "host name, or the start of its ID", func(g *G) string { return g.host }),
		table.TextColumn("label", "label of the thread, such as Tokenizer", func(g *G) string { return g.Proc.Label }),
		table.TextColumn("rank", "parallel ranks, such as DP1 TP0", func(g *G) string { return g.rank }),
		table.CountColumn("lost", "minimum number of lost spans, as proven by other spans", func(g *G) int64 { return int64(g.Gap.Lost) }),
		table.TimeColumn("from", "approximate end of the first lost span, Unix time", func(g *G) trace.Time { return g.Gap.Interval.From }),
		table.TimeColumn("to", "approximate end of the last lost span, Unix time", func(g *G) trace.Time { return g.Gap.Interval.To }),
	})
}

func reportCounts(rows []countRow) *table.Table {
	return table.New("sgtrace.inspect.counts/v1", "Counts", rows, []table.Field[countRow]{
		table.TextColumn("of", "what is counted", func(c *countRow) string { return c.of }),
		table.TextColumn("what", "the value or category counted", func(c *countRow) string { return c.what }),
		table.CountColumn("n", "count", func(c *countRow) int64 { return int64(c.n) }),
	})
}

func reportDiags(diags []trace.Diag) *table.Table {
	type D = trace.Diag
	return table.New("sgtrace.inspect.diagnostics/v1", "Diagnostics", diags, []table.Field[D]{
		table.TextColumn("code", "stable name of the diagnostic", func(d *D) string { return d.Code }),
		table.TextColumn("severity", "severity: what it means for the result", func(d *D) string { return d.Severity.String() }),
		table.CountColumn("n", "number of occurrences", func(d *D) int64 { return int64(d.Count) }),
		table.TextColumn("place", "file position of the first occurrence", func(d *D) string { return d.Pos.String() }),
		table.TextColumn("message", "message of the first occurrence", func(d *D) string { return d.Msg }),
	}).Stay("message").Leave("severity", "n")
}
