package nsys

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// A DB is an export that is being written. The first error is kept, and returned
// by [DB.Close]; what is written after it is lost.
type DB struct {
	Schema Schema

	conn   *sqlite.Conn
	err    error
	tables map[string]*Table
	ids    map[string]int64
}

// settings make a file of which nothing can be recovered if the program dies, which
// then nobody wants: nsys does the same. The size of pages is that of all exports.
var settings = []string{
	"PRAGMA page_size=4096", "PRAGMA journal_mode=off", "PRAGMA synchronous=off", "PRAGMA locking_mode=exclusive",
	"PRAGMA cache_size=-65536", "BEGIN",
}

// Create creates a file, or replaces it.
func Create(path string, schema Schema) (*DB, error) {
	if !slices.Contains(Schemas, schema) {
		return nil, fmt.Errorf("nsys: there is no schema of %d", schema)
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		return nil, err
	}
	for _, set := range settings {
		if err := sqlitex.ExecuteTransient(conn, set, nil); err != nil {
			conn.Close()
			return nil, fmt.Errorf("writing %s: %w", path, err)
		}
	}
	db := &DB{Schema: schema, conn: conn, tables: map[string]*Table{}, ids: map[string]int64{}}
	db.StringID("[Unknown]") // the first one in all exports
	return db, nil
}

// Close ends the file, and returns the first error that there was.
func (db *DB) Close() error {
	for _, t := range db.tables {
		if t.stmt != nil {
			db.failed(t.stmt.Finalize())
		}
	}
	if db.err == nil {
		db.failed(sqlitex.ExecuteTransient(db.conn, "COMMIT", nil))
	}
	db.failed(db.conn.Close())
	return db.err
}

// failed keeps the first error.
func (db *DB) failed(err error) {
	if db.err == nil && err != nil {
		db.err = err
	}
}

// StringID returns the number of a text in StringIds.
func (db *DB) StringID(text string) int64 {
	id, ok := db.ids[text]
	if !ok {
		id = int64(len(db.ids))
		db.ids[text] = id
		t := db.Table("StringIds")
		t.Int("id", id)
		t.Text("value", text)
		t.Insert()
	}
	return id
}

// Table returns a table; it panics if no generation has one of this name.
func (db *DB) Table(name string) *Table {
	t, ok := db.tables[name]
	if !ok {
		t = &Table{db: db, name: name, columns: db.Schema.columns(name), at: map[string]int{}}
		for i, c := range t.columns {
			t.at[c.name] = i + 1
		}
		db.tables[name] = t
	}
	return t
}

// A Table is one that rows are added to. The methods named after types set a
// column of the next row; a column that the table does not have in this generation
// is left out. Columns keep their values from row to row.
type Table struct {
	db      *DB
	name    string
	columns []column
	at      map[string]int // parameters of stmt by name
	stmt    *sqlite.Stmt   // nil until a column is set
}

// Int sets a column to an integer.
func (t *Table) Int(column string, v int64) {
	if at := t.parameter(column); at != 0 {
		t.stmt.BindInt64(at, v)
	}
}

// Text sets a column to a text.
func (t *Table) Text(column, v string) {
	if at := t.parameter(column); at != 0 {
		t.stmt.BindText(at, v)
	}
}

// ID sets a column to the number of a text in StringIds.
func (t *Table) ID(column, v string) { t.Int(column, t.db.StringID(v)) }

// Bytes sets a column to a blob.
func (t *Table) Bytes(column string, v []byte) {
	if at := t.parameter(column); at != 0 {
		t.stmt.BindBytes(at, v)
	}
}

// Null sets a column to NULL, which it is at the beginning if it can be.
func (t *Table) Null(column string) {
	if at := t.parameter(column); at != 0 {
		t.stmt.BindNull(at)
	}
}

// parameter returns the number of a column in the statement, 0 if there is none.
func (t *Table) parameter(column string) int {
	at := t.at[column]
	if at != 0 && t.stmt == nil && t.db.err == nil {
		t.create()
	}
	if t.stmt == nil {
		return 0
	}
	return at
}

// create creates the table in the file. Columns that cannot be NULL begin as zero.
func (t *Table) create() {
	err := sqlitex.ExecuteTransient(t.db.conn, definition(t.name, t.columns), nil)
	if err == nil {
		marks := strings.TrimSuffix(strings.Repeat("?,", len(t.columns)), ",")
		t.stmt, _, err = t.db.conn.PrepareTransient(fmt.Sprintf("INSERT INTO %q VALUES (%s)", t.name, marks))
	}
	if err != nil {
		t.db.failed(fmt.Errorf("creating the table %s: %w", t.name, err))
		return
	}
	for i, c := range t.columns {
		switch {
		case c.notNull && c.kind == "TEXT":
			t.stmt.BindText(i+1, "")
		case c.notNull:
			t.stmt.BindInt64(i+1, 0)
		}
	}
}

// Insert adds the row.
func (t *Table) Insert() {
	if t.stmt == nil || t.db.err != nil {
		return
	}
	_, err := t.stmt.Step()
	if err == nil {
		err = t.stmt.Reset()
	}
	if err != nil {
		t.db.failed(fmt.Errorf("adding a row to %s: %w", t.name, err))
	}
}

// machine is the part of an id that says on which machine a process runs: the
// first virtual machine of no special hardware, in all exports that are known.
const machine = 1 << 48

// GlobalVID is the id of the machine.
func GlobalVID() int64 { return machine }

// GlobalPID is the id of a process.
func GlobalPID(pid int) int64 { return machine | int64(pid)<<24 }

// GlobalTID is the id of a thread.
func GlobalTID(pid, tid int) int64 { return GlobalPID(pid) | int64(tid) }
