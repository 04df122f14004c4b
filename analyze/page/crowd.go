package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
)

// Figures of more than crowded ranks show hosts, or some of the ranks. maxHosts limits the hosts of a heat map. If hosts
// are unknown, a heat map has up to maxColumns ranks: more would be too narrow to see.
const (
	crowded    = 64
	maxHosts   = 32
	maxColumns = 128
)

// hostsOf returns the hosts of ranks; "" if unknown.
func hostsOf(set *profile.Set, ranks []string) []string {
	of := map[string]string{}
	if set != nil {
		for i := range set.Placements {
			of[set.Ranks[i]] = set.Placements[i].Host
		}
	}
	return order.Each(ranks, func(rank string) string { return of[rank] })
}

// byHost merges the columns of each host into one if there are more than crowded ranks: each cell is that of the rank
// that differs most, by a factor, from its peers. hosts has the host of each column; if one is unknown, it keeps ranks,
// and of very many only those that differ most. It returns a note; "" if nothing changed.
func byHost(heat *chart.Heatmap, hosts []string) (note string) {
	ranks := heat.Columns
	if len(ranks) <= crowded {
		return ""
	}
	if slices.Contains(hosts, "") {
		if len(ranks) <= maxColumns {
			return ""
		}
		keepMostDiffering(heat)
		return fmt.Sprintf("%d of %d ranks are drawn, those that differ most; the command prints all", len(heat.Columns), len(ranks))
	}
	column, count := map[string]int{}, map[string]int{}
	var names []string
	for _, host := range hosts {
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
	note = fmt.Sprintf("of the %d ranks, each cell shows the one of its host that differs most", len(ranks))
	if len(names) > maxHosts {
		keepMostDiffering(heat)
		note += fmt.Sprintf("; %d of %d hosts are drawn, those that differ most", maxHosts, len(names))
	}
	return note
}

// keepMostDiffering keeps the maxHosts columns whose cells differ most from 1, by a factor, in column order.
func keepMostDiffering(heat *chart.Heatmap) {
	most := make([]float64, len(heat.Columns))
	for _, row := range heat.Cells {
		for i, cell := range row {
			if d := math.Abs(math.Log(cell.Value)); d > most[i] {
				most[i] = d
			}
		}
	}
	kept := largest(most, maxHosts)
	heat.Columns = chosen(heat.Columns, kept)
	for r, row := range heat.Cells {
		heat.Cells[r] = chosen(row, kept)
	}
}

// largest returns the indexes of the n largest values, ascending.
func largest(values []float64, n int) []int {
	list := order.Sorted(len(values), func(a, b int) int { return cmp.Compare(values[b], values[a]) })
	return slices.Sorted(slices.Values(list[:min(n, len(list))]))
}

func chosen[T any](list []T, at []int) []T {
	return order.Each(at, func(k int) T { return list[k] })
}

// maxWaiting limits the hosts, or ranks, on each side of the wait matrix of a crowd.
const maxWaiting = 24

// crowdedWaits returns the wait matrix for very many ranks, with a cell for each pair of hosts: the longest wait
// between any two of their ranks. If a host is unknown, it has a cell for each pair of ranks. It shows only those
// that waited, or were waited for, longest. It can't follow a range of time as sums do, because its values are
// maxima.
func crowdedWaits(names, hosts []string, waits [][]int64, src Source) *Figure {
	groups, what := hosts, "hosts"
	if slices.Contains(hosts, "") {
		groups, what = names, "ranks"
	}
	var by order.Groups[string, struct{}]
	of := order.Each(groups, by.At) // of each rank: the index of its group
	sides := by.Keys
	type pair struct {
		r, s int
		wait int64
	}
	longest := make([][]pair, len(sides))
	weight := make([]float64, len(sides))
	for i := range longest {
		longest[i] = make([]pair, len(sides))
	}
	for r, row := range waits {
		for s, wait := range row {
			a, b := of[r], of[s]
			if r != s && wait > longest[a][b].wait {
				longest[a][b] = pair{r, s, wait}
			}
			weight[a], weight[b] = max(weight[a], float64(wait)), max(weight[b], float64(wait))
		}
	}
	drawn := largest(weight, maxWaiting)
	f := WaitMatrix(chosen(sides, drawn), nil, src)
	heat := f.Body.(*chart.Heatmap)
	for _, a := range drawn {
		cells := make([]chart.HeatCell, len(drawn))
		for i, b := range drawn {
			cells[i] = chart.HeatCell{Value: math.NaN()}
			if p := longest[a][b]; p.wait > 0 {
				cells[i] = chart.HeatCell{Value: float64(p.wait), Text: fmt.Sprintf("%s waited %s for %s", names[p.r], durationText(p.wait), names[p.s])}
			}
		}
		heat.Cells = append(heat.Cells, cells)
	}
	if what == "hosts" {
		f.Caption = "How long ranks on the host in a row waited in collectives at which a rank on the host in a column arrived last: the pair of ranks that waited longest. " +
			"A column that stands out is a host that others wait for."
	}
	if len(drawn) < len(sides) {
		f.Notes = append(f.Notes, fmt.Sprintf("%d of %d %s are drawn, those with the longest waits; the command prints all pairs of ranks", len(drawn), len(sides), what))
	}
	return f
}

// shortenTables shortens the tables of all sections together, because one table may name ranks that the others keep.
func shortenTables(sections []Section, shorten func([]*table.Table)) {
	var bodies []*Table
	var tables []*table.Table
	for _, s := range sections {
		for _, f := range s.Figures {
			if t, ok := f.Body.(*Table); ok {
				bodies, tables = append(bodies, t), append(tables, t.Report)
			}
		}
	}
	shorten(tables)
	for i, t := range tables {
		bodies[i].Report = t
	}
}
