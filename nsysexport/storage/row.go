package storage

import (
	"zombiezen.com/go/sqlite"
)

// A row is what a statement is at.
type row struct{ stmt *sqlite.Stmt }

// Within leaves nothing out.
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
