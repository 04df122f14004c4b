package rows

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/nsysexport/internal/nsystest"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// sameRows compares the rows of two exports in any form.
func sameRows(t *testing.T, have, want string) {
	t.Helper()
	a, aNames, _ := read(t, have)
	b, bNames, diags := read(t, want)
	haveRows, wantRows := rowsOf(a, aNames.Symbols), rowsOf(b, bNames.Symbols)
	for field, want := range wantRows {
		if have := haveRows[field]; !slices.Equal(have, want) {
			t.Errorf("%s: %d rows, want %d, or others", field, len(have), len(want))
		}
	}
	if len(wantRows["Kernels"]) == 0 || len(wantRows["API"]) == 0 || len(wantRows["Ranges"]) == 0 {
		t.Error("there is nothing to compare")
	}
	if fmt.Sprint(a.Meta) != fmt.Sprint(b.Meta) || fmt.Sprint(a.Processes, a.Threads, a.StreamUsers) != fmt.Sprint(b.Processes, b.Threads, b.StreamUsers) {
		t.Errorf("%+v, want %+v (%v)", a.Meta, b.Meta, diags)
	}
	if have, want := tablesOf(t, have), tablesOf(t, want); have != want {
		t.Errorf("tables %s\nwant %s", have, want)
	}
}

// tablesOf lists facts about the tables of an export without reading their rows.
func tablesOf(t *testing.T, path string) string {
	t.Helper()
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tables := s.EventTables()
	slices.SortFunc(tables, func(x, y EventTable) int { return strings.Compare(x.Name, y.Name) })
	return fmt.Sprint(tables, s.Counts())
}

// A folder of Parquet files gives the rows of the database, with any row group size.
func TestParquetIsTheDatabase(t *testing.T) {
	path := nsystest.Database(t, nsystest.EveryTable(300))
	for _, group := range []int64{1 << 20, 37} {
		sameRows(t, nsystest.Folder(t, path, group), path)
	}
}

// The two forms in which nsys exported one report give the same rows.
func TestParquetOfNsys(t *testing.T) {
	sameRows(t, testinput.Shared(t, "data", "reality", "nsys", "parquetdir_2023.4"), realExport(t, "lazy_false_2023.4"))
}

// A damaged file costs only its own table, and is reported.
func TestDamagedParquet(t *testing.T) {
	path := nsystest.Database(t, nsystest.EveryTable(300))
	for name, change := range map[string]func([]byte) []byte{
		"cut":   func(b []byte) []byte { return b[:len(b)/2] },
		"empty": func([]byte) []byte { return nil },
		"page": func(b []byte) []byte {
			for i := range len(b) / 2 {
				b[4+i] ^= 0x5a
			}
			return b
		},
	} {
		dir := nsystest.Folder(t, path, 100)
		file := filepath.Join(dir, "CUPTI_ACTIVITY_KIND_KERNEL.parquet")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, change(data), 0o600); err != nil {
			t.Fatal(err)
		}
		e, _, diags := read(t, dir)
		if len(e.Kernels) == 300 || len(e.API) != 600 || len(e.Ranges) != 300 {
			t.Errorf("%s: %d kernels, %d calls, %d ranges", name, len(e.Kernels), len(e.API), len(e.Ranges))
		}
		if !slices.ContainsFunc(diags, func(d trace.Diag) bool {
			return d.Severity == trace.DataLoss && strings.HasSuffix(d.Pos.File, "CUPTI_ACTIVITY_KIND_KERNEL")
		}) {
			t.Errorf("%s: %v", name, diags)
		}
	}
}
