package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/page/chart"

	"github.com/sgtrace/sgtrace/analyze/gpu"
)

// mostKernels is how many kernels are compared in color.
const mostKernels = 24

// Kernels makes the section that compares ranks kernel by kernel.
func Kernels(g *gpu.GPUs, src Source) Section {
	s := Section{ID: "kernels", Title: "Kernels"}
	if f := kernelFigure(g, src); f != nil {
		s.Figures = append(s.Figures, f)
	}
	r := g.KernelReport()
	s.Figures = append(s.Figures, TableOf(r, mostRows, "Kernels of ranks", src.Command("--by-rank", tableFlag(r))))
	return s
}

// A kernelRow is the kernels of one name on all ranks.
type kernelRow struct {
	name  string
	total float64 // ns
	ranks map[string]*gpu.RankKernel
}

// kernelFigure compares ranks; nil if there is nothing to compare.
func kernelFigure(g *gpu.GPUs, src Source) *Figure {
	var ranks []string
	for i := range g.GPUs {
		if rank := g.GPUs[i].Rank; !slices.Contains(ranks, rank) {
			ranks = append(ranks, rank)
		}
	}
	rows, small := kernelRows(g)
	if len(ranks) < 2 || len(rows) == 0 {
		return nil
	}
	f := &Figure{
		ID: "kernels-by-rank", Shows: []finding.Kind{finding.Straggler}, Title: "Kernels by rank", Defined: "Kernels of ranks", Command: src.Command("--by-rank", "--table=gpu.kernels"),
		Caption: "Total time of the kernels of one name on a rank, as a multiple of the median (nearest rank) of the ranks. Kernels that took the most time come first. " +
			"A rank that is slow itself is orange in compute and blue in communication: the others wait for it in theirs.",
	}
	if len(rows) > mostKernels {
		f.Notes = append(f.Notes, roomNote(mostKernels, len(rows), "kernels that several ranks ran"))
		rows = rows[:mostKernels]
	}
	if small > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("kernels of less than %g %% of the time are left out: %d", 100*leastPart, small))
	}
	heat := &chart.Heatmap{Columns: ranks}
	for _, r := range rows {
		heat.Rows = append(heat.Rows, r.name)
		cells := make([]chart.HeatCell, len(ranks))
		for c, rank := range ranks {
			cells[c] = kernelCell(r.ranks[rank])
		}
		heat.Cells = append(heat.Cells, cells)
	}
	f.Body = heat
	return f
}

// kernelRows returns the kernels that several ranks ran, those that took most time
// first, and how many took too little to be compared.
func kernelRows(g *gpu.GPUs) (rows []*kernelRow, small int) {
	byName := map[string]*kernelRow{}
	for i := range g.Kernels {
		k := &g.Kernels[i]
		r := byName[k.Name]
		if r == nil {
			r = &kernelRow{name: k.Name, ranks: map[string]*gpu.RankKernel{}}
			byName[k.Name] = r
			rows = append(rows, r)
		}
		r.ranks[k.Rank] = k
		r.total += float64(k.Total)
	}
	rows = slices.DeleteFunc(rows, func(r *kernelRow) bool { return len(r.ranks) < 2 })
	whole, several := 0.0, len(rows)
	for _, r := range rows {
		whole += r.total
	}
	rows = slices.DeleteFunc(rows, func(r *kernelRow) bool { return r.total < leastPart*whole })
	slices.SortFunc(rows, func(a, b *kernelRow) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.name, b.name))
	})
	return rows, several - len(rows)
}

func kernelCell(k *gpu.RankKernel) chart.HeatCell {
	if k == nil {
		return chart.HeatCell{Value: math.NaN(), Text: "did not run"}
	}
	cell := chart.HeatCell{Value: k.RelTotal, Text: fmt.Sprintf("%s\ntotal %s, p50 %s, p99 %s\n%d kernels", k.Class, durationText(k.Total), durationText(k.P50), durationText(k.P99), k.N)}
	if k.RelTotal < 0 {
		cell.Value = math.NaN()
		return cell
	}
	return cell
}
