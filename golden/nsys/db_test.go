package nsys_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/sgtrace/sgtrace/golden/nsys"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// columns returns the columns of all tables of a file, as SQLite describes them, and the schema
// version.
func columns(t *testing.T, path string) (tables map[string]string, version string) {
	t.Helper()
	conn, err := sqlite.OpenConn("file:"+path+"?immutable=1", sqlite.OpenReadOnly, sqlite.OpenURI)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	tables = map[string]string{}
	query := func(sql string, row func(*sqlite.Stmt) error) {
		if err := sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{ResultFunc: row}); err != nil {
			t.Fatal(err)
		}
	}
	query(`SELECT m.name, group_concat(c.name || ' ' || c.type || ' ' || c."notnull" || ' ' || c.pk, ', ')
		FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type='table' GROUP BY m.name ORDER BY m.name, c.cid`,
		func(s *sqlite.Stmt) error {
			tables[s.ColumnText(0)] = s.ColumnText(1)
			return nil
		})
	for _, meta := range []string{"META_DATA_EXPORT", "EXPORT_META_DATA"} {
		if tables[meta] != "" {
			query("SELECT value FROM "+meta+" WHERE name='EXPORT_SCHEMA_VERSION'", func(s *sqlite.Stmt) error {
				version = s.ColumnText(0)
				return nil
			})
		}
	}
	return tables, version
}

// all returns the columns of all tables of a schema generation.
func all(t *testing.T, schema nsys.Schema, names []string) map[string]string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "all.sqlite")
	db, err := nsys.Create(path, schema)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		// Every table has at least one of these columns.
		table := db.Table(name)
		for _, column := range []string{"start", "id", "name", "globalPid", "nameId", "timestamp", "streamId", "processId",
			"utcEpochNs", "duration", "pid", "typeId", "domainId", "globalVid", "vmId"} {
			table.Set(column, 1)
		}
		table.Insert()
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	tables, _ := columns(t, path)
	return tables
}

// TestColumns compares the columns of tables with those in real exports of the same version.
func TestColumns(t *testing.T) {
	files, err := filepath.Glob(testinput.Shared(t, "data", "nsys", "real", "*.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	compared := map[nsys.Schema]int{}
	for _, file := range files {
		want, version := columns(t, file)
		at := slices.IndexFunc(nsys.Schemas, func(s nsys.Schema) bool {
			v, _ := s.Version()
			return v == version
		})
		if at < 0 {
			continue
		}
		schema := nsys.Schemas[at]
		var names []string
		for name := range want {
			if nsys.Known(name) {
				names = append(names, name)
			}
		}
		got := all(t, schema, names)
		for _, name := range names {
			if got[name] != want[name] {
				t.Errorf("%s of %d: %s\n%s has %s", name, schema, got[name], filepath.Base(file), want[name])
			}
			compared[schema]++
		}
	}
	for _, schema := range nsys.Schemas {
		if compared[schema] < 10 {
			t.Errorf("%d: %d tables compared", schema, compared[schema])
		}
	}
}

// TestColumnsKeepTheirValues checks columns that are not set, or not set again.
func TestColumnsKeepTheirValues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.sqlite")
	db, err := nsys.Create(path, nsys.Schema2024)
	if err != nil {
		t.Fatal(err)
	}
	table := db.Table("CUPTI_ACTIVITY_KIND_MEMSET")
	table.Insert("bytes", 17)
	table.Insert("graphNodeId", 5)
	table.Insert("graphNodeId", nil)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var got []string
	err = sqlitex.ExecuteTransient(conn, `SELECT start || ' ' || bytes || ' ' || coalesce(graphNodeId, 'NULL') FROM CUPTI_ACTIVITY_KIND_MEMSET`,
		&sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
			got = append(got, s.ColumnText(0))
			return nil
		}})
	if want := []string{"0 17 NULL", "0 17 5", "0 17 NULL"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q (%v)", got, want, err)
	}
}

func TestWhatIsMissingSwallows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.sqlite")
	db, err := nsys.Create(path, nsys.Schema2021)
	if err != nil {
		t.Fatal(err)
	}
	processes := db.Table("PROCESSES") // since 2022
	processes.Insert("pid", 1)
	memory := db.Table("CUPTI_ACTIVITY_KIND_MEMCPY")
	memory.Set("virtualAddress", 1) // since 2022
	memory.Insert()
	db.Table("OSRT_API").Insert() // no column was set
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got, _ := columns(t, path); len(got) != 1 || !strings.HasPrefix(got["StringIds"], "id INTEGER 1 1") {
		t.Errorf("tables %v", got)
	}
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := nsys.Create(filepath.Join(dir, "a.sqlite"), 2020); err == nil {
		t.Error("there is a schema of 2020")
	}
	if _, err := nsys.Create(filepath.Join(dir, "no", "a.sqlite"), nsys.Schema2026); err == nil {
		t.Error("a file in no folder")
	}
	db, err := nsys.Create(filepath.Join(dir, "b.sqlite"), nsys.Schema2026)
	if err != nil {
		t.Fatal(err)
	}
	process := db.Table("ANALYSIS_FILE")
	for range 2 {
		process.Set("id", 7) // the primary key
		process.Insert()
	}
	process.Insert()
	if err := db.Close(); err == nil || !strings.Contains(err.Error(), "ANALYSIS_FILE") {
		t.Errorf("error %v of a key that is there twice", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic of an unknown table")
		}
	}()
	nsys.Schema2026.Has("PROCESS")
}
