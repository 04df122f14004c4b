package inspect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// All says what inputs of all kinds hold: the files of profilers, then those of
// requests, which may be nil, then what was found wrong with any of them. Tables
// without rows are left out.
func All(v *inventory.Inventory, s *request.Set, diags []trace.Diag) []*table.Table {
	all := []*table.Table{
		reportExports(v.Exports), reportTraces(v.Traces), reportProcesses(v.Processes), reportGPUs(v.Devices),
		reportTables(v.Tables), reportCategories(v.Categories), reportMessages(v.Messages), reportLogs(v.Logs),
	}
	if s != nil {
		all = append(all, inspectRequests(s)...)
	}
	return withRows(append(all, reportDiags(diags)))
}

// Tables are the names of all tables that All can return, in its order.
var Tables = []string{
	"exports", "traces", "processes", "gpus", "tables", "categories", "messages", "logs",
	"files", "services", "ranks", "counts", "diagnostics",
}

// clockWord says whether a file has recorded what its times count from.
func clockWord(absolute bool) string {
	if absolute {
		return "recorded"
	}
	return "unknown"
}

func reportExports(rows []inventory.Export) *table.Table {
	type E = inventory.Export
	return table.New("sgtrace.inspect.exports/v1", "Nsight Systems exports", rows, []table.Field[E]{
		table.FileField(func(e *E) string { return e.File }),
		table.BytesColumn("size", "size of the file", func(e *E) int64 { return e.Size }),
		table.TextColumn("product", "version of nsys that wrote the export", func(e *E) string { return e.Product }),
		table.TextColumn("schema", "version of the export schema", func(e *E) string { return e.Schema }),
		table.TextColumn("host", "host that was profiled", func(e *E) string { return e.Host }),
		table.TextColumn("clock", "recorded: times are absolute; unknown: they count from the start of the session, and the clock must be given or matched",
			func(e *E) string { return clockWord(e.Absolute) }),
		table.TimeField("start", "start of the session, Unix time", func(e *E) (trace.Time, bool) { return e.Start, e.Absolute }),
		table.NsColumn("duration", "length of the session", func(e *E) int64 { return e.Duration }),
		table.TextColumn("graphs", "how CUDA graphs were traced: Node (each kernel) or Graph (each launch as a whole)", func(e *E) string { return e.GraphMode }),
		table.TextColumn("driver", "version of the GPU driver", func(e *E) string { return e.Driver }),
		table.TextColumn("only tables", "tables that nsys export was limited to; the nsys report may have more", func(e *E) string { return e.PartialTables }),
		table.TextColumn("only times", "times that nsys export was limited to; the nsys report may have more", func(e *E) string { return e.PartialTimes }),
	})
}

func reportTraces(rows []inventory.Trace) *table.Table {
	type T = inventory.Trace
	return table.New("sgtrace.inspect.traces/v1", "Traces", rows, []table.Field[T]{
		table.FileField(func(t *T) string { return t.File }),
		table.BytesColumn("size", "size of the file as stored, possibly compressed", func(t *T) int64 { return t.Size }),
		table.TextColumn("producer", "producer: PyTorch profiler, rocpd, or another producer of Chrome JSON", func(t *T) string { return t.Producer }),
		table.TextColumn("schema", "schemaVersion", func(t *T) string { return t.Schema }),
		table.TextColumn("runtime", "version of the CUDA or HIP runtime", func(t *T) string { return t.Runtime }),
		table.TextColumn("recorded", "what was recorded besides events, such as shapes or stacks", func(t *T) string { return t.Recorded }),
		table.TextColumn("host", "host_name", func(t *T) string { return t.Host }),
		table.TextColumn("backend", "backend of torch.distributed", func(t *T) string { return t.Backend }),
		table.TextColumn("clock", "recorded: times are absolute; unknown: the file does not say what they count from",
			func(t *T) string { return clockWord(t.Absolute) }),
	})
}

func reportProcesses(rows []inventory.Process) *table.Table {
	type P = inventory.Process
	known := func(n int64, none int64) int64 {
		if n == none {
			return request.Unknown
		}
		return n
	}
	timed := func(of func(p *P) trace.Time) func(*P) (trace.Time, bool) {
		return func(p *P) (trace.Time, bool) { return of(p), p.Timed }
	}
	return table.New("sgtrace.inspect.processes/v1", "Processes", rows, []table.Field[P]{
		table.FileField(func(p *P) string { return p.File }),
		table.TextColumn("part", "part of a merged file", func(p *P) string { return p.Is.Part }),
		table.CountColumn("n", "number of processes; in exports, all processes without traced activity share a row", func(p *P) int64 { return p.N }),
		table.CountColumn("pid", "process ID", func(p *P) int64 { return known(p.PID, 0) }),
		table.TextColumn("name", "process name", func(p *P) string { return p.Name }),
		table.TextColumn("host", "host, from a label, the file's content, or its name", func(p *P) string { return p.Is.Host }),
		table.TextColumn("rank", "parallel ranks, such as DP1 TP0, or the global rank", func(p *P) string { return p.Is.Rank.String() }),
		table.TextColumn("from", "how the rank was determined", func(p *P) string { return p.Is.RankFrom }),
		table.CountColumn("world", "total number of ranks in the job (world size)", func(p *P) int64 { return known(int64(p.World), -1) }),
		table.TextColumn("gpus", "IDs of the GPUs that it could use", func(p *P) string { return list(p.GPUs) }),
		table.CountColumn("events", "number of events; for exports: GPU work, calls, and annotations", func(p *P) int64 { return p.Events }),
		table.TimeField("first", "earliest start, Unix time", timed(func(p *P) trace.Time { return p.First })),
		table.TimeField("last", "latest end, Unix time", timed(func(p *P) trace.Time { return p.Last })),
		table.CountColumn("steps", "number of annotated batches and iterations", func(p *P) int64 { return p.Steps }),
		table.CountColumn("collectives", "number of collective kernels, else of collective calls", func(p *P) int64 { return p.Collectives }),
	})
}

