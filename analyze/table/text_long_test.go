package table

import (
	"strings"
	"testing"

	"github.com/olekukonko/tablewriter/pkg/twwidth"
)

// Names of any length are cut in linear time; quadratic time would take hours.
func TestLongNamesAreCut(t *testing.T) {
	for _, letter := range []string{"x", "e\u0301", "\u4e2d", "\u0301"} {
		name := strings.Repeat(letter, 1<<18)
		cut := CutMiddle(name, 40, Style{})
		if twwidth.Width(name) > 40 && (twwidth.Width(cut) > 40 || !strings.Contains(cut, "…")) {
			t.Errorf("%q becomes %d wide", letter, twwidth.Width(cut))
		}
	}
	// Names that would look the same show where they differ; equal ones stay equal.
	s := &textTable{header: []string{"name"}, right: []bool{false}, most: []int{40}}
	middle := strings.Repeat("m", 100)
	for i := range 14 {
		s.rows = append(s.rows, []string{"begin" + middle + strings.Repeat("a", i%7) + middle + "end"})
	}
	s.fit(Style{})
	if n := twwidth.Width(s.rows[0][0]); n > 40 {
		t.Errorf("a name is %d wide", n)
	}
	if s.rows[0][0] != s.rows[7][0] || s.rows[0][0] == s.rows[1][0] {
		t.Errorf("names look %q, %q, %q", s.rows[0][0], s.rows[1][0], s.rows[7][0])
	}
}
