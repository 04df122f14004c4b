package diff

import (
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// Kernels that replace each other, as when a fused kernel becomes two, are one change: one that is gone saves nothing on its own,
// and a new one costs only what it takes beyond the old one.

// onlyKernels returns, for each capture, the kernels that certainly only this one has.
func (d *Diff) onlyKernels() (of [2][]*Row) {
	for i := range d.Rows {
		if r := &d.Rows[i]; r.Kind == Kernel && r.only() && r.Changed() && r.Rank == "" {
			side := 0
			if r.Before.N == 0 {
				side = 1
			}
			of[side] = append(of[side], r)
		}
	}
	return of
}

// replaced reports whether a kernel is reported together with those that may have replaced it, or that it may have replaced.
func (d *Diff) replaced(r *Row) bool {
	of := &d.swapped
	return len(of[0]) > 0 && len(of[1]) > 0 && (slices.Contains(of[0], r) || slices.Contains(of[1], r))
}

// replacements says how long the kernels that are gone took, and how long the new ones take, if that is a relevant part of the work.
func (d *Diff) replacements() []string {
	of := &d.swapped
	if len(of[0]) == 0 || len(of[1]) == 0 {
		return nil
	}
	var took [2]int64
	var names [2]string
	sure := finding.Certain
	for side, rows := range of {
		for _, r := range rows {
			took[side] += max(0, r.Before.PerUnit, r.After.PerUnit)
			if r.Total.Sure != finding.Certain {
				sure = finding.Likely
			}
		}
		names[side] = nameInWords(rows[0])
		if n := len(rows) - 1; n > 0 {
			names[side] += fmt.Sprintf(" and %s", words.Counted(n, "other kernel"))
		}
	}
	if d.part(of[0][0], max(took[0], took[1])) < minWeight {
		return nil
	}
	return []string{fmt.Sprintf("%s gave way to %s: %s%s (%s)", names[0], names[1], compare.PairInWords(took[0]/10, took[1]/10), d.perUnit(of[0][0]), sure)}
}

// unpaired reports the largest kernel or copy of each capture that the other one lacks, if it is much of the work: both captures may
// be too short to rule out chance.
func (d *Diff) unpaired() (says []string) {
	for side := range 2 {
		i := slices.IndexFunc(d.Rows, func(r Row) bool {
			n := [...]int64{r.Before.N, r.After.N}
			return (r.Kind == Kernel || r.Kind == Copy) && n[1-side] == 0 && d.part(&r, r.Moved()) >= largePart
		})
		if i >= 0 {
			says = append(says, d.plain(&d.Rows[i])+" (may be chance)")
		}
	}
	return says
}
