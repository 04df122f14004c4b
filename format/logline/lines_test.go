package logline

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// Holes and other binary data in a log are reported with the line of the first, and what stands behind them is read. A hole at the beginning is
// that of a log that was emptied, and a single zero is of a prompt.
func TestBinaryLines(t *testing.T) {
	hole := strings.Repeat("\x00", 20)
	for _, test := range []struct {
		text string
		want []string
		bad  int64 // line of the first binary data; 0 is none
	}{
		{"a\nb\n", []string{"a", "b"}, 0},
		{hole + "a\nb\n", []string{"a", "b"}, 0},
		{"a\nb" + hole + "c\n\x00\xff\xfe\x00\nd\n", []string{"a", "c", "", "d"}, 2},
		{hole + "a" + hole + "b\n", []string{"b"}, 1},
		{"a\nprompt: \x00\nb\xff\n", []string{"a", "prompt: \x00", "b\xff"}, 0},
	} {
		var got []string
		diags := &trace.Diags{}
		if _, err := Read(io.NopCloser(strings.NewReader(test.text)), "a.log", diags, func(b []byte, _ int64) { got = append(got, string(b)) }); err != nil {
			t.Fatal(err)
		}
		bad := int64(0)
		for _, d := range diags.All() {
			bad = d.Pos.Line
		}
		if !slices.Equal(got, test.want) || bad != test.bad {
			t.Errorf("%q: %q, line %d", test.text, got, bad)
		}
	}
}
