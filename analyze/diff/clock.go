package diff

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/diff/pace"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// computes reports whether the row is of a kernel whose time doesn't depend on what requests and routers ask for.
func (r *Row) computes() bool { return r.Kind == Kernel && takesAsLong(r.Name) }

func takesAsLong(kernel string) bool { return !kernelname.KindOf(kernel).Varies() }

// whyAlike says why nearly all kernels that compute take longer or less time by about the same factor, "" if they do not.
func (d *Diff) whyAlike() string {
	var list []compare.Kernel
	for i := range d.Rows {
		if r := &d.Rows[i]; r.computes() {
			list = append(list, compare.Kernel{Before: float64(r.Before.Mean), After: float64(r.After.Mean), N: [2]int64{r.Before.N, r.After.N}, Blocks: [2]float64{r.Before.Blocks, r.After.Blocks}, Known: r.Changed()})
		}
	}
	return compare.WhyAlike(list)
}

// kernelsByRank returns, for every rank that both captures have, the kernels that compute.
func (r *diffRows) kernelsByRank() map[string][]compare.Kernel {
	list := map[string][]compare.Kernel{}
	for key, before := range r.sides[0].groups {
		after := r.sides[1].groups[key]
		if key.Kind != Kernel || key.Rank == "" || after == nil || !takesAsLong(key.Name) {
			continue
		}
		k := compare.Kernel{Known: true} // many kernels that change alike are no chance
		k.N[0], k.Before = meanOf(before)
		k.N[1], k.After = meanOf(after)
		k.Blocks = [2]float64{blocksOf(before), blocksOf(after)}
		list[key.Rank] = append(list[key.Rank], k)
	}
	return list
}

// unexplained drops findings about ranks whose steps are known to take as long for the same work: their kernels have more to do.
func (d *Diff) unexplained(clocks []finding.Finding) []finding.Finding {
	return slices.DeleteFunc(clocks, func(f finding.Finding) bool {
		return slices.ContainsFunc(d.Paces, func(p pace.Pace) bool {
			return p.Annotated && p.AsLong() && slices.ContainsFunc(p.Servers, func(rank string) bool { return f.Subkind == compare.ClockOf(rank) })
		})
	})
}

// meanOf returns the number of durations in groups, and their mean.
func meanOf(groups []*diffGroup) (n int64, mean float64) {
	sum := 0.0
	for _, g := range groups {
		for i := range g.pieces {
			n, sum = n+int64(g.pieces[i].Len()), sum+float64(g.pieces[i].Total())
		}
	}
	return n, sum / float64(max(1, n))
}

// blocksOf returns the mean blocks of the launches of kernels in groups; 0 if those of any are unknown.
func blocksOf(groups []*diffGroup) float64 {
	var all profilewalk.Blocks
	for _, g := range groups {
		all.Join(&g.blocks)
	}
	return all.Mean()
}
