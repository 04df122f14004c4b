package inputs

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A TrackRow is one row of a file on the timeline: a thread, a stream, or all async events of one name.
type TrackRow struct {
	Key      TrackKey
	Row      profile.Row // the first of the rows that the line combines
	Lanes    [][]uint32  // for each lane, indexes into File.Events, by time, longest first
	Instants []int32     // indexes into File.Instants, by time
	Samples  []int32     // indexes into File.Samples, by time
}

// TrackKey identifies a line of a rank across all of its captures.
type TrackKey struct {
	Kind     profile.RowKind
	Part     string
	PID, TID string
	name     string // of async events and counters, whose ids mean nothing to people
}

func keyOf(r *profile.Row) TrackKey {
	k := TrackKey{Kind: r.Kind, Part: r.Part, PID: r.PIDText, TID: r.TIDText}
	if r.Kind == profile.RowAsync || r.Kind == profile.RowCounter {
		k.TID, k.name = "", r.Name
	}
	return k
}

// sortTracks returns the lines of f, and the line of each row. The table of events stays in file order:
// moving the events would take longer than drawing them.
func sortTracks(f *profile.Profile, tolerance trace.Time) (lines []TrackRow, lineOf []int32) {
	lineOf = make([]int32, len(f.Rows))
	index := map[TrackKey]int32{}
	for r := range f.Rows {
		key := keyOf(&f.Rows[r])
		l := order.At(index, &lines, key, func() TrackRow { return TrackRow{Key: key, Row: f.Rows[r]} })
		lineOf[r] = l
	}
	sortEvents(f, lines, lineOf, tolerance)
	for i := range f.Instants {
		l := &lines[lineOf[f.Instants[i].Row]]
		l.Instants = append(l.Instants, int32(i))
	}
	for i := range f.Samples {
		l := &lines[lineOf[f.Samples[i].Row]]
		l.Samples = append(l.Samples, int32(i))
	}
	for i := range lines {
		l := &lines[i]
		slices.SortStableFunc(l.Instants, func(a, b int32) int { return cmp.Compare(f.Instants[a].Time, f.Instants[b].Time) })
		slices.SortStableFunc(l.Samples, func(a, b int32) int { return cmp.Compare(f.Samples[a].Time, f.Samples[b].Time) })
	}
	return lines, lineOf
}

// sortEvents fills the lanes of lines.
func sortEvents(f *profile.Profile, lines []TrackRow, lineOf []int32, tolerance trace.Time) {
	at := make([]int, len(lines)+1)
	for i := range f.Events {
		at[lineOf[f.Events[i].Place.Row()]+1]++
	}
	for l := range lines {
		at[l+1] += at[l]
	}
	by, next := memory.Make[uint32](len(f.Events)), slices.Clone(at)
	for i := range f.Events {
		l := lineOf[f.Events[i].Place.Row()]
		by[next[l]] = uint32(i)
		next[l]++
	}
	longest := 0
	for l := range lines {
		longest = max(longest, at[l+1]-at[l])
	}
	s := sorter{memory.Make[uint64](longest), memory.Make[uint64](longest)}
	for l := range lines {
		own := by[at[l]:at[l+1]]
		s.byTime(f.Events, own)
		lines[l].Lanes = SplitLanes(f.Events, own, tolerance)
	}
}

// sorter sorts events. Its buffers have room for the longest line.
type sorter struct{ keys, scratch []uint64 }

// byTime sorts the events listed in by: by time, then longest first, then in original order.
func (s *sorter) byTime(events []profile.Slice, by []uint32) {
	if len(by) == 0 {
		return
	}
	low, high := events[by[0]].Time, events[by[0]].Time
	for _, i := range by {
		low, high = min(low, events[i].Time), max(high, events[i].Time)
	}
	// A key is a time and a position in by. Only the longest captures, of hours, have no room for both.
	places := bits.Len(uint(len(by) - 1))
	if bits.Len64(uint64(high-low))+places > 64 {
		slices.SortStableFunc(by, func(a, b uint32) int { return CompareSlices(&events[a], &events[b]) })
		return
	}
	s.keys = s.keys[:0]
	for place, i := range by {
		s.keys = append(s.keys, uint64(events[i].Time-low)<<places|uint64(place))
	}
	s.keys, s.scratch = order.Integers(s.keys, s.scratch, places)
	old := s.scratch[:len(by)] // free until the next line
	for n, i := range by {
		old[n] = uint64(i)
	}
	for n, key := range s.keys {
		by[n] = uint32(old[key&(1<<places-1)])
	}
	longestFirst(events, by)
}

