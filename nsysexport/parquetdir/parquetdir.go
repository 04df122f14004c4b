// Package parquetdir reads what `nsys export --type parquetdir` writes as a [store.Store]:
// a folder with one Parquet file for each table, which has the columns of the table in the
// SQLite form.
//
// Files are opened when they are read, and closed then: there are more of them than a
// process may keep open for many exports.
package parquetdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/columnar"
	"github.com/sgtrace/sgtrace/nsysexport/store"
)

// A Folder is an open export.
type Folder struct {
	path   string
	tables []string // sorted
	looks  []look   // by table
	texts  textsOnce
}

// A look is what shows that a file was written to.
type look struct {
	size    int64
	changed time.Time
}

// Sniff reports whether a folder with files of the given names is an export.
func Sniff(files []string) bool { return store.IsExport(tablesOf(files)) }

func tablesOf(files []string) (tables []string) {
	for _, name := range files {
		if table, ok := columnar.Name(name); ok {
			tables = append(tables, table)
		}
	}
	slices.Sort(tables)
	return tables
}

// Open looks at what is in a folder. The caller closes it.
func Open(path string) (*Folder, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !Sniff(names) {
		return nil, fmt.Errorf("a folder without Nsight Systems tables: %w", store.ErrForeign)
	}
	f := &Folder{path: path, tables: tablesOf(names)}
	for _, table := range f.tables {
		f.looks = append(f.looks, f.look(table))
	}
	return f, nil
}

func (f *Folder) file(table string) string { return filepath.Join(f.path, table+columnar.Suffix) }

func (f *Folder) look(table string) look {
	info, err := os.Stat(f.file(table))
	if err != nil {
		return look{size: -1}
	}
	return look{info.Size(), info.ModTime()}
}

// Tables returns the names of the tables, sorted.
func (f *Folder) Tables() []string { return f.tables }

// State says that nothing is known to be wrong: what is wrong with a table shows when it is
// read.
func (f *Folder) State() store.State { return store.State{} }

// Changed reports whether a file was written to since the folder was opened.
func (f *Folder) Changed() bool {
	for i, table := range f.tables {
		if f.look(table) != f.looks[i] {
			return true
		}
	}
	return false
}

// Close does nothing: files are open only while they are read.
func (f *Folder) Close() error { return nil }

// Connect returns a connection.
func (f *Folder) Connect() (store.Conn, error) { return conn{f}, nil }

// A conn reads tables, each from a file of its own.
type conn struct{ of *Folder }

// kinds are what SQLite calls the types of columns.
var kinds = [...]string{columnar.Integer: "INTEGER", columnar.Real: "REAL", columnar.Bytes: "TEXT"}

// Columns returns the columns of a table.
func (c conn) Columns(table string) ([]store.Column, error) {
	file, err := columnar.Open(c.of.file(table))
	if err != nil {
		return nil, err
	}
	var columns []store.Column
	for _, x := range file.Columns() {
		columns = append(columns, store.Column{Name: x.Name, Kind: kinds[x.Kind], NotNull: !x.Optional})
	}
	return columns, file.Close()
}

// Rows returns how many rows a table has.
func (c conn) Rows(table string) int64 {
	file, err := columnar.Open(c.of.file(table))
	if err != nil {
		return -1
	}
	defer file.Close()
	return file.Rows()
}

// Scan begins to read columns of a table, from its first row on.
func (c conn) Scan(table string, columns []string) (store.Rows, error) {
	return c.read(table, columns, func(int64) int64 { return 0 })
}

// Last begins to read the last row of a table.
func (c conn) Last(table string, columns []string) (store.Rows, error) {
	return c.read(table, columns, func(n int64) int64 { return max(n-1, 0) })
}

// read begins to read columns of a table at the row that from tells of their number.
func (c conn) read(table string, columns []string, from func(rows int64) int64) (store.Rows, error) {
	file, err := columnar.Open(c.of.file(table))
	if err != nil {
		return nil, err
	}
	first := from(file.Rows())
	r := &rows{file: file, left: file.Rows() - first}
	for _, name := range columns {
		at := file.Find(name)
		if at < 0 {
			return nil, errors.Join(fmt.Errorf("no column %s", name), r.Close())
		}
		r.columns = append(r.columns, column{kind: file.Columns()[at].Kind, reader: file.Column(at, first)})
	}
	return r, nil
}

func (c conn) Close() error { return nil }
