// Package reader reads the Perfetto files that package perfetto writes.
//
// It shares no code with the writer and is stricter than trace_processor: whatever that would silently drop,
// guess, or repair is an error here, and so is a packet that the writer's own rules forbid. [Others] reads the
// traces of other programs, without such rules.
//
// It reads one packet after the other and holds only what later packets refer to: the strings that the file
// interns, its tracks, and the fields that it declares for arguments. Relations between packets, such as which
// slice an end closes and where an arrow ends, are up to its callers: convert/verify compares a file with its
// model, and tests build a trace from it.
package reader

import (
	"fmt"
	"io"
	"iter"

	"github.com/sgtrace/sgtrace/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

// A Packet is the content of one packet; missing parts are nil.
type Packet struct {
	Offset     int64    // in the file
	Start      *int64   // origin of times, ns since 1970
	Declared   []string // the names of arguments that are fields of a message
	Track      *Track
	Attributes []Attribute
	Event      *Event // valid until the next packet

	// Only from Others: the offset from times to ns since 1970, and the number of lost pieces.
	Unix *int64
	Lost uint64
}

// A Track is a declared track.
type Track struct {
	UUID, Parent uint64 // Parent is 0 if there is none
	Name, Desc   string
	Counter      bool
	Unit         string // of a counter
	Rank         int    // its place among its siblings
	Explicit     bool   // its children are ordered by rank

	// Only from Others: the process of the track, and the factor for values of a counter.
	PID   int64
	Scale float64
}

// An Attribute is a key and a value in the description of the trace.
type Attribute struct{ Key, Value string }

// The types of events.
const (
	Begin = iota + 1
	End
	Instant
	Counter
)

// An Event is an event on a track that was declared before.
type Event struct {
	Kind        uint64 // Begin to Counter
	Time        int64  // ns since 1970
	Track       uint64 // the UUID
	Name        string // of a Begin or an Instant
	Category    string
	Correlation string
	Value       float64 // of a Counter
	// Opens and Ends are the ids of arrows whose first or second end is here.
	Opens, Ends []uint64
	// Typed are the arguments that are fields of a message declared by the file, Args all others.
	Typed, Args []Arg
}

// An Arg is an argument, or an element of one.
type Arg struct {
	Name  string // "" in arrays
	Kind  trace.ArgKind
	Bits  uint64 // of a number or a boolean; of a float, its IEEE 754 bits
	Text  []byte // valid UTF-8, of a string
	Elems []Arg  // at least one, of an array or a dictionary
}

// Packets reads a file. An error names the packet and is the last thing that it yields.
func Packets(r io.Reader) iter.Seq2[Packet, error] {
	return func(yield func(Packet, error) bool) {
		d := decoder{tracks: map[uint64]bool{}}
		in := newPackets(r)
		for {
			at := in.offset
			b, err := in.next()
			if err == io.EOF {
				return
			}
			var p Packet
			if err == nil {
				p = d.packet(b)
				err = d.err
			}
			p.Offset = at
			if err != nil {
				yield(p, fmt.Errorf("packet at byte %d: %w", at, err))
				return
			}
			if !yield(p, nil) {
				return
			}
		}
	}
}

// A decoder is the state that packets refer to.
type decoder struct {
	parser
	started  bool            // whether the sequence was started
	start    int64           // of its incremental clock
	now      int64           // time on it
	tracks   map[uint64]bool // by UUID: whether it is a counter
	interned [interningTables][]string
	texts    [][]byte // interned[argStrings], in the form of [Arg.Text]
	schema   schema

	event  Event
	fields fields // of the current message and of those around it
	args   []Arg  // of the event
}

// The tables of InternedData. Ids count from 1, in the order of the file.
const (
	categories = iota
	eventNames
	argNames
	argStrings
	correlations
	interningTables
)

var tableOf = map[protowire.Number]int{1: categories, 2: eventNames, 3: argNames, 29: argStrings, 43: correlations}

var packetRules = []rule{{6, bytesField}, {8, varintField}, {10, varintField}, {11, bytesField}, {12, bytesField}, {13, varintField},
	{59, bytesField}, {60, bytesField}, {72, bytesField}, {126, bytesField}}

// packet reads a TracePacket.
func (d *decoder) packet(b []byte) (p Packet) {
	d.fields = d.parse(d.fields[:0], b, packetRules)
	f := d.fields
	for _, x := range f {
		if (x.number == 60 || x.number == 72 || x.number == 126) && len(f) != 1 {
			d.fail("a description shares its packet")
		}
		switch x.number {
		case 60:
			p.Track = d.descriptor(x.data)
			return p
		case 72:
			p.Declared = d.schema.read(&d.parser, x.data)
			return p
		case 126:
			p.Attributes = d.attributes(x.data)
			return p
		}
	}
	if !d.started {
		p.Start = &d.start
	}
	d.sequence(f)
	if x := f.find(12); x != nil {
		d.intern(x.data)
	}
	event, delta := f.find(11), f.find(8)
	switch {
	case event == nil && delta != nil:
		d.fail("a time stamp without an event")
	case event == nil:
	case delta == nil || int64(delta.num) < 0:
		d.fail("an event without a time stamp, or before the one in front of it")
	default:
		d.now += int64(delta.num)
		p.Event = &d.event
		d.trackEvent(event.data)
	}
	return p
}

// sequence checks that a packet belongs to the only sequence, which the first packet starts.
func (d *decoder) sequence(f fields) {
	flags := uint64(0)
	if !d.started {
		flags = 1 // SEQ_INCREMENTAL_STATE_CLEARED
	}
	if f.number(10) != 1 || f.number(13) != flags {
		d.fail("sequence %d with flags %d; want 1 with %d", f.number(10), f.number(13), flags)
	}
	switch {
	case !d.started:
		d.started = true
		d.clocks(f)
	case f.find(6) != nil || f.find(59) != nil:
		d.fail("clocks are set twice")
	}
}

// clocks reads the origin of event times, and checks that it is Unix time.
func (d *decoder) clocks(f fields) {
	defaults := d.within(f, 59, rule{58, varintField})
	snapshot := d.within(f, 6, rule{1, repeatedBytes}, rule{2, varintField})
	var ids []uint64
	for _, c := range snapshot {
		if c.number != 1 {
			continue
		}
		clock := d.message(c.data, rule{1, varintField}, rule{2, varintField}, rule{3, varintField})
		id, at, incremental := clock.number(1), clock.find(2), clock.find(3)
		if at == nil || (incremental != nil) != (id == 64) || incremental != nil && incremental.num != 1 || len(ids) > 0 && int64(at.num) != d.start || int64(at.num) < 0 {
			d.fail("clock %d is set to %d, others to %d; only 64 is incremental", id, clock.number(2), d.start)
			return
		}
		d.start = int64(at.num)
		ids = append(ids, id)
	}
	if defaults.number(58) != 64 || snapshot.number(2) != 1 || len(ids) != 3 || ids[0] != 1 || ids[1] != 6 || ids[2] != 64 {
		d.fail("clocks %d, %d by default, %d first; want 1, 6 and 64, 64 by default, 1 first", ids, defaults.number(58), snapshot.number(2))
	}
	d.now = d.start
}

var internedRules = []rule{{1, repeatedBytes}, {2, repeatedBytes}, {3, repeatedBytes}, {29, repeatedBytes}, {43, repeatedBytes}}

// intern reads InternedData.
func (d *decoder) intern(b []byte) {
	var entry fields
	for _, f := range d.message(b, internedRules...) {
		entry = d.parse(entry[:0], f.data, entryRules)
		table := &d.interned[tableOf[f.number]]
		if len(entry) != 2 || entry.number(1) != uint64(len(*table))+1 {
			d.fail("string %d of field %d comes after %d others", entry.number(1), f.number, len(*table))
		}
		s := d.text(entry, 2)
		*table = append(*table, s)
		if f.number == 29 {
			d.texts = append(d.texts, []byte(s))
		}
	}
}

var entryRules = []rule{{1, varintField}, {2, bytesField}}

// lookup resolves an interned id.
func (d *decoder) lookup(table int, id uint64) string {
	if id == 0 || id > uint64(len(d.interned[table])) {
		d.fail("interned string %d of table %d is not defined", id, table)
		return ""
	}
	return d.interned[table][id-1]
}

// attributes reads TraceAttributes.
func (d *decoder) attributes(b []byte) (list []Attribute) {
	for _, f := range d.message(b, rule{1, repeatedBytes}) {
		pair := d.message(f.data, rule{1, bytesField}, rule{3, bytesField})
		if len(pair) != 2 {
			d.fail("an attribute lacks its key or its value")
		}
		list = append(list, Attribute{d.text(pair, 1), d.text(pair, 3)})
	}
	return list
}

var descriptorRules = []rule{{1, varintField}, {2, bytesField}, {5, varintField}, {8, bytesField}, {11, varintField}, {12, varintField},
	{14, bytesField}, {15, varintField}}

// descriptor reads a TrackDescriptor.
func (d *decoder) descriptor(b []byte) *Track {
	f := d.message(b, descriptorRules...)
	t := &Track{UUID: f.number(1), Parent: f.number(5), Rank: int(f.number(12)), Explicit: f.number(11) == 3, Name: d.text(f, 2), Desc: d.text(f, 14)}
	if x := f.find(8); x != nil {
		t.Counter, t.Unit = true, d.text(d.message(x.data, rule{6, bytesField}), 6)
	}
	if _, twice := d.tracks[t.UUID]; twice || t.UUID == 0 {
		d.fail("track uuid %d is zero or not unique", t.UUID)
	}
	if merge, ordering := f.number(15), f.number(11); merge != 2 || ordering != 0 && ordering != 3 || f.find(12) == nil {
		d.fail("track %q may merge with its siblings, or has no rank", t.Name)
	}
	d.tracks[t.UUID] = t.Counter
	return t
}
