// Package storage reads exports of Nsight Systems as a [Store] of tables with columns, whose rows are read one
// after another, whatever their form on disk. An export is a SQLite database, or a folder written by `nsys
// export --type parquetdir`: a Parquet file per table, with the same columns as in a database. The files of a
// folder are open only while they are read: many exports have more of them than a process may keep open.
// Package rows interprets the tables.
//
// How a database is read:
//
//  1. The header of the file is checked before SQLite sees it (header.go), which recognizes
//     an interrupted export, a truncated copy, and a database in use,
//     and explains them better than "file is not a database".
//  2. The file is opened read-only and immutable (conn.go), so that nothing is
//     written into it or next to it.
//  3. If the list of tables is damaged, tables are found by their pages (recover.go),
//     and SQLite reads a copy of the file with a repaired list.
//  4. Rows are read from the pages of tables (tree.go, rowreader.go), which takes a third of
//     SQLite's time. At anything odd, SQLite takes over (scan.go), so that SQLite alone decides
//     what is damage.
//  5. SQLite stops at damage; a pass continues after it, and counts the loss
//     (pass.go). A table only gets rows that look like its own (shape.go).
package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// A database is an open file.
type database struct {
	file   *os.File
	path   string
	header header
	tables []string
	state  State
	remove func() error // removes a repaired copy; nil if there is none

	columns sync.Map // []Column by table

	zonesMu sync.Mutex
	zones   map[zoneKey]*zones // of tables that were scanned with a window
}

// openDatabase checks the file at path and opens it. Its errors say what to do. The caller closes the database.
func openDatabase(path string) (*database, error) {
	d := &database{}
	if err := d.open(path); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *database) open(path string) error {
	// Journals are next to the file, not next to a link to it.
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return unwrapPath(err)
	}
	if real, err = filepath.Abs(real); err != nil {
		return err
	}
	// Opening a pipe would wait for a writer.
	if info, err := os.Stat(real); err == nil && !info.Mode().IsRegular() {
		return errors.New("is not a regular file, which SQLite needs: copy it to a disk")
	}
	if d.file, err = os.Open(real); err != nil {
		return unwrapPath(err)
	}
	d.header, err = checkFile(d.file, real)
	switch {
	case err == errUnwritten || err == errHeader:
		return d.recover(err)
	case err != nil:
		return unwrapPath(err)
	}
	d.path = real
	return d.readTables()
}

// errSchema means that no table of a file can be found.
var errSchema = errors.New("the list of tables is damaged, so nothing can be read: " +
	"copy the file again, or run nsys export again")

// readTables reads the list of tables.
func (d *database) readTables() error {
	tables, damaged, err := d.listTables()
	if d.header.cut() {
		d.state.Have, d.state.Want = d.header.size, d.header.want
	}
	switch isExport := isExport(tables); {
	case err != nil:
		return d.recover(fmt.Errorf("%w (%v)", errSchema, err))
	case !isExport && (damaged || d.header.cut()):
		return d.recover(errSchema)
	case !isExport && (slices.Contains(tables, "CANN_API") || slices.Contains(tables, "CommAnalyzerTime")):
		return fmt.Errorf("a database of Ascend's profiler, which is not read; its trace_view.json is, which export_type=Text writes: %w", ErrForeign)
	case !isExport:
		return fmt.Errorf("a SQLite database without Nsight Systems tables: %w", ErrForeign)
	case damaged && d.recover(errSchema) == nil:
		return nil
	}
	d.tables, d.state.TablesDamaged = tables, damaged
	return nil
}

// listTables returns the tables of a database, without views and virtual tables, which are code, and which no
// export has. damaged means that the list has an entry that does not belong there.
func (d *database) listTables() (tables []string, damaged bool, err error) {
	const kind, name, root, sql, id = 0, 1, 2, 3, 4
	conn, err := d.connect()
	if err != nil {
		return nil, false, err
	}
	defer conn.Close()
	stmt, _, err := conn.PrepareTransient("SELECT type, name, rootpage, sql, rowid FROM sqlite_master")
	if err != nil {
		return nil, false, err
	}
	for last := int64(noRow); ; {
		row, err := stmt.Step()
		if err != nil || !row {
			return tables, damaged, errors.Join(err, stmt.Finalize())
		}
		// If a page of the list is missing, other pages take its place.
		if stmt.ColumnInt64(id) <= last {
			return tables, true, stmt.Finalize()
		}
		last = stmt.ColumnInt64(id)
		table, text := stmt.ColumnText(name), strings.ReplaceAll(stmt.ColumnText(sql), `""`, `"`)
		switch stmt.ColumnText(kind) {
		case "table", "index", "view", "trigger":
		default:
			damaged = true
		}
		if stmt.ColumnText(kind) != "table" || stmt.ColumnInt64(root) <= 0 || strings.HasPrefix(table, "sqlite_") {
			continue
		}
		damaged = damaged || !strings.Contains(text, table)
		tables = append(tables, table)
	}
}

// unwrapPath strips the path from an error that will get it again.
func unwrapPath(err error) error {
	var pathErr interface{ Unwrap() error }
	if errors.As(err, &pathErr) && !errors.Is(err, ErrForeign) {
		if inner := pathErr.Unwrap(); inner != nil {
			return inner
		}
	}
	return err
}

// Tables returns the names of the tables, in the order of the file.
func (d *database) Tables() []string { return d.tables }

// State returns the damage of the file.
func (d *database) State() State { return d.state }

// Changed reports whether the file was written to since it was opened.
func (d *database) Changed() bool {
	info, err := d.file.Stat()
	return err == nil && d.header.size != 0 && (info.Size() != d.header.size || !info.ModTime().Equal(d.header.changed))
}

// Close closes the file. All connections must be closed.
func (d *database) Close() error {
	if d.file == nil {
		return nil
	}
	err := d.file.Close()
	d.file = nil
	if d.remove != nil {
		err = errors.Join(err, d.remove())
	}
	return err
}
