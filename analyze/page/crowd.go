package page

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/profile"
)

// crowded is how many columns a heat map of ranks has at most before those of a host are one.
const crowded = 64

// hostsOf returns the hosts of ranks, by name; "" is unknown.
func hostsOf(set *profile.Set, ranks []string) []string {
	of := map[string]string{}
	if set != nil {
		for i := range set.Homes {
			of[set.Ranks[i]] = set.Homes[i].Host
		}
	}
	hosts := make([]string, len(ranks))
	for i, rank := range ranks {
		hosts[i] = of[rank]
	}
	return hosts
}

// byHost makes one column of the ranks of each host if there are very many ranks: each cell is
// that of the rank that differs most from its peers, by a factor. hosts are those of the
// columns; nothing changes where one is unknown. It returns a note, "" if nothing changes.
func byHost(heat *chart.Heatmap, hosts []string) (note string) {
	ranks := heat.Columns
	if len(ranks) <= crowded {
		return ""
	}
	column, count := map[string]int{}, map[string]int{}
	var names []string
	for _, host := range hosts {
		if host == "" {
			return ""
		}
		if count[host]++; count[host] == 1 {
			column[host] = len(names)
			names = append(names, host)
		}
	}
	heat.Columns = names
	for r, row := range heat.Cells {
		worst := make([]chart.HeatCell, len(names))
		for i := range worst {
			worst[i] = chart.HeatCell{Value: math.NaN(), Text: "did not run"}
		}
		for i, cell := range row {
			c := &worst[column[hosts[i]]]
			if math.IsNaN(cell.Value) || math.Abs(math.Log(cell.Value)) <= math.Abs(math.Log(c.Value)) {
				continue
			}
			*c = cell
			c.Text = fmt.Sprintf("%s, which differs most of %d ranks\n%s", ranks[i], count[hosts[i]], cell.Text)
		}
		heat.Cells[r] = worst
	}
	return fmt.Sprintf("of the %d ranks, each cell shows the one of its host that differs most", len(ranks))
}
