package rows

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/sgtrace/sgtrace/nsysexport/internal/nsystest"
	"github.com/sgtrace/sgtrace/trace"
)

// schemaPages returns the pages of a database's table list.
func schemaPages(t *testing.T, path string) (pages []int) {
	t.Helper()
	err := sqlitex.ExecuteTransient(nsystest.Connect(t, path), "SELECT pageno FROM dbstat WHERE name='sqlite_schema'",
		&sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error { pages = append(pages, s.ColumnInt(0)); return nil }})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(pages)
	return pages
}

// Without the table list, each table is found with its own rows, or is reported as lost.
func TestListOfTablesIsLost(t *testing.T) {
	path := nsystest.Database(t, nsystest.EveryTable(300))
	whole, names, _ := read(t, path)
	want := rowsOf(whole, names.Symbols)
	pages := schemaPages(t, path)
	for _, c := range []struct {
		lost  []int
		least int // minimum number of recovered fields
	}{{pages[:1], 8}, {pages[1:2], len(want)}, {pages[1:], 7}, {pages, 7}} {
		e, names, diags := read(t, damaged(t, path, func(b []byte) []byte {
			for _, p := range c.lost {
				clear(b[(p-1)*4096 : p*4096])
			}
			return b
		}))
		there := 0
		for field, have := range rowsOf(e, names.Symbols) {
			switch {
			case slices.Equal(have, want[field]):
				there++
			case field == "Libraries" || field == "Samples":
			case len(have) > 0 && len(have) != len(want[field])/2: // calls come from two tables
				t.Errorf("pages %v: %d rows of %s are not those %d", c.lost, len(have), field, len(want[field]))
			}
		}
		for _, field := range []string{"Kernels", "Memcpys", "Memsets", "Ranges"} {
			if have := rowsOf(e, names.Symbols)[field]; !slices.Equal(have, want[field]) {
				t.Errorf("pages %v: %d rows of %s", c.lost, len(have), field)
			}
		}
		if there < c.least {
			t.Errorf("pages %v: %d fields are as they were, want %d", c.lost, there, c.least)
		}
		if !slices.ContainsFunc(diags, func(d trace.Diag) bool {
			return d.Severity == trace.DataLoss && strings.HasPrefix(d.Code, "nsys-tables-")
		}) {
			t.Errorf("pages %v: %v", c.lost, diags)
		}
	}
}

// In real exports, no table is mistaken for another.
func TestShapesOfRealTables(t *testing.T) {
	for _, path := range sharedFiles(t) {
		if !strings.Contains(path, "real") {
			continue
		}
		whole, names, _ := read(t, path)
		if len(whole.Kernels)+len(whole.Ranges) == 0 {
			continue
		}
		want := rowsOf(whole, names.Symbols)
		pages := schemaPages(t, path)
		e, err := open(damaged(t, path, func(b []byte) []byte {
			for _, p := range pages {
				clear(b[(p-1)*4096 : p*4096])
			}
			return b
		}), Options{Syms: names.Symbols, Args: names.args})
		if err != nil {
			t.Logf("%s: %v", filepath.Base(path), err)
			continue
		}
		for field, have := range rowsOf(e, names.Symbols) {
			// Libraries are read from several tables.
			if len(have) > 0 && len(have) != len(want[field]) && (field != "Libraries" || len(have) > len(want[field])) {
				t.Errorf("%s: %d rows of %s, want %d", filepath.Base(path), len(have), field, len(want[field]))
			}
		}
		if len(whole.Kernels) > 0 && len(e.Kernels) == 0 {
			t.Errorf("%s: no kernels", filepath.Base(path))
		}
		if e.Meta.SessionStart != whole.Meta.SessionStart {
			t.Errorf("%s: start %d, want %d", filepath.Base(path), e.Meta.SessionStart, whole.Meta.SessionStart)
		}
	}
}
