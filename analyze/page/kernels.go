package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
)

// maxKernels limits the kernels compared in the heat map.
const maxKernels = 24

// Kernels makes the section that compares ranks kernel by kernel.
func Kernels(g *gpu.GPUs, set *profile.Set, src Source) Section {
	s := Section{ID: "kernels", Title: "Kernels"}
	if f := kernelFigure(g, set, src); f != nil {
		s.Figures = append(s.Figures, f)
	}
	r := g.KernelReport()
	s.Figures = append(s.Figures, TableOf(r, maxRows, "Kernels of ranks", src.Command("--by-rank", tableFlag(r))))
	return s
}

// A kernelRow has the kernels of one name on all ranks.
type kernelRow struct {
	name  string
	total float64 // ns
	ranks map[string]*gpu.RankKernel
}

// kernelFigure compares kernels between ranks; nil if there is nothing to compare.
func kernelFigure(g *gpu.GPUs, set *profile.Set, src Source) *Figure {
	var ranks []string
	for i := range g.GPUs {
		ranks = order.With(ranks, g.GPUs[i].Rank)
	}
	rows, small := kernelRows(g)
	if len(ranks) < 2 || len(rows) == 0 {
		return nil
	}
	f := &Figure{
		ID: "kernels-by-rank", Shows: []finding.Kind{finding.Straggler}, Title: "Kernels by rank", Defined: "Kernels of ranks", Command: src.Command("--by-rank", "--table=gpu.kernels"),
		Caption: "Total time of the kernels of one name on a rank, as a multiple of the median (nearest rank) of its peers: the ranks that compute each step with it, " +
			"else those of its role. Kernels that took the most time come first. A rank that is slow itself is orange in compute. In communication it takes less time than its peers, which wait for it there.",
	}
	if len(rows) > maxKernels {
		f.Notes = append(f.Notes, roomNote(maxKernels, len(rows), "kernels that several ranks ran"))
		rows = rows[:maxKernels]
	}
	if small > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("kernels of less than %g %% of the time are left out: %d", 100*minPart, small))
	}
	heat, peers := &chart.Heatmap{Columns: ranks}, peersOf(ranks)
	for _, r := range rows {
		heat.Rows = append(heat.Rows, r.name)
		heat.Cells = append(heat.Cells, kernelCells(r, ranks, peers))
	}
	if note := byHost(heat, hostsOf(set, ranks)); note != "" {
		f.Notes = append(f.Notes, note)
	}
	f.Body = heat
	return f
}

// kernelRows returns the kernels that several ranks ran, sorted by total time, largest first, and the number of those
// too short to compare.
func kernelRows(g *gpu.GPUs) (rows []*kernelRow, small int) {
	byName := map[string]*kernelRow{}
	for i := range g.Kernels {
		k := &g.Kernels[i]
		r := order.Memo(byName, k.Name, func() *kernelRow {
			rows = append(rows, &kernelRow{name: k.Name, ranks: map[string]*gpu.RankKernel{}})
			return rows[len(rows)-1]
		})
		r.ranks[k.Rank] = k
		r.total += float64(k.Summary.Total)
	}
	rows = slices.DeleteFunc(rows, func(r *kernelRow) bool { return len(r.ranks) < 2 })
	whole, several := 0.0, len(rows)
	for _, r := range rows {
		whole += r.total
	}
	rows = slices.DeleteFunc(rows, func(r *kernelRow) bool { return r.total < minPart*whole })
	slices.SortFunc(rows, func(a, b *kernelRow) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.name, b.name))
	})
	return rows, several - len(rows)
}

// kernelCells compares the kernels of one name among peers: each rank with the median (nearest rank) of its peers,
// itself included.
func kernelCells(r *kernelRow, ranks []string, peers []string) []chart.HeatCell {
	of := map[string][]float64{}
	for i, rank := range ranks {
		if k := r.ranks[rank]; k != nil && k.RelTotal >= 0 {
			of[peers[i]] = append(of[peers[i]], k.RelTotal)
		}
	}
	for _, values := range of {
		slices.Sort(values)
	}
	cells := make([]chart.HeatCell, len(ranks))
	for i, rank := range ranks {
		k := r.ranks[rank]
		cells[i] = chart.HeatCell{Value: math.NaN(), Text: "did not run"}
		if k == nil {
			continue
		}
		cells[i].Text = fmt.Sprintf("%s\ntotal %s, p50 %s, p99 %s\n%d kernels", k.Class, durationText(k.Summary.Total), durationText(k.Summary.P50), durationText(k.Summary.P99), k.Summary.N)
		if values := of[peers[i]]; k.RelTotal >= 0 && request.NearestRank(values, 50) > 0 {
			cells[i].Value = k.RelTotal / request.NearestRank(values, 50) // both are relative to the median of all ranks, which cancels out
		}
	}
	return cells
}

// Parts of a rank's name in which peers differ. Tensor- and expert-parallel ranks do the same work together;
// data-parallel ranks do other work of the same kind.
var (
	together = lazyregexp.New(`\b(TP|EP)\d+`)
	alike    = lazyregexp.New(`\b(TP|EP|DP)\d+|\(.*\)`)
)

// peersOf returns a name for the peer group of each rank: the ranks that compute each step with it, else those of its
// role, else all.
func peersOf(ranks []string) []string {
	peers := make([]string, len(ranks))
	for _, drop := range []*lazyregexp.Regexp{lazyregexp.New(`.*`), alike, together} {
		count := map[string]int{}
		for _, rank := range ranks {
			count[drop.ReplaceAllString(rank, "")]++
		}
		for i, rank := range ranks {
			if key := drop.ReplaceAllString(rank, ""); count[key] > 1 {
				peers[i] = key
			}
		}
	}
	return peers
}
