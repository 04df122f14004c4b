package rows

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// A Table is one of the file.
type Table struct {
	Name string
	// Rows is how many it has at most: the exact number in all that nsys writes, and
	// too many where rows were deleted later; -1 is unknown.
	Rows int64
}

// readTables are the tables that say what holds for all events, or what their numbers
// stand for.
var readTables = []*tableSpec{
	&metaExport, &metaCapture, &systemEnv, &sessionStart, &analysisDetails, &gpuTable, &deviceTable, &processTable,
	&threadTable, &streamTable, &nullStream, &mpiRanks, &metricNames, &networkNames, &nicNumbers, &nicNames, &payloadTable,
}

// eventTables returns the tables of events that are read. Their first column is when
// an event begins, the second one is when it ends if it is called "end".
func eventTables() []*tableSpec {
	specs := []*tableSpec{
		&kernelTable, &graphTable, &memcpyTable, &memsetTable, &syncTable, &apiTable, &driverTable, &nodeTable, &memoryTable,
		&nvtxTable, &osTable, &schedTable, &gpuMetrics, &nicMetrics, &switchMetrics,
	}
	for i := range libraryTables {
		specs = append(specs, &libraryTables[i].spec)
	}
	return append(specs, &messageTable)
}

// An EventTable is one whose events are read.
type EventTable struct {
	Table
	// First is when the event of the first row begins, Last when that of the last row
	// ends. Rows are nearly in the order of their start. Timed is false if there is no
	// telling.
	First, Last trace.Time
	Timed       bool
}

// EventTables returns the tables of events that hold something, with the facts about
// them without reading them: their first and last rows.
func (s *Source) EventTables() []EventTable {
	c, err := s.connect()
	if err != nil {
		return nil
	}
	defer s.release(c)
	var tables []EventTable
	for _, spec := range eventTables() {
		sel := s.readable(c, spec)
		if sel == nil {
			continue
		}
		t := EventTable{Table: Table{sel.table, rows(c, sel.table)}}
		if t.Rows == 0 {
			continue
		}
		first, _, ok := s.rowTimes(c, spec, sel, "")
		_, last, also := s.rowTimes(c, spec, sel, " DESC")
		t.First, t.Last, t.Timed = first, last, ok && also
		tables = append(tables, t)
	}
	return tables
}

// rowTimes returns the times of the first row of a table, or of the last one.
func (s *Source) rowTimes(c *connection, spec *tableSpec, sel *selection, order string) (start, end trace.Time, ok bool) {
	stmt, _, err := c.conn.PrepareTransient(sel.sql + " ORDER BY rowid" + order)
	if err != nil {
		return 0, 0, false
	}
	defer stmt.Finalize()
	stmt.BindInt64(1, noRow)
	row, err := stmt.Step()
	if err != nil {
		s.damaged(spec, sel.table, &loss{err: err, behind: true})
	}
	if err != nil || !row {
		return 0, 0, false
	}
	cur := cursor{stmt: stmt, sel: sel, base: s.base}
	const startColumn, endColumn = 0, 1
	start, ok = cur.time(startColumn), !cur.null(startColumn)
	end = start
	if spec.columns[endColumn].name == "end" && !cur.null(endColumn) {
		end = cur.time(endColumn)
	}
	return start, end, ok
}

// readable returns how the table of a spec is read; nil if there is none, or it lacks a
// column.
func (s *Source) readable(c *connection, spec *tableSpec) *selection {
	sel, err := s.choose(c.conn, spec)
	if err != nil || sel == nil || sel.missing != "" {
		return nil
	}
	return sel
}

// listUnread lists the tables that hold something and are not read.
func (s *Source) listUnread(c *connection) {
	// Labels of numbers hold no data of a run; nor do those tables whose name begins
	// with ENUM_.
	read := map[string]bool{"StringIds": true, "UnwindMethodType": true}
	specs := slices.Concat(readTables, eventTables())
	for _, spec := range specs {
		if sel := s.readable(c, spec); sel != nil {
			read[sel.table] = true
		}
	}
	for _, name := range s.schema.tables {
		if read[name] || strings.HasPrefix(name, "ENUM_") {
			continue
		}
		if n := rows(c, name); n != 0 {
			s.Unread = append(s.Unread, Table{name, n})
		}
	}
}

// rows returns how many rows a table has. Counting them would read all of it.
func rows(c *connection, table string) int64 {
	var bounds [2]int64
	for i, end := range []string{"min", "max"} {
		stmt, _, err := c.conn.PrepareTransient(fmt.Sprintf("SELECT %s(rowid) FROM %s", end, quote(table)))
		if err != nil {
			return -1 // WITHOUT ROWID, which nsys does not use
		}
		row, err := stmt.Step()
		empty := err == nil && row && stmt.ColumnIsNull(0)
		if err == nil && row {
			bounds[i] = stmt.ColumnInt64(0)
		}
		stmt.Finalize()
		switch {
		case empty:
			return 0
		case err != nil || !row:
			return -1
		}
	}
	return max(bounds[1]-bounds[0], 0) + 1
}
