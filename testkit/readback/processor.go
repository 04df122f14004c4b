package readback

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// FindProcessor returns the path of trace_processor_shell, from the environment variable SGTRACE_TRACE_PROCESSOR or from
// PATH; "" if there is none.
func FindProcessor() string {
	if path := os.Getenv("SGTRACE_TRACE_PROCESSOR"); path != "" {
		return path
	}
	path, _ := exec.LookPath("trace_processor_shell")
	return path
}

// Processor returns the result of [FindProcessor], or skips the test if there is none.
func Processor(t testing.TB) string {
	t.Helper()
	path := FindProcessor()
	if path == "" {
		t.Skip("no trace_processor_shell in PATH or SGTRACE_TRACE_PROCESSOR: not checked against Perfetto")
	}
	return path
}

// Query imports a trace file's content with trace_processor and returns the rows of one SQL query as printed, the header
// first.
func Query(t testing.TB, processor string, data []byte, sql string) []string {
	t.Helper()
	rows, err := query(processor, written(t, data), sql)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// written returns the name of a temporary file with the content.
func written(t testing.TB, data []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func query(processor, file, sql string) (rows []string, err error) {
	cmd := exec.Command(processor, "-Q", sql, file)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", processor, err, stderr.String())
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n"), nil
}

// An Import is the counts of what trace_processor imported from a file. Instants are slices, too.
type Import struct {
	Tracks, Slices, Samples, Arrows int
}

// imported counts the imported rows, and lists the complaints of the import. The last names have severity info and yet mean
// that something was not imported.
const imported = `SELECT (SELECT count(*) FROM track) || ' ' || (SELECT count(*) FROM slice) || ' ' ||
(SELECT count(*) FROM counter) || ' ' || (SELECT count(*) FROM flow) AS line
UNION ALL SELECT severity || ': ' || name || ' ' || value FROM stats WHERE value > 0 AND
(severity IN ('error', 'data_loss', 'notice') OR name IN ('track_event_parser_errors', 'track_event_tokenizer_errors',
'interned_data_tokenizer_errors', 'track_hierarchy_missing_uuid', 'flow_step_without_start',
'flow_end_without_start', 'tokenizer_skipped_packets'))`

// ImportFile imports a file with trace_processor and returns the counts. Complaints of the import are returned as the
// error.
func ImportFile(processor, file string) (n Import, err error) {
	rows, err := query(processor, file, imported)
	if err != nil {
		return n, err
	}
	if _, err := fmt.Sscanf(strings.Trim(rows[1], `"`), "%d %d %d %d", &n.Tracks, &n.Slices, &n.Samples, &n.Arrows); err != nil {
		return n, fmt.Errorf("%s prints %q: %w", processor, rows, err)
	}
	if len(rows) > 2 {
		return n, fmt.Errorf("trace_processor complains:\n%s", strings.Join(rows[2:], "\n"))
	}
	return n, nil
}

// CheckImport fails the test if trace_processor complains about a file's content.
func CheckImport(t testing.TB, processor string, data []byte) {
	t.Helper()
	if _, err := ImportFile(processor, written(t, data)); err != nil {
		t.Error(err)
	}
}

// CheckRows fails the test if a query does not return the wanted rows, in any order.
func CheckRows(t testing.TB, processor string, data []byte, sql string, want []string) {
	t.Helper()
	got := Query(t, processor, data, sql)[1:]
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s\n got %q\nwant %q", sql, got, want)
	}
}
