package page

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/page/chart"
)

// The heat map of a crowd has a column for each host, with its rank that deviates most.
func TestHeatMapByHost(t *testing.T) {
	heatOf := func(n int) (heat *chart.Heatmap, hosts []string) {
		heat = &chart.Heatmap{Rows: []string{"gemm"}, Cells: [][]chart.HeatCell{nil}}
		for i := range n {
			heat.Columns = append(heat.Columns, fmt.Sprintf("rank %d", i))
			hosts = append(hosts, fmt.Sprintf("node%d", i/8))
			value := 1.0
			switch {
			case i/8 == 2:
				value = math.NaN()
			case i == 29:
				value = 0.5
			case i == 30:
				value = 1.9
			}
			heat.Cells[0] = append(heat.Cells[0], chart.HeatCell{Value: value, Text: "gemm"})
		}
		return heat, hosts
	}
	if heat, hosts := heatOf(64); byHost(heat, hosts) != "" || len(heat.Columns) != 64 {
		t.Errorf("64 ranks are %d columns", len(heat.Columns))
	}
	heat, hosts := heatOf(80)
	hosts[3] = ""
	if byHost(heat, hosts) != "" || len(heat.Columns) != 80 {
		t.Errorf("80 ranks, one of which has no host, are %d columns", len(heat.Columns))
	}
	heat, hosts = heatOf(80)
	if note := byHost(heat, hosts); note != "of the 80 ranks, each cell shows the one of its host that differs most" {
		t.Errorf("the note says %q", note)
	}
	if got := strings.Join(heat.Columns, " "); got != "node0 node1 node2 node3 node4 node5 node6 node7 node8 node9" {
		t.Errorf("columns are %s", got)
	}
	row := heat.Cells[0]
	if got := row[3]; got.Value != 0.5 || got.Text != "rank 29, which differs most of 8 ranks\ngemm" {
		t.Errorf("the slow host has %v", got)
	}
	if !math.IsNaN(row[2].Value) || row[2].Text != "did not run" || row[0].Value != 1 {
		t.Errorf("other hosts have %v and %v", row[2], row[0])
	}
}

// If hosts exceed the columns of a heat map, those that deviate most are drawn, in order.
func TestHostsThatDifferMost(t *testing.T) {
	heat := &chart.Heatmap{Rows: []string{"gemm"}, Cells: [][]chart.HeatCell{nil}}
	var hosts []string
	for i := range 400 {
		heat.Columns = append(heat.Columns, fmt.Sprintf("rank %d", i))
		hosts = append(hosts, fmt.Sprintf("node%d", i/4))
		value := 1.0
		if i == 399 || i == 8 {
			value = 1.5
		}
		heat.Cells[0] = append(heat.Cells[0], chart.HeatCell{Value: value})
	}
	note := byHost(heat, hosts)
	if !strings.HasSuffix(note, "32 of 100 hosts are drawn, those that differ most") {
		t.Errorf("the note says %q", note)
	}
	columns := heat.Columns
	if len(columns) != 32 || len(heat.Cells[0]) != 32 || columns[31] != "node99" || heat.Cells[0][31].Value != 1.5 || columns[2] != "node2" || heat.Cells[0][2].Value != 1.5 {
		t.Errorf("columns %v", columns)
	}
	var ranks chart.Heatmap // of unknown hosts
	ranks.Rows, ranks.Cells = []string{"gemm"}, [][]chart.HeatCell{make([]chart.HeatCell, 1000)}
	for i := range ranks.Cells[0] {
		ranks.Columns = append(ranks.Columns, fmt.Sprintf("rank %d", i))
		ranks.Cells[0][i].Value = 1
	}
	ranks.Cells[0][500].Value = 1.2
	note = byHost(&ranks, make([]string, 1000))
	if at := slices.Index(ranks.Columns, "rank 500"); note != "32 of 1000 ranks are drawn, those that differ most; the command prints all" || at < 0 || ranks.Cells[0][at].Value != 1.2 {
		t.Errorf("the note says %q; columns %v", note, ranks.Columns)
	}
}

// The wait matrix of a crowd has a cell for each pair of hosts, with the longest
// wait between two of their ranks, and only the hosts with the longest waits.
func TestWaitsOfACrowd(t *testing.T) {
	const ranks, perHost = 240, 8 // 30 hosts
	random := rand.New(rand.NewPCG(7, 8))
	var names, hosts []string
	waits := make([][]int64, ranks)
	longest := map[[2]int]int64{} // by host
	most := map[int]int64{}
	for r := range ranks {
		names, hosts = append(names, fmt.Sprintf("rank %d", r)), append(hosts, fmt.Sprintf("node%d", r/perHost))
		waits[r] = make([]int64, ranks)
		for s := range ranks {
			if r == s || random.IntN(20) > 0 {
				continue
			}
			a, b := r/perHost, s/perHost
			waits[r][s] = 1 + random.Int64N(1000)
			longest[[2]int{a, b}] = max(longest[[2]int{a, b}], waits[r][s])
			most[a], most[b] = max(most[a], waits[r][s]), max(most[b], waits[r][s])
		}
	}
	f := crowdedWaits(names, hosts, waits, Source{})
	heat := f.Body.(*chart.Heatmap)
	if len(heat.Rows) != maxWaiting || !slices.Equal(heat.Rows, heat.Columns) || len(f.Notes) != 1 || !strings.HasPrefix(f.Notes[0], "24 of 30 hosts are drawn") {
		t.Fatalf("rows %v, notes %q", heat.Rows, f.Notes)
	}
	drawn := map[int]bool{}
	for i, name := range heat.Rows {
		a := hostNumber(t, name)
		drawn[a] = true
		for k, other := range heat.Columns {
			want := longest[[2]int{a, hostNumber(t, other)}]
			cell := heat.Cells[i][k]
			if got := cell.Value; got != float64(want) && !(want == 0 && math.IsNaN(got)) {
				t.Errorf("%s waited %v for %s, want %d", name, got, other, want)
			}
			if want > 0 && !strings.Contains(cell.Text, " waited "+durationText(want)+" for rank ") {
				t.Errorf("%s and %s: %q", name, other, cell.Text)
			}
		}
	}
	for a := range drawn {
		for b, wait := range most {
			if !drawn[b] && wait > most[a] {
				t.Errorf("node%d is drawn, and node%d is not", a, b)
			}
		}
	}
	hosts[5] = ""
	if f := crowdedWaits(names, hosts, waits, Source{}); !strings.HasPrefix(f.Notes[0], "24 of 240 ranks are drawn") {
		t.Errorf("one host is unknown: %q", f.Notes)
	}
}

// hostNumber returns the number in "node7".
func hostNumber(t *testing.T, name string) (n int) {
	t.Helper()
	if _, err := fmt.Sscanf(name, "node%d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A page has a limited number of waterfall rows: the slowest requests come first,
// and then those that findings name.
func TestWaterfallsThatFit(t *testing.T) {
	views := func(n, rows int) (list []RequestView) {
		for i := range n {
			fall := chart.Waterfall{Lanes: []chart.Lane{{Rows: make([]chart.WaterfallRow, rows)}}}
			list = append(list, RequestView{RID: fmt.Sprint(i), Fall: fall})
		}
		return list
	}
	if got := fitting(views(90, 20)); len(got) != 90 {
		t.Errorf("%d of 90 small ones fit", len(got))
	}
	got := fitting(views(90, 60)) // room for 40
	if len(got) != 40 || got[19].RID != "19" || got[20].RID != "50" || got[39].RID != "69" {
		t.Errorf("%d of 90 large ones fit", len(got))
	}
}
