package testset

import (
	"bytes"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/table"
)

// Text renders a report, failing the test on any error.
func Text(t testing.TB, r *table.Table, f table.Format, s table.Style) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b, f, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// CSV renders a report as CSV, which has all columns and rows.
func CSV(t *testing.T, r *table.Table) string {
	t.Helper()
	return Text(t, r, table.FormatCSV, table.Style{})
}
