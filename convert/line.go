package convert

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A line is one row of the timeline as one file has it: a thread, a stream, all
// async events of one name. Its events lie together in the file's table, ordered
// by lane, then time, then longest first.
type line struct {
	key      lineKey
	row      chrometrace.Row // the first of those that the line is made of
	lanes    []span          // ranges of File.Events
	instants []int32         // indexes into File.Instants, by time
	samples  []int32         // indexes into File.Samples, by time
}

// span is a range of a table.
type span struct{ from, to int }

// lineKey tells lines of a rank apart, over all of its captures.
type lineKey struct {
	kind     chrometrace.RowKind
	part     string
	pid, tid string
	name     string // of async events and counters, whose ids mean nothing to people
}

func keyOf(r *chrometrace.Row) lineKey {
	k := lineKey{kind: r.Kind, part: r.Part, pid: r.PIDText, tid: r.TIDText}
	if r.Kind == chrometrace.RowAsync || r.Kind == chrometrace.RowCounter {
		k.tid, k.name = "", r.Name
	}
	return k
}

// sortLines brings the events of f in order, so that every line has its own, and
// lets the tables that refer to events follow. lineOf is the line of each row.
func sortLines(f *chrometrace.File) (lines []line, lineOf []int32) {
	lineOf = make([]int32, len(f.Rows))
	index := map[lineKey]int32{}
	for r := range f.Rows {
		key := keyOf(&f.Rows[r])
		l, ok := index[key]
		if !ok {
			l = int32(len(lines))
			index[key] = l
			lines = append(lines, line{key: key, row: f.Rows[r]})
		}
		lineOf[r] = l
	}
	sortEvents(f, lines, lineOf)
	for i := range f.Instants {
		l := &lines[lineOf[f.Instants[i].Track]]
		l.instants = append(l.instants, int32(i))
	}
	for i := range f.Samples {
		l := &lines[lineOf[f.Samples[i].Track]]
		l.samples = append(l.samples, int32(i))
	}
	for i := range lines {
		l := &lines[i]
		slices.SortStableFunc(l.instants, func(a, b int32) int { return cmp.Compare(f.Instants[a].Time, f.Instants[b].Time) })
		slices.SortStableFunc(l.samples, func(a, b int32) int { return cmp.Compare(f.Samples[a].Time, f.Samples[b].Time) })
	}
	return lines, lineOf
}

// sortEvents orders the table of events and fills the lanes of lines.
func sortEvents(f *chrometrace.File, lines []line, lineOf []int32) {
	at := make([]int, len(lines)+1)
	for i := range f.Events {
		at[lineOf[f.Events[i].Track]+1]++
	}
	for l := range lines {
		at[l+1] += at[l]
	}
	keys := make([]order.Key, len(f.Events))
	next := slices.Clone(at)
	for i := range f.Events {
		l := lineOf[f.Events[i].Track]
		keys[next[l]] = order.Key{Time: uint64(f.Events[i].Time) ^ 1<<63, Index: uint32(i)} // negative times first
		next[l]++
	}
	scratch := make([]order.Key, len(keys))
	by := make([]uint32, len(keys))
	tolerance := toleranceOf(f)
	for l := range lines {
		from, to := at[l], at[l+1]
		sorted, _ := order.ByTime(keys[from:to], scratch[from:to])
		longestFirst(f.Events, sorted)
		for i := range sorted {
			by[from+i] = sorted[i].Index
		}
		lines[l].lanes = splitLanes(f.Events, by[from:to], tolerance)
		for i := range lines[l].lanes {
			lines[l].lanes[i].from += from
			lines[l].lanes[i].to += from
		}
	}
	follow(f, by)
	order.Apply(f.Events, by)
}

// longestFirst orders keys of equal time, which nest in each other then.
func longestFirst(events []trace.Slice, keys []order.Key) {
	for from := 0; from < len(keys); {
		to := from + 1
		for to < len(keys) && keys[to].Time == keys[from].Time {
			to++
		}
		if to-from > 1 {
			slices.SortStableFunc(keys[from:to], func(a, b order.Key) int {
				return cmp.Compare(events[b.Index].Dur, events[a.Index].Dur)
			})
		}
		from = to
	}
}

// toleranceOf returns by how much an event may reach over the one around it and
// still be drawn inside, cut to fit. A gpu_user_annotation lies 1 ns around its
// kernels; up to PyTorch 2.3, times are whole microseconds, start and duration
// each rounded for itself.
func toleranceOf(f *chrometrace.File) trace.Time {
	const nanoseconds, microseconds = 2, 1000
	for i := range f.Events {
		if f.Events[i].Time%microseconds != 0 {
			return nanoseconds
		}
	}
	return microseconds
}

// splitLanes divides events, which by lists in order of time, into lanes in which
// they nest, and reorders by so that each lane's lie together. Kernels of one
// stream do overlap (programmatic dependent launch), async events as they like.
func splitLanes(events []trace.Slice, by []uint32, tolerance trace.Time) []span {
	if len(by) == 0 {
		return nil
	}
	var open [][]trace.Time // by lane: the ends of what is under way, innermost last
	laneOf := make([]uint16, 0)
	counts := []int{}
	for n, i := range by {
		e := &events[i]
		k := 0
		for k < len(open) && k < maxLanes-1 && !fits(&open[k], e, tolerance) {
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
	lanes := make([]span, len(counts))
	at := 0
	for k, n := range counts {
		lanes[k] = span{at, at + n}
		at += n
	}
	if len(lanes) > 1 {
		next, old := make([]int, len(lanes)), slices.Clone(by)
		for k := range lanes {
			next[k] = lanes[k].from
		}
		for n, i := range old {
			by[next[laneOf[n]]] = i
			next[laneOf[n]]++
		}
	}
	return lanes
}

// maxLanes bounds the rows of one line; what does not fit is cut by the Builder.
const maxLanes = 1 << 12

// fits tells whether e can be drawn on a lane, and closes what ends before it.
func fits(open *[]trace.Time, e *trace.Slice, tolerance trace.Time) bool {
	stack := *open
	for len(stack) > 0 && stack[len(stack)-1] <= e.Time {
		stack = stack[:len(stack)-1]
	}
	*open = stack
	if len(stack) == 0 {
		return true
	}
	top := stack[len(stack)-1]
	return e.End() <= top+tolerance || top <= e.Time+tolerance
}

// follow renames the events in the tables that refer to them: what was row by[i]
// is row i from now on.
func follow(f *chrometrace.File, by []uint32) {
	place := make([]int32, len(by))
	for i, old := range by {
		place[old] = int32(i)
	}
	move := func(event *int32) {
		if *event != chrometrace.NoEvent {
			*event = place[*event]
		}
	}
	for i := range f.Launches {
		move(&f.Launches[i].Event)
	}
	for i := range f.Work {
		move(&f.Work[i].Event)
	}
	for i := range f.Collectives {
		move(&f.Collectives[i].Event)
	}
	for i := range f.Steps {
		move(&f.Steps[i].Event)
	}
}
