// Package views writes the SQL with which an engine reads a dataset as reports do: views over the Parquet
// files of captures, and over the tables of 'sgtrace dataset solve'. There is one source, views.sql;
// differences between engines are in [Dialects].
package views

import (
	_ "embed"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/sgtrace/sgtrace/dataset"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/tablefile"
)

//go:embed views.sql
var source string

// percentiles are the percentiles in summaries.
var percentiles = []int{50, 90, 95, 99}

// data is the input of the template.
type data struct {
	Dataset        string
	Macros         []string
	Slices         []events
	Summaries      []summary
	RequestColumns string
}

// events describes the view of one kind of slices.
type events struct{ View, File, Doc, More string }

// A summary is a view that matches a report on stages.
type summary struct {
	View, Report, Keys, Order string
	Percentiles               []int
}

// Write writes the statements that create the views of a dataset, in a dialect. solved is the folder of
// [dataset.SolvedDir].
func Write(w io.Writer, d *Dialect, folder, solved string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	if strings.ContainsAny(folder, `*?[]{}'\`) {
		return fmt.Errorf("%s: engines take some of these characters for a pattern; rename the folder", folder)
	}
	m := &maker{Dialect: d, folder: folder, solved: filepath.Base(solved)}
	t, err := template.New("").Funcs(m.functions()).Parse(source)
	if err != nil {
		return err
	}
	requests := dataset.SolvedTables[0].Columns
	last := slices.IndexFunc(requests, func(c dataset.Column) bool { return c.Name == "room" })
	on := "s.device as device, s.stream as stream, "
	return t.Execute(w, data{Dataset: folder, Macros: d.macros, RequestColumns: names(requests[:last+1]),
		Slices: []events{
			{"kernels", "slices-kernels", "Kernels that ran on devices, and whole CUDA graphs.", on},
			{"copies", "slices-copies", "Copies between memories, and fills.", on + "s.bytes as bytes, "},
			{"calls", "slices-calls", "Calls into the runtime and the driver of devices.", "s.pid as pid, s.tid as tid, s.result as result, "},
			{"ranges", "slices-ranges", "NVTX ranges, and annotations of PyTorch's profiler.", "s.pid as pid, s.tid as tid, "},
		},
		Summaries: []summary{
			{"stage_summary", "sgtrace report --by-stage --format csv", "stage", "", percentiles},
			{"rank_summary", "sgtrace report --by-rank --format csv", "stage, rank", ", by_rank", percentiles},
		}})
}

// names returns a comma-separated list of columns.
func names(columns []dataset.Column) string {
	list := order.Each(columns, func(c dataset.Column) string { return c.Name })
	return strings.Join(list, ", ")
}

// A maker makes SQL in one dialect for one dataset.
type maker struct {
	*Dialect
	folder, solved string
}

func (m *maker) functions() template.FuncMap {
	variadic := func(name string) func(...string) string {
		return func(args ...string) string { return name + "(" + strings.Join(args, ", ") + ")" }
	}
	cast := func(kind string) func(string) string {
		return func(x string) string { return "cast(" + x + " as " + kind + ")" }
	}
	return template.FuncMap{
		"view":    func(name string) string { return fmt.Sprintf(m.view, name) },
		"columns": func(table string) string { return names(find(dataset.SolvedTables, table).Columns) },
		"solved": func(table string) string {
			return fmt.Sprintf(m.file, filepath.Join(m.folder, dataset.Version, m.solved, table+"-0"+tablefile.ParquetSuffix))
		},
		"captured": m.captured,
		"greatest": variadic("greatest"), "least": variadic("least"),
		"wide": cast(m.wide), "long": cast(m.long), "real": cast(m.real),
		"div":      func(a, b string) string { return fmt.Sprintf(m.div, a, b) },
		"quantile": func(percent int, x string) string { return fmt.Sprintf(m.quantile, fmt.Sprintf("0.%02d", percent), x) },
		"median":   func(x string) string { return fmt.Sprintf(m.median, x) },
		"onOneClock": func(t string) string {
			return t + " - p.ahead - " + cast(m.long)("round(("+t+" - p.t0) * p.drift_ppb / 1e9)")
		},
	}
}

func find(tables []dataset.Table, name string) *dataset.Table {
	return &tables[slices.IndexFunc(tables, func(t dataset.Table) bool { return t.Name == name })]
}

// captured returns the rows of a file across all captures, with the column capture. Engines reject a
// pattern that matches no file; then it returns a table without rows.
func (m *maker) captured(file string) string {
	pattern := filepath.Join(m.folder, dataset.Version, "capture=*", file+tablefile.ParquetSuffix)
	if found, _ := filepath.Glob(pattern); len(found) > 0 {
		return fmt.Sprintf(m.captures, pattern)
	}
	table, _, _ := strings.Cut(file, "-")
	columns := []string{"'' as capture"}
	for _, c := range find(dataset.Tables, table).Columns {
		columns = append(columns, fmt.Sprintf("cast(null as %s) as %s", m.types[c.Type], fmt.Sprintf(m.name, c.Name)))
	}
	return "(select " + strings.Join(columns, ", ") + " where 1 = 0)"
}
