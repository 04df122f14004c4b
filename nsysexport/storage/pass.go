package storage

import (
	"errors"
	"math"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/sgtrace/sgtrace/internal/tablefile"
)

// A pass moves through the rows of a table in the order of their numbers, which is that of the file. SQLite
// stops at the first page that it cannot interpret; a pass continues after it.
//
// Row numbers must increase. If one does not, the file leads to the same page again, or to a page of another
// table: then the rows there are not this table's, and the pass might never end.
type pass struct {
	row
	conn  *sqlite.Conn
	table string
	own   bounds
	id    int   // index of the column with the row number
	last  int64 // last row number; noRow before the first one
	ahead bool  // the statement is already at a row
	over  bool
	tries int
	read  int64 // number of rows
	holes int64 // row numbers missing between others
	lost  Loss
}

// noRow is less than all row numbers.
const noRow = math.MinInt64

// maxTries bounds how often a pass continues after damage: in a file that is damaged everywhere, more would not
// be worth the time.
const maxTries = 1000

// errOrder is the error of a page that belongs elsewhere.
var errOrder = errors.New("rows are out of order")

// newPass begins to read columns of a table, whose own rows have numbers within own.
func newPass(conn *sqlite.Conn, table string, columns []string, own bounds) (*pass, error) {
	stmt, _, err := conn.PrepareTransient(selection(table, columns) + " WHERE rowid>?1")
	if err != nil {
		return nil, err
	}
	stmt.BindInt64(1, own.from)
	w := &pass{row: row{stmt}, conn: conn, table: table, own: own, id: len(columns), last: own.from}
	if own.from != noRow {
		w.lost.Err, w.lost.Rows = own.err, own.from
	}
	return w, nil
}

// selection returns the statement that selects columns, followed by the row number.
func selection(table string, columns []string) string {
	var sql strings.Builder
	sql.WriteString("SELECT ")
	for _, c := range columns {
		sql.WriteString(tablefile.Quote(c) + ",")
	}
	return sql.String() + "rowid FROM " + tablefile.Quote(table)
}

// Next moves to the next row, and returns false if there is none.
func (w *pass) Next() bool {
	for !w.over {
		row, err := true, error(nil)
		if !w.ahead {
			row, err = w.stmt.Step()
		}
		w.ahead = false
		switch {
		case err != nil:
			w.skip(err)
			continue
		case !row:
			w.over = true
			w.checkHoles()
			return false
		}
		id := w.stmt.ColumnInt64(w.id)
		if id == w.last+1 && id <= w.own.to || w.follows(id) {
			w.last = id
			w.read++
			return true
		}
	}
	return false
}

// Read returns the number of rows read.
func (w *pass) Read() int64 { return w.read }

// Loss returns the loss so far.
func (w *pass) Loss() *Loss {
	if w.lost.Err == nil {
		return nil
	}
	return &w.lost
}

// follows reports whether a row whose number is not the next one can belong to the table. Otherwise, the row is
// skipped.
func (w *pass) follows(id int64) bool {
	switch {
	case id > w.own.to:
		w.give(w.own.err)
		return false
	case id <= w.last:
		w.skip(errOrder)
		return false
	case w.last != noRow: // the first row may have any number
		w.holes += id - w.last - 1
	}
	return true
}

// give gives up on the rows after the last one.
func (w *pass) give(err error) {
	if w.lost.Err == nil {
		w.lost.At, w.lost.Err = w.read, err
	}
	w.over, w.lost.Behind = true, true
}

// skip moves to the next readable row. It tries numbers in steps that double, and then bisects between the last
// number that leads to damage and the first that does not.
func (w *pass) skip(err error) {
	if w.lost.Err == nil {
		w.lost.At, w.lost.Err = w.read, err
	}
	from := max(w.last, 0)
	good, bad, ok := int64(0), from, false
	for step := int64(1); !ok && from+step > from && w.tries < maxTries; step *= 2 {
		good = from + step
		if _, ok = w.seek(good); !ok {
			bad = good
		}
	}
	if !ok {
		w.give(err)
		return
	}
	for good-bad > 1 {
		mid := bad + (good-bad)/2
		if _, ok := w.seek(mid); ok {
			good = mid
		} else {
			bad = mid
		}
	}
	w.lost.Rows += good - from
	w.last = good
	w.ahead, ok = w.seek(good)
	w.over = !ok || !w.ahead
}

// seek moves to the first row after a number. ok is false if damage prevents that.
func (w *pass) seek(id int64) (row, ok bool) {
	w.tries++
	w.stmt.Reset()
	w.stmt.BindInt64(1, id)
	row, err := w.stmt.Step()
	return row, err == nil && (!row || w.stmt.ColumnInt64(w.id) > id)
}

// checkHoles finds out why row numbers are missing. They may be those of deleted rows; but if a page does not
// list all of its rows, which reading does not show, SQLite's own check finds it. The check takes longer than
// reading, and is only made if there is a reason.
func (w *pass) checkHoles() {
	if w.holes == 0 || w.lost.Err != nil {
		return
	}
	stmt, _, err := w.conn.PrepareTransient("PRAGMA quick_check(" + tablefile.Quote(w.table) + ")")
	if err != nil {
		return
	}
	defer stmt.Finalize()
	row, err := stmt.Step()
	if err == nil && (!row || stmt.ColumnText(0) == "ok") {
		return
	}
	if err == nil {
		err = errors.New(stmt.ColumnText(0))
	}
	w.lost.Rows, w.lost.Err = w.holes, err
}
