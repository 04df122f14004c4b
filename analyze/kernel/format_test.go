package kernel

import (
	"slices"
	"strings"
	"testing"

	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

func TestGoldenSums(t *testing.T) {
	for name, report := range sumReports {
		name = "sum_" + strings.ReplaceAll(name, " ", "")
		for _, f := range table.Formats {
			t.Run(name+"."+string(f), func(t *testing.T) {
				testset.CompareGolden(t, name+"."+string(f), testset.Text(t, report(smallSet(), profilewalk.Options{}), f, table.Style{}))
			})
		}
		t.Run(name+"_byrank", func(t *testing.T) {
			testset.CompareGolden(t, name+"_byrank.text", testset.Text(t, report(smallSet(), profilewalk.Options{ByRank: true}), table.FormatText, table.Style{}))
		})
	}
}

// Averages have one decimal at any size.
func TestTenths(t *testing.T) {
	type row struct{ n int64 }
	column := func(u table.Unit, name string) table.Field[row] {
		return table.Field[row]{Column: table.Column{Name: name, Unit: u, Tenths: true}, Cell: func(r *row) table.Cell { return table.Cell{N: r.n} }}
	}
	r := table.New("s", "", []row{{18243}, {0}, {9_007_199_254_740_993_5}, {-5}}, []table.Field[row]{column(table.Duration, "time"), column(table.Bytes, "size"), column(table.Count, "ops")})
	want := "time_ns,size_bytes,ops\n1824.3,1824.3,1824.3\n0.0,0.0,0.0\n9007199254740993.5,9007199254740993.5,9007199254740993.5\n-0.5,-0.5,-0.5\n"
	if got := testset.Text(t, r, table.FormatCSV, table.Style{}); got != want {
		t.Errorf("CSV:\n%s", got)
	}
	if got := testset.Text(t, r, table.FormatJSON, table.Style{}); !strings.Contains(got, `{"time_ns":1824.3,"size_bytes":1824.3,"ops":1824.3}`) || !strings.Contains(got, `"unit":"bytes"`) {
		t.Errorf("JSON:\n%s", got)
	}
	small := table.New("s", "", []row{{18243}}, []table.Field[row]{column(table.Duration, "time"), column(table.Bytes, "size"), column(table.Count, "ops")})
	if got := testset.Text(t, small, table.FormatText, table.Style{}); !strings.Contains(got, "time [us]  size [kB]     ops") || !strings.Contains(got, "1.82       1.82  1824.3") {
		t.Errorf("text:\n%s", got)
	}
}

// All sizes have the unit of the largest, up to MB.
func TestScaleOfBytes(t *testing.T) {
	for _, c := range []struct {
		values []int64
		want   string
	}{
		{[]int64{0}, "0 B"},
		{[]int64{4, 999}, "4 999 B"},
		{[]int64{4, 1500}, "0.004 1.500 kB"},
		{[]int64{65536, 4_200_595_456}, "0.066 4200.595 MB"},
	} {
		s := table.ScaleFor(table.Bytes, slices.Clone(c.values))
		var got []string
		for _, v := range c.values {
			got = append(got, s.Format(v, false))
		}
		if text := strings.Join(got, " ") + " " + s.Unit; text != c.want {
			t.Errorf("%v: %s, want %s", c.values, text, c.want)
		}
	}
}

// Names that are cut remain distinct.
func TestCutNames(t *testing.T) {
	type row struct{ name string }
	long := func(middle string) string { return strings.Repeat("head", 20) + middle + strings.Repeat("tail", 20) }
	rows := []row{{long("64x128")}, {long("128x64")}, {"short"}, {long("64x128")}, {strings.Repeat("ö", 200)}}
	r := table.New("s", "", rows, []table.Field[row]{{Column: table.Column{Name: "kernel", Most: 50}, Cell: func(r *row) table.Cell { return table.TextCell(r.name) }}})
	for _, style := range []table.Style{{}, {ASCII: true}, {Width: 30}} {
		lines := strings.Split(testset.Text(t, r, table.FormatText, style), "\n")[2:]
		if lines[0] == lines[1] || lines[0] != lines[3] || lines[2] != "short" {
			t.Errorf("%+v: %q", style, lines)
		}
		for _, l := range lines {
			if twwidth.Width(l) > 50 || style.Width > 0 && twwidth.Width(l) > style.Width {
				t.Errorf("%+v: %q is too wide", style, l)
			}
		}
		if style.Width == 0 && (!strings.Contains(lines[0], "64x128") || !strings.HasPrefix(lines[0], "head") || !strings.HasSuffix(lines[0], "tail")) {
			t.Errorf("%+v: %q", style, lines[0])
		}
	}
	if got := testset.Text(t, r, table.FormatMarkdown, table.Style{}); strings.Contains(got, rows[0].name) {
		t.Errorf("Markdown has whole names:\n%s", got)
	}
	if got := testset.Text(t, r, table.FormatCSV, table.Style{}); !strings.Contains(got, rows[0].name) {
		t.Errorf("CSV has no whole names:\n%s", got)
	}
}
