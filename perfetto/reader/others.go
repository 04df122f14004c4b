package reader

import (
	"cmp"
	"io"
	"iter"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sgtrace/sgtrace/trace"
)

// Others reads a file that a program wrote with the Perfetto SDK. While [Packets] rejects anything that our
// writer would not write, Others accepts what trace_processor accepts: several sequences, each with strings and
// clocks of its own, names in place of ids, and unknown fields. Times of events are on the clock of the trace,
// which is CLOCK_BOOTTIME. An error is the last thing that it yields: there is no way to find the next packet.
func Others(r io.Reader) iter.Seq2[Packet, error] {
	return func(yield func(Packet, error) bool) {
		d := others{sequences: map[uint64]*sequence{}}
		in := newPackets(r)
		for {
			at := in.offset
			b, err := in.next()
			if err == io.EOF {
				return
			}
			p := Packet{Offset: at}
			if err == nil {
				d.packet(b, &p)
				err = d.err
			}
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// others is the state that packets refer to, by sequence.
type others struct {
	parser
	sequences map[uint64]*sequence
	fields    fields // of the packet
	inner     fields // of its event
	event     Event
	args      []Arg
}

// A sequence is the output of one thread.
type sequence struct {
	interned [interningTables]map[uint64]string
	track    uint64 // for events that name none
	clock    uint64 // for times that name none; 0 is the clock of the trace
	clocks   map[uint64]*sequenceClock
}

// A sequenceClock is a clock defined by a sequence.
type sequenceClock struct {
	now, unit   int64 // ns: time on the clock of the trace, and length of a tick
	ticks       int64 // at now
	incremental bool
}

const (
	bootClock     = 6  // CLOCK_BOOTTIME
	realClock     = 1  // CLOCK_REALTIME
	sequenceFirst = 64 // the first clock that a sequence may define
	sizeBytes     = 3  // the unit of a counter
)

// sequence returns the sequence with an id, and whether it had packets before.
func (d *others) sequence(id uint64) (*sequence, bool) {
	s, begun := d.sequences[id]
	if !begun {
		s = &sequence{clocks: map[uint64]*sequenceClock{}}
		d.sequences[id] = s
	}
	return s, begun
}

// packet reads a TracePacket.
func (d *others) packet(b []byte, p *Packet) {
	d.fields = d.parse(d.fields[:0], b, nil)
	f := d.fields
	s, begun := d.sequence(f.number(10))
	if f.number(13)&1 != 0 || f.number(41) != 0 { // state is cleared
		*s = sequence{clocks: map[uint64]*sequenceClock{}}
	}
	for _, x := range f {
		switch x.number {
		case 6:
			d.snapshot(s, x.data, p)
		case 12:
			d.intern(s, x.data)
		case 59:
			d.defaults(s, x.data)
		case 60:
			p.Track = d.track(x.data)
		case 35:
			p.Lost = d.lost(x.data)
		case 42: // packets before this one are missing, as they are before the first one
			if begun {
				p.Lost = x.num
			}
		}
	}
	if f.find(6) != nil || d.err != nil {
		return // the time of a snapshot is not a step of an incremental clock
	}
	at := s.at(f) // even for packets without an event: each advances an incremental clock
	if x := f.find(11); x != nil {
		p.Event = &d.event
		d.trackEvent(s, at, x.data)
	}
}

// snapshot reads a ClockSnapshot: the start of the sequence's clocks, and the offset from the clock of the
// trace to Unix time.
func (d *others) snapshot(s *sequence, b []byte, p *Packet) {
	var boot, unix *field
	own := map[uint64]*sequenceClock{}
	for _, c := range d.message(b) {
		if c.number != 1 {
			continue
		}
		clock := d.message(c.data)
		switch id := clock.number(1); {
		case id == bootClock:
			boot = clock.find(2)
		case id == realClock:
			unix = clock.find(2)
		case id >= sequenceFirst:
			own[id] = &sequenceClock{ticks: int64(clock.number(2)), unit: max(1, int64(clock.number(4))), incremental: clock.number(3) != 0}
		}
	}
	if boot == nil {
		return
	}
	for id, c := range own {
		c.now = int64(boot.num)
		s.clocks[id] = c
	}
	if unix != nil {
		shift := int64(unix.num - boot.num)
		p.Unix = &shift
	}
}

// defaults reads TracePacketDefaults.
func (d *others) defaults(s *sequence, b []byte) {
	f := d.message(b)
	s.clock = f.number(58)
	if x := f.find(11); x != nil {
		s.track = d.message(x.data).number(11)
	}
}

// at returns the time of a packet, in ns on the clock of the trace.
func (s *sequence) at(f fields) int64 {
	ticks, id := int64(f.number(8)), f.number(58)
	id = cmp.Or(id, s.clock)
	c := s.clocks[id]
	switch {
	case c == nil:
		return ticks
	case c.incremental:
		c.now += ticks * c.unit
		return c.now
	}
	return c.now + (ticks-c.ticks)*c.unit
}

// intern reads InternedData.
func (d *others) intern(s *sequence, b []byte) {
	var entry fields
	for _, f := range d.message(b) {
		table, ok := tableOf[f.number]
		if !ok || f.data == nil {
			continue
		}
		entry = d.parse(entry[:0], f.data, nil)
		if s.interned[table] == nil {
			s.interned[table] = map[uint64]string{}
		}
		s.interned[table][entry.number(1)] = entry.anyText(2)
	}
}

// track reads a TrackDescriptor. It ignores the command line of a process.
func (d *others) track(b []byte) *Track {
	f := d.message(b)
	t := &Track{UUID: f.number(1), Parent: f.number(5), Name: cmp.Or(f.anyText(2), f.anyText(10))}
	if x := f.find(8); x != nil {
		counter := d.message(x.data)
		t.Counter, t.Unit, t.Scale = true, counter.anyText(6), max(1, float64(int64(counter.number(4))))
		if t.Unit == "" && counter.number(3) == sizeBytes {
			t.Unit = "bytes"
		}
	}
	for _, number := range []protowire.Number{3, 4} { // ProcessDescriptor, ThreadDescriptor
		if x := f.find(number); x != nil {
			t.PID = int64(d.message(x.data).number(1))
		}
	}
	return t
}

// lost returns the number of lost pieces of the buffer according to TraceStats.
func (d *others) lost(b []byte) (n uint64) {
	for _, x := range d.message(b) {
		if x.number == 1 && x.data != nil {
			buffer := d.message(x.data)
			n += buffer.number(3) + buffer.number(18) // overwritten, discarded
		}
	}
	return n
}

// trackEvent reads a TrackEvent of a sequence into d.event.
func (d *others) trackEvent(s *sequence, at int64, b []byte) {
	d.inner = d.parse(d.inner[:0], b, nil)
	e := &d.event
	*e = Event{Kind: d.inner.number(9), Time: at, Track: s.track}
	d.args = d.args[:0]
	for _, x := range d.inner {
		switch x.number {
		case 3:
			e.Category = s.interned[categories][x.num]
		case 22:
			e.Category = valid(x.data)
		case 10:
			e.Name = s.interned[eventNames][x.num]
		case 23:
			e.Name = valid(x.data)
		case 11:
			e.Track = x.num
		case 30:
			e.Value = float64(int64(x.num))
		case 44:
			e.Value = math.Float64frombits(x.num)
		case 4:
			d.args = append(d.args, d.annotation(s, x.data))
		}
	}
	e.Args = d.args
}

// annotation reads a DebugAnnotation. Of values that are neither numbers nor texts, it only keeps the name.
func (d *others) annotation(s *sequence, b []byte) (a Arg) {
	var room [8]field
	for _, x := range d.parse(room[:0], b, nil) {
		switch x.number {
		case 1:
			a.Name = s.interned[argNames][x.num]
		case 10:
			a.Name = valid(x.data)
		case 2, 3, 4, 5:
			a.Kind, a.Bits = kindOf[x.number], x.num
		case 6:
			a.Kind, a.Text = trace.ArgString, x.data
		case 17:
			a.Kind, a.Text = trace.ArgString, []byte(s.interned[argStrings][x.num])
		}
	}
	return a
}

// anyText returns the text in a field, even if it is invalid UTF-8.
func (f fields) anyText(number protowire.Number) string {
	if x := f.find(number); x != nil {
		return valid(x.data)
	}
	return ""
}

func valid(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }
