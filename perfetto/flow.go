package perfetto

import (
	"math/bits"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/trace"
)

// flowRef is one end of an arrow.
type flowRef struct {
	id  uint32 // of the arrow, in this package and in the file
	end flowEnd
}

// LiesApart implements [memory.Apart].
func (flowRef) LiesApart() {}

// flowEnd is the event of the slice on which the end is written, and the field.
type flowEnd uint32

const (
	opensAtBegin flowEnd = iota // flow_ids on BEGIN
	endsAtBegin                 // terminating_flow_ids on BEGIN
	endsAtEnd                   // terminating_flow_ids on END
)

// flows lists the ends of arrows by slice. Most slices have none: they take one bit each, and only the others
// take more space.
//
// Every arrow has its own id, because trace_processor chains all events with one id. It draws an arrow between
// the event that first names the id, in file order, and the one that ends it; ending an id that was not opened
// does nothing. So the end that comes first in the file opens, whichever it is, and the other one ends:
//
//   - The source begins first: it opens, the target ends on its BEGIN.
//   - Both begin at the same time, the target first in the file: the target ends on its END, which comes later
//     unless the target has no duration.
//   - Otherwise the target opens. trace_processor reverses an arrow against time, from the slice that starts
//     first to the one that starts later (FlowTracker::End), so no encoding could keep its direction.
type flows struct {
	marks []uint64 // a bit for each slice, set if it has ends; empty without flows
	ranks []uint32 // number of bits set before each word of marks

	first []uint32 // refs[first[i]:first[i+1]] are those of the slice of bit i
	refs  []flowRef
	atEnd bool // whether any is endsAtEnd
}

// The number of arrows announced to [trace.Touch] at once, and about how many bytes the kernel maps for each:
// the slices at its ends lie apart.
const (
	arrowsAtOnce = 64
	readPerArrow = 512
)

func newFlows(t *trace.Trace) flows {
	if len(t.Flows) == 0 {
		return flows{}
	}
	f := markFlows(t)
	for _, arrow := range t.Flows {
		f.first[f.rank(uint32(arrow.From))+2]++
		f.first[f.rank(uint32(arrow.To))+2]++
	}
	for i := 2; i < len(f.first); i++ {
		f.first[i] += f.first[i-1]
	}
	// first[i+1] is now where the refs of bit i begin; filling moves it to their end.
	put := func(s trace.SliceID, r flowRef) {
		at := &f.first[f.rank(uint32(s))+1]
		f.refs[*at] = r
		*at++
	}
	for i, arrow := range t.Flows {
		if i%arrowsAtOnce == 0 {
			trace.Touch(arrowsAtOnce * readPerArrow)
		}
		id := uint32(i) + 1
		from, to := &t.Slices[arrow.From], &t.Slices[arrow.To]
		// Slices that begin at the same time are in the order of their ids.
		switch {
		case from.Time < to.Time || from.Time == to.Time && arrow.From < arrow.To:
			put(arrow.From, flowRef{id, opensAtBegin})
			put(arrow.To, flowRef{id, endsAtBegin})
		case from.Time == to.Time && to.Dur > 0:
			put(arrow.From, flowRef{id, opensAtBegin})
			put(arrow.To, flowRef{id, endsAtEnd})
			f.atEnd = true
		default:
			put(arrow.To, flowRef{id, opensAtBegin})
			put(arrow.From, flowRef{id, endsAtBegin})
		}
	}
	return f
}

// markFlows returns flows with room for the arrows of t.
func markFlows(t *trace.Trace) flows {
	f := flows{marks: memory.Make[uint64](len(t.Slices)/64 + 1), refs: memory.Make[flowRef](2 * len(t.Flows))}
	for _, arrow := range t.Flows {
		f.marks[arrow.From/64] |= 1 << (arrow.From % 64)
		f.marks[arrow.To/64] |= 1 << (arrow.To % 64)
	}
	f.ranks = memory.Make[uint32](len(f.marks))
	n := uint32(0)
	for i, word := range f.marks {
		f.ranks[i] = n
		n += uint32(bits.OnesCount64(word))
	}
	f.first = memory.Make[uint32](int(n) + 2)
	return f
}

// rank returns the number of bits set before that of slice s.
func (f *flows) rank(s uint32) uint32 {
	return f.ranks[s/64] + uint32(bits.OnesCount64(f.marks[s/64]&(1<<(s%64)-1)))
}

// of returns the ends at slice s.
func (f *flows) of(s uint32) []flowRef {
	if len(f.marks) == 0 || f.marks[s/64]>>(s%64)&1 == 0 {
		return nil
	}
	i := f.rank(s)
	return f.refs[f.first[i]:f.first[i+1]]
}

// appendBegin appends the flow fields of the BEGIN of slice s.
func (f *flows) appendBegin(b []byte, s uint32) []byte {
	for _, r := range f.of(s) {
		switch r.end {
		case opensAtBegin:
			b = appendUint(b, eventFlow, uint64(r.id))
		case endsAtBegin:
			b = appendUint(b, eventTerminatingFlow, uint64(r.id))
		}
	}
	return b
}

// appendEnd appends the flow fields of the END of slice s.
func (f *flows) appendEnd(b []byte, s uint32) []byte {
	for _, r := range f.of(s) {
		if r.end == endsAtEnd {
			b = appendUint(b, eventTerminatingFlow, uint64(r.id))
		}
	}
	return b
}
