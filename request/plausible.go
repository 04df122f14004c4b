package request

import (
	"fmt"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/trace"
)

// longest is how long a row can take. One flipped bit, or an end that was never set,
// makes years of microseconds.
const longest = int64(30 * 24 * time.Hour)

// Implausible reports whether the times of row i cannot be right: it ends before it
// starts, or more than a month later. How long it took is unknown then. A host whose
// clock is years off has rows that are right by themselves.
func (s *Set) Implausible(i int) bool {
	d := s.Rows[i].Dur()
	return d < 0 || d > longest
}

// Again reports whether row i is a stage that a retraction began anew, of which the start
// is that of the first time: how long it took is unknown.
func (s *Set) Again(i int) bool { return s.Rows[i].Means == Reconnecting }

// ReportTimes reports the rows whose durations are in no report, as their times cannot
// be right. A timeline says itself what it makes of them.
func (s *Set) ReportTimes() {
	parallel.Rows(len(s.Rows), RowSize, func(from, to int) {
		for i := from; i < to; i++ {
			if s.Rows[i].Kind == Duplicate || s.Rows[i].Kind == Unselected || !s.Implausible(i) {
				continue
			}
			d := s.Rows[i].Dur()
			what := fmt.Sprintf("lasts %d days", d/int64(24*time.Hour))
			if d < 0 {
				what = fmt.Sprintf("ends %s before it starts", trace.FormatDuration(-d))
			}
			s.Diags.Add(trace.TimeImpossible.At(s.Pos(i), s.Name(i), what))
		}
	})
}

const (
	// LongestRequest is the longest time in ns that is believed of a request, a day: sums
	// of forged ones would wrap around.
	LongestRequest = 86_400_000_000_000
	// Farthest is how far from 1970 times are believed, in ns: 126 years.
	Farthest = 4_000_000_000_000_000_000
)

// Plausible reports whether times can be computed with; forged ones would wrap
// around.
func Plausible(times ...trace.Time) bool {
	return !slices.ContainsFunc(times, func(t trace.Time) bool { return t < -Farthest || t > Farthest })
}
