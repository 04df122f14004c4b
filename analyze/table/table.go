package table

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/similar"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Unit is the type and unit of a column's cells.
type Unit uint8

const (
	Text     Unit = iota // Cell.Text
	Count                // Cell.N
	Duration             // Cell.N, ns
	Instant              // Cell.N, Unix ns
	Bytes                // Cell.N
	Share                // Cell.Share, 0 to 1, in percent for people
	Number               // Cell.Share, any number
	Factor               // Cell.Share, a ratio that may exceed 1
)

// Real reports whether the value of a cell is in Cell.Share.
func (u Unit) Real() bool { return u == Share || u == Number || u == Factor }

// A Column describes one column of a report.
type Column struct {
	Name string // for people; for programs, Key adds the unit
	// Title replaces Name for people if Name might be taken for another number.
	Title string
	Unit  Unit
	Doc   string
	// Scale names a set of columns that people compare, so that they are printed in one unit. If it is "", the column
	// has a unit of its own.
	Scale string
	// Detail columns are only in CSV and JSON.
	Detail bool
	// Tenths says that Cell.N is in tenths of the unit: averages are exact where a float would not be, and rounded
	// only once.
	Tenths bool
	// Most is the largest width of a text for people; longer texts have their middle cut out. 0 is unlimited.
	Most int
	// Importance is how long the column stays on a narrow terminal. Names stay as long as they distinguish rows.
	Importance Importance
}

// Key returns the name of c in CSV and JSON: in snake case, with the unit.
func (c Column) Key() string {
	key := strings.ReplaceAll(c.Name, " ", "_")
	switch c.Unit {
	case Duration:
		return key + "_ns"
	case Instant:
		return key + "_unix_ns"
	case Bytes:
		return key + "_bytes"
	}
	return key
}

// A Cell is one value. The unit of the column says which field holds it.
type Cell struct {
	Text    string
	N       int64
	Share   float64
	Unknown bool
	Tone    Tone // for people
}

// TextCell returns a cell of s, unknown if s is empty.
func TextCell(s string) Cell { return Cell{Text: s, Unknown: s == ""} }

// NumberCell returns a cell of n, unknown if n is request.Unknown.
func NumberCell(n int64) Cell { return Cell{N: n, Unknown: n == request.Unknown} }

// InstantCell returns a cell of a time that is known.
func InstantCell(t trace.Time) Cell { return Cell{N: int64(t)} }

// A Table holds typed cells, in the order in which they are printed.
type Table struct {
	Schema    string // "sgtrace.report.stages/v1"; columns are only ever added to a schema
	Part      string // "ttft": distinguishes tables with the same schema in one report
	Title     string
	Columns   []Column
	Footnotes []string
	Folding   *Folding // for [FormatFolded]; nil if rows are not stacks

	order []int32 // rows of the source, as printed
	whole []int32 // including rows removed by a limit; nil is order
	cell  func(row, column int) Cell
}

// A Field is a column with the function that computes its cells.
type Field[T any] struct {
	Column
	Cell func(*T) Cell
}

// New makes a table of rows, which must not change afterward.
func New[T any](schema, title string, rows []T, fields []Field[T]) *Table {
	r := &Table{Schema: schema, Title: title, order: make([]int32, len(rows))}
	for _, f := range fields {
		r.Columns = append(r.Columns, f.Column)
	}
	for i := range r.order {
		r.order[i] = int32(i)
	}
	r.cell = func(row, column int) Cell { return fields[column].Cell(&rows[row]) }
	return r
}

// Stay marks the columns that are removed last on a narrow terminal: the numbers that the table is about. It returns
// the table.
func (r *Table) Stay(names ...string) *Table { return r.rank(Major, names) }

// Leave marks the columns that are removed first. It returns the table.
func (r *Table) Leave(names ...string) *Table { return r.rank(Minor, names) }

// rank sets the importance of columns. It ignores names that the table does not have, because some tables have a
// column only by rank.
func (r *Table) rank(importance Importance, names []string) *Table {
	for c := range r.Columns {
		if slices.Contains(names, r.Columns[c].Name) {
			r.Columns[c].Importance = importance
		}
	}
	return r
}

