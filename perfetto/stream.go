package perfetto

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// kind is the kind of a packet, and of the table that the event's index refers to.
type kind uint32

const kindBits = 2

const (
	begin   kind = iota // of a slice
	end                 // of a slice
	instant             // an instant
	sample              // a sample
)

// event is one packet to be written: its time in ns since the first event of the trace, its index in the table
// of its kind, and its track and kind as the tag.
type event = order.Key

// An event's tag has its track above its kind. Tracks fit: there is no memory for 2^30 of them.
func kindOf(e event) kind    { return kind(e.Tag & (1<<kindBits - 1)) }
func trackOf(e event) uint64 { return uint64(e.Tag >> kindBits) }

// rows is the part of a table that is still to be read.
type rows struct{ next, end uint32 }

// stream turns the tables of one track into events in the order that trace_processor requires. It keeps file
// order among equal times, so at one time: the ends of inner slices, of outer slices, the begins of outer
// slices, of inner ones, then instants, which nest in the slices open then. A begin written before the end of
// its neighbor would steal that end.
type stream struct {
	track trace.TrackID
	trackRows
	open []trace.SliceID // innermost last
}

// done reports whether there are no more events.
func (s *stream) done() bool {
	return len(s.open) == 0 && s.slices.empty() && s.instants.empty() && s.samples.empty()
}

// trackRows are the parts of the tables that belong to one track.
type trackRows struct{ slices, instants, samples rows }

func (r rows) empty() bool { return r.next >= r.end }

// first returns the time of the first event of a track, if it has any.
func (r *trackRows) first(t *trace.Trace) (first trace.Time, ok bool) {
	first = math.MaxInt64
	if !r.slices.empty() {
		first = min(first, t.Slices[r.slices.next].Time)
	}
	if !r.instants.empty() {
		first = min(first, t.Instants[r.instants.next].Time)
	}
	if !r.samples.empty() {
		first = min(first, t.Samples[r.samples.next].Time)
	}
	return first, first < math.MaxInt64
}

// rowsOfTracks returns the rows of every track.
func rowsOfTracks(t *trace.Trace) []trackRows {
	all := memory.Make[trackRows](len(t.Tracks))
	// Tables are ordered by track; a slice's row 0 is reserved.
	extend := func(r *rows, i int) {
		if r.end == 0 {
			r.next = uint32(i)
		}
		r.end = uint32(i) + 1
	}
	for i := range t.AllSlices() {
		extend(&all[t.Slices[i].Track].slices, int(i))
	}
	for i := range t.AllInstants() {
		extend(&all[t.Instants[i].Track].instants, i)
	}
	for i := range t.Samples {
		extend(&all[t.Samples[i].Track].samples, i)
	}
	return all
}

// advance appends all remaining events up to and including the time last.
// Events are relative to origin.
func (s *stream) advance(t *trace.Trace, origin, last trace.Time, out []event) []event {
	for {
		sliceAt, isSlice := trace.Time(math.MaxInt64), s.slices.next < s.slices.end
		if isSlice {
			sliceAt = t.Slices[s.slices.next].Time
		}
		if s.instants.next < s.instants.end {
			if at := t.Instants[s.instants.next].Time; at < sliceAt && at <= last {
				out = s.shutUntil(t, origin, at, out)
				out = append(out, s.event(uint64(at-origin), s.instants.next, instant))
				s.instants.next++
				continue
			}
		}
		if !isSlice || sliceAt > last {
			break
		}
		out = s.shutUntil(t, origin, sliceAt, out)
		out = append(out, s.event(uint64(sliceAt-origin), s.slices.next, begin))
		s.open = append(s.open, trace.SliceID(s.slices.next))
		s.slices.next++
	}
	for ; s.samples.next < s.samples.end && t.Samples[s.samples.next].Time <= last; s.samples.next++ {
		out = append(out, s.event(uint64(t.Samples[s.samples.next].Time-origin), s.samples.next, sample))
	}
	return s.shutUntil(t, origin, last, out)
}

func (s *stream) event(time uint64, index uint32, k kind) event {
	return event{Time: time, Index: index, Tag: uint32(s.track)<<kindBits | uint32(k)}
}

// shutUntil appends the ends of the open slices that end at or before at.
func (s *stream) shutUntil(t *trace.Trace, origin, at trace.Time, out []event) []event {
	for len(s.open) > 0 {
		id := s.open[len(s.open)-1]
		over := t.Slices[id].End()
		if over > at {
			break
		}
		out = append(out, s.event(uint64(over-origin), uint32(id), end))
		s.open = s.open[:len(s.open)-1]
	}
	return out
}

const (
	// windowRows is the number of slices, instants, and samples that should begin in a window: their events, the
	// scratch space of the sort, and the packets fit into an L2 cache.
	windowRows = 1 << 12
	firstRows  = 1 << 8 // in the first window
	// windowProbes is the number of rows that determine the end of a window.
	windowProbes = 64
	// mappedPerProbe is the number of bytes that the kernel maps to read the time of one row.
	mappedPerProbe = 64 << 10
)

// windows cuts the time of the trace, which ends at to, into stretches in which about rows events begin, and
// returns the last instant of each. It samples the times of the rows instead of dividing the time evenly,
// because traces are bursty: one second of a profiler may be in a day of requests.
//
// The first windows are short: until their events are written, all arguments are new to the workers.
func windows(t *trace.Trace, to trace.Time, rows int) []trace.Time {
	step := max(1, rows/windowProbes)
	var times []trace.Time
	for i := 1; i < len(t.Slices); i += step {
		trace.Touch(mappedPerProbe)
		times = append(times, t.Slices[i].Time)
	}
	for i := 0; i < len(t.Instants); i += step {
		trace.Touch(mappedPerProbe)
		times = append(times, t.Instants[i].Time)
	}
	for i := 0; i < len(t.Samples); i += step {
		times = append(times, t.Samples[i].Time)
	}
	slices.Sort(times)
	enough := min(rows, firstRows)
	var ends []trace.Time
	begun := 0
	for i, at := range times {
		begun += step
		if begun >= enough && at < to && (i+1 == len(times) || at < times[i+1]) {
			ends = append(ends, at)
			begun, enough = 0, min(2*enough, rows)
		}
	}
	return append(ends, to)
}
