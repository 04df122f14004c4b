package verify

import (
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sgtrace/sgtrace/trace"
)

// Perfetto compares a native Perfetto trace with the model that it was written
// from. It returns what is equal, or the first difference.
func Perfetto(r io.Reader, t *trace.Trace) (Counts, error) {
	m, err := newModel(t)
	if err != nil {
		return Counts{}, err
	}
	first, _, any := t.Bounds()
	p := &perfettoFile{model: m, first: first, hasEvents: any, declared: make([]bool, len(t.Tracks)), open: make([][]trace.SliceID, len(t.Tracks))}
	p.ranks, p.parents = siblings(t.Tracks)
	in := newPackets(r)
	for {
		at := in.offset
		packet, err := in.next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = p.packet(packet)
		}
		if err != nil {
			return Counts{}, fmt.Errorf("packet at byte %d: %w", at, err)
		}
	}
	if err := p.finish(); err != nil {
		return Counts{}, err
	}
	return m.Counts, nil
}

// A perfettoFile is a Perfetto file being read: what packets refer to.
type perfettoFile struct {
	*model
	first     trace.Time // of the model
	hasEvents bool
	started   bool       // the sequence was
	now       trace.Time // of its incremental clock
	interned  [interningTables][]string
	declared  []bool // tracks
	described int    // attributes
	ranks     []int  // places of tracks among their siblings
	parents   []bool // tracks that have children
	open      [][]trace.SliceID
	scratch   fields

	schema       schema
	typedScratch fields
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

// packet reads a TracePacket.
func (p *perfettoFile) packet(b []byte) error {
	f := p.scratch.reset()
	if err := f.parse(b, packetRules); err != nil {
		return err
	}
	if d := f.find(60); d != nil {
		return p.alone(f, p.descriptor, d.data)
	}
	if s := f.find(72); s != nil {
		return p.alone(f, p.declarations, s.data)
	}
	if a := f.find(126); a != nil {
		return p.alone(f, p.attributes, a.data)
	}
	if err := p.sequence(f); err != nil {
		return err
	}
	if d := f.find(12); d != nil {
		if err := p.intern(d.data); err != nil {
			return err
		}
	}
	event, delta := f.find(11), f.find(8)
	if event == nil {
		if delta != nil {
			return errors.New("a time stamp without an event")
		}
		return nil
	}
	if delta == nil || int64(delta.num) < 0 {
		return errors.New("an event without a time stamp, or before the one in front of it")
	}
	p.now += trace.Time(delta.num)
	return p.event(event.data)
}

var packetRules = []rule{{6, bytesField}, {8, varintField}, {10, varintField}, {11, bytesField}, {12, bytesField}, {13, varintField},
	{59, bytesField}, {60, bytesField}, {72, bytesField}, {126, bytesField}}

// alone reads a message that must be alone in its packet.
func (p *perfettoFile) alone(f *fields, read func(b []byte) error, b []byte) error {
	if len(f.list) != 1 {
		return errors.New("a description shares its packet")
	}
	return read(b)
}

// sequence checks that a packet belongs to the only sequence, which the first one
// starts.
func (p *perfettoFile) sequence(f *fields) error {
	flags := uint64(0)
	starts := !p.started
	if starts && p.hasEvents {
		flags = 1 // SEQ_INCREMENTAL_STATE_CLEARED
	}
	if f.number(10) != 1 || f.number(13) != flags {
		return fmt.Errorf("sequence %d with flags %d; want 1 with %d", f.number(10), f.number(13), flags)
	}
	p.started = true
	if !starts || !p.hasEvents {
		if f.find(6) != nil || f.find(59) != nil {
			return errors.New("clocks are set twice")
		}
		return nil
	}
	return p.clocks(f)
}

// clocks checks that times count from the first event, as Unix time.
func (p *perfettoFile) clocks(f *fields) error {
	var defaults, snapshot fields
	if err := defaults.parseIn(f, 59, []rule{{58, varintField}}); err != nil {
		return err
	}
	if err := snapshot.parseIn(f, 6, []rule{{1, repeatedBytes}, {2, varintField}}); err != nil {
		return err
	}
	var ids []uint64
	for _, c := range snapshot.list {
		if c.number != 1 {
			continue
		}
		var clock fields
		if err := clock.parse(c.data, []rule{{1, varintField}, {2, varintField}, {3, varintField}}); err != nil {
			return err
		}
		ids = append(ids, clock.number(1))
		at, incremental := clock.find(2), clock.number(1) == 64
		if at == nil || at.num != uint64(p.first) || (clock.number(3) == 1) != incremental || (clock.find(3) != nil) != incremental {
			return fmt.Errorf("clock %d is set to %d; the model begins at %d", clock.number(1), clock.number(2), int64(p.first))
		}
	}
	if defaults.number(58) != 64 || snapshot.number(2) != 1 || len(ids) != 3 || ids[0] != 1 || ids[1] != 6 || ids[2] != 64 {
		return fmt.Errorf("clocks %d, %d by default, %d first; want 1, 6 and 64, 64 by default, 1 first", ids, defaults.number(58), snapshot.number(2))
	}
	p.now = p.first
	return nil
}

// intern reads InternedData.
func (p *perfettoFile) intern(b []byte) error {
	var all, entry fields
	if err := all.parse(b, internedRules); err != nil {
		return err
	}
	for _, f := range all.list {
		if err := entry.reset().parse(f.data, []rule{{1, varintField}, {2, bytesField}}); err != nil {
			return err
		}
		table := &p.interned[tableOf[f.number]]
		if len(entry.list) != 2 || entry.number(1) != uint64(len(*table))+1 {
			return fmt.Errorf("string %d of field %d comes after %d others", entry.number(1), f.number, len(*table))
		}
		*table = append(*table, string(entry.find(2).data))
	}
	return nil
}

var internedRules = []rule{{1, repeatedBytes}, {2, repeatedBytes}, {3, repeatedBytes}, {29, repeatedBytes}, {43, repeatedBytes}}

// text resolves an interned id.
func (p *perfettoFile) text(table int, id uint64) (string, error) {
	if id == 0 || id > uint64(len(p.interned[table])) {
		return "", fmt.Errorf("interned string %d of table %d is not defined", id, table)
	}
	return p.interned[table][id-1], nil
}

// attributes reads TraceAttributes.
func (p *perfettoFile) attributes(b []byte) error {
	var all, pair fields
	if err := all.parse(b, []rule{{1, repeatedBytes}}); err != nil {
		return err
	}
	for _, f := range all.list {
		if err := pair.reset().parse(f.data, []rule{{1, bytesField}, {3, bytesField}}); err != nil {
			return err
		}
		if len(pair.list) != 2 {
			return errors.New("an attribute lacks its key or its value")
		}
		if err := p.attribute(p.described, string(pair.find(1).data), string(pair.find(3).data)); err != nil {
			return err
		}
		p.described++
	}
	return nil
}

// attribute compares attribute i of the description.
func (m *model) attribute(i int, key, value string) error {
	if i >= len(m.t.Attributes) {
		return fmt.Errorf("attribute %q is in the file, but not in the model", key)
	}
	if a := m.t.Attributes[i]; key != valid(a.Key) || value != valid(a.Value) {
		return fmt.Errorf("attribute %q is %q in the file; the model has %q, %q", key, value, a.Key, a.Value)
	}
	return nil
}

// finish checks that nothing is missing.
func (p *perfettoFile) finish() error {
	for id := 1; id < len(p.declared); id++ {
		if !p.declared[id] {
			return fmt.Errorf("%s is not in the file", p.place(trace.TrackID(id)))
		}
		if open := p.open[id]; len(open) > 0 {
			s := &p.t.Slices[open[len(open)-1]]
			return p.differ(s.Track, "slice", s.Name, s.Time, "has no end in the file")
		}
	}
	if p.described != len(p.t.Attributes) {
		return fmt.Errorf("%d attributes are in the file, and %d in the model", p.described, len(p.t.Attributes))
	}
	p.Tracks = len(p.declared) - 1
	return p.model.finish()
}
