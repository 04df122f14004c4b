package perfetto

import (
	"math"

	"github.com/sgtrace/sgtrace/trace"
)

// tables is the state shared by all encoders.
type tables struct {
	t     *trace.Trace
	names []string // of the symbols of t

	// These are complete before the first event.
	eventNames, categories, subjects dictionary
	flows                            flows
	shared                           [][]byte // encoded arguments of subjects; nil if not used
	sharedValues                     *values  // of subjects; all of them are interned, because they repeat
	room                             []byte   // the block of shared arguments that is not full
	inShared                         []bool   // by symbol: whether it is the name of a shared argument
	fields                           []typedField

	// These grow while events are written.
	argNames  argNames
	values    *values
	lastValue uint32 // the last id of a value in either table
}

// encoder turns events into the contents of packets. Only one of the encoders of a trace assigns ids to names
// and values of arguments. The others leave out packets that need new ones.
type encoder struct {
	*tables
	defines bool
	missing bool   // the current packet needs an id that does not exist yet
	defs    []byte // InternedData that the next packet must carry

	buf    []byte // contents of packets
	packet []byte // the current packet

	// seen holds, by the symbol of its name, the last round in which an argument was written; each event is a
	// round.
	seen       []uint32
	round      uint32
	typed      []byte // the typed arguments of an event
	composites composites
}

func newEncoder(t *tables, defines bool) *encoder {
	return &encoder{tables: t, defines: defines, seen: make([]uint32, len(t.names)), composites: newComposites()}
}

// content appends the content of an event's TrackEvent. It reports whether that is complete: whether it needed
// no id that this encoder must not assign.
func (e *encoder) content(b []byte, ev event) ([]byte, bool) {
	e.missing = false
	switch kindOf(ev) {
	case begin:
		b = e.begin(b, ev)
	case end:
		b = appendHead(b, typeEnd, trackOf(ev))
		b = e.flows.appendEnd(b, ev.Index)
	case instant:
		i := &e.t.Instants[ev.Index]
		b = appendHead(b, typeInstant, trackOf(ev))
		b = appendUint(b, eventNameIID, uint64(e.eventNames.ids[i.Name]))
		b = e.annotations(b, i.Args, 0)
	case sample:
		b = appendHead(b, typeCounter, trackOf(ev))
		b = appendSample(b, e.t.Samples[ev.Index].Value)
	}
	return b, !e.missing
}

// begin appends the content of the TrackEvent that begins a slice.
func (e *encoder) begin(b []byte, ev event) []byte {
	s := &e.t.Slices[ev.Index]
	b = appendHead(b, typeBegin, trackOf(ev))
	b = appendUint(b, eventNameIID, uint64(e.eventNames.ids[s.Name]))
	if s.Cat != 0 {
		b = appendUint(b, eventCategoryIID, uint64(e.categories.ids[s.Cat]))
	}
	about := e.t.About[ev.Index]
	if about != 0 {
		if id := e.t.Subjects[about].ID; id != 0 {
			b = appendUint(b, eventCorrelationIID, uint64(e.subjects.ids[id]))
		}
	}
	b = e.annotations(b, s.Args, about)
	return e.flows.appendBegin(b, ev.Index)
}

// appendSample appends the value of a counter: as an integer if possible, as most integers take two bytes
// instead of eight, and trace_processor converts them to doubles.
func appendSample(b []byte, v float64) []byte {
	if n := uint64(v); v < 1<<49 && math.Float64bits(float64(n)) == math.Float64bits(v) { // -0 stays a double
		return appendUint(b, eventIntValue, n)
	}
	return appendDouble(b, eventDoubleValue, v)
}

// appendHead appends the common beginning of TrackEvents.
func appendHead(b []byte, kind byte, track uint64) []byte {
	return appendVarint(append(b, eventType<<3|wireVarint, kind, eventTrack<<3|wireVarint), track)
}

// appendEvent appends the packet of a TrackEvent that comes delta ns after the previous one. All lengths are
// known by now, so nothing has to be moved.
//
// Only the first packet has sequence_flags. In others they would mean that the packet relies on earlier ones,
// so that a reader drops it if those were lost; nothing is lost from a file.
func appendEvent(b []byte, delta uint64, content, defs []byte) []byte {
	size := 1 + sizeOf(delta) + 3 + sizeOf(uint64(len(content))) + len(content)
	if len(defs) > 0 {
		size += 1 + sizeOf(uint64(len(defs))) + len(defs)
	}
	b = appendVarint(append(b, tracePacket<<3|wireBytes), uint64(size))
	b = appendVarint(append(b, packetTimestamp<<3|wireVarint), delta)
	b = append(b, packetSequenceID<<3|wireVarint, sequenceID, packetTrackEvent<<3|wireBytes)
	b = append(appendVarint(b, uint64(len(content))), content...)
	if len(defs) > 0 {
		b = appendString(b, packetInternedData, defs)
	}
	return b
}

// appendEnd appends the packet that ends the innermost slice of a track.
func appendEnd(b []byte, delta, track uint64) []byte {
	size := 3 + sizeOf(track)
	b = append(b, tracePacket<<3|wireBytes, byte(1+sizeOf(delta)+4+size), packetTimestamp<<3|wireVarint)
	b = append(appendVarint(b, delta), packetSequenceID<<3|wireVarint, sequenceID, packetTrackEvent<<3|wireBytes, byte(size))
	return appendHead(b, typeEnd, track)
}
