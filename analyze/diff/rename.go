package diff

import (
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/profile"
)

// matchRenamed finds kernels that one capture lacks, and that may be what the other one calls
// otherwise: the same function with other parameters of templates, or as another profiler
// writes it. Of several, the one with the largest total is named.
func (d *Diff) matchRenamed() {
	type side struct{ before, after *Row }
	by := map[diffKey]side{}
	each := func(f func(r *Row, key diffKey)) {
		for i := range d.Rows {
			if r := &d.Rows[i]; r.Kind == Kernel && r.only() {
				f(r, diffKey{r.Kind, profile.BareName(r.Name), r.Rank})
			}
		}
	}
	each(func(r *Row, key diffKey) {
		s := by[key]
		of := &s.before
		if r.Before.N == 0 {
			of = &s.after
		}
		if *of == nil || distribution.Abs((*of).Moved()) < distribution.Abs(r.Moved()) {
			*of = r
		}
		by[key] = s
	})
	each(func(r *Row, key diffKey) {
		other := by[key].after
		if r.Before.N == 0 {
			other = by[key].before
		}
		if other != nil {
			r.Like = other.Name
		}
	})
}
