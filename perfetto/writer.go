package perfetto

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"sync"

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
func Write(w io.Writer, t *trace.Trace) error { return write(w, t, windowRows) }

// write is Write with windows of about so many rows.
func write(w io.Writer, t *trace.Trace, rows int) error {
	from, to, ok := t.Bounds()
	if ok && from < 0 {
		return fmt.Errorf("event at %d ns: Perfetto cannot store times before 1970", int64(from))
	}
	tables := newTables(t)
	var cutter *cutter
	var prepared sync.WaitGroup
	prepared.Go(func() { tables.flows = newFlows(t) })
	if ok {
		prepared.Go(func() { cutter = newCutter(t, from, to, rows) })
	}
	e := newEncoder(tables, true)
	out := bufio.NewWriterSize(w, bufferSize)
	if ok {
		out.Write(appendClocks(nil, uint64(from)))
	}
	out.Write(appendAttributes(nil, t.Attributes))
	out.Write(appendSchema(nil, tables.fields))
	err := cmp.Or(e.tracks(out), e.definitions(out))
	prepared.Wait()
	if ok && err == nil {
		err = e.events(out, cutter)
	}
	return cmp.Or(err, out.Flush())
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
	b = appendUint(b, packetSequenceFlags, flagsCleared)
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
