package diff

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Within is a change within a capture, beyond doubt. What came before and what came after are two things, so that the
// capture as a whole is a mixture, whose pieces scatter too much for a comparison to tell anything.
type Within struct {
	Text              string
	First, Time, Last trace.Time // bounds of 95 %
	P                 float64
	what              whatChanged
	cause             bool // load, or pace: what takes longer under a load that comes and goes is none
	stays             bool // a pace that is another one from then on, by enough to matter
}

// whatChanged tells whether the same changed within two captures.
type whatChanged struct {
	place  string
	metric change.Metric
	stage  string
	back   bool
}

// changesWithin returns what changed within a capture, in order of time. Where it is known what steps of servers take, a queue
// that fills up and empties by itself is no change: it is what the capture is like all the time.
func changesWithin(s *request.Set, paced bool) (list []Within) {
	changes := change.Find(place.Of(s))
	for i := range changes.List {
		x := &changes.List[i]
		if finding.Chance(x.P).Confidence(finding.Likely) == finding.Certain && !(paced && x.IsQueue()) {
			first := &x.Shifts[0]
			list = append(list, Within{x.Sentence(), x.First, x.Time, x.Last, x.P, whatChanged{first.Name, first.Metric, first.Stage, first.Back}, x.IsCause(), stays(first)})
		}
	}
	slices.SortStableFunc(list, func(a, b Within) int { return cmp.Compare(a.Time, b.Time) })
	return list
}

// Parts of the time of a request that a mixture must have moved: by a cause, or by what may be its effect.
const (
	movedByCause = 0.1
	movedAtAll   = 0.2
)

// stays reports whether a pace is another one to the end, by enough to matter: no spell, and no warm-up.
func stays(f *change.Shift) bool {
	if f.Metric != change.PaceChanged || f.Until != 0 || f.Shape == changepoint.Settling {
		return false
	}
	c := compare.Change{Change: significance.Change{Ratio: float64(f.After.P50) / float64(f.Before.P50)}}
	return c.Size() >= math.Log1p(compare.MinChange)
}

// keepWithin leaves out what changed within both captures, as that makes them no different, and all but the pace of servers if requests
// take about as long in both: there is nothing that it hides.
func (d *Diff) keepWithin() {
	moved := 0.0
	for i := range d.Rows {
		if r := &d.Rows[i]; r.noticed() && r.Rank == "" {
			moved = max(moved, d.part(r, r.Moved()))
		}
	}
	keep := func(list, other []Within) []Within {
		return slices.DeleteFunc(slices.Clone(list), func(x Within) bool {
			common := slices.ContainsFunc(other, func(y Within) bool { return y.what == x.what })
			return common || !(moved >= movedAtAll || x.cause && moved >= movedByCause || x.stays)
		})
	}
	d.Before.Within, d.After.Within = keep(d.Before.Within, d.After.Within), keep(d.After.Within, d.Before.Within)
}

// sides returns both captures.
func (d *Diff) sides() [2]*Side { return [...]*Side{&d.Before, &d.After} }

// maxWithin is how many changes within a capture the verdict tells of.
const maxWithin = 2

// within tells of the changes within both captures.
func (d *Diff) within() (says []string) {
	for i, side := range d.sides() {
		told := min(maxWithin, len(side.Within))
		for _, x := range side.Within[:told] {
			says = append(says, fmt.Sprintf("%s (%s)", x.words(i), finding.Certain))
		}
		if more := len(side.Within) - told; more > 0 {
			says = append(says, fmt.Sprintf("%s during %s", words.Counted(more, "more change"), sideWords[i]))
		}
	}
	return says
}

// words tells of a change within BEFORE, 0, or AFTER, 1.
func (x *Within) words(side int) string { return "during " + sideWords[side] + ", " + x.Text }

func (x *Within) finding(side int) finding.Finding {
	return finding.Finding{Kind: finding.Change, Subkind: "during " + sideWords[side], Severity: finding.Info, Confidence: finding.Certain, Text: x.words(side),
		Since: x.Time, Within: max(x.Time-x.First, x.Last-x.Time), P: finding.Chance(x.P), CostBasis: finding.RequestTime}
}

// sideWords are what the command calls the captures.
var sideWords = [...]string{"BEFORE", "AFTER"}

// mixtures say of captures that changed how to compare a part of them that did not: what was before the first change of
// BEFORE, and what came between the first one of AFTER and the next.
func (d *Diff) mixtures() (notes []string) {
	const second = trace.Time(time.Second)
	clock := func(t trace.Time) string { return words.At(t/second*second, time.TimeOnly) }
	if list := d.Before.Within; len(list) > 0 {
		notes = append(notes, "BEFORE is a mixture, since it changed: compare what was before that with --before-to "+clock(list[0].First))
	}
	if list := d.After.Within; len(list) > 0 {
		last, note := list[0].Last, "AFTER is a mixture, since it changed: compare what came then with --after-from "
		until := ""
		for _, x := range list[1:] {
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
