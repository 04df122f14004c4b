package storage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/nsysexport/internal/nsystest"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// allRows returns all columns of all rows as text.
func allRows(rows Rows, columns []Column) string {
	var b strings.Builder
	none, ints := make([]int64, len(columns)), make([]int64, len(columns))
	for i := range none {
		none[i] = -1 - int64(i)
	}
	for rows.Next() {
		rows.Ints(none, ints)
		for i, c := range columns {
			switch kind := rows.Kind(i); {
			case kind == Text:
				fmt.Fprintf(&b, "%x ", rows.Bytes(i, nil))
			case c.Kind == "REAL":
				fmt.Fprint(&b, rows.Float(i), rows.Int(i), ints[i], " ")
			default:
				fmt.Fprint(&b, rows.Null(i), rows.Int(i), ints[i], " ")
			}
		}
		fmt.Fprintln(&b, rows.Read())
	}
	loss := rows.Loss()
	if loss == nil {
		loss = &Loss{}
	}
	fmt.Fprintln(&b, "read", rows.Read(), "lost", loss, loss.At, loss.Err)
	return b.String()
}

// compareScans reads all tables of a file from its pages, and with SQLite alone. It returns the
// number of rows, and how many of them only SQLite could read.
func compareScans(t *testing.T, path string, intact bool) (rows, odd int64) {
	t.Helper()
	d, err := openDatabase(path)
	if err != nil {
		return 0, 0 // damage may make the file unreadable
	}
	defer d.Close()
	r := newReader(t, d, intact)
	defer r.close()
	for _, table := range d.Tables() {
		got, read, fromPages := r.scanTable(table, true)
		if rows += read; !fromPages {
			odd += read
		}
		if want, _, _ := r.scanTable(table, false); got != want {
			t.Errorf("%s of %s: from pages\n%s", table, path, firstDifference(got, want))
		}
	}
	return rows, odd
}

// scanTable returns a table as text.
func (r *reader) scanTable(table string, pages bool) (text string, read int64, fromPages bool) {
	err := r.withScan(table, func(s *scan, columns []Column) {
		if !pages {
			s.tree = nil
		}
		text = allRows(s, columns)
		read, fromPages = s.Read(), s.tree != nil
	})
	if err != nil {
		return err.Error(), 0, false
	}
	return text, read, fromPages
}

// A reader reads tables of a database. Each table of a damaged database gets its own connection,
// because SQLite's errors depend on what the connection read before.
type reader struct {
	t *testing.T
	d *database
	c *conn // nil if each table gets its own
}

func newReader(t *testing.T, d *database, intact bool) *reader {
	r := &reader{t: t, d: d}
	if intact {
		r.c = r.connect()
	}
	return r
}

func (r *reader) close() {
	if r.c != nil {
		r.c.Close()
	}
}

func (r *reader) connect() *conn {
	c, err := r.d.Connect()
	if err != nil {
		r.t.Fatal(err)
	}
	return c.(*conn)
}

// withScan calls f with a scan of all columns of a table.
func (r *reader) withScan(table string, f func(s *scan, columns []Column)) error {
	c := r.c
	if c == nil {
		c = r.connect()
		defer c.Close()
	}
	columns, err := c.Columns(table)
	if err != nil {
		return err
	}
	var names []string
	for _, c := range columns {
		names = append(names, c.Name)
	}
	s, err := c.newScan(table, names)
	if err != nil {
		return err
	}
	defer s.Close()
	f(s, columns)
	return nil
}

// TestScan reads intact and damaged files: reading from pages must give the same as SQLite, and
// intact tables must not need SQLite.
func TestScan(t *testing.T) {
	path := nsystest.Database(t, nsystest.EveryTable(400))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if rows, odd := compareScans(t, path, true); rows == 0 || odd > 0 {
		t.Errorf("%d of %d rows of an intact file were up to SQLite", odd, rows)
	}
	subject := testinput.Subject{Data: data, Cuts: testinput.Pages(data, 4096)}
	dir := t.TempDir()
	var straight, fallen int64
	for seed := range 2 * testinput.Kinds() {
		m := subject.Mutate(uint64(seed))
		mutant := filepath.Join(dir, "mutant.sqlite")
		if err := os.WriteFile(mutant, m.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		rows, odd := compareScans(t, mutant, false)
		straight, fallen = straight+rows-odd, fallen+odd
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, m.Name)
		}
	}
	if straight == 0 || fallen == 0 {
		t.Errorf("%d rows were read from pages, %d by SQLite: want some of both", straight, fallen)
	}
}

// TestScanRealExports does so for nsys's own files.
func TestScanRealExports(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(testinput.Shared(t, "data", "nsys", "real"), "*.sqlite"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no exports", err)
	}
	var rows, odd int64
	for _, path := range paths {
		r, o := compareScans(t, path, true)
		rows, odd = rows+r, odd+o
	}
	if rows == 0 || odd > rows/20 {
		t.Errorf("%d of %d rows were up to SQLite", odd, rows)
	}
	t.Logf("%d of %d rows were up to SQLite", odd, rows)
}

// firstDifference returns the first lines that differ between two texts.
func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("%.500s\nwant\n%.500s", a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(a), len(b))
}
