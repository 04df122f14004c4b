package perfetto

import (
	"cmp"
	"fmt"
	"io"

	"github.com/sgtrace/sgtrace/trace"
)

// sequenceID is the id of the only packet sequence. One sequence with one set
// of interned strings imports 1.8 times as fast as one per track.
const sequenceID = 1

// Write writes t, a finished trace, to w. It returns the first error of w, or
// an error before writing anything if t has an event before 1970, which
// Perfetto would drop without a word.
//
// Invalid UTF-8 in names and arguments is written as U+FFFD.
func Write(w io.Writer, t *trace.Trace) error {
	from, to, ok := t.Bounds()
	if ok && from < 0 {
		return fmt.Errorf("event at %d ns: Perfetto has no times before 1970", int64(from))
	}
	out, buf := newOutput(w)
	e := newEncoder(t, out, buf)
	if ok {
		e.buf = appendClocks(e.buf, uint64(from))
	}
	e.buf = appendAttributes(e.buf, t.Attributes)
	err := e.tracks()
	if ok && err == nil {
		err = e.events(from, to)
	}
	if err == nil {
		_, err = out.flush(e.buf)
	}
	return cmp.Or(err, out.close())
}

// encoder turns events into packets.
type encoder struct {
	t     *trace.Trace
	names []string // of the symbols of t
	out   *output
	buf   []byte
	now   uint64 // time of the last packet, relative to the first event
	defs  []byte // InternedData that the packet being written must carry

	eventNames, categories, argNames, subjects dictionary
	argStrings                                 values
	flows                                      flows

	// seen holds, by symbol, the round in which an argument of that name was
	// written; there is a round per event.
	seen  []uint32
	round uint32

	// shared holds the encoded arguments of subjects, which many slices repeat,
	// and sharedNames, by symbol, whether a subject has an argument of that name.
	shared      [][]byte // by subject; nil is not encoded yet
	sharedNames []bool
}

func newEncoder(t *trace.Trace, out *output, buf []byte) *encoder {
	names := t.Syms.Names()
	return &encoder{
		t: t, names: names, out: out, buf: buf,
		eventNames: newDictionary(internedNames, len(names)),
		categories: newDictionary(internedCategories, len(names)),
		argNames:   newDictionary(internedArgNames, len(names)),
		subjects:   newDictionary(internedCorrelationIDs, len(names)),
		argStrings: newValues(len(names)),
		flows:      newFlows(t),
		seen:       make([]uint32, len(names)),

		shared:      make([][]byte, len(t.Subjects)),
		sharedNames: sharedNames(t, len(names)),
	}
}

// sharedNames tells by symbol which arguments any subject has.
func sharedNames(t *trace.Trace, symbols int) []bool {
	names := make([]bool, symbols)
	for _, s := range t.Subjects {
		for a := range t.Args.All(s.Args) {
			names[a.Key] = true
		}
	}
	return names
}

// appendClocks appends the packet that starts the sequence. Its snapshot says
// that at origin (ns since 1970) both REALTIME, the clock of the trace, and
// BOOTTIME, to which trace_processor relates all clocks, read origin: so
// to_realtime() gives wall time and files align when they are opened together.
// Later packets count from origin on a clock of their own, each by the
// difference to the packet before it.
func appendClocks(b []byte, origin uint64) []byte {
	b, packet := open(b, tracePacket)
	b = appendUint(b, packetSequenceID, sequenceID)
	b = appendUint(b, packetSequenceFlags, flagsCleared|flagsNeeds)
	b, defaults := open(b, packetDefaults)
	b = appendUint(b, defaultsClockID, clockIncremental)
	b = shut(b, defaults)
	b, snapshot := open(b, packetClockSnapshot)
	for _, clock := range [...]uint64{clockRealtime, clockBoottime, clockIncremental} {
		var at int
		b, at = open(b, snapshotClock)
		b = appendUint(b, clockID, clock)
		b = appendUint(b, clockTimestamp, origin)
		if clock == clockIncremental {
			b = appendUint(b, clockIsIncremental, 1)
		}
		b = shut(b, at)
	}
	b = appendUint(b, snapshotPrimary, clockRealtime)
	return shut(shut(b, snapshot), packet)
}

