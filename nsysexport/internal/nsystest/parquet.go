package nsystest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Folder writes the tables of a database as a folder of Parquet files, as nsys export does with --type
// parquetdir, and returns its path. Row groups have groupRows rows each.
func Folder(t testing.TB, database string, groupRows int64) string {
	t.Helper()
	dir := t.TempDir()
	conn := Connect(t, database)
	var tables []string
	collect(t, conn, "SELECT name FROM sqlite_schema WHERE type='table'", func(s *sqlite.Stmt) { tables = append(tables, s.ColumnText(0)) })
	for _, table := range tables {
		writeParquet(t, conn, table, filepath.Join(dir, table+".parquet"), groupRows)
	}
	return dir
}

func collect(t testing.TB, conn *sqlite.Conn, sql string, each func(*sqlite.Stmt)) {
	t.Helper()
	err := sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error { each(s); return nil }})
	if err != nil {
		t.Fatal(err)
	}
}

// writeParquet writes one table. Parquet-go sorts columns by name.
func writeParquet(t testing.TB, conn *sqlite.Conn, table, path string, groupRows int64) {
	t.Helper()
	group := parquet.Group{}
	var names []string
	collect(t, conn, "SELECT name, type, \"notnull\" OR pk FROM pragma_table_info('"+table+"')", func(s *sqlite.Stmt) {
		node := parquet.Int(64)
		switch s.ColumnText(1) {
		case "TEXT":
			node = parquet.String()
		case "REAL":
			node = parquet.Leaf(parquet.DoubleType)
		}
		if s.ColumnInt(2) == 0 {
			node = parquet.Optional(node)
		}
		names = append(names, s.ColumnText(0))
		group[s.ColumnText(0)] = node
	})
	slices.Sort(names)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := parquet.NewWriter(f, parquet.NewSchema(table, group), parquet.MaxRowsPerRowGroup(groupRows))
	sql := "SELECT "
	for i, name := range names {
		if i > 0 {
			sql += ", "
		}
		sql += `"` + name + `"`
	}
	collect(t, conn, sql+" FROM "+table, func(s *sqlite.Stmt) {
		row := make(parquet.Row, len(names))
		for i, name := range names {
			level := 0
			if group[name].Optional() && !s.ColumnIsNull(i) {
				level = 1
			}
			row[i] = valueOf(s, i, group[name]).Level(0, level, i)
		}
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			t.Fatal(err)
		}
	})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func valueOf(s *sqlite.Stmt, column int, node parquet.Node) parquet.Value {
	switch {
	case s.ColumnIsNull(column):
		return parquet.NullValue()
	case node.Type().Kind() == parquet.Int64:
		return parquet.Int64Value(s.ColumnInt64(column))
	case node.Type().Kind() == parquet.Double:
		return parquet.DoubleValue(s.ColumnFloat(column))
	}
	return parquet.ByteArrayValue([]byte(s.ColumnText(column)))
}
