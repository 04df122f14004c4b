package storage

import (
	"errors"
	"math"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/sgtrace/sgtrace/internal/tablefile"
)

// A pass moves through the rows of a table in the order of their numbers, which is
// that of the file. SQLite stops at the first page that it cannot make sense of; a pass
// goes on behind it.
//
// Numbers of rows only grow. If one does not, the file leads to a page a second time,
// or to one of another table: then what is there are not rows of this table, and going
// on would never end.
type pass struct {
	row
	conn  *sqlite.Conn
	table string
	own   bounds
	id    int   // column of the number
	last  int64 // row; noRow before the first one
	ahead bool  // the statement is at a row already
	over  bool
	tries int
	read  int64 // rows
	holes int64 // rows whose numbers are missing between those of others
	lost  Loss
}

// noRow is below all numbers of rows.
const noRow = math.MinInt64

// maxTries bounds how often a pass goes on behind damage: in a file that is damaged
// everywhere that would cost more than it brings.
const maxTries = 1000

// errOrder is the error of a page that belongs somewhere else.
var errOrder = errors.New("rows are out of order")

// newPass begins to read columns of a table, of which only the rows within own are its own.
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

// selection returns the statement that selects columns and, behind them, the number of the row.
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

// Read returns how many rows were read.
func (w *pass) Read() int64 { return w.read }

// Loss returns what was lost so far.
func (w *pass) Loss() *Loss {
	if w.lost.Err == nil {
		return nil
	}
	return &w.lost
}

// follows reports whether a row that is not the next one by its number can be one of the
// table at all. If not, it is skipped.
func (w *pass) follows(id int64) bool {
	switch {
	case id > w.own.to:
		w.give(w.own.err)
		return false
	case id <= w.last:
		w.skip(errOrder)
		return false
	case w.last != noRow: // rows may begin anywhere
		w.holes += id - w.last - 1
	}
	return true
}

// give gives up what lies behind the last row.
func (w *pass) give(err error) {
	if w.lost.Err == nil {
		w.lost.At, w.lost.Err = w.read, err
	}
	w.over, w.lost.Behind = true, true
}

// skip moves to the next row that can be read. Numbers are tried in steps that double,
// then between the last one that leads to damage and the first one that does not.
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

// seek moves to the first row behind a number. ok is false if damage is in the way.
func (w *pass) seek(id int64) (row, ok bool) {
	w.tries++
	w.stmt.Reset()
	w.stmt.BindInt64(1, id)
	row, err := w.stmt.Step()
	return row, err == nil && (!row || w.stmt.ColumnInt64(w.id) > id)
}

// checkHoles finds out why numbers of rows are missing. Where rows were deleted all
// is well; where a page does not know of all of its rows, which reading does not show,
// SQLite's own check finds it. It takes longer than reading, and is only made if there
// is a reason.
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
