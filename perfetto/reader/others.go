package reader

import (
	"io"
	"iter"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sgtrace/sgtrace/trace"
)

// Others reads a file that a program wrote with the SDK of Perfetto. Where [Packets] refuses what
// our writer would not write, this takes what trace_processor takes: several sequences, each with
// strings and clocks of its own, names in place of numbers, and fields that it does not know. Times
// of events are on the clock of the trace, which is CLOCK_BOOTTIME. An error is the last thing that
// it yields: packets have nothing by which to find the next one.
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
				err = d.packet(b, &p)
			}
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// others has what packets refer to, by sequence.
type others struct {
	sequences map[uint64]*sequence
	fields    fields // of the packet
	within    fields // of its event
	event     Event
	args      []Arg
}

// A sequence is what one thread wrote.
type sequence struct {
	interned [interningTables]map[uint64]string
	track    uint64 // of events that name none
	clock    uint64 // of times that name none; 0 is that of the trace
	clocks   map[uint64]*sequenceClock
}

// A sequenceClock is one that a sequence defines.
type sequenceClock struct {
	now, unit   int64 // ns on the clock of the trace, of one tick
	ticks       int64 // at now
	incremental bool
}

const (
	bootClock     = 6  // CLOCK_BOOTTIME
	realClock     = 1  // CLOCK_REALTIME
	sequenceFirst = 64 // the first clock that a sequence may define
	sizeBytes     = 3  // the unit of a counter
)

// sequence returns the sequence with a number, and whether it had packets before.
func (d *others) sequence(id uint64) (*sequence, bool) {
	s, begun := d.sequences[id]
	if !begun {
		s = &sequence{clocks: map[uint64]*sequenceClock{}}
		d.sequences[id] = s
	}
	return s, begun
}

// packet reads a TracePacket.
func (d *others) packet(b []byte, p *Packet) (err error) {
	if d.fields, err = d.fields[:0].parse(b, nil); err != nil {
		return err
	}
	f := d.fields
	s, begun := d.sequence(f.number(10))
	if f.number(13)&1 != 0 || f.number(41) != 0 { // the state is cleared
		*s = sequence{clocks: map[uint64]*sequenceClock{}}
	}
	for _, x := range f {
		switch x.number {
		case 6:
			err = d.snapshot(s, x.data, p)
		case 12:
			err = s.intern(x.data)
		case 59:
			err = s.defaults(x.data)
		case 60:
			p.Track, err = otherTrack(x.data)
		case 35:
			p.Lost, err = lost(x.data)
		case 42: // something is missing in front of this one, as is of the first
			if begun {
				p.Lost = x.num
			}
		}
		if err != nil {
			return err
		}
	}
	if f.find(6) != nil {
		return nil // the time of a snapshot is no step of an incremental clock
	}
	at := s.at(f) // of packets without an event, too: each moves an incremental clock on
	if x := f.find(11); x != nil {
		p.Event, err = &d.event, d.trackEvent(s, at, x.data)
	}
	return err
}

// snapshot reads a ClockSnapshot: what clocks of the sequence begin with, and what has to be added
// to the clock of the trace for Unix time.
func (d *others) snapshot(s *sequence, b []byte, p *Packet) error {
	all, err := fields(nil).parse(b, nil)
	if err != nil {
		return err
	}
	var boot, unix *field
	own := map[uint64]*sequenceClock{}
	for _, c := range all {
		if c.number != 1 {
			continue
		}
		clock, err := fields(nil).parse(c.data, nil)
		if err != nil {
			return err
		}
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
		return nil
	}
	for id, c := range own {
		c.now = int64(boot.num)
		s.clocks[id] = c
	}
	if unix != nil {
		shift := int64(unix.num - boot.num)
		p.Unix = &shift
	}
	return nil
}

// defaults reads TracePacketDefaults.
func (s *sequence) defaults(b []byte) error {
	f, err := fields(nil).parse(b, nil)
	if err != nil {
		return err
	}
	s.clock = f.number(58)
	if x := f.find(11); x != nil {
		if f, err = fields(nil).parse(x.data, nil); err != nil {
			return err
		}
		s.track = f.number(11)
	}
	return nil
}

// at returns the time of a packet, in ns on the clock of the trace.
func (s *sequence) at(f fields) int64 {
	ticks, id := int64(f.number(8)), f.number(58)
	if id == 0 {
		id = s.clock
	}
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
func (s *sequence) intern(b []byte) error {
	all, err := fields(nil).parse(b, nil)
	if err != nil {
		return err
	}
	var entry fields
	for _, f := range all {
		table, ok := tableOf[f.number]
		if !ok || f.data == nil {
			continue
		}
		if entry, err = entry[:0].parse(f.data, nil); err != nil {
			return err
		}
		if s.interned[table] == nil {
			s.interned[table] = map[uint64]string{}
		}
		s.interned[table][entry.number(1)] = entry.anyText(2)
	}
	return nil
}

// otherTrack reads a TrackDescriptor. What a process was started with is in it, too, and stays there.
func otherTrack(b []byte) (*Track, error) {
	f, err := fields(nil).parse(b, nil)
	if err != nil {
		return nil, err
	}
	t := &Track{UUID: f.number(1), Parent: f.number(5), Name: f.anyText(2)}
	if t.Name == "" {
		t.Name = f.anyText(10)
	}
	if x := f.find(8); x != nil {
		t.Counter, t.Scale = true, 1
		counter, err := fields(nil).parse(x.data, nil)
		if err != nil {
			return nil, err
		}
		t.Unit, t.Scale = counter.anyText(6), max(1, float64(int64(counter.number(4))))
		if t.Unit == "" && counter.number(3) == sizeBytes {
			t.Unit = "bytes"
		}
	}
	for _, number := range []protowire.Number{3, 4} { // ProcessDescriptor, ThreadDescriptor
		if x := f.find(number); x != nil {
			of, err := fields(nil).parse(x.data, nil)
			if err != nil {
				return nil, err
			}
			t.PID = int64(of.number(1))
		}
	}
	return t, nil
}

// lost returns how many pieces of the buffer TraceStats say are lost.
func lost(b []byte) (n uint64, err error) {
	all, err := fields(nil).parse(b, nil)
	for _, x := range all {
		if x.number != 1 || x.data == nil {
			continue
		}
		buffer, err := fields(nil).parse(x.data, nil)
		if err != nil {
			return n, err
		}
		n += buffer.number(3) + buffer.number(18) // overwritten, discarded
	}
	return n, err
}

// trackEvent reads a TrackEvent of a sequence into d.event.
func (d *others) trackEvent(s *sequence, at int64, b []byte) error {
	f, err := d.within[:0].parse(b, nil)
	if d.within = f; err != nil {
		return err
	}
	e := &d.event
	*e = Event{Kind: f.number(9), Time: at, Track: s.track}
	d.args = d.args[:0]
	for _, x := range f {
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
			a, err := s.annotation(x.data)
			if err != nil {
				return err
			}
			d.args = append(d.args, a)
		}
	}
	e.Args = d.args
	return nil
}

// annotation reads a DebugAnnotation. Of values that are no numbers and no texts only the name is kept.
func (s *sequence) annotation(b []byte) (a Arg, err error) {
	var room [8]field
	f, err := fields(room[:0]).parse(b, nil)
	if err != nil {
		return a, err
	}
	for _, x := range f {
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
	return a, nil
}

// anyText returns the text in a field, whatever bytes it has.
func (f fields) anyText(number protowire.Number) string {
	if x := f.find(number); x != nil {
		return valid(x.data)
	}
	return ""
}

func valid(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }
