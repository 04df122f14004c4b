package convert

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// reach is how far from the median start a span may be to be drawn. Further off
// is a broken clock or an unset time; a timeline of decades would show nothing,
// and Chrome JSON, whose times are doubles, could not tell microseconds apart.
const reach = trace.Time(30 * 24 * time.Hour)

// An extent is the time that a timeline covers.
type extent struct{ from, to trace.Time }

func (e extent) has(t trace.Time) bool { return t >= e.from && t <= e.to }

// leaveOutStrays leaves out spans that are out of reach of all others, and
// returns what that reach is.
func leaveOutStrays(set *request.Set) extent {
	const samples = 1001
	n := set.Len()
	var starts []trace.Time
	for k := range min(n, samples) {
		starts = append(starts, set.Row(k*n/min(n, samples)).Start)
	}
	slices.Sort(starts)
	median := starts[len(starts)/2]
	e := extent{max(0, median-min(median, reach)), median + min(reach, math.MaxInt64-median)}
	if count, first := set.LeaveOut(e.from, e.to); count > 0 {
		set.Diags.Add(trace.Diag{Severity: trace.DataLoss, Code: "time-out-of-reach", Pos: set.Pos(first), Count: count,
			Msg: fmt.Sprintf("span %q is more than 30 days off all others; left out of the timeline, not of reports", set.Name(first))})
	}
	return e
}
