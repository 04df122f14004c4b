package perfetto

import "github.com/sgtrace/sgtrace/trace"

// flowRef is one end of an arrow.
type flowRef struct {
	id  uint32 // of the arrow, and in the file
	end flowEnd
}

// flowEnd says on which event of the slice the end is written, and how.
type flowEnd uint32

const (
	opensAtBegin flowEnd = iota // flow_ids on BEGIN
	endsAtBegin                 // terminating_flow_ids on BEGIN
	endsAtEnd                   // terminating_flow_ids on END
)

// flows lists the ends of arrows by slice.
//
// Every arrow has its own id, because trace_processor chains all events of one
// id. It draws an arrow between the event that first names the id, in file
// order, and the one that ends it; ending an id that was not opened does
// nothing. So the end that comes first in the file opens, whichever it is, and
// the other one ends:
//
//   - The source begins first: it opens, the target ends on its BEGIN.
//   - Both begin at the same time, the target first in the file: the target
//     ends on its END, which comes later unless the target has no duration.
//   - Otherwise the target opens. trace_processor turns an arrow against time
//     around, from the slice that starts first to the one that starts later
//     (FlowTracker::End), so no encoding could keep its direction.
type flows struct {
	first []uint32 // refs[first[s]:first[s+1]] are those of slice s; empty without flows
	refs  []flowRef
}

func newFlows(t *trace.Trace) flows {
	if len(t.Flows) == 0 {
		return flows{}
	}
	first := make([]uint32, len(t.Slices)+2)
	for _, f := range t.Flows {
		first[f.From+2]++
		first[f.To+2]++
	}
	for i := 2; i < len(first); i++ {
		first[i] += first[i-1]
	}
	// first[s+1] is now where slice s begins; filling moves it to its end.
	refs := make([]flowRef, 2*len(t.Flows))
	put := func(s trace.SliceID, r flowRef) {
		refs[first[s+1]] = r
		first[s+1]++
	}
	for i, f := range t.Flows {
		id := uint32(i) + 1
		from, to := &t.Slices[f.From], &t.Slices[f.To]
		// Slices that begin at the same time do so in the order of their ids.
		switch {
		case from.Time < to.Time || from.Time == to.Time && f.From < f.To:
			put(f.From, flowRef{id, opensAtBegin})
			put(f.To, flowRef{id, endsAtBegin})
		case from.Time == to.Time && to.Dur > 0:
			put(f.From, flowRef{id, opensAtBegin})
			put(f.To, flowRef{id, endsAtEnd})
		default:
			put(f.To, flowRef{id, opensAtBegin})
			put(f.From, flowRef{id, endsAtBegin})
		}
	}
	return flows{first[:len(t.Slices)+1], refs}
}

// of returns the ends at slice s.
func (f *flows) of(s uint32) []flowRef {
	if len(f.refs) == 0 {
		return nil
	}
	return f.refs[f.first[s]:f.first[s+1]]
}

// appendBegin appends the flow fields of the BEGIN of slice s.
func (f *flows) appendBegin(b []byte, s uint32) []byte {
	for _, r := range f.of(s) {
		switch r.end {
		case opensAtBegin:
			b = appendFixed64(b, eventFlow, uint64(r.id))
		case endsAtBegin:
			b = appendFixed64(b, eventTerminatingFlow, uint64(r.id))
		}
	}
	return b
}

// appendEnd appends the flow fields of the END of slice s.
func (f *flows) appendEnd(b []byte, s uint32) []byte {
	for _, r := range f.of(s) {
		if r.end == endsAtEnd {
			b = appendFixed64(b, eventTerminatingFlow, uint64(r.id))
		}
	}
	return b
}
