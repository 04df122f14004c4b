package storage

import (
	"errors"
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/internal/tablefile"
	"zombiezen.com/go/sqlite"
)

// A conn reads one table at a time.
type conn struct {
	of   *database
	Conn *sqlite.Conn
}

// Close closes the connection.
func (c *conn) Close() error { return c.Conn.Close() }

// cacheSize limits a connection's page cache to 256 KiB, which SQLite expects as a negative number. A scan
// needs each page only once. With the default of 2 MB, a hundred open exports take half a gigabyte.
const cacheSize = "PRAGMA cache_size=-256"

// Connect opens the file again, without locking, journals, or writing.
func (d *database) Connect() (Conn, error) {
	c, err := d.connect()
	if err != nil {
		return nil, err
	}
	// It fails if the list of tables is damaged, which the first scan reports.
	_ = tablefile.Exec(c, cacheSize)
	return &conn{d, c}, nil
}

func (d *database) connect() (*sqlite.Conn, error) {
	// No value is longer than the file, whatever its length field says.
	return tablefile.OpenSQLite(d.path, int32(d.longest()), d.header.cut())
}

// longest returns the maximum length of a value in bytes.
func (d *database) longest() int64 { return min(max(d.header.size, 1<<10), tablefile.MaxValue) }

// Columns returns the columns of a table. It asks SQLite once per table.
func (c *conn) Columns(table string) ([]Column, error) {
	if known, ok := c.of.columns.Load(table); ok {
		return known.([]Column), nil
	}
	columns, err := c.declared(table)
	if err == nil {
		c.of.columns.Store(table, columns)
	}
	return columns, err
}

// declared asks SQLite for the columns of a table.
func (c *conn) declared(table string) ([]Column, error) {
	const name, kind, notNull, byDefault, key = 1, 2, 3, 4, 5
	stmt, _, err := c.Conn.PrepareTransient("PRAGMA table_info(" + tablefile.Quote(table) + ")")
	if err != nil {
		return nil, err
	}
	var columns []Column
	for {
		row, err := stmt.Step()
		if err != nil || !row {
			return columns, errors.Join(err, stmt.Finalize())
		}
		columns = append(columns, Column{
			Name: stmt.ColumnText(name), Kind: stmt.ColumnText(kind), Key: stmt.ColumnInt(key) != 0,
			// In rows from before a column was added, only SQLite fills in the default.
			NotNull: stmt.ColumnInt(notNull) != 0 && stmt.ColumnIsNull(byDefault),
		})
	}
}

// Scan begins to read a table. It omits rows that belong to another table.
func (c *conn) Scan(table string, columns []string) (Rows, error) {
	s, err := c.newScan(table, columns)
	if err != nil {
		return nil, err // a nil *scan in a Rows would not be nil
	}
	return s, nil
}

// Last begins to read the last row of a table.
func (c *conn) Last(table string, columns []string) (Rows, error) {
	stmt, _, err := c.Conn.PrepareTransient(selection(table, columns) + " ORDER BY rowid DESC LIMIT 1")
	if err != nil {
		return nil, err
	}
	return &lastRow{row: row{stmt}}, nil
}

// minRow is the smallest size of a row in the file in bytes: its cell pointer, size, number, and header.
const minRow = 5

// Rows returns an upper bound of the number of rows of a table. Counting them would read all of it.
func (c *conn) Rows(table string) int64 {
	var ends [2]int64
	for i, end := range []string{"min", "max"} {
		stmt, _, err := c.Conn.PrepareTransient(fmt.Sprintf("SELECT %s(rowid) FROM %s", end, tablefile.Quote(table)))
		if err != nil {
			return -1 // a WITHOUT ROWID table, which nsys does not use
		}
		row, err := stmt.Step()
		empty := err == nil && row && stmt.ColumnIsNull(0)
		if err == nil && row {
			ends[i] = stmt.ColumnInt64(0)
		}
		stmt.Finalize()
		switch {
		case empty:
			return 0
		case err != nil || !row:
			return -1
		}
	}
	if ends[1]-ends[0] < 0 || ends[1]-ends[0] == math.MaxInt64 {
		return 1 // the numbers are damaged
	}
	return min(ends[1]-ends[0]+1, max(c.of.header.size/minRow, 1))
}

// A row is the current row of a statement.
type row struct{ stmt *sqlite.Stmt }

// Within omits nothing.
func (r row) Within(*Window) {}

func (r row) Null(column int) bool { return r.stmt.ColumnIsNull(column) }

func (r row) Kind(column int) Kind {
	switch r.stmt.ColumnType(column) {
	case sqlite.TypeNull:
		return Null
	case sqlite.TypeInteger:
		return Integer
	case sqlite.TypeFloat:
		return Real
	}
	return Text
}

func (r row) Int(column int) int64 { return r.stmt.ColumnInt64(column) }

func (r row) Ints(none, into []int64) { ints(r, none, into) }

func (r row) Float(column int) float64 { return r.stmt.ColumnFloat(column) }

func (r row) Bytes(column int, buf []byte) []byte {
	size := r.stmt.ColumnLen(column)
	if size > cap(buf) {
		buf = make([]byte, size+size/2)
	}
	return buf[:r.stmt.ColumnBytes(column, buf[:size])]
}

func (r row) Close() error { return r.stmt.Finalize() }

// A lastRow is the last row of a table.
type lastRow struct {
	row
	read int64
	lost Loss
}

func (l *lastRow) Next() bool {
	if l.read > 0 || l.lost.Err != nil {
		return false
	}
	found, err := l.stmt.Step()
	if l.lost.Err, l.lost.Behind = err, err != nil; err != nil || !found {
		return false
	}
	l.read++
	return true
}

func (l *lastRow) Read() int64 { return l.read }

func (l *lastRow) Loss() *Loss {
	if l.lost.Err == nil {
		return nil
	}
	return &l.lost
}
