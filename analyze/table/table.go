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

func (u Unit) Real() bool { return u == Share || u == Number || u == Factor }

// A Column describes one column of a report.
type Column struct {
	Name       string // for people; for programs, Key adds the unit
	Title      string
	Unit       Unit
	Doc        string
	Scale      string
	Detail     bool
	Tenths     bool
	Most       int
	Importance Importance
}

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

type Cell struct {
	Text    string
	N       int64
	Share   float64
	Unknown bool
	Tone    Tone // for people
}

func TextCell(s string) Cell { return Cell{Text: s, Unknown: s == ""} }

func NumberCell(n int64) Cell { return Cell{N: n, Unknown: n == request.Unknown} }

func InstantCell(t trace.Time) Cell { return Cell{N: int64(t)} }

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

type Field[T any] struct {
	Column
	Cell func(*T) Cell
}

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

func (r *Table) Stay(names ...string) *Table { return r.rank(Major, names) }

func (r *Table) Leave(names ...string) *Table { return r.rank(Minor, names) }

func (r *Table) rank(importance Importance, names []string) *Table {
	for c := range r.Columns {
		if slices.Contains(names, r.Columns[c].Name) {
			r.Columns[c].Importance = importance
		}
	}
	return r
}

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

func (r *Table) Cell(row, column int) Cell { return r.cell(int(r.order[row]), column) }

func (r *Table) Column(name string) (int, error) {
	for i, c := range r.Columns {
		if name == c.Name || name == c.Key() {
			return i, nil
		}
	}
	return 0, &noColumnError{name, r.Columns}
}

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

type noColumnError struct {
	name string
	of   []Column
}

func (e *noColumnError) Error() string {
	names := order.Each(e.of, func(c Column) string { return c.Name })
	return fmt.Sprintf("no column %q%s There are %s", e.name, cmp.Or(similar.Hint(e.name, names), "."), strings.Join(names, ", "))
}

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
