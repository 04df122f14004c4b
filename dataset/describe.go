package dataset

import (
	"reflect"
	"strings"
)

// A Table is a table of a dataset, as docs/DATASET.md describes it.
type Table struct {
	Name string
	// Parts are the suffixes of its file names, one for each kind of rows.
	Parts   []string
	Doc     string
	Columns []Column
}

// A Column is a column of a table.
type Column struct {
	Name, Type, Unit, Doc string
	Null                  bool // rows may lack a value
}

// Tables lists the tables of a capture.
var Tables = []Table{
	describe[inputRow]("inputs", "The input, in one row. The file's metadata has what `sgtrace inspect` says about it."),
	describe[diagRow]("diagnostics", "Problems with the input, one message per row. A capture without this table is complete."),
	describe[spanRow]("spans", "Spans of a dump, in file order. Duplicates are still there."),
	describe[eventRow]("events", "Events of spans, in the order of their spans."),
	describe[linkRow]("links", "Links of spans to others, in the order of their spans."),
	describe[resourceRow]("resources", "Processes that emitted spans."),
	describe[valueRow]("values", "What logs and metrics tell over time, one value per row. Datasets made with `--redact` have none."),
	describe[happenedRow]("happened", "What logs, kernels, routers, and Kubernetes say that happened. Datasets made with `--redact` have none."),
	describe[enteredRow]("entered", "Collectives, sends, and receives that processes entered, as flight recorders and logs of NCCL have them. Datasets made with `--redact` have none."),
	describe[processRow]("processes", "Processes that a profiler recorded. A file of several ranks, as SGLang merges them, is one."),
	describe[rankRow]("ranks", "Which rank each process is, as far as its own input says."),
	describe[threadRow]("threads", "Tracks that hold events: threads, streams, counters."),
	describe[sliceRow]("slices", "Work on devices, and the calls and ranges of threads. Each kind has its own file.",
		"kernels", "copies", "calls", "ranges", "other"),
	describe[operatorRow]("operators", "Other work of threads: PyTorch operators, Python functions, system calls.",
		"operators", "python", "system"),
	describe[stepRow]("steps", "Batches of a server and iterations of a training loop, from annotations."),
	describe[collectiveRow]("collectives", "Communication kernels, and the calls that launched them."),
	describe[instantRow]("instants", "Events without a duration, such as allocations."),
	describe[counterRow]("counters", "Counters in traces, and sampled metrics of devices, their memory, and network cards.", "traces", "samples"),
	describe[sampleRow]("samples", "Stack samples, backtraces of calls, and when threads ran on a core.", "samples", "backtraces", "runs"),
	describe[stackRow]("stacks", "Call stacks; samples name the innermost function.", "samples", "backtraces"),
}

// describe returns a table with rows of type T.
func describe[T any](name, doc string, parts ...string) Table {
	if parts == nil {
		parts = []string{"0"}
	}
	return Table{name, parts, doc, columnsOf(reflect.TypeFor[T]())}
}

// sqlTypes maps types of fields to SQL types.
var sqlTypes = map[reflect.Kind]string{reflect.Int32: "INTEGER", reflect.Int64: "BIGINT", reflect.Uint64: "UBIGINT", reflect.Float64: "DOUBLE",
	reflect.Bool: "BOOLEAN", reflect.String: "VARCHAR"}

func columnsOf(row reflect.Type) (columns []Column) {
	for f := range row.Fields() {
		if f.Anonymous {
			columns = append(columns, columnsOf(f.Type)...)
			continue
		}
		name, how, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		kind := f.Type.Kind()
		if kind == reflect.Pointer {
			kind = f.Type.Elem().Kind()
		}
		columns = append(columns, Column{name, sqlTypes[kind], f.Tag.Get("unit"), f.Tag.Get("doc"), strings.Contains(how, "optional")})
	}
	return columns
}
