package analyze

import (
	"bytes"
	"testing"
)

// text renders a report, failing the test on any error.
func text(t testing.TB, r *Report, f Format, s Style) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b, f, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// csvOf renders a report as CSV, which has all columns and rows.
func csvOf(t *testing.T, r *Report) string {
	t.Helper()
	return text(t, r, FormatCSV, Style{})
}
