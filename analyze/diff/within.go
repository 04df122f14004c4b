package diff

import (
	"fmt"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/trace"
)

// A Within is a change within a capture, beyond doubt. What came before and what came after are two things, so that the
// capture as a whole is a mixture, whose pieces scatter too much for a comparison to tell anything.
type Within struct {
	Text              string
	First, Time, Last trace.Time // bounds of 95 %
	P                 float64
}

// changesWithin returns what changed within what is compared of a capture, in order of time.
func changesWithin(c *Capture) (list []Within) {
	changes := change.Find(place.Of(c.Requests))
	for i := range changes.List {
		x := &changes.List[i]
		sure := finding.Chance(x.P).Confidence(finding.Likely)
		if sure == finding.Certain && x.First > c.From && (c.To == 0 || x.Last < c.To) {
			list = append(list, Within{x.Sentence(), x.First, x.Time, x.Last, x.P})
		}
	}
	slices.SortStableFunc(list, func(a, b Within) int { return int(a.Time - b.Time) })
	return list
}

// maxWithin is how many changes within a capture the verdict tells of.
const maxWithin = 2

// within tells of the changes within both captures.
func (d *Diff) within() (says []string) {
	for i, side := range [...]*Side{&d.Before, &d.After} {
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
// BEFORE, and what came after the last one of AFTER.
func (d *Diff) mixtures() (notes []string) {
	const second = trace.Time(time.Second)
	if n := len(d.Before.Within); n > 0 {
		notes = append(notes, fmt.Sprintf("BEFORE is a mixture, since it changed: compare what was before that with --before-to %s", words.At(d.Before.Within[0].First/second*second, time.TimeOnly)))
	}
	if n := len(d.After.Within); n > 0 {
		notes = append(notes, fmt.Sprintf("AFTER is a mixture, since it changed: compare what came then with --after-from %s", words.At((d.After.Within[n-1].Last+second-1)/second*second, time.TimeOnly)))
	}
	return notes
}
