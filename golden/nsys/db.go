package nsys

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// A DB is an export that is being written. It keeps the first error for [DB.Close], and ignores what is written after it.
type DB struct {
	Schema Schema

	conn   *sqlite.Conn
	err    error
	tables map[string]*Table
	ids    map[string]int64
}

// settings allow no recovery of the file if the program dies, when nobody wants it anyway: nsys does the same. The page
// size is that of all exports.
var settings = []string{
	"PRAGMA page_size=4096", "PRAGMA journal_mode=off", "PRAGMA synchronous=off", "PRAGMA locking_mode=exclusive",
	"PRAGMA cache_size=-65536", "BEGIN",
}

// Create creates a file, replacing an existing one.
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
	db.StringID("[Unknown]") // the first string in all exports
	return db, nil
}

// Close finishes the file, and returns the first error.
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
		db.Insert("StringIds", "id", id, "value", text)
	}
	return id
}

// Table returns a table; it panics if no generation has a table with this name.
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

// Insert adds a row to a table: see [Table.Insert].
func (db *DB) Insert(table string, values ...any) { db.Table(table).Insert(values...) }

// A Table gets rows. Columns that the table does not have in this generation are ignored. Columns keep their values from
// row to row.
type Table struct {
	db      *DB
	name    string
	columns []column
	at      map[string]int // parameters of stmt by name
	stmt    *sqlite.Stmt   // nil until a column is set
}

// An ID is a text that a column stores as its number in StringIds.
type ID string

// Set sets columns of the next row, given as alternating names and values: int, int64, string, [ID], []byte, or nil for
// NULL, the initial value of all columns that allow it.
func (t *Table) Set(values ...any) {
	for i := 0; i < len(values); i += 2 {
		v := values[i+1]
		if id, ok := v.(ID); ok {
			v = t.db.StringID(string(id))
		}
		at := t.parameter(values[i].(string))
		if at == 0 {
			continue
		}
		switch v := v.(type) {
		case int:
			t.stmt.BindInt64(at, int64(v))
		case int64:
			t.stmt.BindInt64(at, v)
		case string:
			t.stmt.BindText(at, v)
		case []byte:
			t.stmt.BindBytes(at, v)
		case nil:
			t.stmt.BindNull(at)
		default:
			panic(fmt.Sprintf("nsys: %s of %s is a %T", values[i], t.name, v))
		}
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

// Insert sets columns and adds the row.
func (t *Table) Insert(values ...any) {
	t.Set(values...)
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

// machine is the part of an id for the machine of a process: the first virtual machine without special hardware, as in all
// known exports.
const machine = 1 << 48

// GlobalVID returns the id of the machine.
func GlobalVID() int64 { return machine }

// GlobalPID returns the id of a process.
func GlobalPID(pid int) int64 { return machine | int64(pid)<<24 }

// GlobalTID returns the id of a thread.
func GlobalTID(pid, tid int) int64 { return GlobalPID(pid) | int64(tid) }