func appendAttributes(b []byte, attributes []trace.Attribute) []byte {
	if len(attributes) == 0 {
		return b
	}
	b, packet := open(b, tracePacket)
	b, all := open(b, packetAttributes)
	for _, a := range attributes {
		var at int
		b, at = open(b, attributesAttribute)
		b = appendString(b, attributeKey, validUTF8(a.Key))
		b = appendString(b, attributeStringValue, validUTF8(a.Value))
		b = shut(b, at)
	}
	return shut(shut(b, all), packet)
}

// events writes all events, ordered by time, window by window. The next window
// is sorted while this one is encoded.
func (e *encoder) events(from, to trace.Time) error {
	ready, free := make(chan []event, 1), make(chan []event, 2)
	stop := make(chan struct{})
	defer close(stop)
	free <- nil
	free <- nil
	go func() {
		defer close(ready)
		all := streams(e.t)
		var scratch []event
		for _, last := range windows(e.t, from, to) {
			var window []event
			select {
			case window = <-free:
				window = window[:0]
			case <-stop:
				return
			}
			for i := range all {
				window = all[i].advance(e.t, from, last, window)
			}
			if cap(scratch) < len(window) {
				scratch = make([]event, cap(window))
			}
			window, scratch = sortByTime(window, scratch)
			select {
			case ready <- window:
			case <-stop:
				return
			}
		}
	}()
	for window := range ready {
		if err := e.window(window); err != nil {
			return err
		}
		free <- window
	}
	return nil
}

// window writes the events of one window.
func (e *encoder) window(events []event) (err error) {
	for _, ev := range events {
		e.packet(ev)
		if err = e.flushFull(); err != nil {
			return err
		}
	}
	return nil
}

// flushFull hands the buffer over if it is full.
func (e *encoder) flushFull() (err error) {
	if len(e.buf) >= bufferSize {
		e.buf, err = e.out.flush(e.buf)
	}
	return err
}

// packet appends the packet of one event to the buffer.
func (e *encoder) packet(ev event) {
	b, packet := open(e.buf, tracePacket)
	b = appendUint(b, packetTimestamp, ev.time-e.now)
	b = appendUint(b, packetSequenceID, sequenceID)
	b = appendUint(b, packetSequenceFlags, flagsNeeds)
	b, te := open(b, packetTrackEvent)
	switch ev.kind {
	case begin:
		b = e.begin(b, ev.index)
	case end:
		b = appendUint(b, eventType, typeEnd)
		b = appendUint(b, eventTrack, uint64(e.t.Slices[ev.index].Track))
		b = e.flows.appendEnd(b, ev.index)
	case instant:
		i := &e.t.Instants[ev.index]
		b = appendUint(b, eventType, typeInstant)
		b = appendUint(b, eventTrack, uint64(i.Track))
		b = appendUint(b, eventNameIID, e.eventNames.id(i.Name, e.names[i.Name], &e.defs))
		b = e.annotations(b, i.Args, 0)
	case sample:
		s := &e.t.Samples[ev.index]
		b = appendUint(b, eventType, typeCounter)
		b = appendUint(b, eventTrack, uint64(s.Track))
		b = appendDouble(b, eventDoubleValue, s.Value)
	}
	b = shut(b, te)
	if len(e.defs) > 0 {
		b = appendString(b, packetInternedData, e.defs)
		e.defs = e.defs[:0]
	}
	e.buf = shut(b, packet)
	e.now = ev.time
}

// begin appends the content of the TrackEvent that begins slice id.
func (e *encoder) begin(b []byte, id uint32) []byte {
	s := &e.t.Slices[id]
	b = appendUint(b, eventType, typeBegin)
	b = appendUint(b, eventTrack, uint64(s.Track))
	b = appendUint(b, eventNameIID, e.eventNames.id(s.Name, e.names[s.Name], &e.defs))
	if s.Cat != 0 {
		b = appendUint(b, eventCategoryIID, e.categories.id(s.Cat, e.names[s.Cat], &e.defs))
	}
	about := e.t.About[id]
	if subject := &e.t.Subjects[about]; subject.ID != 0 {
		b = appendUint(b, eventCorrelationIID, e.subjects.id(subject.ID, e.names[subject.ID], &e.defs))
	}
	b = e.annotations(b, s.Args, about)
	return e.flows.appendBegin(b, id)
}
