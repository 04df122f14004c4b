package diff

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// toldRows returns the rows that the verdict reports.
func (d *Diff) toldRows() []*Row {
	return slices.DeleteFunc(d.main(), func(r *Row) bool { return slices.Contains(d.muted, r) })
}

// main returns the rows that matter most: what users notice, and, of each kind, the row that best explains it.
func (d *Diff) main() []*Row {
	var told []*Row
	for _, m := range metric.At(metric.Noticed) {
		if r := d.changed(func(r *Row) bool { return r.Kind == Request && r.metricOf() == m }); r != nil {
			told = append(told, r)
		}
	}
	if r := d.causeOf(func(r *Row) bool { return r.metricOf() == metric.Outside }); r != nil {
		told = append(told, r)
	}
	late := d.late()
	if late != nil {
		told = append(told, late)
	}
	for _, kind := range []Kind{Stage, Step, GPU} {
		if kind == Step && d.annotated((*compare.Change).Tested) {
			continue // how often each kind of step ran is the load
		}
		r := d.cause(kind)
		if r == nil && kind == Stage {
			r = d.beforeFirst()
		}
		if r != nil {
			told = append(told, r)
		}
	}
	var work []*Row
	for _, kind := range []Kind{Kernel, Copy, Collective} {
		r := d.causeOf(func(r *Row) bool {
			return r.Kind == kind && !(late != nil && r.waits()) && !(len(d.slowed) > 0 && r.computes()) && !d.replaced(r)
		})
		if kind == Kernel && d.alike != "" { // other kernels wait longer or shorter for those that compute
			r = cmp.Or(d.causeOf(func(r *Row) bool { return r.computes() && !d.replaced(r) }), r)
		}
		if r != nil {
			work = append(work, r)
		}
	}
	if r := d.cause(HostWait); r != nil && len(told)+len(work) == 0 && !d.annotated((*compare.Change).Tested) { // hosts wait as long as their devices work
		work = append(work, r)
	}
	slices.SortStableFunc(work, func(a, b *Row) int { return cmp.Compare(distribution.Abs(b.Effect()), distribution.Abs(a.Effect())) })
	told = append(told, work...)
	if told == nil { // no noticed metric changed: take any other
		if r := d.changed(func(r *Row) bool { return r.Kind == Request }); r != nil {
			told = append(told, r)
		}
	}
	return told
}

// changed returns the first row that is of the asked kind and changed.
func (d *Diff) changed(is func(*Row) bool) *Row {
	for i := range d.Rows {
		if r := &d.Rows[i]; is(r) && r.Changed() {
			return r
		}
	}
	return nil
}

// cause returns the row of a kind that best explains why totals moved. Of what profilers recorded, that is the row that
// moved the total most. Stages contain each other: of those that moved at least half as much as the one that moved
// most, it is the one that grew by the largest factor, because the stages around it have other parts that did not grow.
func (d *Diff) cause(kind Kind) *Row {
	most := d.causeOf(func(r *Row) bool { return r.Kind == kind && !d.isRequest(r) })
	if most == nil || kind.profiled() {
		return most
	}
	best := most
	for i := range d.Rows {
		r := &d.Rows[i]
		if r.Kind == kind && r.Changed() && !d.isRequest(r) && 2*distribution.Abs(r.Effect()) >= distribution.Abs(most.Effect()) && r.size() > best.size() {
			best = r
		}
	}
	return best
}

// isRequest reports whether a stage is the span of a gateway that is the request, and explains nothing.
func (d *Diff) isRequest(r *Row) bool {
	sides := &d.locate.sides
	return r.Kind == Stage && (sides[0].outermost[r.Name] || sides[1].outermost[r.Name])
}

// beforeFirst returns the stage that makes up at least half of how much the time to the first token changed; it may be a small
// part of a request.
func (d *Diff) beforeFirst() *Row {
	first := d.Row(Request, metric.TTFT.Name)
	if first == nil || !first.Changed() {
		return nil
	}
	return d.changed(func(r *Row) bool {
		return r.Kind == Stage && !d.isRequest(r) && (r.Effect() > 0) == (first.Effect() > 0) && 2*distribution.Abs(r.Effect()) >= distribution.Abs(first.Effect())
	})
}

// causeOf returns the row that moved totals most, of those that are of the asked kind and large enough to matter.
func (d *Diff) causeOf(is func(*Row) bool) *Row {
	return d.changed(func(r *Row) bool { return is(r) && d.weight(r) >= minWeight })
}

// late returns the row for how late ranks come to collectives, if they come later than before:
// the row of one rank if no other is later by half as much, or else that of all.
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

// waits reports whether the row's durations depend on how long the last rank lets the others wait; then the late rank is the cause.
func (r *Row) waits() bool {
	return r.Kind == Collective || r.Kind == Kernel && kernelname.MeetsOthers(r.Name)
}

// size returns the size of the most telling change of the row; 0 if only one capture has the row.
func (r *Row) size() float64 {
	if r.only() {
		return 0
	}
	return r.telling().change(r).Size()
}
