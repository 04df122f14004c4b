package diff

import (
	"fmt"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// The parts of request time that must have moved for a change within a capture to be reported:
// if it is a cause, and if it may be a mere effect.
const (
	movedByCause = 0.1
	movedAtAll   = 0.2
)

// keepWithin drops changes that both captures have, as these don't make them different. If requests take about as long in both, it also
// drops everything but paces that last and the like: there is nothing to explain.
func (d *Diff) keepWithin() {
	moved := 0.0
	for i := range d.Rows {
		if r := &d.Rows[i]; r.noticed() && r.Rank == "" {
			moved = max(moved, d.part(r, r.Moved()))
		}
	}
	keep := func(list, other []Within) []Within {
		return slices.DeleteFunc(slices.Clone(list), func(x Within) bool {
			common := slices.ContainsFunc(other, func(y Within) bool { return y.What == x.What })
			return common || !(moved >= movedAtAll || x.Cause && moved >= movedByCause || x.Stays)
		})
	}
	d.Before.Within, d.After.Within = keep(d.Before.Within, d.After.Within), keep(d.After.Within, d.Before.Within)
}

// sides returns both sides.
func (d *Diff) sides() [2]*Side { return [...]*Side{&d.Before, &d.After} }

// maxWithin limits how many changes within a capture the verdict reports.
const maxWithin = 2

// within reports the changes within both captures.
func (d *Diff) within() (says []string) {
	for i, side := range d.sides() {
		told := min(maxWithin, len(side.Within))
		for _, x := range side.Within[:told] {
			says = append(says, fmt.Sprintf("%s (%s)", x.Words(sideWords[i]), x.Confidence))
		}
		if more := len(side.Within) - told; more > 0 {
			says = append(says, fmt.Sprintf("%s during %s", words.Counted(more, "more change"), sideWords[i]))
		}
	}
	return says
}

// sideWords are the command's words for the captures.
var sideWords = [...]string{"BEFORE", "AFTER"}

// mixtures returns notes on how to compare only the steady parts of captures that changed: the time before the first
// change of BEFORE, and the time between the first change of AFTER and the next.
func (d *Diff) mixtures() (notes []string) {
	const second, shortest = trace.Time(time.Second), trace.Time(10 * time.Second) // flags take times in seconds
	if min(d.Before.Last-d.Before.First, d.After.Last-d.After.First) < shortest {
		return nil
	}
	clock := func(t trace.Time) string { return words.At(t/second*second, time.TimeOnly) }
	changed := func(side *Side) []Within {
		return order.Only(side.Within, func(x Within) bool { return !x.Always })
	}
	if list := changed(&d.Before); len(list) > 0 {
		notes = append(notes, "BEFORE is a mixture, since it changed: compare what was before that with --before-to "+clock(list[0].First))
	}
	if list := changed(&d.After); len(list) > 0 {
		last, note := list[0].Last, "AFTER is a mixture, since it changed: compare what came then with --after-from "
		until := ""
		if over := list[0].Until; over > last+2*second {
			until = " --after-to " + clock(over)
		}
		for _, x := range list[1:] {
			if until != "" {
				break
			}
			if x.First > last+2*second {
				until = " --after-to " + clock(x.First)
				break
			}
			last = max(last, x.Last)
		}
		notes = append(notes, note+clock(last+second-1)+until)
	}
	return notes
}
