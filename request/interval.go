package request

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/trace"
)

// An Interval is half-open.
type Interval struct{ From, To trace.Time }

// Cut returns the part of [from, to) that lies in iv. The zero interval is all time.
func (iv Interval) Cut(from, to trace.Time) Interval {
	if iv == (Interval{}) {
		return Interval{from, to}
	}
	from = max(from, iv.From)
	return Interval{from, max(from, min(to, iv.To))}
}

// Has reports whether [from, to] lies in iv.
func (iv Interval) Has(from, to trace.Time) bool {
	return iv == (Interval{}) || from >= iv.From && to <= iv.To
}

// Union returns the union of intervals, in order: those that overlap or touch become one. It reorders its argument.
func Union(list []Interval) (out []Interval) {
	slices.SortFunc(list, func(x, y Interval) int { return cmp.Compare(x.From, y.From) })
	for _, iv := range list {
		if n := len(out); n > 0 && iv.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, iv.To)
		} else {
			out = append(out, iv)
		}
	}
	return out
}

// A Coverage is a set of instants: sorted, disjoint intervals, each with the total length of those before
// it.
type Coverage struct {
	from, to []trace.Time
	before   []int64
}

// NewCoverage returns the union of intervals; it reorders them.
func NewCoverage(list []Interval) Coverage {
	var c Coverage
	sum := int64(0)
	for _, iv := range Union(list) {
		c.from, c.to, c.before = append(c.from, iv.From), append(c.to, iv.To), append(c.before, sum)
		sum += int64(iv.To - iv.From)
	}
	return c
}

// until returns how much is covered before t, in ns.
func (c *Coverage) until(t trace.Time) int64 {
	i, _ := slices.BinarySearch(c.from, t) // intervals before i begin before t
	if i == 0 {
		return 0
	}
	return c.before[i-1] + int64(min(t, c.to[i-1])-c.from[i-1])
}

// Overlap returns how much of [from, to) is covered, in ns.
func (c *Coverage) Overlap(from, to trace.Time) int64 {
	if to <= from || len(c.from) == 0 {
		return 0
	}
	return c.until(to) - c.until(from)
}

// Total returns how much is covered, in ns.
func (c *Coverage) Total() int64 {
	if len(c.to) == 0 {
		return 0
	}
	return c.until(c.to[len(c.to)-1])
}

// longest is the longest plausible duration of a row, in ns. One flipped bit, or an end that was never set,
// turns microseconds into years.
const longest = int64(30 * 24 * time.Hour)

// Implausible reports whether the times of row i cannot be right: it ends before it starts, or more than a
// month later. Its duration is then unknown. Rows of a host whose clock is years off are plausible by
// themselves.
func (s *Set) Implausible(i int) bool {
	d := s.Rows[i].Dur()
	return d < 0 || d > longest
}

// Again reports whether row i is a stage that was repeated after a retraction but still has the start of
// the first time, so its duration is unknown.
func (s *Set) Again(i int) bool { return s.Rows[i].Means == Reconnecting }

// ReportTimes reports rows with implausible times, whose durations no report uses. A timeline reports
// itself what it makes of them.
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
	// LongestRequest is the longest plausible duration of a request in ns, a day: sums of forged durations
	// would overflow.
	LongestRequest = 86_400_000_000_000
	// Farthest is how far from 1970 plausible times can be, in ns: 126 years.
	Farthest = 4_000_000_000_000_000_000
)

// Plausible reports whether times are safe for arithmetic; forged ones would overflow.
func Plausible(times ...trace.Time) bool {
	return !slices.ContainsFunc(times, func(t trace.Time) bool { return t < -Farthest || t > Farthest })
}
