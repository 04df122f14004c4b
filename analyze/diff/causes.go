package diff

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// toldRows returns the rows that the verdict tells of.
func (d *Diff) toldRows() []*Row {
	return slices.DeleteFunc(d.main(), func(r *Row) bool { return slices.Contains(d.muted, r) })
}

// main returns the rows that matter most: what users notice, and what of each kind
// says most about why.
func (d *Diff) main() []*Row {
	var told []*Row
	for _, m := range metric.At(metric.Noticed) {
		if r := d.changed(func(r *Row) bool { return r.Kind == Request && r.metricOf() == m }); r != nil {
			told = append(told, r)
		}
	}
	late := d.late()
	if late != nil {
		told = append(told, late)
	}
	for _, kind := range []Kind{Stage, Step, GPU} {
		if kind == Step && d.annotated((*compare.Change).Tested) {
			continue // how often each kind ran is the load
		}
		if r := d.cause(kind); r != nil {
			told = append(told, r)
		}
	}
	var work []*Row
	for _, kind := range []Kind{Kernel, Copy, Collective} {
		r := d.causeOf(func(r *Row) bool {
			return r.Kind == kind && !(late != nil && r.waits()) && !(d.slowed != nil && r.computes()) && !d.replaced(r)
		})
		if kind == Kernel && d.clock != "" { // the others wait longer, or not as long, for those that compute
			r = cmp.Or(d.causeOf(func(r *Row) bool { return r.computes() && !d.replaced(r) }), r)
		}
		if r != nil {
			work = append(work, r)
		}
	}
	if r := d.cause(HostWait); r != nil && len(told)+len(work) == 0 && !d.annotated((*compare.Change).Tested) { // the host waits as long as its device works
		work = append(work, r)
	}
	slices.SortStableFunc(work, func(a, b *Row) int { return cmp.Compare(distribution.Abs(b.Effect()), distribution.Abs(a.Effect())) })
	told = append(told, work...)
	if told == nil { // other metrics
		if r := d.changed(func(r *Row) bool { return r.Kind == Request }); r != nil {
			told = append(told, r)
		}
	}
	return told
}

// changed returns the first row that is meant, and changed.
func (d *Diff) changed(is func(*Row) bool) *Row {
	for i := range d.Rows {
		if r := &d.Rows[i]; is(r) && r.Changed() {
			return r
		}
	}
	return nil
}

// cause returns the row of a kind that says most about why totals moved: of what profilers
// recorded, the one that moved the total most. Stages lie in each
// other: of those that moved at least half as much as the one that moved most, the cause is
// the one that grew by the largest factor, since what is around it has other parts that did
// not.
func (d *Diff) cause(kind Kind) *Row {
	most := d.causeOf(func(r *Row) bool { return r.Kind == kind })
	if most == nil || kind.profiled() {
		return most
	}
	best := most
	for i := range d.Rows {
		r := &d.Rows[i]
		if r.Kind == kind && r.Changed() && 2*distribution.Abs(r.Effect()) >= distribution.Abs(most.Effect()) && r.size() > best.size() {
			best = r
		}
	}
	return best
}

// causeOf returns the row that moved totals most, of those that are meant and that matter.
func (d *Diff) causeOf(is func(*Row) bool) *Row {
	return d.changed(func(r *Row) bool { return is(r) && d.weight(r) >= minWeight })
}

// late returns the row of how late ranks come to collectives, if they come later: of one rank if no other comes half as much later, else
// of all.
func (d *Diff) late() *Row {
	all := d.causeOf(func(r *Row) bool { return r.Kind == Collective && r.Name == lateness && r.Moved() > 0 })
	if all == nil || d.byRank {
		return all
	}
	ranks := d.locate.ranks(all)
	slices.SortStableFunc(ranks, func(a, b Row) int { return cmp.Compare(b.Moved(), a.Moved()) })
	if len(ranks) < 2 || 2*ranks[1].Moved() > ranks[0].Moved() || !(ranks[0].Total.Change.P <= compare.Alpha/float64(len(ranks))) {
		return all
	}
	most := &ranks[0]
	most.Total.Sure = all.Total.Sure
	return most
}

// waits reports whether the row is of what takes as long as the last rank lets the others wait: which is late, is the cause.
func (r *Row) waits() bool {
	return r.Kind == Collective || r.Kind == Kernel && kernelname.MeetsOthers(r.Name)
}

// size returns how large the change of the number is that tells most; 0 of what only one
// capture has.
func (r *Row) size() float64 {
	if r.only() {
		return 0
	}
	_, c, _, _ := r.telling()
	return c.Size()
}
