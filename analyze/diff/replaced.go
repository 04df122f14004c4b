package diff

import (
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// Kernels that only one capture has and that do the work of each other, as when a fused kernel becomes two, are one change: a
// kernel that is gone saves nothing by itself, and a new one costs no more than what it costs beyond that.

// onlyKernels returns the kernels that only one of the captures has for sure, those of each.
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

// replaced reports whether a row is told with those that it may have replaced, or that may have replaced it.
func (d *Diff) replaced(r *Row) bool {
	of := &d.swapped
	return len(of[0]) > 0 && len(of[1]) > 0 && (slices.Contains(of[0], r) || slices.Contains(of[1], r))
}

// replacements tells what kernels that are gone took, and what those that are new take, where that is part of the work.
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
