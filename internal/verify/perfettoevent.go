package verify

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sgtrace/sgtrace/trace"
)

// The types of TrackEvents.
const (
	typeBegin = iota + 1
	typeEnd
	typeInstant
	typeCounter
)

var eventRules = []rule{{3, varintField}, {4, repeatedBytes}, {9, varintField}, {10, varintField}, {11, varintField},
	{30, varintField}, {36, repeatedVarint}, {42, repeatedVarint}, {44, fixedField}, {54, varintField}, {eventArgs, bytesField}}

// event reads a TrackEvent.
func (p *perfettoFile) event(b []byte) error {
	f := p.scratch.reset()
	if err := f.parse(b, eventRules); err != nil {
		return err
	}
	id := f.number(11)
	if id == 0 || id >= uint64(len(p.declared)) || !p.declared[id] {
		return fmt.Errorf("event on track %d, which is not described", id)
	}
	track := trace.TrackID(id)
	switch f.number(9) {
	case typeBegin:
		return p.begin(track, f)
	case typeEnd:
		return p.end(track, f)
	case typeInstant:
		return p.point(track, f)
	case typeCounter:
		integer, double := f.find(30), f.find(44)
		switch {
		case len(f.list) != 3 || integer == nil && double == nil:
			return errors.New("a sample without a value, or with more than that")
		case integer != nil:
			return p.sample(track, p.now, float64(int64(integer.num)))
		}
		return p.sample(track, p.now, math.Float64frombits(double.num))
	}
	return fmt.Errorf("event of type %d", f.number(9))
}

// name resolves the name of an event.
func (p *perfettoFile) name(f *fields) (string, error) { return p.text(eventNames, f.number(10)) }

func (p *perfettoFile) begin(track trace.TrackID, f *fields) error {
	name, err := p.name(f)
	if err != nil {
		return err
	}
	id, err := p.slice(track, p.now, name)
	if err != nil {
		return err
	}
	s := &p.t.Slices[id]
	if open := p.open[track]; len(open) > 0 && p.t.Slices[open[len(open)-1]].End() <= s.Time {
		return p.differ(track, "slice", s.Name, s.Time, "begins in the file before its neighbor ends")
	}
	p.open[track] = append(p.open[track], id)
	if err := p.symbol(f.find(3), categories, s.Cat); err != nil {
		return p.differ(track, "slice", s.Name, s.Time, "has another category: %v", err)
	}
	about := &p.t.Subjects[p.t.About[id]]
	if err := p.symbol(f.find(54), correlations, about.ID); err != nil {
		return p.differ(track, "slice", s.Name, s.Time, "is about something else: %v", err)
	}
	if err := p.args(f, s.Args, about.Args); err != nil {
		return p.differ(track, "slice", s.Name, s.Time, "has other arguments: %v", err)
	}
	return p.arrows(id, f)
}

func (p *perfettoFile) end(track trace.TrackID, f *fields) error {
	open := p.open[track]
	if len(open) == 0 {
		return p.extra(track, "end of a slice", p.now, "")
	}
	id := open[len(open)-1]
	p.open[track] = open[:len(open)-1]
	s := &p.t.Slices[id]
	for _, x := range f.list {
		if x.number != 9 && x.number != 11 && x.number != 42 {
			return p.differ(track, "slice", s.Name, s.Time, "has field %d on its end", x.number)
		}
	}
	if p.now != s.End() {
		return p.differ(track, "slice", s.Name, s.Time, "lasts %d ns in the file and %d ns in the model", int64(p.now-s.Time), s.Dur)
	}
	return p.arrows(id, f)
}

func (p *perfettoFile) point(track trace.TrackID, f *fields) error {
	name, err := p.name(f)
	if err != nil {
		return err
	}
	x, err := p.instant(track, p.now, name)
	if err != nil {
		return err
	}
	for _, y := range f.list {
		if y.number != 4 && y.number != 9 && y.number != 10 && y.number != 11 && y.number != eventArgs {
			return p.differ(track, "instant", x.Name, x.Time, "has field %d", y.number)
		}
	}
	if err := p.args(f, x.Args, 0); err != nil {
		return p.differ(track, "instant", x.Name, x.Time, "has other arguments: %v", err)
	}
	return nil
}

// symbol compares an interned string with a symbol; neither is there if that is 0.
func (p *perfettoFile) symbol(x *field, table int, sym trace.Sym) error {
	if x == nil && sym == 0 {
		return nil
	}
	if x == nil {
		return fmt.Errorf("%q is missing", p.names[sym])
	}
	text, err := p.text(table, x.num)
	if err == nil && (sym == 0 || !p.is(text, sym)) {
		err = fmt.Errorf("%q in the file, %q in the model", text, p.names[sym])
	}
	return err
}

// arrows reads the ends of arrows at the begin or the end of a slice. Arrow i of the
// model has the id i+1. trace_processor draws it from the end that comes first in the
// file, and turns it around if that slice starts later.
func (p *perfettoFile) arrows(id trace.SliceID, f *fields) error {
	for _, x := range f.list {
		if x.number != 36 && x.number != 42 {
			continue
		}
		if x.num == 0 || x.num > uint64(len(p.flows)) {
			return fmt.Errorf("arrow %d is in the file, but not in the model", x.num)
		}
		flow, begun := &p.t.Flows[x.num-1], &p.flows[x.num-1]
		s := &p.t.Slices[id]
		switch {
		case (x.number == 36) != (*begun == 0) || *begun == flowDone:
			return p.differ(s.Track, "slice", s.Name, s.Time, "has an end of arrow %d that does not fit the other one", x.num)
		case x.number == 36:
			*begun = id
		case !p.joins(flow, *begun, id):
			return p.differ(s.Track, "slice", s.Name, s.Time, "ends arrow %d (%q), which joins other slices in the model", x.num, p.names[flow.Name])
		default:
			*begun = flowDone
		}
	}
	return nil
}

