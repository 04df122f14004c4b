package page

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/page/chart"
)

// A heat map of very many ranks has a column for each host, with the rank that differs most.
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
