package table

import (
	"slices"
	"testing"
)

// A rendered table has the visible columns, each with its documentation.
func TestSheet(t *testing.T) {
	type row struct {
		name string
		ns   int64
	}
	rows := []row{{"a\x1b", 1_500_000}, {"b", 2_000_000}}
	r := New("sgtrace.report.test/v1", "Test", rows, []Field[row]{
		{Column{Name: "hidden", Doc: "for programs", Detail: true}, func(*row) Cell { return Cell{Text: "x"} }},
		{Column{Name: "name", Doc: "what it is called"}, func(r *row) Cell { return TextCell(r.name) }},
		{Column{Name: "empty", Doc: "of nobody"}, func(*row) Cell { return Cell{Unknown: true} }},
		{Column{Name: "took", Unit: Duration, Doc: "how long"}, func(r *row) Cell { return Cell{N: r.ns} }},
	})
	s := r.Render()
	want := []RenderedColumn{{"name", "what it is called", false}, {"took [ms]", "how long", true}}
	if !slices.Equal(s.Columns, want) {
		t.Errorf("columns are %v, want %v", s.Columns, want)
	}
	if len(s.Rows) != 2 || !slices.Equal(s.Rows[0], []string{`a\x1b`, "1.50"}) || len(s.Notes) != 1 {
		t.Errorf("rows are %q, notes %q", s.Rows, s.Notes)
	}
}

func TestShortenedNames(t *testing.T) {
	names := []string{"short", "void kernel_with_a_long_name<1, float>(Params)", "void kernel_with_a_long_name<2, float>(Params)", "tab\there"}
	got := Shorten(names, 24)
	if got[0] != "short" || got[3] != `tab\there` {
		t.Errorf("names that are short enough are %q", got)
	}
	if got[1] == got[2] || len([]rune(got[1])) > 24 {
		t.Errorf("long names look alike or are long: %q", got)
	}
}
