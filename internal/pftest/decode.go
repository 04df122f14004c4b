package pftest

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Decode reads a Perfetto trace written by this module. Any violation of the
// format, or of what the package comment of the writer promises, is an error.
func Decode(data []byte) (*Trace, error) {
	all, err := parse("Trace", data, rules{1: messages})
	if err != nil {
		return nil, err
	}
	d := decoder{trace: &Trace{}, tracks: map[uint64]*Track{}, flows: map[uint64]*flow{}}
	packets := make([]packet, len(all))
	// trace_processor, too, reads all descriptors before the first event.
	for i, p := range all {
		if packets[i], err = parsePacket(p.data); err != nil {
			return nil, fmt.Errorf("packet %d: %w", i, err)
		}
		if descriptor, ok := packets[i].field(60); ok {
			if err := d.descriptor(descriptor.data); err != nil {
				return nil, fmt.Errorf("packet %d: %w", i, err)
			}
		}
	}
	if err := d.link(); err != nil {
		return nil, err
	}
	for i, p := range packets {
		if err := d.packet(p); err != nil {
			return nil, fmt.Errorf("packet %d: %w", i, err)
		}
	}
	return d.trace, d.finish()
}

// packet holds the fields of a TracePacket, none of which repeats.
type packet []field

func parsePacket(b []byte) (packet, error) { return parse("TracePacket", b, packetRules) }

// field returns the field of a number, which is zero where there is none.
func (p packet) field(number protowire.Number) (field, bool) {
	for _, f := range p {
		if f.number == number {
			return f, true
		}
	}
	return field{}, false
}

type decoder struct {
	trace    *Trace
	tracks   map[uint64]*Track
	sequence uint64 // the only one; 0 before it starts
	now      int64  // of the incremental clock
	clock    bool   // the snapshot was read
	interned [interningFields]map[uint64]string
	typed    map[protowire.Number]declared
	words    map[uint64]string
	flows    map[uint64]*flow
	flowIDs  []uint64 // in the order of their first events
}

// The fields of InternedData, as indexes into decoder.interned.
const (
	categories = iota
	eventNames
	argNames
	argStrings
	correlations
	interningFields
)

// packet reads all but descriptors.
func (d *decoder) packet(p packet) error {
	for _, alone := range []protowire.Number{60, 72, 126} {
		if has(p, alone) && len(p) != 1 {
			return fmt.Errorf("field %d shares its packet", alone)
		}
	}
	if has(p, 60) {
		return nil
	}
	if f, ok := p.field(72); ok {
		return d.schema(f.data)
	}
	if f, ok := p.field(126); ok {
		return d.attributes(f.data)
	}
	if err := d.enterSequence(p); err != nil {
		return err
	}
	if f, ok := p.field(12); ok {
		if err := d.intern(f.data); err != nil {
			return err
		}
	}
	f, ok := p.field(11)
	if !ok {
		return nil
	}
	delta, ok := p.field(8)
	if !ok || !d.clock {
		return errors.New("event without a time stamp or a clock")
	}
	if int64(delta.num) < 0 {
		return errors.New("time runs backwards")
	}
	d.now += int64(delta.num)
	return d.event(d.now, f.data)
}

// enterSequence checks what ties a packet to the sequence, and reads the packet
// that starts it.
func (d *decoder) enterSequence(p packet) error {
	sequence, _ := p.field(10)
	state, _ := p.field(13)
	defaults, _ := p.field(59)
	snapshot, _ := p.field(6)
	id, flags := sequence.num, state.num
	switch {
	case id == 0:
		return errors.New("no trusted_packet_sequence_id")
	case d.sequence == 0:
		if flags != 1 {
			return fmt.Errorf("first packet of the sequence has flags %d", flags)
		}
		d.sequence = id
		return d.clocks(defaults.data, snapshot.data)
	case id != d.sequence:
		return fmt.Errorf("second sequence %d", id)
	case flags != 0:
		return fmt.Errorf("sequence_flags %d", flags)
	case defaults.data != nil || snapshot.data != nil:
		return errors.New("defaults or clocks after the first packet")
	}
	return nil
}

// clocks reads TracePacketDefaults and ClockSnapshot.
func (d *decoder) clocks(defaults, snapshot []byte) error {
	fields, err := parse("TracePacketDefaults", defaults, rules{58: varint})
	if err != nil {
		return err
	}
	if len(fields) != 1 || fields[0].num != 64 {
		return errors.New("default clock is not 64")
	}
	fields, err = parse("ClockSnapshot", snapshot, rules{1: messages, 2: varint})
	if err != nil {
		return err
	}
	times := map[uint64]int64{}
	primary := uint64(0)
	for _, f := range fields {
		if f.number == 2 {
			primary = f.num
			continue
		}
		clock, err := parse("Clock", f.data, rules{1: varint, 2: varint, 3: varint})
		if err != nil {
			return err
		}
		by := map[protowire.Number]uint64{}
		for _, c := range clock {
			by[c.number] = c.num
		}
		if incremental := by[1] == 64; incremental != (by[3] == 1) {
			return fmt.Errorf("clock %d: is_incremental is %d", by[1], by[3])
		}
		times[by[1]] = int64(by[2])
	}
	start, ok := times[64]
	if !ok || len(times) != 3 || times[1] != start || times[6] != start || primary != 1 || start < 0 {
		return fmt.Errorf("clocks %v, primary %d", times, primary)
	}
	d.now, d.trace.Start, d.clock = start, start, true
	return nil
}

// intern reads InternedData.
func (d *decoder) intern(b []byte) error {
	index := map[protowire.Number]int{1: categories, 2: eventNames, 3: argNames, 29: argStrings, 43: correlations}
	allowed := rules{}
	for n := range index {
		allowed[n] = messages
	}
	fields, err := parse("InternedData", b, allowed)
	if err != nil {
		return err
	}
	for _, f := range fields {
		entry, err := parse("interned entry", f.data, internedRules)
		if err != nil {
			return err
		}
		if len(entry) != 2 || entry[0].number != 1 || entry[0].num == 0 {
			return errors.New("interned entry lacks its id or its string")
		}
		table := &d.interned[index[f.number]]
		if *table == nil {
			*table = map[uint64]string{}
		}
		if _, ok := (*table)[entry[0].num]; ok {
			return fmt.Errorf("interned id %d of field %d is defined twice", entry[0].num, f.number)
		}
		s, err := text(entry[1].data)
		if err != nil {
			return err
		}
		(*table)[entry[0].num] = s
	}
	return nil
}

// lookup resolves an interned id.
func (d *decoder) lookup(table int, id uint64) (string, error) {
	s, ok := d.interned[table][id]
	if !ok {
		return "", fmt.Errorf("interned id %d of table %d is not defined", id, table)
	}
	return s, nil
}

func (d *decoder) attributes(b []byte) error {
	fields, err := parse("TraceAttributes", b, rules{1: messages})
	if err != nil {
		return err
	}
	for _, f := range fields {
		pair, err := parse("attribute", f.data, rules{1: bytes, 3: bytes})
		if err != nil {
			return err
		}
		if len(pair) != 2 || pair[0].number != 1 {
			return errors.New("attribute lacks its key or its value")
		}
		key, err1 := text(pair[0].data)
		value, err2 := text(pair[1].data)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		d.trace.Attributes = append(d.trace.Attributes, Attribute{key, value})
	}
	return nil
}

func text(b []byte) (string, error) {
	if !utf8.Valid(b) {
		return "", fmt.Errorf("string %q is not UTF-8", b)
	}
	return string(b), nil
}
