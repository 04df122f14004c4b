package testset

import (
	"io"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// CheckSpans reads data for a fuzz test of a reader, whose spans are objects of JSON: a span that was added has an identity
// and a time and stands where the table says, and what is wrong is reported within the
// file.
func CheckSpans(t *testing.T, read func(to *spantable.Filler, in io.Reader), data string) {
	t.Helper()
	table := spantable.New(&trace.Diags{})
	read(table.Fill("f", "fuzz"), strings.NewReader(data))
	for i := range table.Len() {
		s := table.Span(i)
		if s.TraceHi|s.TraceLo == 0 || s.ID == 0 || s.Start <= 0 || s.End < s.Start {
			t.Errorf("%+v", s)
		}
		if at := table.Pos(i).Offset; at < 0 || at >= int64(len(data)) || data[at] != '{' {
			t.Errorf("span %d stands at %d", i, at)
		}
	}
	if table.Files[0].Spans != table.Len() {
		t.Errorf("%d spans in the file, %d in the table", table.Files[0].Spans, table.Len())
	}
	for _, d := range table.Diags.All() {
		if d.Pos.File != "f" || d.Pos.Offset > int64(len(data)) {
			t.Errorf("%+v", d)
		}
	}
}
