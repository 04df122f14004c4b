package rows

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/sgtrace/sgtrace/nsysexport/internal/nsystest"
	"github.com/sgtrace/sgtrace/nsysexport/storage"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// realExport unpacks a shared export with a special property.
func realExport(t *testing.T, name string) string {
	t.Helper()
	packed, err := os.ReadFile(testinput.Shared(t, "data", "reality", "nsys", name+".sqlite.zst"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	data, err := z.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name+".sqlite")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// With --lazy=false, nsys writes every table. Empty tables are not reported as losses, and all rows
// of the tables that are read arrive.
func TestEmptyTablesLoseNothing(t *testing.T) {
	for _, name := range []string{"lazy_false_2023.4", "alltables_2023.4"} {
		path := realExport(t, name)
		e, _, diags := read(t, path)
		checkComplete(t, e, path)
		for _, d := range diags {
			if d.Severity >= trace.DataLoss {
				t.Errorf("%s: %v", name, d)
			}
		}
	}
}

// Synthetic tables have nsys's columns in the same order; either may lack trailing ones.
func TestTablesOfTestsAreReal(t *testing.T) {
	ours, theirs := tablesIn(t, nsystest.Database(t, nsystest.Tables())), tablesIn(t, realExport(t, "lazy_false_2023.4"))
	compared := 0
	for table, have := range ours {
		want, ok := theirs[table]
		if !ok {
			continue // from a later version
		}
		compared++
		if n := min(len(have), len(want)); !slices.Equal(have[:n], want[:n]) {
			t.Errorf("%s has %v\nwant %v", table, have, want)
		}
	}
	if compared < 30 {
		t.Errorf("%d tables are in both", compared)
	}
}

func tablesIn(t *testing.T, path string) map[string][]storage.Column {
	t.Helper()
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := s.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer s.release(c)
	tables := map[string][]storage.Column{}
	for _, name := range s.store.Tables() {
		if tables[name], err = c.Conn.Columns(name); err != nil {
			t.Fatal(err)
		}
	}
	return tables
}