// Name returns the name of the table in its report: its schema without the version and the common prefixes, and its
// part. "stages", "gpu.idle", "tail.ttft".
func (r *Table) Name() string {
	name, _, _ := strings.Cut(r.Schema, "/")
	for _, prefix := range []string{"sgtrace.", "report.", "inspect."} {
		name = strings.TrimPrefix(name, prefix)
	}
	if r.Part != "" {
		name += "." + r.Part
	}
	return name
}

// Len returns the number of rows.
func (r *Table) Len() int { return len(r.order) }

// Cell returns a cell by its position in the printed table.
func (r *Table) Cell(row, column int) Cell { return r.cell(int(r.order[row]), column) }

// Column returns the index of the column with the given name or key.
func (r *Table) Column(name string) (int, error) {
	for i, c := range r.Columns {
		if name == c.Name || name == c.Key() {
			return i, nil
		}
	}
	return 0, &noColumnError{name, r.Columns}
}

// typedColumn returns the index of the column whose name a user typed: in any case, with or without a unit.
func (r *Table) typedColumn(name string) (int, error) {
	at, err := r.Column(name)
	if err == nil {
		return at, nil
	}
	plain := func(name string) string {
		name, _, _ = strings.Cut(strings.ToLower(name), "[")
		return strings.TrimSpace(strings.NewReplacer("_", " ", "-", " ").Replace(name))
	}
	name = plain(name)
	for i, c := range r.Columns {
		unit, ok := strings.CutPrefix(name, plain(c.Name))
		if ok && (unit == "" || c.Unit == Duration && slices.Contains([]string{" ns", " us", " ms", " s"}, unit)) {
			return i, nil
		}
	}
	return 0, err
}

// A noColumnError formats its text only when needed, because most callers that look for a column can do without it.
type noColumnError struct {
	name string
	of   []Column
}

func (e *noColumnError) Error() string {
	names := order.Each(e.of, func(c Column) string { return c.Name })
	return fmt.Sprintf("no column %q%s There are %s", e.name, cmp.Or(similar.Hint(e.name, names), "."), strings.Join(names, ", "))
}

// ColumnNames returns the names of all columns, with keys for names that contain spaces, so that they need no quotes
// in a shell.
func (r *Table) ColumnNames() (names []string) {
	for _, c := range r.Columns {
		name := c.Name
		if strings.Contains(name, " ") {
			name = c.Key()
		}
		names = append(names, name)
	}
	return names
}

// Sort sorts the rows by a column. Equal rows keep their order, and unknown values go last in either direction.
func (r *Table) Sort(column string, descending bool) error {
	c, err := r.typedColumn(column)
	if err != nil {
		return err
	}
	type keyed struct {
		key Cell
		row int32
	}
	rows := order.Each(r.order, func(row int32) keyed { return keyed{r.cell(int(row), c), row} })
	slices.SortStableFunc(rows, func(x, y keyed) int {
		a, b := x.key, y.key
		switch {
		case a.Unknown || b.Unknown:
			return order.Bool(a.Unknown, b.Unknown)
		case descending:
			a, b = b, a
		}
		return cmp.Or(cmp.Compare(a.N, b.N), cmp.Compare(a.Share, b.Share), strings.Compare(a.Text, b.Text))
	})
	for i := range rows {
		r.order[i] = rows[i].row
	}
	return nil
}

// Limit keeps the first n rows, and adds a footnote.
func (r *Table) Limit(n int) {
	if n < 0 || n >= len(r.order) {
		return
	}
	r.Footnotes = append(r.Footnotes, fmt.Sprintf("%d of %d rows %s shown", n, len(r.order), words.IsOrAre(n)))
	if r.whole == nil {
		r.whole = r.order
	}
	r.order = r.order[:n]
}

// Note adds a footnote.
func (r *Table) Note(format string, args ...any) {
	r.Footnotes = append(r.Footnotes, fmt.Sprintf(format, args...))
}
