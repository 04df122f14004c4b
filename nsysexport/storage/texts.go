package storage

import (
	"errors"
	"sync"

	"github.com/sgtrace/sgtrace/internal/tablefile"
	"zombiezen.com/go/sqlite"
)

// texts finds texts by ids.
type texts struct {
	row
	// rows maps ids to row numbers, in files whose table lost its primary key; nil in others.
	rows map[int64]int64
}

// Texts prepares to find texts. The id is the primary key in all that nsys writes. If it is not, Texts builds
// an index of rows once, as searching the table from its start for every text would take hours.
func (c *conn) Texts(table, id, text string) (Texts, error) {
	t := &texts{}
	key, err := rowidName(c.Conn, table)
	if err == nil && key != id {
		key = "rowid"
		t.rows, err = c.rowsByID(table, id)
	}
	if err == nil {
		err = c.checkRows(table)
	}
	if err == nil {
		t.stmt, _, err = c.Conn.PrepareTransient("SELECT " + tablefile.Quote(text) + " FROM " + tablefile.Quote(table) + " WHERE " + key + "=?1")
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Find returns the text of an id.
func (t *texts) Find(id int64, buf []byte) (text []byte, found bool, err error) {
	if t.rows != nil {
		if id, found = t.rows[id]; !found {
			return nil, false, nil
		}
	}
	t.stmt.BindInt64(1, id)
	defer t.stmt.Reset()
	found, err = t.stmt.Step()
	if err == nil && found && t.stmt.ColumnType(0) != sqlite.TypeText {
		err = errShape
	}
	if err != nil || !found {
		return nil, false, err
	}
	return t.Bytes(0, buf), true, nil
}

// checkRows returns an error if the rows at either end of the table belong to a different table.
func (c *conn) checkRows(table string) error {
	columns, err := c.Columns(table)
	if err != nil {
		return err
	}
	own, err := c.of.ownRows(c.Conn, table, columns)
	return errors.Join(err, own.err)
}

// rowidName returns the column of table that is its rowid, "" if there is none.
func rowidName(conn *sqlite.Conn, table string) (string, error) {
	stmt, _, err := conn.PrepareTransient("SELECT name FROM pragma_table_info(?1) WHERE pk=1 AND upper(type)='INTEGER'")
	if err != nil {
		return "", err
	}
	defer stmt.Finalize()
	stmt.BindText(1, table)
	row, err := stmt.Step()
	if err != nil || !row {
		return "", err
	}
	return stmt.ColumnText(0), nil
}

// rowsByID returns the row numbers of all ids.
func (c *conn) rowsByID(table, id string) (map[int64]int64, error) {
	stmt, _, err := c.Conn.PrepareTransient("SELECT " + tablefile.Quote(id) + ", rowid FROM " + tablefile.Quote(table))
	if err != nil {
		return nil, err
	}
	defer stmt.Finalize()
	rows := map[int64]int64{}
	for range c.of.header.size / 4 {
		row, err := stmt.Step()
		if err != nil || !row {
			break // use what was found so far
		}
		rows[stmt.ColumnInt64(0)] = stmt.ColumnInt64(1)
	}
	return rows, nil
}

// folderTexts are all texts of a table by id, as columns can only be read from front to back.
type folderTexts struct {
	data []byte
	at   map[int64]folderExtent
	lost error // the error that ended the table early
}

// A folderExtent is the position of a text.
type folderExtent struct{ from, to int }

// folderTextsOnce reads the texts of an export once, for all connections.
type folderTextsOnce struct {
	once sync.Once
	all  *folderTexts
	err  error
}

// Texts reads the texts of a table. An export has only one such table.
func (c folderConn) Texts(table, id, text string) (Texts, error) {
	t := &c.of.texts
	t.once.Do(func() { t.all, t.err = c.readTexts(table, id, text) })
	if t.err != nil {
		return nil, t.err
	}
	return t.all, nil
}

func (c folderConn) readTexts(table, id, text string) (*folderTexts, error) {
	rows, err := c.Scan(table, []string{id, text})
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	t := &folderTexts{at: make(map[int64]folderExtent)}
	var buf []byte
	for rows.Next() {
		buf = rows.Bytes(1, buf)
		from := len(t.data)
		t.data = append(t.data, buf...)
		t.at[rows.Int(0)] = folderExtent{from, len(t.data)}
	}
	if lost := rows.Loss(); lost != nil {
		t.lost = lost.Err
	}
	return t, nil
}

// Find returns the text with an id. If the table is damaged, a missing text may be in the lost part.
func (t *folderTexts) Find(id int64, buf []byte) (text []byte, found bool, err error) {
	x, ok := t.at[id]
	if !ok {
		return nil, false, t.lost
	}
	return append(buf[:0], t.data[x.from:x.to]...), true, nil
}

func (t *folderTexts) Close() error { return nil }
