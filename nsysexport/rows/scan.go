package rows

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/sgtrace/sgtrace/nsysexport/storage"
	"github.com/sgtrace/sgtrace/trace"
)

// A cursor points to a row of a table.
type cursor struct {
	rows    storage.Rows
	sel     *selection
	ints    []int64 // by number of the column
	names   *names
	base    int64 // offset of times
	devices *devices
}

// newCursor returns a cursor over rows, before the first one.
func (s *Source) newCursor(rows storage.Rows, sel *selection, names *names) *cursor {
	// The values of missing columns follow those of the present ones.
	return &cursor{rows: rows, sel: sel, ints: slices.Clone(sel.none), names: names, base: s.base, devices: s.devices}
}

// read reads the integers of a row.
func (c *cursor) read() {
	n := len(c.sel.columns)
	c.rows.Ints(c.sel.none[:n], c.ints[:n])
}

// meets reads the column of a condition, and reports whether the row meets it.
func (c *cursor) meets(when *condition) bool {
	if c.sel.has(when.column) {
		at := c.sel.at[when.column]
		c.ints[at] = c.rows.Int(at)
	}
	return when.wanted(c)
}

// int returns the value of a column.
func (c *cursor) int(column int) int64 { return c.ints[c.sel.at[column]] }

// time returns the value of a column that holds a time.
func (c *cursor) time(column int) trace.Time { return trace.Time(c.int(column) + c.base) }

// null reports whether a column has no value.
func (c *cursor) null(column int) bool {
	return !c.sel.has(column) || c.rows.Null(c.sel.at[column])
}

// float returns the value of a column, 0 if it has none.
func (c *cursor) float(column int) float64 {
	if !c.sel.has(column) {
		return 0
	}
	return c.rows.Float(c.sel.at[column])
}

// bytes returns the text or blob of a column, valid until the next call.
func (c *cursor) bytes(column int) []byte {
	if !c.sel.has(column) {
		return nil
	}
	return c.names.keep(c.rows.Bytes(c.sel.at[column], c.names.buf))
}

// text returns the text of a column.
func (c *cursor) text(column int) string { return string(c.bytes(column)) }

// textSym returns the symbol of a column's text.
func (c *cursor) textSym(column int) trace.Sym { return c.names.cache.Intern(c.bytes(column)) }

// name returns the symbol of a column that refers to StringIds. Tools that rewrite exports may put the text
// itself there.
func (c *cursor) name(column int) trace.Sym {
	// No name begins with a digit, so that a text reads as number 0.
	if id := c.int(column); id != 0 {
		return c.names.sym(id)
	}
	if !c.sel.has(column) {
		return 0
	}
	switch c.rows.Kind(c.sel.at[column]) {
	case storage.Integer:
		return c.names.sym(0)
	case storage.Text:
		return c.textSym(column)
	}
	return 0
}

// scan passes the rows of a table to each, in the order of the file, until each returns false; in that case,
// scan returns false. A missing table has no rows; a damaged one has those before the damage.
func (s *Source) scan(spec *tableSpec, each func(*cursor) bool) (more bool) {
	c, err := s.connect()
	if err != nil {
		s.Diag(trace.NsysTableUnreadable, spec.names[0], 0, err)
		return true
	}
	defer s.release(c)
	return s.scanOn(c, spec, each)
}

func (s *Source) scanOn(c *connection, spec *tableSpec, each func(*cursor) bool) (more bool) {
	sel, err := s.choose(c, spec)
	switch {
	case err != nil:
		s.Diag(trace.NsysTableUnreadable, spec.names[0], 0, err)
		return true
	case sel == nil:
		return true
	case sel.missing != "":
		if c.Conn.Rows(sel.table) != 0 { // exports with --lazy=false have all tables
			s.Diag(trace.NsysColumnMissing, sel.table, 0, sel.missing)
		}
		return true
	}
	rows, err := c.Conn.Scan(sel.table, sel.columns)
	if err != nil {
		s.damaged(spec, sel.table, 0, &storage.Loss{Err: err, Behind: true})
		return true
	}
	defer rows.Close()
	if spec.within != nil {
		if w := sel.overlapping(spec); w != nil {
			rows.Within(w)
		}
	}
	cur := s.newCursor(rows, sel, c.names)
	c.names.begin(sel.table, rows.Read)
	for rows.Next() {
		if spec.when != nil && !cur.meets(spec.when) {
			continue
		}
		if cur.read(); !each(cur) {
			return false
		}
	}
	if lost := rows.Loss(); lost != nil {
		s.damaged(spec, sel.table, rows.Read(), lost)
	}
	return true
}