func reportGPUs(rows []inventory.Devices) *table.Table {
	type G = inventory.Devices
	return table.New("sgtrace.inspect.gpus/v1", "GPUs", rows, []table.Field[G]{
		table.FileField(func(g *G) string { return g.File }),
		table.CountColumn("n", "count", func(g *G) int64 { return int64(len(g.IDs)) }),
		table.TextColumn("model", "GPU model", func(g *G) string { return g.Name }),
		table.TextColumn("ids", "GPU IDs on the host", func(g *G) string { return list(g.IDs) }),
	})
}

func reportTables(rows []inventory.Table) *table.Table {
	type T = inventory.Table
	return table.New("sgtrace.inspect.tables/v1", "Tables", rows, []table.Field[T]{
		table.FileField(func(t *T) string { return t.File }),
		table.TextColumn("table", "table (empty ones are left out)", func(t *T) string { return t.Name }),
		table.CountColumn("rows", "number of rows, from the first and last row IDs: exact as nsys writes tables, too high if rows were deleted later",
			func(t *T) int64 { return t.Rows }),
		table.TextColumn("read", "no: sgtrace does not use this table", func(t *T) string {
			if t.Read {
				return "yes"
			}
			return "no"
		}),
		table.TimeField("first", "start of the first row, Unix time", func(t *T) (trace.Time, bool) { return t.First, t.Timed }),
		table.TimeField("last", "end of the last row, Unix time", func(t *T) (trace.Time, bool) { return t.Last, t.Timed }),
	})
}

func reportCategories(rows []inventory.Category) *table.Table {
	type C = inventory.Category
	return table.New("sgtrace.inspect.categories/v1", "Events by category", rows, []table.Field[C]{
		table.FileField(func(c *C) string { return c.File }),
		table.TextColumn("category", "category (cat) of the events, or (instants) or (counters), which have none", func(c *C) string { return c.Name }),
		table.CountColumn("events", "number of events", func(c *C) int64 { return c.Events }),
		table.TimeField("first", "earliest start, Unix time", func(c *C) (trace.Time, bool) { return c.First, c.Timed }),
		table.TimeField("last", "latest end, Unix time", func(c *C) (trace.Time, bool) { return c.Last, c.Timed }),
	})
}

func reportMessages(rows []inventory.Message) *table.Table {
	type M = inventory.Message
	return table.New("sgtrace.inspect.messages/v1", "Messages of the profiler", rows, []table.Field[M]{
		table.FileField(func(m *M) string { return m.File }),
		table.TimeField("time", "when it was logged, Unix time", func(m *M) (trace.Time, bool) { return m.Time, m.Timed }),
		table.TextColumn("severity", "warning or error", func(m *M) string { return m.Severity }),
		table.CountColumn("pid", "process ID", func(m *M) int64 { return m.PID }),
		table.TextColumn("message", "message, as nsys wrote it", func(m *M) string { return m.Text }),
	}).Stay("message").Leave("time", "pid")
}

func reportLogs(rows []inventory.Log) *table.Table {
	type L = inventory.Log
	return table.New("sgtrace.inspect.logs/v1", "Logs, metrics, and collectives in flight", rows, []table.Field[L]{
		table.FileField(func(l *L) string { return l.File }),
		table.TextColumn("format", "producer and its versions", func(l *L) string { return l.Format }),
		table.TextColumn("servers", "servers in the file: host, name, engine, role", func(l *L) string { return words.Some(l.Servers, 4) }),
		table.TextColumn("ranks", "ranks and GPUs in the file", func(l *L) string { return words.Some(l.Ranks, 4) }),
		table.CountColumn("lines", "total number of lines", func(l *L) int64 { return l.Lines }),
		table.CountColumn("strange", "warnings and errors that sgtrace does not recognize", func(l *L) int64 { return l.Strange }),
		table.CountColumn("samples", "number of metric samples", func(l *L) int64 { return l.Samples }),
		table.CountColumn("events", "number of events: errors, retractions, starts, ends, and others", func(l *L) int64 { return l.Events }),
		table.CountColumn("collectives", "number of collectives in the dump", func(l *L) int64 { return l.Collectives }),
		table.CountColumn("pending", "number of collectives that had not ended", func(l *L) int64 { return l.Pending }),
		table.TimeField("first", "earliest timestamp, Unix time", func(l *L) (trace.Time, bool) { return l.First, l.Timed }),
		table.TimeField("last", "latest timestamp, Unix time", func(l *L) (trace.Time, bool) { return l.Last, l.Timed }),
		table.TextColumn("not known", "what the file does not say, such as the host or time zone", func(l *L) string { return strings.Join(l.NotKnown, "; ") }),
	}).Stay("not known")
}

// list returns numbers as text, with a dash for three and more in a row: "0-7, 9".
func list(numbers []int64) string {
	numbers = slices.Compact(slices.Sorted(slices.Values(numbers)))
	var words []string
	for i := 0; i < len(numbers); {
		end := i + 1
		for end < len(numbers) && numbers[end] == numbers[end-1]+1 {
			end++
		}
		if end-i >= 3 {
			words = append(words, fmt.Sprintf("%d-%d", numbers[i], numbers[end-1]))
			i = end
			continue
		}
		words = append(words, strconv.FormatInt(numbers[i], 10))
		i++
	}
	return strings.Join(words, ", ")
}
