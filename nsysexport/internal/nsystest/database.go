// Package nsystest makes exports of Nsight Systems for tests, from SQL text. It knows
// tables and columns as nsys writes them, and nothing of the packages that read them.
package nsystest

import (
	"net/url"
	"path/filepath"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Database writes a database from SQL text and returns its path.
func Database(t testing.TB, sql string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.sqlite")
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlitex.ExecuteScript(conn, sql, nil); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// Connect opens a database as it is, read-only, until the test ends.
func Connect(t testing.TB, path string) *sqlite.Conn {
	t.Helper()
	uri := url.URL{Scheme: "file", Path: path, RawQuery: "mode=ro&immutable=1"}
	conn, err := sqlite.OpenConn(uri.String(), sqlite.OpenReadOnly, sqlite.OpenURI)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TID returns the id of a thread as exports have it.
func TID(pid, tid int64) int64 { return 1<<48 | pid<<24 | tid }

// Schema2024 has the tables that most tests want.
var Schema2024 = Tables("StringIds", "META_DATA_EXPORT", "META_DATA_CAPTURE", "TARGET_INFO_SYSTEM_ENV", "TARGET_INFO_SESSION_START_TIME",
	"ANALYSIS_DETAILS", "PROCESSES", "ThreadNames", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS")
