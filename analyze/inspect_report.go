package analyze

import (
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

func reportFiles(files []request.File) *Report {
	type F = request.File
	count := func(name, doc string, of func(*F) int64) field[F] {
		return field[F]{Column{Name: name, Unit: Count, Doc: doc}, func(f *F) Cell { return numberCell(of(f)) }}
	}
	return tabulate("sgtrace.inspect.files/v1", "Files", files, []field[F]{
		{Column{Name: "file", Doc: "as it was named"}, func(f *F) Cell { return textCell(f.Name) }},
		{Column{Name: "encoding", Doc: "after decompression"}, func(f *F) Cell { return textCell(f.Encoding) }},
		count("bytes", "after decompression", func(f *F) int64 { return f.Bytes }),
		count("documents", "export requests", func(f *F) int64 { return int64(f.Documents) }),
		count("spans", "spans in them", func(f *F) int64 { return int64(f.Rows) }),
		count("other", "documents of other signals (logs, metrics), skipped", func(f *F) int64 { return int64(f.Other) }),
	})
}

// extentFields are the columns of an extent.
func extentFields[T any](of func(*T) *extent) []field[T] {
	at := func(name, doc string, t func(*extent) trace.Time) field[T] {
		return field[T]{Column{Name: name, Unit: Instant, Doc: doc}, func(row *T) Cell {
			return Cell{N: int64(t(of(row))), Unknown: of(row).spans == 0}
		}}
	}
	return []field[T]{
		{Column{Name: "spans", Unit: Count, Doc: "how many"}, func(row *T) Cell { return Cell{N: int64(of(row).spans)} }},
		at("first", "earliest start, Unix time", func(e *extent) trace.Time { return e.first }),
		at("last", "latest end, Unix time", func(e *extent) trace.Time { return e.last }),
	}
}

func reportServices(rows []serviceRow) *Report {
	type S = serviceRow
	text := func(name, doc string, of func(*S) string) field[S] {
		return field[S]{Column{Name: name, Doc: doc}, func(r *S) Cell { return textCell(of(r)) }}
	}
	return tabulate("sgtrace.inspect.services/v1", "Services", rows, append([]field[S]{
		text("service", "service.name", func(r *S) string { return r.service }),
		text("layout", "how the producer arranges its spans; see docs/METRICS.md", func(r *S) string { return r.layouts.String() }),
		text("language", "telemetry.sdk.language", func(r *S) string { return r.language }),
		text("sdk", "telemetry.sdk.name", func(r *S) string { return r.sdk }),
		text("version", "telemetry.sdk.version", func(r *S) string { return r.version }),
		{Column{Name: "instances", Unit: Count, Doc: "different service.instance.id: one per start of a process"},
			func(r *S) Cell { return numberCell(int64(r.instances)) }},
	}, extentFields(func(r *S) *extent { return &r.extent })...))
}

func reportRanks(rows []rankRow) *Report {
	type R = rankRow
	text := func(name, doc string, of func(*R) string) field[R] {
		return field[R]{Column{Name: name, Doc: doc}, func(r *R) Cell { return textCell(of(r)) }}
	}
	instance := text("instance", "service.instance.id", func(r *R) string { return r.Instance })
	instance.Detail = true
	return tabulate("sgtrace.inspect.ranks/v1", "Ranks", rows, append([]field[R]{
		text("host", "start of the host id, or all of it where two begin alike", func(r *R) string { return r.host }),
		text("label", "what the thread is", func(r *R) string { return r.Label }),
		text("rank", "place in the parallel groups", func(r *R) string { return r.Rank.String() }),
		text("role", "what its server does", func(r *R) string { return r.Role.String() }),
		{Column{Name: "pid", Unit: Count, Doc: "native thread id"}, func(r *R) Cell { return Cell{N: r.PID, Unknown: r.PID == 0} }},
		text("service", "service.name", func(r *R) string { return r.Service }),
		instance,
		{Column{Name: "parts", Unit: Count, Doc: "parts of requests that it worked on"}, func(r *R) Cell { return Cell{N: int64(r.threads)} }},
	}, extentFields(func(r *R) *extent { return &r.extent })...))
}

func reportCounts(rows []countRow) *Report {
	return tabulate("sgtrace.inspect.counts/v1", "Counts", rows, []field[countRow]{
		{Column{Name: "of", Doc: "what is counted"}, func(c *countRow) Cell { return textCell(c.of) }},
		{Column{Name: "what", Doc: "which of them"}, func(c *countRow) Cell { return textCell(c.what) }},
		{Column{Name: "n", Unit: Count, Doc: "how many"}, func(c *countRow) Cell { return Cell{N: int64(c.n)} }},
	})
}

func reportDiags(diags []trace.Diag) *Report {
	type D = trace.Diag
	text := func(name, doc string, of func(*D) string) field[D] {
		return field[D]{Column{Name: name, Doc: doc}, func(d *D) Cell { return textCell(of(d)) }}
	}
	return tabulate("sgtrace.inspect.diagnostics/v1", "Diagnostics", diags, []field[D]{
		text("code", "stable name", func(d *D) string { return d.Code }),
		text("severity", "what it means for the result", func(d *D) string { return d.Severity.String() }),
		{Column{Name: "n", Unit: Count, Doc: "how many times"}, func(d *D) Cell { return Cell{N: int64(d.Count)} }},
		text("place", "of the first", func(d *D) string { return d.Pos.String() }),
		text("message", "of the first", func(d *D) string { return d.Msg }),
	})
}
