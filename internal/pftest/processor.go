package pftest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Processor returns the path of trace_processor_shell, from the environment
// variable SGTRACE_TRACE_PROCESSOR or from PATH. Without one it skips the test.
func Processor(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("SGTRACE_TRACE_PROCESSOR"); path != "" {
		return path
	}
	path, err := exec.LookPath("trace_processor_shell")
	if err != nil {
		t.Skip("no trace_processor_shell in PATH or SGTRACE_TRACE_PROCESSOR: not checked against Perfetto")
	}
	return path
}

// Query imports a trace file's content with trace_processor and returns the
// rows of one SQL query as it prints them, the header first.
func Query(t testing.TB, processor string, data []byte, sql string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	query := file + ".sql"
	if err := os.WriteFile(query, []byte(sql), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(processor, "-q", query, file)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", processor, err, stderr.String())
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// troubles lists what an import complains about. The last names are of
// severity info and yet mean that something was not imported.
const troubles = `SELECT name, idx, value, severity FROM stats WHERE value > 0 AND
(severity IN ('error', 'data_loss', 'notice') OR name IN ('track_event_parser_errors',
'interned_data_tokenizer_errors', 'track_hierarchy_missing_uuid', 'flow_step_without_start',
'flow_end_without_start', 'flow_no_enclosing_slice', 'tokenizer_skipped_packets'));`

// CheckImport fails the test if trace_processor has anything to complain about.
func CheckImport(t testing.TB, processor string, data []byte) {
	t.Helper()
	if rows := Query(t, processor, data, troubles); len(rows) > 1 {
		t.Errorf("trace_processor complains:\n%s", strings.Join(rows, "\n"))
	}
}

// CheckRows fails the test if a query does not return the wanted rows, in any
// order.
func CheckRows(t testing.TB, processor string, data []byte, sql string, want []string) {
	t.Helper()
	got := Query(t, processor, data, sql)[1:]
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s\n got %q\nwant %q", sql, got, want)
	}
}
