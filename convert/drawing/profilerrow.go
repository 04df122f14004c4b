package drawing

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/profile"
)

// profilerRow is the row of all that a profiler tells about itself, and profilerRows is
// what PyTorch's profiler calls the rows that it has for that: each has a slice or two.
const profilerRow = "profiler"

var profilerRows = []string{"PyTorch Profiler", "Trace PyTorch Profiler", "Trace", profilerRow}

// asProfilerRow returns a line as one of the row of the profiler, if it tells about that;
// any other as it is.
func asProfilerRow(l *inputs.Line) *inputs.Line {
	name := cmp.Or(strings.TrimSpace(l.Row.Name), l.Row.TIDText, l.Row.PIDText)
	if l.Key.Kind != profile.RowOther || !slices.Contains(profilerRows, name) {
		return l
	}
	own := *l
	own.Key = inputs.LineKey{Part: l.Key.Part, Kind: profile.RowOther, TID: profilerRow}
	own.Row.Name = profilerRow
	return &own
}

// joinLines returns one line with the events of two of a file, in lanes in which they nest.
func joinLines(f *inputs.Recording, a, b *inputs.Line) *inputs.Line {
	var events []uint32
	for _, l := range [...]*inputs.Line{a, b} {
		for _, lane := range l.Lanes {
			events = append(events, lane...)
		}
	}
	slices.SortStableFunc(events, func(x, y uint32) int {
		p, q := &f.Events[x], &f.Events[y]
		return cmp.Or(cmp.Compare(p.Time, q.Time), cmp.Compare(q.Dur, p.Dur))
	})
	joined := *a
	joined.Lanes = inputs.SplitLanes(f.Events, events, f.Tolerance)
	joined.Instants = slices.Concat(a.Instants, b.Instants)
	joined.Samples = slices.Concat(a.Samples, b.Samples)
	return &joined
}
