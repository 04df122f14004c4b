package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/tablefile"
)

// A folder is an open export.
type folder struct {
	path   string
	tables []string    // sorted
	looks  []fileState // by table
	texts  folderTextsOnce
}

// A fileState shows whether a file was written to.
type fileState struct {
	size    int64
	changed time.Time
}

// IsFolder reports whether a folder with files of the given names is an export.
func IsFolder(files []string) bool { return isExport(tablesOf(files)) }

func tablesOf(files []string) (tables []string) {
	for _, name := range files {
		if table, ok := tablefile.ParquetName(name); ok {
			tables = append(tables, table)
		}
	}
	slices.Sort(tables)
	return tables
}

// openFolder lists the tables in a folder. The caller closes it.
func openFolder(path string) (*folder, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	names := order.Each(entries, os.DirEntry.Name)
	if !IsFolder(names) {
		return nil, fmt.Errorf("a folder without Nsight Systems tables: %w", ErrForeign)
	}
	f := &folder{path: path, tables: tablesOf(names)}
	for _, table := range f.tables {
		f.looks = append(f.looks, f.look(table))
	}
	return f, nil
}

func (f *folder) file(table string) string {
	return filepath.Join(f.path, table+tablefile.ParquetSuffix)
}

func (f *folder) look(table string) fileState {
	info, err := os.Stat(f.file(table))
	if err != nil {
		return fileState{size: -1}
	}
	return fileState{info.Size(), info.ModTime()}
}

// Tables returns the names of the tables, sorted.
func (f *folder) Tables() []string { return f.tables }

// State returns no damage: damage of a table shows when the table is read.
func (f *folder) State() State { return State{} }

// Changed reports whether a file was written to since the folder was opened.
func (f *folder) Changed() bool {
	for i, table := range f.tables {
		if f.look(table) != f.looks[i] {
			return true
		}
	}
	return false
}

// Close does nothing: files are open only while they are read.
func (f *folder) Close() error { return nil }

// Connect returns a connection.
func (f *folder) Connect() (Conn, error) { return folderConn{f}, nil }

// A folderConn reads tables, each from a file of its own.
type folderConn struct{ of *folder }

// kinds are SQLite's names of the types of columns.
var kinds = [...]string{tablefile.Integer: "INTEGER", tablefile.Real: "REAL", tablefile.Bytes: "TEXT"}

// Columns returns the columns of a table.
func (c folderConn) Columns(table string) ([]Column, error) {
	file, err := tablefile.OpenParquet(c.of.file(table))
	if err != nil {
		return nil, err
	}
	columns := order.Each(file.Columns(), func(x tablefile.Column) Column {
		return Column{Name: x.Name, Kind: kinds[x.Kind], NotNull: !x.Optional}
	})
	return columns, file.Close()
}

// Rows returns how many rows a table has.
func (c folderConn) Rows(table string) int64 {
	file, err := tablefile.OpenParquet(c.of.file(table))
	if err != nil {
		return -1
	}
	defer file.Close()
	return file.Rows()
}

// Scan begins to read columns of a table, from its first row on.
func (c folderConn) Scan(table string, columns []string) (Rows, error) {
	return c.read(table, columns, func(int64) int64 { return 0 })
}

// Last begins to read the last row of a table.
func (c folderConn) Last(table string, columns []string) (Rows, error) {
	return c.read(table, columns, func(n int64) int64 { return max(n-1, 0) })
}

// read begins to read columns of a table, from the row that from returns for the number of rows.
func (c folderConn) read(table string, columns []string, from func(rows int64) int64) (Rows, error) {
	file, err := tablefile.OpenParquet(c.of.file(table))
	if err != nil {
		return nil, err
	}
	first := from(file.Rows())
	r := &folderRows{file: file, left: file.Rows() - first}
	for _, name := range columns {
		at := file.Find(name)
		if at < 0 {
			return nil, errors.Join(fmt.Errorf("no column %s", name), r.Close())
		}
		r.columns = append(r.columns, folderColumn{kind: file.Columns()[at].Kind, reader: file.Column(at, first)})
	}
	return r, nil
}

func (c folderConn) Close() error { return nil }
