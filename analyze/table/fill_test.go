package table

import (
	"slices"
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
