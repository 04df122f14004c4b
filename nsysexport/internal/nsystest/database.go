// Package nsystest makes exports of Nsight Systems for tests, from SQL text. It defines tables and columns as
// nsys writes them, independently of the packages that read them.
package nsystest

import (
	"fmt"
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

// Connect opens a database unchanged and read-only, until the test ends.
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

// TID returns the id of a thread as in exports.
func TID(pid, tid int64) int64 { return 1<<48 | pid<<24 | tid }

// Schema2024 creates the tables that most tests need.
var Schema2024 = Tables("StringIds", "META_DATA_EXPORT", "META_DATA_CAPTURE", "TARGET_INFO_SYSTEM_ENV", "TARGET_INFO_SESSION_START_TIME",
	"ANALYSIS_DETAILS", "PROCESSES", "ThreadNames", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS")

// NVTXStart is the start of the session of [NVTXDatabase].
const NVTXStart = 1_700_000_000_000_000_000

// NVTXDatabase returns an export with ranges of all kinds.
func NVTXDatabase(t testing.TB) string {
	const columns = `start, end, eventType, category, color, text, globalTid, endGlobalTid, textId, domainId,
		uint64Value, int64Value, doubleValue, jsonTextId, jsonText, binaryData`
	thread, other := TID(5, 6), TID(7, 8)
	return Database(t, Schema2024+fmt.Sprintf(`
		INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (%[3]d, '', '');
		INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_CONFIG_TIME_SHIFT', '100');
		INSERT INTO ANALYSIS_DETAILS VALUES (0, 5000, 100, 5100);
		INSERT INTO StringIds VALUES (3, 'registered'), (4, '{"Rank": 2}'), (5, 'by id');
		CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId, schemaId, idx, flags, type, name, description, arrayOrUnionDetail, offset);
		INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES
			(1, 16777218, 0, NULL, 18, 'NCCL communicator ID', NULL, NULL, NULL), (1, 16777218, 1, NULL, 5, 'Rank', NULL, NULL, 8),
			(1, 16777218, 0, NULL, 18, 'NCCL communicator ID', NULL, NULL, NULL), (1, 16777218, 1, NULL, 5, 'Rank', NULL, NULL, 8),
			(1, 16777218, 2, NULL, 5, 'beyond', NULL, NULL, 9223372036854775807);
		INSERT INTO NVTX_EVENTS (`+columns+`) VALUES
			(1100, 1200, 59, 9, 4278255360, 'push', %[1]d, NULL, NULL, 1, NULL, -16, NULL, NULL, NULL, NULL),
			(1100, 1200, 59, 9, NULL, NULL, %[2]d, NULL, 3, 1, NULL, NULL, 0.5, NULL, NULL, NULL),
			(1300, 5100, 59, NULL, NULL, 'never popped', %[1]d, NULL, NULL, 0, 18446744073709551615, NULL, NULL, NULL, NULL, NULL),
			(1300, NULL, 60, NULL, NULL, 'never ended', %[1]d, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL),
			(1300, 1400, 60, NULL, NULL, 'crosses', %[1]d, %[1]d + 1, NULL, 2, NULL, NULL, NULL, NULL, NULL, NULL),
			(1500, NULL, 34, NULL, NULL, NULL, %[1]d, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
			(1600, 1700, 59, NULL, NULL, 'json', %[1]d, NULL, NULL, 1, NULL, NULL, NULL, NULL,
				'{"NCCL communicator ID": 18446744073709551615, "Rank": 3, "x": [1], "s": "t", "f": 1.5, "n": null, "b": true}', NULL),
			(1600, 1700, 59, NULL, NULL, 'json by id', %[1]d, NULL, NULL, 1, NULL, NULL, NULL, 4, NULL, NULL),
			(1600, 1700, 59, NULL, NULL, 'binary', %[1]d, NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL,
				x'0100000000000000020000010000000010000000000000002000000000000000FFFFFFFFFFFFFFFFFEFFFFFF00000000'),
			(1600, 1700, 59, NULL, NULL, 'hex', %[1]d, NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL,
				'0100000000000000020000010000000010000000000000002000000000000000FFFFFFFFFFFFFFFFFEFFFFFF00000000'),
			(1600, 1700, 59, NULL, NULL, 'no json', %[1]d, NULL, NULL, 1, NULL, NULL, NULL, NULL, '[1', NULL),
			(1600, 1700, 99, NULL, NULL, 'unknown kind', %[1]d, NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL),
			(-9000, NULL, 75, NULL, NULL, 'NCCL', %[1]d, NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL),
			(-9000, NULL, 75, NULL, NULL, 'other', %[2]d, NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL),
			(-9000, NULL, 33, 9, NULL, 'category', %[1]d, NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL),
			(-9000, NULL, 39, NULL, NULL, NULL, %[1]d, NULL, 5, 0, NULL, NULL, NULL, NULL, NULL, NULL);`,
		thread, other, int64(NVTXStart)))
}