// damaged reports the rows of a table lost to damage, after read rows.
func (s *Source) damaged(spec *tableSpec, table string, read int64, l *storage.Loss) {
	if spec.quiet {
		return
	}
	state := "damaged"
	if s.store.State().Cut() {
		state = "cut off"
	}
	s.Diag(trace.NsysTableDamaged, table, l.At+1, state, fmt.Sprintf("%d rows were read, %v are lost", read, l), l.Err)
}

// Counts returns the numbers of rows of the largest tables, as far as they are credible: they are equal for two
// exports of one session.
func (s *Source) Counts() (rows [5]int64) {
	for i, spec := range []*tableSpec{&kernelTable, &apiTable, &memcpyTable, &memsetTable, &nvtxTable} {
		rows[i] = s.count(spec)
	}
	return rows
}

// count returns the number of rows of a table, as far as that is credible.
func (s *Source) count(spec *tableSpec) int64 {
	c, err := s.connect()
	if err != nil {
		return 0
	}
	defer s.release(c)
	for _, name := range spec.names {
		if table := s.find(name); table != "" {
			return max(c.Conn.Rows(table), 0)
		}
	}
	return 0
}

// A Window is a source restricted to a window of time, or unrestricted. It may omit events that do not overlap
// the window where that saves reading them, but no call that launched overlapping work.
type Window struct {
	*Source
	from, to trace.Time
	// launched returns the range of the correlations of the work in the window.
	launched func() (least, most int64)
}

// Within returns the rows that overlap [from, to]; 0 is unbounded.
func (s *Source) Within(from, to trace.Time) *Window {
	w := &Window{Source: s, from: from, to: to}
	w.launched = sync.OnceValues(w.findLaunched)
	return w
}

// bounded returns the spec of a table restricted to the relevant rows.
func (w *Window) bounded(spec *tableSpec) *tableSpec {
	if w.from == 0 && w.to == 0 {
		return spec
	}
	bounded := *spec
	bounded.within = &storage.Window{From: math.MinInt64, To: math.MaxInt64, Number: storage.NoColumn}
	if w.from != 0 {
		bounded.within.From = int64(w.from) - w.base
	}
	if w.to != 0 {
		bounded.within.To = int64(w.to) - w.base
	}
	return &bounded
}

// calling returns the spec of a table of calls restricted to the relevant rows.
func (w *Window) calling(spec *tableSpec) *tableSpec {
	bounded := w.bounded(spec)
	if bounded.within != nil {
		bounded.within.Number = callCorrelation
		bounded.within.Least, bounded.within.Most = w.launched()
	}
	return bounded
}

func (w *Window) findLaunched() (least, most int64) {
	least, most = math.MaxInt64, math.MinInt64
	add := func(at *Place) bool {
		if c := int64(at.Correlation); c != 0 {
			least, most = min(least, c), max(most, c)
		}
		return true
	}
	w.Kernels(func(k *Kernel) bool { return add(&k.Place) })
	w.GraphRuns(func(g *GraphRun) bool { return add(&g.Place) })
	w.Memcpys(func(m *Memcpy) bool { return add(&m.Place) })
	w.Memsets(func(m *Memset) bool { return add(&m.Place) })
	return least, most
}

// overlapping returns the window of a spec in terms of the selected columns; nil if the table lacks one of
// them.
func (s *selection) overlapping(spec *tableSpec) *storage.Window {
	const start, end = 0, 1
	if !s.has(start) || !s.has(end) || spec.columns[end].name != "end" {
		return nil
	}
	w := *spec.within
	w.Start, w.End = s.at[start], s.at[end]
	if w.Number != storage.NoColumn {
		if !s.has(w.Number) {
			return nil
		}
		w.Number = s.at[w.Number]
	}
	return &w
}
