package inspect

import (
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

func reportFiles(files []request.File) *table.Table {
	type F = request.File
	return table.New("sgtrace.inspect.files/v1", "Files", files, []table.Field[F]{
		table.TextColumn("file", "the name that you gave", func(f *F) string { return f.Name }),
		table.TextColumn("encoding", "after decompression", func(f *F) string { return f.Encoding }),
		table.CountColumn("bytes", "after decompression", func(f *F) int64 { return f.Bytes }),
		table.CountColumn("documents", "export requests", func(f *F) int64 { return int64(f.Documents) }),
		table.CountColumn("spans", "spans in them", func(f *F) int64 { return int64(f.Rows) }),
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
		table.CountColumn("spans", "how many", func(row *T) int64 { return int64(of(row).spans) }),
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
		table.CountColumn("instances", "different service.instance.id: one per start of a process", func(r *S) int64 { return int64(r.instances) }),
	}, extentFields(func(r *S) *extent { return &r.extent })...))
}

func reportRanks(rows []rankRow) *table.Table {
	type R = rankRow
	instance := table.TextColumn("instance", "service.instance.id", func(r *R) string { return r.Proc.Instance }).InDetail()
	return table.New("sgtrace.inspect.ranks/v1", "Ranks", rows, append([]table.Field[R]{
		table.TextColumn("host", "name of the machine, or the beginning of its id", func(r *R) string { return r.host }),
		table.TextColumn("label", "what the thread is", func(r *R) string { return r.Proc.Label }),
		table.TextColumn("rank", "place in the parallel groups", func(r *R) string { return r.rank }),
		table.TextColumn("role", "what its server does", func(r *R) string { return r.Proc.Role.String() }),
		{Column: table.Column{Name: "pid", Unit: table.Count, Doc: "native thread ID"}, Cell: func(r *R) table.Cell { return table.Cell{N: r.Proc.PID, Unknown: r.Proc.PID == 0} }},
		table.TextColumn("service", "service.name", func(r *R) string { return r.Proc.Service }),
		instance,
		table.CountColumn("parts", "parts of requests that it worked on", func(r *R) int64 { return int64(r.threads) }),
	}, append(extentFields(func(r *R) *extent { return &r.extent }),
		table.NumberColumn("spans_per_second", "in its busiest ten seconds", func(r *R) float64 { return r.tracing.PerSecond }),
		table.ShareColumn("tracing", "estimated part of that time that writing them took, at 40 us each", func(r *R) float64 { return r.tracing.Share() }))...))
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
		table.TextColumn("host", "name of the machine, or the beginning of its id", func(g *G) string { return g.host }),
		table.TextColumn("label", "what the thread is", func(g *G) string { return g.Proc.Label }),
		table.TextColumn("rank", "place in the parallel groups", func(g *G) string { return g.rank }),
		table.CountColumn("lost", "spans that others show to be lost, at least", func(g *G) int64 { return int64(g.Gap.Lost) }),
		table.TimeColumn("from", "when the first of them ended, about, Unix time", func(g *G) trace.Time { return g.Gap.Interval.From }),
		table.TimeColumn("to", "when the last of them ended, about, Unix time", func(g *G) trace.Time { return g.Gap.Interval.To }),
	})
}

func reportCounts(rows []countRow) *table.Table {
	return table.New("sgtrace.inspect.counts/v1", "Counts", rows, []table.Field[countRow]{
		table.TextColumn("of", "what is counted", func(c *countRow) string { return c.of }),
		table.TextColumn("what", "which of them", func(c *countRow) string { return c.what }),
		table.CountColumn("n", "how many", func(c *countRow) int64 { return int64(c.n) }),
	})
}

func reportDiags(diags []trace.Diag) *table.Table {
	type D = trace.Diag
	return table.New("sgtrace.inspect.diagnostics/v1", "Diagnostics", diags, []table.Field[D]{
		table.TextColumn("code", "stable name", func(d *D) string { return d.Code }),
		table.TextColumn("severity", "what it means for the result", func(d *D) string { return d.Severity.String() }),
		table.CountColumn("n", "how many times", func(d *D) int64 { return int64(d.Count) }),
		table.TextColumn("place", "of the first", func(d *D) string { return d.Pos.String() }),
		table.TextColumn("message", "of the first", func(d *D) string { return d.Msg }),
	}).Stay("message").Leave("severity", "n")
}
