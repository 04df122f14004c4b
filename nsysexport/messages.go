package nsysexport

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// A Message is a warning or an error of the profiler: lost data, missing rights.
type Message struct {
	Time     trace.Time
	PID      int32 // -1 is unknown
	Severity uint8 // 2 is a warning, 3 an error
	Text     string
}

const (
	messageTime = iota
	messageSeverity
	messagePID
	messageText
)

var messageTable = tableSpec{
	names: []string{"DIAGNOSTIC_EVENT"},
	columns: []column{
		messageTime:     {name: "timestamp", need: true},
		messageSeverity: {name: "severity", need: true},
		messagePID:      {name: "globalPid", none: noID},
		messageText:     {name: "text", need: true},
	},
}

// Messages yields warnings and errors. What is less severe is about the profiler
// itself, with paths of the machine.
func (s *Source) Messages(yield func(*Message) bool) {
	const warning, failure = 2, 3
	var m Message
	s.scan(&messageTable, func(c *cursor) bool {
		severity := c.int(messageSeverity)
		if severity != warning && severity != failure {
			return true
		}
		m = Message{c.time(messageTime), pidOf(c.int(messagePID)), uint8(severity), c.text(messageText)}
		return yield(&m)
	})
}

// A Table is one of the file.
type Table struct {
	Name string
	// Rows is how many it has at most: the exact number in all that nsys writes, and
	// too many where rows were deleted later; -1 is unknown.
	Rows int64
}

// readTables are the tables that methods of a Source read.
var readTables = []*tableSpec{
	&metaExport, &metaCapture, &systemEnv, &sessionStart, &analysisDetails, &gpuTable, &deviceTable, &processTable,
	&threadTable, &streamTable, &nullStream, &mpiRanks, &kernelTable, &apiTable, &driverTable, &osTable, &memcpyTable,
	&memsetTable, &memoryTable, &graphTable, &nodeTable, &syncTable, &metricNames, &gpuMetrics, &nicMetrics,
	&schedTable, &messageTable, &nvtxTable, &payloadTable,
}

// listUnread lists the tables that hold something and are not read.
func (s *Source) listUnread(c *connection) {
	// Labels of numbers hold no data of a run; nor do those tables whose name begins
	// with ENUM_.
	read := map[string]bool{"StringIds": true, "UnwindMethodType": true}
	specs := readTables
	for i := range libraryTables {
		specs = append(specs[:len(specs):len(specs)], &libraryTables[i].spec)
	}
	for _, spec := range specs {
		if sel, err := s.choose(c.conn, spec); err == nil && sel != nil && sel.missing == "" {
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

// nicName names a port of a network card.
func nicName(card, port int64) string {
	return fmt.Sprintf("NIC %#x port %d", uint64(card), port)
}
