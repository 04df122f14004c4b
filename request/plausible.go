package request

import (
	"fmt"
	"time"

	"github.com/sgtrace/sgtrace/trace"
)

// longest is how long a span can take. One flipped bit, or an end that was never set,
// makes years of microseconds.
const longest = int64(30 * 24 * time.Hour)

// Implausible tells whether the times of span i cannot be right: it ends before it
// starts, or more than a month later. How long it took is unknown then. A host whose
// clock is years off has spans that are right by themselves.
func (s *Set) Implausible(i int) bool {
	d := s.Dump.Span(i).Dur()
	return d < 0 || d > longest
}

// ReportTimes reports the spans whose durations are in no report, as their times cannot
// be right. A timeline says itself what it makes of them.
func (s *Set) ReportTimes() {
	for i := range s.Dump.Len() {
		if s.kinds[i] == Duplicate || s.kinds[i] == Unselected || !s.Implausible(i) {
			continue
		}
		d := s.Dump.Span(i).Dur()
		msg := fmt.Sprintf("span %q lasts %d days; its times cannot be right, and its duration is left out", s.Name(i), d/int64(24*time.Hour))
		if d < 0 {
			msg = fmt.Sprintf("span %q ends %s before it starts; its duration is left out", s.Name(i), trace.FormatDuration(-d))
		}
		s.Dump.Diags.Add(trace.Diag{Severity: trace.DataLoss, Code: "time-impossible", Pos: s.Dump.Pos(i), Msg: msg})
	}
}
