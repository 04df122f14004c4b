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

// A TrackRow is one row of the timeline as one file has it: a thread, a stream, all
// async events of one name.
type TrackRow struct {
	Key      TrackKey
	Row      profile.Row // the first of those that the line is made of
	Lanes    [][]uint32  // indexes into File.Events of each lane, by time, longest first
	Instants []int32     // indexes into File.Instants, by time
	Samples  []int32     // indexes into File.Samples, by time
}

// TrackKey tells lines of a rank apart, over all of its captures.
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

// sortTracks returns the lines of f, and the line of each row. The table of events
// stays in the order of the file: moving it would take longer than drawing it.
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

// sorter orders events. It has room for the longest line.
type sorter struct{ keys, scratch []uint64 }

// byTime orders the events that by lists by time, then longest first, then as they
// were.
func (s *sorter) byTime(events []profile.Slice, by []uint32) {
	if len(by) == 0 {
		return
	}
	low, high := events[by[0]].Time, events[by[0]].Time
	for _, i := range by {
		low, high = min(low, events[i].Time), max(high, events[i].Time)
	}
	// A key is a time and a place in by. Only the longest captures, of hours, leave
	// no room for both.
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

// longestFirst orders events of equal time, which nest in each other then.
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

// toleranceOf returns by how much an event may reach over the one around it and
// still be drawn inside, cut to fit. A gpu_user_annotation lies 1 ns around its
// kernels; up to PyTorch 2.3, times are whole microseconds, start and duration
// each rounded for itself.
func toleranceOf(f *profile.Profile) trace.Time {
	const nanoseconds, microseconds = 2, 1000
	for i := range f.Events {
		if f.Events[i].Time%microseconds != 0 {
			return nanoseconds
		}
	}
	return microseconds
}

// SplitLanes divides events, which by lists in order of time, into lanes in which
// they nest, and reorders by so that each lane's lie together. Kernels of one
// stream do overlap (programmatic dependent launch), async events as they like.
func SplitLanes(events []profile.Slice, by []uint32, tolerance trace.Time) [][]uint32 {
	if len(by) == 0 {
		return nil
	}
	var open [][]trace.Time // by lane: the ends of what is under way, innermost last
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
			laneOf = make([]uint16, len(by)) // of those before, 0
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

// MaxLanes bounds the rows of one line; what does not fit is cut by the Builder.
const MaxLanes = 1 << 12

// fits reports whether e can be drawn on a lane, and closes what ends before it. It
// must lie inside of what is under way, but for the tolerance at its end, and for
// what is over within the tolerance of its start.
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

// CompareSlices orders by time, then longest first.
func CompareSlices(a, b *profile.Slice) int {
	return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(b.Dur, a.Dur))
}

func (l *TrackRow) Empty() bool {
	return len(l.Lanes) == 0 && len(l.Instants) == 0 && len(l.Samples) == 0
}