// longestFirst sorts events of equal time by duration, longest first, so that they nest.
func longestFirst(events []profile.Slice, by []uint32) {
	for from := 0; from < len(by); {
		to := from + 1
		for to < len(by) && events[by[to]].Time == events[by[from]].Time {
			to++
		}
		if to-from > 1 {
			slices.SortStableFunc(by[from:to], func(a, b uint32) int { return cmp.Compare(events[b].Dur, events[a].Dur) })
		}
		from = to
	}
}

// toleranceOf returns how far, in ns, an event may extend beyond its parent and still be drawn inside it,
// cut to fit. A gpu_user_annotation extends 1 ns around its kernels; up to PyTorch 2.3, times are whole
// microseconds, with start and duration rounded separately.
func toleranceOf(f *profile.Profile) trace.Time {
	const nanoseconds, microseconds = 2, 1000
	for i := range f.Events {
		if f.Events[i].Time%microseconds != 0 {
			return nanoseconds
		}
	}
	return microseconds
}

// SplitLanes divides events, which by lists in order of time, into lanes in which they nest, and reorders
// by so that those of each lane are contiguous. Kernels of one stream may overlap (programmatic dependent
// launch), and async events always may.
func SplitLanes(events []profile.Slice, by []uint32, tolerance trace.Time) [][]uint32 {
	if len(by) == 0 {
		return nil
	}
	var open [][]trace.Time // by lane: the ends of current events, innermost last
	var laneOf []uint16
	var counts []int
	for n, i := range by {
		e := &events[i]
		k := 0
		for k < len(open) && k < MaxLanes-1 && !fits(&open[k], e, tolerance) {
			k++
		}
		if k == len(open) {
			open, counts = append(open, nil), append(counts, 0)
		}
		open[k] = append(open[k], e.End())
		counts[k]++
		if k > 0 && len(laneOf) == 0 {
			laneOf = make([]uint16, len(by)) // earlier events are on lane 0
		}
		if len(laneOf) > 0 {
			laneOf[n] = uint16(k)
		}
	}
	if len(counts) == 1 {
		return [][]uint32{by}
	}
	lanes := make([][]uint32, len(counts))
	old, rest := slices.Clone(by), by
	for k, n := range counts {
		lanes[k], rest = rest[:0:n], rest[n:]
	}
	for n, i := range old {
		k := laneOf[n]
		lanes[k] = append(lanes[k], i)
	}
	return lanes
}

// MaxLanes is the maximum number of lanes of a line; the Builder cuts what does not fit.
const MaxLanes = 1 << 12

// fits reports whether e can be drawn on a lane, and pops the events that end before it. It must lie inside
// the current events, except that it may extend beyond their end by the tolerance, and may follow an event
// that ends within the tolerance after its start.
func fits(open *[]trace.Time, e *profile.Slice, tolerance trace.Time) bool {
	stack := *open
	for len(stack) > 0 && stack[len(stack)-1] <= e.Time {
		stack = stack[:len(stack)-1]
	}
	*open = stack
	for i := len(stack) - 1; i >= 0; i-- {
		if e.End() <= stack[i]+tolerance {
			return true
		}
		if stack[i] > e.Time+tolerance {
			return false
		}
	}
	return true
}

// CompareSlices compares by time, then longest first.
func CompareSlices(a, b *profile.Slice) int {
	return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(b.Dur, a.Dur))
}

func (l *TrackRow) Empty() bool {
	return len(l.Lanes) == 0 && len(l.Instants) == 0 && len(l.Samples) == 0
}
