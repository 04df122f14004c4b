package perfetto

import (
	"math"
	"math/bits"

	"github.com/sgtrace/sgtrace/trace"
)

// kind says what a packet tells, and which table the event's index refers to.
type kind uint32

const (
	begin   kind = iota // of a slice
	end                 // of a slice
	instant             // an instant
	sample              // a sample
)

// event is one packet to be written. Its 16 bytes are what the sort moves.
type event struct {
	time  uint64 // ns since the first event of the trace
	index uint32 // into the table of its kind
	kind  kind
}

// rows is the part of a table that is still to be read.
type rows struct{ next, end uint32 }

// stream turns the tables of one track into events in the order in which
// trace_processor must see them. It keeps file order among equal times, so at
// one time: the ends of inner slices, of outer slices, the begins of outer
// slices, of inner ones, then instants, which nest in the slices open then. A
// begin written before the end of its neighbour would steal that end.
type stream struct {
	slices, instants, samples rows
	open                      []trace.SliceID // begun, innermost last
}

// streams returns a stream for every track.
func streams(t *trace.Trace) []stream {
	all := make([]stream, len(t.Tracks))
	// Tables are ordered by track; a slice's row 0 is reserved.
	extend := func(r *rows, i int) {
		if r.end == 0 {
			r.next = uint32(i)
		}
		r.end = uint32(i) + 1
	}
	for i := 1; i < len(t.Slices); i++ {
		extend(&all[t.Slices[i].Track].slices, i)
	}
	for i := range t.Instants {
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
	since := func(at trace.Time) uint64 { return uint64(at - origin) }
	for {
		sliceAt, isSlice := trace.Time(math.MaxInt64), s.slices.next < s.slices.end
		if isSlice {
			sliceAt = t.Slices[s.slices.next].Time
		}
		if s.instants.next < s.instants.end {
			if at := t.Instants[s.instants.next].Time; at < sliceAt && at <= last {
				out = s.shutUntil(t, origin, at, out)
				out = append(out, event{since(at), s.instants.next, instant})
				s.instants.next++
				continue
			}
		}
		if !isSlice || sliceAt > last {
			break
		}
		out = s.shutUntil(t, origin, sliceAt, out)
		out = append(out, event{since(sliceAt), s.slices.next, begin})
		s.open = append(s.open, trace.SliceID(s.slices.next))
		s.slices.next++
	}
	for ; s.samples.next < s.samples.end && t.Samples[s.samples.next].Time <= last; s.samples.next++ {
		out = append(out, event{since(t.Samples[s.samples.next].Time), s.samples.next, sample})
	}
	return s.shutUntil(t, origin, last, out)
}

// shutUntil appends the ends of the open slices that end at or before at.
func (s *stream) shutUntil(t *trace.Trace, origin, at trace.Time, out []event) []event {
	for len(s.open) > 0 {
		id := s.open[len(s.open)-1]
		over := t.Slices[id].End()
		if over > at {
			break
		}
		out = append(out, event{uint64(over - origin), uint32(id), end})
		s.open = s.open[:len(s.open)-1]
	}
	return out
}

const (
	// windowRows is how many slices, instants and samples a window should
	// begin: their events and the scratch space of the sort fit into an L2 cache.
	windowRows = 1 << 14
	maxBuckets = 1 << 16
)

// windows cuts the time from the first to the last event into stretches that
// begin about the same number of events and returns the last instant of each.
// A histogram decides, because traces are bursty: one second of a profiler may
// lie in an hour of requests.
func windows(t *trace.Trace, from, to trace.Time) []trace.Time {
	shift := max(0, bits.Len64(uint64(to-from))-bits.Len(maxBuckets-1))
	buckets := make([]uint32, uint64(to-from)>>shift+1)
	for i := range t.Slices[1:] {
		buckets[uint64(t.Slices[i+1].Time-from)>>shift]++
	}
	for i := range t.Instants {
		buckets[uint64(t.Instants[i].Time-from)>>shift]++
	}
	for i := range t.Samples {
		buckets[uint64(t.Samples[i].Time-from)>>shift]++
	}
	// Every window visits every track.
	enough := max(windowRows, uint32(len(t.Tracks)))
	var ends []trace.Time
	var begun uint32
	for i, n := range buckets[:len(buckets)-1] {
		if begun += n; begun >= enough {
			ends = append(ends, from+trace.Time(uint64(i+1)<<shift-1))
			begun = 0
		}
	}
	return append(ends, to)
}
