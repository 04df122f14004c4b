package analyze

import (
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// InspectAll says what inputs of all kinds hold: the files of profilers, then those of
// requests, which may be nil, then what was found wrong with any of them. Tables
// without rows are left out.
func InspectAll(v *Inventory, s *request.Set, diags []trace.Diag) []*Report {
	all := []*Report{
		reportExports(v.exports), reportTraces(v.traces), reportProcesses(v.processes), reportGPUs(v.gpus),
		reportTables(v.tables), reportCategories(v.categories), reportMessages(v.messages),
	}
	if s != nil {
		all = append(all, inspectRequests(s)...)
	}
	return withRows(append(all, reportDiags(diags)))
}

// InspectTables are the names of all tables that InspectAll can return, in its order.
var InspectTables = []string{
	"exports", "traces", "processes", "gpus", "tables", "categories", "messages",
	"files", "services", "ranks", "counts", "diagnostics",
}

// InspectSchema returns the schema of a table.
func InspectSchema(table string) string { return "sgtrace.inspect." + table + "/v1" }

// textField is a column of text.
func textField[T any](name, doc string, of func(*T) string) field[T] {
	return field[T]{Column{Name: name, Doc: doc}, func(r *T) Cell { return textCell(of(r)) }}
}

// fileField is the column of the file that a row is about.
func fileField[T any](of func(*T) string) field[T] {
	f := textField("file", "as it was named", of)
	f.Most = 44
	return f
}

// numberField is a column of numbers, of which request.Unknown is none.
func numberField[T any](name, doc string, of func(*T) int64) field[T] {
	return field[T]{Column{Name: name, Unit: Count, Doc: doc}, func(r *T) Cell { return numberCell(of(r)) }}
}

// timeField is a column of points in time, unknown where ok is false.
func timeField[T any](name, doc string, of func(*T) (t trace.Time, ok bool)) field[T] {
	return field[T]{Column{Name: name, Unit: Instant, Doc: doc}, func(r *T) Cell {
		t, ok := of(r)
		return Cell{N: int64(t), Unknown: !ok}
	}}
}

// clockWord says what the times of a file count from.
func clockWord(absolute bool) string {
	if absolute {
		return "recorded"
	}
	return "unknown"
}

func reportExports(rows []exportRow) *Report {
	type E = exportRow
	return tabulate("sgtrace.inspect.exports/v1", "Nsight Systems exports", rows, []field[E]{
		fileField(func(e *E) string { return e.file }),
		{Column{Name: "size", Unit: Bytes, Doc: "of the file"}, func(e *E) Cell { return numberCell(e.size) }},
		textField("product", "version of nsys that exported", func(e *E) string { return e.meta.Product }),
		textField("schema", "version of the schema", func(e *E) string { return e.meta.Schema }),
		textField("host", "that was profiled", func(e *E) string { return e.meta.Host }),
		textField("clock", "recorded: times are absolute; unknown: they count from the start of the session, and the clock must be given or matched",
			func(e *E) string { return clockWord(e.meta.Absolute) }),
		timeField("start", "of the session, Unix time", func(e *E) (trace.Time, bool) { return e.meta.Start, e.meta.Absolute }),
		{Column{Name: "duration", Unit: Duration, Doc: "of the session"}, func(e *E) Cell { return numberCell(e.meta.Duration) }},
		textField("graphs", "how CUDA graphs were traced: Node has their kernels, Graph only their runs", func(e *E) string { return e.meta.Graphs }),
		textField("only tables", "which nsys export was told to export; the report may hold more", func(e *E) string { return e.meta.PartialTables }),
		textField("only times", "which nsys export was told to export; the report may hold more", func(e *E) string { return e.meta.PartialTimes }),
	})
}

func reportTraces(rows []traceRow) *Report {
	type T = traceRow
	return tabulate("sgtrace.inspect.traces/v1", "PyTorch traces", rows, []field[T]{
		fileField(func(t *T) string { return t.file }),
		{Column{Name: "size", Unit: Bytes, Doc: "of the file, compressed if it is"}, func(t *T) Cell { return numberCell(t.size) }},
		textField("producer", "PyTorch profiler, or Chrome JSON of another one", (*T).producer),
		textField("schema", "schemaVersion", func(t *T) string { return t.attribute("schemaVersion") }),
		textField("runtime", "version of the CUDA or HIP runtime", (*T).runtime),
		textField("recorded", "besides events", (*T).options),
		textField("host", "host_name", func(t *T) string { return t.meta.Host }),
		textField("backend", "of torch.distributed", func(t *T) string { return t.meta.Backend }),
		textField("clock", "recorded: times are absolute; unknown: they count from something that the file does not tell",
			func(t *T) string { return clockWord(t.meta.Origin == profile.OriginUnix) }),
	})
}

func reportProcesses(rows []processRow) *Report {
	type P = processRow
	known := func(n int64, none int64) int64 {
		if n == none {
			return request.Unknown
		}
		return n
	}
	timed := func(of func(p *P) trace.Time) func(*P) (trace.Time, bool) {
		return func(p *P) (trace.Time, bool) { return of(p), p.timed }
	}
	return tabulate("sgtrace.inspect.processes/v1", "Processes", rows, []field[P]{
		fileField(func(p *P) string { return p.file }),
		textField("part", "of a merged file", func(p *P) string { return p.is.Part }),
		numberField("n", "processes: those of one name that tell nothing else are one row", func(p *P) int64 { return p.n }),
		numberField("pid", "of the process", func(p *P) int64 { return known(p.pid, 0) }),
		textField("name", "of the process", func(p *P) string { return p.name }),
		textField("host", "from a label, the file or its name", func(p *P) string { return p.is.Host }),
		textField("rank", "place in the parallel groups, or in the world", func(p *P) string { return p.is.Rank.String() }),
		textField("from", "what tells the rank", func(p *P) string { return p.is.RankFrom }),
		numberField("world", "ranks in all", func(p *P) int64 { return known(int64(p.world), -1) }),
		textField("gpus", "of the machine that it could use, by their ids", func(p *P) string { return p.gpus }),
		numberField("events", "in the file; those of exports are in the table of tables", func(p *P) int64 { return p.events }),
		timeField("first", "earliest start, Unix time", timed(func(p *P) trace.Time { return p.first })),
		timeField("last", "latest end, Unix time", timed(func(p *P) trace.Time { return p.last })),
		numberField("steps", "annotations of batches and iterations", func(p *P) int64 { return p.steps }),
		numberField("collectives", "kernels of collectives, or their calls where there are none", func(p *P) int64 { return p.collectives }),
	})
}

func reportGPUs(rows []deviceRow) *Report {
	type G = deviceRow
	return tabulate("sgtrace.inspect.gpus/v1", "GPUs", rows, []field[G]{
		fileField(func(g *G) string { return g.file }),
		numberField("n", "how many", func(g *G) int64 { return int64(len(g.ids)) }),
		textField("model", "name of the model", func(g *G) string { return g.name }),
		textField("ids", "as the machine counts", func(g *G) string { return list(g.ids) }),
	})
}

func reportTables(rows []tableRow) *Report {
	type T = tableRow
	return tabulate("sgtrace.inspect.tables/v1", "Tables", rows, []field[T]{
		fileField(func(t *T) string { return t.file }),
		textField("table", "that holds something", func(t *T) string { return t.table.Name }),
		numberField("rows", "by the numbers of the first and the last row: exact as nsys writes them, too many where rows were deleted later",
			func(t *T) int64 { return t.table.Rows }),
		textField("read", "no: sgtrace does not draw or report what is in it", func(t *T) string {
			if t.table.Read {
				return "yes"
			}
			return "no"
		}),
		timeField("first", "start of the first row, Unix time", func(t *T) (trace.Time, bool) { return t.table.First, t.table.Timed }),
		timeField("last", "end of the last row, Unix time", func(t *T) (trace.Time, bool) { return t.table.Last, t.table.Timed }),
	})
}

func reportCategories(rows []categoryRow) *Report {
	type C = categoryRow
	return tabulate("sgtrace.inspect.categories/v1", "Events by category", rows, []field[C]{
		fileField(func(c *C) string { return c.file }),
		textField("category", "cat of the events; (instants) and (counters) have none", func(c *C) string { return c.category }),
		numberField("events", "how many", func(c *C) int64 { return c.events }),
		timeField("first", "earliest start, Unix time", func(c *C) (trace.Time, bool) { return c.first, c.spans > 0 }),
		timeField("last", "latest end, Unix time", func(c *C) (trace.Time, bool) { return c.last, c.spans > 0 }),
	})
}

// severityWords are what nsys calls messages by their number.
var severityWords = map[uint8]string{2: "warning", 3: "error"}

func reportMessages(rows []messageRow) *Report {
	type M = messageRow
	return tabulate("sgtrace.inspect.messages/v1", "Messages of the profiler", rows, []field[M]{
		fileField(func(m *M) string { return m.file }),
		timeField("time", "Unix time", func(m *M) (trace.Time, bool) { return m.message.Time, m.timed }),
		textField("severity", "warning or error", func(m *M) string { return severityWords[m.message.Severity] }),
		numberField("pid", "of the process", func(m *M) int64 { return int64(m.message.PID) }),
		textField("message", "as nsys wrote it", func(m *M) string { return m.message.Text }),
	})
}
