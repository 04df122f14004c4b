package nsysexport

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// insertFuzzed adds rows of any values to tables: SQLite does not hold a column to
// its type.
func insertFuzzed(t *testing.T, path string, data []byte) {
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
		columns, err := columnsOf(conn, table)
		if err != nil {
			t.Fatal(err)
		}
		sql, args := "INSERT OR REPLACE INTO "+quote(table)+" VALUES (", []any{}
		for i := range columns {
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
		// Some columns do not take NULL: the row is left out then.
		sqlitex.ExecuteTransient(conn, sql+")", &sqlitex.ExecOptions{Args: args})
	}
}

// FuzzRows reads exports whose rows are what they should not be: nothing panics or hangs,
// every reference is to something that is there, and it is the same every time, held and
// walked.
func FuzzRows(f *testing.F) {
	good, err := os.ReadFile(database(f, everyTable(3)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{})
	row := make([]byte, 400)
	for i := range row {
		row[i] = byte(i*31 + i/7)
	}
	for n := 0; n < 200; n += 20 {
		f.Add(row[n:])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "fuzz.sqlite")
		if err := os.WriteFile(path, good, 0o644); err != nil {
			t.Fatal(err)
		}
		insertFuzzed(t, path, data[:min(len(data), 4000)])
		clock := time.AfterFunc(20*time.Second, func() { panic("hangs") })
		defer clock.Stop()
		a := readOutcome(path)
		if a.err != nil {
			t.Fatal(a.err)
		}
		if len(data)%4 == 0 { // now and then: it takes as long as all the rest
			checkSame(t, a, path)
		}
		checkComplete(t, a.all, path)
		for _, d := range a.diags {
			if d.Msg == "" || d.Code == "" || d.Count < 1 {
				t.Fatalf("%+v", d)
			}
		}
		profiles, err := ReadProfiles(path, Options{Syms: trace.NewSymbols(), Args: trace.NewArgs(), Diags: &trace.Diags{}}, &profile.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range profiles {
			for _, e := range p.Events {
				if int(e.Track) >= len(p.Rows) || e.Dur < 0 {
					t.Fatalf("%+v of %d rows", e, len(p.Rows))
				}
			}
		}
	})
}

// checkSame checks that an export is the same when it is read again.
func checkSame(t *testing.T, a *outcome, path string) {
	t.Helper()
	b := readOutcome(path)
	if b.err != nil || !reflect.DeepEqual(a.rows, b.rows) || !reflect.DeepEqual(a.diags, b.diags) {
		t.Fatalf("the same export gives other rows, or says other things: %v\n%v\n%v", b.err, a.diags, b.diags)
	}
	if x, y := walked(t, path), walked(t, path); x != y {
		t.Fatalf("walked: %s, then %s", x, y)
	}
}

// walked counts what a walk over an export passes.
func walked(t *testing.T, path string) string {
	t.Helper()
	src, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	st := src.Stream(func(pid int32) int32 { return pid % 7 })
	var kernels, calls, copies, ranges int
	var busy int64
	st.Kernels(func(k *profile.Kernel) bool { kernels++; busy += k.Dur(); return true })
	st.Calls(func(c *profile.Call) bool { calls++; busy += c.Dur(); return true })
	st.Copies(func(c *profile.Copy) bool { copies++; busy += c.Dur(); return true })
	st.Ranges(func(r *profile.Range) bool { ranges++; return true })
	return fmt.Sprint(kernels, calls, copies, ranges, busy)
}