// joins reports whether a viewer draws flow, of which the file names first and then
// second, as the model has it. One that points back in time cannot keep its
// direction, nor can one to a slice of no duration that is in the file before.
func (p *perfettoFile) joins(flow *trace.Flow, first, second trace.SliceID) bool {
	from, to := &p.t.Slices[flow.From], &p.t.Slices[flow.To]
	if first == flow.From && second == flow.To {
		return from.Time <= to.Time
	}
	return first == flow.To && second == flow.From && (to.Time < from.Time || to.Time == from.Time && to.Dur == 0)
}

// args compares typed arguments and DebugAnnotations with those of the model; each are in
// their order.
func (p *perfettoFile) args(f *fields, own, shared trace.ArgsID) error {
	typed, err := p.typed(f)
	if err != nil {
		return err
	}
	next := 0
	for a := range p.expected(own, shared) {
		var taken bool
		if typed, taken, err = p.takeTyped(typed, a); err != nil {
			return fmt.Errorf("%q: %w", p.names[a.Key], err)
		}
		if taken {
			p.Args++
			continue
		}
		for next < len(f.list) && f.list[next].number != 4 {
			next++
		}
		if next == len(f.list) {
			return fmt.Errorf("%q is missing", p.names[a.Key])
		}
		if err := p.annotation(f.list[next].data, a, true); err != nil {
			return fmt.Errorf("%q: %w", p.names[a.Key], err)
		}
		next++
		p.Args++
	}
	for _, x := range f.list[next:] {
		if x.number == 4 {
			return errors.New("there are more in the file")
		}
	}
	if len(typed) > 0 {
		return errors.New("there are more typed ones in the file")
	}
	return nil
}

var annotationRules = []rule{{1, varintField}, {2, varintField}, {3, varintField}, {4, varintField}, {5, fixedField}, {6, bytesField},
	{11, repeatedBytes}, {12, repeatedBytes}, {17, varintField}}

// valueField is the field that holds a value of each kind.
var valueField = [...]protowire.Number{trace.ArgString: 6, trace.ArgInt: 4, trace.ArgUint: 3, trace.ArgFloat: 5, trace.ArgBool: 2,
	trace.ArgArray: 12, trace.ArgDict: 11}

// annotation compares a DebugAnnotation with an argument. Elements of arrays have no
// name.
func (p *perfettoFile) annotation(b []byte, a trace.Arg, named bool) error {
	var f fields
	var room [4]field
	f.list = room[:0]
	if err := f.parse(b, annotationRules); err != nil {
		return err
	}
	values := f.list
	if named {
		if len(values) == 0 || values[0].number != 1 {
			return errors.New("it has no name in the file")
		}
		if err := p.argName(values[0].num, a.Key); err != nil {
			return err
		}
		values = values[1:]
	}
	return p.value(values, a)
}

func (p *perfettoFile) argName(id uint64, key trace.Sym) error {
	name, err := p.text(argNames, id)
	if err == nil && !p.is(name, key) && (p.names[key] != "" || name != "_") {
		err = fmt.Errorf("it is %q in the file", name)
	}
	return err
}

// value compares the fields that hold the value of an argument. Arrays and
// dictionaries that are empty are texts in a file.
func (p *perfettoFile) value(values []field, a trace.Arg) error {
	if a.Kind == trace.ArgArray || a.Kind == trace.ArgDict {
		n := 0
		for e := range a.Elems {
			if n == len(values) || values[n].number != valueField[a.Kind] {
				return errors.New("elements are missing in the file")
			}
			if err := p.annotation(values[n].data, e, a.Kind == trace.ArgDict); err != nil {
				return err
			}
			n++
		}
		if n > 0 {
			if n < len(values) {
				return errors.New("it has more elements in the file")
			}
			return nil
		}
		return p.stringValue(values, map[trace.ArgKind]string{trace.ArgArray: "[]", trace.ArgDict: "{}"}[a.Kind])
	}
	if a.Kind == trace.ArgString {
		return p.stringValue(values, string(a.Bytes()))
	}
	if len(values) != 1 || values[0].number != valueField[a.Kind] || values[0].num != bitsOf(a) {
		return errors.New("its value is another one")
	}
	return nil
}

// bitsOf is a value that is no text, as a field of its kind holds it.
func bitsOf(a trace.Arg) uint64 {
	switch a.Kind {
	case trace.ArgFloat:
		return math.Float64bits(a.Float())
	case trace.ArgBool:
		if a.Bool() {
			return 1
		}
		return 0
	case trace.ArgInt:
		return uint64(a.Int())
	}
	return a.Uint()
}

// stringValue compares a text, which may be interned.
func (p *perfettoFile) stringValue(values []field, want string) error {
	if len(values) != 1 || values[0].number != 6 && values[0].number != 17 {
		return errors.New("it is no text in the file")
	}
	have := string(values[0].data)
	if values[0].number == 17 {
		var err error
		if have, err = p.text(argStrings, values[0].num); err != nil {
			return err
		}
	}
	if have != want && have != valid(want) {
		return fmt.Errorf("%q in the file, %q in the model", cut(have), cut(want))
	}
	return nil
}

// cut shortens a text for a message.
func cut(s string) string {
	const most = 60
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
