package rocm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/internal/tablefile"
	"github.com/sgtrace/sgtrace/trace"
)

// A database is a SQLite file open for reading. Only tables are read: views are code, and some of them contain wrong
// numbers.
type database struct {
	conn   *sqlite.Conn
	name   string
	diags  *trace.Diags
	tables []string // names, in the order of the file
}

// magic is at the beginning of every SQLite file.
const magic = "SQLite format 3\x00"

// isDatabase reports whether a file with the given head is a SQLite file, and has a table whose name consists of rocpd_ and
// one of some names. If the file was cut or is being written, the head may lack the list of tables.
func isDatabase(head []byte, names ...string) bool {
	if !bytes.HasPrefix(head, []byte(magic)) {
		return false
	}
	for rest := head; ; {
		i := bytes.Index(rest, []byte("rocpd_"))
		if i < 0 {
			return false
		}
		rest = rest[i+len("rocpd_"):]
		for _, name := range names {
			if after, ok := bytes.CutPrefix(rest, []byte(name)); ok && endsName.Match(after) {
				return true
			}
		}
	}
}

// endsName matches the end of a table's name: nothing more, or the id of a recording.
var endsName = lazyregexp.New(`^(_?[0-9a-fA-F]{8}|[^\w])`)

// openDatabase opens a file without locking, journals, or writing. The caller closes it.
func openDatabase(path, name string, diags *trace.Diags) (*database, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(full + "-wal"); err == nil && info.Size() > 0 {
		diags.Add(trace.RocmJournal.Of(name))
	}
	conn, err := tablefile.OpenSQLite(full, tablefile.MaxValue, true)
	if err != nil {
		return nil, err
	}
	d := &database{conn: conn, name: name, diags: diags}
	err = tablefile.Exec(conn, "PRAGMA cache_size=-2000")
	err = errors.Join(err, d.each("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0", func(s *sqlite.Stmt) {
		d.tables = append(d.tables, s.ColumnText(0))
	}))
	if err != nil && len(d.tables) == 0 {
		return nil, errors.Join(fmt.Errorf("the list of tables cannot be read, copy the file again: %w", err), conn.Close())
	}
	return d, nil
}

// Close closes the file.
func (d *database) Close() error { return d.conn.Close() }

// has reports whether a table exists.
func (d *database) has(table string) bool { return slices.Contains(d.tables, table) }

func (d *database) each(sql string, row func(*sqlite.Stmt)) error {
	stmt, _, err := d.conn.PrepareTransient(sql)
	if err != nil {
		return err
	}
	for {
		more, err := stmt.Step()
		if err != nil || !more {
			return errors.Join(err, stmt.Finalize())
		}
		row(stmt)
	}
}

// Scan passes the rows of a table, in the order of row numbers, with the given columns. Missing columns are NULL: producers
// add columns from version to version. In a damaged table it passes the rows before the damage and, backwards from the end,
// those after it.
func (d *database) Scan(table string, columns []string, row func(*sqlite.Stmt)) {
	if !d.has(table) {
		return
	}
	have := map[string]bool{}
	err := d.each("PRAGMA table_info("+tablefile.Quote(table)+")", func(s *sqlite.Stmt) { have[strings.ToLower(s.ColumnText(1))] = true })
	list := []string{"rowid"}
	for _, c := range columns {
		if !have[strings.ToLower(c)] {
			c = "NULL"
		} else {
			c = tablefile.Quote(c)
		}
		list = append(list, c)
	}
	sql := "SELECT " + strings.Join(list, ", ") + " FROM " + tablefile.Quote(table)
	last, read := int64(-1<<63), 0
	if err == nil {
		err = d.each(sql, func(s *sqlite.Stmt) { last, read = s.ColumnInt64(0), read+1; row(s) })
	}
	if err == nil {
		return
	}
	back, beyond := 0, false
	_ = d.each(sql+" ORDER BY rowid DESC", func(s *sqlite.Stmt) {
		if beyond = beyond || s.ColumnInt64(0) <= last; !beyond {
			back++
			row(s)
		}
	})
	d.diags.Add(trace.RocmTableDamaged.Of(d.name, table, err, read+back))
}
