package table_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/table"
)

// flamegraphLine is how flamegraph.pl splits a line. If the stack matches again, it contains a second weight.
var flamegraphLine = regexp.MustCompile(`^(.*)\s+?(\d+(?:\.\d*)?)$`)

// parseFolded splits a line as flamegraph.pl does.
func parseFolded(line string) (frames []string, weight string, err error) {
	m := flamegraphLine.FindStringSubmatch(line)
	if m == nil {
		return nil, "", fmt.Errorf("no weight in %q", line)
	}
	if flamegraphLine.MatchString(m[1]) {
		return nil, "", fmt.Errorf("two weights in %q", line)
	}
	return strings.Split(m[1], ";"), m[2], nil
}

// folded formats one stack.
func folded(frames []string, weight int64) (string, error) {
	t := table.New("sgtrace.report.stacks.cpu/v1", "Stacks", []int64{weight}, []table.Field[int64]{
		table.NsColumn("self", "time", func(v *int64) int64 { return *v }),
		table.TextColumn("stack", "frames", func(*int64) string { return table.FoldStack(frames) }),
	})
	t.Folding = &table.Folding{Stack: "stack", Weight: "self"}
	var b bytes.Buffer
	err := t.Write(&b, table.FormatFolded, table.Style{})
	return b.String(), err
}

// FuzzFolded writes arbitrary frame names: other tools read the same number of frames, and the weight.
func FuzzFolded(f *testing.F) {
	for _, seed := range []string{"", ";", "a;b", "layer 12", "x 1 2", "3.", "a\nb 5", "\xff\xfe", "void f<4, (lambda at x.cu;3)> ", "\u202e", " 7 ", "1", "a\u00a012"} {
		f.Add("main", seed, int64(17))
		f.Add(seed, "leaf", int64(1))
	}
	f.Fuzz(func(t *testing.T, outer, inner string, weight int64) {
		if weight < 0 {
			return
		}
		text, err := folded([]string{outer, inner}, weight)
		if err != nil {
			t.Fatal(err)
		}
		line, rest, _ := strings.Cut(text, "\n")
		if rest != "" {
			t.Fatalf("more than a line: %q", text)
		}
		frames, got, err := parseFolded(line)
		if err != nil {
			t.Fatal(err)
		}
		if len(frames) != 2 || got != fmt.Sprint(weight) || frames[0] == "" || frames[1] == "" {
			t.Errorf("%q and %q, %d, are read as %q, %s", outer, inner, weight, frames, got)
		}
	})
}

// Rows that are not stacks cannot be folded, and an empty table is an error.
func TestFoldedErrors(t *testing.T) {
	fields := []table.Field[int64]{table.NsColumn("self", "time", func(v *int64) int64 { return *v })}
	plain := table.New("sgtrace.report.kernels/v1", "Kernels", []int64{1}, fields)
	empty := table.New("sgtrace.report.stacks.cpu/v1", "Stacks", nil, fields)
	empty.Folding = &table.Folding{Stack: "stack", Weight: "self"}
	empty.Note("nothing was recorded")
	for _, c := range []struct {
		of   *table.Table
		want string
	}{{plain, "kernels are no stacks"}, {empty, "stacks.cpu is empty: nothing was recorded"}} {
		if err := c.of.Write(&bytes.Buffer{}, table.FormatFolded, table.Style{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}
