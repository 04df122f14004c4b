package analyze

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/inventory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// InspectAll says what inputs of all kinds hold: the files of profilers, then those of
// requests, which may be nil, then what was found wrong with any of them. Tables
// without rows are left out.
func InspectAll(v *inventory.Inventory, s *request.Set, diags []trace.Diag) []*Report {
	all := []*Report{
		reportExports(v.Exports), reportTraces(v.Traces), reportProcesses(v.Processes), reportGPUs(v.Devices),
		reportTables(v.Tables), reportCategories(v.Categories), reportMessages(v.Messages),
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

func reportExports(rows []inventory.Export) *Report {
	type E = inventory.Export
	return tabulate("sgtrace.inspect.exports/v1", "Nsight Systems exports", rows, []field[E]{
		fileField(func(e *E) string { return e.File }),
		{Column{Name: "size", Unit: Bytes, Doc: "of the file"}, func(e *E) Cell { return numberCell(e.Size) }},
		textField("product", "version of nsys that exported", func(e *E) string { return e.Product }),
		textField("schema", "version of the schema", func(e *E) string { return e.Schema }),
		textField("host", "that was profiled", func(e *E) string { return e.Host }),
		textField("clock", "recorded: times are absolute; unknown: they count from the start of the session, and the clock must be given or matched",
			func(e *E) string { return clockWord(e.Absolute) }),
		timeField("start", "of the session, Unix time", func(e *E) (trace.Time, bool) { return e.Start, e.Absolute }),
		{Column{Name: "duration", Unit: Duration, Doc: "of the session"}, func(e *E) Cell { return numberCell(e.Duration) }},
		textField("graphs", "how CUDA graphs were traced: Node has their kernels, Graph only their runs", func(e *E) string { return e.GraphMode }),
		textField("only tables", "which nsys export was told to export; the report may hold more", func(e *E) string { return e.PartialTables }),
		textField("only times", "which nsys export was told to export; the report may hold more", func(e *E) string { return e.PartialTimes }),
	})
}

func reportTraces(rows []inventory.Trace) *Report {
	type T = inventory.Trace
	return tabulate("sgtrace.inspect.traces/v1", "PyTorch traces", rows, []field[T]{
		fileField(func(t *T) string { return t.File }),
		{Column{Name: "size", Unit: Bytes, Doc: "of the file, compressed if it is"}, func(t *T) Cell { return numberCell(t.Size) }},
		textField("producer", "PyTorch profiler, or Chrome JSON of another one", func(t *T) string { return t.Producer }),
		textField("schema", "schemaVersion", func(t *T) string { return t.Schema }),
		textField("runtime", "version of the CUDA or HIP runtime", func(t *T) string { return t.Runtime }),
		textField("recorded", "besides events", func(t *T) string { return t.Recorded }),
		textField("host", "host_name", func(t *T) string { return t.Host }),
		textField("backend", "of torch.distributed", func(t *T) string { return t.Backend }),
		textField("clock", "recorded: times are absolute; unknown: they count from something that the file does not tell",
			func(t *T) string { return clockWord(t.Absolute) }),
	})
}

func reportProcesses(rows []inventory.Process) *Report {
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
	return tabulate("sgtrace.inspect.processes/v1", "Processes", rows, []field[P]{
		fileField(func(p *P) string { return p.File }),
		textField("part", "of a merged file", func(p *P) string { return p.Is.Part }),
		numberField("n", "processes: those of one name that tell nothing else are one row", func(p *P) int64 { return p.N }),
		numberField("pid", "of the process", func(p *P) int64 { return known(p.PID, 0) }),
		textField("name", "of the process", func(p *P) string { return p.Name }),
		textField("host", "from a label, the file or its name", func(p *P) string { return p.Is.Host }),
		textField("rank", "place in the parallel groups, or in the world", func(p *P) string { return p.Is.Rank.String() }),
		textField("from", "what tells the rank", func(p *P) string { return p.Is.RankFrom }),
		numberField("world", "ranks in all", func(p *P) int64 { return known(int64(p.World), -1) }),
		textField("gpus", "of the machine that it could use, by their ids", func(p *P) string { return list(p.GPUs) }),
		numberField("events", "in the file; those of exports are in the table of tables", func(p *P) int64 { return p.Events }),
		timeField("first", "earliest start, Unix time", timed(func(p *P) trace.Time { return p.First })),
		timeField("last", "latest end, Unix time", timed(func(p *P) trace.Time { return p.Last })),
		numberField("steps", "annotations of batches and iterations", func(p *P) int64 { return p.Steps }),
		numberField("collectives", "kernels of collectives, or their calls where there are none", func(p *P) int64 { return p.Collectives }),
	})
}

func reportGPUs(rows []inventory.Devices) *Report {
	type G = inventory.Devices
	return tabulate("sgtrace.inspect.gpus/v1", "GPUs", rows, []field[G]{
		fileField(func(g *G) string { return g.File }),
		numberField("n", "how many", func(g *G) int64 { return int64(len(g.IDs)) }),
		textField("model", "name of the model", func(g *G) string { return g.Name }),
		textField("ids", "as the machine counts", func(g *G) string { return list(g.IDs) }),
	})
}

func reportTables(rows []inventory.Table) *Report {
	type T = inventory.Table
	return tabulate("sgtrace.inspect.tables/v1", "Tables", rows, []field[T]{
		fileField(func(t *T) string { return t.File }),
		textField("table", "that holds something", func(t *T) string { return t.Name }),
		numberField("rows", "by the numbers of the first and the last row: exact as nsys writes them, too many where rows were deleted later",
			func(t *T) int64 { return t.Rows }),
		textField("read", "no: sgtrace does not draw or report what is in it", func(t *T) string {
			if t.Read {
				return "yes"
			}
			return "no"
		}),
		timeField("first", "start of the first row, Unix time", func(t *T) (trace.Time, bool) { return t.First, t.Timed }),
		timeField("last", "end of the last row, Unix time", func(t *T) (trace.Time, bool) { return t.Last, t.Timed }),
	})
}

func reportCategories(rows []inventory.Category) *Report {
	type C = inventory.Category
	return tabulate("sgtrace.inspect.categories/v1", "Events by category", rows, []field[C]{
		fileField(func(c *C) string { return c.File }),
		textField("category", "cat of the events; (instants) and (counters) have none", func(c *C) string { return c.Name }),
		numberField("events", "how many", func(c *C) int64 { return c.Events }),
		timeField("first", "earliest start, Unix time", func(c *C) (trace.Time, bool) { return c.First, c.Timed }),
		timeField("last", "latest end, Unix time", func(c *C) (trace.Time, bool) { return c.Last, c.Timed }),
	})
}

func reportMessages(rows []inventory.Message) *Report {
	type M = inventory.Message
	return tabulate("sgtrace.inspect.messages/v1", "Messages of the profiler", rows, []field[M]{
		fileField(func(m *M) string { return m.File }),
		timeField("time", "Unix time", func(m *M) (trace.Time, bool) { return m.Time, m.Timed }),
		textField("severity", "warning or error", func(m *M) string { return m.Severity }),
		numberField("pid", "of the process", func(m *M) int64 { return m.PID }),
		textField("message", "as nsys wrote it", func(m *M) string { return m.Text }),
	})
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
