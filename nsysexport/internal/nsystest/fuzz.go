package nsystest

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// insertFuzzed adds rows with arbitrary values to tables: SQLite does not enforce column types.
func insertFuzzed(t testing.TB, path string, data []byte) {
	t.Helper()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := sqlitex.ExecuteTransient(conn, "PRAGMA synchronous=OFF", nil); err != nil {
		t.Fatal(err)
	}
	defer sqlitex.Save(conn)(&err)
	var tables []string
	err = sqlitex.ExecuteTransient(conn, "SELECT name FROM sqlite_schema WHERE type='table' ORDER BY name", &sqlitex.ExecOptions{
		ResultFunc: func(stmt *sqlite.Stmt) error { tables = append(tables, stmt.ColumnText(0)); return nil }})
	if err != nil {
		t.Fatal(err)
	}
	pick := func() int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b)
	}
	for len(data) > 0 {
		table := tables[pick()%len(tables)]
		stmt, err := conn.Prepare("SELECT * FROM " + table)
		if err != nil {
			t.Fatal(err)
		}
		sql, args := "INSERT OR REPLACE INTO "+table+" VALUES (", []any{}
		for i := range stmt.ColumnCount() {
			if i > 0 {
				sql += ","
			}
			sql += "?"
			var v any
			switch kind := pick(); {
			case kind < 90:
				v = int64(kind)
			case kind < 150:
				v = 2_000_000_000 + int64(pick())*1000
			case kind < 170:
				v = int64(281474976710656 + (4100+pick()%8)*16777216)
			case kind < 190:
				var b [8]byte
				data = data[copy(b[:], data):]
				v = int64(binary.LittleEndian.Uint64(b[:]))
			case kind < 205:
				v = []string{"", "a|b\n", "=1+1", "{\"a\":[", "\x1b[31m", "17"}[pick()%6]
			case kind < 220:
				n := pick()
				v = bytes.Clone(data[:min(len(data), n)])
			case kind < 230:
				v = []float64{1.5, math.Inf(1), -1e300, math.MaxFloat64}[pick()%4]
			}
			args = append(args, v)
		}
		// Some columns reject NULL, and the row with it.
		sqlitex.ExecuteTransient(conn, sql+")", &sqlitex.ExecOptions{Args: args})
	}
}

// AddRows seeds a fuzz test with rows.
func AddRows(f *testing.F) {
	f.Add([]byte{})
	row := make([]byte, 400)
	for i := range row {
		row[i] = byte(i*31 + i/7)
	}
	for n := 0; n < 200; n += 20 {
		f.Add(row[n:])
	}
}

// Fuzzed writes an export with fuzzed rows added, and returns its path.
func Fuzzed(t testing.TB, export, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fuzz.sqlite")
	if err := os.WriteFile(path, export, 0o644); err != nil {
		t.Fatal(err)
	}
	insertFuzzed(t, path, data[:min(len(data), 4000)])
	return path
}
