package storage

import (
	"sync"
)

// folderTexts are the folderTexts of a table by their ids, all of them: columns are read from front to
// back.
type folderTexts struct {
	data []byte
	at   map[int64]folderExtent
	lost error // that ended the table early
}

// An folderExtent is where a text lies.
type folderExtent struct{ from, to int }

// folderTextsOnce reads the texts of an export once, for all connections.
type folderTextsOnce struct {
	once sync.Once
	all  *folderTexts
	err  error
}

// Texts reads the texts of a table. An export has one such table.
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

// Find returns the text of an id. Where the table is damaged, what is not found may be in
// the part that is lost.
func (t *folderTexts) Find(id int64, buf []byte) (text []byte, found bool, err error) {
	x, ok := t.at[id]
	if !ok {
		return nil, false, t.lost
	}
	return append(buf[:0], t.data[x.from:x.to]...), true, nil
}

func (t *folderTexts) Close() error { return nil }
