package gpu

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/trace"
)

// recordings are the times in which a rank was recorded: one for each input, until union
// brings them in order. A profiler that was started twice, or once for each stage, leaves
// several, and nobody knows what happened between them.
type recordings []recordedSpan

// A recordedSpan is from the first row of a recording to the end of the last.
type recordedSpan struct{ from, to trace.Time }

// widen extends the only recording.
func (r *recordings) widen(from, to trace.Time) {
	if len(*r) == 0 {
		*r = append(*r, recordedSpan{from, to})
		return
	}
	span := &(*r)[0]
	span.from, span.to = min(span.from, from), max(span.to, to)
}

// union returns the recordings in order, those that overlap or touch as one.
func (r recordings) union() recordings {
	slices.SortFunc(r, func(a, b recordedSpan) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	out := r[:0]
	for _, span := range r {
		if last := len(out) - 1; last >= 0 && span.from <= out[last].to {
			out[last].to = max(out[last].to, span.to)
			continue
		}
		out = append(out, span)
	}
	return out
}

// length returns how long all of them lasted, in ns.
func (r recordings) length() int64 {
	total := int64(0)
	for _, span := range r {
		total = distribution.AddTimes(total, distribution.Between(span.from, span.to))
	}
	return total
}

// end reports whether a recording ends in [from, to], and the next one begins there.
func (r recordings) end(from, to trace.Time) bool {
	i, _ := slices.BinarySearchFunc(r, from, func(span recordedSpan, at trace.Time) int { return cmp.Compare(span.to, at) })
	return i+1 < len(r) && r[i+1].from <= to
}
