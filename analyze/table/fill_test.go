package table

import (
	"bufio"
	"slices"
	"strings"
	"testing"
)

func TestFill(t *testing.T) {
	for _, test := range []struct {
		text        string
		first, rest int
		want        []string
	}{
		{"a bb ccc", 80, 80, []string{"a bb ccc"}},
		{"a bb ccc", 4, 3, []string{"a bb", "ccc"}},
		{"longer than that", 3, 6, []string{"longer", "than", "that"}},
		{"took 12 ms", 7, 7, []string{"took", "12\u00a0ms"}}, // not "took 12" and "ms"
		{"", 5, 5, []string{""}},
	} {
		if got := Fill(test.text, test.first, test.rest); !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, want %q", test.text, got, test.want)
		}
	}
}

// Notes are wrapped to the screen, and elsewhere have one line each.
func TestWriteNotes(t *testing.T) {
	notes := []string{"at 20:53:33 ± 2 s\x07", "one two three"}
	for _, c := range []struct {
		style Style
		want  string
	}{
		{Style{}, "\nnote: at 20:53:33 ± 2 s\\a\nnote: one two three\n"},
		{Style{ASCII: true}, "\nnote: at 20:53:33 +- 2 s\\a\nnote: one two three\n"},
		{Style{Width: 20}, "\nnote: at 20:53:33 ±\n      2 s\\a\nnote: one two three\n"},
		{Style{Width: 14}, "\nnote: at\n      20:53:33\n      ± 2 s\\a\nnote: one two\n      three\n"},
	} {
		var b strings.Builder
		out := bufio.NewWriter(&b)
		WriteNotes(out, c.style, notes)
		if err := out.Flush(); err != nil {
			t.Fatal(err)
		}
		if b.String() != c.want {
			t.Errorf("%+v: %q, want %q", c.style, b.String(), c.want)
		}
	}
}
