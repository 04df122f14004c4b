package rows

import (
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/nsysexport/storage"
	"github.com/sgtrace/sgtrace/trace"
)

// A Table is a table of the file.
type Table struct {
	Name string
	// Rows is an upper bound of the number of rows: exact in all that nsys writes, and too large if rows were
	// deleted later; -1 is unknown.
	Rows int64
}

// readTables are the tables with facts about all events, or with the meanings of numbers.
var readTables = []*tableSpec{
	&metaExport, &metaCapture, &systemEnv, &sessionStart, &analysisDetails, &gpuTable, &deviceTable, &processTable,
	&threadTable, &streamTables[0], &streamTables[1], &mpiRanks, &metricNames, &networkNames, &nicNumbers, &nicNames, &payloadTable,
	&chainTables[SampleChains], &chainTables[CUDAChains], &chainTables[OSChains],
}

// eventTables returns the tables of events that are read. Their first column is the start of an event; the
// second one is its end if it is called "end".
func eventTables() []*tableSpec {
	specs := []*tableSpec{
		&kernelTable, &graphTable, &memcpyTable, &memsetTable, &syncTable, &apiTable, &driverTable, &nodeTable, &memoryTable,
		&nvtxTable, &osTable, &schedTable, &stackTable, &gpuMetrics, &nicMetrics, &switchMetrics,
	}
	for i := range libraryTables {
		specs = append(specs, &libraryTables[i].spec)
	}
	return append(specs, &messageTable)
}

// An EventTable is a table whose events are read.
type EventTable struct {
	Table
	// First is the start of the event in the first row, Last the end of the event in the last row. Rows are nearly
	// in the order of their start. Timed is false if the times are unknown.
	First, Last trace.Time
	Timed       bool
}

// EventTables returns the nonempty tables of events, with the facts that their first and last rows show.
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
		t := EventTable{Table: Table{sel.table, c.Conn.Rows(sel.table)}}
		if t.Rows == 0 {
			continue
		}
		first, _, ok := s.rowTimes(c.Conn.Scan, spec, sel)
		_, last, also := s.rowTimes(c.Conn.Last, spec, sel)
		t.First, t.Last, t.Timed = first, last, ok && also
		tables = append(tables, t)
	}
	return tables
}

// Extent returns the start of the first event and the end of the last one, within the session, as far as the
// first and last rows of the tables show. Damage is reported when the tables are read.
func (s *Source) Extent() (first, last trace.Time) {
	begins, ends := s.Meta.SessionStart, s.Meta.SessionStart+trace.Time(max(0, s.Meta.Duration))
	first, last = math.MaxInt64, math.MinInt64
	c, err := s.connect()
	if err != nil {
		return begins, ends
	}
	defer s.release(c)
	for _, spec := range []*tableSpec{&kernelTable, &graphTable, &memcpyTable, &memsetTable, &apiTable, &driverTable, &nvtxTable, &osTable} {
		quiet := *spec
		quiet.quiet = true
		sel := s.readable(c, &quiet)
		if sel == nil {
			continue
		}
		if from, _, ok := s.rowTimes(c.Conn.Scan, &quiet, sel); ok && from >= begins {
			first = min(first, from)
		}
		if _, to, ok := s.rowTimes(c.Conn.Last, &quiet, sel); ok && (to <= ends || ends == begins) {
			last = max(last, to)
		}
	}
	if first > last {
		return begins, ends
	}
	return first, last
}

// rowTimes returns the times of the first row of the rows that begin returns.
func (s *Source) rowTimes(begin func(table string, columns []string) (storage.Rows, error), spec *tableSpec, sel *selection) (start, end trace.Time, ok bool) {
	rows, err := begin(sel.table, sel.columns)
	if err != nil {
		s.damaged(spec, sel.table, 0, &storage.Loss{Err: err, Behind: true})
		return 0, 0, false
	}
	defer rows.Close()
	if !rows.Next() {
		if lost := rows.Loss(); lost != nil {
			s.damaged(spec, sel.table, 0, lost)
		}
		return 0, 0, false
	}
	cur := s.newCursor(rows, sel, nil)
	cur.read()
	const startColumn, endColumn = 0, 1
	start, ok = cur.time(startColumn), !cur.null(startColumn)
	end = start
	if spec.columns[endColumn].name == "end" && !cur.null(endColumn) {
		end = cur.time(endColumn)
	}
	return start, end, ok
}

// readable returns the selection for a spec; nil if there is no such table, or it lacks a column.
func (s *Source) readable(c *connection, spec *tableSpec) *selection {
	sel, err := s.choose(c, spec)
	if err != nil || sel == nil || sel.missing != "" {
		return nil
	}
	return sel
}

// listUnread lists the tables with rows that are not read.
func (s *Source) listUnread(c *connection) {
	// Labels of numbers hold no data of a run, and neither do tables whose name begins with ENUM_.
	read := map[string]bool{"StringIds": true, "UnwindMethodType": true}
	specs := slices.Concat(readTables, eventTables())
	for _, spec := range specs {
		if sel := s.readable(c, spec); sel != nil {
			read[sel.table] = true
		}
	}
	for _, name := range s.store.Tables() {
		if read[name] || strings.HasPrefix(name, "ENUM_") {
			continue
		}
		if n := c.Conn.Rows(name); n != 0 {
			s.Unread = append(s.Unread, Table{name, n})
		}
	}
}
